#!/usr/bin/env bash
# Checks of the Python client without a service: mypy --strict over it, a wheel of it that
# brings its types, and its example as a user's program type-checked against that wheel, in an
# environment of pinned packages. tests/it/web/clients.rs runs it against the service.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=target/tools/python-client
scripts/environment.sh "$tools" clients/python/requirements-checks.txt
work=$(mktemp -d "${TMPDIR:-/tmp}/docmill-python-client.XXXXXX")
trap 'rm -rf "$work"' EXIT
cp -r clients/python/. "$work/source"
"$tools/bin/mypy" --config-file "$work/source/pyproject.toml" --cache-dir "$work/cache" "$work/source/src"
"$tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir "$work" "$work/source"
"$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall \
    "$work"/docmill_api-*.whl
sed -n '/^```python$/,/^```$/{/^```/!p}' docs/guides/clients.md >"$work/example.py"
[ -s "$work/example.py" ] || { echo "docs/guides/clients.md has no example in Python" >&2; exit 1; }
(cd "$work" && "$OLDPWD/$tools/bin/mypy" --strict --cache-dir "$work/cache" example.py)
