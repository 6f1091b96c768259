#!/usr/bin/env python3
"""Draws 33 invoices and credit notes and eight receipts of issuers that no other script has, with truth.

    draw_strangers.py OUT

Needs reportlab and the DejaVu fonts. For `docmill eval` after a change of the rules reader: layouts
are unlike those of draw_invoices.py (boxes, labels in small print above their values, parties in
three columns, totals in a row of a table or at the head, tax by rate in a table of its own), and so
are labels (`Belegnr.`, `N° de pièce`, `Nr. documento`). The content of each document is fixed, nothing is
drawn by lot. All names and numbers are invented; that real documents are like these is not claimed.
"""

import argparse
import datetime
import json
import pathlib
from decimal import ROUND_HALF_UP, Decimal

from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from stranger_words import BUYERS, ISSUERS, SHOPS, WORDS

FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")
NAMES = ["DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSansMono",
         "DejaVuSansMono-Bold", "DejaVuSansCondensed", "DejaVuSansCondensed-Bold"]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
CENT = Decimal("0.01")
LEFT, RIGHT = 48, 547
FORMS = ["{:05}", "{y}-{:04}", "{y}/{:03}", "M{:06}", "{:03}.{y}", "RB {:05}"]
# Extra content of a document: one of these for each language and document, in turn.
EXTRAS = ["", "rates", "discount", "credit", "shipping", "reverse", "deposit"]


def cents(value):
    return Decimal(value).quantize(CENT, ROUND_HALF_UP)


