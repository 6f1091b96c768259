#!/usr/bin/env python3
"""Draws pages with signatures, stamps and handwriting whose places are known, and pages with what only looks
like them, as scans; scores what docmill finds.

    target/tools/samples/bin/python scripts/corpus/draw_marks.py FOLDER [DOCMILL [PART]]

Needs what scripts/corpus/draw_pages.py needs. Hands are paths of our own: loops, humps and tails by lot, written by
a pen of changing pressure, each page by another hand. Pages are printed and scanned in four ways. The part
`tune` was looked at when the detector was written, `check` has other seeds and was not. A mark is found if one
of its kind shares more than half of the smaller one's place; of a line of handwriting half has to be covered.
A mark that is said is wrong if it lies so on none of its kind. PART chooses one of the two.
"""

import json
import math
import pathlib
import random
import subprocess
import sys
import time

from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from draw_figures import LAYOUTS as FIGURES
from draw_pages import BOLD, FONTS, SANS, SERIF, SERIF_BOLD, Sheet, items, plain

LANGUAGES = ("en", "de", "fr", "it", "pl")
REGARDS = {"en": "Kind regards", "de": "Mit freundlichen Grüßen", "fr": "Cordialement", "it": "Cordiali saluti",
           "pl": "Z poważaniem"}
SIGNED = {"en": "Signature", "de": "Unterschrift", "fr": "Signature", "it": "Firma", "pl": "Podpis"}
SEEDS = {"tune": range(0, 2), "check": range(2, 5)}


# Hands. A path is a list of points that a smooth curve goes through, in points of the page, y upwards.

class Hand:
    """How somebody writes."""

    def __init__(self, lot):
        self.lot = lot
        self.slant = lot.uniform(-0.1, 0.6)
        self.width = lot.uniform(0.75, 1.6)
        self.pressure = lot.uniform(0.1, 0.35)
        self.round = lot.uniform(0.7, 1.3)
        self.shake = lot.uniform(0.02, 0.08)
        self.grey = lot.choice((0.05, 0.15, 0.3, 0.4))

    def letter(self, x, size):
        """The points of one letter, and where the next begins."""
        lot, s = self.lot, size
        kind = lot.choice("enulgtrsaohdm")
        wide = s * lot.uniform(0.45, 0.7) * self.round
        if kind in "lhdt":
            up = 2.0 if kind != "t" else 1.7
            shape = [(0, 0), (0.45, 0.9), (0.75, up), (0.5, up * 1.02), (0.35, 0.9), (0.45, 0.05), (1, 0.1)]
        elif kind == "g":
            shape = [(0, 0), (0.7, 0.95), (0.2, 0.8), (0.2, 0.1), (0.8, 0.7), (0.7, -0.8), (0.3, -1.0), (0.4, -0.5), (1, 0.1)]
        elif kind in "nmu":
            humps = 3 if kind == "m" else 2
            wide *= humps * 0.55
            shape = [(0, 0)]
            for at in range(humps):
                left = at / humps
                shape += [(left + 0.12 / humps, 0.8), (left + 0.4 / humps, 1.0), (left + 0.75 / humps, 0.6),
                          (left + 0.8 / humps, 0.02)]
            shape += [(1, 0.1)]
        elif kind in "ao":
            shape = [(0, 0.1), (0.6, 1.0), (0.1, 0.7), (0.15, 0.05), (0.6, 0.2), (0.75, 0.95), (0.8, 0.1), (1, 0.1)]
        else:
            shape = [(0, 0), (0.4, 0.45), (0.75, 0.85), (0.45, 1.0), (0.2, 0.5), (0.5, 0.0), (1, 0.1)]
        shake = lambda: lot.gauss(0, self.shake) * s
        return [(x + fx * wide + self.slant * fy * s + shake(), fy * s + shake()) for fx, fy in shape], x + wide

    def word(self, x, y, size, letters):
        """The strokes of a word; where it ends."""
        points, breaks = [], []
        for at in range(letters):
            grown = size * (1.8 if at == 0 and self.lot.random() < 0.3 else self.lot.uniform(0.85, 1.15))
            own, x = self.letter(x, grown)
            lift = self.lot.gauss(0, self.shake) * size
            if points and self.lot.random() < 0.2:
                breaks.append(len(points))
            points += [(px, y + lift + py) for px, py in own]
        strokes, start = [], 0
        for end in [*breaks, len(points)]:
            strokes.append(points[start:end])
            start = end
        return strokes, x

    def line(self, x, y, width, size):
        strokes, end = [], x + width
        while x < end:
            own, x = self.word(x, y + self.lot.gauss(0, 0.06) * size, size, self.lot.randint(3, 8))
            strokes += own
            x += size * self.lot.uniform(0.6, 1.0)
        return strokes

    def name(self, x, y, width, height):
        """A signature: large letters, then a trail that dies away, a line below it perhaps."""
        lot, strokes = self.lot, []
        size = height * lot.uniform(0.32, 0.45)
        for part in range(lot.randint(1, 2)):
            first, x2 = self.letter(x, size * lot.uniform(1.4, 1.9))
            points = [(px, y + py) for px, py in first]
            for _ in range(lot.randint(1, 4)):
                own, x2 = self.letter(x2, size * lot.uniform(0.7, 1.1))
                points += [(px, y + py) for px, py in own]
            trail, length = x2, width * lot.uniform(0.15, 0.4)
            for at in range(lot.randint(4, 9)):
                fade = 1 - at / 10
                trail += length / 8
                points.append((trail, y + lot.uniform(-0.2, 0.9) * size * 0.6 * fade * (1 if at % 2 else 0.2)))
            strokes.append(points)
            x = trail + size * 0.2
        if lot.random() < 0.5:
            left = min(px for stroke in strokes for px, _ in stroke)
            strokes.append([(x, y + size * 0.3), (x + size * 0.5, y - size * 0.2), (left + width * 0.3, y - size * 0.55),
                            (x + size * lot.uniform(0, 2), y - size * lot.uniform(0.4, 0.8))])
        return strokes


