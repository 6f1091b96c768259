#!/usr/bin/env python3
"""Cost of a document for a worker, by sort: CPU seconds, and the memory of its largest
process. The figures of docs/guides/capacity.md come from here.

    capacity.py DOCMILL SAMPLES

Runs `docmill eval` over documents of each sort, all different by a few bytes at their end that no
reader looks at; without database and queue, which `scripts/orchestration.sh` measures. CPU time is
that of the program and its page processes, less what a run over one document costs. CPU seconds
hardly change with what else the machine does; a rate would. Standard library only.
"""

import ctypes
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

# The quick ones by the hundred, or a start's noise would hide them.
SORTS = [
    ("e-invoice (PDF)", "einvoice_facturx.pdf", 300),
    ("digital PDF, 1 page", "invoice_en.pdf", 300),
    ("scan, 1 page", "scan_skewed.pdf", 20),
    ("phone photo", "photo.jpg", 20),
]
PR_SET_CHILD_SUBREAPER = 36


def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def variants(sample, count, folder):
    content = sample.read_bytes()
    for number in range(count):
        place = folder / f"{number:04}-{sample.name}"
        place.write_bytes(content + b"\n%" + str(number).encode())
        yield place


def adopt_orphans():
    """Page processes outlive the program that started them; their time is ours to count."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap():
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def cost(docmill, sample, count):
    """CPU seconds of a run over so many documents."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="docmill-capacity-"))
    try:
        (folder / "truth").mkdir()
        for document in variants(sample, count, folder):
            (folder / "truth" / f"{document.stem}.json").write_text('{"currency": null}')
        before = used()
        done = subprocess.run([docmill, "eval", folder, "--json"], stdout=subprocess.PIPE, text=True)
        reap()
        read = json.loads(done.stdout)["all"]["completed"]
        if read != count:
            sys.exit(f"{sample.name}: {read} of {count} were completed")
        return used() - before
    finally:
        shutil.rmtree(folder)


def main(docmill, samples):
    adopt_orphans()
    print(f"{'sort':22} {'documents':>9} {'CPU s each':>10} {'a core, an hour':>15}")
    for name, file, count in SORTS:
        sample = pathlib.Path(samples) / file
        each = (cost(docmill, sample, count + 1) - cost(docmill, sample, 1)) / count
        print(f"{name:22} {count:>9} {each:10.3f} {3600 / each:15.0f}", flush=True)
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"largest process: {largest / 1000:.0f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
