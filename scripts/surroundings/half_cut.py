"""A worker loses its way to Postgres, and keeps the one to the queue: who reads its documents?

    half_cut.py

The first of two workers claims ten documents, each of which takes five seconds, and is cut off from Postgres
for good. Prints how soon the other one has read them. Exit code 1 if a document did not complete, or if it
took longer than a lease, what a message may be hidden after it, and MAX_RECOVERY_SECONDS.
"""

import sys
import time
import urllib.parse

from world import LEASE, World

DOCUMENTS, MAX_RECOVERY_SECONDS = 10, 30


def main():
    with World("half_cut") as world:
        place = urllib.parse.urlsplit(world.database_url)
        way = world.proxy(place.port)
        user = f"{place.netloc.rsplit('@', 1)[0]}@" if "@" in place.netloc else ""
        url = place._replace(netloc=f"{user}127.0.0.1:{way.port}").geturl()
        world.door.delay = 5.0
        world.start_worker("cut", DOCMILL__DATABASE__URL=url)
        world.hand_in("CUT", DOCUMENTS)
        while world.count("claim_token IS NOT NULL") < DOCUMENTS:
            time.sleep(0.05)
        way.fall_silent()
        world.door.delay = 0.0
        world.start_worker("healthy")
        took, ends = world.wait_until_done("CUT", 180), world.ends("CUT")
        print(f"all {DOCUMENTS} done {took and round(took, 1)} s after the cut: {dict(ends)}")
        good = ends == {("completed", ""): DOCUMENTS}
        return 0 if good and took is not None and took <= 2 * LEASE + MAX_RECOVERY_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
