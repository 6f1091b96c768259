"""docmill and the published clients of redis-work-queue on one queue; called by redis_peers.sh with
docmill's program, the program of docs/guides/jobs.md and the folder of the clients. Prints a line per client and exits 1 at the first
difference."""

import base64
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

DOCMILL, JOBS_PROGRAM, TOOLS = sys.argv[1:4]
JOBS = 40


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Peer:
    """A client in a process of its own."""

    def __init__(self, command):
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, do, **more):
        self.child.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        assert line, f"the client ended at `{do}`"
        return json.loads(line)

    def add(self, id, data):
        self.ask("add", id=id, data=base64.b64encode(data).decode())

    def lease(self, seconds):
        item = self.ask("lease", seconds=seconds)
        return item and (item["id"], base64.b64decode(item["data"]))

    def end(self):
        self.child.stdin.close()
        self.child.wait()


class Place:
    """A Redis, a database, a folder of documents, and docmill over them."""

    def __init__(self, folder, number):
        self.folder, self.port = folder, free_port()
        self.redis = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--appendonly", "no"], stdout=subprocess.DEVNULL)
        database = os.environ["DOCMILL_TEST_DATABASE_URL"]
        self.environment = os.environ | {
            "DOCMILL__DATABASE__URL": database,
            "DOCMILL__DATABASE__SCHEMA": f"peer{number}",
            "DOCMILL__QUEUE__BACKEND": "redis",
            "DOCMILL__QUEUE__REDIS_URL": f"redis://127.0.0.1:{self.port}/0",
            "DOCMILL__QUEUE__REDIS_PREFIX": "shared",
            "DOCMILL__QUEUE__WAIT": "1s",
            "DOCMILL__STORE__BACKEND": "folder",
            "DOCMILL__STORE__PATH": str(folder / "store"),
            "DOCMILL__WORKER__ADDRESS": "127.0.0.1:0",
            "DOCMILL__WORKER__DRAIN": "10s",
            "DOCMILL__OCR__ENGINE": "tesseract",
        }
        (folder / "store").mkdir()
        wait_until(self.answers, "Redis")
        self.docmill("migrate")

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def docmill(self, *arguments):
        done = subprocess.run([DOCMILL, *arguments], env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"docmill {arguments}: {done.stderr or done.stdout}"
        return done.stdout

    def submit(self, name):
        file = self.folder / name
        file.write_bytes(pathlib.Path("samples/invoice_en.pdf").read_bytes() + f"\n% {name}\n".encode())
        self.docmill("submit", str(file))

    def rows(self):
        return json.loads(self.docmill("list", "--json"))

    def statuses(self):
        found = self.rows()
        found = found.get("ingestions", found) if isinstance(found, dict) else found
        return [(row["id"], row["status"], row["attempt_count"]) for row in found]

    def worker(self):
        log = open(self.folder / "worker.log", "ab")
        return subprocess.Popen([DOCMILL, "worker"], env=self.environment, stdout=log, stderr=log)

    def end(self):
        self.redis.kill()
        self.redis.wait()


def wait_until(holds, what, seconds=90):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.05)


def stop(worker):
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0, "the worker did not end well"


def they_work_for_us(place, peer):
    """The client leases each message of docmill once, and completes it."""
    place.submit("theirs.pdf")
    id, data = peer.lease(60)
    ((ingestion, status, _),) = place.statuses()
    assert data.decode() == ingestion and status == "in-progress", (data, ingestion, status)
    assert peer.lease(60) is None, "handed out twice"
    place.docmill("redis", "clean", "--deep")
    assert peer.lease(60) is None, "its lease was not heeded"
    assert peer.ask("complete", id=id) is True
    assert peer.ask("counts") == [0, 0]
    # And back: the client sends it again, for docmill to work on; twice, as its add allows.
    peer.add("again", ingestion.encode())
    peer.add("again", ingestion.encode())
    worker = place.worker()
    wait_until(lambda: place.statuses()[0][1] == "completed", "a document that the client sent")
    wait_until(lambda: peer.ask("counts") == [0, 0], "an empty queue")
    stop(worker)
    assert place.statuses() == [(ingestion, "completed", 1)], place.statuses()


