#!/usr/bin/env python3
"""Draws pages whose structure is known, as PDFs and as scans, for scripts/corpus/score_pages.py.

    target/tools/samples/bin/python scripts/corpus/draw_pages.py FOLDER [--scans]

Needs reportlab, Pillow, pypdfium2 (scripts/samples-requirements.txt) and the DejaVu fonts. The words
are drawn by lot from the lists below, by a seed of the name: the same versions draw the same pages.
The families of TUNE are for writing code, figures are quoted of those of CHECK; the two share no
layout. truth/NAME.json has the blocks of every page in reading order and every word with its box.
"""

import json
import pathlib
import random
import sys
import time

from reportlab.lib.pagesizes import A4, landscape
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

FONTS = pathlib.Path("/usr/share/fonts/truetype/dejavu")
SANS, BOLD, SERIF, SERIF_BOLD = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold"
SCAN_DPI = 200

WORDS = {
    "en": "the house water people market under between report season harbour little garden because number after winter paper which bridge should light carried village during quiet engine letter north",
    "de": "der Brücke Wasser Menschen zwischen unter Bericht während Hafen kleine Garten weil Nummer nach Winter Papier welche sollte Licht Straße Dorf ruhig Maschine Brief Norden über größer schließlich früher Übung",
    "fr": "la maison rivière gens marché sous entre rapport pendant saison petite jardin parce numéro après hiver papier laquelle pont devrait lumière village calme moteur lettre école été générale façade première",
    "nl": "het huis water mensen markt onder tussen verslag seizoen haven kleine tuin omdat nummer na winter papier welke brug zou licht dorp rustig motor brief noorden eerste jaar werken grote",
    "es": "la casa agua gente mercado bajo entre informe estación puerto pequeño jardín porque número después invierno papel cual puente debería luz pueblo durante tranquilo motor carta año mañana señal según",
    "it": "la casa acqua gente mercato sotto tra rapporto stagione porto piccolo giardino perché numero dopo inverno carta quale ponte dovrebbe luce paese durante tranquillo motore lettera città più società anche",
    "pt": "a casa água pessoas mercado sob entre relatório estação porto pequeno jardim porque número depois inverno papel qual ponte deveria luz aldeia durante calmo motor carta ano também manhã região",
    "sv": "det huset vatten människor marknad under mellan rapport hamn liten trädgård eftersom nummer efter vinter papper vilken bro skulle ljus by lugn motor brev norr första året större också väg",
    "da": "det huset vand mennesker marked under mellem rapport havn lille have fordi nummer efter vinter papir hvilken bro skulle lys landsby rolig motor brev nord første året større også vej",
    "no": "det huset vann mennesker marked under mellom rapport havn liten hage fordi nummer etter vinter papir hvilken bro skulle lys landsby rolig motor brev nord første året større også vei",
    "pl": "dom woda ludzie rynek pod między raport sezon port mały ogród ponieważ numer po zima papier który most powinien światło wieś podczas cichy silnik list północ rok większy również droga",
}
CAPTION = {"en": "Table", "de": "Tabelle", "fr": "Tableau", "nl": "Tabel", "es": "Tabla", "it": "Tabella",
           "pt": "Tabela", "sv": "Tabell", "da": "Tabel", "no": "Tabell", "pl": "Tabela"}
PAGE = {"en": "Page {} of {}", "de": "Seite {} von {}", "fr": "Page {} sur {}", "nl": "Pagina {} van {}",
        "es": "Página {} de {}", "it": "Pagina {} di {}", "pt": "Página {} de {}", "sv": "Sida {} av {}",
        "da": "Side {} af {}", "no": "Side {} av {}", "pl": "Strona {} z {}"}


