"""docmill and BlobForge 039ba07 on one bucket; called by blobforge_peer.sh with docmill's program,
moto's server and a checkout. Exits 1 at the first difference."""

import io
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import zipfile

import boto3

DOCMILL, MOTO, SOURCE = sys.argv[1:4]
SAMPLE = pathlib.Path("samples/invoice_en.pdf").read_bytes()
KEYS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Bucket:
    """A bucket, and what both programs find it by."""

    def __init__(self, endpoint, name, folder):
        self.name, self.folder = name, folder
        self.client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
        self.client.create_bucket(Bucket=name)
        self.environment = os.environ | {
            "PYTHONPATH": str(pathlib.Path(SOURCE).resolve()),
            "BLOBFORGE_S3_BUCKET": name,
            "BLOBFORGE_S3_ENDPOINT_URL": endpoint,
            "BLOBFORGE_S3_ACCESS_KEY_ID": "key",
            "BLOBFORGE_S3_SECRET_ACCESS_KEY": "secret",
            "BLOBFORGE_S3_REGION": "us-east-1",
            "BLOBFORGE_LOG_LEVEL": "WARNING",
            "DOCMILL__WORKER__ADDRESS": "127.0.0.1:0",
            "DOCMILL__BUCKET__LIST_EVERY": "100ms",
            "DOCMILL__BUCKET__LONGEST_PAUSE": "300ms",
            "DOCMILL__OCR__ENGINE": "tesseract",
        }

    def documents(self, count, what):
        place = self.folder / what
        place.mkdir()
        for at in range(count):
            (place / f"{what}-{at}.pdf").write_bytes(SAMPLE + f"\n% {what} {at}\n".encode())
        return str(place)

    def run(self, *command, fails=False):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300)
        assert fails or done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def docmill(self, *arguments):
        return self.run(DOCMILL, "bucket", *arguments)

    def theirs(self, *arguments):
        return self.run(sys.executable, "-m", "blobforge.cli", *arguments)

    def start_theirs(self, notes, takes, patience=3.0):
        command = [sys.executable, "scripts/blobforge_peer_side.py", str(notes), str(takes), str(patience)]
        return subprocess.Popen(command, env=self.environment)

    def keys(self, start):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=f"pdf/{start}")
        return [entry["Key"][4:] for page in pages for entry in page.get("Contents", [])]

    def converted(self):
        return {key[10:-4] for key in self.keys("store/out/")}

    def result(self, hash):
        body = self.client.get_object(Bucket=self.name, Key=f"pdf/store/out/{hash}.zip")["Body"].read()
        with zipfile.ZipFile(io.BytesIO(body)) as file:
            return file.read("content.md").decode(), json.loads(file.read("info.json"))

    def nothing_left(self):
        left = [key for key in self.keys("queue/")]
        assert left == [], f"left in the queue: {left}"


def theirs_handed_in(bucket):
    """Handed in by theirs, converted by docmill, seen by theirs."""
    bucket.theirs("ingest", bucket.documents(5, "theirs"))
    assert len(bucket.keys("queue/todo/3_normal/")) == 5, bucket.keys("queue/")
    bucket.docmill("work", "--once")
    bucket.nothing_left()
    done = bucket.converted()
    assert len(done) == 5, done
    for hash in done:
        content, info = bucket.result(hash)
        assert "Northwind" in content or len(content) > 200, content[:200]
        assert info["hash"] == hash and info["original_filename"].startswith("theirs-"), info
        assert isinstance(info["tags"], list) and info["size_bytes"] == str(int(info["size_bytes"])), info
        said = bucket.theirs("status", hash)
        assert "done" in said.lower() or "complete" in said.lower(), said
    assert "theirs-3.pdf" in bucket.theirs("search", "theirs-3"), "their search"
    assert "theirs-3.pdf" in bucket.docmill("search", "theirs-3"), "docmill's search"


