#!/usr/bin/env python3
"""Draws the pages of product_pages/ as PDFs with truth beside them, for `docmill eval`.

    draw_product_pages.py OUT [PAGES]

PAGES is product_pages/, or foreign_pages/, everyday_pages/, worldwide_pages/ or later_pages/, which other hands wrote
down later.
abroad_pages/ was written down without a look at the reader's rules;
sealed_pages/ likewise, and stays unread until the rules for the former are done; unseen_pages/ until the labels were broader.
fresh_pages/, common_pages/ and trade_pages/ likewise; the last has what trades, offices and old programs print.
varied_pages/ and closed_pages/ mix both with shops and other countries; the latter was read again only after the mends of the former.
mixed_pages/, outside_pages/, letterbox_pages/, postbag_pages/ and inbox_pages/ likewise, each in two halves, of which the second (a stem, `pools_au`,
whose SHA-256 begins with an odd byte) was opened after the mends of the first.
Needs reportlab and the DejaVu fonts. Each page is a text as the invoices of other people's software
are laid out: checkouts, book-keeping, payment advices, ERPs, web shops, hotels, utilities, telephone
companies, giro forms, letters of freelancers, and what the law of a country wants printed. A column
of the text is five points wide; two or more spaces part what is printed apart; a number that is not
the first of its row is set flush right. `^` sets what follows large, `*` bold, `~` small. Before
`---` stand the values; a row `+++` begins the next page. A value `lower: COLUMN POINTS ROWS` sets what begins
at that column or right of it so much lower in so many first rows: blocks beside each other share no lines. All names and numbers are invented; that real documents are like these is not
claimed.
"""

import argparse
import json
import pathlib
import re

from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")
NAMES = ["DejaVuSansCondensed", "DejaVuSansCondensed-Bold", "DejaVuSerifCondensed", "DejaVuSerifCondensed-Bold"]
SIZES = {"^": 14, "~": 6.5}
COLUMN, LEFT = 5, 30
# Wider pages are drawn smaller.
COLUMNS = 110
FIELDS = {"name": "supplier_name", "address": "supplier_address", "vat": "supplier_vat_id",
          "number": "invoice_number", "date": "invoice_date", "due": "due_date", "currency": "currency",
          "net": "subtotal", "tax": "vat_amount", "total": "total"}
CELL = re.compile(r"\S+(?: \S+)*")
NUMERIC = re.compile(r"[-–*(]{0,2}(?:[A-Z]{3} |[£€$] ?|CHF )?-?[\d.,'  ]*\d(?: ?(?:[€%$]|[A-Z]{3}|kr\.?|lei|zł|лв\.|Kč|Lei|Ft|TL|T))?\)?$")


def read_page(path):
    head, page = path.read_text(encoding="utf-8").split("---\n", 1)
    given = dict(line.split(": ", 1) for line in head.splitlines())
    truth = {name: given.get(key) for key, name in FIELDS.items()}
    for name in ("subtotal", "vat_amount", "total"):
        truth[name] = truth[name] and float(truth[name])
    lower = [int(value) for value in given.get("lower", "0 0 0").split()]
    return {**truth, "line_items": None}, page, lower


def draw_page(path, page, serif, lower):
    canvas = Canvas(str(path), pagesize=A4, invariant=1)
    for sheet in page.rstrip("\n").split("\n+++\n"):
        draw_rows(canvas, sheet.split("\n"), serif, lower)
        canvas.showPage()
    canvas.save()


def draw_rows(canvas, rows, serif, lower):
    step, y = min(13.5, 780 / len(rows)), 805
    scale = min(1, COLUMNS / max(len(text) for text in rows))
    for at, text in enumerate(rows):
        for cell in CELL.finditer(text):
            words = cell.group(0)
            mark = words[0] if words[0] in "^*~" else ""
            words = words[len(mark):]
            under = lower[1] if at < lower[2] and cell.start() >= lower[0] else 0
            size = SIZES.get(mark, 8.5)
            canvas.setFont(NAMES[2 * serif + (mark in ("^", "*") and mark != "")], size * scale)
            if cell.start() and NUMERIC.match(words) and size == 8.5:
                canvas.drawRightString(LEFT + COLUMN * scale * cell.end(), y - under, words)
            else:
                canvas.drawString(LEFT + COLUMN * scale * cell.start(), y - under, words)
        # Small print stands closer.
        small = text.strip() and all(cell.group(0)[0] == "~" for cell in CELL.finditer(text))
        y -= 0.68 * step if small else step


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("pages", type=pathlib.Path, nargs="?", default=pathlib.Path(__file__).parent / "product_pages")
    given = arguments.parse_args()
    for name in NAMES:
        pdfmetrics.registerFont(TTFont(name, str(FONTS / f"{name}.ttf")))
    (given.out / "truth").mkdir(parents=True, exist_ok=True)
    for at, path in enumerate(sorted(given.pages.glob("*.txt"))):
        truth, page, lower = read_page(path)
        draw_page(given.out / f"{given.pages.name[:5]}_{path.stem}.pdf", page, at % 2, lower)
        text = json.dumps(truth, ensure_ascii=False, indent=1)
        (given.out / "truth" / f"{given.pages.name[:5]}_{path.stem}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
