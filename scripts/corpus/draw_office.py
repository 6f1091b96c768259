#!/usr/bin/env python3
"""Draws Office documents, web pages and text files of known content, and scores readers on them.

    draw_office.py FOLDER [DOCMILL]

Writes the files with their truth (words, cells, words that nobody sees) to FOLDER. With a docmill it
prints the share of words and the F1 of cells (row, column, text) by format, and how many unseen words were
read; beside it kreuzberg's, where that is installed. Needs python-docx 1.2, openpyxl 3.1, python-pptx
1.0 and odfpy 1.4.
"""

import collections
import json
import pathlib
import random
import subprocess
import sys

COUNT = 10
WORDS = (
    "Lieferung Büro Straße größer payment terms within thirty days Rechnung facture réglée à échéance "
    "iva incluida załącznik dostawa levering betaling screws steel bolts oak panel hours of consulting "
    "travel costs support contract warehouse order number delivery note"
).split()


def draw_truth(seed):
    """The content of one document."""
    rand = random.Random(seed)

    def sentence(count):
        return " ".join(rand.choice(WORDS) for _ in range(count)).capitalize() + "."

    columns = rand.randint(3, 5)
    names = ["Pos", "Article", "Quantity", "Price", "Amount"][:columns]
    rows = [names]
    for at in range(rand.randint(4, 12)):
        price, quantity = rand.randint(100, 99999) / 100, rand.randint(1, 40)
        row = [str(at + 1), sentence(rand.randint(1, 4))[:-1], str(quantity), f"{price:.2f}", f"{price * quantity:.2f}"]
        rows.append(row[:columns])
    return {
        "title": f"Report {seed} " + rand.choice(WORDS).capitalize(),
        "heading": "Section " + rand.choice(WORDS).capitalize(),
        "paragraphs": [sentence(rand.randint(12, 40)) for _ in range(3)],
        "items": [sentence(rand.randint(3, 6)) for _ in range(4)],
        "rows": rows,
        "trap": f"TRAP{seed}X",
    }


def draw_docx(path, it):
    import docx
    from docx.shared import Pt, RGBColor

    file = docx.Document()
    file.add_heading(it["title"], 0)
    file.add_paragraph(it["paragraphs"][0])
    file.add_paragraph().add_run(it["trap"]).font.hidden = True
    run = file.add_paragraph().add_run(it["trap"])
    run.font.color.rgb, run.font.size = RGBColor(255, 255, 255), Pt(8)
    file.add_heading(it["heading"], 2)
    for item in it["items"]:
        file.add_paragraph(item, style="List Bullet")
    table = file.add_table(len(it["rows"]), len(it["rows"][0]))
    for row, cells in zip(table.rows, it["rows"]):
        for cell, text in zip(row.cells, cells):
            cell.text = text
    for text in it["paragraphs"][1:]:
        file.add_paragraph(text)
    file.save(path)


def draw_xlsx(path, it):
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append([it["title"]])
    sheet.append([])
    for row in it["rows"]:
        sheet.append([float(text) if text.replace(".", "").isdigit() else text for text in row])
    for row in sheet.iter_rows(min_row=4):
        for cell in row[3:]:
            cell.number_format = "0.00"
    last = sheet.max_row + 1
    sheet.cell(last, 1).value = it["trap"]
    sheet.row_dimensions[last].hidden = True
    other = book.create_sheet("Hidden")
    other["A1"] = it["trap"]
    other.sheet_state = "hidden"
    book.save(path)


def draw_pptx(path, it):
    import pptx
    from pptx.util import Inches

    file = pptx.Presentation()
    slide = file.slides.add_slide(file.slide_layouts[1])
    slide.shapes.title.text = it["title"]
    slide.placeholders[1].text = "\n".join(it["items"])
    slide.notes_slide.notes_text_frame.text = it["trap"]
    slide = file.slides.add_slide(file.slide_layouts[5])
    slide.shapes.title.text = it["heading"]
    size = (len(it["rows"]), len(it["rows"][0]))
    table = slide.shapes.add_table(*size, Inches(1), Inches(2), Inches(8), Inches(3)).table
    for at, row in enumerate(it["rows"]):
        for column, text in enumerate(row):
            table.cell(at, column).text = text
    file.save(path)


