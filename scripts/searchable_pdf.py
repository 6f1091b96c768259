"""Searchable copies against qpdf, pdftotext and PDFBox; called by searchable_pdf.sh with docmill's program
and documents. Prints a line per document and exits 1 at the first difference."""

import html
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

DOCMILL, *DOCUMENTS = sys.argv[1:]
# How far a word may lie from its box, in points: numbers in a PDF are rounded.
NEAR = 0.75
JARS = ["preflight", "pdfbox2", "fontbox2", "xmpbox", "commons-logging", "javax.activation", "jaxb-api"]


def run(*command, **more):
    return subprocess.run(command, capture_output=True, **more)


def transcribe(document, *more):
    began = time.monotonic()
    done = run(DOCMILL, "transcribe", document, "--json", *more)
    assert done.returncode == 0, f"{document}: {done.stderr.decode()}"
    return json.loads(done.stdout), time.monotonic() - began


def words_of(copy):
    """Size of each page, and its words with their places, as pdftotext finds them."""
    found = run("pdftotext", "-bbox", str(copy), "-").stdout.decode()
    pages = []
    for width, height, body in re.findall(
            r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', found, re.DOTALL):
        words = re.findall(
            r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>', body)
        places = [([float(edge) for edge in edges], html.unescape(text)) for *edges, text in words]
        pages.append((float(width), float(height), places))
    return pages


def compare_page(document, page, shown):
    """Every word once, at its place; the order is the program's own."""
    width, height, places = shown
    left = list(places)
    words = [word for line in page["lines"] for word in line["words"]]
    for word in words:
        box = word["box"]
        across, down = width / page["width"], height / page["height"]
        edges = [box["x"] * across, box["y"] * down, (box["x"] + box["w"]) * across,
                 (box["y"] + box["h"]) * down]
        near = [one for one in left if one[1] == word["text"]
                and all(abs(a - b) <= NEAR for a, b in zip(one[0], edges))]
        assert near, f"{document}, page {page['number']}: a word is not where it was read, {edges}"
        left.remove(near[0])
    assert not left, f"{document}, page {page['number']}: {len(left)} words too many"
    return len(words)


def check_archive(copy, folder):
    """PDFBox knows PDF/A-1b: given the copy as one, it finds nothing."""
    claimed = folder / "as-1b.pdf"
    part = b"<pdfaid:part>%d</pdfaid:part>"
    claimed.write_bytes(copy.read_bytes().replace(part % 2, part % 1))
    path = ":".join(f"/usr/share/java/{jar}.jar" for jar in JARS)
    done = run("java", "-cp", path, "org.apache.pdfbox.preflight.Validator_A1b", str(claimed))
    said = (done.stdout + done.stderr).decode()
    assert "is a valid PDF/A-1b file" in said, said
    # It finds what is wrong: greys that nothing says the meaning of.
    wrong = folder / "wrong.pdf"
    wrong.write_bytes(claimed.read_bytes().replace(b"/OutputIntents", b"/OutputIntentx"))
    done = run("java", "-cp", path, "org.apache.pdfbox.preflight.Validator_A1b", str(wrong))
    assert "is a valid PDF/A-1b file" not in (done.stdout + done.stderr).decode()


for document in DOCUMENTS:
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        copy = folder / "copy.pdf"
        plain, alone = transcribe(document)
        read, beside = transcribe(document, "--searchable", str(copy))
        assert plain == read, f"{document}: a copy changes what is read"
        checked = run("qpdf", "--check", str(copy))
        assert checked.returncode == 0, checked.stdout.decode() + checked.stderr.decode()
        shown = words_of(copy)
        assert len(shown) == len(read["pages"]), f"{document}: {len(shown)} pages"
        count = sum(compare_page(document, *pair) for pair in zip(read["pages"], shown))
        check_archive(copy, folder)
        size, original = copy.stat().st_size, os.path.getsize(document)
        print(f"{document}: {len(shown)} pages, {count} words in place, {size / 1e3:.0f} kB "
              f"(the original {original / 1e3:.0f} kB), {beside - alone:+.2f} s over {alone:.2f} s")
