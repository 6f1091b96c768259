"""Kills workers of a bucket at random and looks whether every document ends exactly once.

    bucket_kills.py DOCMILL [--endpoint URL] [--documents N] [--kills N] [--workers N]

DOCMILL is the program. Without --endpoint the bucket is a folder, else a bucket of that server (a
moto server will do). Prints one line of figures; exit code 1 if a document was lost or has two ends.
"""

import json
import os
import subprocess
import sys
import tempfile

import killing


class Bucket:
    def __init__(self, told, folder):
        self.program = told.docmill
        self.environment = killing.environment() | {
            "DOCMILL__BUCKET__LIST_EVERY": "1s",
            "DOCMILL__BUCKET__LONGEST_PAUSE": "1s",
        }
        if told.endpoint:
            self.environment |= {
                "BLOBFORGE_S3_BUCKET": "papers",
                "BLOBFORGE_S3_ENDPOINT_URL": told.endpoint,
                "BLOBFORGE_S3_ACCESS_KEY_ID": "test",
                "BLOBFORGE_S3_SECRET_ACCESS_KEY": "test",
                "BLOBFORGE_S3_REGION": "us-east-1",
            }
            killing.make_bucket(told.endpoint, "papers")
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
    told = killing.arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        papers = os.path.join(folder, "papers")
        killing.documents(papers, told.documents)
        bucket = Bucket(told, folder)
        bucket.ask("ingest", papers)
        # Killed workers count as runs; here the killer is at fault, not the document.
        bucket.ask("config", "--set", "max_retries=30")
        return run(bucket, told)


def run(bucket, told):
    def is_over():
        standing = bucket.ask("status")
        return standing["done"] + standing["dead"] >= told.documents

    kills, seconds = killing.kill_at_random(told, bucket.work, is_over)
    standing = bucket.ask("status")
    left = sum(standing["todo"].values()) + standing["processing"] + standing["failed"]
    print(
        f"bucket {'on S3' if told.endpoint else 'in a folder'}: {told.documents} documents, "
        f"{kills} kills of {told.workers} workers: {standing['done']} done, "
        f"{standing['dead']} dead, {left} left, {seconds:.0f} s"
    )
    return 0 if standing["done"] == told.documents and left == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