class Bill:
    """The printed texts and the truth of one invoice."""

    def __init__(self, language, own, at):
        words = WORDS[language]
        self.words, self.own, self.at, self.language = words, own, at, language
        self.extra = EXTRAS[at % len(EXTRAS)]
        self.name, self.street, self.town, self.vat, self.domain = ISSUERS[language][own].split("|")
        self.swiss = self.vat.startswith("CHE")
        self.currency = "CHF" if self.swiss else words["currency"]
        self.sign = "CHF" if self.swiss else words["sign"]
        buyer, self.depot = BUYERS[language]
        *self.buyer, self.buyer_vat = buyer.split("|")
        self.depot = self.depot.split("|")
        self.credit = self.extra == "credit"
        self.date = datetime.date(2024, 1, 7) + datetime.timedelta(days=17 * at)
        self.due = None if self.credit else self.date + datetime.timedelta(days=[14, 30, 10][own])
        self.number = FORMS[at % len(FORMS)].format(1187 + 331 * at, y=self.date.year)
        self.lines = []
        for place in range([3, 2, 4][own]):
            quantity = Decimal(["12", "3", "1.5", "40"][(at + place) % 4])
            price = cents(Decimal("18.35") * (place * 7 + at % 5 + 1))
            self.lines.append((words["goods"][place], quantity, price, cents(quantity * price)))
        self.add_up()

    def add_up(self):
        rates = ["8.1", "2.6"] if self.swiss else self.words["rates"]
        two = self.extra == "rates" and len(rates) > 1
        self.rates = rates if two else rates[:1]
        self.goods = sum(line[3] for line in self.lines)
        self.discount = -cents(self.goods * Decimal("0.05")) if self.extra == "discount" else None
        self.shipping = Decimal("24.50") if self.extra == "shipping" else None
        self.net = self.goods + (self.discount or 0) + (self.shipping or 0)
        second = self.lines[-1][3] if two else Decimal(0)
        self.bases = [self.net - second, second][: len(self.rates)]
        percent = [Decimal(rate.replace(",", ".")) for rate in self.rates]
        self.taxes = [cents(base * rate / 100) for base, rate in zip(self.bases, percent)]
        if self.extra == "reverse":
            self.rates, self.taxes, self.bases = ["0"], [Decimal("0.00")], [self.net]
        self.tax = sum(self.taxes)
        self.total = self.net + self.tax
        self.paid = cents(self.total / 4) if self.extra == "deposit" else None

    def pick(self, name):
        return self.words[name][self.own]

    def number_label(self):
        return self.words["credit_number"] if self.credit else self.pick("number")

    def total_label(self):
        return self.words["total_credit"] if self.credit else self.pick("total")

    def title(self):
        return self.words["credit"] if self.credit else self.pick("invoice")

    def amount(self, value):
        group, mark = ("'", ".") if self.swiss else (self.words["group"], self.words["mark"])
        return f"{value:,.2f}".replace(",", "\0").replace(".", mark).replace("\0", group)

    def quantity(self, value):
        return f"{value}".replace(".", "." if self.swiss else self.words["mark"])

    def day(self, date):
        form = self.pick("dates").replace("%b", MONTHS[date.month - 1])
        return date.strftime(form)

    def facts(self):
        """Number, day of issue and due day, among others that are none of them."""
        words, at = self.words, self.at
        facts = [(self.number_label(), self.number), (self.pick("date"), self.day(self.date))]
        if self.due:
            facts.append((self.pick("due"), self.day(self.due)))
        others = [(words["customer_number"], f"{40100 + 37 * at}"), (words["order"], f"{7700 + at * 13}"),
                  (words["delivered"], self.day(self.date - datetime.timedelta(days=4)))]
        if self.credit:
            before = self.day(self.date - datetime.timedelta(days=45))
            others[1] = (words["original"], f"{88000 + at} / {before}")
        for place, other in enumerate(others[: 2 + at % 2]):
            facts.insert((at + 2 * place) % (len(facts) + 1), other)
        return facts

    def totals(self):
        """Rows under the lines: label, amount, whether it is the total."""
        words, rows = self.words, []
        if self.discount or self.shipping:
            rows.append((words["goods_total"], self.goods, False))
        if self.discount:
            rows.append((words["discount"] + " 5%", self.discount, False))
        if self.shipping:
            rows.append((words["shipping"], self.shipping, False))
        rows.append((self.pick("net"), self.net, False))
        rows += [(self.pick("tax").format(rate=rate), tax, False) for rate, tax in zip(self.rates, self.taxes)]
        rows.append((self.total_label(), self.total, True))
        if self.paid:
            rows += [(words["paid"], -self.paid, False), (words["rest"], self.total - self.paid, False)]
        return rows

    def truth(self):
        row = lambda line: {"description": line[0], "quantity": float(line[1]),
                            "unit_price": float(line[2]), "amount": float(line[3])}
        return {
            "supplier_name": self.name, "supplier_address": f"{self.street}, {self.town}",
            "supplier_vat_id": self.vat.replace(" ", ""), "invoice_number": self.number,
            "invoice_date": self.date.isoformat(), "due_date": self.due and self.due.isoformat(),
            "currency": self.currency, "line_items": [row(line) for line in self.lines],
            "subtotal": float(self.net), "vat_amount": float(self.tax), "total": float(self.total),
        }


