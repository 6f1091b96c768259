#!/usr/bin/env python3
"""Three words in a row that a change has in common with documents of others, which may not be copied here.

    scripts/foreign_text.py FOLDER [BASE]

FOLDER holds such documents: PDFs, of which the text layer is taken (pdftotext), and .txt and .json files beside
them. Of what was added since BASE (origin/main) each three words in a row are looked for in them that few of the
documents have; numbers count as words. Exit code 1 if there are any: labels and turns of phrase (`unit price
tax`) are among them, so a person decides. Not promised: what stands in pictures alone, single words and numbers,
what was changed a little.
"""

import collections
import pathlib
import re
import subprocess
import sys

IN_A_ROW = 3
# A sequence in more documents belongs to nobody.
FEW = 3
# Of the three words so many have more than two letters.
LONG = 2
# Some files are made so that no reader comes to an end.
SECONDS = 20


def runs(text):
    words = re.findall(r"[\w'’&./-]+", text.lower())
    return zip(*(words[at:] for at in range(IN_A_ROW)))


def text_of(path):
    if path.suffix != ".pdf":
        return path.read_text("utf-8", "replace")
    command = ["pdftotext", "-layout", path, "-"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        print(f"left out, takes more than {SECONDS} s: {path}", file=sys.stderr)
        return ""
    return done.stdout.decode("utf-8", "replace")


def added_lines(base):
    """File and text of each line that was added."""
    diff = subprocess.run(["git", "diff", "-U0", base], stdout=subprocess.PIPE, check=True)
    name = ""
    for line in diff.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith("+++ "):
            name = line.removeprefix("+++ b/")
        elif line.startswith("+"):
            # Pages are drawn in tests as one string.
            yield name, line[1:].replace("\\n", " ")


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    base = sys.argv[2] if len(sys.argv) == 3 else "origin/main"
    owners = collections.defaultdict(set)
    for path in pathlib.Path(sys.argv[1]).rglob("*"):
        if path.suffix in (".pdf", ".txt", ".json"):
            for run in runs(text_of(path)):
                owners[run].add(path.name)
    found = 0
    for name, line in added_lines(base):
        for run in runs(line):
            documents = owners.get(run, ())
            if 0 < len(documents) <= FEW and sum(len(word) > 2 for word in run) >= LONG:
                print(f"{name}: {' '.join(run)} ({min(documents)})")
                found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
