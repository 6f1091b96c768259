#!/usr/bin/env python3
"""Draws the documents of samples/ and writes samples/EXPECT.tsv.

    python3 -m venv target/tools/samples
    target/tools/samples/bin/pip install -r scripts/samples-requirements.txt
    target/tools/samples/bin/python scripts/make_samples.py samples

Every company, person and number is invented. The same package versions give the same bytes. Not
needed to build, test or run anything: what it draws is committed.

Fonts: the base 14 of PDF, which are not embedded; and Bitstream Vera (free to embed and to pass
on, its licence comes with ReportLab), embedded in the German invoice.
"""

import io
import pathlib
import random
import sys
from decimal import ROUND_HALF_UP, Decimal

import pypdfium2
from PIL import Image, ImageChops, ImageFilter
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from sample_einvoices import attached, cii, ubl
from sample_invoices import INVOICES, RECEIPT

WIDTH, HEIGHT = A4
LEFT, RIGHT = 57, WIDTH - 57
SCAN_DPI = 200


def cents(value):
    return Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)


def money(value, form):
    """`1234.5` in the way of a country: `1,234.50`, `1.234,50` or `1 234,50`."""
    whole, fraction = f"{cents(value):,.2f}".split(".")
    thousands, point = {"en": (",", "."), "de": (".", ","), "fr": ("\u00a0", ",")}[form]
    return whole.replace(",", thousands) + point + fraction


def sums(invoice):
    """(net, [(rate, tax)], gross), tax rounded per rate."""
    net, by_rate = Decimal(0), {}
    for _, quantity, price, rate in invoice["lines"]:
        amount = cents(Decimal(quantity) * Decimal(price))
        net += amount
        by_rate[rate] = by_rate.get(rate, Decimal(0)) + amount
    taxes = [(rate, cents(base * rate / 100)) for rate, base in sorted(by_rate.items())]
    return net, taxes, net + sum(tax for _, tax in taxes)


class Page:
    """A canvas that remembers how far down it has written."""

    def __init__(self, canvas, invoice):
        self.canvas = canvas
        self.invoice = invoice
        self.plain, self.bold = invoice["fonts"]
        self.y = HEIGHT - 62

    def text(self, x, text, *, size=9.5, bold=False, right=False):
        self.canvas.setFont(self.bold if bold else self.plain, size)
        draw = self.canvas.drawRightString if right else self.canvas.drawString
        draw(x, self.y, text)

    def down(self, points=13):
        self.y -= points

    def rule(self, weight=0.6):
        self.canvas.setLineWidth(weight)
        self.canvas.line(LEFT, self.y, RIGHT, self.y)

    def money(self, value):
        text = money(value, self.invoice["form"])
        symbol = self.invoice["symbol"]
        return f"{symbol}{text}" if self.invoice["form"] == "en" else f"{text} {symbol}"


def letterhead(page):
    invoice = page.invoice
    x, right = (RIGHT, True) if invoice["head"] == "right" else (LEFT, False)
    page.text(x, invoice["supplier"], size=16, bold=True, right=right)
    page.down(16)
    for line in invoice["address"]:
        page.text(x, line, size=8.5, right=right)
        page.down(11)
    page.down(8)
    page.rule()
    page.down(30)


def parties_and_facts(page):
    """The customer on the left, number and dates on the right: the usual two columns."""
    invoice = page.invoice
    top = page.y
    for line in invoice["customer"]:
        page.text(LEFT, line)
        page.down()
    bottom, page.y = page.y, top
    for label, value in invoice["facts"]:
        page.text(330, label)
        page.text(RIGHT, value, right=True, bold=label == invoice["facts"][0][0])
        page.down()
    page.y = min(page.y, bottom) - 22
    page.text(LEFT, invoice["title"], size=17, bold=True)
    page.down(26)
    if invoice.get("intro"):
        page.text(LEFT, invoice["intro"])
        page.down(22)


def table_head(page):
    what, quantity, price, rate, amount = page.invoice["columns"]
    page.text(LEFT, what, bold=True)
    page.text(345, quantity, bold=True, right=True)
    page.text(415, price, bold=True, right=True)
    page.text(462, rate, bold=True, right=True)
    page.text(RIGHT, amount, bold=True, right=True)
    page.down(5)
    page.rule()
    page.down(15)


def next_page(page):
    page.canvas.showPage()
    page.y = HEIGHT - 62
    number = page.invoice["facts"][0]
    page.text(LEFT, page.invoice["supplier"], bold=True)
    page.text(RIGHT, f"{number[0]} {number[1]}", right=True)
    page.down(30)
    table_head(page)


