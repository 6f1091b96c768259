#!/usr/bin/env python3
"""Draws the pages of tests/corpus as PDFs, with truth beside them, for `docmill eval`.

    draw_corpus.py OUT [FOLDER...] [--scans]

OUT/NAME has what the folder tests/corpus/NAME describes; without FOLDER all folders but `layouts`.
README.md here describes the files. A column of a page is five points wide; two or more spaces
separate cells; a number that is not the first of its row is set flush right. `^` sets the rest of a
cell large, `*` bold, `~` small. A row `+++` begins the next page. `lower: COLUMN POINTS ROWS` sets
cells from that column on so much lower in the first rows: blocks beside each other share no lines.
Receipts are drawn on paper of 80 mm: every other one in a font of one width. With --scans
OUT/NAME/scans has receipts as a scanner would store them: turned, soft, grey and noisy.
All names and numbers are invented; that real documents are like these is not claimed. Needs
scripts/samples-requirements.txt and the DejaVu fonts.
"""

import argparse
import json
import pathlib
import random
import re

from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

CORPUS = pathlib.Path(__file__).parents[2] / "tests/corpus"
FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")
NAMES = ["DejaVuSansCondensed", "DejaVuSansCondensed-Bold", "DejaVuSerifCondensed", "DejaVuSerifCondensed-Bold",
         "DejaVuSansMono", "DejaVuSansMono-Bold"]
PRINT, SERIF, MONO = NAMES[:2], NAMES[2:4], NAMES[4:]
FIELDS = {"name": "supplier_name", "address": "supplier_address", "vat": "supplier_vat_id",
          "number": "invoice_number", "date": "invoice_date", "due": "due_date", "currency": "currency",
          "net": "subtotal", "tax": "vat_amount", "total": "total"}
WHOLE_LINES = ("about", "expect", "name", "address")
CELL = re.compile(r"\S+(?: \S+)*")
NUMERIC = re.compile(r"[-–*(]{0,2}(?:[A-Z]{3} |[£€$] ?|CHF )?-?[\d.,'  ]*\d(?: ?(?:[€%$]|[A-Z]{3}|kr\.?|lei|zł|лв\.|Kč|Lei|Ft|TL|T))?\)?$")
# Amounts on receipts: a code of the tax may follow.
AMOUNT = re.compile(rf"(?:{NUMERIC.pattern[:-1]})(?: ?[A-CSZFT]|\*[A-C])?$")
SIZES = {"^": 14, "~": 6.5}
COLUMN, LEFT = 5, 30
# Wider pages are drawn smaller.
COLUMNS = 110
# Paper of receipts, in points.
ROLL_WIDTH, ROLL_LEFT, ROLL_STEP = 227, 12, 10.5
SCAN_DPI = 200


def read_file(path):
    """Front matter, truth and page of a file of the corpus."""
    head, page = path.read_text(encoding="utf-8").split("---\n", 1)
    given = {}
    for line in head.splitlines():
        parts = [line] if line.split(":")[0] in WHOLE_LINES else line.split("  ")
        given.update(part.split(": ", 1) for part in parts)
    truth = {name: given.get(key) for key, name in FIELDS.items()} | json.loads(given.get("expect", "{}"))
    for name in ("subtotal", "vat_amount", "total"):
        truth[name] = truth[name] and float(truth[name])
    return given, {**truth, "line_items": None}, page.rstrip("\n")


def draw_page(path, page, names, lower):
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    for sheet in page.split("\n+++\n"):
        draw_rows(canvas, sheet.split("\n"), names, lower)
        canvas.showPage()
    canvas.save()