class Sheet:
    """A document with its truth. Positions count from the top left, in points."""

    def __init__(self, path, language, seed, size=A4, fonts=(SANS, BOLD), turned=False):
        self.canvas = Canvas(str(path), pagesize=size, invariant=1)
        (self.width, self.height), self.turned = size, turned
        self.plain, self.bold = fonts
        self.language, self.lot = language, random.Random(seed)
        self.vocabulary = WORDS[language].split()
        self.pages, self.open_page = [], None
        self.start_page()

    def start_page(self):
        if self.open_page:
            self.canvas.showPage()
        self.open_page = {"width": self.width, "height": self.height, "blocks": [], "words": []}
        self.pages.append(self.open_page)
        if self.turned:
            # Drawn on a page that lies, shown on one that stands: the lines run upwards.
            self.open_page.update(width=self.height, height=self.width)
            self.canvas.setPageSize((self.height, self.width))
            self.canvas.translate(self.height, 0)
            self.canvas.rotate(90)

    def save(self, truth, family):
        self.canvas.save()
        record = {"language": self.language, "family": family, "pages": self.pages}
        truth.write_text(json.dumps(record, ensure_ascii=False, indent=0))

    def block(self, kind, **more):
        self.open_page["blocks"].append({"type": kind, **more})
        return len(self.open_page["blocks"]) - 1

    def line(self, text, x, top, size, block, bold=False, right=None, width=None, font=None):
        """Draws one line; `right` ends it there, `width` spreads its words. The words' numbers."""
        font = font or (self.bold if bold else self.plain)
        wide = pdfmetrics.stringWidth
        if right is not None:
            x = right - wide(text, font, size)
        words, space = text.split(" "), wide(" ", font, size)
        if width and len(words) > 1:
            space = (width - sum(wide(word, font, size) for word in words)) / (len(words) - 1)
        self.canvas.setFont(font, size)
        baseline = top + 0.8 * size
        numbers, at = [], x
        if not width:
            self.canvas.drawString(x, self.height - baseline, text)
        for word in words:
            length = wide(word, font, size)
            if width:
                self.canvas.drawString(at, self.height - baseline, word)
            box = [at, top, length, size]
            if self.turned:
                box = [top, self.width - at - length, size, length]
            numbers.append(len(self.open_page["words"]))
            self.open_page["words"].append({"text": word, "box": [round(v, 1) for v in box], "block": block})
            at += length + space
        return numbers

    def lay(self, text, width, size, font=None):
        """Lines of at most a width."""
        lines, font = [], font or self.plain
        for word in text.split(" "):
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and pdfmetrics.stringWidth(longer, font, size) <= width:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines

    def words(self, count, capital=True, stop="."):
        chosen = [self.lot.choice(self.vocabulary) for _ in range(count)]
        if capital:
            chosen[0] = chosen[0][:1].upper() + chosen[0][1:]
        return " ".join(chosen) + stop

    def prose(self, sentences):
        return " ".join(self.words(self.lot.randint(6, 14)) for _ in range(sentences))

    def text(self, text, x, top, width, kind="paragraph", size=10, leading=1.3, **more):
        """A block of running text; where it ends."""
        block, font = self.block(kind, **more.pop("truth", {})), more.pop("font", None)
        bold, justify, indent = more.pop("bold", False), more.pop("justify", False), more.pop("indent", 0)
        assert not more, more
        lines = self.lay(text, width - indent, size, font or (self.bold if bold else self.plain))
        for at, line in enumerate(lines):
            shift = indent if at == 0 else 0
            spread = width - shift if justify and at + 1 < len(lines) else None
            self.line(line, x + shift, top, size, block, bold, width=spread, font=font)
            top += leading * size
        return top

    def heading(self, level, x, top, width, size, bold=True, number=""):
        text = number + self.words(self.lot.randint(2, 4), stop="")
        return self.text(text, x, top, width, "heading", size, bold=bold, truth={"level": level}) + 0.3 * size

    def title(self, x, top, width, size):
        return self.text(self.words(3, stop=""), x, top, width, "title", size, bold=True) + 0.8 * size

    def list(self, x, top, width, marks, size=10, leading=1.3, gap=0, nested=()):
        """A list; entries whose numbers are in `nested` stand one level deeper."""
        block = self.block("list", items=len(marks))
        for at, mark in enumerate(marks):
            left = x + (18 if at in nested else 0)
            self.line(mark, left, top, size, block)
            inner = left + max(14, pdfmetrics.stringWidth(mark + " ", self.plain, size))
            for line in self.lay(self.words(self.lot.randint(4, 16)), x + width - inner, size):
                self.line(line, inner, top, size, block)
                top += leading * size
            top += gap
        return top

    def table(self, x, top, widths, rows, size=9, pad=3, leading=1.2, rules="none", right=(), middle=False):
        """`rows`: lists of (text, columns, rows it reaches over); `right`: columns set to the right."""
        block = self.block("table", columns=len(widths), rows=len(rows), cells=[])
        cells, lefts = self.open_page["blocks"][block]["cells"], [x + sum(widths[:at]) for at in range(len(widths) + 1)]
        first, taken, tops = top, {}, []
        for number, row in enumerate(rows):
            column, drawn, height = 0, [], leading * size
            for text, over, down in row:
                while taken.get((number, column)):
                    column += 1
                for below in range(1, down):
                    for beside in range(over):
                        taken[(number + below, column + beside)] = True
                lines = self.lay(text, lefts[column + over] - lefts[column] - 2 * pad - 2, size,
                                 self.bold if number == 0 else None) if text else []
                height = max(height, len(lines) * leading * size)
                drawn.append((column, over, down, lines))
                column += over
            for column, over, down, lines in drawn:
                if not lines:
                    continue
                numbers, down_by = [], (height - len(lines) * leading * size) / 2 if middle else 0
                for at, line in enumerate(lines):
                    y = top + pad + down_by + at * leading * size
                    to_right = lefts[column + over] - pad - 2 if column in right and over == 1 else None
                    numbers += self.line(line, lefts[column] + pad + 2, y, size, block, number == 0, right=to_right)
                cells.append({"row": number, "column": column, "row_span": down, "column_span": over,
                              "text": " ".join(lines)})
            tops.append(top)
            top += height + 2 * pad
        self.rule(lefts, tops + [top], rules, taken)
        return top

    def rule(self, lefts, tops, rules, taken):
        self.canvas.setLineWidth(0.6)
        down = lambda y: self.height - y
        if rules in ("rows", "grid"):
            for y in tops:
                self.canvas.line(lefts[0], down(y), lefts[-1], down(y))
        if rules == "head":
            for y in (tops[0], tops[1], tops[-1]):
                self.canvas.line(lefts[0], down(y), lefts[-1], down(y))
        if rules == "grid":
            for x in (lefts[0], lefts[-1]):
                self.canvas.line(x, down(tops[0]), x, down(tops[-1]))

    def caption(self, x, top, width, size=8.5):
        text = f"{CAPTION[self.language]} {self.lot.randint(1, 9)}: {self.words(5, stop='.')}"
        return self.text(text, x, top, width, "caption", size)

    def amount(self):
        return f"{self.lot.randint(1, 9)}.{self.lot.randint(100, 999)},{self.lot.randint(10, 99)}"

    def label(self, count=2):
        return self.words(count, stop="")