def table(page):
    table_head(page)
    form = page.invoice["form"]
    for what, quantity, price, rate in page.invoice["lines"]:
        if page.y < 260:
            next_page(page)
        page.text(LEFT, what)
        page.text(345, quantity.replace(".", "." if form == "en" else ","), right=True)
        page.text(415, money(price, form), right=True)
        page.text(462, f"{rate}%" if form == "en" else f"{rate} %", right=True)
        page.text(RIGHT, money(Decimal(quantity) * Decimal(price), form), right=True)
        page.down(17)
    page.rule()
    page.down(20)


def totals(page):
    invoice = page.invoice
    net, taxes, gross = sums(invoice)
    labels = invoice["totals"]
    rows = [(labels[0], net)]
    rows += [(labels[1].format(rate=rate), tax) for rate, tax in taxes]
    for label, value in rows:
        page.text(330, label)
        page.text(RIGHT, page.money(value), right=True)
        page.down(15)
    page.canvas.setLineWidth(0.6)
    page.canvas.line(330, page.y + 10, RIGHT, page.y + 10)
    page.down(5)
    page.text(330, labels[2], size=11, bold=True)
    page.text(RIGHT, page.money(gross), size=11, bold=True, right=True)
    page.down(36)


def footer(page):
    for line in page.invoice["terms"]:
        page.text(LEFT, line)
        page.down()
    page.y = 66
    page.rule(0.3)
    page.down(12)
    for line in page.invoice["footer"]:
        page.text(LEFT, line, size=7.5)
        page.down(10)


def pdf_of(invoice, **options):
    buffer = io.BytesIO()
    # `invariant` leaves out the time and random ids.
    canvas = Canvas(buffer, pagesize=A4, invariant=1, **options)
    canvas.setTitle(f"{invoice['title']} {invoice['facts'][0][1]}")
    canvas.setAuthor(invoice["supplier"])
    page = Page(canvas, invoice)
    for part in (letterhead, parties_and_facts, table, totals, footer):
        part(page)
    canvas.save()
    return buffer.getvalue()


def receipt_pdf():
    size = (226, 24 + 13 * len(RECEIPT["lines"]))
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=size, invariant=1)
    y = size[1] - 22
    for line in RECEIPT["lines"]:
        # Bold throughout, as thermal printers do.
        canvas.setFont("Courier-Bold", 9.2)
        canvas.drawString(15, y, line)
        y -= 13
    canvas.save()
    return buffer.getvalue()


def rendered(pdf, dpi):
    """The first page as a grey image."""
    page = pypdfium2.PdfDocument(pdf)[0]
    return page.render(scale=dpi / 72, grayscale=True).to_pil().convert("L")