class Sheet:
    """A page on which one bill is laid out."""

    def __init__(self, path, bill, size=A4):
        self.canvas, self.bill = Canvas(str(path), pagesize=size, invariant=1), bill
        self.font = ["DejaVuSans", "DejaVuSerif", "DejaVuSansCondensed"][bill.at % 3] if bill else NAMES[4]
        self.y = size[1] - 45

    def put(self, x, y, text, size=9, bold=False, align="l", grey=0):
        self.canvas.setFont(self.font + ("-Bold" if bold else ""), size)
        self.canvas.setFillGray(grey)
        draw = {"l": self.canvas.drawString, "r": self.canvas.drawRightString,
                "c": self.canvas.drawCentredString}[align]
        draw(x, y, text)

    def stack(self, x, y, lines, size=9, step=12.5, align="l", bold=False):
        for line in lines:
            self.put(x, y, line, size, bold, align)
            y -= step
        return y

    def lines(self, y, places, columns=None, step=15):
        """The table of lines; `places`: left of the description, right ends of the other columns."""
        bill = self.bill
        names = columns or bill.pick("columns")
        self.put(places[0], y, names[0], 8, True)
        for x, name in zip(places[1:], names[1:]):
            self.put(x, y, name, 8, True, "r")
        self.canvas.line(LEFT, y - 4, RIGHT, y - 4)
        y -= step + 3
        for text, quantity, price, amount in bill.lines:
            cells = [bill.quantity(quantity), bill.amount(price), bill.amount(amount)]
            self.put(places[0], y, text)
            for x, cell in zip(places[1:], cells):
                self.put(x, y, cell, align="r")
            y -= step
        return y - 6

    def sums(self, y, x=330, right=RIGHT, step=14):
        bill = self.bill
        for label, amount, total in bill.totals():
            shown = bill.amount(amount)
            if total:
                shown = f"{bill.sign} {shown}" if bill.at % 2 else f"{shown} {bill.sign}"
            self.put(x, y, label, 9, total)
            self.put(right, y, shown, 9, total, "r")
            y -= step
        return y

    def notes(self, y):
        bill = self.bill
        if bill.extra == "reverse":
            self.put(LEFT, y, bill.words["reverse"], 8)
            y -= 12
        self.put(LEFT, y, bill.words["terms"], 8)

    def foot(self, y=52):
        bill = self.bill
        columns = [[bill.name, bill.street, bill.town],
                   [f"{bill.words['phone']} 0999 55 01 {bill.at:02}", f"info@{bill.domain}", f"www.{bill.domain}"],
                   [bill.words["bank"], f"{bill.words['vat']} {bill.vat}", bill.words["page"]]]
        for x, column in zip((LEFT, 225, 380), columns):
            self.stack(x, y, column, 6.5, 9)


def boxed(sheet):
    """Name in the middle above, a box of facts with values at its right edge, the totals one row."""
    bill = sheet.bill
    sheet.put(297, 790, bill.name, 17, True, "c")
    sheet.put(297, 775, f"{bill.street}, {bill.town}", 7.5, align="c")
    sheet.put(297, 765, f"www.{bill.domain}   {bill.words['vat']} {bill.vat}", 7.5, align="c")
    sheet.stack(LEFT, 720, bill.buyer)
    facts = bill.facts()
    sheet.canvas.rect(330, 728 - 15 * len(facts), RIGHT - 330, 15 * len(facts) + 4)
    for at, (label, value) in enumerate(facts):
        sheet.put(336, 718 - 15 * at, label, 8)
        sheet.put(RIGHT - 6, 718 - 15 * at, value, 9, align="r")
    sheet.put(LEFT, 628, bill.title(), 15, True)
    y = sheet.lines(600, (LEFT, 340, 430, RIGHT)) - 14
    if len(bill.totals()) > 3:
        y = sheet.sums(y)
    else:
        step = (RIGHT - LEFT) / len(bill.totals())
        for at, (label, amount, total) in enumerate(bill.totals()):
            x = LEFT + step * at
            sheet.canvas.rect(x, y - 20, step, 32)
            sheet.put(x + 5, y + 2, label, 7)
            sheet.put(x + step - 5, y - 14, bill.amount(amount) + (f" {bill.sign}" if total else ""), 10, total, "r")
        y -= 40
    sheet.notes(y - 14)
    sheet.put(297, 40, bill.words["bank"], 7, align="c")


def banner(sheet):
    """A dark bar with the name, facts as small labels over their values, two parties side by side."""
    bill = sheet.bill
    sheet.canvas.setFillGray(0.2)
    sheet.canvas.rect(0, 780, 595, 62, stroke=0, fill=1)
    sheet.put(LEFT, 803, bill.name, 15, True, grey=1)
    sheet.put(RIGHT, 803, bill.title().upper(), 12, align="r", grey=1)
    facts = bill.facts()
    step = (RIGHT - LEFT) / len(facts)
    for at, (label, value) in enumerate(facts):
        sheet.put(LEFT + step * at, 752, label, 6.5)
        sheet.put(LEFT + step * at, 740, value, 10, True)
    sheet.put(LEFT, 705, bill.pick("bill"), 8, True)
    sheet.stack(LEFT, 691, [*bill.buyer, f"{bill.words['vat']} {bill.buyer_vat}"])
    sheet.put(310, 705, bill.words["ship"], 8, True)
    sheet.stack(310, 691, bill.depot)
    y = sheet.sums(sheet.lines(600, (LEFT, 330, 430, RIGHT)))
    sheet.notes(y - 20)
    sheet.foot()


