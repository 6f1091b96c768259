"""Attacks by messages, objects and requests. See reading.py for how an attack says what it saw."""

import socket
import threading
import time

import files
from reading import demand
from world import World, psql, wait_until


def archived_object():
    """Objects that may not be read end as missing, and good documents do not wait for them."""
    world = World(RETRY__MISSING_DELAY="2s", RETRY__BASE_DELAY="1s")
    try:
        worker = world.start_worker()
        bad = [world.hand_in(files.invoice(f"B-{at}"), StorageClass="GLACIER") for at in range(20)]
        slowest = 0.0
        for at in range(10):
            good = world.hand_in(files.invoice(f"G-{at}"))
            left, took = world.wait_for_end([good], 60)
            demand(not left, "a good document did not end within 60 s")
            slowest = max(slowest, took)
        left, took = world.wait_for_end(bad, 180)
        ends = world.sql("SELECT DISTINCT COALESCE(reason, status) FROM ingestion WHERE reason IS NOT NULL")
        paused = worker.text().count("intake paused")
        seen = f"20 archived: {left} open after {took:.0f} s, reasons {ends.split()}, good ones {slowest:.1f} s at most, intake paused {paused} times"
        demand(left == 0 and slowest < 15 and paused == 0, seen)
        return seen
    finally:
        world.close()


def group_of_unknown():
    """A body of unknown ids stops nobody."""
    world = World()
    try:
        world.start_worker()
        seen = []
        for count in (100, 600, 6500):
            world.send(files.group_of_unknown(count))
            time.sleep(5)
            good = world.hand_in(files.invoice(f"G-{count}"))
            left, took = world.wait_for_end([good], 90)
            seen.append(f"{count} ids: good document after {took:.1f} s")
            demand(not left and took < 30, "; ".join(seen))
        kept = world.sql("SELECT count(*) FROM quarantined_message")
        seen.append(f"{kept} quarantined")
        demand(int(kept) >= 2, "; ".join(seen))
        return "; ".join(seen)
    finally:
        world.close()


def forged_event():
    """An event that names another version than the object's does nothing."""
    world = World()
    world.settings["STORE__ALLOW"] = f"{world.bucket}/documents/"
    try:
        world.start_worker()
        key = "documents/victim.pdf"

        def upload(number, sequencer):
            put = world.s3.put_object(Bucket=world.bucket, Key=key, Body=files.invoice(number))
            entity = {"key": key, "eTag": put["ETag"].strip('"'), "size": 1, "sequencer": sequencer}
            world.send(files.event(world.bucket, entity))

        world.run("pause", "all")
        upload("F-22", "0055AED6DCD90281E5")
        wait_until(30, lambda: world.sql("SELECT count(*) FROM ingestion") != "0")
        world.send(files.forged_event(world.bucket, key))
        time.sleep(5)
        world.run("resume", "all")
        first = "SELECT count(*) FROM ingestion WHERE status = 'completed'"
        wait_until(60, lambda: world.sql(first) != "0")
        upload("F-23", "0055AED6DCD90281F7")
        wait_until(60, lambda: world.sql(first) == "2")
        rows = world.sql("SELECT status || '/' || COALESCE(reason, '') FROM ingestion ORDER BY created_at").split()
        demand(world.sql(first) == "2", f"rows: {rows}")
        return f"rows: {rows}"
    finally:
        world.close()


def idle_sockets():
    """Sockets that say nothing and floods of probes cost the worker's documents nothing."""
    world = World()
    sockets = []
    try:
        worker = world.start_worker()
        host, port = world.address.split(":")
        for _ in range(2000):
            one = socket.socket()
            one.settimeout(0.2)
            try:
                one.connect((host, int(port)))
                one.send(b"GET / HTTP/1.1\r\n")
            except OSError:
                one.close()
                continue
            sockets.append(one)
        good = [world.hand_in(files.invoice(f"G-{at}")) for at in range(30)]
        left, took = world.wait_for_end(good, 90)
        seen = f"{len(sockets)} sockets: {30 - left} of 30 documents after {took:.0f} s"
        demand(left == 0, seen)
        closed, after = wait_until(30, lambda: is_closed(sockets[0]))
        seen += f", the first idle one closed: {closed}"
        demand(closed, seen)
        for one in sockets:
            one.close()
        ready, after = wait_until(30, lambda: world.get("/readyz") == 200)
        demand(ready, seen + ", /readyz does not come back")
        answered = flood(world, "/readyz", 10)
        seen += f", /readyz {answered} times in 10 s"
        demand(worker.process.poll() is None, seen + ", the worker is gone")
        return seen
    finally:
        for one in sockets:
            one.close()
        world.close()


def is_closed(one):
    try:
        one.settimeout(0.2)
        return one.recv(1024) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def flood(world, path, seconds):
    until, answered = time.monotonic() + seconds, []

    def ask():
        while time.monotonic() < until:
            if world.get(path) == 200:
                answered.append(1)

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answered)