def grain(image, strength, seed):
    """Fine noise, the same every time: Pillow's own noise has no seed."""
    small = (image.width // 2, image.height // 2)
    noise = Image.frombytes("L", small, random.Random(seed).randbytes(small[0] * small[1]))
    noise = noise.resize(image.size, Image.Resampling.BILINEAR)
    noise = noise.point(lambda value: 255 - (255 - value) * strength // 255)
    return ImageChops.multiply(image, noise)


def jpeg(image, quality, dpi=None):
    buffer = io.BytesIO()
    options = {"dpi": (dpi, dpi)} if dpi else {}
    image.save(buffer, "JPEG", quality=quality, optimize=True, **options)
    return buffer.getvalue()


def skewed_scan(pdf, degrees):
    image = rendered(pdf, SCAN_DPI)
    image = image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=250)
    image = grain(image.point(lambda value: 18 + value * 232 // 255), 12, seed=1)
    return jpeg(image, 52, SCAN_DPI)


def perspective(size, corners):
    """Coefficients for Pillow that put the whole picture into `corners` (clockwise from the
    upper left): eight linear equations, solved by elimination."""
    w, h = size
    rows = []
    for (x, y), (u, v) in zip(corners, [(0, 0), (w, 0), (w, h), (0, h)]):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y, u])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y, v])
    for column in range(8):
        pivot = max(range(column, 8), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(8):
            if row != column:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return [row[8] for row in rows]


def phone_photo(pdf):
    """The page on a table, seen a little from the side, with light from one corner."""
    page = rendered(pdf, 170)
    w, h = page.size
    size = (w + 150, h + 170)
    corners = [(70, 62), (w + 62, 88), (w + 96, h + 92), (44, h + 120)]
    how = (size, Image.Transform.PERSPECTIVE, perspective(page.size, corners))
    paper = page.transform(*how, Image.Resampling.BICUBIC)
    mask = Image.new("L", page.size, 255).transform(*how, Image.Resampling.BILINEAR)
    photo = Image.composite(paper, Image.new("L", size, 96), mask)
    light = Image.linear_gradient("L").rotate(35, Image.Resampling.BICUBIC, fillcolor=128)
    light = light.crop((40, 40, 216, 216)).resize(size, Image.Resampling.BICUBIC)
    light = light.point(lambda value: 168 + value * 87 // 255)
    photo = ImageChops.multiply(photo, light).filter(ImageFilter.GaussianBlur(0.6))
    return jpeg(grain(photo, 16, seed=2), 64)


def receipt_photo(pdf):
    image = rendered(pdf, 250)
    sheet = Image.new("L", (image.width + 60, image.height + 60), 235)
    sheet.paste(image, (30, 30))
    return jpeg(grain(sheet.point(lambda value: 30 + value * 215 // 255), 12, seed=3), 60, 250)


def pdf_around(picture, dpi):
    """A PDF as scanners write it: the picture first, what refers to it afterwards."""
    width, height = Image.open(io.BytesIO(picture)).size
    box = f"{width * 72 / dpi:.2f} {height * 72 / dpi:.2f}"
    paint = f"q {box.replace(' ', ' 0 0 ')} 0 0 cm /P Do Q".encode()
    bodies = [
        f"<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace "
        f"/DeviceGray /BitsPerComponent 8 /Filter /DCTDecode /Length {len(picture)} >>\n"
        "stream\n".encode() + picture + b"\nendstream",
        f"<< /Length {len(paint)} >>\nstream\n".encode() + paint + b"\nendstream",
        f"<< /Type /Page /Parent 4 0 R /MediaBox [0 0 {box}] /Contents 2 0 R "
        "/Resources << /XObject << /P 1 0 R >> >> >>".encode(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Catalog /Pages 4 0 R >>",
    ]
    out, offsets = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"), []
    for number, body in enumerate(bodies, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table_at = len(out)
    out += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    out += f"trailer\n<< /Size {len(bodies) + 1} /Root 5 0 R >>\n".encode()
    return bytes(out + f"startxref\n{table_at}\n%%EOF\n".encode())


def blank_page():
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def documents():
    """(file name, bytes, the invoice it shows or the reason it fails)."""
    for name in ("invoice_en", "rechnung_de", "facture_fr", "factuur_nl", "factura_es"):
        yield f"{name}.pdf", pdf_of(INVOICES[name]), INVOICES[name]
    hybrid, bare = INVOICES["einvoice_cii"], INVOICES["einvoice_ubl"]
    xml = cii(hybrid, *sums(hybrid))
    yield "einvoice_facturx.pdf", attached(pdf_of(hybrid), b"factur-x.xml", xml), hybrid
    yield "einvoice_ubl.xml", ubl(bare, *sums(bare)), bare
    scan = pdf_around(skewed_scan(pdf_of(INVOICES["scan"]), 2.3), SCAN_DPI)
    yield "scan_skewed.pdf", scan, INVOICES["scan"]
    yield "photo.jpg", phone_photo(pdf_of(INVOICES["photo"])), INVOICES["photo"]
    yield "receipt.jpg", receipt_photo(receipt_pdf()), RECEIPT
    yield "blank.pdf", blank_page(), "no_text"
    # An upload that broke off inside the picture: no page was written yet.
    yield "truncated.pdf", scan[:6000], "corrupt"
    locked = StandardEncryption("a password", ownerPassword="another", strength=128)
    yield "encrypted.pdf", pdf_of(INVOICES["scan"], encrypt=locked), "encrypted"


def expectation(name, end):
    if isinstance(end, str):
        return (name, "failed", end, "-", "-", "-")
    total = end["total"] if "total" in end else sums(end)[2]
    return (name, "completed", "-", end["supplier"], end["facts"][0][1], str(total))


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in (("Vera", "Vera.ttf"), ("Vera-Bold", "VeraBd.ttf")):
        pdfmetrics.registerFont(TTFont(name, file))
    rows = [("file", "status", "reason", "supplier", "number", "total")]
    for name, content, end in documents():
        (folder / name).write_bytes(content)
        rows.append(expectation(name, end))
    table_text = "".join("\t".join(row) + "\n" for row in rows)
    (folder / "EXPECT.tsv").write_text(table_text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_samples.py FOLDER")
    main(pathlib.Path(sys.argv[1]))
