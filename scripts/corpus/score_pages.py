#!/usr/bin/env python3
"""Scores the structure that docmill finds on the pages of scripts/corpus/draw_pages.py.

    score_pages.py DOCMILL FOLDER [--scans] [--part tune|check] [--kept] [--verbose]

Two figures for every family and language, 0 to 1:
  order  the sequence of blocks: 1 - edit distance / length, each of our words counted for the block
         that it was drawn for, words of one block that follow each other as one; a block of which
         no word was read at all has no place
  cells  tables: F1 of cells with their row, column, spans and text; on scans the text may differ in a
         fifth of its letters
and of blocks those whose words are exactly one block of ours (`whole`), of the same type (`typed`).
--kept: NAME.pdf.json beside a document is what `transcribe --format json` printed, and is written if
it is not there.
"""

import collections
import difflib
import json
import pathlib
import subprocess
import sys

# A title is a heading by another name.
SAME = {"title": "heading"}


def transcript(docmill, path, kept):
    beside = path.with_name(path.name + ".json")
    if kept and beside.exists() and beside.stat().st_size:
        return json.loads(beside.read_text())
    done = subprocess.run([docmill, "transcribe", str(path), "--format", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{path.name}: {done.stdout[-200:]}{done.stderr[-200:]}")
    if kept:
        beside.write_text(done.stdout)
    return json.loads(done.stdout)


def words_of(page, block):
    for span in block["words"]:
        line = page["lines"][span["line"]]["words"]
        yield from line[span["first"]:span["first"] + span["count"]]


def drawn_under(word, page, truth):
    """The drawn word whose box the middle of a read one lies in or is nearest to."""
    x, y = (word["box"][a] + word["box"][s] / 2 for a, s in ("xw", "yh"))
    if (page["width"] > page["height"]) != (truth["width"] > truth["height"]):
        # Drawn with lines that run upwards, turned before it was read.
        x, y = y * truth["width"] / page["height"], truth["height"] - x * truth["height"] / page["width"]
    else:
        x, y = x * truth["width"] / page["width"], y * truth["height"] / page["height"]
    best, least = None, 9.0
    for number, drawn in enumerate(truth["words"]):
        left, top, wide, high = drawn["box"]
        away = max(left - x, 0, x - left - wide) + max(top - y, 0, y - top - high)
        if away < least:
            best, least = number, away
    return best


def edit_distance(one, other):
    row = list(range(len(other) + 1))
    for at, a in enumerate(one, 1):
        before, row[0] = row[0], at
        for to, b in enumerate(other, 1):
            before, row[to] = row[to], min(row[to] + 1, row[to - 1] + 1, before + (a != b))
    return row[-1]


def score_order(truth, found, verbose):
    sequence = []
    for words in found:
        for word in words:
            if word is not None:
                block = truth["words"][word]["block"]
                if not sequence or sequence[-1] != block:
                    sequence.append(block)
    read = set(sequence)
    right = [block for block in range(len(truth["blocks"])) if block in read]
    if verbose and sequence != right:
        print("    read as", sequence)
    return max(0.0, 1 - edit_distance(sequence, right) / max(len(right), 1))


def alike(one, other, scanned):
    if not scanned:
        return one == other
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= 0.8


def score_cells(page, truth, found, scanned):
    """(right, drawn, found): cells."""
    ours = {}
    for number, block in enumerate(page["blocks"]):
        if block["type"] == "table":
            votes = collections.Counter(truth["words"][word]["block"] for word in found[number] if word is not None)
            ours[number] = votes.most_common(1)[0][0] if votes else None
    right = 0
    tables = [(number, block) for number, block in enumerate(truth["blocks"]) if block["type"] == "table"]
    for number, table in tables:
        mine = [at for at, drawn in ours.items() if drawn == number]
        if not mine:
            continue
        best = max(mine, key=lambda at: len(page["blocks"][at]["cells"]))
        place = lambda cell: (cell["row"], cell["column"], cell["row_span"], cell["column_span"])
        cells = {place(cell): cell["text"] for cell in page["blocks"][best]["cells"]}
        right += sum(alike(cells.get(place(cell), ""), cell["text"], scanned) for cell in table["cells"])
    drawn = sum(len(table["cells"]) for _, table in tables)
    return right, drawn, sum(len(page["blocks"][number]["cells"]) for number in ours)


def score_blocks(page, truth, found):
    """(whole, typed, drawn)."""
    drawn = collections.defaultdict(set)
    for number, word in enumerate(truth["words"]):
        drawn[word["block"]].add(number)
    whole = typed = 0
    for block, words in zip(page["blocks"], found):
        seen = {word for word in words if word is not None}
        for number, expected in drawn.items():
            if seen and len(seen & expected) >= 0.95 * max(len(seen), len(expected)):
                whole += 1
                kind = truth["blocks"][number]["type"]
                typed += SAME.get(kind, kind) == SAME.get(block["type"], block["type"])
    return whole, typed, len(drawn)


def main():
    docmill, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    scanned, verbose = "--scans" in sys.argv, "--verbose" in sys.argv
    part = sys.argv[sys.argv.index("--part") + 1] if "--part" in sys.argv else ""
    sums = collections.defaultdict(lambda: [0.0] * 8)
    for file in sorted((folder / "truth").glob(f"{part}*.json")):
        record = json.loads(file.read_text())
        path = folder / (file.stem + (".scan.pdf" if scanned else ".pdf"))
        if "--kept" in sys.argv and not path.with_name(path.name + ".json").exists() and docmill == "-":
            continue
        read = transcript(docmill, path, "--kept" in sys.argv)
        for page, truth in zip(read["pages"], record["pages"]):
            found = [[drawn_under(word, page, truth) for word in words_of(page, block)] for block in page["blocks"]]
            order = score_order(truth, found, verbose)
            right, drawn, ours = score_cells(page, truth, found, scanned)
            whole, typed, blocks = score_blocks(page, truth, found)
            if verbose:
                print(f"{file.stem} page {page['number']}: order {order:.3f} cells {right}/{drawn}/{ours} "
                      f"whole {whole}/{blocks}")
            for group in (record["family"], "in " + record["language"], "all"):
                for at, value in enumerate((1, order, right, drawn, ours, whole, typed, blocks)):
                    sums[group][at] += value
    print(f"{'':20}  pages  order  cells  whole  typed")
    for group, (pages, order, right, drawn, ours, whole, typed, blocks) in sums.items():
        cells = f"{2 * right / (drawn + ours):6.3f}" if drawn + ours else "     -"
        print(f"{group:20} {pages:6.0f} {order / pages:6.3f} {cells} {whole / blocks:6.3f} {typed / blocks:6.3f}")


if __name__ == "__main__":
    main()
