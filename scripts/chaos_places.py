"""Services of chaos.py: Postgres, stand-ins for SQS and a model, a disk, and the three job_sources.

Each can be hurt as the thing it stands for can: killed, frozen, silenced, wiped, filled. Nothing here
decides when.
"""

import glob
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.request

import killing
import outage

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
QUEUE = "documents"
LEASE = 10
# A lock of a bucket lasts a minute at least.
BUCKET_LEASE = 60
WORKSPACE_LEASE = 8
# Documents that are read so long that their worker is found and killed with them in hand.
KILLER_NAMES = "CHAOS-Q-0[012]33"
LINES = [
    (60, 60, "Northwind Paper Ltd"), (60, 76, "12 Mill Lane, Leeds LS1 4AB"),
    (60, 92, "Tax ID: GB123456789"), (60, 140, "INVOICE"), (60, 180, "Invoice date: 2026-03-14"),
    (60, 196, "Due date: 2026-04-13"), (60, 240, "Description"), (300, 240, "Quantity"),
    (380, 240, "Unit price"), (480, 240, "Amount"), (60, 258, "Copy paper A4, box"),
    (300, 258, "4"), (380, 258, "25.00"), (480, 258, "100.00"), (380, 300, "Subtotal"),
    (480, 300, "GBP 100.00"), (380, 316, "VAT 20%"), (480, 316, "GBP 20.00"), (380, 332, "Total"),
    (480, 332, "GBP 120.00"),
]


def invoice(number):
    """A native PDF that the gate passes."""
    lines = [*LINES, (60, 164, f"Invoice number: {number}")]
    drawn = [f"1 0 0 1 {x} {792 - y} Tm ({text}) Tj" for x, y, text in lines]
    return killing.drawn_pdf(("BT /F1 11 Tf\n" + "\n".join(drawn) + "\nET").encode())


def einvoice(number):
    """An invoice of UBL, which no model is asked about."""
    text = pathlib.Path("samples/einvoice_ubl.xml").read_text(encoding="utf-8")
    return text.replace("SR-4410", number).encode()


def is_killer(number):
    """Whether the document of this number kills its worker: three of the queue's."""
    return re.search(KILLER_NAMES, number) is not None


def wait_for(what, condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise SystemExit(f"{what} after {seconds} s")
        time.sleep(0.1)


class Postgres:
    """A cluster of our own, whose commits outlive the death of its processes."""

    def __init__(self, folder):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        self.bin = os.environ.get("PG_BIN") or (found[-1] if found else
                                                os.path.dirname(shutil.which("initdb") or ""))
        self.data = folder / "postgres"
        self.data.mkdir()
        self.user = None
        if os.getuid() == 0:
            shutil.chown(self.data, "postgres")
            self.user = "postgres"
        self.run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        self.port = outage.free_port()
        self.start()

    def run(self, program, *words):
        subprocess.run([f"{self.bin}/{program}", "-D", self.data, *words], check=True, cwd="/",
                       user=self.user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self):
        self.run("pg_ctl", "-w", "-s", "-l", str(self.data / "log"), "start", "-o",
                 f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' "
                 "-c max_connections=200 -c fsync=off")

    def stop_at_once(self):
        self.run("pg_ctl", "-m", "immediate", "-s", "stop")

    def processes(self):
        first = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        children = pathlib.Path(f"/proc/{first}/task/{first}/children").read_text()
        return [first, *map(int, children.split())]

    def signal(self, what):
        for pid in self.processes():
            try:
                os.kill(pid, what)
            except ProcessLookupError:
                pass

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)


