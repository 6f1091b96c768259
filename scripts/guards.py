"""Takes guards out, one at a time, and says whether the tests that state them fall.

Called by scripts/guards.sh, which brings a Postgres. tests/guards/*.toml say of each guard in which
file it stands, by which text, what the text is without it, and which tests have to fall. All of them
are written into one copy of the sources (target/guards/copy), each behind a condition that holds only
while it is taken out, so that one build serves all: `$OUT` in a text stands for that condition, in Rust
a look at the variable DOCMILL_GUARD_OUT, in SQL one at a setting of the session. The copy is built
once, every test is run once with all guards in force, and then the tests of each guard without it.
The product's own sources know nothing of any of this.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "target" / "guards"
COPY = WORK / "copy"
BUILD = WORK / "build"
VARIABLE = "DOCMILL_GUARD_OUT"
SETTING = "docmill.guard_out"
# Guards that are tried beside each other.
TOGETHER = 2


def read_guards():
    """All guards, in the order of their files."""
    guards = []
    for file in sorted((ROOT / "tests" / "guards").glob("*.toml")):
        guards += tomllib.loads(file.read_text())["guard"]
    names = [guard["name"] for guard in guards]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        sys.exit(f"these guards have one name: {', '.join(twice)}")
    return guards


def condition(guard, in_sql):
    """The condition that replaces the guard while it is taken out."""
    name = guard["name"]
    if in_sql:
        return f"(COALESCE(current_setting('{SETTING}', true), '') = '{name}')"
    return f'(std::env::var("{VARIABLE}").is_ok_and(|out| out == "{name}"))'


def plan_changes(guards):
    """For each file that has guards: where which text gives way to which other."""
    changes, wrong = {}, []
    for guard in guards:
        if not any("$OUT" in change["without"] for change in guard["change"]):
            wrong.append(f"{guard['name']}: it is out at all times, for want of $OUT")
        for change in guard["change"]:
            text = (ROOT / change["file"]).read_text()
            found = text.count(change["find"])
            if found != 1:
                wrong.append(f"{guard['name']}: its text is {found} times in {change['file']}")
                continue
            start = text.index(change["find"])
            in_sql = change["file"].endswith(".sql") or change.get("sql", False)
            without = change["without"].replace("$OUT", condition(guard, in_sql))
            place = (start, start + len(change["find"]), without, guard["name"])
            changes.setdefault(change["file"], []).append(place)
    for file, places in changes.items():
        places.sort()
        for (_, end, _, one), (start, _, _, other) in zip(places, places[1:]):
            if start < end:
                wrong.append(f"{one} and {other} want the same place of {file}")
    if wrong:
        sys.exit("\n".join(wrong))
    return changes


def write_copy(changes):
    """Brings the copy up to date; files that stay as they are keep their times."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for file in list(COPY.rglob("*")) if COPY.exists() else []:
        name = file.relative_to(COPY).as_posix()
        if file.is_file() and name not in wanted:
            file.unlink()
    for name in wanted:
        source, target = ROOT / name, COPY / name
        content = source.read_bytes()
        if name in changes:
            text = content.decode()
            for start, end, without, _ in reversed(changes[name]):
                text = text[:start] + without + text[end:]
            content = text.encode()
        if target.exists() and target.read_bytes() == content:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        shutil.copymode(source, target)


def migrate(url):
    """A database with the copy's schema, which the macros of sqlx ask; returns its address."""
    psql = shutil.which("psql") or sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql"))[-1]

    def run(address, *what, path="public"):
        options = f"-c search_path={path} -c client_min_messages=warning"
        subprocess.run([psql, "-q", "-v", "ON_ERROR_STOP=1", address, *what], check=True,
                       env={**os.environ, "PGOPTIONS": options}, stdout=subprocess.DEVNULL)

    run(url, "-c", "CREATE DATABASE guards_of_sql")
    address = url.rsplit("/", 1)[0] + "/guards_of_sql"
    run(address, "-c", "CREATE SCHEMA docmill", "-c",
        "CREATE TABLE docmill._sqlx_migrations (version bigint, success boolean)")
    for file in sorted((COPY / "migrations").glob("*.sql")):
        whole = [] if file.read_text().startswith("-- no-transaction") else ["--single-transaction"]
        run(address, *whole, "-f", str(file), path="docmill")
    return f"{address}?options=-csearch_path%3Ddocmill"


