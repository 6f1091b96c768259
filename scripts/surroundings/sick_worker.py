"""One worker of two lacks a right: what does it do to documents that the other can read?

    sick_worker.py [DOCUMENTS]

First a healthy worker alone, then one beside a sick one; each has so many documents (40). Prints how long
both took, how they ended, and what the sick worker's `/readyz` says. Exit code 1 if a document did not
complete, if the sick worker did not take itself out, or if nine in ten took longer than 1.2 times as long
and MAX_RECOVERY_SECONDS.
"""

import sys
import time

from world import World

MAX_RECOVERY_SECONDS = 30
RIGHT = "SELECT ON docmill.blocked_content"


def run(documents, is_sick):
    """Seconds until nine in ten were done, and until all were; the ends; the sick one's readiness."""
    with World("sick") as world:
        world.door.delay = 1.0
        sick = None
        if is_sick:
            _, url = world.login()
            world.ask(f"REVOKE {RIGHT} FROM docmill_worker")
            sick = world.start_worker("sick", DOCMILL__DATABASE__URL=url)
        world.start_worker("healthy")
        world.hand_in("DOC", documents)
        began, most = time.monotonic(), None
        while time.monotonic() - began < 240 and world.count("status = 'in-progress'") > 0:
            if most is None and world.count("status <> 'in-progress'") * 10 >= documents * 9:
                most = time.monotonic() - began
            time.sleep(0.1)
        took = time.monotonic() - began
        return most or took, took, world.ends("DOC"), sick and sick.get("readyz")


def main(documents):
    alone, all_alone, _, _ = run(documents, False)
    most, took, ends, ready = run(documents, True)
    print(f"nine in ten of {documents}: {alone:.1f} s alone, {most:.1f} s beside a sick worker; all: "
          f"{all_alone:.1f} s, {took:.1f} s; {dict(ends)}; the sick one's /readyz: {ready}")
    well = ends == {("completed", ""): documents} and ready[0] == 503
    return 0 if well and most <= alone * 1.2 + MAX_RECOVERY_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
