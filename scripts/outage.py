#!/usr/bin/env python3
"""Outages without a word, under load: what they fail, what they count, and how soon it goes on.

    outage.py DOCMILL MOTO_SERVER DOCUMENT MINUTES

A worker has Postgres, SQS and S3 (a moto server) behind a proxy each. One after the other the
proxies fall silent: they close nothing, take new connections, forward and answer nothing. After so
many minutes they forward what is connected from then on; connections that were silent stay so.
Meanwhile documents are handed in past the proxies, so that there is always work. Prints a line per
service; exit code 1 if a document failed, an attempt was counted, or if the rate of completed
documents was not back at half of what it was within 30 s. The database's address is in
DOCMILL_TEST_DATABASE_URL. Standard library only.
"""

import asyncio
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import killing

MAX_RECOVERY_SECONDS = 30
WINDOW = 5
BEFORE = 20
WAITING = 300
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


class SilentProxy:
    """Forwards one port to an address, until it is told to fall silent."""

    def __init__(self, loop, host, port):
        self.target, self.silent, self.open = (host, port), asyncio.Event(), set()
        self.loop = loop
        serving = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self.serve, "127.0.0.1", 0), loop
        )
        self.server = serving.result()
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        self.open.add(writer)
        if not self.silent.is_set():
            try:
                there, back = await asyncio.open_connection(*self.target)
            except OSError:
                # Nobody listens there: that is to be seen here too.
                writer.close()
                self.open.discard(writer)
                return
            self.open.add(back)
            silence = asyncio.create_task(self.silent.wait())
            ways = [asyncio.create_task(self.copy(reader, back)),
                    asyncio.create_task(self.copy(there, writer))]
            await asyncio.wait([silence, *ways], return_when=asyncio.FIRST_COMPLETED)
            if not silence.done():
                silence.cancel()
                for side in (writer, back):
                    side.close()
                    self.open.discard(side)
            for way in ways:
                way.cancel()
        # A silent connection stays open: `open` keeps it.

    async def copy(self, reader, writer):
        try:
            while data := await reader.read(1 << 16):
                if self.silent.is_set():
                    await asyncio.Event().wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass

    def fall_silent(self):
        self.loop.call_soon_threadsafe(self.silent.set)

    def speak_again(self):
        # Those that wait for the old event stay silent.
        self.loop.call_soon_threadsafe(setattr, self, "silent", asyncio.Event())


