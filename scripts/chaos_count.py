"""Invariants that hold after every run of chaos.py: counted at rows, messages, files, the model and
processes.

Every problem is one line. An attempt that did not complete has to be explained by something that was
done to its worker, or to a service, while it lasted: what nobody did must not have happened.
"""

import collections
import json
import os
import pathlib

import chaos_places

# After an outage connections are found dead, leases run out, and those who wait try again.
AFTERMATH = 25
ATTEMPTS = """SELECT coalesce(json_agg(json_build_object(
    'id', a.ingestion_id, 'claims', a.claims, 'worker', a.worker, 'outcome', a.outcome,
    'final', a.final, 'stage', a.stage, 'detail', a.detail, 'name', d.original_name,
    'began', extract(epoch FROM a.started_at), 'ended', extract(epoch FROM a.ended_at))
    ORDER BY a.ended_at), '[]')
    FROM docmill.attempt a JOIN docmill.ingestion i ON i.id = a.ingestion_id
    JOIN docmill.document d ON d.id = i.document_id"""

KILLED = f"""FROM docmill.ingestion i JOIN docmill.document d ON d.id = i.document_id
    WHERE d.original_name ~ '{chaos_places.KILLER_NAMES}' AND i.status = 'failed'"""


class Causes:
    """The injected faults, with target and time (seconds of the wall clock)."""

    def __init__(self):
        self.to_worker = collections.defaultdict(list)
        self.outages = []

    def note(self, pid, what, when):
        self.to_worker[pid].append((what, when))

    def note_outage(self, what, began, ended):
        self.outages.append((what, began, ended + AFTERMATH))

    def of_worker(self, name, kinds):
        pid = int(name.rsplit("-", 2)[1]) if name else 0
        return any(what in kinds for what, _ in self.to_worker.get(pid, []))

    def in_outage(self, attempt):
        began = attempt["began"] or attempt["ended"]
        return any(start <= attempt["ended"] and began <= end for _, start, end in self.outages)

    def is_outage(self, when):
        return any(began <= when <= ended for _, began, ended in self.outages)

    def anybody_stood_still(self, attempt):
        """Somebody who stood still and went on may have put what this one wanted to put."""
        return any(what in ("stop", "cut", "failpoint") and when <= attempt["ended"]
                   for deeds in self.to_worker.values() for what, when in deeds)


def is_explained(attempt, causes):
    outcome, worker = attempt["outcome"], attempt["worker"]
    if outcome == "gate_refused":
        return chaos_places.is_killer(attempt["name"] or "")
    if outcome == "crashed":
        return causes.of_worker(worker, {"kill", "stop", "cut", "failpoint"}) or causes.in_outage(attempt)
    if outcome == "interrupted":
        return causes.of_worker(worker, {"term", "cut", "failpoint"}) or causes.in_outage(attempt)
    if outcome in ("transient", "unavailable", "missing"):
        return (causes.in_outage(attempt) or causes.of_worker(worker, {"stop", "cut", "failpoint"})
                or causes.anybody_stood_still(attempt))
    return False


def count_queue(database, job_source, causes, calls):
    problems = []
    def expect(what, sql, wanted):
        found = database.ask(sql)
        if found != str(wanted):
            problems.append(f"queue: {found} {what}, not {wanted}")
    all_of_them = len(job_source.handed_in)
    expect("ingestions", "SELECT count(*) FROM docmill.ingestion", all_of_them)
    # Killers alone may fail: by their deaths, or, if nobody saw them at work, by the gate.
    failed = int(database.ask(f"SELECT count(*) {KILLED} AND reason IN ('crashed', 'gate_refused')"))
    completed = all_of_them - failed
    expect("completed", "SELECT count(*) FROM docmill.ingestion WHERE status = 'completed'", completed)
    expect("ends and ingestions that ended",
           "SELECT count(*) || ' ' || count(DISTINCT ingestion_id) FROM docmill.attempt WHERE final",
           f"{all_of_them} {all_of_them}")
    expect("documents with their ingestion's data",
           "SELECT count(*) FROM docmill.document d JOIN docmill.ingestion i ON i.document_id = d.id"
           " WHERE d.structured_data = i.structured_data", completed)
    expect("claims or leases left", "SELECT count(*) FROM docmill.ingestion"
           " WHERE claim_token IS NOT NULL OR lease_expires_at IS NOT NULL", 0)
    expect("claims without an end", "SELECT count(*) FROM docmill.ingestion i WHERE claims <>"
           " (SELECT count(*) FROM docmill.attempt a WHERE a.ingestion_id = i.id)", 0)
    attempts = json.loads(database.ask(ATTEMPTS))
    cut_short = collections.Counter()
    for attempt in attempts:
        if attempt["outcome"] == "completed":
            continue
        number = pathlib.Path(attempt["name"] or "").stem
        # Its stage is what the last renewal said: the call may have come after that.
        cut_short[number] += 1
        if not is_explained(attempt, causes):
            problems.append(f"queue: nobody caused {json.dumps(attempt)}")
    for number in job_source.handed_in:
        most = 1 + cut_short[number]
        if calls.get(number, 0) > most:
            problems.append(f"queue: {calls[number]} calls for {number}, {most} at most")
    outcomes = collections.Counter(attempt["outcome"] for attempt in attempts)
    return problems, dict(outcomes)


def count_bucket(job_source, place, interruptions, calls):
    problems, (done, dead, left) = [], job_source.standing()
    wanted = len(job_source.handed_in)
    if (done, dead, left) != (wanted, 0, 0):
        problems.append(f"bucket: {done} done, {dead} dead, {left} left of {wanted}")
    results = list(place.rglob("out/*.zip"))
    if len(results) != wanted:
        problems.append(f"bucket: {len(results)} results of {wanted}")
    problems += [f"bucket: a lock is left: {path}" for path in place.rglob("processing/*.json")]
    return problems + count_calls(job_source, interruptions, calls)


def count_workspace(job_source, interruptions, calls):
    problems, told = [], job_source.standing()
    named = collections.Counter(job_source.named())
    missing = set(job_source.handed_in) - set(named)
    twice = [name for name, count in named.items() if count > 1]
    if missing or twice or told["unread"]:
        problems.append(f"workspace: missing {sorted(missing)}, twice {twice}, "
                        f"not read {told['unread']}")
    if told["groups_done"] != told["groups"]:
        problems.append(f"workspace: {told['groups_done']} of {told['groups']} groups done")
    done = {path.stem.removeprefix("output_") for path in (job_source.place / "results").glob("*")}
    for path in (job_source.place / "worker_locks").glob("*"):
        # Of a worker that died after its result was put: nobody looks at it again.
        if path.stem.rpartition("_")[2] not in done:
            problems.append(f"workspace: a lock is left: {path}")
    return problems + count_calls(job_source, interruptions, calls)


def count_calls(job_source, interruptions, calls):
    """A worker of two documents loses two calls at most each time that it is cut short."""
    again = sum(max(0, calls.get(number, 0) - 1) for number in job_source.handed_in)
    if again > 2 * interruptions:
        return [f"{job_source.name}: {again} calls again, {interruptions} interruptions of 2 jobs"]
    return []


def processes_left(sessions):
    """Processes of sessions that our workers began."""
    left = []
    for entry in os.listdir("/proc"):
        try:
            stat = pathlib.Path(f"/proc/{entry}/stat").read_text() if entry.isdigit() else ""
        except OSError:
            continue
        fields = stat.rpartition(")")[2].split()
        if len(fields) > 3 and int(fields[3]) in sessions and fields[0] != "Z":
            left.append(int(entry))
    return left