def smooth(points, steps=7):
    """Points along the curve through all of them (Catmull and Rom)."""
    ends = [points[0], *points, points[-1]]
    for a, b, c, d in zip(ends, ends[1:], ends[2:], ends[3:]):
        for at in range(steps):
            t = at / steps
            yield tuple(0.5 * (2 * b[i] + (c[i] - a[i]) * t + (2 * a[i] - 5 * b[i] + 4 * c[i] - d[i]) * t * t
                               + (3 * b[i] - a[i] - 3 * c[i] + d[i]) * t ** 3) for i in (0, 1))
    yield points[-1]


def write(s, hand, strokes, kind):
    """Draws strokes and notes their box."""
    s.canvas.saveState()
    s.canvas.setLineCap(1)
    s.canvas.setStrokeGray(hand.grey)
    xs, ys = [], []
    for stroke in strokes:
        last, turn = None, hand.lot.uniform(0, 6)
        for number, point in enumerate(smooth(stroke)):
            if last:
                width = hand.width * (1 + hand.pressure * math.sin(turn + number / 5))
                s.canvas.setLineWidth(width)
                s.canvas.line(*last, *point)
            last = point
            xs.append(point[0])
            ys.append(point[1])
    s.canvas.restoreState()
    note(s, kind, min(xs), s.height - max(ys), max(xs) - min(xs), max(ys) - min(ys))


def note(s, kind, x, top, width, height):
    s.open_page.setdefault("marks", []).append({"kind": kind, "box": [x, top, width, height]})


def sign(s, hand, x, base):
    width, height = s.lot.uniform(90, 170), s.lot.uniform(26, 52)
    write(s, hand, hand.name(x, s.height - base, width, height), "signature")


def rule(s, x, top, width):
    s.canvas.setLineWidth(s.lot.choice((0.4, 0.7, 1)))
    if s.lot.random() < 0.3:
        s.canvas.setDash(1, 2)
    s.canvas.line(x, s.height - top, x + width, s.height - top)
    s.canvas.setDash()


def arc_text(s, text, x, y, radius, size):
    """Words along a circle, clockwise from the left."""
    s.canvas.setFont(BOLD, size)
    for at, letter in enumerate(text):
        angle = math.pi - (at + 0.5) * math.pi * 1.9 / len(text)
        s.canvas.saveState()
        s.canvas.translate(x + radius * math.cos(angle), y + radius * math.sin(angle))
        s.canvas.rotate(math.degrees(angle) - 90)
        s.canvas.drawCentredString(0, 0, letter)
        s.canvas.restoreState()