class SqsStandIn:
    def __init__(self, folder, programs):
        self.program, self.port, self.process = f"{programs}/sqs-standin", outage.free_port(), None
        self.url = f"http://127.0.0.1:{self.port}/000000000000/{QUEUE}"
        self.start()

    def start(self):
        words = ["--listen", f"127.0.0.1:{self.port}", "--queue", QUEUE]
        self.process = subprocess.Popen([self.program, *words], stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def wipe(self):
        """Every message is gone, with the queue; then there is one of the same name."""
        self.end()
        self.start()

    def end(self):
        self.process.kill()
        self.process.wait()

    def messages(self, queue):
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
                 "ApproximateNumberOfMessagesDelayed"]
        url = self.url.replace(QUEUE, queue)
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/",
            data=json.dumps({"QueueUrl": url, "AttributeNames": names}).encode(),
            headers={"Content-Type": "application/x-amz-json-1.0",
                     "X-Amz-Target": "AmazonSQS.GetQueueAttributes"})
        with urllib.request.urlopen(request) as answer:
            return sum(int(count) for count in json.load(answer)["Attributes"].values())

    def left(self):
        return self.messages(QUEUE), self.messages(f"{QUEUE}-dead")


class ModelStandIn:
    def __init__(self, folder, programs):
        self.port = outage.free_port()
        script = folder / "script.json"
        script.write_text('{"record": true}')
        words = ["--listen", f"127.0.0.1:{self.port}", "--script", script]
        self.process = subprocess.Popen([f"{programs}/model-standin", *words], text=True,
                                        stderr=subprocess.PIPE)
        self.url = self.process.stderr.readline().split()[-1]

    def end(self):
        self.process.kill()
        self.process.wait()

    def read(self, page):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{page}") as answer:
            return json.load(answer)

    def calls_by_document(self):
        """How many calls were about each invoice number; those about none have the key None."""
        calls, number_of = self.read("_calls"), {}
        for exchange in self.read("_exchanges"):
            named = re.search(r"CHAOS-[QBW]-\d+", json.dumps(exchange["request"]))
            if named:
                number_of[calls[exchange["number"]]["prompt"]] = named.group()
        counts = {}
        for call in calls:
            number = number_of.get(call["prompt"])
            counts[number] = counts.get(number, 0) + 1
        return counts


