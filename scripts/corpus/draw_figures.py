#!/usr/bin/env python3
"""Draws pages with figures whose places are known, and pages with what looks like figures and is none,
as PDFs and as scans; scores what docmill finds.

    target/tools/samples/bin/python scripts/corpus/draw_figures.py FOLDER [DOCMILL]

Needs what scripts/corpus/draw_pages.py needs. A figure is found if the place that is said and its own share
more than half of what they cover together. With DOCMILL every page is read, and printed is for native
pages and scans how many of the figures are found, and how many of those found are some.
"""

import io
import json
import pathlib
import random
import subprocess
import sys

from PIL import Image, ImageFilter
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from draw_pages import BOLD, FONTS, SANS, SERIF, SERIF_BOLD, Sheet, items, plain, scan

LANGUAGES = ("en", "de", "fr", "it", "pl")


def photo(lot, width, height):
    """Smooth shades, as a photograph has them: hills before a sky."""
    small = Image.frombytes("RGB", (16, 12), lot.randbytes(16 * 12 * 3)).resize((width, height), Image.BICUBIC)
    dark = Image.new("RGB", (width, height), (lot.randint(20, 90), lot.randint(30, 110), lot.randint(20, 90)))
    return Image.blend(small, dark, 0.5).filter(ImageFilter.GaussianBlur(3))


def picture(s, x, top, width, height):
    data = io.BytesIO()
    photo(s.lot, int(width * 2), int(height * 2)).save(data, "JPEG", quality=85)
    s.canvas.drawImage(ImageReader(data), x, s.height - top - height, width, height)
    mark(s, x, top, width, height)
    return top + height


def mark(s, x, top, width, height):
    s.open_page.setdefault("figures", []).append([x, top, width, height])


def say(s, x, top, width):
    return s.text(f"Figure {s.lot.randint(1, 9)}: {s.words(6)}", x, top, width, "caption", 8.5) + 8


def colours(s):
    s.canvas.setFillColorRGB(*(s.lot.uniform(0.1, 0.6) for _ in range(3)))


def bars(s, x, top, width, height, count=7):
    """A chart of bars on an axis."""
    step, floor = width / count, s.height - top - height
    for at in range(count):
        colours(s)
        s.canvas.rect(x + at * step + 3, floor, step - 6, height * s.lot.uniform(0.15, 0.98), stroke=0, fill=1)
    s.canvas.setFillColorRGB(0, 0, 0)
    s.canvas.line(x, floor, x + width, floor)
    mark(s, x, top, width, height)
    return top + height


def curve(s, x, top, width, height):
    """A chart of lines on axes."""
    floor = s.height - top - height
    for _ in range(3):
        path = s.canvas.beginPath()
        path.moveTo(x, floor + s.lot.uniform(0, height))
        for at in range(1, 25):
            path.lineTo(x + at * width / 24, floor + s.lot.uniform(0, height))
        s.canvas.setStrokeColorRGB(*(s.lot.uniform(0, 0.6) for _ in range(3)))
        s.canvas.drawPath(path)
    s.canvas.setStrokeColorRGB(0, 0, 0)
    mark(s, x, top, width, height)
    return top + height


def pie(s, x, top, side):
    start, floor = 0, s.height - top - side
    while start < 360:
        reach = min(s.lot.randint(30, 110), 360 - start)
        colours(s)
        s.canvas.wedge(x, floor, x + side, floor + side, start, reach, stroke=0, fill=1)
        start += reach
    s.canvas.setFillColorRGB(0, 0, 0)
    mark(s, x, top, side, side)
    return top + side


def shade(s, x, top, width, height, grey):
    s.canvas.setFillGray(grey)
    s.canvas.rect(x, s.height - top - height, width, height, stroke=0, fill=1)
    s.canvas.setFillGray(0)


def with_photo(s):
    """A photograph between paragraphs, another in a column."""
    y = s.title(60, 60, 470, 20)
    y = s.text(s.prose(5), 60, y, 470) + 10
    y = say(s, 60, picture(s, 120, y, 350, 190) + 6, 350)
    y = s.text(s.prose(4), 60, y, 470) + 14
    low = s.text(s.prose(6), 60, y, 225)
    picture(s, 305, y, 225, 150)
    s.text(s.prose(3), 60, max(low, y + 160) + 8, 470)


def with_charts(s):
    """Bars, lines and a pie among text."""
    y = s.heading(1, 60, 70, 470, 15)
    y = s.text(s.prose(4), 60, y, 470) + 10
    y = say(s, 60, bars(s, 80, y, 300, 130) + 6, 400)
    y = s.text(s.prose(3), 60, y, 470) + 10
    y = say(s, 60, curve(s, 80, y, 360, 120) + 6, 400)
    y = s.text(s.prose(3), 60, y, 470) + 10
    pie(s, 230, y, 130)