def ring(s, x, y, radius, grey):
    """A round stamp or badge with its words; y upwards."""
    s.canvas.saveState()
    s.canvas.setStrokeGray(grey)
    s.canvas.setFillGray(grey)
    s.canvas.translate(x, y)
    s.canvas.rotate(s.lot.uniform(-40, 40))
    s.canvas.setLineWidth(s.lot.uniform(1, 2.2))
    s.canvas.circle(0, 0, radius)
    if s.lot.random() < 0.6:
        s.canvas.setLineWidth(0.8)
        s.canvas.circle(0, 0, radius * 0.62)
    size = radius * 0.2
    arc_text(s, s.words(5, stop="").upper()[:30] + " * ", 0, 0, radius * 0.72, size)
    s.canvas.setFont(BOLD, size)
    for at, text in enumerate((s.label(1)[:9].upper(), f"{s.lot.randint(10, 28)}.{s.lot.randint(10, 12)}.2026")):
        s.canvas.drawCentredString(0, size * (0.3 - 1.2 * at), text)
    s.canvas.restoreState()


def round_stamp(s, x, top, radius=None):
    radius = radius or s.lot.uniform(36, 58)
    ring(s, x, s.height - top, radius, s.lot.uniform(0.1, 0.5))
    note(s, "stamp", x - radius, top - radius, 2 * radius, 2 * radius)


def box_stamp(s, x, top):
    """A frame with words in it, put down askew."""
    width, height, grey = s.lot.uniform(110, 180), s.lot.uniform(36, 64), s.lot.uniform(0.1, 0.5)
    angle = s.lot.choice((-1, 1)) * s.lot.uniform(4, 22)
    s.canvas.saveState()
    s.canvas.translate(x, s.height - top)
    s.canvas.rotate(angle)
    s.canvas.setStrokeGray(grey)
    s.canvas.setFillGray(grey)
    s.canvas.setLineWidth(s.lot.uniform(1.2, 2.4))
    s.canvas.rect(-width / 2, -height / 2, width, height)
    s.canvas.setFont(BOLD, min(height * 0.36, width * 0.13))
    s.canvas.drawCentredString(0, height * 0.08, s.label(1)[:9].upper())
    s.canvas.setFont(SANS, min(height * 0.22, width * 0.062))
    s.canvas.drawCentredString(0, -height * 0.32, f"{s.lot.randint(10, 28)}.{s.lot.randint(10, 12)}.2026  Nr. {s.lot.randint(10, 999)}")
    s.canvas.restoreState()
    turn = math.radians(abs(angle))
    across, down = width * math.cos(turn) + height * math.sin(turn), width * math.sin(turn) + height * math.cos(turn)
    note(s, "stamp", x - across / 2, top - down / 2, across, down)


def with_contract(s):
    """Two lines to be signed on, one or both signed."""
    y = s.title(60, 60, 470, 18)
    for _ in range(5):
        y = s.heading(1, 60, y + 4, 470, 11.5)
        y = s.text(s.prose(4), 60, y, 470)
    y += 90
    for at, x in enumerate((60, 320)):
        rule(s, x, y, 210)
        s.text(f"{s.label(1)}, {SIGNED[s.language]}", x, y + 5, 200, size=8)
        if at == 0 or s.lot.random() < 0.6:
            sign(s, Hand(s.lot), x + s.lot.uniform(5, 40), y - s.lot.uniform(-2, 10))


def with_letter(s):
    """A letter, signed above the printed name."""
    y = s.text(s.label(3), 60, 150, 220)
    y = s.heading(1, 60, y + 30, 470, 12)
    for _ in range(3):
        y = s.text(s.prose(4), 60, y, 470) + 8
    y = s.text(REGARDS[s.language], 60, y + 8, 300)
    sign(s, Hand(s.lot), 62 + s.lot.uniform(0, 30), y + 46)
    s.text(s.label(2), 60, y + 74, 200)


def with_form(s):
    """A form, filled in by hand, signed."""
    hand = Hand(s.lot)
    y = s.heading(1, 60, 60, 470, 14) + 10
    for _ in range(7):
        s.text(s.label(2) + ":", 60, y, 130)
        rule(s, 200, y + 12, 300)
        if s.lot.random() < 0.7:
            size = s.lot.uniform(6, 8)
            write(s, hand, hand.line(206, s.height - y - 10, s.lot.uniform(70, 200), size), "handwriting")
        y += 36
    y = s.text(s.prose(5), 60, y + 10, 470) + 80
    rule(s, 300, y, 220)
    s.text(SIGNED[s.language], 300, y + 5, 200, size=8)
    sign(s, hand, 315, y - 4)


