"""The same no-op work by docmill and by its peers, in turn: one table of medians and ranges.

Called by run.sh, which installs and builds everything and starts Postgres and the stand-in for SQS.
Each has 64 jobs at the same time in one process. The table names the differences: sqs-consumer
and Celery record nothing; pg-boss, graphile-worker and procrastinate have no queue beside
their Postgres. Only docmill has both, and writes the result of each job.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

HERE = Path(__file__).resolve().parent
ROUNDS, JOBS, SLOW_JOBS = (int(word) for word in sys.argv[1:4])
BENCH, INSTALLED = sys.argv[4], Path(sys.argv[5])
NODE, PYTHON = INSTALLED / "node_modules/.bin/node", INSTALLED / "venv/bin/python"
CONCURRENCY = 64
# A peer that hangs is a line in the table, and no end of the others.
RUN_TIMEOUT = 120


def peer(name, what, program, jobs):
    return {"name": name, "what": what, "program": program, "jobs": jobs}


def node(script):
    # Where Node looks for packages: beside the script.
    return [NODE, INSTALLED / script]


PEERS = [
    peer("docmill", "SQS and Postgres", None, JOBS),
    peer("sqs-consumer", "SQS", node("sqs_consumer.mjs"), JOBS),
    peer("celery[sqs]", "SQS", [PYTHON, HERE / "celery_sqs.py"], SLOW_JOBS),
    peer("pg-boss", "Postgres", node("pg_boss.mjs"), JOBS),
    peer("graphile-worker", "Postgres", node("graphile.mjs"), JOBS),
    peer("procrastinate", "Postgres", [PYTHON, HERE / "procrastinate_pg.py"], SLOW_JOBS),
]


def on_server(statement):
    subprocess.run(
        ["psql", "-q", os.environ["DOCMILL_TEST_DATABASE_URL"], "-c", statement],
        check=True,
        capture_output=True,
    )


def run_docmill(jobs):
    shared = "/dev/shm"
    environment = {**os.environ, **({"TMPDIR": shared} if os.access(shared, os.W_OK) else {})}
    said = subprocess.run(
        [BENCH, "--json", f"empty={jobs}"],
        env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT,
    )
    if said.returncode:
        raise RuntimeError(said.stderr.strip()[-300:])
    measured = json.loads(said.stdout.strip().splitlines()[-1])
    return measured["jobs_per_second"], measured["cpu_us_per_job"]["worker"]


def run_peer(program, jobs, number):
    database = f"peer_{number}"
    on_server(f"CREATE DATABASE {database}")
    parts = urlsplit(os.environ["DOCMILL_TEST_DATABASE_URL"])
    # A stand-in of its own: nothing is left from the one before.
    sqs = subprocess.Popen(
        [os.environ["SQS_STANDIN"], "--queue", "celery"], stdout=subprocess.PIPE, text=True
    )
    try:
        endpoint = sqs.stdout.readline().strip()
        environment = {
            **os.environ,
            "DATABASE_URL": urlunsplit(parts._replace(path=f"/{database}")),
            "SQS_ENDPOINT": endpoint,
            "SQS_URL": f"{endpoint}/000000000000/celery",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        said = subprocess.run(
            [*map(str, program), str(jobs), str(CONCURRENCY)],
            env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT,
        )
        lines = [line for line in said.stdout.splitlines() if line.startswith("{")]
        if said.returncode or not lines:
            raise RuntimeError((said.stderr.strip() or said.stdout.strip())[-300:])
        measured = json.loads(lines[-1])
        return measured["jobs"] / measured["seconds"], measured["cpu_us"]
    finally:
        sqs.kill()
        sqs.wait()
        on_server(f"DROP DATABASE {database} WITH (FORCE)")


def main():
    results = {each["name"]: [] for each in PEERS}
    failures = {}
    number = 0
    for turn in range(ROUNDS):
        for each in PEERS:
            number += 1
            name = each["name"]
            try:
                if each["program"] is None:
                    got = run_docmill(each["jobs"])
                else:
                    got = run_peer(each["program"], each["jobs"], number)
                results[name].append(got)
                print(f"round {turn + 1}: {name} {got[0]:.0f} jobs/s, {got[1]:.0f} us", file=sys.stderr)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failures[name] = str(error)
                print(f"round {turn + 1}: {name} failed: {error}", file=sys.stderr)
    print("| | kept in | jobs | jobs/s, median (range) | CPU of its process, us a job, median (range) |")
    print("|---|---|---|---|---|")
    for each in PEERS:
        got = results[each["name"]]
        if not got:
            print(f"| {each['name']} | {each['what']} | {each['jobs']} | failed | |")
            continue
        cells = []
        for values in zip(*got):
            middle, low, high = statistics.median(values), min(values), max(values)
            cells.append(f"{middle:,.0f} ({low:,.0f}–{high:,.0f})")
        print(f"| {each['name']} | {each['what']} | {each['jobs']} | {cells[0]} | {cells[1]} |")
    for name, why in failures.items():
        print(f"\n{name} failed: {why}")
    return 1 if failures else 0


sys.exit(main())