def plain(texts):
    return [(text, 1, 1) for text in texts]


# The layouts. Each draws a whole document and says in which order it is read by the order in which it
# draws; page numbers and footers are drawn last.

def tune_article(s):
    """Two justified columns below a title across; footnote below the left one."""
    for page in range(2):
        top = s.text("Annales " + s.language.upper() + " 2026", 60, 34, 300, "header", 8)
        top = s.title(60, 62, 475, 20) if page == 0 else 70
        for column, x in enumerate((60, 305)):
            y = top
            y = s.heading(1, x, y, 230, 13)
            for _ in range(3):
                y = s.text(s.prose(4), x, y, 230, justify=True, indent=12)
            y = s.heading(1, x, y + 8, 230, 13)
            y = s.text(s.prose(5), x, y, 230, justify=True)
            if column == 0:
                y = s.text("1 " + s.prose(2), x, 740, 230, "footnote", 7.5)
        s.text(str(page + 4), 295, 805, 30, "page_number", 8)
        if page == 0:
            s.start_page()


def tune_report(s):
    """One column, headings of two levels, a table with a head of two rows and another in rules."""
    y = s.title(72, 60, 450, 22)
    y = s.text(s.prose(4), 72, y, 450)
    y = s.heading(1, 72, y + 10, 450, 15)
    y = s.text(s.prose(3), 72, y, 450) + 8
    rows = [[("", 1, 1), (s.label(), 2, 1), (s.label(), 2, 1)], plain([s.label(1), "2024", "2025", "2024", "2025"])]
    rows += [plain([s.label(2)] + [s.amount() for _ in range(4)]) for _ in range(5)]
    y = s.table(72, y, [130, 80, 80, 80, 80], rows, rules="head", right=(1, 2, 3, 4))
    y = s.caption(72, y + 4, 450) + 8
    y = s.heading(2, 72, y + 6, 450, 12)
    y = s.text(s.prose(4), 72, y, 450) + 8
    rows = [plain([s.label(1) for _ in range(3)])]
    rows += [plain([s.label(1), s.words(s.lot.randint(8, 22)), s.amount()]) for _ in range(5)]
    s.table(72, y, [90, 270, 90], rows, rules="grid", right=(2,))
    s.text(PAGE[s.language].format(1, 1), 260, 800, 100, "page_number", 8)