def draw_odf(path, it, kind):
    from odf import opendocument, style, table, text

    if kind == "odt":
        file = opendocument.OpenDocumentText()
        body = file.text
        body.addElement(text.H(outlinelevel=1, text=it["title"]))
        body.addElement(text.P(text=it["paragraphs"][0]))
        hidden = style.Style(name="hid", family="text")
        hidden.addElement(style.TextProperties(attributes={"display": "none"}))
        file.automaticstyles.addElement(hidden)
        line = text.P()
        line.addElement(text.Span(stylename=hidden, text=it["trap"]))
        body.addElement(line)
        body.addElement(text.H(outlinelevel=2, text=it["heading"]))
        entries = text.List()
        for item in it["items"]:
            entry = text.ListItem()
            entry.addElement(text.P(text=item))
            entries.addElement(entry)
        body.addElement(entries)
    else:
        file = opendocument.OpenDocumentSpreadsheet()
        body = file.spreadsheet
    sheet = table.Table(name="T")
    for row in it["rows"]:
        line = table.TableRow()
        for cell in row:
            field = table.TableCell(valuetype="string")
            field.addElement(text.P(text=cell))
            line.addElement(field)
        sheet.addElement(line)
    if kind == "ods":
        line = table.TableRow(visibility="collapse")
        field = table.TableCell(valuetype="string")
        field.addElement(text.P(text=it["trap"]))
        line.addElement(field)
        sheet.addElement(line)
    body.addElement(sheet)
    if kind == "odt":
        for part in it["paragraphs"][1:]:
            body.addElement(text.P(text=part))
    file.save(path)


def draw_rtf(path, it):
    def coded(text):
        return "".join(c if ord(c) < 128 else f"\\u{ord(c)}?" for c in text)

    lines = [f"\\pard\\outlinelevel0 {coded(it['title'])}\\par\\pard {coded(it['paragraphs'][0])}\\par"]
    lines.append(f"{{\\v {it['trap']}}}\\pard\\outlinelevel1 {coded(it['heading'])}\\par")
    lines += [f"\\pard\\ls1{{\\listtext\\'b7\\tab}}{coded(item)}\\par" for item in it["items"]]
    for row in it["rows"]:
        edges = "".join(f"\\cellx{2000 * (at + 1)}" for at in range(len(row)))
        lines.append(f"\\trowd{edges}" + "".join(f"\\pard\\intbl {coded(cell)}\\cell" for cell in row) + "\\row")
    lines += [f"\\pard {coded(text)}\\par" for text in it["paragraphs"][1:]]
    path.write_text("{\\rtf1\\ansi\\ansicpg1252 " + "\n".join(lines) + "}", encoding="ascii")


def draw_html(path, it):
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in it["rows"])
    items = "".join(f"<li>{item}</li>" for item in it["items"])
    first, *rest = [f"<p>{text}</p>" for text in it["paragraphs"]]
    path.write_text(
        f"<!DOCTYPE html><html><head><meta charset=utf-8><title>{it['trap']}</title></head><body>"
        f"<h1>{it['title']}</h1>{first}<div style='display:none'>{it['trap']}</div>"
        f"<h2>{it['heading']}</h2><ul>{items}</ul><table>{rows}</table>{''.join(rest)}</body></html>",
        encoding="utf-8",
    )


def draw_csv(path, it):
    path.write_text("\n".join(";".join(row) for row in it["rows"]) + "\n", encoding="utf-8-sig")


def draw_txt(path, it):
    lines = [it["title"], "", *it["paragraphs"], *(f"- {item}" for item in it["items"])]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


