"""A world to attack: a database of its own, a bucket, queues, and workers with a memory limit.

Everything listens on 127.0.0.1. Processes started here are stopped by their process id. The limit is a
memory cgroup (version 1 or 2) if one can be made; it is an address space limit otherwise, and the
line at the end of the run says which it was.
"""

import atexit
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

import boto3

DOCMILL = os.environ["DOCMILL"]
ADMIN = os.environ["DOCMILL_TEST_DATABASE_URL"]
MIB = 1 << 20
CONTAINER = 6 << 30
SCHEMA = "SET search_path TO docmill, public; "


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(deadline, holds, pause=0.2):
    """Whether it came to hold within so many seconds, and after how many."""
    began = time.monotonic()
    while True:
        if holds():
            return True, time.monotonic() - began
        if time.monotonic() - began > deadline:
            return False, time.monotonic() - began
        time.sleep(pause)


def psql(url, statements, check=True):
    """The output of a query, unaligned; with `check=False` its errors, too."""
    program = shutil.which("psql") or sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql"))[-1]
    done = subprocess.run(
        [program, "-X", "-At", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", SCHEMA, "-c", statements],
        capture_output=True,
        text=True,
    )
    if check and done.returncode:
        raise RuntimeError(done.stderr)
    out = "\n".join(line for line in done.stdout.splitlines() if line != "SET")
    return out if check else out + done.stderr


class MemoryGroup:
    """A memory cgroup for one command, or none where this machine lets us make none."""

    ROOTS = (pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup"))

    def __init__(self, limit):
        self.limit, self.path = limit, None
        for root in self.ROOTS:
            version_1 = (root / "memory.limit_in_bytes").exists()
            version_2 = "memory" in read_text(root / "cgroup.subtree_control").split()
            if not version_1 and not version_2:
                continue
            path = root / f"docmill-attack-{os.getpid()}-{uuid.uuid4().hex[:6]}"
            try:
                path.mkdir()
                (path / ("memory.limit_in_bytes" if version_1 else "memory.max")).write_text(str(limit))
            except OSError:
                continue
            self.path = path
            self.peak_file = "memory.max_usage_in_bytes" if version_1 else "memory.peak"
            self.kills_file = "memory.oom_control" if version_1 else "memory.events"
            return

    def enter(self):
        """To be called by the child before it runs its program."""
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))
        else:
            resource.setrlimit(resource.RLIMIT_AS, (self.limit, self.limit))

    def kills(self):
        """How many processes the kernel killed for memory."""
        if not self.path:
            return 0
        lines = (line.split() for line in read_text(self.path / self.kills_file).splitlines())
        return next((int(count) for name, count in lines if name == "oom_kill"), 0)

    def processes(self):
        return [int(pid) for pid in read_text(self.path / "cgroup.procs").split()] if self.path else []

    def close(self):
        if not self.path:
            return
        for pid in self.processes():
            end(pid)
        wait_until(10, lambda: not self.processes())
        try:
            self.path.rmdir()
        except OSError:
            pass


