#!/usr/bin/env bash
# The pages over a large history:
#   scripts/web_scale.sh [ENDED] [OUTBOX]      default 1000000 200000
# Asks each page nine times and prints the median and the longest time at the server; fails unless each
# median stays below 300 ms; looking further back for words, which somebody asks for, is told only.
# Postgres is private; queue and store are folders. On a busy machine the times are those of the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    [ -n "${DOCMILL:-}" ] || cargo build --locked --quiet --workspace --bins
    exec scripts/with_postgres.sh "$0" "$@"
fi
ended=${1:-1000000} outbox=${2:-200000}
docmill=${DOCMILL:-target/debug/docmill}
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/store" "$work/queue"
export DOCMILL__DATABASE__URL="$DOCMILL_TEST_DATABASE_URL"
export DOCMILL__QUEUE__BACKEND=folder DOCMILL__QUEUE__PATH="$work/queue"
export DOCMILL__STORE__BACKEND=folder DOCMILL__STORE__PATH="$work/store"
export DOCMILL__WEB__ADDRESS=127.0.0.1:0
"$docmill" migrate
ask() { psql -qAt -v ON_ERROR_STOP=1 "$DOCMILL_TEST_DATABASE_URL" -c "SET search_path TO docmill, public" -c "$1"; }

echo "making $ended ended, 10000 waiting, $outbox webhooks, as many actions of operators, 500 workers"
ask "SET session_replication_role = replica;
INSERT INTO document (id, file_path, original_name, tenant, sha256, created_at, updated_at,
    needs_human_review, review_reasons, structured_data)
SELECT md5('d' || n)::uuid, 'documents/' || n || '.pdf', 'march-' || n || '.pdf', 'tenant-' || n % 50,
    encode(sha256(n::text::bytea), 'hex'), now() - n * interval '8 s', now() - n * interval '8 s',
    n % 50 = 0, CASE WHEN n % 50 = 0 THEN ARRAY['total_adds_up'] ELSE '{}' END,
    jsonb_build_object('invoice_number', 'R-' || n, 'supplier_name', 'Supplier ' || n % 500, 'total', n % 9000)
        || CASE WHEN n % 50 = 0 THEN rest.data ELSE '{}' END
FROM generate_series(1, 10000 + $ended) n
-- Documents under review have the size of an invoice of eight lines.
CROSS JOIN (SELECT jsonb_object_agg('field_' || f, 'a value of some length') || jsonb_build_object('line_items',
    (SELECT jsonb_agg(jsonb_build_object('description', 'Reading table, oak, 180 cm', 'quantity', 4,
        'unit_price', 412.5, 'tax_rate', 20, 'amount', 1650)) FROM generate_series(1, 8))) AS data
    FROM generate_series(1, 25) f) AS rest;
INSERT INTO ingestion (id, document_id, tenant, kind, status, reason, valid_structured_data,
    needs_human_review, review_reasons, created_at, updated_at, enqueued_at, started_at, completed_at,
    claims, attempt_count)
SELECT md5('i' || n)::uuid, md5('d' || n)::uuid, 'tenant-' || n % 50, 'invoice', s.status,
    CASE WHEN s.status = 'failed' THEN 'gate_refused' END,
    CASE s.status WHEN 'completed' THEN true WHEN 'failed' THEN false END, s.status = 'failed',
    CASE WHEN s.status = 'failed' THEN ARRAY['total_adds_up'] ELSE '{}' END, t.at, t.at, t.at, t.at,
    CASE WHEN s.status <> 'in-progress' THEN t.at + interval '9 s' END, 1, 1
FROM generate_series(1, 10000 + $ended) n
CROSS JOIN LATERAL (SELECT now() - n * interval '8 s' AS at) t
CROSS JOIN LATERAL (SELECT CASE WHEN n <= 10000 THEN 'in-progress' WHEN n % 50 = 0 THEN 'failed'
    ELSE 'completed' END AS status) s;
INSERT INTO attempt (ingestion_id, claims, token, started_at, ended_at, stage, outcome, final)
SELECT id, 1, gen_random_uuid(), started_at, completed_at, 'record', 'completed', true
FROM ingestion WHERE status <> 'in-progress';
INSERT INTO webhook_target (name, place, url_hash) VALUES ('erp', 'https://erp.example.com', 'x');
INSERT INTO webhook_delivery (target, document_id, ingestion_id, event, event_id, event_number,
    occurred_at, facts, state, due_at, open_since, ended_at)
SELECT 'erp', md5('d' || n)::uuid, md5('i' || n)::uuid, 'document.completed', gen_random_uuid(), n, now(),
    '{}', s.state, CASE s.state WHEN 'due' THEN now() END, now(),
    CASE WHEN s.state <> 'due' THEN now() END
