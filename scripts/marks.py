#!/usr/bin/env python3
"""Counts the marks of style and size that docs/dev/style.md names, and fails above their ceilings.

    scripts/marks.py [--list MARK]    MARK: what, constants, durations, closures

Reads the files that git tracks. Comments are those of all Rust files; closures are counted in product
code: neither tests, benches and examples nor modules under #[cfg(test)]. A ceiling above the goal is
the figure of the day it was written: it may only fall, but for new capability in lines of text.
"""

import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
OLD_LIMITS = ("MOST LONGEST LEAST FEWEST LARGEST SHORTEST SMALLEST HIGHEST LOWEST DEEPEST WIDEST NARROWEST "
              "FARTHEST THICKEST GREATEST").split()
OLD_DURATIONS = "PATIENCE LINGER BREATH TROUBLE LOOK PULSE TENDING SETTLE STUCK PUTTING_BACK".split()
# A term of TIFF, and of the wait of Kafka's and Postgres' batching, behind the word for what waits.
TERMS = {"LOWEST_BIT_FIRST", "BATCH_LINGER"}
WHAT = re.compile(r"(What|Whoever|Whatever|Whichever)\s+[a-z]")
CONSTANT = re.compile(r"\b(?:const|static)\s+([A-Z][A-Z0-9_]*)\s*:")
PYTHON_CONSTANT = re.compile(r"^([A-Z][A-Z0-9_]*(?:, [A-Z][A-Z0-9_]*)*) = ", re.M)
CLOSURE = re.compile(r"^[ \t]*let (?:mut )?\w+(?:\s*:[^=;]+)?\s*=\s*(?:async )?(?:move )?\|", re.M)
COMMENT = re.compile(r"^\s*//[/!]?\s?(.*)$")
# Comments of other languages; of a string of documentation its first line.
OTHER_COMMENTS = {".py": r"^\s*(?:#|\"\"\")\s?(.*)$", ".sql": r"^\s*--\s?(.*)$", ".js": r"^\s*(?://|\*)\s?(.*)$",
                  ".css": r"^\s*/\*\s?(.*)$", **dict.fromkeys([".sh", ".toml", ".yaml", ".yml"], r"^\s*#\s?(.*)$")}
# Tokens of a page that are words or figures; the lines of tables are neither.
WORD = re.compile(r"\S*\w\S*")
TEST_MODULE = re.compile(r"^#\[cfg\(test\)\]\n(?:#\[[^\n]*\n)*(?:pub(?:\([^)]*\))? )?mod \w+ \{", re.M)
TEXT = {".rs", ".md", ".toml", ".py", ".sh", ".sql", ".txt", ".json", ".yaml", ".yml", ".lock", ".css", ".js",
        ".lua", ".html", ".snap", ".csv", ".xml", ".svg", ".edn", ""}


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def product_code(path, text):
    """The lines of product code of a Rust file: no comments, no blank lines, no tests."""
    parts = path.relative_to(ROOT).parts
    if parts[0] not in ("src", "crates") or {"tests", "examples", "benches"} & set(parts) or path.name == "tests.rs":
        return ""
    text = TEST_MODULE.split(text)[0]
    return "\n".join(line for line in text.splitlines() if line.strip() and not COMMENT.match(line))


def comment_sentences(text, comment=COMMENT):
    """Sentences of the comments, those of one block joined over their lines; and the comment lines."""
    sentences, block, lines = [], [], 0
    for line in [*text.splitlines(), ""]:
        if found := comment.match(line):
            lines += 1
            block.append(found[1])
        elif block:
            sentences += re.split(r"(?<=[.:;!?])\s+|\s[-*]\s|\n", " ".join(block))
            block = []
    return sentences, lines


def read_labels(value):
    """All strings in a table of labels, however deep."""
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [label for each in values for label in read_labels(each)]


def printed_share(labels, files):
    corpus = "\n".join(path.read_text() for path in files if path.match("tests/corpus/**/*.txt"))
    folded = " ".join(corpus.casefold().split())
    return sum(label.casefold() in folded for label in labels) / max(len(labels), 1)


