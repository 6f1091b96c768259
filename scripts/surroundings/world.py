"""Services of the programs in scripts/surroundings/: a database of its own, a queue, a store, a model.

The queue and the model are stand-ins of `testkit/`. In front of the model is a door that a program
can slow down, close, or limit. Workers are real processes; each may have its own ways to Postgres and
the queue, which can fall silent (`outage.SilentProxy`). Everything is stopped by its process id.
"""

import asyncio
import collections
import http.server
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import chaos_places as places
import killing
import outage

ADMIN = os.environ["DOCMILL_TEST_DATABASE_URL"]
DOCMILL = os.path.abspath(os.environ["DOCMILL"])
STANDINS = os.path.abspath(os.environ["DOCMILL_STANDINS"])
# Of claims and of messages; the real ones last five minutes.
LEASE = 8
SETTINGS = {
    "DOCMILL__DATABASE__STATEMENT_TIMEOUT": "10s",
    "DOCMILL__STORE__BACKEND": "folder",
    "DOCMILL__QUEUE__BACKEND": "sqs",
    "DOCMILL__QUEUE__REGION": "us-east-1",
    "DOCMILL__QUEUE__WAIT": "2s",
    "DOCMILL__QUEUE__VISIBILITY": f"{LEASE}s",
    "DOCMILL__CLAIM__LEASE": f"{LEASE}s",
    "DOCMILL__WORKER__ADDRESS": "127.0.0.1:0",
    "DOCMILL__WORKER__SLOTS": "16",
    "DOCMILL__WORKER__DRAIN": "8s",
    "DOCMILL__JANITOR__INTERVAL": "1s",
    "DOCMILL__JANITOR__QUIET": "20s",
    "DOCMILL__LLM__PROVIDER": "openai",
    "DOCMILL__LLM__MODEL": "scripted",
}


class Door(http.server.ThreadingHTTPServer):
    """In front of the model: `delay` in seconds; `status`, if set, is the answer to every call;
    `per_second`, if set, is how many calls are let through, the others get 429. `sliding` says whether
    they are counted in a window of the last second; else a token bucket of one second's worth is
    refilled without steps, as Anthropic documents its limits (API, Rate limits). `served` has the
    time of each call that was let through, `refused` counts the others."""

    daemon_threads, request_queue_size = True, 512

    def __init__(self, model_url):
        super().__init__(("127.0.0.1", 0), DoorHandler)
        self.model = urllib.parse.urlsplit(model_url)
        self.url = f"http://127.0.0.1:{self.server_port}{self.model.path}"
        self.delay, self.status, self.per_second, self.sliding = 0.0, None, None, False
        self.level, self.refilled = 1.0, time.monotonic()
        self.served, self.refused, self.lock = [], 0, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def admit(self):
        """The status to refuse with, or None."""
        now = time.monotonic()
        with self.lock:
            status = self.status
            if status is None and self.per_second is not None:
                status = None if self.has_room(now) else 429
            if status is None:
                self.served.append(now)
            else:
                self.refused += 1
            return status

    def has_room(self, now):
        """Whether one more call is within the limit; takes its token."""
        if self.sliding:
            recent = sum(at > now - 1 for at in self.served[-int(self.per_second) - 1:])
            return recent < self.per_second
        gained = (now - self.refilled) * self.per_second
        self.level, self.refilled = min(self.level + gained, max(self.per_second, 1.0)), now
        if self.level < 1:
            return False
        self.level -= 1
        return True

    def handle_error(self, request, client_address):
        """A worker that was killed breaks its connections off."""


class DoorHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        status = self.server.admit()
        if status is not None:
            return self.answer(status, b'{"error": {"message": "refused", "type": "refused"}}')
        time.sleep(self.server.delay)
        url = f"{self.server.model.scheme}://{self.server.model.netloc}{self.path}"
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request) as answer:
                self.answer(answer.status, answer.read())
        except urllib.error.HTTPError as error:
            self.answer(error.code, error.read())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        """Nothing."""


class Worker:
    """A worker process, and the address of its health pages."""

    def __init__(self, environment, log):
        self.log, self.port = log, outage.free_port()
        environment = environment | {"DOCMILL__WORKER__ADDRESS": f"127.0.0.1:{self.port}"}
        with open(log, "ab") as output:
            self.process = subprocess.Popen([DOCMILL, "worker"], stderr=output, env=environment,
                                            stdout=subprocess.DEVNULL)

    def kill(self):
        """As the kernel does that is out of memory."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def get(self, page):
        """Status and text of `/livez`, `/readyz` or `/metrics`; (0, "") if nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{page}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