def tune_lists(s):
    """Bullets, numbers, letters and nested entries between paragraphs."""
    y = s.heading(1, 60, 70, 470, 16)
    y = s.text(s.prose(3), 60, y, 470) + 6
    y = s.list(70, y, 450, ["•"] * 5) + 8
    y = s.text(s.prose(2), 60, y, 470) + 6
    y = s.list(70, y, 450, ["1.", "2.", "3.", "4."], gap=3) + 8
    y = s.heading(2, 60, y + 6, 470, 12.5)
    y = s.text(s.prose(2), 60, y, 470) + 6
    y = s.list(70, y, 450, ["–"] * 6, nested=(1, 2, 4)) + 8
    y = s.text(s.prose(2), 60, y, 470)
    s.text(s.label(4), 60, 795, 300, "footer", 7.5)
    s.text("- 1 -", 500, 795, 60, "page_number", 7.5)


def tune_leaflet(s):
    """Two ragged columns, a heading across, three narrow ones with lists, a small table in one."""
    y = s.title(50, 54, 490, 24)
    low = 0
    for number, x in enumerate((50, 300)):
        at = s.text(s.prose(5), x, y, 235, font=SERIF, size=9.5)
        at = s.heading(2, x, at + 6, 235, 11)
        at = s.text(s.prose(3), x, at, 235, font=SERIF, size=9.5)
        if number == 1:
            rows = [plain([s.label(1) for _ in range(3)])] + [
                plain([s.label(2), str(s.lot.randint(2, 99)), s.amount()]) for _ in range(4)]
            at = s.table(x, at + 8, [115, 45, 75], rows, size=8.5, right=(1, 2), rules="grid") + 8
            at = s.text(s.prose(2), x, at, 235, font=SERIF, size=9.5)
        low = max(low, at)
    y = s.heading(1, 50, low + 12, 490, 15) + 2
    for x in (50, 220, 390):
        at = s.text(s.prose(2), x, y, 150, size=8.5)
        s.list(x, at + 5, 150, ["▪"] * 3, size=8.5)
    s.text(s.label(3), 50, 806, 300, "footer", 7)


def tune_margin(s):
    """A wide column with notes beside it in small print; a table set to the middle, cells over rows."""
    y = s.heading(1, 50, 60, 360, 16)
    at = y
    for _ in range(4):
        at = s.text(s.prose(3), 50, at, 360, leading=1.5, justify=True) + 6
    side = y + 3
    for _ in range(3):
        side = s.text(s.words(11), 435, side, 110, size=7.5, leading=1.2) + 14
    y = max(side, at) + 14
    rows = [plain([s.label(1), s.label(1), s.label(2)])]
    for _ in range(3):
        rows.append([(s.label(1), 1, 2), (s.words(s.lot.randint(9, 18)), 1, 1), (s.amount(), 1, 1)])
        rows.append([(s.words(4), 1, 1), (s.amount(), 1, 1)])
    y = s.table(50, y, [100, 280, 110], rows, right=(2,), pad=4, middle=True, rules="grid") + 10
    s.text(s.prose(3), 50, y, 490)
    s.text("[ 3 ]", 280, 806, 40, "page_number", 8)


def tune_specs(s):
    """A table without rules below a text, four columns, one wrapped, all set to the middle."""
    y = s.heading(1, 60, 60, 470, 14)
    y = s.text(s.prose(3), 60, y, 470) + 14
    rows = [plain([s.label(1), s.label(1), s.label(1), s.label(2)])]
    rows += [plain([s.label(2), s.label(1), s.words(s.lot.randint(5, 19)), str(s.lot.randint(1, 900))]) for _ in range(7)]
    y = s.table(60, y, [110, 80, 200, 80], rows, size=9.5, pad=4, right=(3,), middle=True) + 12
    s.text(s.prose(3), 60, y, 470)