def letter(sheet):
    """A column of the sender's details at the right, the customer in the window, number and day in a
    sentence over the lines."""
    bill = sheet.bill
    words = bill.words
    sheet.put(380, 790, bill.name.split(" ")[0].upper(), 18, True)
    sheet.stack(380, 760, [bill.name, bill.street, bill.town, f"{words['phone']} 0999 551 2{bill.at:02}",
                           f"post@{bill.domain}", f"{words['vat']}: {bill.vat}"], 7.5, 10.5)
    sheet.put(LEFT, 712, f"{bill.name} · {bill.street} · {bill.town}", 6)
    sheet.stack(LEFT, 698, bill.buyer)
    town = bill.town.split(" ", 1)[-1] if bill.town[0].isdigit() else bill.town.split(" ")[0]
    sheet.put(380, 640, f"{town}, {bill.day(bill.date)}")
    sheet.put(LEFT, 612, f"{bill.number_label()} {bill.number}", 12, True)
    others = [f"{label}: {value}" for label, value in bill.facts() if label not in
              (bill.number_label(), bill.pick("date"), bill.pick("due"))]
    sheet.put(LEFT, 596, "   ".join(others), 8)
    y = sheet.sums(sheet.lines(565, (LEFT, 330, 430, RIGHT)), x=250)
    if bill.due:
        sheet.put(LEFT, y - 12, f"{bill.pick('due')} {bill.day(bill.due)}.", 9)
    sheet.notes(y - 30)
    sheet.put(LEFT, 40, words["bank"], 7)


