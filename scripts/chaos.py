"""Hurts workers and services in a random sequence, and counts at the end; see scripts/chaos.sh.

    chaos.py DOCMILL FOLDER_OF_STAND_INS MINUTES [SEED]

The sequence of what is done to whom comes from the seed; how far the workers are by then is the
machine's. Workers run in folders of their own below a temporary one, which is kept if anything is wrong.
"""

import asyncio
import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import chaos_count
import chaos_places as places
import outage

DOCUMENTS = {"queue": 300, "bucket": 100, "workspace": 100}
# So many that there is work whenever something is done to somebody.
WAVES = 30
WORKERS = 2
# Share of the run with faults; the rest is for the documents that are left.
FAULT_SHARE = 0.6
# For all documents to end after the last fault.
END_TIMEOUT = 300
# Between two looks at who works on a killer.
KILLER_INTERVAL = 0.2
SEAMS = ["claim", "lease", "visibility", "artefact", "reference", "reply", "result", "release",
         "delete", "hide", "replace", "unlock"]
TO_WORKERS = ["kill", "kill", "kill", "stop", "stop", "term", "cut", "failpoint", "failpoint", "failpoint"]
TO_SERVICES = ["postgres stopped", "postgres frozen", "postgres silent", "queue wiped", "disk full",
               "documents locked"]
# As a product does that corrects some documents in one transaction.
LOCKED = """BEGIN; SELECT count(*) FROM (SELECT id FROM docmill.document ORDER BY random() LIMIT 40
    FOR NO KEY UPDATE SKIP LOCKED) AS held; SELECT pg_sleep({seconds}); ROLLBACK"""


class Worker:
    """One process; `resume` is when it goes on, if it stands still, and `heals` when `way`, its own way
    to Postgres, is there again."""

    def __init__(self, job_source, environment, folder, failpoint=None):
        self.job_source, self.failpoint, self.resume, self.hurt = job_source, failpoint, None, False
        self.way, self.heals, self.was_cut = None, None, False
        extra = {"DOCMILL_FAILPOINTS": failpoint} if failpoint else {}
        self.log = folder / f"{job_source.name}-{time.monotonic_ns()}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([job_source.docmill, *job_source.work], stderr=log,
                                            stdout=subprocess.DEVNULL, start_new_session=True,
                                            env=environment | extra)
        self.pid = self.process.pid

    def is_stopped(self):
        try:
            stat = pathlib.Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"


class Killers(threading.Thread):
    """Documents that kill each worker with them in hand, as a fault of a decoder would."""

    # Which worker has one in hand.
    IN_HAND = f"""SELECT i.worker FROM docmill.ingestion i JOIN docmill.document d ON d.id = i.document_id
        WHERE d.original_name ~ '{places.KILLER_NAMES}' AND i.claim_token IS NOT NULL
        AND i.lease_expires_at > docmill.docmill_now()"""

    def __init__(self, chaos, url):
        super().__init__(daemon=True)
        self.chaos, self.url, self.deaths, self.over = chaos, url, 0, threading.Event()

    def run(self):
        while not self.over.wait(KILLER_INTERVAL):
            # Postgres may be down or frozen: the next look sees more.
            words = ["timeout", "5", "psql", "-qAtX", self.url, "-c", self.IN_HAND]
            found = subprocess.run(words, capture_output=True, text=True)
            for name in found.stdout.split():
                self.kill(int(name.rsplit("-", 2)[1]))

    def kill(self, pid):
        for worker in list(self.chaos.workers):
            if worker.pid == pid and worker.process.poll() is None:
                self.deaths += 1
                self.chaos.say(f"a killer: {worker.job_source.name} {pid}")
                self.chaos.hurt(worker, "kill", signal.SIGKILL)