def with_notes(s):
    """Print, with lines by hand in its margin and below."""
    hand = Hand(s.lot)
    y = s.heading(1, 60, 60, 330, 14)
    for _ in range(4):
        y = s.text(s.prose(4), 60, y, 330) + 8
    for at in range(s.lot.randint(2, 3)):
        write(s, hand, hand.line(410, s.height - 140 - at * 30, 90, 8), "handwriting")
    for at in range(s.lot.randint(1, 3)):
        write(s, hand, hand.line(70, s.height - y - 40 - at * 34, s.lot.uniform(200, 330), s.lot.uniform(8, 10)), "handwriting")


def with_round_stamp(s):
    """An invoice with a round stamp, across its print or beside it."""
    y = s.heading(1, 60, 60, 470, 15)
    y = s.text(s.prose(3), 60, y, 470) + 8
    y = s.table(60, y, [220, 70, 90, 95], items(s, 9), right=(1, 2, 3), rules=s.lot.choice(("none", "grid", "rows"))) + 20
    low = s.text(s.prose(4), 60, y, 300)
    round_stamp(s, s.lot.uniform(330, 470), s.lot.uniform(y + 40, low + 90))


def with_box_stamp(s):
    y = s.heading(1, 60, 60, 470, 15)
    y = s.table(60, y, [220, 70, 90, 95], items(s, 7), right=(1, 2, 3), rules=s.lot.choice(("none", "grid", "rows"))) + 20
    low = s.text(s.prose(5), 60, y, 470)
    box_stamp(s, s.lot.uniform(180, 420), low + s.lot.uniform(50, 160))


def without_hands(s):
    """Lines to be signed on that nobody signed, underlined words, leaders of dots."""
    y = s.title(60, 60, 470, 18)
    for _ in range(4):
        y = s.text(s.prose(4), 60, y, 470) + 6
        s.canvas.setLineWidth(0.8)
        s.canvas.line(60, s.height - y + 8, 60 + s.lot.uniform(80, 400), s.height - y + 8)
    for _ in range(5):
        s.text(s.label(2) + " " + "." * 90, 60, y, 480)
        y += 20
    y = s.text(REGARDS[s.language], 60, y + 20, 300)
    for x in (60, 320):
        rule(s, x, y + 70, 210)
        s.text(SIGNED[s.language], x, y + 75, 200, size=8)


def without_badges(s):
    """A round badge in the letterhead, seals in the foot, an upright frame with large words, a cross."""
    ring(s, 480, s.height - 85, 42, 0.3)
    y = s.text(s.label(3), 60, 150, 220)
    for _ in range(4):
        y = s.text(s.prose(4), 60, y, 470) + 8
    s.canvas.setLineWidth(2)
    s.canvas.rect(80, s.height - y - 80, 170, 52)
    s.text(s.label(1).upper(), 95, y + 38, 150, size=20, bold=True)
    for at in range(3):
        s.canvas.circle(330 + at * 60, s.height - y - 60, 22)
        s.text(str(at + 1), 325 + at * 60, y + 54, 20, size=14)
    s.canvas.line(80, s.height - y - 120, 250, s.height - y - 180)
    s.canvas.line(80, s.height - y - 180, 250, s.height - y - 120)


def without_codes(s):
    """Bar codes, a small map of curves, large slanted print."""
    y = s.heading(1, 60, 60, 470, 15)
    y = s.text(s.prose(3), 60, y, 470) + 10
    x = 70
    while x < 300:
        wide = s.lot.choice((0.8, 1.6, 2.4))
        s.canvas.rect(x, s.height - y - 50, wide, 50, stroke=0, fill=1)
        x += wide + s.lot.choice((0.8, 1.6, 2.4))
    y = s.text(s.prose(3), 60, y + 64, 470) + 20
    s.canvas.saveState()
    s.canvas.translate(80, s.height - y - 40)
    s.canvas.skew(0, -18)
    s.canvas.setFont(SERIF, 34)
    s.canvas.drawString(0, 0, s.label(2))
    s.canvas.restoreState()
    y += 70
    s.canvas.setLineWidth(0.8)
    for _ in range(6):
        points = [(s.lot.uniform(80, 480), s.height - y - s.lot.uniform(0, 200)) for _ in range(4)]
        path = s.canvas.beginPath()
        path.moveTo(*points[0])
        path.curveTo(*points[1], *points[2], *points[3])
        s.canvas.drawPath(path)


def without_marks(s):
    """Tables, small print, lists in a plain layout."""
    y = s.title(60, 60, 470, 20)
    y = s.list(60, y, 450, ["•"] * 4) + 8
    y = s.table(60, y, [200, 80, 90, 100], items(s, 12), right=(1, 2, 3), rules="grid") + 10
    y = s.text(s.prose(5), 60, y, 470, size=7) + 8
    s.text(s.prose(6), 60, y, 470, font=SERIF, size=11)


