"""Kills workers of a bucket at random and looks whether every document ends exactly once.

    bucket_kills.py DOCMILL [--endpoint URL] [--documents N] [--kills N] [--workers N]

DOCMILL is the program. Without --endpoint the bucket is a folder, else a bucket of that server (a
moto server will do). Prints one line of figures; exit code 1 if a document was lost or has two ends.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request


def pdf(text):
    """A PDF of one line, small enough to be read in milliseconds."""
    content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1,
        start,
    )


class Bucket:
    def __init__(self, arguments, folder):
        self.program = arguments.docmill
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DOCMILL", "BLOBFORGE", "AWS"))
        }
        self.environment |= {
            "DOCMILL__BUCKET__LIST_EVERY": "1s",
            "DOCMILL__BUCKET__LONGEST_PAUSE": "1s",
        }
        if arguments.endpoint:
            self.environment |= {
                "BLOBFORGE_S3_BUCKET": "papers",
                "BLOBFORGE_S3_ENDPOINT_URL": arguments.endpoint,
                "BLOBFORGE_S3_ACCESS_KEY_ID": "test",
                "BLOBFORGE_S3_SECRET_ACCESS_KEY": "test",
                "BLOBFORGE_S3_REGION": "us-east-1",
            }
            request = urllib.request.Request(f"{arguments.endpoint}/papers", method="PUT")
            urllib.request.urlopen(request).close()
        else:
            self.environment["DOCMILL__BUCKET__PATH"] = os.path.join(folder, "bucket")

    def ask(self, *words):
        command = [self.program, "bucket", *words, "--json"]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    def work(self):
        return subprocess.Popen(
            [self.program, "bucket", "work", "--jobs", "2"],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("docmill")
    parser.add_argument("--endpoint")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--workers", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        papers = os.path.join(folder, "papers")
        os.mkdir(papers)
        for number in range(arguments.documents):
            with open(os.path.join(papers, f"{number}.pdf"), "wb") as file:
                file.write(pdf(f"Document {number}"))
        bucket = Bucket(arguments, folder)
        bucket.ask("ingest", papers)
        # Killed workers count as runs; here the killer is at fault, not the document.
        bucket.ask("config", "--set", "max_retries=30")
        return run(bucket, arguments)


def run(bucket, arguments):
    started, kills = time.monotonic(), 0
    workers = [bucket.work() for _ in range(arguments.workers)]
    try:
        while True:
            time.sleep(random.uniform(0.3, 1.5))
            if kills < arguments.kills:
                place = random.randrange(len(workers))
                workers[place].kill()
                workers[place].wait()
                workers[place] = bucket.work()
                kills += 1
                continue
            standing = bucket.ask("status")
            if standing["done"] + standing["dead"] >= arguments.documents:
                break
            if time.monotonic() - started > 900:
                break
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
    standing = bucket.ask("status")
    left = sum(standing["todo"].values()) + standing["processing"] + standing["failed"]
    seconds = time.monotonic() - started
    print(
        f"{arguments.documents} documents, {kills} kills of {arguments.workers} workers: "
        f"{standing['done']} done, {standing['dead']} dead, {left} left, {seconds:.0f} s"
    )
    return 0 if standing["done"] == arguments.documents and left == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