class Disk:
    """A small file system of its own, if that can be had."""

    def __init__(self, folder):
        self.place = folder / "disk"
        self.place.mkdir()
        self.filling = self.place / "filling"
        words = ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(self.place)]
        self.is_own = os.getuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0
        if not self.is_own:
            print("SKIPPED: a full disk (only root may mount one)", flush=True)

    def fill(self):
        with open(self.filling, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError:
                pass

    def empty(self):
        self.filling.unlink(missing_ok=True)

    def end(self):
        if self.is_own:
            subprocess.run(["umount", "--lazy", str(self.place)], check=False)


class JobSource:
    """Where documents wait; `work` is the command of a worker, `lease` its claims' seconds."""

    def __init__(self, docmill, environment):
        self.docmill, self.environment = docmill, environment
        self.handed_in = []

    def run(self, *words):
        """Whether the command did what it was to do; outages may be in its way."""
        done = subprocess.run([self.docmill, *words], env=self.environment, capture_output=True,
                              text=True, timeout=120)
        return done.returncode == 0, done.stdout

    def ask(self, *words):
        told, said = self.run(*words, "--json")
        if not told:
            raise SystemExit(f"docmill {' '.join(words)} failed")
        return json.loads(said)

    def hand_in(self, folder, numbers):
        """Puts documents of these numbers there; again and again, as a producer would."""
        batch = folder / f"{self.letter}-{len(self.handed_in)}"
        batch.mkdir()
        for count in numbers:
            number = f"CHAOS-{self.letter}-{count:04}"
            self.handed_in.append(number)
            if is_killer(number):
                # A few bytes that no reader looks at make it another document.
                photo = pathlib.Path("samples/photo.jpg").read_bytes()
                (batch / f"{number}.jpg").write_bytes(photo + number.encode())
            elif self.letter == "Q" and count % 5 == 0:
                (batch / f"{number}.xml").write_bytes(einvoice(number))
            else:
                (batch / f"{number}.pdf").write_bytes(invoice(number))
        wait_for(f"{self.name}: not handed in", lambda: self.put(batch), 120)


class QueueJobSource(JobSource):
    name, letter, lease, work = "queue", "Q", LEASE, ["worker"]

    def put(self, batch):
        return self.run("submit", str(batch))[0]

    def is_over(self, database):
        return database.count("status = 'in-progress'") == 0


class BucketJobSource(JobSource):
    name, letter, lease, work = "bucket", "B", BUCKET_LEASE, ["bucket", "work", "--jobs", "2"]

    def put(self, batch):
        return self.run("bucket", "ingest", str(batch))[0]

    def standing(self):
        told = self.ask("bucket", "status")
        left = sum(told["todo"].values()) + told["processing"] + told["failed"]
        return told["done"], told["dead"], left

    def is_over(self, _database):
        done, dead, left = self.standing()
        return done + dead >= len(self.handed_in) and left == 0


class WorkspaceJobSource(JobSource):
    name, letter, lease = "workspace", "W", WORKSPACE_LEASE

    def __init__(self, docmill, environment, place):
        super().__init__(docmill, environment)
        self.place = place
        words = ["--workers", "2", "--timeout", f"{WORKSPACE_LEASE}s", "--tries", "100"]
        self.work = ["workspace", "work", str(place), *words]

    def put(self, batch):
        return self.run("workspace", "populate", str(self.place), str(batch),
                        "--items-per-group", "3")[0]

    def standing(self):
        return self.ask("workspace", "stats", str(self.place))

    def is_over(self, _database):
        told = self.standing()
        return told["groups_done"] == told["groups"]

    def named(self):
        """The documents of all results, each as often as it stands there."""
        files = (self.place / "results").glob("*")
        lines = [line for file in files for line in file.read_text().splitlines()]
        return [pathlib.Path(json.loads(line)["metadata"]["Source-File"]).stem for line in lines]


def environment(database, sqs, model, disk):
    """The environment of workers and commands."""
    return killing.environment() | KEYS | {
        "DOCMILL__DATABASE__URL": database,
        "DOCMILL__DATABASE__STATEMENT_TIMEOUT": "5s",
        "DOCMILL__STORE__BACKEND": "folder",
        "DOCMILL__STORE__PATH": str(disk.place / "store"),
        "DOCMILL__QUEUE__BACKEND": "sqs",
        "DOCMILL__QUEUE__URL": sqs.url,
        "DOCMILL__QUEUE__ENDPOINT": f"http://127.0.0.1:{sqs.port}",
        "DOCMILL__QUEUE__REGION": "us-east-1",
        "DOCMILL__QUEUE__WAIT": "2s",
        "DOCMILL__QUEUE__VISIBILITY": f"{LEASE}s",
        "DOCMILL__CLAIM__LEASE": f"{LEASE}s",
        "DOCMILL__WORKER__ADDRESS": "127.0.0.1:0",
        "DOCMILL__WORKER__SLOTS": "4",
        "DOCMILL__WORKER__DRAIN": "10s",
        "DOCMILL__JANITOR__INTERVAL": "1s",
        "DOCMILL__JANITOR__QUIET": "10s",
        # Killers end after six deaths over them alone. Every outage counts for all documents.
        "DOCMILL__RETRY__CRASH_ATTEMPTS": "6",
        "DOCMILL__RETRY__TRANSIENT_ATTEMPTS": "100",
        "DOCMILL__RETRY__INTERNAL_ATTEMPTS": "100",
        "DOCMILL__RETRY__MISSING_ATTEMPTS": "100",
        "DOCMILL__RETRY__BASE_DELAY": "1s",
        "DOCMILL__RETRY__LONGEST_DELAY": "8s",
        "DOCMILL__RETRY__MISSING_DELAY": "5s",
        "DOCMILL__RETRY__UNAVAILABLE_DELAY": "5s",
        "DOCMILL__OCR__ENGINE": "tesseract",
        "DOCMILL__LLM__PROVIDER": "openai",
        "DOCMILL__LLM__BASE_URL": model.url,
        "DOCMILL__LLM__MODEL": "scripted",
        "DOCMILL__BUCKET__PATH": str(disk.place / "bucket"),
        "DOCMILL__BUCKET__LIST_EVERY": "1s",
        "DOCMILL__BUCKET__LONGEST_PAUSE": "1s",
    }
