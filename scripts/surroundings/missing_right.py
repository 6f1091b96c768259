"""A right of the worker's role is missing, as after a restore, and comes back.

    missing_right.py [DOCUMENTS] [SECONDS]

So many documents (60) are handed in to a worker that may not read the list of blocked content; after so
many seconds (50) the right is given. Prints what ended meanwhile, what `/readyz` says, and how soon all
were done. Exit code 1 if a document did not complete, if `/readyz` did not say why, or if work went on
later than MAX_RECOVERY_SECONDS after the right was there.
"""

import sys
import time

from world import World

MAX_RECOVERY_SECONDS = 30
# Documents that failed before the pause come back after `retry.unavailable_delay`.
MAX_WAIT_SECONDS = 120
RIGHT = "SELECT ON docmill.blocked_content"


def main(documents, seconds):
    with World("right") as world:
        name, url = world.login()
        world.ask(f"REVOKE {RIGHT} FROM docmill_worker")
        worker = world.start_worker(DOCMILL__DATABASE__URL=url)
        world.hand_in("RIGHT", documents)
        time.sleep(seconds)
        ended, ready = dict(world.ends("RIGHT")), worker.get("readyz")
        print(f"without the right for {seconds} s: {ended}, /readyz {ready}")
        world.ask(f"GRANT {RIGHT} TO docmill_worker")
        began = time.monotonic()
        while world.count("status = 'completed'") == 0 and time.monotonic() - began < MAX_WAIT_SECONDS:
            time.sleep(0.2)
        back = time.monotonic() - began
        took, ends = world.wait_until_done("RIGHT", MAX_WAIT_SECONDS), world.ends("RIGHT")
        print(f"with it again: the first after {back:.1f} s, all after {took and round(took, 1)} s more: "
              f"{dict(ends)}")
        said = ready[0] == 503 and "reason" in ready[1]
        return 0 if said and ends == {("completed", ""): documents} and back <= MAX_RECOVERY_SECONDS else 1


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    sys.exit(main(numbers[0] if numbers else 60, numbers[1] if len(numbers) > 1 else 50))
