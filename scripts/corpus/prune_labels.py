#!/usr/bin/env python3
"""Counts the labels of the built-in kinds, and those that no page here prints; --write drops the latter.

    prune_labels.py [--write]

Printed is a label that the text of tests/corpus, of the drawing and sample programs, or of a test
contains, folded as the reader folds it, also without its spaces. The first labels of each list
(CORE) of the main fields are the language's standard terms: they stay even if nothing here prints
them. A label that another language of its section has as well stays once. Kinds without a page in
the corpus are left alone.
"""

import argparse
import functools
import pathlib
import re
import subprocess
import tomllib
import unicodedata

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = ("tests/corpus/", "tests/it/", "testkit/", "crates/extract/", "crates/gate/", "crates/eval/", "scripts/corpus/",
           "scripts/*sample*.py", "samples/", "config/kinds/*/examples/")
# How many standard terms stay of a list of these fields, and of every other section.
FIELDS = ("invoice_number", "invoice_date", "due_date", "subtotal", "vat_amount", "total", "supplier_vat_id",
          "payable", "customer")
CORE = {True: 3, False: 0}
SPECIAL = str.maketrans({"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ı": "i", "ς": "σ"})
LIST = re.compile(r"^([\w.]+) = (\[[^\]]*\])\n", re.M)
WIDTH = 100


def fold(text):
    letters = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.findall(r"[^\W_]+", letters.lower().translate(SPECIAL)))


class PrintedText:
    """The folded words of all texts, and where each is."""

    def __init__(self):
        command = ["git", "-C", ROOT, "ls-files", *SOURCES]
        names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        ends = (".txt", ".rs", ".py", ".xml", ".json", ".md")
        paths = [ROOT / name for name in names if name.endswith(ends)]
        lines = [line for path in paths for line in self.text_of(path).splitlines()]
        self.words = []
        for line in map(str.split, map(fold, lines)):
            # A rate may be printed within a label: `VAT 20 % included`.
            plain = [word for word in line if not word.isdigit()]
            self.words += [*line, "", *(plain if plain != line else []), ""]
        self.places = {}
        for at, word in enumerate(self.words):
            self.places.setdefault(word, []).append(at)

    @staticmethod
    def text_of(path):
        """The texts of a program are its literals."""
        text = path.read_text(encoding="utf-8")
        return text if path.suffix in (".txt", ".xml", ".json", ".md") else "\n".join(re.findall(r'"(?:[^"\\]|\\.)*"|r#".*?"#', text, re.S))

    @functools.cache
    def has(self, label):
        first, *rest = fold(label).split()
        if label.startswith("*"):
            firsts = [word for word in self.places if word.endswith(first)]
        elif "".join([first, *rest]) in self.places:
            return True
        else:
            firsts = [first] if first in self.places else []
        end = len(rest) + 1
        return any(self.words[at + 1:at + end] == rest for word in firsts for at in self.places[word])


def written(key, labels):
    line = f"{key} = [" + ", ".join(f'"{label}"' for label in labels) + "]"
    if len(line) <= WIDTH:
        return line + "\n"
    rows, row = [], " "
    for label in labels:
        if len(row) + len(label) + 4 > WIDTH:
            rows.append(row)
            row = " "
        row += f' "{label}",'
    return "\n".join([f"{key} = [", *rows, row, "]"]) + "\n"


def prune(path, printed):
    """The file without the labels that go, and how many it had, are printed and stay."""
    source, counts, seen = path.read_text(encoding="utf-8"), [0, 0, 0], set()

    def one_list(section, match):
        key, labels = match[1], tomllib.loads(f"x = {match[2]}")["x"]
        if key == "include":
            return match[0]
        core = CORE[section in FIELDS]
        kept = []
        for at, label in enumerate(labels):
            own = (section, key.split(".")[0], label.startswith("*"), fold(label))
            if at < core or printed.has(label) and own not in seen:
                kept.append(label)
                seen.add(own)
        counts[0] += len(labels)
        counts[1] += sum(printed.has(label) for label in labels)
        counts[2] += len(kept)
        return match[0] if kept == labels else written(key, kept) if kept else ""

    parts = re.split(r"^(\[[\w.]+\]\n)", source, flags=re.M)
    out, section = parts[0], ""
    for part in parts[1:]:
        if part.startswith("[") and part.endswith("]\n") and part.count("\n") == 1:
            section = part[1:-2]
            out += part
        else:
            out += LIST.sub(lambda match, section=section: one_list(section, match), part)
    return out, counts


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--write", action="store_true")
    given = arguments.parse_args()
    text = PrintedText()
    kinds = {path.read_text(encoding="utf-8")[6:].split()[0] for path in (ROOT / "tests/corpus").glob("*/*.txt")}
    for path in (ROOT / f"config/kinds/{kind}/labels.toml" for kind in sorted(kinds)):
        pruned, (labels, printed, kept) = prune(path, text)
        print(f"{path.parent.name}: {labels} labels, {printed} printed, {kept} with the standard terms")
        if given.write:
            path.write_text(pruned, encoding="utf-8")


if __name__ == "__main__":
    main()
