#!/usr/bin/env bash
# Asks the interface for programs for what its served description allows, and for what it does not:
#   scripts/api_contract.sh [EXAMPLES] [SEED]      default 50 1; exit code 1 if an answer is not as described
# By schemathesis (scripts/api-contract-requirements.txt), with the token of each role, over a private
# Postgres with some ingestions; queue and store are folders.
set -euo pipefail
cd "$(dirname "$0")/.."
home=target/tools/api-contract
if [ -z "${DOCMILL_TEST_DATABASE_URL:-}" ]; then
    scripts/environment.sh $home scripts/api-contract-requirements.txt
    [ -n "${DOCMILL:-}" ] || cargo build --locked --quiet --workspace --bins
    exec scripts/with_postgres.sh "$0" "$@"
fi
examples=${1:-50} seed=${2:-1}
docmill=${DOCMILL:-target/debug/docmill}
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/store" "$work/queue"
roles="viewer producer reviewer operator"
{
    printf '[database]\nurl = "%s"\n' "$DOCMILL_TEST_DATABASE_URL"
    printf '[queue]\nbackend = "folder"\npath = "%s/queue"\n' "$work"
    printf '[store]\nbackend = "folder"\npath = "%s/store"\n' "$work"
    printf '[web]\naddress = "127.0.0.1:0"\n'
    for role in $roles; do
        made=$("$docmill" web --new-token --json)
        python3 -c 'import json, sys; print(json.loads(sys.argv[1])["token"])' "$made" >"$work/$role"
        hash=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["sha256"])' "$made")
        printf '[[web.tokens]]\nname = "%s"\nrole = "%s"\nsha256 = "%s"\n' "$role" "$role" "$hash"
    done
} >"$work/docmill.toml"
"$docmill" migrate --config "$work/docmill.toml" >/dev/null
"$docmill" web --config "$work/docmill.toml" 2>"$work/log" &
pid=$!
for _ in $(seq 200); do
    address=$(sed -n 's/.*pages on http:\/\/\([0-9.:]*\)\/.*/\1/p' "$work/log" | head -1)
    [ -z "$address" ] || break
    sleep 0.1
done
[ -n "$address" ] || { cat "$work/log" >&2; exit 1; }
api="http://$address/api/v1"
# All but one have ended: whoever waits for the end of one of these (wait=20) is answered at once.
for file in samples/invoice_*.pdf; do
    made=$(curl --silent --show-error --fail --data-binary "@$file" \
        --header "Authorization: Bearer $(cat "$work/producer")" "$api/documents?name=a.pdf")
    id=$(python3 -c 'import json, sys; print(json.loads(sys.argv[1])["ingestion_id"])' "$made")
    first=${first:-$id}
    [ "$id" != "$first" ] || continue
    curl --silent --show-error --fail --output /dev/null --request POST \
        --header "Authorization: Bearer $(cat "$work/operator")" "$api/ingestions/$id/cancel"
done

failed=
for role in $roles; do
    echo "== $role"
    # Who waits for the end of the one that is open is answered after 20 s at most.
    # Each request is answered alone on its connection; more at once than uploads have places get 503.
    "$home/bin/schemathesis" --config-file scripts/api_contract.toml run "$api/openapi.json" \
        --header "Authorization: Bearer $(cat "$work/$role")" --checks all \
        --max-examples "$examples" --seed "$seed" --workers 1 --request-timeout 60 \
        --max-response-time 40 --no-color \
        --generation-database none || failed="$failed $role"
done
if grep -q "panicked" "$work/log"; then
    echo "docmill web panicked:" >&2
    grep "panicked" "$work/log" >&2
    exit 1
fi
[ -z "$failed" ] || { echo "not as described:$failed" >&2; exit 1; }
