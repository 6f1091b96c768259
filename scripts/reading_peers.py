#!/usr/bin/env python3
"""Word recall and precision of several readers on the same scans, by kind. Run by reading_peers.sh.

Words: NFKC, case-folded, longer than one letter, compared as multisets. Every reader gets one
core per file (OMP_THREAD_LIMIT=1) and as many files at once as there are cores.
"""

import collections
import concurrent.futures
import csv
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata

LANGUAGES = {"en": "eng", "de": "deu", "fr": "fra", "nl": "nld", "es": "spa"}
ENVIRONMENT = dict(os.environ, OMP_THREAD_LIMIT="1")
MAX_WAIT_SECONDS = 600


# CPU seconds of what this thread has run for the file at hand.
SPENT = threading.local()

# Runs a program and waits for all that it has started and left behind, whose time would count for
# nobody otherwise: a page process may outlive the one that read with it for a moment. The first
# argument: where the CPU seconds of all of them go.
WAITER = """
import ctypes, os, resource, subprocess, sys
if sys.platform == "linux":
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
subprocess.run(sys.argv[2:])
try:
    while True:
        os.wait()
except ChildProcessError:
    pass
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
open(sys.argv[1], "w").write(str(spent.ru_utime + spent.ru_stime))
"""


def run(*command, **variables):
    """The output of a program; its CPU time and that of its children is added to SPENT."""
    with tempfile.TemporaryFile() as text, tempfile.NamedTemporaryFile("r") as spent:
        started = subprocess.Popen(
            [sys.executable, "-c", WAITER, spent.name, *(str(part) for part in command)],
            stdout=text, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            env=dict(ENVIRONMENT, **variables), start_new_session=True,
        )
        try:
            started.wait(MAX_WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()
        SPENT.seconds = getattr(SPENT, "seconds", 0.0) + float(spent.read() or 0.0)
        text.seek(0)
        return text.read().decode("utf-8", "replace")


def installed():
    lines = run("tesseract", "--list-langs").splitlines()[1:]
    return {line.strip() for line in lines}


def languages_of(row):
    """The page's languages as far as they are installed; all of ours where nobody knows."""
    known = [LANGUAGES[name] for name in row["language"].split("/") if name in LANGUAGES]
    return "+".join(name for name in known or LANGUAGES.values() if name in INSTALLED)


def pictures_of(path, folder):
    """A PDF's pages at 300 dpi; any other file as it is, a TIFF with all its pages."""
    if path.suffix.lower() != ".pdf":
        return [path]
    run("pdftoppm", "-r", "300", "-gray", path, folder / "page")
    return sorted(folder.glob("page*"))


def tesseract(path, languages, folder):
    pages = pictures_of(path, folder)
    return "\n".join(run("tesseract", page, "-", "--psm", "3", "-l", languages) for page in pages)


def ocrmypdf(path, row, folder):
    text, how = folder / "text", ["--rotate-pages", "--deskew", "--clean", "--force-ocr"]
    command = ["ocrmypdf", *how, "--jobs", "1", "-l", languages_of(row), "--sidecar", text]
    run(*command, path, folder / "out.pdf")
    if not text.exists() and path.suffix.lower() != ".pdf":
        # It refuses an image that does not say how large it is on paper.
        run(*command, "--image-dpi", "150", path, folder / "out.pdf")
    return text.read_text("utf-8", "replace") if text.exists() else ""


KREUZBERG = """
import sys
from kreuzberg import ExtractionConfig, OcrConfig, extract_file_sync
ocr = OcrConfig(backend="tesseract", language="eng+deu+fra")
config = ExtractionConfig(force_ocr=True, ocr=ocr, use_cache=False)
sys.stdout.write(extract_file_sync(sys.argv[1], config=config).content)
"""


# With its own detector, classifier and recogniser, and no setting but the one core.
RAPIDOCR = """
import logging, sys
import numpy
from PIL import Image, ImageSequence
from rapidocr import RapidOCR
logging.disable(logging.WARNING)
engine = RapidOCR(params={"EngineConfig.onnxruntime.intra_op_num_threads": 1})
for path in sys.argv[1:]:
    for page in ImageSequence.Iterator(Image.open(path)):
        print(*(engine(numpy.asarray(page.convert("RGB"))).txts or ()), sep="\\n")
"""


def docmill(path, engine="auto"):
    command = [os.environ["DOCMILL"], "transcribe", path, "--format", "lines"]
    return run(*command, DOCMILL__OCR__ENGINE=engine)


def readers():
    table = {
        "tesseract": lambda path, row, folder: tesseract(path, "eng", folder),
        "tesseract-language": lambda path, row, folder: tesseract(path, languages_of(row), folder),
        "ocrmypdf": ocrmypdf,
        "kreuzberg": lambda path, row, folder: run(PYTHON, "-c", KREUZBERG, path),
        "rapidocr": lambda path, row, folder: run(
            RAPIDOCR_PYTHON, "-c", RAPIDOCR, *pictures_of(path, folder)
        ),
        "docmill-tesseract": lambda path, row, folder: docmill(path, "tesseract"),
        "docmill-neural": lambda path, row, folder: docmill(path, "neural"),
        "docmill": lambda path, row, folder: docmill(path),
    }
    there = {
        "ocrmypdf": shutil.which("ocrmypdf"),
        "kreuzberg": PYTHON.exists(),
        "rapidocr": RAPIDOCR_PYTHON.exists(),
    }
    for name in there:
        if not there[name]:
            print(f"{name} is not here: left out", file=sys.stderr)
            del table[name]
    return table


def words(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    return collections.Counter(word for word in re.findall(r"\w+", folded) if len(word) > 1)


def threes(text):
    """Each three letters that follow each other, whatever spaces and marks are between them: for truths that
    have lost their spaces."""
    folded = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())
    return collections.Counter(folded[at:at + 3] for at in range(len(folded) - 2))


def recall(truth, text, pieces=words):
    known, read = pieces(truth), pieces(text)
    total = sum(known.values())
    return sum((known & read).values()) / total if total else 1.0


def precision(truth, text, pieces=words):
    return recall(text, truth, pieces)


def table_of(folder):
    """Rows of SCANS.tsv by file name; a row without kind where there is none."""
    path = folder / "SCANS.tsv"
    rows = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            rows = {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}
    scans = []
    for truth in sorted(folder.glob("truth/*.txt")):
        for path in sorted(folder.glob("*")):
            if path.stem == truth.stem and path.is_file():
                row = rows.get(path.name, {"kind": truth.stem.split("_")[0], "language": ""})
                scans.append((path, row, truth.read_text("utf-8")))
    return scans


def read_all(reader, scans):
    """Texts, CPU seconds of each, and seconds taken over all files."""

    def one(scan):
        path, row, _ = scan
        SPENT.seconds = 0.0
        with tempfile.TemporaryDirectory() as folder:
            text = reader(path.resolve(), row, pathlib.Path(folder))
        return text, SPENT.seconds

    started = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts, spent = zip(*pool.map(one, scans))
    return texts, spent, time.monotonic() - started


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def main():
    if not shutil.which("pdftoppm"):
        sys.exit("pdftoppm is not here (poppler-utils): peers that read no PDF would be given nothing")
    scans = table_of(pathlib.Path(sys.argv[1]))
    if not scans:
        sys.exit("no scan has a truth/NAME.txt")
    chosen = {name: read for name, read in readers().items() if name in (sys.argv[2:] or name)}
    scores, precise, spaceless, spent, seconds = {}, {}, {}, {}, {}
    for name, reader in chosen.items():
        texts, spent[name], seconds[name] = read_all(reader, scans)
        scores[name] = [recall(truth, text) for (_, _, truth), text in zip(scans, texts)]
        precise[name] = [precision(truth, text) for (_, _, truth), text in zip(scans, texts)]
        for measure in (recall, precision):
            values = [measure(truth, text, threes) for (_, _, truth), text in zip(scans, texts)]
            spaceless[f"{name} {measure.__name__}"] = values
        so_far = f"{len(scans)} files in {seconds[name]:.0f} s, mean recall {mean(scores[name]):.3f}"
        print(f"{name}: {so_far}", file=sys.stderr)
    kinds = collections.defaultdict(list)
    for index, (path, row, _) in enumerate(scans):
        kinds[row["kind"]].append(index)
        kinds["= all"].append(index)
        kinds[f"= {path.stem.split('_')[0]}_*"].append(index)
    for title, table in [("recall by kind", scores), ("precision by kind", precise)]:
        print_table(title, kinds, table)
    print_table("threes of letters, without spaces", kinds, spaceless, marks=False)
    print_table("CPU seconds a file", kinds, spent, marks=False)
    print(f"{'seconds':<46}" + "".join(f"{seconds[name]:>20.0f}" for name in chosen))


def print_table(title, kinds, table, marks=True):
    wide = max(20, *(len(name) + 2 for name in table))
    print(f"{title:<40}{'files':>6}" + "".join(f"{name:>{wide}}" for name in table))
    for kind in sorted(kinds):
        own = kinds[kind]
        cells = {name: mean(scores[index] for index in own) for name, scores in table.items()}
        peers = (cell for name, cell in cells.items() if not name.startswith("docmill"))
        is_behind = marks and cells.get("docmill", 1) < max(peers, default=0) - 0.005
        mark = "  < a peer" if is_behind else ""
        print(f"{kind:<40}{len(own):>6}" + "".join(f"{cells[n]:>{wide}.3f}" for n in table) + mark)


PYTHON = pathlib.Path(os.environ.get("KREUZBERG_PYTHON", "")).absolute()
RAPIDOCR_PYTHON = pathlib.Path(os.environ.get("RAPIDOCR_PYTHON", "")).absolute()
INSTALLED = installed()
if __name__ == "__main__":
    main()
