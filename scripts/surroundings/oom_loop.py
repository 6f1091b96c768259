"""A deploy with too little memory: every worker dies soon after its start. No document is at fault.

    oom_loop.py [DOCUMENTS] [SECONDS] [DEATHS]

The worker is killed SECONDS (4) after each start, DEATHS (15) times, as a memory limit and
CrashLoopBackOff do it, over DOCUMENTS (200) that take two seconds each of a model. Then it lives.
Prints what had ended at each third death, and how long the rest took. Exit code 1 if a document ended
otherwise than completed.
"""

import sys
import time

from world import World

MAX_WAIT_SECONDS = 900


def main(documents, seconds, deaths):
    with World("oom_loop") as world:
        world.door.delay = 2.0
        world.hand_in("GOOD", documents)
        for death in range(1, deaths + 1):
            worker = world.start_worker()
            time.sleep(seconds)
            worker.kill()
            if death % 3 == 0:
                (crashed,), = world.ask("SELECT count(*) FROM attempt WHERE outcome = 'crashed'")
                world.say(f"death {death}: {dict(world.ends('GOOD'))}, {crashed} crashed attempts")
        worker = world.start_worker()
        took = world.wait_until_done("GOOD", MAX_WAIT_SECONDS)
        ends = world.ends("GOOD")
        print(f"after {deaths} deaths of the worker: {dict(ends)}, the rest took "
              f"{took and round(took, 1)} s")
        return 0 if ends == {("completed", ""): documents} else 1


if __name__ == "__main__":
    numbers = [float(word) for word in sys.argv[1:]] + [200, 4, 15][len(sys.argv) - 1:]
    sys.exit(main(int(numbers[0]), numbers[1], int(numbers[2])))
