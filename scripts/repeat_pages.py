#!/usr/bin/env python3
"""How reading and judging grow with the words of a page. Run by repeat_pages.sh.

    repeat_pages.py DOCMILL FOLDER...

The lines of each PDF of the folders are repeated on one page until it has FEWER and MORE words, as an enemy would
who wants the most work of a page that is let through (`limits.page_words` is 20,000), and read by `docmill process`.
Prints the milliseconds of its steps for both. Exit code 1 if the reader's and the gate's time together grew
by more than MAX_GROWTH times for any: what is in proportion to the words grows 4 times, and squares 16. Files with few
words are left out. Wants pdftotext (poppler-utils); letters beyond Latin-1 become question marks.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

FEWER, MORE, MAX_GROWTH = 4500, 18000, 7
MIN_WORDS = 40
# The quickest counts: others have the machine as well.
RUNS = 2
# In points: the page is as high as PDF allows, so that 2,900 lines are on it.
SIZE, STEP, WIDE, HIGH = 4, 4.9, 2000, 14400


def lines_of(pdf):
    # Of one that asks for a password there are none.
    listed = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True)
    lines = (line.rstrip() for line in listed.stdout.replace("\f", "\n").split("\n"))
    return [line.encode("latin-1", "replace") for line in lines if line]


def repeated(lines, words):
    """The lines over and over, as long as neither the words nor the page are used up."""
    out, left = [], words
    while len(out) < (HIGH - 40) / STEP:
        line = lines[len(out) % len(lines)]
        left -= len(line.split())
        if left < 0:
            break
        out.append(line)
    return out


def draw(path, lines):
    """A PDF of one page with these lines in Courier."""
    escaped = (line.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") for line in lines)
    text = b"BT /F1 %d Tf %.1f TL 20 %d Td\n" % (SIZE, STEP, HIGH - 20)
    text += b"".join(b"(%s) Tj T*\n" % line for line in escaped) + b"ET"
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
        % (WIDE, HIGH),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        font,
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
    path.write_bytes(out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end)


def timings(docmill, lines, words, folder):
    path = folder / "repeated.pdf"
    draw(path, repeated(lines, words))
    return min((run_once(docmill, path) for _ in range(RUNS)), key=lambda steps: steps["extract"] + steps["gate"])


def run_once(docmill, path):
    done = subprocess.run([docmill, "process", path, "--json"], capture_output=True, text=True)
    if not done.stdout:
        raise SystemExit(f"docmill process said nothing: {done.stderr[-300:]}")
    return json.loads(done.stdout)["timings_ms"]


def main():
    docmill, *folders = sys.argv[1:]
    worst = 0.0
    print(f"{'ms: transcribe, extract, gate':<40}{FEWER:>20} words{MORE:>20} words{'growth':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for pdf in sorted(pdf for folder in folders for pdf in pathlib.Path(folder).glob("*.pdf")):
            lines = lines_of(pdf)
            if sum(len(line.split()) for line in lines) < MIN_WORDS:
                continue
            few, many = (timings(docmill, lines, words, pathlib.Path(folder)) for words in (FEWER, MORE))
            growth = (many["extract"] + many["gate"]) / max(few["extract"] + few["gate"], 1)
            worst = max(worst, growth)
            shown = (" ".join(f"{step[name]:>6}" for name in ("transcribe", "extract", "gate")) for step in (few, many))
            print(f"{pdf.name:<40}{next(shown):>26}{next(shown):>26}{growth:>8.1f}", flush=True)
    if worst == 0.0:
        raise SystemExit("no PDF with a text layer in these folders")
    if worst > MAX_GROWTH:
        raise SystemExit(f"what is repeated 4 times costs {worst:.1f} times as much")


if __name__ == "__main__":
    main()
