#!/usr/bin/env python3
"""Draws the photos that tests decode: a scene and an invoice, as PNG and in the formats of phones.

    python3 -m venv target/tools/photos
    target/tools/photos/bin/pip install numpy==2.4.6 pillow==13.0.0 pillow-heif==1.8.1 imagecodecs==2026.3.6
    target/tools/photos/bin/python scripts/draw_photos.py tests/photos

Containers are written here, so that each property is known. Not needed to build, test or run
anything: what it draws is committed. Of Debian: fonts-dejavu-core, and cjxl of libjxl-tools.
"""

import io
import pathlib
import struct
import subprocess
import sys
import tempfile

import imagecodecs
import numpy
import pillow_heif
from PIL import Image, ImageDraw, ImageFont

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
TILE = 64
ROWS = [
    "Northwind Paper Ltd",
    "12 Mill Lane, Leeds LS1 4AB",
    "VAT registration: GB980780684",
    "",
    "INVOICE",
    "Invoice number: NP-4711",
    "Invoice date: 2026-03-14",
    "Due date: 2026-04-13",
    "",
    "Copy paper A4, box          4        25.00        100.00",
    "",
    "Subtotal        GBP 100.00",
    "VAT 20%        GBP 20.00",
    "Total        GBP 120.00",
]


