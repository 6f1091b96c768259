#!/usr/bin/env python3
"""Hostile documents and good ones through one worker; see hostile.sh.

    hostile.py DIR DOCMILL

EXPECT.tsv: file, class, expected answers; of these `ok` is read to the end (completed, refused by
the gate, or flagged), `ok_empty` no text, `review` either of them for a person, `error:CODE` that
reason; `ok;field=value` names a value that a completed document must have. Files that are refused before
their submission, because they are no documents, are answered by `docmill process`. Linux, standard
library only.
"""

import collections
import csv
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

GOOD = 20
MAX_RUN_SECONDS = 1800


def invoice(number):
    """A PDF of one page with a text layer."""
    rows = [
        (60, 60, "Northwind Paper Ltd"),
        (60, 76, "12 Mill Lane, Leeds LS1 4AB"),
        (60, 92, "VAT registration: GB980780684"),
        (60, 140, "INVOICE"),
        (60, 164, f"Invoice number: GOOD-{number}"),
        (60, 180, "Invoice date: 2026-03-14"),
        (60, 196, "Due date: 2026-04-13"),
        (60, 240, "Description"),
        (300, 240, "Quantity"),
        (380, 240, "Unit price"),
        (480, 240, "Amount"),
        (60, 258, "Copy paper A4, box"),
        (300, 258, "4"),
        (380, 258, "25.00"),
        (480, 258, "100.00"),
        (380, 300, "Subtotal"),
        (480, 300, "GBP 100.00"),
        (380, 316, "VAT 20%"),
        (480, 316, "GBP 20.00"),
        (380, 332, "Total"),
        (480, 332, "GBP 120.00"),
    ]
    text = "".join(f"BT /F1 10 Tf {x} {842 - y} Td ({words}) Tj ET\n" for x, y, words in rows)
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R"
        "/Resources<</Font<</F1 5 0 R>>>>>>",
        f"<</Length {len(text)}>>\nstream\n{text}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, offsets = "%PDF-1.7\n", []
    for index, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{index} 0 obj\n{body}\nendobj\n"
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    out += "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    out += f"trailer\n<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n"
    return out.encode()


class Watch(threading.Thread):
    """Notes the memory of the worker and of its page processes until told to stop."""

    def __init__(self, worker):
        super().__init__(daemon=True)
        self.worker, self.over = worker, threading.Event()
        self.peak = {"worker": 0, "page processes": 0, "together": 0}
        self.cells = set()

    def run(self):
        while not self.over.wait(0.05):
            worker, cells = resident(self.worker), 0
            for pid in children(self.worker):
                if b"page-process" in read(f"/proc/{pid}/cmdline"):
                    self.cells.add(pid)
                    cells += resident(pid) + sum(map(resident, children(pid)))
            seen = {"worker": worker, "page processes": cells, "together": worker + cells}
            for what, kib in seen.items():
                self.peak[what] = max(self.peak[what], kib)