class Chaos:
    def __init__(self, docmill, programs, folder, seed):
        self.seed, self.random, self.folder = seed, random.Random(seed), folder
        self.causes, self.deeds = chaos_count.Causes(), collections.Counter()
        self.cut_short, self.sessions, self.problems = collections.Counter(), set(), []
        self.disk = places.Disk(folder)
        self.postgres = places.Postgres(folder)
        self.sqs, self.model = places.SqsStandIn(folder, programs), places.ModelStandIn(folder, programs)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.proxy = outage.SilentProxy(self.loop, "127.0.0.1", self.postgres.port)
        direct = f"postgres://postgres@127.0.0.1:{self.postgres.port}/postgres"
        self.database = outage.Database(direct)
        hands = places.environment(direct, self.sqs, self.model, self.disk)
        works = hands | {"DOCMILL__DATABASE__URL": direct.replace(str(self.postgres.port),
                                                                  str(self.proxy.port))}
        subprocess.run([docmill, "migrate"], env=hands, check=True, stdout=subprocess.DEVNULL)
        self.workspace = self.disk.place / "workspace"
        self.job_sources = [places.QueueJobSource(docmill, hands), places.BucketJobSource(docmill, hands),
                         places.WorkspaceJobSource(docmill, hands, self.workspace)]
        self.worker_environment, self.workers = works, []
        # Those that ended by themselves; when another may be started then.
        self.ended, self.not_before = [], {}
        self.killers = Killers(self, direct)

    def say(self, text):
        """Says what happens, and when."""
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def start_worker(self, job_source, failpoint=None):
        environment, way = self.worker_environment, None
        if job_source.name == "queue":
            way = outage.SilentProxy(self.loop, "127.0.0.1", self.proxy.port)
            url = environment["DOCMILL__DATABASE__URL"]
            url = url.replace(str(self.proxy.port), str(way.port))
            environment = environment | {"DOCMILL__DATABASE__URL": url}
        worker = Worker(job_source, environment, self.folder / "logs", failpoint)
        worker.way = way
        self.sessions.add(worker.pid)
        if failpoint:
            self.note(worker, "failpoint")
        self.workers.append(worker)

    def note(self, worker, what):
        self.causes.note(worker.pid, what, time.time())
        self.cut_short[worker.job_source.name] += 1

    def hand_in_wave(self, wave):
        def hand_in(job_source):
            every = DOCUMENTS[job_source.name]
            job_source.hand_in(self.folder / "papers",
                            range(wave * every // WAVES, (wave + 1) * every // WAVES))
        with concurrent.futures.ThreadPoolExecutor() as together:
            list(together.map(hand_in, self.job_sources))

    def tend(self, has_faults=True):
        """Wakes who has stood still long enough, and replaces who has ended."""
        for worker in list(self.workers):
            if worker.resume is None and worker.is_stopped():
                # By a failpoint.
                worker.resume = time.monotonic() + worker.job_source.lease + 2
            if worker.resume is not None and time.monotonic() > worker.resume:
                worker.resume = None
                os.kill(worker.pid, signal.SIGCONT)
            if worker.heals is not None and time.monotonic() > worker.heals:
                worker.heals = None
                worker.way.speak_again()
            code = worker.process.poll()
            if code is not None:
                self.workers.remove(worker)
                is_done = code == 0 and worker.job_source.name == "workspace"
                if is_done:
                    # Nothing is left there: workers that start only to end would hide the others.
                    self.not_before[worker.job_source.name] = time.monotonic() + 5
                if not (is_done or worker.hurt or worker.failpoint or worker.was_cut):
                    self.ended.append((worker, code, time.time()))
                    self.not_before[worker.job_source.name] = time.monotonic() + 2
        for job_source in self.job_sources:
            if self.not_before.get(job_source.name, 0) > time.monotonic():
                continue
            here = [w for w in self.workers if w.job_source is job_source and w.resume is None]
            for _ in range(len(here), WORKERS):
                if has_faults or not self.is_over(job_source):
                    self.start_worker(job_source)
            # Those who went on have been replaced meanwhile.
            spare = [w for w in here if not w.hurt][WORKERS + 1:]
            for worker in spare:
                self.hurt(worker, "term", signal.SIGTERM)

    def is_over(self, job_source):
        return job_source.is_over(self.database)

    def hurt_worker(self, what):
        free = [w for w in self.workers if w.resume is None and not w.hurt]
        places_of_stop = [w for w in free if w.job_source.name != "bucket"]
        # A lock of a bucket lasts so long that few stops of its workers fit into a run.
        may = free if what != "stop" or self.random.random() < 0.1 else places_of_stop
        if what == "cut":
            may = [w for w in free if w.way is not None and w.heals is None]
        if not may:
            return
        worker = self.random.choice(may)
        self.deeds[what] += 1
        if what == "kill":
            self.hurt(worker, "kill", signal.SIGKILL)
        elif what == "term":
            self.hurt(worker, "term", signal.SIGTERM)
        elif what == "cut":
            self.note(worker, "cut")
            worker.was_cut = True
            worker.way.fall_silent()
            worker.heals = time.monotonic() + self.random.choice([3, worker.job_source.lease + 5])
        elif what == "stop":
            self.note(worker, "stop")
            os.kill(worker.pid, signal.SIGSTOP)
            worker.resume = time.monotonic() + worker.job_source.lease + 2
        else:
            action = self.random.choice(["kill", "kill", "stop", "error", "delay:2s"])
            side = self.random.choice(["before", "after"])
            seam, turn = self.random.choice(SEAMS), self.random.randint(1, 8)
            self.hurt(worker, "term", signal.SIGTERM)
            self.start_worker(worker.job_source, f"{seam}.{side}={action}@{turn}")
            what = f"failpoint {seam}.{side}={action}@{turn}"
        self.say(f"{what}: {worker.job_source.name} {worker.pid}")

    def hurt(self, worker, what, how):
        worker.hurt = True
        self.note(worker, what)
        os.kill(worker.pid, how)

    def hurt_service(self, what):
        if what == "disk full" and not self.disk.is_own:
            return
        self.deeds[what] += 1
        self.say(what)
        # Now and then longer than a lease.
        seconds, began = self.random.choice([3, 6, places.LEASE + 3]), time.time()
        if what == "documents locked":
            # This explains nothing: nobody else may notice.
            locked = LOCKED.format(seconds=seconds)
            threading.Thread(target=self.database.ask, args=(locked,), daemon=True).start()
            return
        self.begin_outage(what)
        self.pass_time(seconds)
        self.end_outage(what)
        self.causes.note_outage(what, began, time.time())

    def begin_outage(self, what):
        if what == "postgres stopped":
            self.postgres.stop_at_once()
        elif what == "postgres frozen":
            self.postgres.freeze()
        elif what == "postgres silent":
            self.proxy.fall_silent()
        elif what == "queue wiped":
            self.sqs.wipe()
        else:
            self.disk.fill()

    def end_outage(self, what):
        if what == "postgres stopped":
            self.postgres.start()
        elif what == "postgres frozen":
            self.postgres.thaw()
        elif what == "postgres silent":
            self.proxy.speak_again()
        elif what == "disk full":
            self.disk.empty()

    def pass_time(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.tend()
            time.sleep(0.1)

    def deck(self):
        """Everything once before anything comes again, workers more often than services."""
        order, drawn = random.Random(self.seed), 0
        while True:
            cards = [("worker", what) for what in TO_WORKERS for _ in range(2)]
            cards += [("service", what) for what in TO_SERVICES]
            order.shuffle(cards)
            for card in cards:
                # The draws for one do not depend on the number of workers of another.
                self.random, drawn = random.Random(f"{self.seed}/{drawn}"), drawn + 1
                yield card

    def run(self, minutes):
        self.began = time.monotonic()
        faults = minutes * 60 * FAULT_SHARE
        self.job_sources[1].ask("bucket", "config", "--set", "max_retries=100")
        for setting in ("heartbeat_interval=5", "retry_pause_seconds=2", "stale_timeout_minutes=1"):
            self.job_sources[1].ask("bucket", "config", "--set", setting)
        self.killers.start()
        wave, deck = 0, self.deck()
        while (now := time.monotonic() - self.began) < faults or wave < WAVES:
            if wave < WAVES and now >= wave * faults / WAVES:
                self.hand_in_wave(wave)
                wave += 1
            self.tend()
            target, what = next(deck)
            self.hurt_worker(what) if target == "worker" else self.hurt_service(what)
            self.pass_time(self.random.uniform(0.1, 1.2))
        self.say("nothing more is done to anybody")
        self.wait_for_end()

    def wait_for_end(self):
        # Failpoints that were not reached act on nobody any more.
        for worker in self.workers:
            if worker.failpoint:
                self.hurt(worker, "term", signal.SIGTERM)
        until = time.monotonic() + END_TIMEOUT
        while True:
            self.tend(has_faults=False)
            over = [job_source for job_source in self.job_sources if self.is_over(job_source)]
            is_quiet = not any(worker.resume or worker.is_stopped() for worker in self.workers)
            if len(over) == len(self.job_sources) and is_quiet and self.sqs.left() == (0, 0):
                break
            if time.monotonic() > until:
                names = [job_source.name for job_source in self.job_sources if job_source not in over]
                self.problems.append(f"not over after {END_TIMEOUT} s: {names}, messages "
                                     f"{self.sqs.left()}")
                break
            time.sleep(1)
        self.say("everything is over")

    def stop_workers(self):
        self.killers.over.set()
        self.killers.join()
        for worker in self.workers:
            if worker.way is not None:
                worker.way.speak_again()
            os.kill(worker.pid, signal.SIGCONT)
            worker.process.terminate()
        for worker in self.workers:
            try:
                code = worker.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                code = "no end"
            if code not in (0, -signal.SIGTERM):
                self.problems.append(f"{worker.log.name} drained with {code}")

    def count(self):
        calls = self.model.calls_by_document()
        queue, bucket, workspace = self.job_sources
        found, outcomes = chaos_count.count_queue(self.database, queue, self.causes, calls)
        self.problems += found
        self.problems += chaos_count.count_bucket(bucket, self.disk.place / "bucket",
                                                  self.cut_short["bucket"], calls)
        self.problems += chaos_count.count_workspace(workspace, self.cut_short["workspace"], calls)
        for worker, code, when in self.ended:
            # A worker that cannot begin says so and ends.
            if not self.causes.is_outage(when):
                self.problems.append(f"{worker.log.name} ended by itself with {code}")
        if self.sqs.left() != (0, 0):
            self.problems.append(f"messages and dead letters left: {self.sqs.left()}")
        try:
            places.wait_for("processes are left", lambda: not
                            chaos_count.processes_left(self.sessions), 20)
        except SystemExit as left:
            self.problems.append(f"{left}: {chaos_count.processes_left(self.sessions)}")
        paid = {letter: sum(count for number, count in calls.items() if number and
                            number[6] == letter) for letter in "QBW"}
        print(f"done to them: {dict(self.deeds)}, deaths by killers: {self.killers.deaths}")
        print(f"attempts of the queue: {outcomes}; calls: {paid}")

    def end(self):
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
        self.sqs.end()
        self.model.end()
        try:
            self.postgres.thaw()
            self.postgres.stop_at_once()
        except (OSError, subprocess.CalledProcessError):
            # It was stopped when the run broke off.
            pass
        self.disk.end()


def main(docmill, programs, minutes, seed):
    print(f"chaos of {minutes:g} minutes, seed {seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="docmill-chaos-"))
    folder.chmod(0o755)
    for name in ("logs", "papers"):
        (folder / name).mkdir()
    chaos = Chaos(os.path.abspath(docmill), programs, folder, seed)
    try:
        chaos.run(minutes)
        chaos.stop_workers()
        chaos.count()
    finally:
        chaos.end()
    for problem in chaos.problems:
        print(f"WRONG: {problem}")
    if chaos.problems:
        print(f"{len(chaos.problems)} problems; seed {seed}; logs: {folder}/logs")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{sum(DOCUMENTS.values())} documents: each one end and one result, seed {seed}")
    return 0


if __name__ == "__main__":
    drawn = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(100_000)
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), drawn))