def tune_aside(s):
    """A narrow column and a wide one, a table right below them, three columns, a heading, a table."""
    y = s.heading(1, 50, 56, 300, 15)
    side = at = y
    for _ in range(3):
        side = s.text(s.words(12), 50, side, 120, size=8.5, leading=1.2) + 5
    for _ in range(2):
        at = s.text(s.prose(3), 195, at, 345, leading=1.4) + 6
    y = max(side, at) + 14
    rows = [plain([s.label(1) for _ in range(5)])]
    rows += [plain([s.label(2), s.label(1), s.label(1), str(s.lot.randint(1, 99)), s.amount()]) for _ in range(4)]
    y = s.table(50, y, [130, 100, 100, 60, 100], rows, pad=4, right=(3, 4)) + 20
    low = 0
    for x in (50, 222, 394):
        at = s.text(s.prose(3), x, y, 150, size=9)
        low = max(low, s.text(s.prose(2), x, at + 5, 150, size=9))
    y = s.heading(1, 50, low + 12, 490, 14)
    rows = [plain([s.label(1) for _ in range(4)])]
    rows += [plain([s.label(2), s.amount(), s.amount(), s.amount()]) for _ in range(4)]
    s.table(50, y, [170, 100, 100, 100], rows, rules="head", right=(1, 2, 3))


def tune_newsletter(s):
    """Three ragged columns with headings, a table across below them, then two columns."""
    y = s.title(45, 50, 500, 26)
    low = 0
    for x in (45, 222, 399):
        at = s.heading(1, x, y, 155, 12, number="")
        at = s.text(s.prose(4), x, at, 155, size=9)
        at = s.text(s.prose(3), x, at + 5, 155, size=9)
        low = max(low, at)
    y = s.heading(1, 45, low + 14, 500, 14)
    rows = [plain([s.label(1) for _ in range(6)])]
    rows += [plain([s.label(2)] + [str(s.lot.randint(10, 9999)) for _ in range(5)]) for _ in range(6)]
    y = s.table(45, y, [155, 70, 70, 70, 70, 70], rows, rules="rows", right=(1, 2, 3, 4, 5)) + 16
    for x in (45, 310):
        at = s.text(s.prose(5), x, y, 235, size=9, justify=True)
        s.list(x, at + 6, 235, ["•"] * 3, size=9)
    s.text(s.label(3), 45, 805, 300, "footer", 7)


def check_ledger(s):
    """A dense table of equal lines without padding, groups across, sums; key figures beside a text."""
    y = s.text(s.label(2), 60, 30, 300, "header", 8)
    y = s.heading(1, 60, 60, 470, 15)
    y = s.text(s.prose(3), 60, y, 470, font=SERIF) + 10
    rows = [plain(["Nr.", s.label(1), s.label(1), s.label(1), s.label(1)])]
    for group in range(3):
        rows.append([(s.words(7, stop=""), 5, 1)])
        rows += [plain([str(s.lot.randint(100, 999)), s.label(3), str(s.lot.randint(1, 40)), s.amount(), s.amount()])
                 for _ in range(4)]
    y = s.table(60, y, [45, 190, 60, 85, 85], rows, pad=0.6, right=(2, 3, 4), rules="head") + 6
    y = s.caption(60, y, 470) + 10
    s.text(s.prose(4), 60, y, 470, font=SERIF)
    s.text("7", 300, 806, 30, "page_number", 9)


def check_minutes(s):
    """Numbered headings in the size of the text, lists below, footnotes, wrapped and spanning cells."""
    for page in range(2):
        s.text(s.language.upper() + " · Protokoll 14", 70, 32, 300, "header", 8)
        y = s.title(70, 64, 450, 18) if page == 0 else 66
        for part in range(2):
            number = f"{page * 2 + part + 1}. "
            y = s.heading(1, 70, y + 4, 450, 12.5, number=number)
            y = s.text(s.prose(3), 70, y, 450, font=SERIF) + 4
            y = s.list(82, y, 438, ["a)", "b)", "c)"], gap=2) + 4
        rows = [[(s.label(1), 1, 1), (s.label(1), 1, 1), (s.label(2), 2, 1)]]
        for _ in range(2):
            rows.append([(s.label(2), 1, 2), (s.words(9), 1, 1), (s.amount(), 1, 1), (s.amount(), 1, 1)])
            rows.append([(s.words(6), 1, 1), (s.amount(), 1, 1), (s.amount(), 1, 1)])
        y = s.table(70, y + 6, [100, 190, 80, 80], rows, rules="grid", right=(2, 3)) + 10
        s.text(s.prose(3), 70, y, 450, font=SERIF)
        block_y = s.text("1) " + s.prose(1), 70, 735, 450, "footnote", 7.5, font=SERIF)
        s.text("2) " + s.prose(1), 70, block_y + 2, 450, "footnote", 7.5, font=SERIF)
        s.text(PAGE[s.language].format(page + 1, 2), 250, 800, 120, "page_number", 8)
        if page == 0:
            s.start_page()