LAYOUTS = [with_contract, with_letter, with_form, with_notes, with_round_stamp, with_box_stamp, without_hands,
           without_badges, without_codes, without_marks, *FIGURES]
WAYS = ("plain", "skewed", "bilevel", "coarse")


def scan(source, target, way, lot):
    """The page as a scanner stores it: grey and a little noisy; askew; black and white; coarse."""
    import pypdfium2
    from PIL import Image, ImageFilter
    dpi = {"plain": 200, "skewed": 200, "bilevel": 300, "coarse": 150}[way]
    page = pypdfium2.PdfDocument(str(source))[0]
    picture = page.render(scale=dpi / 72, grayscale=True).to_pil().convert("L")
    if way == "skewed":
        picture = picture.rotate(lot.choice((-1, 1)) * lot.uniform(0.4, 1.2), Image.BICUBIC, fillcolor=255)
    picture = picture.filter(ImageFilter.GaussianBlur(0.6))
    noise = Image.frombytes("L", picture.size, lot.randbytes(picture.width * picture.height))
    picture = Image.blend(picture, noise, 0.06)
    if way == "bilevel":
        picture = picture.point(lambda value: 255 if value > 170 else 0).convert("1")
    quality = {} if way == "bilevel" else {"quality": 40 if way == "coarse" else 70}
    picture.save(target, "PDF", resolution=dpi, creationDate=time.gmtime(0), modDate=time.gmtime(0), **quality)


def share_of_smaller(one, other):
    across = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    down = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    least = min(one[2] * one[3], other[2] * other[3])
    return max(across, 0) * max(down, 0) / least if least else 0


def said_marks(program, path):
    """The marks of the first page, in points."""
    done = subprocess.run([program, "transcribe", str(path), "--format", "json"], capture_output=True, check=True)
    page = json.loads(done.stdout)["pages"][0]
    scale = 595.28 / page["width"]
    return [(mark["kind"], [mark["box"][side] * scale for side in "xywh"]) for mark in page.get("marks", [])]


def score(program, folder, part):
    counts = {kind: [0, 0, 0, 0] for kind in ("signature", "stamp", "handwriting")}
    names = [path.stem for path in sorted(folder.glob(f"{part}_*.pdf"))]
    for name in names:
        truth = json.loads((folder / "truth" / f"{name}.json").read_text())["pages"][0].get("marks", [])
        said = said_marks(program, folder / f"{name}.pdf")
        for kind, figures in counts.items():
            true = [mark["box"] for mark in truth if mark["kind"] == kind]
            own = [box for other, box in said if other == kind]
            hits = sum(any(share_of_smaller(box, place) > 0.5 for place in own) for box in true)
            # A signature is written by hand.
            around = true + [mark["box"] for mark in truth if (kind, mark["kind"]) == ("handwriting", "signature")]
            wrong = sum(all(share_of_smaller(box, place) <= 0.5 for box in around) for place in own)
            if hits < len(true) or wrong:
                print(f"  {name}: {kind} {hits} of {len(true)}, {wrong} wrong")
            for at, value in enumerate((len(true), hits, len(own), wrong)):
                figures[at] += value
    print(f"{part}: {len(names)} pages")
    for kind, (true, hits, own, wrong) in counts.items():
        print(f"  {kind}: {hits} of {true} found, {wrong} of {own} said are none")


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "truth").mkdir(parents=True, exist_ok=True)
    (folder / "drawn").mkdir(exist_ok=True)
    for name in (SANS, BOLD, SERIF, SERIF_BOLD):
        pdfmetrics.registerFont(TTFont(name, str(FONTS / f"{name}.ttf")))
    for part, seeds in SEEDS.items():
        for seed in seeds:
            for number, layout in enumerate(LAYOUTS):
                language, way = LANGUAGES[(number + seed) % 5], WAYS[(number + seed) % 4]
                name = f"{part}_{layout.__name__}_{way}_{seed}"
                sheet = Sheet(folder / "drawn" / f"{name}.pdf", language, name)
                layout(sheet)
                sheet.save(folder / "truth" / f"{name}.json", layout.__name__)
                scan(folder / "drawn" / f"{name}.pdf", folder / f"{name}.pdf", way, random.Random(name))
    if len(sys.argv) > 2:
        for part in [sys.argv[3]] if len(sys.argv) > 3 else list(SEEDS):
            score(sys.argv[2], folder, part)


if __name__ == "__main__":
    main()