def read_text(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def resident_mib(pid):
    for line in read_text(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


def children(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").glob("*")
            for child in read_text(task / "children").split()]


class Watched:
    """A command in a memory cgroup: its output, and the most memory of it and of its children."""

    def __init__(self, arguments, env, limit=CONTAINER):
        self.group = MemoryGroup(limit)
        self.output = tempfile.TemporaryFile()
        self.peak = self.children_peak = 0
        self.kills = self.left = 0
        self.process = subprocess.Popen(
            arguments, env=env, stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=subprocess.STDOUT, preexec_fn=self.group.enter, start_new_session=True,
        )

    def look(self):
        self.peak = max(self.peak, resident_mib(self.process.pid))
        for child in children(self.process.pid):
            self.children_peak = max(self.children_peak, resident_mib(child))

    def wait(self, seconds):
        """Exit code, None if it had to be stopped; and the seconds it took."""
        began = time.monotonic()
        while self.process.poll() is None and time.monotonic() - began < seconds:
            self.look()
            time.sleep(0.05)
        took, code = time.monotonic() - began, self.process.poll()
        if code is None:
            end(self.process.pid)
            self.process.wait()
        return code, took

    def text(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")

    def close(self):
        if self.process.poll() is None:
            end(self.process.pid)
            self.process.wait()
        self.kills = self.group.kills()
        self.left = len(self.group.processes())
        self.group.close()


class World:
    """A database, a folder or bucket, a queue, and workers over them."""

    moto = None

    def __init__(self, **settings):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="docmill-attack."))
        self.running = []
        name = "attack_" + uuid.uuid4().hex[:12]
        psql(ADMIN, f'CREATE DATABASE "{name}"')
        self.database = ADMIN.rsplit("/", 1)[0] + "/" + name
        self.endpoint = World.serve_moto()
        account = dict(endpoint_url=self.endpoint, region_name="us-east-1",
                       aws_access_key_id="test", aws_secret_access_key="test")
        self.s3, self.sqs = boto3.client("s3", **account), boto3.client("sqs", **account)
        self.bucket = "documents-" + uuid.uuid4().hex[:8]
        self.s3.create_bucket(Bucket=self.bucket)
        dead = self.make_queue("dead")
        arn = self.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])
        redrive = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": 100}
        self.queue = self.make_queue("ingestion", RedrivePolicy=json.dumps(redrive))
        self.address = f"127.0.0.1:{free_port()}"
        self.settings = {
            "DATABASE__URL": self.database,
            "QUEUE__URL": self.queue,
            "QUEUE__ENDPOINT": self.endpoint,
            "QUEUE__WAIT": "2s",
            "STORE__BACKEND": "s3",
            "STORE__BUCKET": self.bucket,
            "STORE__ENDPOINT": self.endpoint,
            "WORKER__ADDRESS": self.address,
            "WORKER__DRAIN": "8s",
        } | settings
        self.run("migrate")

    @classmethod
    def serve_moto(cls):
        if cls.moto:
            return cls.moto
        port = free_port()
        server = subprocess.Popen(
            [str(pathlib.Path(sys.executable).parent / "moto_server"), "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        atexit.register(server.kill)
        cls.moto = f"http://127.0.0.1:{port}"

        def answers():
            try:
                urllib.request.urlopen(cls.moto + "/moto-api/", timeout=1).close()
            except (urllib.error.URLError, OSError):
                return False
            return True

        if not wait_until(60, answers)[0]:
            raise RuntimeError("the moto server does not answer")
        return cls.moto

    def make_queue(self, name, **attributes):
        made = self.sqs.create_queue(QueueName=f"{name}-{uuid.uuid4().hex[:8]}", Attributes=attributes)
        return made["QueueUrl"]

    def environment(self, **settings):
        return environment(**(self.settings | settings))

    def run(self, *arguments, check=True, **settings):
        done = subprocess.run([DOCMILL, *arguments], env=self.environment(**settings),
                              capture_output=True, text=True, timeout=300)
        if check and done.returncode:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return done.stdout if check else done.stdout + done.stderr

    def start_worker(self, **settings):
        worker = Watched([DOCMILL, "worker"], self.environment(**settings))
        self.running.append(worker)
        if not wait_until(60, lambda: self.get("/readyz") == 200)[0]:
            raise RuntimeError("the worker is not ready: " + worker.text()[-2000:])
        return worker

    def get(self, path, timeout=5):
        """The status of a page of the worker, or None."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=timeout) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def sql(self, statements, check=True):
        return psql(self.database, statements, check)

    def hand_in(self, content, key=None, tenant=None, **put):
        """Object, rows, message, as a producer would. Returns the ingestion's id."""
        ingestion, document = str(uuid.uuid4()), str(uuid.uuid4())
        key = key or f"documents/{document}.pdf"
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=content, **put)
        owner = "NULL" if tenant is None else f"'{tenant}'"
        self.sql(
            f"INSERT INTO document (id, file_path, tenant) VALUES ('{document}', '{key}', {owner});"
            f"INSERT INTO ingestion (id, document_id, tenant) VALUES ('{ingestion}', '{document}', {owner})"
        )
        self.send(ingestion)
        return ingestion

    def send(self, body):
        self.sqs.send_message(QueueUrl=self.queue, MessageBody=body)

    def status(self, ingestion):
        return self.sql(f"SELECT status, COALESCE(reason, '') FROM ingestion WHERE id = '{ingestion}'")

    def wait_for_end(self, ingestions, seconds):
        """How many have not ended after so many seconds, and the seconds."""
        ids = ", ".join(f"'{one}'" for one in ingestions)
        query = f"SELECT count(*) FROM ingestion WHERE status = 'in-progress' AND id IN ({ids})"
        _, took = wait_until(seconds, lambda: self.sql(query) == "0", pause=0.5)
        return int(self.sql(query)), took

    def close(self):
        for worker in self.running:
            worker.close()
        shutil.rmtree(self.home, ignore_errors=True)


def environment(**settings):
    """This one without anything that tells docmill where to work, with these settings."""
    ours = ("DOCMILL", "BLOBFORGE", "AWS")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    return env | {f"DOCMILL__{name}": value for name, value in settings.items()}