def read(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        return b""


def resident(pid):
    found = re.search(rb"VmRSS:\s*(\d+) kB", read(f"/proc/{pid}/status"))
    return int(found[1]) if found else 0


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        found += read(task).split()
    return [int(child) for child in found]


def mebibytes(text):
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
    return int(number) * {"": 1 / 2**20, "KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[unit]


def budget(docmill):
    """The memory that the configuration allows: documents here and in the page process, a page per core."""
    shown = subprocess.run([docmill, "config", "show", "--json"], capture_output=True, text=True)
    settings = json.loads(shown.stdout)
    pages = mebibytes(settings["cpu"]["page_memory"]) * (os.cpu_count() or 1)
    return 2 * mebibytes(settings["limits"]["documents_in_memory"]) + pages + 1024


def fits(end, expected):
    """Whether the end is among the expected ones."""
    reason, status = end.get("reason"), end.get("status")
    read_to_the_end = status == "completed" or reason == "gate_refused"
    for one in expected.split("|"):
        answer, *fields = one.split(";")
        if answer == "ok" and read_to_the_end and all(has(end, field) for field in fields):
            return True
        if answer == "ok_empty" and reason == "no_text":
            return True
        if answer == "review" and (reason in ("gate_refused", "no_text") or end.get("review_reasons")):
            return True
        if answer == f"error:{reason}":
            return True
    return False


def has(end, field):
    name, value = field.split("=")
    if end["status"] != "completed":
        return True
    got = end.get({"supplier_name": "supplier", "invoice_number": "number"}.get(name, name))
    try:
        return abs(float(got) - float(value)) < 0.005
    except (TypeError, ValueError):
        return str(got).casefold() == value.casefold()


def run(docmill, data, files):
    """The ends by path, the log, the watch, and the exit code."""
    command = [docmill, "dev", "--data", str(data / "data"), "--fresh", "--json", *map(str, files)]
    environment = dict(os.environ, DOCMILL_LOG="warn,docmill=info")
    with open(data / "log", "w+b") as log, open(data / "ends.json", "w+b") as ends:
        worker = subprocess.Popen(command, stdout=ends, stderr=log, env=environment)
        watch = Watch(worker.pid)
        watch.start()
        code = worker.wait(MAX_RUN_SECONDS)
        watch.over.set()
        watch.join()
    found = json.loads((data / "ends.json").read_text() or "[]")
    return {end["file"]: end for end in found}, (data / "log").read_text(errors="replace"), watch, code


def at_the_door(docmill, file):
    """The answer to a file that is not handed in."""
    done = subprocess.run([docmill, "process", "--json", str(file)], capture_output=True, text=True)
    return json.loads(done.stdout)


def main(folder, docmill):
    folder, data = pathlib.Path(folder), pathlib.Path("target/hostile").resolve()
    (data / "good").mkdir(parents=True, exist_ok=True)
    good = []
    for number in range(GOOD):
        good.append(data / "good" / f"good_{number}.pdf")
        good[-1].write_bytes(invoice(number))
    with open(folder / "EXPECT.tsv", encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    files = [folder / row["file"] for row in rows] + good
    random.Random(1).shuffle(files)

    started = time.monotonic()
    ends, log, watch, code = run(docmill, data, files)
    took = time.monotonic() - started
    attempts = collections.Counter(re.findall(r"ingestion (\S+) ended its attempt", log))

    wrong, may, read_anyway, otherwise, turned_away = [], 0, 0, [], []
    for row in rows:
        end = ends.get(str(folder / row["file"]), {"status": "never ended"})
        if end["status"] == "refused":
            turned_away.append(row["file"])
            end = at_the_door(docmill, folder / row["file"])
        if not fits(end, row["expect"]):
            wrong.append(f"{row['file']}: {end['status']} {end.get('reason')}, not {row['expect']}")
        answers = {one.split(";")[0].split(":")[0] for one in row["expect"].split("|")}
        if {"ok", "error"} <= answers:
            may += 1
            if end["status"] == "completed" or end.get("reason") == "gate_refused":
                read_anyway += 1
            else:
                otherwise.append(f"{row['file']}: {end.get('reason')} ({end.get('detail')})")
    for file in good:
        end = ends.get(str(file), {"status": "never ended"})
        tries = attempts[end.get("ingestion_id")]
        if end["status"] != "completed" or tries != 1:
            wrong.append(f"{file.name}: {end['status']} {end.get('reason')} after {tries} attempts")

    allowed = budget(docmill)
    peaks = ", ".join(f"{what} {kib // 1024} MiB" for what, kib in watch.peak.items())
    print(f"{len(files)} documents in {took:.0f} s by one worker (pid {watch.worker})")
    print(f"peak memory: {peaks}; allowed {allowed:.0f} MiB")
    deaths = [line for line in log.splitlines() if " died (" in line]
    print(f"page processes: {len(watch.cells)} seen, {len(deaths)} died")
    print(f"not handed in, being no documents: {', '.join(turned_away) or 'none'}")
    print(f"of {may} that may be read or refused, {read_anyway} were read; the others:")
    print("".join(f"  {line}\n" for line in otherwise), end="")
    if watch.peak["together"] > allowed * 1024:
        wrong.append("more memory than the configuration allows")
    if code < 0:
        wrong.append(f"the worker died of signal {-code}")
    again = {tried for tried, count in attempts.items() if count > 1}
    for end in ends.values():
        if end.get("ingestion_id") in again:
            print(f"tried more than once: {end['file']}: {end['reason']}")
    print("\n".join(wrong) if wrong else "every answer is as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: hostile.py DIR DOCMILL")
    sys.exit(main(sys.argv[1], sys.argv[2]))
