#!/usr/bin/env python3
"""Scores places and confidence of the words that docmill reads on scans.

    score_words.py DOCMILL FOLDER [--pdfs PDFS] [--kept KEPT] [--verbose]

FOLDER holds scans and truth/NAME.txt, as for reading_peers.py. Printed are

  confidence  for bands of it, the share of words in the band and the share of these that the transcript has.
              Words: NFKC, case-folded, longer than one letter, each transcribed word counted once, for the surest
  boxes       only with --pdfs: of words that were read as they are printed, the share whose box and the true one
              cover together at most twice what both cover. True boxes are the ink of each word of the PDF that the
              scan was made of (PDFS/NAME.pdf, where NAME ends the name of the scan), fitted onto the page as
              it was read by the words that are there once: by an affine map, or one of second degree where that
              foretells words better that it was not fitted to. Only first pages

--kept: a folder for what `transcribe --format json` printed, which is read again where it is there.
Wants pdftotext and pdftoppm (poppler-utils) for boxes.
"""

import argparse
import collections
import concurrent.futures
import html
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unicodedata

BANDS = (0.99, 0.95, 0.9, 0.8, 0.5, 0.0)
# Of the resolution at which true ink is looked for, in dots a point.
SCALE = 300 / 72
# How far from its true place a word may be read and still be that word, in heights of a word.
REACH = 3
AFFINE = (lambda x, y: 1.0, lambda x, y: x / 600, lambda x, y: y / 800)
SECOND_DEGREE = AFFINE + tuple(
    lambda x, y, i=i, j=j: (x / 600) ** i * (y / 800) ** j for i, j in ((2, 0), (1, 1), (0, 2))
)


def pieces(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word for word in re.findall(r"\w+", folded) if len(word) > 1]


def letters(text):
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text).casefold())


def transcribe(docmill, scan, kept):
    beside = kept / (scan.name + ".json") if kept else None
    if beside and beside.exists() and beside.stat().st_size:
        return json.loads(beside.read_text())
    done = subprocess.run([docmill, "transcribe", str(scan), "--format", "json"], capture_output=True, text=True,
                          env=dict(os.environ, OMP_THREAD_LIMIT="1"))
    if done.returncode != 0:
        raise SystemExit(f"{scan.name}: {done.stderr[-300:]}")
    if beside:
        beside.write_text(done.stdout)
    return json.loads(done.stdout)


def words_of(page):
    """Text, box as left, top, right, bottom, and confidence of each word of a page."""
    for line in page["lines"]:
        for word in line["words"]:
            box = word["box"]
            corners = (box["x"], box["y"], box["x"] + box["w"], box["y"] + box["h"])
            yield word["text"], corners, word["confidence"]


def printed_words(pdf, folder):
    """Text and box of the ink of each word of the first page, in points."""
    listed = subprocess.run(["pdftotext", "-l", "1", "-bbox", pdf, "-"], capture_output=True, text=True, check=True)
    subprocess.run(["pdftoppm", "-r", "300", "-gray", "-l", "1", "-singlefile", pdf, folder / "page"], check=True)
    picture = (folder / "page.pgm").read_bytes()
    head = re.match(rb"P5\s+(\d+)\s+(\d+)\s+255\s", picture)
    wide, high, pixels = int(head[1]), int(head[2]), picture[head.end():]
    numbers = r'<word xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)">(.*?)</word>'
    for found in re.finditer(numbers, listed.stdout):
        left, top, right, bottom = (round(float(found[i]) * SCALE) for i in range(1, 5))
        left, top, right, bottom = max(left, 0), max(top, 0), min(right, wide), min(bottom, high)
        box = ink_within(pixels, wide, left, top, right, bottom)
        if box:
            yield html.unescape(found[5]), tuple(side / SCALE for side in box)


def ink_within(pixels, wide, left, top, right, bottom):
    rows = [pixels[y * wide + left:y * wide + right] for y in range(top, bottom)]
    if left >= right or not rows:
        return None
    middle = (min(map(min, rows)) + max(map(max, rows))) / 2
    down = [y for y, row in enumerate(rows) if min(row) < middle]
    across = [x for x in range(right - left) if min(row[x] for row in rows) < middle]
    if not down or not across:
        return None
    return left + across[0], top + down[0], left + across[-1] + 1, top + down[-1] + 1


