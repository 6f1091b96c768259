#!/usr/bin/env bash
# Maintenance beside a large history, and what waits for a person:
#   scripts/maintenance_scale.sh [ENDED] [WAITING] [PAUSED]      default 1000000 10000 100000
# Prints a table and fails unless a janitor's pass stays below 2 s, each query of docs/guides/operations.md
# below 1 s, a paused document costs at most one row written an hour, and what is paused keeps no
# message in flight. SQS is our stand-in; Postgres is private and durable. On a busy machine the times
# are those of the machine: the second column of each says how often the limit fits in.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    cargo build --locked --quiet --workspace --bins
    exec scripts/with_postgres.sh "$0" "$@"
fi
ended=${1:-1000000} waiting=${2:-10000} paused=${3:-100000}
# So many of the paused ones have a message when the worker starts; the others are parked already.
delivered=$((paused < 2000 ? paused : 2000))
docmill=${DOCMILL:-target/debug/docmill}
work=$(mktemp -d)
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done; rm -rf "$work"' EXIT

mkfifo "$work/address"
target/debug/sqs-standin --queue documents >"$work/address" &
pids+=($!)
read -r endpoint <"$work/address"
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_REGION=us-east-1
export DOCMILL__DATABASE__URL="$DOCMILL_TEST_DATABASE_URL"
export DOCMILL__QUEUE__URL="$endpoint/000000000000/documents" DOCMILL__QUEUE__ENDPOINT="$endpoint"
export DOCMILL__QUEUE__WAIT=2s DOCMILL__WORKER__DRAIN=10s DOCMILL__WORKER__ADDRESS=127.0.0.1:0
export DOCMILL__STORE__BACKEND=folder DOCMILL__STORE__PATH="$work/store" DOCMILL__JANITOR__ENABLED=false
mkdir -p "$work/store"
"$docmill" migrate
ask() { psql -qAt -v ON_ERROR_STOP=1 "$DOCMILL_TEST_DATABASE_URL" -c "SET search_path TO docmill, public" -c "$1"; }

echo "making $ended ended, $waiting waiting, $paused paused"
ask "SET session_replication_role = replica;
INSERT INTO document (id, file_path, tenant, created_at, updated_at, needs_human_review)
SELECT md5('d' || n)::uuid, 'documents/' || n || '.pdf',
    CASE WHEN n <= $paused THEN 'held' ELSE 'tenant-' || n % 50 END,
    now() - n * interval '8 s', now() - n * interval '8 s', n % 50 = 0
FROM generate_series(1, $paused + $waiting + $ended) n;
INSERT INTO ingestion (id, document_id, tenant, kind, status, reason, valid_structured_data,
    needs_human_review, review_reasons, created_at, updated_at, enqueued_at, started_at, completed_at,
    claims, attempt_count, parked_by)
SELECT md5('i' || n)::uuid, md5('d' || n)::uuid,
    CASE WHEN n <= $paused THEN 'held' ELSE 'tenant-' || n % 50 END, 'invoice', s.status,
    CASE WHEN s.status = 'failed' THEN 'gate_refused' END,
    CASE s.status WHEN 'completed' THEN true WHEN 'failed' THEN false END, s.status = 'failed',
    CASE WHEN s.status = 'failed' THEN ARRAY['total_adds_up'] ELSE '{}' END,
    t.at, t.at, CASE s.status WHEN 'in-progress' THEN now() - interval '40 min' ELSE t.at END, t.at,
    CASE WHEN s.status <> 'in-progress' THEN t.at + interval '9 s' END, 1, 1,
    CASE WHEN n > $delivered AND n <= $paused THEN 'tenant:held' END
FROM generate_series(1, $paused + $waiting + $ended) n
CROSS JOIN LATERAL (SELECT now() - n * interval '8 s' AS at) t
CROSS JOIN LATERAL (SELECT CASE WHEN n <= $paused + $waiting THEN 'in-progress'
    WHEN n % 50 = 0 THEN 'failed' ELSE 'completed' END AS status) s;
INSERT INTO attempt (ingestion_id, claims, token, started_at, ended_at, stage, outcome, final)
SELECT id, 1, gen_random_uuid(), started_at, completed_at, 'record', 'completed', true
FROM ingestion WHERE status <> 'in-progress';
INSERT INTO pause (scope, name, paused_by) VALUES ('tenant', 'held', 'scale');
INSERT INTO tenant_retention (tenant, days) SELECT 'tenant-' || n, 3650 FROM generate_series(0, 49) n;
SET session_replication_role = DEFAULT"
ask "VACUUM ANALYZE"
[ "$(ask 'SELECT count(*) FROM attempt')" = "$ended" ] || { echo "the rows were not made" >&2; exit 1; }

