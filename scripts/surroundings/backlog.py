"""A backlog at a slow provider.

    scripts/surroundings.sh backlog [DOCUMENTS] [CALLS_PER_SECOND] [WORKERS] [SHAPE]     default 500 2 1 bucket

The model takes so many calls a second and refuses the others, by a token bucket as vendors document it or,
with the shape `window`, by a strict count of the last second, where nothing is saved up. `retry.max_deferral` is 90 s, a fraction of
the time that the backlog takes; slots and waits are the defaults. Prints how the documents ended, how
much of its pace the provider was used to, and by how much the worst document waited longer than its
place in line says (30 s more are allowed: the time that a job may keep its slot). Exit code 1 if one
failed, less than 95 % was used, or one waited more than twice as long.
"""

import sys

from surroundings.world import World

MAX_SLOT_SECONDS = 30
count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
pace = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
workers = int(sys.argv[3]) if len(sys.argv) > 3 else 1
shape = sys.argv[4] if len(sys.argv) > 4 else "bucket"
if shape not in ("bucket", "window"):
    sys.exit(f"{shape} is no shape of a limit: bucket or window")

with World("backlog", DOCMILL__RETRY__MAX_DEFERRAL="90s", DOCMILL__WORKER__SLOTS="64",
           DOCMILL__QUEUE__VISIBILITY="60s", DOCMILL__CLAIM__LEASE="60s",
           DOCMILL__JANITOR__QUIET="30m") as world:
    world.door.per_second, world.door.delay, world.door.sliding = pace, 0.3, shape == "window"
    world.hand_in("slow", count)
    for number in range(workers):
        world.start_worker(f"worker-{number}")
    took = world.wait_until_done("slow", 4 * count / pace + 120)
    ends = world.ends("slow")
    world.say(f"ended after {took and round(took)} s: {dict(ends)}")
    served = world.door.served
    used = (len(served) - 1) / (served[-1] - served[0]) / pace
    waits = [float(row[0]) for row in world.ask(
        f"SELECT extract(epoch FROM COALESCE(completed_at, now()) - "
        f"(SELECT min(started_at) FROM attempt)) FROM ingestion "
        f"WHERE {world.of('slow')} ORDER BY created_at, id")]
    worst, place = max((wait / (place / pace + MAX_SLOT_SECONDS), place) for place, wait in enumerate(waits))
    attempts = int(world.ask("SELECT count(*) FROM attempt")[0][0])
    world.say(f"{used:.1%} of the pace used, {world.door.refused} calls refused; the worst waited "
              f"{worst:.2f} times as long as its place (number {place}); {attempts} attempts")
    failed = sum(number for (status, _), number in ends.items() if status != "completed")
    if failed or took is None or used < 0.95 or worst > 2:
        sys.exit(1)