def middle_of(box):
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def distance(one, other):
    return ((one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2) ** 0.5


def solve(rows, values):
    """Gauss and Jordan with pivots; nothing where the rows do not say enough."""
    table = [row + [value] for row, value in zip(rows, values)]
    for i in range(len(table)):
        pivot = max(range(i, len(table)), key=lambda row: abs(table[row][i]))
        table[i], table[pivot] = table[pivot], table[i]
        if abs(table[i][i]) < 1e-9:
            return None
        for row in range(len(table)):
            if row != i:
                factor = table[row][i] / table[i][i]
                table[row] = [a - factor * b for a, b in zip(table[row], table[i])]
    return [row[-1] / row[i] for i, row in enumerate(table)]


def fit(pairs, terms):
    """The map of least squares from true to read places, or nothing."""
    values = [[term(*place) for term in terms] for place, _ in pairs]
    rows = [[sum(v[i] * v[j] for v in values) for j in range(len(terms))] for i in range(len(terms))]
    axes = []
    for axis in (0, 1):
        sums = [sum(v[i] * read[axis] for v, (_, read) in zip(values, pairs)) for i in range(len(terms))]
        axes.append(solve(rows, sums))
    if None in axes:
        return None
    return lambda x, y: tuple(sum(c * term(x, y) for c, term in zip(axis, terms)) for axis in axes)


def foretold(pairs, terms, folds=5):
    """How far off nine of ten words are at most that a map was not fitted to."""
    errors = []
    for fold in range(folds):
        others = fit([pair for i, pair in enumerate(pairs) if i % folds != fold], terms)
        if others is None:
            return float("inf")
        errors += [distance(others(*true), read) for i, (true, read) in enumerate(pairs) if i % folds == fold]
    return sorted(errors)[int(len(errors) * 0.9)]


def placed(printed, read):
    """The map onto the page as it was read, from words that are there once; what does not fit is left out."""
    count = [collections.Counter(letters(word[0]) for word in words) for words in (printed, read)]
    true = {letters(text): middle_of(box) for text, box in printed}
    pairs = [
        (true[letters(text)], middle_of(box))
        for text, box, _ in read
        if len(letters(text)) > 2 and all(c[letters(text)] == 1 for c in count)
    ]
    for _ in range(len(pairs)):
        place = fit(pairs, AFFINE)
        if place is None:
            return None
        far = max(pairs, key=lambda pair: distance(place(*pair[0]), pair[1]))
        errors = sorted(distance(place(*true), read) for true, read in pairs)
        if distance(place(*far[0]), far[1]) < 8 * errors[len(errors) // 2] + 2:
            break
        pairs.remove(far)
    terms = min((AFFINE, SECOND_DEGREE), key=lambda terms: foretold(pairs, terms))
    return fit(pairs, terms)


def overlap(one, other):
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    if wide <= 0 or high <= 0:
        return 0.0
    area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
    return wide * high / (area(one) + area(other) - wide * high)


def boxes_of(scan, page, pdf, verbose):
    """Words whose box is where the page has it, and words that were read as they are printed."""
    with tempfile.TemporaryDirectory() as folder:
        printed = list(printed_words(pdf, pathlib.Path(folder)))
    read = list(words_of(page))
    place = placed(printed, read)
    if place is None:
        print(f"{scan.name}: too few words that are there once")
        return 0, 0
    near = []
    for number, (text, box) in enumerate(printed):
        corners = [place(x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
        true = tuple(pick(corner[axis] for corner in corners) for pick in (min, max) for axis in (0, 1))
        for other, (seen, where, _) in enumerate(read):
            away = distance(middle_of(true), middle_of(where))
            if letters(text) and letters(text) == letters(seen) and away < REACH * (true[3] - true[1]):
                near.append((away, number, other, overlap(true, where)))
    # Each to the nearest of those that are left.
    well, done, taken = 0, set(), set()
    for _, number, other, share in sorted(near):
        if number in done or other in taken:
            continue
        done.add(number)
        taken.add(other)
        well += share >= 0.5
        if verbose and share < 0.5:
            print(f"    {scan.name} {printed[number][0]} {share:.2f}")
    return well, len(done)


def confidences_of(pages, transcript):
    """Confidence of each word, and whether the transcript has it."""
    left = collections.Counter(pieces(transcript))
    read = [(confidence, piece) for page in pages for text, _, confidence in words_of(page) for piece in pieces(text)]
    for confidence, piece in sorted(read, key=lambda word: -word[0]):
        left[piece] -= 1
        yield confidence, left[piece] >= 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("docmill")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pdfs", type=pathlib.Path)
    parser.add_argument("--kept", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    given = parser.parse_args()
    if given.kept:
        given.kept.mkdir(parents=True, exist_ok=True)
    scans = [
        (scan, truth)
        for truth in sorted(given.folder.glob("truth/*.txt"))
        for scan in sorted(given.folder.glob(truth.stem + ".*"))
    ]
    if not scans:
        raise SystemExit("no scan has a truth/NAME.txt")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        read = list(pool.map(lambda scan: transcribe(given.docmill, scan[0], given.kept), scans))
    print_confidences(scans, read)
    if given.pdfs:
        print_boxes(scans, read, given.pdfs, given.verbose)


def print_confidences(scans, read):
    kinds = collections.defaultdict(list)
    for (scan, truth), transcript in zip(scans, read):
        kinds[scan.name.split("_")[0]] += confidences_of(transcript["pages"], truth.read_text("utf-8"))
    for kind, words in sorted(kinds.items()):
        print(f"{kind}_*: {len(words)} words\n  confidence   share   right")
        above = float("inf")
        for least in BANDS:
            band = [is_right for confidence, is_right in words if least <= confidence < above]
            right = f"{sum(band) / len(band):.3f}" if band else "-"
            print(f"  {least:.2f} and up {len(band) / len(words):6.3f} {right:>7}")
            above = least


def print_boxes(scans, read, pdfs, verbose):
    well = found = 0
    for (scan, _), transcript in zip(scans, read):
        made_of = [pdf for pdf in pdfs.glob("*.pdf") if scan.stem.endswith("_" + pdf.stem)]
        if not made_of:
            continue
        good, known = boxes_of(scan, transcript["pages"][0], made_of[0], verbose)
        print(f"{scan.name:<40} {good:>4} of {known:>4}")
        well, found = well + good, found + known
    print(f"boxes: {well} of {found}, {well / max(found, 1):.3f}")


if __name__ == "__main__":
    main()