class Database:
    """Asked past the proxy."""

    def __init__(self, url):
        self.url = url

    def ask(self, sql):
        done = subprocess.run(["psql", "-qAtX", self.url, "-c", sql], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        return done.stdout.strip()

    def count(self, condition):
        return int(self.ask(f"SELECT count(*) FROM docmill.ingestion WHERE {condition}"))

    def completed(self):
        return self.count("status = 'completed'")


class Feeder(threading.Thread):
    """Keeps work waiting, past the proxies."""

    def __init__(self, docmill, document, folder, environment, database):
        super().__init__(daemon=True)
        self.docmill, self.content = docmill, pathlib.Path(document).read_bytes()
        self.folder, self.environment, self.database = folder, environment, database
        self.over, self.number = threading.Event(), 0

    def hand_in(self, count):
        batch = self.folder / f"batch-{self.number}"
        batch.mkdir()
        for _ in range(count):
            self.number += 1
            # A few bytes that no reader looks at make it another document.
            place = batch / f"{self.number}.pdf"
            place.write_bytes(self.content + b"\n%" + str(self.number).encode())
        subprocess.run([self.docmill, "submit", batch], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(batch)

    def run(self):
        while not self.over.is_set():
            if self.database.count("status = 'in-progress'") < WAITING:
                self.hand_in(50)
            else:
                time.sleep(0.5)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_moto(program, folder):
    port = free_port()
    log = open(folder / "moto.log", "wb")
    moto = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    for _ in range(300):
        try:
            killing.make_bucket(f"http://127.0.0.1:{port}", "documents")
            return moto, port
        except OSError:
            time.sleep(0.1)
    moto.kill()
    sys.exit("moto did not start")


def make_queue(port):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/",
        data=json.dumps({"QueueName": "documents"}).encode(),
        headers={
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "AmazonSQS.CreateQueue",
            "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request,"
            " SignedHeaders=host, Signature=0",
        },
    )
    with urllib.request.urlopen(request) as answer:
        return urllib.parse.urlsplit(json.load(answer)["QueueUrl"]).path


def environment(database, s3, sqs, queue):
    sqs = f"http://127.0.0.1:{sqs}"
    return killing.environment() | KEYS | {
        "DOCMILL__DATABASE__URL": database,
        "DOCMILL__STORE__BACKEND": "s3",
        "DOCMILL__STORE__BUCKET": "documents",
        "DOCMILL__STORE__ENDPOINT": f"http://127.0.0.1:{s3}",
        "DOCMILL__STORE__PATH_STYLE": "true",
        "DOCMILL__QUEUE__BACKEND": "sqs",
        "DOCMILL__QUEUE__URL": sqs + queue,
        "DOCMILL__QUEUE__ENDPOINT": sqs,
        "DOCMILL__QUEUE__REGION": "us-east-1",
        # A poll that nobody answers takes this and 5 s.
        "DOCMILL__QUEUE__WAIT": "10s",
        "DOCMILL__WORKER__ADDRESS": "127.0.0.1:0",
        "DOCMILL__WORKER__SLOTS": "8",
        "DOCMILL__WORKER__DRAIN": "30s",
        "DOCMILL__JANITOR__ENABLED": "false",
    }


def rate_over(database, seconds):
    before, began = database.completed(), time.monotonic()
    time.sleep(seconds)
    return (database.completed() - before) / (time.monotonic() - began)


def seconds_until_back(database, rate):
    """How long until a window has seen half the rate; None if that takes far too long."""
    began, seen = time.monotonic(), []
    while (now := time.monotonic() - began) < 4 * MAX_RECOVERY_SECONDS:
        seen.append((now, database.completed()))
        window = [count for at, count in seen if at >= now - WINDOW]
        if now >= WINDOW and window[-1] - window[0] >= rate * WINDOW / 2:
            return now
        time.sleep(0.25)
    return None


def outage(name, proxy, database, minutes):
    """One service falls silent and speaks again; says whether all was well."""
    before = rate_over(database, BEFORE)
    if before < 0.5:
        sys.exit(f"only {before:.1f} documents a second: no load")
    proxy.fall_silent()
    time.sleep(minutes * 60)
    during = database.completed()
    proxy.speak_again()
    back = seconds_until_back(database, before)
    after = rate_over(database, BEFORE)
    failed = database.count("status NOT IN ('in-progress', 'completed')")
    counted = int(database.ask(
        "SELECT count(*) FROM docmill.attempt WHERE counted AND outcome <> 'completed'"
    ))
    crashed = database.count("crashes > 0")
    words = f"{back:5.1f}" if back is not None else "never"
    print(f"{name:9} {minutes:7g} {before:10.1f} {after:9.1f} {words:>8} {failed:7} {counted:8} "
          f"{crashed:8} {during:10}", flush=True)
    return back is not None and back <= MAX_RECOVERY_SECONDS and failed == counted == crashed == 0


def main(docmill, moto_server, document, minutes):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="docmill-outage-"))
    admin = os.environ["DOCMILL_TEST_DATABASE_URL"]
    name = f"outage_{os.getpid()}"
    Database(admin).ask(f"CREATE DATABASE {name} TEMPLATE template0")
    direct = f"{admin.rsplit('/', 1)[0]}/{name}"
    moto, port = start_moto(moto_server, folder)
    worker = None
    try:
        queue = make_queue(port)
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        address = urllib.parse.urlsplit(direct)
        postgres = SilentProxy(loop, address.hostname, address.port)
        sqs, s3 = SilentProxy(loop, "127.0.0.1", port), SilentProxy(loop, "127.0.0.1", port)
        past = environment(direct, port, port, queue)
        subprocess.run([docmill, "migrate"], env=past, check=True)
        database = Database(direct)
        feeder = Feeder(docmill, document, folder, past, database)
        feeder.hand_in(WAITING)
        feeder.start()
        through = f"postgres://{address.username}@127.0.0.1:{postgres.port}{address.path}"
        log = open(folder / "worker.log", "wb")
        worker = subprocess.Popen([docmill, "worker"], stderr=log,
                                  env=environment(through, s3.port, sqs.port, queue))
        while database.completed() < 20:
            time.sleep(0.5)
        print(f"{'silent':9} {'minutes':>7} {'before, /s':>10} {'after, /s':>9} {'back, s':>8} "
              f"{'failed':>7} {'counted':>8} {'crashed':>8} {'completed':>10}", flush=True)
        services = [("Postgres", postgres), ("SQS", sqs), ("S3", s3)]
        well = [outage(name, proxy, database, minutes) for name, proxy in services]
        feeder.over.set()
        worker.send_signal(signal.SIGTERM)
        code = worker.wait(timeout=60)
        print(f"the worker drained and ended with exit code {code}")
        if not all(well) or code != 0:
            kept = pathlib.Path("target/outage.log")
            shutil.copy(folder / "worker.log", kept)
            print(f"the worker's log: {kept}")
            return 1
        return 0
    finally:
        for process in filter(None, [worker, moto]):
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], float(sys.argv[4])))
