#!/usr/bin/env python3
"""Draws the pages, runs both sides in turn and prints them. Run by reading_speed.sh."""

import concurrent.futures
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from reading_peers import INSTALLED, LANGUAGES, mean, recall

ENVIRONMENT = dict(os.environ, OMP_THREAD_LIMIT="1")
ALL = "+".join(name for name in LANGUAGES.values() if name in INSTALLED)


def draw(samples, folder, count):
    """First pages as images, and their text."""
    for name in ("clean", "clean-truth", "degraded", "degraded-truth"):
        (folder / name).mkdir()
    drawn = 0
    for pdf in sorted(samples.glob("invoices/*.pdf")):
        if drawn == count:
            break
        text = subprocess.run(["pdftotext", "-l", "1", pdf, "-"], stdout=subprocess.PIPE).stdout
        if len(text.split()) < 50:
            continue
        target = folder / "clean" / pdf.stem
        subprocess.run(["pdftoppm", "-r", "300", "-gray", "-l", "1", "-singlefile", "-png", pdf, target],
                       check=True)
        (folder / "clean-truth" / f"{pdf.stem}.txt").write_bytes(text)
        drawn += 1
    for scan in sorted(samples.glob("scans/deg_*")):
        truth = samples / "scans" / "truth" / f"{scan.stem}.txt"
        # Bare Tesseract reads no PDF, and the same images are the point.
        if scan.suffix == ".pdf" or not truth.exists():
            continue
        shutil.copy(scan, folder / "degraded" / scan.name)
        shutil.copy(truth, folder / "degraded-truth" / truth.name)


def bare(images, out, languages):
    """One process per page, as many at once as there are cores."""
    out.mkdir()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()

    def one(image):
        command = ["tesseract", image, out / image.stem, "--psm", "3", "-l", languages]
        subprocess.run(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, images))
    seconds = time.monotonic() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"pages": len(images), "seconds": seconds, "cpu_seconds": cpu}


def tesseract_alone(images, out, languages):
    return ours("tesseract", images, out, languages)


def neural_alone(images, out, languages):
    return ours("neural", images, out, languages)


def both_readers(images, out, languages):
    return ours("both", images, out, languages)


def ours(readers, images, out, languages):
    command = ["scripts/bench.sh", "reading", "speed", readers, images[0].parent, out, *languages]
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def score(out, truths):
    def read(truth):
        path = out / truth.name
        return path.read_text("utf-8", "replace") if path.exists() else ""

    return mean(recall(truth.read_text("utf-8", "replace"), read(truth)) for truth in truths)


def main():
    samples = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 24
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        draw(samples, folder, count)
        print(f"{'pages':<10}{'reader':<28}{'pages/s':>9}{'CPU s/page':>12}{'recall':>8}"
              f"{'CPU outside reading':>21}{'pages/s to eng':>17}{'CPU to eng':>13}")
        for kind in ("clean", "degraded"):
            images = sorted((folder / kind).iterdir())
            truths = sorted((folder / f"{kind}-truth").iterdir())
            base = None
            for title, run, languages in [
                ("tesseract eng", bare, "eng"),
                ("docmill eng", tesseract_alone, ["eng"]),
                ("tesseract " + ALL, bare, ALL),
                ("docmill, languages chosen", tesseract_alone, []),
                ("neural alone", neural_alone, []),
                ("both readers", both_readers, []),
            ]:
                out = folder / f"{kind}-{title.split(',')[0].replace(' ', '-')}"
                figures = run(images, out, languages)
                speed = figures["pages"] / figures["seconds"]
                cpu = figures["cpu_seconds"] / figures["pages"]
                if run is bare:
                    base = base or (speed, cpu)
                    beside = ""
                else:
                    outside = figures.get("cpu_share_outside_recognition")
                    share = "" if outside is None else f"{outside:.1%}"
                    beside = f"{share:>20} {speed / base[0]:>16.2f} {cpu / base[1]:>12.2f}"
                print(f"{kind:<10}{title:<28}{speed:>9.3f}{cpu:>12.2f}"
                      f"{score(out, truths):>8.3f}{beside}", flush=True)


if __name__ == "__main__":
    main()