def sort_constants(name, constants, marks):
    """Adds the constants of a file whose names are not the field's to the marks."""
    for constant in constants - TERMS:
        words = constant.split("_")
        if words[0] in OLD_LIMITS:
            marks["constants"].append(f"{name}: {constant}")
        if set(words) & set(OLD_DURATIONS):
            marks["durations"].append(f"{name}: {constant}")


def main():
    files = tracked()
    rust = {path: path.read_text() for path in files if path.suffix == ".rs"}
    marks = {"what": [], "constants": [], "durations": [], "closures": []}
    comment_lines = product_lines = 0
    for path in files:
        if path.suffix == ".rs" or path.suffix in OTHER_COMMENTS:
            comment = re.compile(OTHER_COMMENTS.get(path.suffix, COMMENT.pattern))
            sentences, lines = comment_sentences(path.read_text(), comment)
            comment_lines += lines
            marks["what"] += [f"{path.relative_to(ROOT)}: {one}" for one in sentences
                              if WHAT.match(one) and not one.endswith("?")]
    for path, text in rust.items():
        name = path.relative_to(ROOT)
        sort_constants(name, set(CONSTANT.findall(text)), marks)
        product = product_code(path, text)
        product_lines += len(product.splitlines())
        marks["closures"] += [f"{name}: {one.group().strip()}" for one in CLOSURE.finditer(product)]
    for path in files:
        if path.suffix == ".py" and path != pathlib.Path(__file__).resolve():
            constants = ", ".join(PYTHON_CONSTANT.findall(path.read_text())).split(", ")
            sort_constants(path.relative_to(ROOT), set(constants), marks)
    if sys.argv[1:2] == ["--list"]:
        print("\n".join(marks[sys.argv[2]]))
        return 0

    rules = [path for path in rust if path.match("crates/extract/src/rules/**/*.rs") or path.match("crates/extract/src/rules/*.rs")
             or path.match("crates/extract/src/rules.rs")]
    rule_lines = sum(len(product_code(path, rust[path]).splitlines()) for path in rules)
    labels = {label for path in files if path.match("config/kinds/*/labels.toml")
              for label in read_labels(tomllib.loads(path.read_text()))}
    manual = [path for path in files if path.suffix == ".md"
              and (path.match("docs/*.md") or path.match("docs/*/*.md") or path.name in ("README.md", "CONTRIBUTING.md"))
              and "lab" not in path.parts]
    text_lines = sum(path.read_bytes().count(b"\n") for path in files if path.suffix in TEXT)
    service = sum(rust[path].count("\n") for path in rust if path.relative_to(ROOT).parts[0] == "src")
    # Name, figure, goal, ceiling.
    table = [
        ("\"What ...\" sentences per 1,000 comment lines", 1000 * len(marks["what"]) / comment_lines, 2, 2),
        ("constants MOST_, LONGEST_, LEAST_ ...", len(marks["constants"]), 0, 0),
        ("durations named for a mood", len(marks["durations"]), 0, 0),
        ("closures bound by let per 1,000 product lines", 1000 * len(marks["closures"]) / product_lines, 3, 3),
        ("rules reader, product lines", rule_lines, 8000, 10680),
        ("labels", len(labels), 6000, 6000),
        ("lines of src/", service, 10000, 10000),
        ("words of the manual", sum(len(WORD.findall(path.read_text())) for path in manual), 60000, 60000),
        ("lines of tracked text", text_lines, 240000, 408100),
    ]
    for name, figure, goal, ceiling in table:
        verdict = "ok" if figure <= goal else "open" if figure <= ceiling else "HIGH"
        print(f"{verdict:4} {name:48} {figure:9,.1f}   goal {goal:7,}   ceiling {ceiling:7,}")
    print(f"     {'labels printed on a page of the corpus':50} {100 * printed_share(labels, files):10.0f} %")
    return int(any(figure > ceiling for _, figure, _, ceiling in table))


if __name__ == "__main__":
    sys.exit(main())