def scene():
    """Dark print, a ramp of greys and three colours, without symmetry: 192 x 128 pixels."""
    picture = Image.new("RGB", (192, 128), (244, 240, 230))
    pen = ImageDraw.Draw(picture)
    pen.text((10, 8), "No. 4711", fill=(20, 20, 30), font=ImageFont.truetype(FONT, 30))
    for x in range(192):
        pen.line((x, 60, x, 80), fill=(x * 255 // 191,) * 3)
    for at, colour in enumerate([(200, 40, 40), (40, 160, 60), (40, 60, 190)]):
        pen.rectangle((10 + at * 34, 92, 36 + at * 34, 120), fill=colour)
    return picture


def invoice():
    picture = Image.new("RGB", (1000, 760), "white")
    pen = ImageDraw.Draw(picture)
    for row, words in enumerate(ROWS):
        pen.text((60, 40 + row * 48), words, fill="black", font=ImageFont.truetype(FONT, 30))
    return picture


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", len(body) + 8, kind) + body


def full_box(kind, version, flags, *parts):
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def boxes(data):
    at = 0
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        yield kind, data[at + 8 : at + (size or len(data) - at)]
        at += size or len(data)


def coded(picture, form, **options):
    """The coded picture, and the properties of its coding, of an encoder's file."""
    file = io.BytesIO()
    picture.save(file, form, **options)
    file = file.getvalue()
    meta = dict(boxes(file))[b"meta"][4:]
    meta = dict(boxes(meta))
    properties = list(boxes(dict(boxes(meta[b"iprp"]))[b"ipco"]))
    coding = next(box(kind, body) for kind, body in properties if kind in (b"hvcC", b"av1C"))
    # The main picture is the first item of these encoders.
    locations = meta[b"iloc"]
    sizes = struct.unpack_from(">BB", locations, 4)
    offset_size, length_size, base_size = sizes[0] >> 4, sizes[0] & 15, sizes[1] >> 4
    at = 8 + 2 + (2 if locations[0] else 0) + 2
    base = int.from_bytes(locations[at : at + base_size], "big")
    at += base_size + 2
    start = base + int.from_bytes(locations[at : at + offset_size], "big")
    at += offset_size
    length = int.from_bytes(locations[at : at + length_size], "big")
    return coding, file[start : start + length]


def item(kind, data, *properties, links=()):
    """`links`: kind of reference, and the items it leads to, counted from 1."""
    return {"kind": kind, "data": data, "properties": properties, "links": links}


def container(brand, items, primary=1):
    head = box(b"ftyp", brand, bytes(4), brand, b"mif1")
    known, uses = [], b""
    for number, it in enumerate(items, 1):
        indices = []
        for part in it["properties"]:
            if part not in known:
                known.append(part)
            indices.append(known.index(part) + 1)
        uses += struct.pack(">HB", number, len(indices)) + bytes(indices)
    infos = b"".join(
        full_box(b"infe", 2, 0, struct.pack(">HH4s", number, 0, it["kind"]), b"\0")
        for number, it in enumerate(items, 1)
    )
    links = b"".join(
        box(kind, struct.pack(f">HH{len(to)}H", number, len(to), *to))
        for number, it in enumerate(items, 1)
        for kind, to in it["links"]
    )

    def meta(start):
        places = b""
        for number, it in enumerate(items, 1):
            places += struct.pack(">HHHII", number, 0, 1, start, len(it["data"]))
            start += len(it["data"])
        return full_box(
            b"meta", 0, 0,
            full_box(b"hdlr", 0, 0, bytes(4), b"pict", bytes(13)),
            full_box(b"pitm", 0, 0, struct.pack(">H", primary)) if primary else b"",
            full_box(b"iloc", 0, 0, b"\x44\0", struct.pack(">H", len(items)), places),
            full_box(b"iinf", 0, 0, struct.pack(">H", len(items)), infos),
            full_box(b"iref", 0, 0, links),
            box(b"iprp", box(b"ipco", *known),
                full_box(b"ipma", 0, 0, struct.pack(">I", len(items)), uses)),
        )  # fmt: skip

    start = len(head) + len(meta(0)) + 8
    return head + meta(start) + box(b"mdat", *(it["data"] for it in items))


def size(width, height):
    return full_box(b"ispe", 0, 0, struct.pack(">II", width, height))


def colours(matrix, is_full):
    return box(b"colr", b"nclx", struct.pack(">HHHB", 1, 13, matrix, is_full << 7))


def turned(quarters):
    return box(b"irot", bytes([quarters]))


def mirrored(axis):
    return box(b"imir", bytes([axis]))


ALPHA = full_box(b"auxC", 0, 0, b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0")
GAIN = full_box(b"auxC", 0, 0, b"urn:com:apple:photo:2020:aux:hdrgainmap\0")


def exif(orientation):
    tiff = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 274, 3, 1, orientation, 0, 0)
    return bytes(4) + tiff


class Coder:
    """Items of one coding."""

    def __init__(self, form, kind, brand, **options):
        self.form, self.kind, self.brand, self.options = form, kind, brand, options

    def item(self, picture, *properties, links=(), **options):
        coding, data = coded(picture, self.form, **self.options | options)
        return item(self.kind, data, coding, size(*picture.size), *properties, links=links)

    def one(self, picture, *properties, **options):
        return container(self.brand, [self.item(picture, *properties, **options)])

    def grid(self, picture, *properties):
        """As phones store it: square tiles, the last ones beyond the edge."""
        across, down = -(-picture.width // TILE), -(-picture.height // TILE)
        whole = Image.new(picture.mode, (across * TILE, down * TILE))
        whole.paste(picture)
        places = [(x * TILE, y * TILE) for y in range(down) for x in range(across)]
        tiles = [self.item(whole.crop((x, y, x + TILE, y + TILE))) for x, y in places]
        data = struct.pack(">BBBBHH", 0, 0, down - 1, across - 1, *picture.size)
        links = [(b"dimg", range(2, 2 + len(tiles)))]
        grid = item(b"grid", data, size(*picture.size), *properties, links=links)
        return [grid, *tiles]


def mask():
    """Its lower part is clear."""
    drawn = Image.new("L", (192, 128), 255)
    drawn.paste(0, (0, 84, 192, 128))
    return drawn


def photos(coder):
    """One container for each property that readers get wrong."""
    picture, grey = scene(), scene().convert("L")
    full, limited = colours(6, True), colours(6, False)
    yield "scene", coder.one(picture, full)
    yield "grey", coder.one(grey, full)
    for name, *parts in [
        ("turned", turned(1)), ("upside_down", turned(2)), ("turned_back", turned(3)),
        ("mirrored", mirrored(0)), ("flipped", mirrored(1)), ("turned_and_mirrored", turned(1), mirrored(0)),
    ]:  # fmt: skip
        yield name, coder.one(picture, full, *parts)
    clean = box(b"clap", struct.pack(">IIIIiIiI", 96, 1, 64, 1, -48, 1, -32, 1))
    yield "cropped", coder.one(picture, full, clean)
    main = coder.item(picture, full, turned(3))
    note = item(b"Exif", exif(6), links=[(b"cdsc", [1])])
    small = coder.item(picture.resize((48, 32)), full, links=[(b"thmb", [1])])
    gain = coder.item(grey.resize((96, 64)), GAIN, links=[(b"auxl", [1])])
    yield "phone", container(coder.brand, [main, note, small, gain])
    yield "grid", container(coder.brand, coder.grid(picture.crop((0, 0, 150, 100)), full, turned(3)))
    alpha = coder.item(mask(), ALPHA, links=[(b"auxl", [1])])
    yield "transparent", container(coder.brand, [coder.item(picture, full), alpha])
    other = coder.item(picture.transpose(Image.Transpose.FLIP_TOP_BOTTOM), full)
    yield "second_is_primary", container(coder.brand, [other, coder.item(picture, full)], 2)
    coding, data = coded(picture, coder.form, **coder.options)
    yield "lying_size", container(coder.brand, [item(coder.kind, data, coding, size(16, 16), full)])
    tile = coder.item(picture.crop((0, 0, TILE, TILE)))
    endless = item(b"grid", struct.pack(">BBBBHH", 0, 0, 15, 15, 64, 64), size(64, 64), full,
                   links=[(b"dimg", [2] * 256)])  # fmt: skip
    yield "repeated_tile", container(coder.brand, [endless, tile])
    yield "no_primary", container(coder.brand, [other, coder.item(picture, full)], 0)


def wide(picture, form, **options):
    """The picture in 10 bits."""
    values = numpy.asarray(picture).astype(numpy.uint16) * 257
    deep = pillow_heif.from_bytes("RGB;16", picture.size, values.tobytes())
    file = io.BytesIO()
    deep.save(file, format=form, **options)
    return file.getvalue()


def jpeg_xl(picture, *options, ending="png"):
    """The picture as cjxl writes it; a JPEG's turn becomes the photo's."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, f"drawn.{ending}"), pathlib.Path(folder, "photo.jxl")
        notes = Image.Exif()
        notes[274] = 6
        picture.save(source, **({"exif": notes, "quality": 95} if ending == "jpg" else {}))
        subprocess.run(["cjxl", *options, source, target], check=True, capture_output=True)
        return target.read_bytes()


def draw_heic():
    coder = Coder("HEIF", b"hvc1", b"heic", quality=70)
    yield from photos(coder)
    bare = dict(matrix_coefficients=6, color_primaries=1, transfer_characteristics=13)
    yield "stated_by_coding", coder.one(scene(), full_range_flag=1, **bare)
    yield "limited_by_coding", coder.one(scene(), full_range_flag=0, **bare)
    yield "invoice", coder.one(invoice(), colours(6, True), quality=45)
    pillow_heif.options.SAVE_HDR_TO_12_BIT = False
    yield "ten_bits", wide(scene(), "HEIF", quality=70)


def draw_avif():
    """The containers are those of HEIC, but for a few; the codings are its own."""
    coder = Coder("AVIF", b"av01", b"avif", quality=70, range="full")
    kept = {"scene", "grey", "phone", "grid", "transparent", "lying_size", "repeated_tile"}
    yield from (photo for photo in photos(coder) if photo[0] in kept)
    yield "stated_by_coding", coder.one(scene())
    yield "limited_by_coding", coder.one(scene(), range="limited")
    yield "every_colour", coder.one(scene(), subsampling="4:4:4")
    yield "half_the_colours", coder.one(scene(), subsampling="4:2:2")
    deep = numpy.asarray(scene()).astype(numpy.uint16) * 257
    yield "ten_bits", imagecodecs.avif_encode(deep >> 6, level=70, bitspersample=10)
    yield "without_loss", imagecodecs.avif_encode(numpy.asarray(scene()), level=100)
    yield "invoice", coder.one(invoice(), colours(6, True), quality=45)


def draw_jpeg_xl():
    yield "scene", jpeg_xl(scene(), "-q", "85")
    yield "boxes", jpeg_xl(scene(), "-q", "85", "--container=1")
    yield "lossless", jpeg_xl(scene(), "-d", "0")
    yield "grey", jpeg_xl(scene().convert("L"), "-q", "85")
    clear = scene()
    clear.putalpha(mask())
    yield "transparent", jpeg_xl(clear, "-q", "85")
    deep = Image.fromarray(numpy.asarray(scene().convert("L")).astype(numpy.uint16) * 257)
    yield "16_bits", jpeg_xl(deep, "-d", "1")
    yield "turned", jpeg_xl(scene(), ending="jpg")
    yield "invoice", jpeg_xl(invoice(), "-q", "50")


def write_all(folder):
    scene().save(folder / "scene.png", optimize=True)
    invoice().convert("L").save(folder / "invoice.png", optimize=True)
    for ending, drawn in [("heic", draw_heic()), ("avif", draw_avif()), ("jxl", draw_jpeg_xl())]:
        for name, content in drawn:
            (folder / f"{name}.{ending}").write_bytes(content)


if __name__ == "__main__":
    pillow_heif.register_heif_opener()
    write_all(pathlib.Path(sys.argv[1]))