def check_turned(s):
    """A wide table on a page that lies, drawn with its lines running upwards."""
    y = s.heading(1, 60, 50, 600, 15)
    rows = [plain([s.label(1) for _ in range(7)])]
    rows += [plain([s.label(3)] + [s.amount() for _ in range(6)]) for _ in range(9)]
    y = s.table(60, y + 4, [180, 85, 85, 85, 85, 85, 85], rows, rules="rows", right=(1, 2, 3, 4, 5, 6)) + 12
    s.text(s.prose(4), 60, y, 690)


def tune_sidebar(s):
    """A narrow column of short lines beside a wide one, baselines apart; a middle-set table below."""
    y = s.title(60, 56, 480, 21)
    side = s.heading(1, 60, y, 130, 11)
    for _ in range(4):
        side = s.text(s.words(9), 60, side, 130, size=8, leading=1.25) + 6
    at = s.heading(1, 215, y, 320, 12.5)
    for _ in range(3):
        at = s.text(s.prose(3), 215, at, 320, size=10, leading=1.45) + 5
    y = max(side, at) + 18
    rows = [plain([s.label(1), s.label(2), s.label(1), s.label(1)])]
    rows += [plain([s.label(1), s.words(s.lot.randint(6, 16)), s.label(1), s.amount()]) for _ in range(5)]
    y = s.table(60, y, [85, 220, 80, 90], rows, rules="none", pad=5, right=(3,), middle=True) + 6
    y = s.caption(60, y, 480) + 10
    s.text(s.prose(3), 60, y, 480)


def check_bulletin(s):
    """A wide column of text with a list beside a narrow one, a picture's caption, a price list below."""
    s.text(s.label(3), 55, 28, 200, "header", 7.5)
    y = s.title(55, 52, 480, 23)
    at = s.text(s.prose(5), 55, y, 300, font=SERIF, size=10.5, leading=1.35)
    at = s.list(62, at + 5, 290, ["•"] * 4, size=10.5, leading=1.35)
    side = s.heading(1, 380, y, 160, 11)
    for _ in range(2):
        side = s.text(s.prose(2), 380, side, 160, size=8.5, leading=1.25) + 7
    y = s.heading(1, 55, max(at, side) + 16, 480, 15)
    rows = [plain([s.label(1), s.label(2), s.label(1), s.label(1)])]
    rows += [plain([s.label(2), s.words(s.lot.randint(3, 15)), str(s.lot.randint(1, 999)), s.amount()]) for _ in range(6)]
    y = s.table(55, y, [120, 200, 70, 90], rows, size=8.5, pad=5.5, right=(2, 3), rules="rows", middle=True) + 8
    s.caption(55, y, 480)
    s.text("– 12 –", 285, 808, 40, "page_number", 8)


def check_digest(s):
    """Two justified columns, a heading across, a table across of two-line heads, two columns again."""
    y = 60
    for x in (50, 308):
        low = s.text(s.prose(6), x, y, 238, size=9.5, justify=True, indent=10)
        low = s.text(s.prose(3), x, low, 238, size=9.5, justify=True, indent=10)
    y = s.heading(1, 50, 300, 490, 14) + 4
    rows = [[("", 1, 1), (s.label(3), 3, 1), (s.label(2), 2, 1)], plain([s.label(1)] + [s.label(1) for _ in range(5)])]
    rows += [plain([s.label(2)] + [str(s.lot.randint(10, 9999)) for _ in range(5)]) for _ in range(6)]
    y = s.table(50, y, [140, 70, 70, 70, 70, 70], rows, size=9, right=(1, 2, 3, 4, 5), rules="head") + 22
    for x in (50, 308):
        at = s.heading(2, x, y, 238, 11.5)
        at = s.text(s.prose(3), x, at, 238, size=9.5)
        s.list(x, at + 4, 238, ["1)", "2)", "3)"], size=9.5)
    s.text(s.label(4), 50, 806, 300, "footer", 7)


def number_of(s):
    return f"{s.lot.choice('ABKR')}-{s.lot.randint(1000, 99999)}"