DRAWN = {
    "docx": draw_docx,
    "xlsx": draw_xlsx,
    "pptx": draw_pptx,
    "odt": lambda path, it: draw_odf(path, it, "odt"),
    "ods": lambda path, it: draw_odf(path, it, "ods"),
    "rtf": draw_rtf,
    "html": draw_html,
    "csv": draw_csv,
    "txt": draw_txt,
}


def seen_words(kind, it):
    """The words that a person sees in a format."""
    table = [cell for row in it["rows"] for cell in row]
    flow = [it["title"], it["heading"], *it["paragraphs"], *it["items"]]
    seen = {
        "xlsx": [it["title"], *table],
        "ods": table,
        "csv": table,
        "pptx": [it["title"], it["heading"], *it["items"], *table],
        "txt": [it["title"], *it["paragraphs"], *it["items"]],
    }
    return " ".join(seen.get(kind, flow + table)).split()


def read_docmill(program, path):
    done = subprocess.run(
        [program, "transcribe", str(path), "--format", "json"], capture_output=True, text=True, check=True
    )
    pages = json.loads(done.stdout)["pages"]
    words = [word["text"] for page in pages for line in page["lines"] for word in line["words"]]
    tables = []
    for page in pages:
        for block in page.get("blocks", []):
            cells = block.get("cells")
            if cells:
                tables.append({(cell["row"], cell["column"]): cell["text"] for cell in cells})
    return " ".join(words), tables


def read_kreuzberg(path):
    import kreuzberg

    found = kreuzberg.extract_file_sync(str(path))
    tables = []
    for table in found.tables:
        cells = table.cells if hasattr(table, "cells") else table["cells"]
        tables.append({(r, c): text.strip() for r, row in enumerate(cells) for c, text in enumerate(row) if text.strip()})
    return found.content, tables


def score(kind, it, text, tables):
    wanted = collections.Counter(seen_words(kind, it))
    for sign in "|*#":
        text = text.replace(sign, " ")
    words = collections.Counter(text.replace("\\", "").split())
    recall = sum((wanted & words).values()) / sum(wanted.values())
    truth = {(r, c): cell for r, row in enumerate(it["rows"]) for c, cell in enumerate(row)}
    best = 0.0
    for table in tables:
        # The first row of a table may be a caption or title above it.
        for shift in (0, 1, 2):
            moved = {(r - shift, c): cell for (r, c), cell in table.items()}
            hits = sum(moved.get(place) == cell for place, cell in truth.items())
            best = max(best, 2 * hits / (len(truth) + len(moved)))
    return recall, best, it["trap"] in text


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    readers = {}
    if len(sys.argv) > 2:
        readers["docmill"] = lambda path: read_docmill(sys.argv[2], path)
        try:
            import kreuzberg  # noqa: F401

            readers["kreuzberg"] = read_kreuzberg
        except ImportError:
            print("kreuzberg is not installed", file=sys.stderr)
    for kind, draw in DRAWN.items():
        scores = {name: [] for name in readers}
        for seed in range(COUNT):
            it = draw_truth(f"{kind}{seed}")
            path = folder / f"{kind}_{seed}.{kind}"
            draw(path, it)
            (folder / f"{path.stem}.truth.json").write_text(json.dumps(it, ensure_ascii=False))
            for name, read in readers.items():
                try:
                    scores[name].append(score(kind, it, *read(path)))
                except Exception as error:  # A reader that gives up has read nothing.
                    print(f"{name}: {path.name}: {str(error)[:200]}", file=sys.stderr)
                    scores[name].append((0.0, 0.0, False))
        for name, found in scores.items():
            recall = sum(it[0] for it in found) / len(found)
            cells = sum(it[1] for it in found) / len(found)
            cells = "   -" if kind == "txt" else f"{cells:.3f}"
            print(f"{kind:5} {name:10} words {recall:.3f}  cells {cells}  unseen read {sum(it[2] for it in found)}")


if __name__ == "__main__":
    main()