def seed_dependencies():
    """Copies compiled dependencies of an earlier build of the project, if there is one."""
    compiled, own = ROOT / "target" / "debug", BUILD / "debug"
    if own.exists() or not compiled.exists():
        return
    own.mkdir(parents=True)
    kept = ["--exclude=*docmill*", "--exclude=./incremental", "--exclude=./examples"]
    packed = subprocess.Popen(["tar", "-C", compiled, *kept, "-cf", "-", "."], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-C", own, "-xf", "-"], stdin=packed.stdout, check=True)
    if packed.wait() != 0:
        sys.exit(f"{compiled} cannot be read")


def build(url):
    """Compiles the copy with its tests; returns what nextest runs them by."""
    seed_dependencies()
    env = {**os.environ, "CARGO_TARGET_DIR": str(BUILD), "SQLX_OFFLINE": "false",
           "DATABASE_URL": url}
    subprocess.run(["cargo", "nextest", "run", "--locked", "--workspace", "--no-run"], cwd=COPY, env=env,
                   check=True)
    binaries, packages = WORK / "binaries.json", WORK / "packages.json"
    for file, command in [
        (binaries, ["cargo", "nextest", "list", "--locked", "--workspace", "--list-type",
                    "binaries-only", "--message-format", "json"]),
        (packages, ["cargo", "metadata", "--locked", "--format-version", "1"]),
    ]:
        done = subprocess.run(command, cwd=COPY, env=env, check=True, capture_output=True, text=True)
        json.loads(done.stdout)
        file.write_text(done.stdout)
    return ["--binaries-metadata", str(binaries), "--cargo-metadata", str(packages)]


def run_tests(built, tests, without, log):
    """Runs these tests; returns those that ran and those that fell, by their names."""
    wanted = " or ".join(f"test(/(^|::){test}$/)" for test in tests)
    env = {**os.environ, "NO_COLOR": "1", "CARGO_TARGET_DIR": str(BUILD)}
    env["DOCMILL_MOTO_SERVER"] = f"{ROOT}/target/tools/moto/bin/moto_server"
    if without:
        env |= {VARIABLE: without, "PGOPTIONS": f"-c {SETTING}={without}"}
    command = ["cargo", "nextest", "run", *built, "--profile", "guards", "--color", "never",
               "--status-level", "pass", "-E", wanted]
    with open(log, "w") as out:
        subprocess.run(command, cwd=COPY, env=env, stdout=out, stderr=subprocess.STDOUT)
    text = log.read_text(errors="replace").split("Summary [")[0]
    told = re.findall(
        r"^ *(PASS|FAIL|TIMEOUT|ABORT|SIG\w+|LEAK-FAIL|LEAK) \[[^\]]*\] (?:\([^)]*\) )?(\S+) (\S+)", text, re.M)
    ran = {name.rsplit("::", 1)[-1] for _, _, name in told}
    fell = {name.rsplit("::", 1)[-1] for how, _, name in told if how not in ("PASS", "LEAK")}
    return ran, fell


def try_guard(built, guard):
    """Runs the tests of a guard without it; returns those that did not fall."""
    _, fell = run_tests(built, guard["tests"], guard["name"], WORK / "logs" / f"{guard['name']}.log")
    return [test for test in guard["tests"] if test not in fell]


def main():
    guards = read_guards()
    changes = plan_changes(guards)
    named = sys.argv[1:]
    if named == ["--check"]:
        print(f"{len(guards)} guards are where the list says")
        return
    unknown = sorted(set(named) - {guard["name"] for guard in guards})
    if unknown:
        sys.exit(f"no such guard: {', '.join(unknown)}")
    tried = [guard for guard in guards if not named or guard["name"] in named]
    write_copy(changes)
    url = os.environ["DOCMILL_TEST_DATABASE_URL"]
    built = build(migrate(url))
    (WORK / "logs").mkdir(exist_ok=True)
    tests = sorted({test for guard in tried for test in guard["tests"]})
    log = WORK / "logs" / "all_in_force.log"
    ran, fell = run_tests(built, tests, None, log)
    if fell or set(tests) - ran:
        for test in sorted(set(tests) - ran):
            print(f"no such test: {test}")
        for test in sorted(fell):
            print(f"falls with every guard in force: {test}")
        sys.exit(f"see {log}")
    began = time.monotonic()
    survived = 0
    with concurrent.futures.ThreadPoolExecutor(TOGETHER) as pool:
        for guard, left in zip(tried, pool.map(lambda guard: try_guard(built, guard), tried)):
            survived += bool(left)
            verdict = "NOT NOTICED by" if left else "fell:"
            words = left or guard["tests"]
            print(f"{guard['name']:<34} {verdict} {', '.join(words)}", flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(tried)} guards, {survived} not noticed, {minutes:.1f} min")
    sys.exit(1 if survived else 0)


main()
