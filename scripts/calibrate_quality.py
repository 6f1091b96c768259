#!/usr/bin/env python3
"""Reads pages with docmill, compares with the truth, and correlates scores with errors.

Run by calibrate_quality.sh. Character error is free of reading order: every word of the truth takes
the nearest word of the reading that is left, and the edit distances are summed.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unicodedata


def words(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word for word in re.findall(r"\w+", folded) if len(word) > 1]


def distance(one, other):
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def character_error(truth, reading):
    left = list(reading)
    missed = []
    for word in truth:
        if word in left:
            left.remove(word)
        else:
            missed.append(word)
    wrong = 0
    for word in missed:
        best = min(left, key=lambda other: distance(word, other), default="")
        cost = min(len(word), distance(word, best))
        if best and cost < len(word):
            left.remove(best)
        wrong += cost
    return wrong / max(1, sum(map(len, truth)))


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for at in order[start:end]:
            result[at] = (start + end - 1) / 2
        start = end
    return result


def spearman(one, other):
    one, other = ranks(one), ranks(other)
    mean = (len(one) - 1) / 2
    covariance = sum((a - mean) * (b - mean) for a, b in zip(one, other))
    spread = sum((a - mean) ** 2 for a in one) * sum((b - mean) ** 2 for b in other)
    return covariance / spread**0.5 if spread else float("nan")


def read(program, page, repairs):
    command = [program, "transcribe", str(page), "--format", "json"]
    environment = {**os.environ, "DOCMILL__OCR__REPAIR__ENABLED": str(repairs).lower()}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        return None
    answer = json.loads(done.stdout)
    first = answer["pages"][0]
    text = " ".join(word["text"] for line in first["lines"] for word in line["words"])
    return first["quality"], text


def main():
    program, folder, prefix, scores = sys.argv[1:5]
    image_scores = {}
    for line in pathlib.Path(scores).read_text().splitlines():
        fields = line.split("\t")
        if len(fields) > 3:
            image_scores[fields[0]] = float(fields[3])
    seen = {"image score, read as it is": ([], []), "page score, read as it is": ([], []),
            "page score, repaired": ([], []), "page score, both": ([], [])}
    for page in sorted(pathlib.Path(folder).glob(prefix + "*")):
        truth = page.parent / "truth" / (page.stem + ".txt")
        if not page.is_file() or not truth.exists():
            continue
        expected = words(truth.read_text())
        for name, repairs in [("read as it is", False), ("repaired", True)]:
            answer = read(program, page, repairs)
            if answer is None:
                print(f"{page.stem}\t{name}\tnot read", flush=True)
                continue
            quality, text = answer
            error = character_error(expected, words(text))
            groups = [("page score, " + name, quality), ("page score, both", quality)]
            if not repairs and page.stem in image_scores:
                groups.append(("image score, " + name, image_scores[page.stem]))
            for group, score in groups:
                seen[group][0].append(score)
                seen[group][1].append(error)
            image = image_scores.get(page.stem, float("nan"))
            print(f"{page.stem}\t{name}\t{image:.3f}\t{quality:.3f}\t{error:.4f}", flush=True)
    for group, (scored, errors) in seen.items():
        print(f"{group}: rank correlation {spearman(scored, errors):.3f} over {len(scored)} readings")


if __name__ == "__main__":
    main()
