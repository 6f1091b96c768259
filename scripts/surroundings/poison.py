"""One document kills its worker, whenever it is worked on: what does that do to its neighbours?

    poison.py [NEIGHBOURS] [SECONDS]

First a run of the neighbours (20) without a fault, one after another: one slot, and each takes so many
seconds (2) of a model, as scans do on one core. Then a run with 16 slots in which the worker is killed
while it works on the poisonous document, and started again, until every document has an end. Prints
both, and how the poison ended. Exit code 1 if a neighbour did not complete, if the poison did not end
as `crashed` within MAX_DEATHS deaths, or if the neighbours took more than twice as long and two
leases.
"""

import sys
import time

from world import LEASE, World

# One that accuses it among its neighbours, one or two in a group of suspects, and three alone.
MAX_DEATHS = 6
MAX_WAIT_SECONDS = 600


class Killer:
    """Kills the worker at each claim of the poison, and starts another."""

    def __init__(self, world, after):
        self.world, self.worker, self.deaths, self.after = world, world.start_worker(), [], after

    def tend(self):
        row = self.world.ask(f"SELECT claims FROM ingestion WHERE {self.world.of('POISON')} "
                             "AND claim_token IS NOT NULL AND lease_expires_at > docmill_now()")
        if not row or int(row[0][0]) in self.deaths:
            return
        # Beside the others, or alone, and well within its work.
        time.sleep(self.after)
        in_hand = self.world.count("claim_token IS NOT NULL AND lease_expires_at > docmill.docmill_now()")
        self.worker.kill()
        self.deaths.append(int(row[0][0]))
        self.world.say(f"killed at claim {row[0][0]} of the poison, {in_hand - 1} others in hand")
        self.worker = self.world.start_worker()


def run(neighbours, seconds, is_poisoned):
    with World("poison", DOCMILL__WORKER__SLOTS="16" if is_poisoned else "1") as world:
        world.door.delay = seconds
        world.hand_in("GOOD", neighbours)
        if is_poisoned:
            world.hand_in("POISON", 1)
            killer = Killer(world, seconds / 2)
            took = world.wait_until_done("GOOD", MAX_WAIT_SECONDS, killer.tend)
            poison = world.wait_until_done("POISON", MAX_WAIT_SECONDS, killer.tend)
            world.say(f"the poison: {dict(world.ends('POISON'))}")
            return took, world.ends("GOOD"), (world.ends("POISON"), len(killer.deaths), poison)
        world.start_worker()
        return world.wait_until_done("GOOD", MAX_WAIT_SECONDS), world.ends("GOOD"), None


def main(neighbours, seconds):
    before, _, _ = run(neighbours, seconds, False)
    took, ends, (poison, deaths, _) = run(neighbours, seconds, True)
    print(f"neighbours without a fault: {before:.1f} s; beside the poison: {took and round(took, 1)} s, "
          f"{dict(ends)}; the poison: {dict(poison)} after {deaths} deaths")
    well = ends == {("completed", ""): neighbours} and poison == {("failed", "crashed"): 1}
    return 0 if well and deaths <= MAX_DEATHS and took <= 2 * before + 2 * LEASE else 1


if __name__ == "__main__":
    numbers = [float(word) for word in sys.argv[1:]]
    sys.exit(main(int(numbers[0]) if numbers else 20, numbers[1] if len(numbers) > 1 else 2.0))