def facts(s, x, top, value, count, size=9, pitch=14):
    """Labels below each other with a number or date beside each: a table of two columns."""
    block = s.block("table", columns=2, rows=count, cells=[])
    cells = s.open_page["blocks"][block]["cells"]
    names = s.lot.sample(s.vocabulary[3:], count)
    for row in range(count):
        texts = names[row].capitalize(), number_of(s) if row % 2 == 0 else f"{s.lot.randint(10, 28)}.{s.lot.randint(10, 12)}.2026"
        for column, text in enumerate(texts):
            s.line(text, (x, value)[column], top + row * pitch, size, block)
            cells.append({"row": row, "column": column, "row_span": 1, "column_span": 1, "text": text})
    return top + count * pitch


def address(s, x, top, size=9, pitch=12):
    """Four short lines, the last with the number of a town; where they end."""
    block = s.block("paragraph")
    lines = s.label(3), s.label(2), f"{s.label(1)} {s.lot.randint(2, 99)}", f"{s.lot.randint(10000, 99999)} {s.label(1)}"
    for at, text in enumerate(lines):
        s.line(text, x, top + at * pitch, size, block)
    return top + len(lines) * pitch


def items(s, count):
    rows = [plain([s.label(2), s.label(1), s.label(1), s.label(1)])]
    return rows + [plain([s.label(3), str(s.lot.randint(1, 90)), s.amount(), s.amount()]) for _ in range(count)]


def tune_invoice(s):
    """An address beside facts on the same lines, a title, items, a sentence."""
    s.heading(1, 60, 50, 470, 16, number="")
    low = max(address(s, 60, 120, pitch=14), facts(s, 340, 120, 450, 3))
    y = s.heading(1, 60, low + 14, 470, 14, number="")
    y = s.table(60, y, [220, 70, 90, 95], items(s, 6), right=(1, 2, 3), rules="head") + 20
    s.text(s.prose(2), 60, y, 470)


def check_bill(s):
    """Two addresses beside each other, facts beside a third with lines of their own, items below."""
    low = max([address(s, x, 60) for x in (70, 330)])
    y = low + 40
    low = max(address(s, 70, y, pitch=12), facts(s, 360, y, 460, 5, pitch=15))
    y = s.heading(1, 70, low + 18, 450, 15, number="")
    y = s.table(70, y + 4, [200, 80, 85, 85], items(s, 8), right=(1, 2, 3), pad=4) + 22
    s.text(s.prose(3), 70, y, 450)


TUNE = [tune_invoice, tune_article, tune_report, tune_lists, tune_leaflet, tune_margin, tune_specs,
        tune_aside, tune_newsletter, tune_sidebar]
CHECK = [check_ledger, check_minutes, check_turned, check_bulletin, check_digest, check_bill]


def scan(source, target, lot):
    """The pages as a scanner would store them: grey, a little noise, a little soft, compressed."""
    import pypdfium2
    from PIL import Image, ImageFilter
    pages = []
    for page in pypdfium2.PdfDocument(str(source)):
        picture = page.render(scale=SCAN_DPI / 72, grayscale=True).to_pil().convert("L")
        picture = picture.filter(ImageFilter.GaussianBlur(0.6))
        noise = Image.frombytes("L", picture.size, lot.randbytes(picture.width * picture.height))
        pages.append(Image.blend(picture, noise, 0.06))
    pages[0].save(target, "PDF", save_all=True, append_images=pages[1:], resolution=SCAN_DPI, quality=70,
                  creationDate=time.gmtime(0), modDate=time.gmtime(0))


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "truth").mkdir(parents=True, exist_ok=True)
    for name in (SANS, BOLD, SERIF, SERIF_BOLD):
        pdfmetrics.registerFont(TTFont(name, str(FONTS / f"{name}.ttf")))
    for layout in TUNE + CHECK:
        for language in WORDS:
            turned = layout is check_turned
            name = f"{layout.__name__}_{language}"
            path = folder / f"{name}.pdf"
            size = landscape(A4) if turned else A4
            fonts = (SERIF, SERIF_BOLD) if layout in (tune_article, tune_newsletter) else (SANS, BOLD)
            sheet = Sheet(path, language, name, size, fonts, turned)
            layout(sheet)
            sheet.save(folder / "truth" / f"{name}.json", layout.__name__)
            if "--scans" in sys.argv:
                scan(path, folder / f"{name}.scan.pdf", random.Random(name))


if __name__ == "__main__":
    main()
