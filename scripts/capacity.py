#!/usr/bin/env python3
"""What a document costs a worker, by what sort it is: CPU seconds, and the memory of its largest
process. The figures of docs/capacity.md come from here.

    capacity.py DOCMILL SAMPLES [COUNT]

Runs `docmill dev` over COUNT (40) documents of each sort, all different by a few bytes at their end,
that no reader looks at. CPU time is the worker's with its page processes, its start included; the
private Postgres is not part of it. CPU seconds hardly change with what else the machine does; the
rate does. Standard library only.
"""

import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

SORTS = [
    ("e-invoice", "einvoice_facturx.pdf"),
    ("digital PDF, 1 page", "invoice_en.pdf"),
    ("scan, 1 page", "scan_skewed.pdf"),
    ("phone photo", "photo.jpg"),
]
# A sort with nothing to do, for what a start costs.
START = 1


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def variants(sample, count, folder):
    content = sample.read_bytes()
    for number in range(count):
        place = folder / f"{number:04}-{sample.name}"
        place.write_bytes(content + b"\n%" + str(number).encode())
        yield place


def run(docmill, documents, folder):
    """CPU seconds, wall seconds and how many were completed."""
    before, started = used(), time.monotonic()
    done = subprocess.run(
        [docmill, "dev", "--data", str(folder / "data"), "--fresh", "--json", *map(str, documents)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    completed = done.stdout.replace(" ", "").count('"status":"completed"')
    return used() - before, time.monotonic() - started, completed


def main(docmill, samples, count="40"):
    print(f"{'sort':22} {'documents':>9} {'CPU s each':>10} {'a core, an hour':>15}")
    for name, file in SORTS:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="docmill-capacity-"))
        try:
            sample = pathlib.Path(samples) / file
            few = list(variants(sample, START, folder))
            base, _, _ = run(docmill, few, folder)
            many = list(variants(sample, int(count) + START, folder))
            all_of_it, _, completed = run(docmill, many, folder)
            if completed != len(many):
                sys.exit(f"{name}: {completed} of {len(many)} were completed")
            each = (all_of_it - base) / int(count)
            print(f"{name:22} {count:>9} {each:10.2f} {3600 / each:15.0f}", flush=True)
        finally:
            shutil.rmtree(folder)
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"largest process: {largest / 1000:.0f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