def ours_handed_in(bucket):
    """Handed in by docmill, converted by theirs, seen by docmill."""
    before = bucket.converted()
    bucket.docmill("ingest", bucket.documents(5, "ours"), "--priority", "2_high")
    notes = bucket.folder / "ours.notes"
    assert bucket.start_theirs(notes, 0.05).wait(120) == 0
    bucket.nothing_left()
    new = bucket.converted() - before
    assert len(new) == 5 and sorted(notes.read_text().split()) == sorted(new), notes.read_text()
    for hash in new:
        content, info = bucket.result(hash)
        assert content == f"# {hash}\n" and info["original_filename"].startswith("ours-"), info
        assert info["tags"], "the labels of docmill's ingest"
        seen = json.loads(bucket.docmill("lookup", "--hash", hash, "--json"))
        assert "done" in json.dumps(seen), seen
    assert "ours-2.pdf" in bucket.theirs("search", "ours-2"), "their search"
    # Documents that either has converted are not queued again by the other.
    bucket.theirs("ingest", str(bucket.folder / "ours"))
    bucket.docmill("ingest", str(bucket.folder / "theirs"))
    bucket.nothing_left()


def locks(bucket):
    """docmill and its janitor leave documents alone that BlobForge works on."""
    bucket.docmill("ingest", bucket.documents(1, "slow"))
    notes = bucket.folder / "slow.notes"
    worker = bucket.start_theirs(notes, 4)
    until = time.monotonic() + 60
    while not bucket.keys("queue/processing/"):
        assert time.monotonic() < until, "theirs took no lock"
        time.sleep(0.05)
    bucket.docmill("janitor", "--now")
    began = time.monotonic()
    bucket.docmill("work", "--once")
    assert worker.wait(120) == 0
    bucket.nothing_left()
    (hash,) = notes.read_text().split()
    content, info = bucket.result(hash)
    assert content == f"# {hash}\n", f"docmill took it after {time.monotonic() - began:.1f} s"


def both_at_once(bucket):
    """Sixty documents, two workers of each: every one converted, none left, no lock."""
    before = bucket.converted()
    bucket.docmill("ingest", bucket.documents(60, "many"))
    notes = [bucket.folder / "many-a.notes", bucket.folder / "many-b.notes"]
    workers = [bucket.start_theirs(notes[0], 0.3)]
    bucket.environment["BLOBFORGE_WORKER_ID"] = "second"
    workers.append(bucket.start_theirs(notes[1], 0.3))
    del bucket.environment["BLOBFORGE_WORKER_ID"]
    ours = [subprocess.Popen([DOCMILL, "bucket", "work", "--once", "--jobs", "2", "--json"],
                             env=bucket.environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    done = [json.loads(one.communicate(timeout=300)[0])["done"] for one in ours]
    assert all(worker.wait(120) == 0 for worker in workers)
    bucket.nothing_left()
    theirs = [hash for file in notes if file.exists() for hash in file.read_text().split()]
    assert len(bucket.converted() - before) == 60
    twice = len(theirs) + sum(done) - 60
    print(f"both at once: docmill {sum(done)}, BlobForge {len(theirs)}, converted twice {twice}", flush=True)
    assert sum(done) > 0 and theirs, "one of the two did nothing"


def failures(bucket):
    """BlobForge lists and retries documents that docmill has given up."""
    place = bucket.folder / "bad"
    place.mkdir()
    (place / "bad.pdf").write_bytes(b"%PDF-1.4 nothing of a document")
    bucket.docmill("ingest", str(place))
    bucket.run(DOCMILL, "bucket", "work", "--once", fails=True)
    dead = bucket.keys("queue/dead/") + bucket.keys("queue/failed/")
    assert len(dead) == 1, bucket.keys("queue/")
    hash = dead[0].rsplit("/", 1)[1]
    said = bucket.theirs("status", hash).lower()
    assert "dead" in said or "failed" in said, said
    bucket.theirs("retry", hash, "--reset-retries")
    assert bucket.keys("queue/todo/"), bucket.keys("queue/")
    notes = bucket.folder / "bad.notes"
    assert bucket.start_theirs(notes, 0).wait(120) == 0
    assert notes.read_text().split() == [hash]
    bucket.nothing_left()


with tempfile.TemporaryDirectory() as folder:
    port = free_port()
    server = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", str(port)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert time.monotonic() < until, "moto does not start"
            time.sleep(0.1)
        bucket = Bucket(f"http://127.0.0.1:{port}", "papers", pathlib.Path(folder))
        for part in [theirs_handed_in, ours_handed_in, locks, both_at_once, failures]:
            part(bucket)
            print(f"{part.__name__}: as it should be", flush=True)
    finally:
        server.kill()
        server.wait()