def cleaners_heed_each_other(place, peer):
    """A lease that runs out is put back by docmill's cleaner, one that lives by neither."""
    peer.add("slow", b"\xff a job")
    assert peer.lease(2) == ("slow", b"\xff a job")
    time.sleep(0.5)
    place.docmill("redis", "clean", "--deep")
    assert peer.ask("counts") == [0, 1], "put back while it was leased"

    def is_back():
        place.docmill("redis", "clean")
        return peer.ask("counts") == [1, 0]

    wait_until(is_back, "an item whose lease ran out")
    assert peer.lease(60) == ("slow", b"\xff a job"), "its bytes"
    assert peer.ask("complete", id="slow") is True
    # An id without a row is hidden by docmill: for the client's cleaner it is leased.
    peer.add("unknown", b"5e9a8f6e-0000-4000-8000-000000000000")
    worker = place.worker()
    wait_until(lambda: peer.ask("counts") == [0, 1], "a hidden item")
    for _ in range(5):
        peer.ask("clean")
        assert peer.ask("counts") == [0, 1], "the client's cleaner took what docmill holds"
    stop(worker)


def both_work_at_once(place, peer):
    """Documents and jobs of others on one prefix, a worker of each, the client's cleaner beside."""
    jobs = {f"job-{at}": bytes([at, 255, 0]) * 50 for at in range(JOBS)}
    for at, (id, data) in enumerate(jobs.items()):
        peer.add(id, data)
        if at % 4 == 0:
            place.submit(f"{at}.pdf")
    worker = place.worker()
    done = {}

    def all_done():
        peer.ask("clean")
        item = peer.lease(1)
        if item and item[0] in jobs:
            id, data = item
            assert data == jobs[id], "another program's bytes were changed"
            assert peer.ask("complete", id=id) is True, f"{id} was taken away"
            done[id] = done.get(id, 0) + 1
        # Jobs of docmill are not completed: their lease runs out, and docmill takes them.
        return len(done) == JOBS and all(row[1] == "completed" for row in place.statuses())

    wait_until(all_done, "all documents and all jobs", 180)
    stop(worker)
    assert set(done.values()) == {1}, done
    ended = place.statuses()
    assert len(ended) == 1 + (JOBS + 3) // 4, ended
    length = json.loads(place.docmill("redis", "length", "--json"))
    assert length["ready"] == 0, length


def jobs_of_one_are_done_by_the_other(place, peer):
    """The program of docs/guides/jobs.md and the client on a prefix of jobs: nothing of docmill's is there."""

    def jobs(*arguments):
        url = f"redis://127.0.0.1:{place.port}/0"
        done = subprocess.run([JOBS_PROGRAM, url, "shared", *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    for text in ["resize 1", "resize 2"]:
        peer.add(text, text.encode())
    assert jobs("work") == ["resize 1", "resize 2"], "what the client added"
    assert peer.ask("counts") == [0, 0]
    jobs("add", "mail 3", "mail 4")
    leased = [peer.lease(60) for _ in range(2)]
    assert [data for _, data in leased] == [b"mail 3", b"mail 4"], leased
    assert jobs("work") == [], "what the client has leased"
    assert all(peer.ask("complete", id=id) is True for id, _ in leased)
    assert peer.ask("counts") == [0, 0]


def run(name, number, command):
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(pathlib.Path(folder), number)
        peer = Peer([*command, str(place.port)])
        try:
            jobs_of_one_are_done_by_the_other(place, peer)
            they_work_for_us(place, peer)
            cleaners_heed_each_other(place, peer)
            both_work_at_once(place, peer)
        except BaseException:
            log = pathlib.Path(folder) / "worker.log"
            if log.exists():
                print(log.read_text()[-4000:], file=sys.stderr)
            raise
        finally:
            peer.end()
            place.end()
    print(f"{name}: 4 of 4 in {time.monotonic() - started:.0f} s", flush=True)


for number, version in enumerate(["0.1.2", "0.1.3", "0.1.5"]):
    python = f"{TOOLS}/python-{version}/bin/python"
    run(f"Python {version}", number, [python, "scripts/redis_peer_side.py"])
run("Node 0.1.5", 9, ["node", "scripts/redis_peer_side.js", TOOLS])