class World:
    """`with World("poison", DOCMILL__WORKER__SLOTS="64") as world:`"""

    def __init__(self, name, **settings):
        self.name, self.began = name, time.monotonic()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"docmill-{name}-"))
        self.database_name = f"{name}_{os.getpid()}_{time.monotonic_ns()}"
        outage.Database(ADMIN).ask(f"CREATE DATABASE {self.database_name} TEMPLATE template0")
        self.database_url = f"{ADMIN.rsplit('/', 1)[0]}/{self.database_name}"
        self.database = outage.Database(self.database_url)
        self.queue = places.SqsStandIn(self.folder, STANDINS)
        self.model = places.ModelStandIn(self.folder, STANDINS)
        self.door = Door(self.model.url)
        self.workers, self.logins, self.loop, self.batches = [], [], None, 0
        self.environment = killing.environment() | places.KEYS | SETTINGS | {
            "DOCMILL__DATABASE__URL": self.database_url,
            "DOCMILL__STORE__PATH": str(self.folder / "store"),
            "DOCMILL__QUEUE__URL": self.queue.url,
            "DOCMILL__QUEUE__ENDPOINT": f"http://127.0.0.1:{self.queue.port}",
            "DOCMILL__LLM__BASE_URL": self.door.url,
        } | settings
        self.run("migrate")

    def __enter__(self):
        return self

    def __exit__(self, kind, _value, _trace):
        for worker in self.workers:
            worker.kill()
        self.queue.end()
        self.model.end()
        self.door.shutdown()
        outage.Database(ADMIN).ask(f"DROP DATABASE {self.database_name} WITH (FORCE)")
        for name in self.logins:
            outage.Database(ADMIN).ask(f"DROP ROLE {name}")
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print(f"logs: {self.folder}", flush=True)

    def say(self, text):
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def run(self, *words, check=True):
        """A docmill command; what it prints."""
        done = subprocess.run([DOCMILL, *words], env=self.environment, capture_output=True, text=True)
        if check and done.returncode:
            sys.exit(f"docmill {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def ask(self, sql):
        """A query; its lines, each split at the bars."""
        lines = self.database.ask(f"SET search_path TO docmill, public; {sql}").splitlines()
        return [line.split("|") for line in lines]

    def login(self):
        """A login of its own in the worker's role: its name and its address of the database."""
        name = f"{self.name}_{time.monotonic_ns()}"
        self.database.ask(f"CREATE ROLE {name} LOGIN PASSWORD 'x' IN ROLE docmill_worker")
        self.logins.append(name)
        place = urllib.parse.urlsplit(self.database_url)
        return name, place._replace(netloc=f"{name}:x@{place.netloc.rsplit('@', 1)[-1]}").geturl()

    def proxy(self, port):
        """A way to a port of this machine that can fall silent."""
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            threading.Thread(target=self.loop.run_forever, daemon=True).start()
        return outage.SilentProxy(self.loop, "127.0.0.1", port)

    def start_worker(self, name="worker", **settings):
        """A worker; `settings` are its own, `name` is its log's."""
        worker = Worker(self.environment | settings, self.folder / f"{name}.log")
        self.workers.append(worker)
        return worker

    def hand_in(self, prefix, count):
        """So many invoices, which the model reads, numbered PREFIX-0000 and so on."""
        batch = self.folder / f"batch-{self.batches}"
        batch.mkdir()
        self.batches += 1
        for number in range(count):
            name = f"{prefix}-{number:04}"
            (batch / f"{name}.pdf").write_bytes(places.invoice(name))
        self.run("submit", str(batch))

    def of(self, prefix):
        """A condition on `ingestion`: those that were handed in under this prefix."""
        return (f"document_id IN (SELECT d.id FROM docmill.document d "
                f"WHERE d.original_name LIKE '{prefix}-%')")

    def count(self, condition):
        return self.database.count(condition)

    def ends(self, prefix):
        """How those of this prefix stand: (status, reason) and how many."""
        rows = self.ask(f"SELECT status, COALESCE(reason, ''), count(*) FROM ingestion "
                        f"WHERE {self.of(prefix)} GROUP BY 1, 2")
        return collections.Counter({(status, reason): int(count) for status, reason, count in rows})

    def wait_until_done(self, prefix, seconds, tend=None):
        """Seconds until all of this prefix have an end, or None. `tend` is called in between."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if self.count(f"status = 'in-progress' AND {self.of(prefix)}") == 0:
                return time.monotonic() - began
            if tend is not None:
                tend()
            time.sleep(0.2)
        return None