def without_letter(s):
    """A letter with a logo, a strip of colour across, and addresses."""
    data = io.BytesIO()
    photo(s.lot, 300, 120).save(data, "PNG")
    s.canvas.drawImage(ImageReader(data), 420, s.height - 80, 120, 48)
    shade(s, 0, 0, s.width, 18, 0.4)
    shade(s, 0, s.height - 24, s.width, 24, 0.5)
    y = s.text(s.prose(1), 60, 150, 220)
    y = s.heading(1, 60, y + 30, 470, 13)
    for _ in range(4):
        y = s.text(s.prose(4), 60, y, 470) + 8


def without_table(s):
    """A table with shaded rows and one in dark frames with round corners."""
    y = s.heading(1, 60, 60, 470, 14)
    for row in range(0, 12, 2):
        shade(s, 60, y + row * 16.8, 475, 16.8, 0.85)
    y = s.table(60, y, [220, 70, 90, 95], items(s, 11), right=(1, 2, 3)) + 30
    s.canvas.roundRect(55, s.height - y - 130, 485, 135, 8)
    s.table(60, y, [160, 160, 150], [plain([s.label(2) for _ in range(3)]) for _ in range(7)])


def without_form(s):
    """A form with empty fields, a dark bar above, boxes to be ticked."""
    shade(s, 60, 60, 475, 22, 0.2)
    for row in range(12):
        top = 110 + row * 40
        s.text(s.label(2), 60, top, 150)
        shade(s, 220, top - 6, s.lot.choice((120, 200, 300)), 22, 0.9)
        s.canvas.rect(60, s.height - top - 28, 9, 9)
    s.canvas.roundRect(60, s.height - 740, 220, 90, 6)


def without_paper(s):
    """Text on a background that covers the page, and on a shade."""
    data = io.BytesIO()
    Image.blend(photo(s.lot, 600, 850), Image.new("RGB", (600, 850), "white"), 0.9).save(data, "JPEG")
    s.canvas.drawImage(ImageReader(data), 0, 0, s.width, s.height)
    shade(s, 60, 400, 475, 200, 0.93)
    y = s.title(60, 60, 470, 20)
    for _ in range(9):
        y = s.text(s.prose(4), 70, y, 450) + 8


LAYOUTS = [with_photo, with_charts, without_letter, without_table, without_form, without_paper]


def shared(one, other):
    across = min(one[0] + one[2], other[0] + other[2]) - max(one[0], other[0])
    down = min(one[1] + one[3], other[1] + other[3]) - max(one[1], other[1])
    both = max(across, 0) * max(down, 0)
    return both / (one[2] * one[3] + other[2] * other[3] - both)


def found(program, path):
    """The figures of the first page, in points."""
    said = subprocess.run([program, "transcribe", str(path), "--format", "json"], capture_output=True, check=True)
    page = json.loads(said.stdout)["pages"][0]
    scale = 595.28 / page["width"]
    places = [block["box"] for block in page["blocks"] if block["type"] == "figure"]
    return [[place[side] * scale for side in "xywh"] for place in places]


def score(program, folder, kind, paths):
    true, said, right = 0, 0, 0
    for path in paths:
        truth = json.loads((folder / "truth" / f"{path.name.split('.')[0]}.json").read_text())
        figures, places = truth["pages"][0].get("figures", []), found(program, path)
        hits = sum(any(shared(figure, place) > 0.5 for place in places) for figure in figures)
        true, said, right = true + len(figures), said + len(places), right + hits
        if hits < len(figures) or len(places) > hits:
            print(f"  {path.name}: {hits} of {len(figures)}, {len(places)} said")
    print(f"{kind}: {len(paths)} pages, {right} of {true} figures found, {said - right} of {said} said are none")


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "truth").mkdir(parents=True, exist_ok=True)
    for name in (SANS, BOLD, SERIF, SERIF_BOLD):
        pdfmetrics.registerFont(TTFont(name, str(FONTS / f"{name}.ttf")))
    native, scans = [], []
    for layout in LAYOUTS:
        for language in LANGUAGES:
            name = f"{layout.__name__}_{language}"
            sheet = Sheet(folder / f"{name}.pdf", language, name)
            layout(sheet)
            sheet.save(folder / "truth" / f"{name}.json", layout.__name__)
            scan(folder / f"{name}.pdf", folder / f"{name}.scan.pdf", random.Random(name))
            native.append(folder / f"{name}.pdf")
            scans.append(folder / f"{name}.scan.pdf")
    if len(sys.argv) > 2:
        score(sys.argv[2], folder, "native", native)
        score(sys.argv[2], folder, "scans", scans)


if __name__ == "__main__":
    main()
