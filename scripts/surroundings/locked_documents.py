"""A product corrects documents in one transaction that it leaves open: what does that cost others?

    locked_documents.py [SLOTS] [LOCKED] [OTHERS]

LOCKED (20) documents whose rows are locked and OTHERS (200) that are not are handed in together, to
a worker with SLOTS (64). Prints how long the others took, and how long with no row locked. Exit code
1 if they took more than MAX_SLOWDOWN times as long, or if a locked one did not complete once its row
was free.
"""

import subprocess
import sys

from world import World

MAX_SLOWDOWN = 1.2
# Of starting the worker, and of looking.
START_SECONDS = 1.0
MAX_WAIT_SECONDS = 170


class Product:
    """A session that has changed documents and not committed."""

    def __init__(self, world, prefix):
        self.session = subprocess.Popen(["psql", "-qAtX", world.database_url], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.session.stdin.write(
            "BEGIN; UPDATE docmill.document SET tags = '{\"looked\": \"at\"}' "
            f"WHERE original_name LIKE '{prefix}-%'; SELECT 'locked';\n")
        self.session.stdin.flush()
        self.session.stdout.readline()

    def commit(self):
        self.session.communicate("COMMIT;\n")


def run(slots, locked, others, is_locked):
    with World("locked_documents", DOCMILL__WORKER__SLOTS=str(slots)) as world:
        world.hand_in("LOCKED", locked)
        product = Product(world, "LOCKED") if is_locked else None
        world.hand_in("OTHER", others)
        world.start_worker()
        took = world.wait_until_done("OTHER", MAX_WAIT_SECONDS)
        open_others = world.count(f"status = 'in-progress' AND {world.of('OTHER')}")
        world.say(f"{locked if is_locked else 0} locked: the others took {took and round(took, 1)} s, "
                  f"{open_others} still open")
        if product:
            product.commit()
        world.wait_until_done("LOCKED", MAX_WAIT_SECONDS)
        return took, world.ends("LOCKED") == {("completed", ""): locked}


def main(slots, locked, others):
    before, _ = run(slots, locked, others, False)
    took, is_done = run(slots, locked, others, True)
    print(f"{slots} slots: {others} others took {before:.1f} s, with {locked} documents locked "
          f"{took and round(took, 1)} s; the locked ones completed afterwards: {is_done}")
    return 0 if took is not None and took <= MAX_SLOWDOWN * before + START_SECONDS and is_done else 1


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]] + [64, 20, 200][len(sys.argv) - 1:]
    sys.exit(main(*numbers))