FROM generate_series(1, $outbox) n
CROSS JOIN LATERAL (SELECT (ARRAY['due', 'delivered', 'dead'])[n % 3 + 1] AS state) s;
INSERT INTO operator_action (operator, action, target, why)
SELECT 'web:somebody', 'reopen', md5('i' || n)::uuid::text, 'again' FROM generate_series(1, $outbox) n;
INSERT INTO worker (id, started_at, seen_at, slots, slots_used, lanes, local_models)
SELECT 'worker-' || n, now(), now() + interval '1 hour', 64, 60,
    (SELECT jsonb_agg(jsonb_build_object('provider', 'p' || l, 'model', 'm', 'in_flight', 1, 'waiting', 2,
        'rate', 3, 'breaker', 'closed', 'denied', false)) FROM generate_series(1, 8) l),
    jsonb_build_object('machine', 'machine-' || n % 100, 'read_s', 1,
        'devices', (SELECT jsonb_agg(jsonb_build_object('name', 'gpu' || g, 'total_mib', 80000,
            'free_mib', 1000, 'held_mib', 70000)) FROM generate_series(0, 7) g),
        'models', (SELECT jsonb_agg(jsonb_build_object('model', 'm' || m, 'needs_mib', 6000,
            'state', 'loaded', 'running', 2, 'waiting', 1, 'oldest_s', 5)) FROM generate_series(1, 8) m))
FROM generate_series(1, 500) n;
INSERT INTO audit_link (source, row_id, digest, before, hash)
SELECT 'operator_action', a.id, d, sha256(a.id::text::bytea), sha256(sha256(a.id::text::bytea) || d)
FROM operator_action a, LATERAL digest_audit_row('operator_action', a.id) d;
INSERT INTO ended_hour (hour, completed, flagged, failed, cancelled, p50_s, p95_s, cost_nanos)
SELECT date_trunc('hour', now(), 'UTC') - n * interval '1 hour', 400, 9, 9, 0, 9, 40, 0
FROM generate_series(1, 9000) n;
SET session_replication_role = DEFAULT"
ask "VACUUM ANALYZE"
[ "$(ask 'SELECT count(*) FROM attempt')" = "$ended" ] || { echo "the rows were not made" >&2; exit 1; }

"$docmill" web 2>"$work/log" &
pid=$!
for _ in $(seq 200); do
    address=$(sed -n 's/.*pages on http:\/\/\([0-9.:]*\)\/.*/\1/p' "$work/log" | head -1)
    [ -z "$address" ] || break
    sleep 0.1
done
[ -n "$address" ] || { cat "$work/log" >&2; exit 1; }

python3 - "$address" "$ended" <<'PY'
import hashlib, statistics, sys, time, urllib.error, urllib.request, uuid

address, ended = sys.argv[1], int(sys.argv[2])
name = lambda letter, n: uuid.UUID(hashlib.md5(f"{letter}{n}".encode()).hexdigest())
old, reviewed = name("i", ended // 2), name("d", 10000 + ended // 100 * 50)
digest = hashlib.sha256(str(ended // 2).encode()).hexdigest()[:12]
told = f"/documents?q=nowhere-to-be-found&cursor={name('d', 10000 + ended // 2)}"
rejected = f"/reviews/reject?of=documents&id={reviewed}"
pages = ["/overview", "/overview?period=month", "/ingestions", f"/ingestions?cursor={old}",
         "/ingestions?status=failed", "/ingestions?status=failed&reason=gate_refused", "/ingestions?tenant=tenant-3",
         "/ingestions?tenant=nobody", "/ingestions/change?of=matching&status=failed&reason=gate_refused",
         "/ingestions/export?of=waiting", f"/ingestions/{old}", f"/documents?q={digest}", f"/documents?q={old}",
         "/documents?q=march", "/documents?q=R-4711", "/documents?q=nowhere-to-be-found", "/documents?by=key&q=r-4711",
         "/documents?by=key&q=Supplier", "/documents?by=key&q=8123", "/reviews", "/reviews?order=amount",
         f"/reviews?cursor={reviewed}", "/reviews?tenant=tenant-0", f"/reviews/{reviewed}", "/reviews/reject?of=waiting",
         rejected, "/upload", "/pauses", "/quality", "/webhooks", "/webhooks?target=erp", "/companies", "/kinds",
         "/kinds/invoice", "/kinds/invoice/draft", "/people", "/audit", "/audit?who=web:nobody", "/api-reference",
         "/api/v1/ingestions?limit=200", told]
slow = []
print(f"{'page':60} {'median':>9} {'longest':>9}")
for page in pages:
    times = []
    for _ in range(9):
        begun = time.monotonic()
        try:
            urllib.request.urlopen(f"http://{address}{page}", timeout=30).read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{page}: {error}")
        times.append(time.monotonic() - begun)
    median, longest = statistics.median(times) * 1000, max(times) * 1000
    print(f"{page[:60]:60} {median:6.0f} ms {longest:6.0f} ms")
    if median > 300 and page != told:
        slow.append(page)
if slow:
    sys.exit(f"slower than 300 ms: {', '.join(slow)}")
PY
