"""A provider declines the calls of all documents without a word about any, and takes them again.

    declined_calls.py [STATUS...]

For each status (400, 413, 422) 20 documents are handed in while every call is answered by it, for 60 s; then
the model answers. Prints what ended meanwhile and how soon all were done. Exit code 1 if a document did
not complete, or if the first completed later than MAX_RECOVERY_SECONDS after the model answered.
"""

import sys
import time

from world import World

DOCUMENTS, DECLINED_SECONDS, MAX_RECOVERY_SECONDS = 20, 60, 30
# Documents that were refused come back after `retry.unavailable_delay`, doubled each time.
MAX_WAIT_SECONDS = 400


def run(status):
    with World("declined") as world:
        world.door.status = status
        world.start_worker()
        world.hand_in("CALL", DOCUMENTS)
        time.sleep(DECLINED_SECONDS)
        ended, calls = dict(world.ends("CALL")), world.door.refused
        world.door.status = None
        began = time.monotonic()
        while world.count("status = 'completed'") == 0 and time.monotonic() - began < MAX_WAIT_SECONDS:
            time.sleep(0.2)
        back = time.monotonic() - began
        took, ends = world.wait_until_done("CALL", MAX_WAIT_SECONDS), world.ends("CALL")
        print(f"{status}: after {DECLINED_SECONDS} s {ended}, {calls} calls; then the first after {back:.1f} s, all "
              f"after {took and round(took, 1)} s more: {dict(ends)}", flush=True)
        return ends == {("completed", ""): DOCUMENTS} and back <= MAX_RECOVERY_SECONDS


if __name__ == "__main__":
    results = [run(int(status)) for status in sys.argv[1:] or ["400", "413", "422"]]
    sys.exit(0 if all(results) else 1)