def form(sheet):
    """A grid of cells with tiny labels over the values; who issues it stands at the foot alone."""
    bill = sheet.bill
    sheet.put(LEFT, 795, bill.title(), 16, True)
    facts = [*bill.facts(), (bill.words["page"].split(" ")[0], "1")]
    for at, (label, value) in enumerate(facts):
        x, y = LEFT + 167 * (at % 3), 748 - 30 * (at // 3)
        sheet.canvas.rect(x, y, 167, 30)
        sheet.put(x + 4, y + 21, label, 6)
        sheet.put(x + 8, y + 6, value, 10)
    sheet.put(LEFT, 655, bill.pick("bill") + ":", 7)
    sheet.stack(LEFT, 642, [*bill.buyer, bill.buyer_vat])
    y = sheet.sums(sheet.lines(565, (LEFT, 330, 430, RIGHT)), x=350)
    sheet.notes(y - 16)
    sheet.put(297, 66, bill.name, 9, True, "c")
    sheet.put(297, 54, f"{bill.street} · {bill.town} · {bill.words['vat']} {bill.vat}", 7, align="c")
    sheet.put(297, 44, f"{bill.words['bank']} · www.{bill.domain}", 7, align="c")


def parties(sheet):
    """Three parties in columns under headings, facts in two blocks under them."""
    bill = sheet.bill
    words = bill.words
    sheet.put(RIGHT, 800, bill.title(), 18, align="r")
    blocks = [(words["seller"], [bill.name, bill.street, bill.town, f"{words['vat']} {bill.vat}"]),
              (bill.pick("bill"), [*bill.buyer, f"{words['vat']} {bill.buyer_vat}"]),
              (words["ship"], bill.depot)]
    for x, (heading, lines) in zip((LEFT, 222, 396), blocks):
        sheet.put(x, 765, heading, 8, True)
        sheet.canvas.line(x, 761, x + 150, 761)
        sheet.stack(x, 748, lines, 8.5)
    facts = bill.facts()
    half = (len(facts) + 1) // 2
    for at, (label, value) in enumerate(facts):
        x, y = (LEFT, 315)[at // half], 670 - 14 * (at % half)
        sheet.put(x, y, f"{label}:", 8.5)
        sheet.put(x + 205, y, value, 8.5, align="r")
    y = sheet.lines(600, (LEFT, 340, 430, RIGHT)) - 4
    if len(bill.rates) > 1:
        places = (120, 210, 290, 380)
        for x, name in zip(places, words["table"]):
            sheet.put(x, y, name, 7.5, True, "r")
        for rate, base, tax in zip(bill.rates, bill.bases, bill.taxes):
            y -= 12
            for x, cell in zip(places, (f"{rate}%", *map(bill.amount, (base, tax, base + tax)))):
                sheet.put(x, y, cell, 8, align="r")
        y -= 22
    y = sheet.sums(y)
    sheet.notes(y - 16)
    sheet.put(LEFT, 40, f"{words['bank']}   info@{bill.domain}", 7)


def summary(sheet):
    """Prints the amount due at the head, large; the lines and their sums come under it."""
    bill = sheet.bill
    words = bill.words
    sheet.put(LEFT, 800, bill.name, 12, True)
    sheet.stack(LEFT, 787, [bill.street, bill.town, f"{words['phone']} 0999 555 77"], 7.5, 9.5)
    sheet.stack(RIGHT, 800, [*bill.buyer], align="r")
    sheet.canvas.rect(LEFT, 668, RIGHT - LEFT, 56)
    sheet.put(LEFT + 10, 706, bill.total_label(), 8)
    sheet.put(LEFT + 10, 682, f"{bill.amount(bill.total)} {bill.sign}", 18, True)
    if bill.due:
        sheet.put(300, 706, bill.pick("due"), 8)
        sheet.put(300, 682, bill.day(bill.due), 14)
    sheet.put(LEFT, 640, bill.title(), 13, True)
    y = 622
    for label, value in bill.facts():
        if label != bill.pick("due"):
            sheet.put(LEFT, y, label, 8)
            sheet.put(190, y, value, 8.5, True)
            y -= 12
    y = sheet.sums(sheet.lines(y - 16, (LEFT, 330, 430, RIGHT)), x=LEFT)
    sheet.notes(y - 16)
    sheet.foot()


def ledger(sheet):
    """The amounts as columns under each other with the sums as the last rows of the table; date and
    number in one line under the title; details of the issuer in two lines at the head."""
    bill = sheet.bill
    words = bill.words
    sheet.put(RIGHT, 800, bill.name, 13, True, "r")
    sheet.put(RIGHT, 788, f"{bill.street}, {bill.town}", 7.5, align="r")
    sheet.put(RIGHT, 778, f"{words['vat']} {bill.vat} | info@{bill.domain}", 7.5, align="r")
    sheet.put(LEFT, 740, bill.pick("bill"), 7)
    sheet.stack(LEFT, 727, [*bill.buyer, f"{words['vat']} {bill.buyer_vat}"])
    sheet.put(LEFT, 660, bill.title(), 14, True)
    x = LEFT
    for label, value in bill.facts():
        text = f"{label} {value}"
        sheet.put(x, 643, text, 7.5)
        x += pdfmetrics.stringWidth(text, sheet.font, 7.5) + 14
    y = sheet.lines(615, (LEFT, 330, 430, RIGHT)) + 6
    for label, amount, total in bill.totals():
        sheet.canvas.line(LEFT, y + 10, RIGHT, y + 10)
        sheet.put(430, y, label, 8.5, total, "r")
        sheet.put(RIGHT, y, (f"{bill.sign} " if total else "") + bill.amount(amount), 8.5, total, "r")
        y -= 14
    sheet.notes(y - 14)
    sheet.put(LEFT, 40, f"{words['bank']}", 7)


LAYOUTS = [boxed, banner, letter, form, parties, summary, ledger]


class Slip:
    """A receipt of a till."""

    def __init__(self, language, at):
        self.language, self.at, self.words = language, at, WORDS[language]
        shop, *self.labels = SHOPS[language]
        self.name, self.street, self.town, self.vat = shop.split("|")
        self.when = datetime.datetime(2025, 2, 3, 9, 41) + datetime.timedelta(days=19 * at, minutes=47 * at)
        self.number = f"{10433 + 771 * at}"
        self.lines = [(self.words["goods"][place], cents(Decimal("3.45") * (place + 1 + at % 3))) for place in range(3)]
        self.total = sum(amount for _, amount in self.lines)
        rate = Decimal(self.words["rates"][-1].replace(",", "."))
        self.rate, self.tax = self.words["rates"][-1], cents(self.total * rate / (100 + rate))

    def amount(self, value):
        return f"{value:.2f}".replace(".", self.words["mark"])

    def truth(self):
        return {"supplier_name": self.name, "supplier_address": f"{self.street}, {self.town}",
                "supplier_vat_id": None, "invoice_number": self.number,
                "invoice_date": self.when.date().isoformat(), "due_date": None,
                # Nothing but a total of zlotys says which money it is.
                "currency": None, "line_items": None, "subtotal": None,
                "vat_amount": float(self.tax), "total": float(self.total)}


def draw_slip(path, slip):
    sheet = Sheet(path, None, (226, 420))
    number, day, total, net, tax, cash, change = slip.labels
    middle = slip.at % 2 == 0
    for at, text in enumerate((slip.name, slip.street, slip.town, slip.vat)):
        sheet.put(113 if middle else 14, sheet.y, text, 9 if at else 12, not at, "c" if middle else "l")
        sheet.y -= 13
    date = slip.when.strftime(slip.words["dates"][1 if slip.language == "en" else 0])
    first, second = f"{number} {slip.number}", f"{day} {date} {slip.when:%H:%M}".strip()
    for text in ("", *((first, second) if slip.at % 3 else (second, first)), ""):
        sheet.put(14, sheet.y, text, 8)
        sheet.y -= 12
    given = Decimal(50)
    rows = [(text, amount, False) for text, amount in slip.lines]
    rows.append((total, slip.total, True))
    rows += [(cash, given, False), (change, given - slip.total, False)] if slip.at % 2 else [("VISA", slip.total, False)]
    for text, amount, bold in rows:
        sheet.y -= 4 if bold else 0
        sheet.put(14, sheet.y, text, 11 if bold else 8, bold)
        sheet.put(212, sheet.y, slip.amount(amount), 11 if bold else 8, bold, "r")
        sheet.y -= 13
    sheet.y -= 10
    for cells in (("%", net, tax), (f"{slip.rate}%", slip.amount(slip.total - slip.tax), slip.amount(slip.tax))):
        for x, cell in zip((50, 130, 212), cells):
            sheet.put(x, sheet.y, cell, 8, align="r")
        sheet.y -= 12
    sheet.canvas.save()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("out", type=pathlib.Path)
    given = arguments.parse_args()
    for name in NAMES:
        pdfmetrics.registerFont(TTFont(name, str(FONTS / f"{name}.ttf")))
    for part in ("invoices", "receipts"):
        (given.out / part / "truth").mkdir(parents=True, exist_ok=True)

    def keep(part, stem, truth):
        text = json.dumps(truth, ensure_ascii=False, indent=1)
        (given.out / part / "truth" / f"{stem}.json").write_text(text, encoding="utf-8")

    for at in range(3 * len(WORDS)):
        language = list(WORDS)[at % len(WORDS)]
        bill = Bill(language, at // len(WORDS), at)
        layout = LAYOUTS[(at + at // len(LAYOUTS)) % len(LAYOUTS)]
        stem = f"str_{language}_{layout.__name__}_{bill.extra or 'plain'}"
        sheet = Sheet(given.out / "invoices" / f"{stem}.pdf", bill)
        layout(sheet)
        sheet.canvas.save()
        keep("invoices", stem, bill.truth())
    for at, language in enumerate(SHOPS):
        slip = Slip(language, at)
        draw_slip(given.out / "receipts" / f"till_{language}.pdf", slip)
        keep("receipts", f"till_{language}", slip.truth())


if __name__ == "__main__":
    main()
