"""After a failover the name leads to a replica for a while: how soon does work go on?

    replica.py [SECONDS]

A worker's login is made read-only and its sessions are ended, as if the name led to the earlier server;
36 documents are handed in; after so many seconds (15) new sessions may write. Prints what `/readyz` says
meanwhile and how soon all were done. Exit code 1 if a document did not complete, if `/readyz` was not 503,
or if it took longer than MAX_RECOVERY_SECONDS.
"""

import sys
import time

from world import World

DOCUMENTS, MAX_RECOVERY_SECONDS = 36, 30


def main(seconds):
    with World("replica") as world:
        name, url = world.login()
        worker = world.start_worker(DOCMILL__DATABASE__URL=url)
        world.hand_in("BEFORE", 4)
        world.wait_until_done("BEFORE", 60)
        world.ask(f"ALTER ROLE {name} SET default_transaction_read_only = on")
        world.ask(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'")
        world.hand_in("DOC", DOCUMENTS)
        time.sleep(seconds)
        ready, metrics = worker.get("readyz"), worker.get("metrics")[1]
        paused = [line for line in metrics.splitlines() if line.startswith("docmill_intake_paused{")]
        print(f"on a replica for {seconds} s: {dict(world.ends('DOC'))}, /readyz {ready}, {paused}")
        world.ask(f"ALTER ROLE {name} RESET default_transaction_read_only")
        took, ends = world.wait_until_done("DOC", 120), world.ends("DOC")
        print(f"on the writer again: all done after {took and round(took, 1)} s: {dict(ends)}")
        good = ends == {("completed", ""): DOCUMENTS} and ready[0] == 503
        return 0 if good and took is not None and took <= MAX_RECOVERY_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
