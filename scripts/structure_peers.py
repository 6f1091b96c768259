#!/usr/bin/env python3
"""Reading order and tables of several readers on the pages of draw_pages.py, by one measure that needs
nothing but text. Run by structure_peers.sh.

    structure_peers.py FOLDER [--scans] [--part tune|check] [--verbose]

score_pages.py is stricter, but wants the box of every word, which a peer need not give. Here:
  order  every run of three words (of a block with fewer: all of them) that was drawn in one block only is
         sought in the text; the sequence of blocks so found is held against the drawn one: 1 - edit
         distance / length. Blocks without such a run do not count
  found  blocks that have a place in that sequence
  cells  F1 of the cells of tables by row, column and text, spans aside, empty cells aside; on scans the
         text may differ in a fifth of its letters
Documents are read one after the other; each reader sees the same file and is told its language.
"""

import collections
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import unicodedata

TESSERACT = {"en": "eng", "de": "deu", "fr": "fra", "nl": "nld", "es": "spa", "it": "ita", "pt": "por",
             "sv": "swe", "da": "dan", "no": "nor", "pl": "pol"}
RUN = 3
KREUZBERG = """
import json, sys
from kreuzberg import ExtractionConfig, OcrConfig, extract_file_sync
path, language, scanned = sys.argv[1], sys.argv[2], sys.argv[3] == "scanned"
ocr = OcrConfig(backend="tesseract", language=language)
config = ExtractionConfig(ocr=ocr, force_ocr=scanned, use_cache=False, output_format="markdown")
read = extract_file_sync(path, config=config)
tables = [{"page": table.page_number, "rows": table.cells} for table in read.tables]
json.dump({"text": read.content, "tables": tables}, sys.stdout)
"""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, OMP_THREAD_LIMIT="1"))
    if done.returncode != 0:
        raise SystemExit(f"{command[0]}: {done.stderr[-400:]}")
    return done.stdout


def docmill(path, language, scanned):
    """The text in order, and each table as rows of texts; what spans is at its first place."""
    read = json.loads(run(os.environ["DOCMILL"], "transcribe", path, "--format", "json"))
    tables = []
    for page in read["pages"]:
        for block in page["blocks"]:
            if block["type"] == "table":
                rows = collections.defaultdict(dict)
                for cell in block["cells"]:
                    rows[cell["row"]][cell["column"]] = cell["text"]
                grid = [[rows[at].get(to, "") for to in range(max(rows[at], default=-1) + 1)]
                        for at in range(max(rows, default=-1) + 1)]
                tables.append({"page": page["number"], "rows": grid})
    return run(os.environ["DOCMILL"], "transcribe", path, "--format", "text"), tables


def kreuzberg(path, language, scanned):
    """The Markdown, of which the words count, and the tables that it gives beside it."""
    python, how = os.environ["KREUZBERG_PYTHON"], "scanned" if scanned else "native"
    read = json.loads(run(python, "-c", KREUZBERG, path, language, how))
    return read["text"], read["tables"]


def words(text):
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold())


def edit_distance(one, other):
    row = list(range(len(other) + 1))
    for at, a in enumerate(one, 1):
        before, row[0] = row[0], at
        for to, b in enumerate(other, 1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (a != b))
    return row[-1]


def drawn_blocks(record):
    """The words of every block of the document, in reading order. A table's are those of its rows."""
    blocks = []
    for page in record["pages"]:
        own = [[] for _ in page["blocks"]]
        for word in page["words"]:
            own[word["block"]].extend(words(word["text"]))
        blocks += own
    return blocks


def score_order(blocks, text):
    """(order, found, blocks that could be)."""
    places = collections.defaultdict(set)
    for number, block in enumerate(blocks):
        size = min(RUN, len(block))
        for at in range(len(block) - size + 1):
            if size:
                places[tuple(block[at:at + size])].add(number)
    # A run of fewer words is that block only if no other block has it within.
    runs = {key: next(iter(own)) for key, own in places.items() if len(own) == 1}
    for key in [key for key in runs if len(key) < RUN]:
        inside = sum(any(tuple(block[at:at + len(key)]) == key for at in range(len(block))) for block in blocks)
        if inside > 1:
            del runs[key]
    read, sequence = words(text), []
    for at in range(len(read)):
        for size in range(RUN, 0, -1):
            number = runs.get(tuple(read[at:at + size]))
            if number is not None:
                if not sequence or sequence[-1] != number:
                    sequence.append(number)
                break
    known, seen = set(runs.values()), set(sequence)
    right = [number for number in range(len(blocks)) if number in seen]
    return 1 - edit_distance(sequence, right) / max(len(right), 1), len(seen), len(known), bool(right)


def alike(one, other, scanned):
    one, other = " ".join(one.split()), " ".join(other.split())
    if not scanned:
        return one == other
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.8


def cells_of(rows):
    return {(at, to): text for at, row in enumerate(rows) for to, text in enumerate(row) if text and text.strip()}


def score_cells(record, tables, scanned):
    """(right, drawn, found): each drawn table against the one that has most of its cells."""
    found = [(table["page"], cells_of(table["rows"])) for table in tables]
    right = drawn = 0
    taken = set()
    for number, page in enumerate(record["pages"], 1):
        for block in page["blocks"]:
            if block["type"] != "table":
                continue
            cells = {(c["row"], c["column"]): c["text"] for c in block["cells"] if c["text"].strip()}
            drawn += len(cells)
            best, most = None, 0
            for at, (where, own) in enumerate(found):
                if at in taken or where not in (number, None):
                    continue
                hits = sum(alike(own.get(place, ""), text, scanned) for place, text in cells.items())
                if hits > most:
                    best, most = at, hits
            if best is not None:
                taken.add(best)
                right += most
    return right, drawn, sum(len(own) for _, own in found)


def main():
    folder, scanned, verbose = pathlib.Path(sys.argv[1]), "--scans" in sys.argv, "--verbose" in sys.argv
    part = sys.argv[sys.argv.index("--part") + 1] if "--part" in sys.argv else ""
    readers = {"docmill": docmill, "kreuzberg": kreuzberg}
    sums = collections.defaultdict(lambda: [0.0] * 7)
    for file in sorted((folder / "truth").glob(f"{part}*.json")):
        record = json.loads(file.read_text())
        path = folder / (file.stem + (".scan.pdf" if scanned else ".pdf"))
        if not path.exists():
            continue
        blocks = drawn_blocks(record)
        for name, reader in readers.items():
            text, tables = reader(path, TESSERACT[record["language"]], scanned)
            order, seen, known, counts = score_order(blocks, text)
            right, drawn, found = score_cells(record, tables, scanned)
            if verbose:
                print(f"{file.stem} {name}: order {order:.3f} found {seen}/{known} cells {right}/{drawn}/{found}")
            for group in (record["family"], "all"):
                for at, value in enumerate((1, max(order, 0.0) if counts else 0.0, seen, known, right, drawn, found)):
                    sums[group, name][at] += value
    print(f"{'':16}{'reader':12}files  order  found  cells")
    for (group, name), (files, order, seen, known, right, drawn, found) in sorted(sums.items()):
        cells = f"{2 * right / (drawn + found):6.3f}" if drawn + found else "     -"
        print(f"{group:16}{name:12}{files:5.0f} {order / files:6.3f} {seen / max(known, 1):6.3f} {cells}")
    if not sums:
        sys.exit("no page was drawn")


if __name__ == "__main__":
    main()