def draw_rows(canvas, rows, names, lower):
    step, y = min(13.5, 780 / len(rows)), 805
    scale = min(1, COLUMNS / max(len(text) for text in rows))
    for at, text in enumerate(rows):
        for cell in CELL.finditer(text):
            words = cell.group(0)
            mark = words[0] if words[0] in "^*~" else ""
            words = words[len(mark):]
            under = lower[1] if at < lower[2] and cell.start() >= lower[0] else 0
            size = SIZES.get(mark, 8.5)
            canvas.setFont(names[mark in ("^", "*")], size * scale)
            if cell.start() and NUMERIC.match(words) and size == 8.5:
                canvas.drawRightString(LEFT + COLUMN * scale * cell.end(), y - under, words)
            else:
                canvas.drawString(LEFT + COLUMN * scale * cell.start(), y - under, words)
        # Small print has less leading.
        small = text.strip() and all(cell.group(0)[0] == "~" for cell in CELL.finditer(text))
        y -= 0.68 * step if small else step


def draw_receipt(path, rows, names):
    column = (ROLL_WIDTH - 2 * ROLL_LEFT) / max(34, *(len(text) for text in rows))
    height = 40 + ROLL_STEP * sum(1.5 if "^" in text else 1 for text in rows)
    canvas = Canvas(str(path), pagesize=(ROLL_WIDTH, height), invariant=1)
    y = height - 24
    for text in rows:
        for cell in CELL.finditer(text):
            words = cell.group(0)
            mark = words[0] if words[0] in "^*~" and words[1:2].strip("*- ") else ""
            words = words[len(mark):]
            size = column / 0.602 * {"^": 1.4, "~": 0.8}.get(mark, 1)
            canvas.setFont(names[mark in ("^", "*")], size)
            if cell.start() and AMOUNT.match(words):
                canvas.drawRightString(ROLL_LEFT + column * cell.end(), y, words)
            elif cell.start() > 2 and cell.group(0) == text.strip():
                canvas.drawCentredString(ROLL_LEFT + column * (cell.start() + cell.end()) / 2, y, words)
            else:
                canvas.drawString(ROLL_LEFT + column * cell.start(), y, words)
        y -= ROLL_STEP * (1.5 if "^" in text else 1)
    canvas.save()


def scan_receipt(source, target, lot):
    import pypdfium2
    from PIL import Image, ImageFilter
    picture = pypdfium2.PdfDocument(str(source))[0].render(scale=SCAN_DPI / 72, grayscale=True).to_pil().convert("L")
    picture = picture.rotate(lot.uniform(-1.2, 1.2), Image.Resampling.BICUBIC, expand=True, fillcolor=244)
    picture = picture.filter(ImageFilter.GaussianBlur(lot.uniform(0.5, 0.9)))
    # Thermal print fades to grey.
    fade = lot.randint(20, 90)
    picture = picture.point(lambda value: fade + value * (245 - fade) // 255)
    noise = Image.frombytes("L", picture.size, lot.randbytes(picture.width * picture.height))
    Image.blend(picture, noise, 0.07).save(target, quality=72, dpi=(SCAN_DPI, SCAN_DPI))


def draw_folder(source, out, scans):
    folders = [out] + [out / "scans"] * scans
    for folder in folders:
        (folder / "truth").mkdir(parents=True, exist_ok=True)
    for at, path in enumerate(sorted(source.glob("*.txt"))):
        given, truth, page = read_file(path)
        name = f"{source.name}_{path.stem}"
        pdf, receipt = out / f"{name}.pdf", given["kind"] == "receipt"
        if receipt:
            draw_receipt(pdf, page.split("\n"), PRINT if at % 2 else MONO)
        else:
            draw_page(pdf, page, SERIF if at % 2 else PRINT, [int(value) for value in given.get("lower", "0 0 0").split()])
        if scans and receipt:
            scan_receipt(pdf, out / "scans" / f"{name}.jpg", random.Random(name))
        for folder in folders:
            text = json.dumps(truth, ensure_ascii=False, indent=1)
            (folder / "truth" / f"{name}.json").write_text(text, encoding="utf-8")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("folders", nargs="*")
    arguments.add_argument("--scans", action="store_true")
    given = arguments.parse_args()
    for name in NAMES:
        pdfmetrics.registerFont(TTFont(name, str(FONTS / f"{name}.ttf")))
    folders = given.folders or sorted(path.name for path in CORPUS.iterdir() if path.name != "layouts")
    for name in folders:
        draw_folder(CORPUS / name, given.out / name, given.scans)


if __name__ == "__main__":
    main()
