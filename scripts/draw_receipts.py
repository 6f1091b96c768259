#!/usr/bin/env python3
"""Draws the receipts of till_pages/, or of another folder, as PDFs and as scans, with truth beside them, for
`docmill eval`.

    target/tools/samples/bin/python scripts/draw_receipts.py OUT [PAGES] [--scans]

Needs reportlab, Pillow and pypdfium2 (scripts/samples-requirements.txt) and the DejaVu fonts. Each is
a text as tills print it, 48 characters wide at most: shops, taxis, fuel, restaurants, garages,
chemists, card slips and refunds of 27 countries. One half is set in a font of one width, as printers of tills
do, the other in one like print, with what is flush right set so. `^` sets what follows large, `*`
bold, `~` small. Before `---` stand the values. With --scans OUT/scans has the same as a scanner would store them: a little
turned, soft, grey and full of noise. All names and numbers are invented; that real receipts are like
these is not claimed.
"""

import argparse
import json
import pathlib
import random
import re

from draw_product_pages import CELL, FONTS, NUMERIC, read_page
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

MONO, MONO_BOLD = "DejaVuSansMono", "DejaVuSansMono-Bold"
PRINT, PRINT_BOLD = "DejaVuSansCondensed", "DejaVuSansCondensed-Bold"
# Paper of 80 mm, in points.
WIDTH, LEFT, STEP = 227, 12, 10.5
SCAN_DPI = 200
# What stands in the column of amounts: a code of the tax may follow.
AMOUNT = re.compile(rf"(?:{NUMERIC.pattern[:-1]})(?: ?[A-CSZFT]|\*[A-C])?$")


def draw_receipt(path, rows, one_width):
    column = (WIDTH - 2 * LEFT) / max(34, *(len(text) for text in rows))
    height = 40 + STEP * sum(1.5 if "^" in text else 1 for text in rows)
    canvas = Canvas(str(path), pagesize=(WIDTH, height), invariant=1)
    y = height - 24
    for text in rows:
        for cell in CELL.finditer(text):
            words = cell.group(0)
            mark = words[0] if words[0] in "^*~" and words[1:2].strip("*- ") else ""
            words = words[len(mark):]
            size = column / 0.602 * {"^": 1.4, "~": 0.8}.get(mark, 1)
            names = (MONO, MONO_BOLD) if one_width else (PRINT, PRINT_BOLD)
            canvas.setFont(names[mark in ("^", "*")], size)
            if cell.start() and AMOUNT.match(words):
                canvas.drawRightString(LEFT + column * cell.end(), y, words)
            elif cell.start() > 2 and cell.group(0) == text.strip():
                canvas.drawCentredString(LEFT + column * (cell.start() + cell.end()) / 2, y, words)
            else:
                canvas.drawString(LEFT + column * cell.start(), y, words)
        y -= STEP * (1.5 if "^" in text else 1)
    canvas.save()


def scan_receipt(source, target, lot):
    """The sheet as a scanner would store it."""
    import pypdfium2
    from PIL import Image, ImageFilter
    picture = pypdfium2.PdfDocument(str(source))[0].render(scale=SCAN_DPI / 72, grayscale=True).to_pil().convert("L")
    picture = picture.rotate(lot.uniform(-1.2, 1.2), Image.Resampling.BICUBIC, expand=True, fillcolor=244)
    picture = picture.filter(ImageFilter.GaussianBlur(lot.uniform(0.5, 0.9)))
    # Heat fades: what is black comes out grey.
    fade = lot.randint(20, 90)
    picture = picture.point(lambda value: fade + value * (245 - fade) // 255)
    noise = Image.frombytes("L", picture.size, lot.randbytes(picture.width * picture.height))
    Image.blend(picture, noise, 0.07).save(target, quality=72, dpi=(SCAN_DPI, SCAN_DPI))


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("pages", type=pathlib.Path, nargs="?", default=pathlib.Path(__file__).parent / "till_pages")
    arguments.add_argument("--scans", action="store_true")
    given = arguments.parse_args()
    for name in (MONO, MONO_BOLD, PRINT, PRINT_BOLD):
        pdfmetrics.registerFont(TTFont(name, str(FONTS / f"{name}.ttf")))
    folders = [given.out] + [given.out / "scans"] * given.scans
    for folder in folders:
        (folder / "truth").mkdir(parents=True, exist_ok=True)
    for at, path in enumerate(sorted(given.pages.glob("*.txt"))):
        truth, page, _ = read_page(path)
        rows = page.rstrip("\n").split("\n")
        name = f"till_{path.stem}"
        draw_receipt(given.out / f"{name}.pdf", rows, at % 2 == 0)
        if given.scans:
            scan_receipt(given.out / f"{name}.pdf", given.out / "scans" / f"{name}.jpg", random.Random(name))
        for folder in folders:
            text = json.dumps(truth, ensure_ascii=False, indent=1)
            (folder / "truth" / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
