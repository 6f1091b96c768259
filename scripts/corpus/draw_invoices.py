#!/usr/bin/env python3
"""Draws invoices and credit notes in eleven languages, with truth beside them, for `docmill eval`.

    draw_invoices.py OUT [--count 110] [--seed 1]

Needs reportlab and the DejaVu fonts. Wording, layout, notation and amounts are drawn by lot from the
seed: labels right of or above their values, headers in two columns, wrapped descriptions, years of
two digits, several tax rates, discounts, deposits paid, whole crowns, credit notes, footers in
columns. All names and numbers are invented. The documents are drawn from their truth;
likeness to real ones is not claimed.
"""

import argparse
import datetime
import json
import pathlib
import random
from decimal import ROUND_HALF_UP, Decimal

from draw_words import CUSTOMERS, LANGUAGES, SUPPLIERS
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")
FAMILIES = [("DejaVuSans", "DejaVuSans-Bold"), ("DejaVuSerif", "DejaVuSerif-Bold"),
            ("DejaVuSansCondensed", "DejaVuSansCondensed-Bold")]
CENT = Decimal("0.01")
LEFT, RIGHT, TOP = 50, 545, 800


def cents(value):
    return Decimal(value).quantize(CENT, ROUND_HALF_UP)


class Invoice:
    """The printed texts and the truth of one invoice."""

    def __init__(self, rng, language):
        words = LANGUAGES[language]
        self.rng, self.language, self.words = rng, language, words
        pick = lambda name: rng.choice(words[name])
        self.credit = rng.random() < 0.15
        self.supplier = rng.choice(SUPPLIERS[language])
        self.customer = rng.choice(CUSTOMERS[language])
        self.date = datetime.date(2019, 1, 1) + datetime.timedelta(days=rng.randrange(2400))
        self.due = self.date + datetime.timedelta(days=rng.choice([8, 10, 14, 15, 30, 60]))
        year = self.date.year
        self.number = rng.choice([
            f"{rng.randrange(1000, 99999)}", f"{year}-{rng.randrange(1, 999):04}",
            f"{year}/{rng.randrange(100, 999)}", f"F{year % 100}{rng.randrange(1000, 9999)}",
            f"{rng.randrange(1, 300)}/{year}", f"A-{rng.randrange(10000, 99999)}",
        ])
        self.vat_id = rng.choice(words["vat_ids"])
        self.due_shown = not self.credit and rng.random() < 0.8
        self.lines = []
        for _ in range(rng.choice([1, 2, 3, 4, 6, 9, 32])):
            description = pick("goods")
            if rng.random() < 0.35:
                description += "\n" + pick("more")
            quantity = Decimal(rng.choice(["1", "2", "3", "5", "10", "12", "24", "1.5", "7.25"]))
            price = cents(rng.choice([rng.uniform(2, 60), rng.uniform(60, 900), rng.uniform(900, 4000)]))
            self.lines.append((description, quantity, price, cents(quantity * price)))
        rates = words["rates"]
        self.rates = rates[:1] if rng.random() < 0.7 else rates[:2]
        self.of_line = [rng.choice(self.rates) for _ in self.lines]
        self.rates = [rate for rate in self.rates if rate in self.of_line]
        self.net = sum(line[3] for line in self.lines)
        self.bases = {
            rate: sum(line[3] for line, own in zip(self.lines, self.of_line) if own == rate)
            for rate in self.rates
        }
        self.taxes = {rate: cents(base * Decimal(rate) / 100) for rate, base in self.bases.items()}
        self.tax = sum(self.taxes.values())
        self.total = self.net + self.tax
        self.rounded = None
        if words["whole"] and rng.random() < 0.4:
            whole = self.total.quantize(Decimal(1), ROUND_HALF_UP)
            self.rounded, self.total = whole - self.total, cents(whole)
        self.paid = cents(self.total * Decimal("0.3")) if rng.random() < 0.12 and not self.credit else None

    def truth(self):
        name, street, town = self.supplier
        number = lambda value: float(value)
        return {
            "supplier_name": name,
            "supplier_address": f"{street}, {town}",
            "supplier_vat_id": self.vat_id[1].replace(" ", ""),
            "invoice_number": self.number,
            "invoice_date": self.date.isoformat(),
            "due_date": self.due.isoformat() if self.due_shown else None,
            "currency": self.words["currency"],
            "line_items": [
                {"description": text.replace("\n", " "), "quantity": number(quantity),
                 "unit_price": number(price), "amount": number(amount)}
                for text, quantity, price, amount in self.lines
            ],
            "subtotal": number(self.net),
            "vat_amount": number(self.tax),
            "total": number(self.total),
        }