def erase_through_an_alias():
    """Erasing one tenant deletes nothing of another's, whatever its rows name."""
    world = World()
    try:
        original, transcript = "documents/x.pdf", "ingestions/one/transcript.json"
        world.s3.put_object(Bucket=world.bucket, Key=original, Body=files.invoice("A-1"))
        world.s3.put_object(Bucket=world.bucket, Key=transcript, Body=b"{}")
        insert = (
            "INSERT INTO document (id, file_path, tenant) VALUES ('{d}', '{path}', '{tenant}');"
            "INSERT INTO ingestion (id, document_id, tenant, transcription_file_path) "
            "VALUES ('{i}', '{d}', '{tenant}', '{transcript}')"
        )
        one, two = "00000000-0000-4000-8000-00000000000{}", "00000000-0000-4000-9000-00000000000{}"
        world.sql(insert.format(d=one.format(1), i=two.format(1), path=original, tenant="a", transcript=transcript))
        alias = f"s3://{world.bucket}/{original}"
        refused = world.sql(insert.format(d=one.format(2), i=two.format(2), path=alias, tenant="b", transcript=transcript), check=False)
        world.run("erase", "--tenant", "b", check=False)
        listed = world.s3.list_objects_v2(Bucket=world.bucket)
        kept = {entry["Key"] for entry in listed.get("Contents", [])}
        seen = f"kept {sorted(kept)}; the row: {refused.splitlines()[:1] or 'taken'}"
        demand({original, transcript} <= kept, seen)
        return seen
    finally:
        world.close()


def search_path():
    """A login of the worker's role deletes no document through a temporary table."""
    world = World()
    try:
        login = f"attacker_{world.database[-8:]}"
        document = "00000000-0000-4000-8000-000000000009"
        world.sql(f"CREATE ROLE {login} LOGIN IN ROLE docmill_worker;"
                  f"INSERT INTO document (id, file_path, tenant) VALUES ('{document}', 'documents/v.pdf', 'victim')")
        as_worker = world.database.replace("postgres@", f"{login}@", 1)
        told = psql(as_worker, "CREATE TEMP TABLE tenant_retention(tenant text, days int);"
                    "INSERT INTO tenant_retention VALUES ('victim', -36500);"
                    f"SELECT erase_expired(ARRAY['{document}'::uuid])", check=False)
        rights = {
            what: "denied" if "denied" in psql(as_worker, statement, check=False) else "ALLOWED"
            for what, statement in {
                "UPDATE operator_action": "UPDATE operator_action SET action = 'x'",
                "DELETE pause": "DELETE FROM pause",
                "DELETE blocked_content": "DELETE FROM blocked_content",
                "DELETE document": "DELETE FROM document",
            }.items()
        }
        kept = world.sql("SELECT count(*) FROM document")
        world.sql(f"DROP ROLE {login}", check=False)
        seen = f"documents left: {kept}; {rights}; {told.splitlines()[-1:]}"
        demand(kept == "1" and "ALLOWED" not in rights.values(), seen)
        return seen
    finally:
        world.close()


def secrets_in_errors():
    """A mistake in the settings never prints a secret."""
    world = World()
    try:
        leak = world.home / "leak.toml"
        leak.write_text(files.LEAKING_SETTINGS)
        outputs = [
            world.run("config", "check", "--config", str(leak), check=False),
            world.run("config", "check", check=False, DATABASE="postgres://u:SECRETMARK@h/d"),
            world.run("worker", "--config", str(leak), check=False),
            world.run("config", "show", check=False, STORE__ENDPOINT="http://u:SECRETMARK@127.0.0.1:1",
                      QUEUE__ENDPOINT="http://u:SECRETMARK@127.0.0.1:1",
                      TELEMETRY__OTLP_ENDPOINT="http://u:SECRETMARK@127.0.0.1:1"),
        ]
        counts = [output.count("SECRETMARK") for output in outputs]
        demand(not any(counts), f"printed so many times: {counts}")
        demand(all(outputs), "one of them said nothing at all")
        return f"printed so many times: {counts}"
    finally:
        world.close()


def escape_sequences():
    """Names given by strangers reach no terminal raw."""
    world = World()
    try:
        ingestion = world.hand_in(files.invoice("E-1"))
        evil = "E'\\x1b]52;c;ZXZpbA==\\x07a\\u009b31m.pdf'"
        world.sql(f"UPDATE document SET original_name = {evil}")
        named = world.home / "a\x1b]52;c;ZXZpbA==\x07.pdf"
        named.write_bytes(files.invoice("E-2"))
        commands = [("status", ingestion), ("list",), ("search", "a"), ("manifest",),
                    ("status", ingestion, "--json"), ("process", str(named)), ("process", str(named), "--json")]
        raw = []
        for command in commands:
            output = world.run(*command, check=False)
            demand(output.strip(), f"{command} said nothing")
            if any(mark in output for mark in ("\x1b]", "\x07", "\x9b")):
                raw.append(" ".join(command[:1] + command[2:]))
        demand(not raw, f"raw in {raw}")
        return f"{len(commands)} commands, none raw"
    finally:
        world.close()
