"""A worker of BlobForge 039ba07 whose model is replaced: it notes each document that it converts in
the file of the first argument, takes the second argument's seconds for each, and ends once nothing
waited for the third argument's seconds."""

import pathlib
import sys
import time

from blobforge import worker as theirs
from blobforge.s3_client import S3Client

notes, takes, patience = pathlib.Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])


def convert(self, path, timeout_seconds, timeout_reason="conversion_timeout"):
    with notes.open("a") as file:
        file.write(self.current_job + "\n")
    time.sleep(takes)
    return f"# {self.current_job}\n", {}, {"by": "blobforge"}


theirs.Worker._run_conversion_with_timeout = convert
worker = theirs.Worker(S3Client())
# Otherwise it believes for two minutes that nothing waits.
worker._cache_ttl = 0
since = time.monotonic()
while time.monotonic() - since < patience:
    job = worker.acquire_job()
    if job:
        worker.process(job)
        since = time.monotonic()
    else:
        time.sleep(0.1)
worker.shutdown()