class Page:
    """Draws one invoice."""

    def __init__(self, path, invoice):
        self.invoice, self.rng, self.words = invoice, invoice.rng, invoice.words
        self.canvas = Canvas(str(path), pagesize=A4, invariant=1)
        self.plain, self.bold = self.rng.choice(FAMILIES)
        self.size = self.rng.choice([8, 9, 10])
        self.y = TOP
        marks = self.words["marks"]
        self.group, self.mark = self.rng.choice(marks)
        self.short_years = self.rng.random() < 0.3
        self.date_form = self.rng.choice(self.words["dates"])

    def text(self, x, text, bold=False, size=None, right=False, y=None):
        self.canvas.setFont(self.bold if bold else self.plain, size or self.size)
        draw = self.canvas.drawRightString if right else self.canvas.drawString
        draw(x, self.y if y is None else y, text)

    def down(self, lines=1.0):
        self.y -= lines * self.size * 1.35

    def amount(self, value, sign=True):
        whole, rest = f"{abs(value):.2f}".split(".")
        groups = []
        while len(whole) > 3:
            groups.insert(0, whole[-3:])
            whole = whole[:-3]
        text = self.group.join([whole, *groups]) + self.mark + rest
        return ("-" if value < 0 and sign else "") + text

    def quantity(self, value):
        text = f"{value:f}"
        return text.replace(".", self.mark)

    def money(self, value):
        sign = self.words["sign"]
        form = self.rng.choice([f"{{}} {sign}", f"{sign} {{}}", "{}", "{} " + self.words["currency"]])
        return form.format(self.amount(value))

    def day(self, date):
        if self.date_form == "long":
            month = self.words["months"][date.month - 1]
            return self.words["long"].format(day=date.day, month=month, year=date.year)
        form = self.date_form
        if self.short_years and "%Y" in form and not form.startswith("%Y"):
            form = form.replace("%Y", "%y")
        return date.strftime(form)

    def pick(self, name):
        return self.rng.choice(self.words[name])

    def draw(self):
        head = self.rng.choice([self.head_left, self.head_right, self.head_window])
        head()
        self.rng.choice([self.facts_beside, self.facts_above, self.facts_inline])()
        self.table()
        self.totals()
        self.closing()
        self.canvas.save()

    def title(self):
        return self.pick("credit_titles" if self.invoice.credit else "titles")

    def head_left(self):
        name, street, town = self.invoice.supplier
        self.text(LEFT, name, bold=True, size=self.size + 4)
        self.text(RIGHT, self.title(), bold=True, size=self.size + 7, right=True)
        self.down(1.3)
        for line in (street, town, self.vat_line()):
            self.text(LEFT, line)
            self.down()
        self.down(1.5)
        self.customer(LEFT)
        self.down(1.5)

    def head_right(self):
        name, street, town = self.invoice.supplier
        for at, line in enumerate((name, street, town, self.vat_line())):
            self.text(RIGHT, line, right=True, bold=at == 0)
            self.down()
        self.down()
        self.customer(LEFT)
        self.down()
        self.text(LEFT, self.title(), bold=True, size=self.size + 6)
        self.down(2)

    def head_window(self):
        name, street, town = self.invoice.supplier
        self.text(330, name, bold=True, size=self.size + 3)
        self.down(3)
        separator = self.rng.choice([" · ", " - ", ", ", " | "])
        self.text(LEFT, separator.join((name, street, town)), size=6.5)
        self.down(1.3)
        self.customer(LEFT, labelled=False)
        self.down(2)
        self.text(LEFT, self.title(), bold=True, size=self.size + 5)
        self.down(2)
        self.foot_vat = True

    foot_vat = False

    def vat_line(self):
        label, value = self.invoice.vat_id
        return f"{label} {value}"

    def customer(self, x, labelled=True):
        if labelled:
            self.text(x, self.pick("customer"), size=self.size - 1)
            self.down()
        for line in self.invoice.customer:
            self.text(x, line)
            self.down()

    def facts(self):
        invoice = self.invoice
        facts = [(self.pick("credit_number" if invoice.credit else "number"), invoice.number),
                 (self.pick("date"), self.day(invoice.date))]
        if invoice.due_shown:
            facts.append((self.pick("due"), self.day(invoice.due)))
        facts.insert(self.rng.randrange(len(facts) + 1),
                     (self.pick("customer_number"), str(self.rng.randrange(1000, 99999))))
        if self.rng.random() < 0.5:
            facts.append((self.pick("order"), f"{self.rng.randrange(10000, 99999)}"))
        return facts

    def facts_beside(self):
        colon = self.rng.choice(["", ":", " :"])
        x = self.rng.choice([LEFT, 320])
        for label, value in self.facts():
            self.text(x, label + colon)
            self.text(x + 125, value)
            self.down()
        self.down(1.5)

    def facts_above(self):
        facts = self.facts()
        step = (RIGHT - LEFT) / len(facts)
        for at, (label, _) in enumerate(facts):
            self.text(LEFT + at * step, label, bold=True, size=self.size - 1)
        self.down()
        for at, (_, value) in enumerate(facts):
            self.text(LEFT + at * step, value)
        self.down(2)

    def facts_inline(self):
        for label, value in self.facts():
            self.text(LEFT, f"{label}: {value}")
            self.down()
        self.down(1.5)

    def table(self):
        names = self.pick("columns")
        self.with_rate = self.rng.random() < 0.5 or len(self.invoice.rates) > 1
        self.with_position = self.rng.random() < 0.5
        self.with_code = self.rng.random() < 0.3
        self.with_unit = self.rng.random() < 0.3
        self.with_sign = self.rng.random() < 0.2
        self.places = {"quantity": 345, "unit": 350, "price": 425, "rate": 465, "amount": RIGHT}
        self.places["code"] = LEFT + (25 if self.with_position else 0)
        self.places["text"] = self.places["code"] + (65 if self.with_code else 0)
        self.headings(names)
        for at, (line, rate) in enumerate(zip(self.invoice.lines, self.invoice.of_line)):
            self.entry(at, line, rate)
            if self.y < 150:
                self.canvas.showPage()
                self.y = TOP
                self.headings(names)
        self.down(0.3)
        self.canvas.line(LEFT, self.y + 5, RIGHT, self.y + 5)
        self.down()

    def headings(self, names):
        places = self.places
        self.text(places["text"], names[0], bold=True)
        for place, name in zip(("quantity", "price", "amount"), names[1:]):
            self.text(places[place], name, bold=True, right=True)
        if self.with_rate:
            self.text(places["rate"], self.words["tax"], bold=True, right=True)
        if self.with_position:
            self.text(LEFT, "#", bold=True)
        if self.with_code:
            self.text(places["code"], self.words["code"], bold=True)
        self.down(0.4)
        self.canvas.line(LEFT, self.y, RIGHT, self.y)
        self.down()

    def entry(self, at, line, rate):
        description, quantity, price, amount = line
        first, *rest = description.split("\n")
        places = self.places
        if self.with_position:
            self.text(LEFT, str(at + 1))
        if self.with_code:
            self.text(places["code"], f"{self.rng.randrange(100, 999)}-{self.rng.randrange(10, 99)}")
        self.text(places["text"], first)
        self.text(places["quantity"], self.quantity(quantity), right=True)
        if self.with_unit:
            self.text(places["unit"], self.words["unit"])
        sign = f" {self.words['sign']}" if self.with_sign else ""
        self.text(places["price"], self.amount(price) + sign, right=True)
        self.text(places["amount"], self.amount(amount) + sign, right=True)
        if self.with_rate:
            self.text(places["rate"], f"{rate}%", right=True)
        self.down()
        for more in rest:
            self.text(places["text"], more)
            self.down()

    def totals(self):
        invoice = self.invoice
        rows = [(self.pick("net"), invoice.net)]
        for rate in invoice.rates:
            label = self.pick("vat").format(rate=rate)
            rows.append((label, invoice.taxes[rate]))
        if invoice.rounded:
            rows.append((self.pick("rounding"), invoice.rounded))
        rows.append((self.pick("credit_total" if invoice.credit else "total"), invoice.total))
        if invoice.paid:
            rows.append((self.pick("paid"), -invoice.paid))
            rows.append((self.pick("rest"), invoice.total - invoice.paid))
        form = self.rng.random()
        for label, value in rows:
            self.text(300, label, bold=value == invoice.total)
            shown = self.money(value) if value == invoice.total or form < 0.4 else self.amount(value)
            self.text(RIGHT, shown, right=True, bold=value == invoice.total)
            self.down(1.15)

    def closing(self):
        self.down(2)
        self.text(LEFT, self.pick("terms"))
        self.y = 60
        name, street, town = self.invoice.supplier
        columns = [[name, street, town], ["Banca/Bank", "IBAN " + self.words["iban"]],
                   [self.vat_line()] if self.foot_vat else ["www.example.test"]]
        for x, column in zip((LEFT, 220, 400), columns):
            for at, line in enumerate(column):
                self.text(x, line, size=6.5, y=self.y - at * 9)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--count", type=int, default=110)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    for family in FAMILIES:
        for name in family:
            pdfmetrics.registerFont(TTFont(name, str(FONTS / f"{name}.ttf")))
    (given.out / "truth").mkdir(parents=True, exist_ok=True)
    rng = random.Random(given.seed)
    languages = sorted(LANGUAGES)
    for at in range(given.count):
        language = languages[at % len(languages)]
        invoice = Invoice(rng, language)
        stem = f"{language}_{at:03}"
        Page(given.out / f"{stem}.pdf", invoice).draw()
        truth = json.dumps(invoice.truth(), ensure_ascii=False, indent=1)
        (given.out / "truth" / f"{stem}.json").write_text(truth, encoding="utf-8")


if __name__ == "__main__":
    main()