python3 - "$docmill" "$work" "$paused" "$waiting" "$delivered" <<'PY'
import json, os, re, signal, subprocess, sys, time, urllib.parse, urllib.request
docmill, work = sys.argv[1:3]
paused, waiting, delivered = map(int, sys.argv[3:])
url = os.environ["DOCMILL_TEST_DATABASE_URL"]
queue = os.environ["DOCMILL__QUEUE__URL"]
rows, failed = [], []


def judge(what, figure, limit, unit):
    fits = "-" if not figure else f"{limit / figure:.1f}"
    rows.append((what, f"{figure:.3f} {unit}" if unit == "s" else f"{figure:g}", f"{limit:g}", fits))
    if figure > limit:
        failed.append(what)


def ask(sql):
    command = ["psql", "-qAt", "-v", "ON_ERROR_STOP=1", url, "-c", "SET search_path TO docmill, public", "-c", sql]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def sqs(action, **body):
    request = urllib.request.Request(
        queue.rsplit("/", 2)[0] + "/",
        json.dumps({"QueueUrl": queue, **body}).encode(),
        {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{action}"},
    )
    return json.load(urllib.request.urlopen(request))


def send(ids):
    for begin in range(0, len(ids), 10):
        entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(ids[begin:begin + 10])]
        sqs("SendMessageBatch", Entries=entries)


def in_flight():
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    answer = sqs("GetQueueAttributes", AttributeNames=names)["Attributes"]
    return [int(answer[name]) for name in names]


def written():
    return int(ask("""SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables
        WHERE relname IN ('ingestion', 'document', 'attempt', 'operator_action', 'spending')"""))


# A paused tenant's documents come in while a worker runs.
ids = ask(f"SELECT md5('i' || n)::uuid FROM generate_series(1, {delivered}) n").split()
send(ids)
before, log = written(), open(f"{work}/worker.log", "w")
worker = subprocess.Popen([docmill, "worker"], stdout=log, stderr=log)
most = 0
try:
    for _ in range(600):
        ready, hidden = in_flight()
        most = max(most, hidden)
        if ready + hidden == 0:
            break
        time.sleep(0.2)
    # A connection that has become idle tells its statistics within 10 s: what is told later than that
    # was written later.
    time.sleep(12)
    parked = written() - before
    time.sleep(60)
    later = written() - before - parked
finally:
    worker.send_signal(signal.SIGTERM)
    worker.wait(30)
ready, hidden = in_flight()
held = int(ask("SELECT count(*) FROM ingestion WHERE parked_by = 'tenant:held'"))
if held != paused:
    failed.append(f"only {held} of {paused} are parked")
judge("rows written per paused document in its first hour", (parked + later * 60) / delivered, 1, "")
judge("paused documents' messages in the queue afterwards", ready + hidden, 0, "")
judge("most messages in flight meanwhile (slots: 64)", most, 64, "")

# A healthy backlog, silent for longer than janitor.quiet: as many messages as rows.
send(ask("SELECT id FROM ingestion WHERE status = 'in-progress' AND parked_by IS NULL").split())
for name in ["first", "second", "third"]:
    begun = time.monotonic()
    answer = subprocess.run([docmill, "--json", "janitor"], check=True, capture_output=True, text=True)
    judge(f"a janitor's pass, {name}", time.monotonic() - begun, 2, "s")
    done = json.loads(answer.stdout)
    if done["failed"] or done["resent"] or done["woken"]:
        failed.append(f"{name} pass: {answer.stdout}")

page = open("docs/guides/operations.md", encoding="utf-8").read()
for query in re.findall(r"```sql\n(.*?)```", page, re.S):
    if not query.lstrip().upper().startswith("SELECT"):
        continue
    begun = time.monotonic()
    ask(query)
    judge(" ".join(query.split())[:70], time.monotonic() - begun, 1, "s")

ask("DELETE FROM pause")
begun = time.monotonic()
woken = 0
while woken < min(paused, 20000):
    answer = subprocess.run([docmill, "--json", "janitor"], check=True, capture_output=True, text=True)
    more = json.loads(answer.stdout)["woken"]
    if not more:
        failed.append("what was paused is not sent again")
        break
    woken += more
print(f"woken when the pause was lifted: {woken} in {time.monotonic() - begun:.0f} s")

width = max(len(row[0]) for row in rows)
print(f"{'':{width}}  {'figure':>10}  {'limit':>6}  fits")
for what, figure, limit, fits in rows:
    print(f"{what:{width}}  {figure:>10}  {limit:>6}  {fits}")
for what in failed:
    print(f"not met: {what}", file=sys.stderr)
sys.exit(1 if failed else 0)
PY
