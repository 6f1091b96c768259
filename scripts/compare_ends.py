#!/usr/bin/env python3
"""Compares how documents ended with how they should have.

    compare_ends.py EXPECT.tsv ENDS.json

EXPECT.tsv: file, status, reason, supplier, number, total; `-` is none, `*` is anything.
ENDS.json: what `docmill dev --json` printed, one object per line or one array. Standard library
only; exit code 1 if any end differs.
"""

import csv
import json
import pathlib
import sys

COLUMNS = ("status", "reason", "supplier", "number", "total")


def ends(path):
    """The ends by file name."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    try:
        found = json.loads(text)
        found = found if isinstance(found, list) else [found]
    except json.JSONDecodeError:
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
    return {pathlib.PurePath(end["file"]).name: end for end in found}


def shown(end, column):
    """The value of a column as EXPECT.tsv writes it."""
    value = end.get(column)
    if column == "total" and value not in (None, ""):
        return f"{float(value):.2f}"
    return "-" if value in (None, "") else str(value)


def main(expect, actual):
    found = ends(actual)
    with open(expect, encoding="utf-8", newline="") as file:
        rows = [line for line in file if not line.startswith("#")]
    wrong = 0
    print(f"{'':3} {'file':24} {'status':10} {'reason':10} {'number':16} {'total':>10}  supplier")
    for row in csv.DictReader(rows, delimiter="\t"):
        end = found.pop(row["file"], None)
        if end is None:
            print(f"NO  {row['file']:24} never ended")
            wrong += 1
            continue
        got = {column: shown(end, column) for column in COLUMNS}
        # A failed document may keep partial data; only what EXPECT.tsv names is compared.
        differs = [
            column
            for column in COLUMNS
            if row[column] != "*" and row[column].casefold() != got[column].casefold()
        ]
        print(
            f"{'NO ' if differs else 'ok '} {row['file']:24} {got['status']:10} {got['reason']:10} "
            f"{got['number']:16} {got['total']:>10}  {got['supplier']}"
        )
        for column in differs:
            print(f"      {column}: expected {row[column]}, got {got[column]}")
        wrong += bool(differs)
    for file in found:
        print(f"NO  {file:24} was not expected")
    wrong += len(found)
    print("every document ended as expected" if not wrong else f"{wrong} did not end as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: compare_ends.py EXPECT.tsv ENDS.json")
    sys.exit(main(sys.argv[1], sys.argv[2]))
