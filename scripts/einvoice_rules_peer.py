#!/usr/bin/env python3
"""Compares verdicts by rule id with those of Saxon; einvoice_rules.sh says on which files.

    einvoice_rules_peer.py files FOLDER WORK        the files to check, one path a line, mutated ones among them
    einvoice_rules_peer.py compare FOLDER VERDICTS  VERDICTS is the output of check_einvoices for those files
"""

import copy
import json
import random
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from decimal import Decimal
from pathlib import Path

from einvoice_rules import SETS

UNIT_TEST = "{http://difi.no/xsd/vefa/validator/1.0}"
REPORT = "{http://purl.oclc.org/dsdl/svrl}"
MUTATED, SEED = 1500, 7
VALUES = ["", "abc", "0", "-1", "1.234", "99999999999.999", "DE", "XX", "EUR", "S", "AE", "E", "Z", "O", "K", "G",
          "VAT", "2026-02-30", "20260101", " 380 ", "381", "30", "58", "59", "true", "false", "1e3", "\n", "NO", "IT",
          "DK", "SE", "NL", "GR", "0088", "0192", "0184", "0208", "9907", "0007", "0151"]


def unit_tests(folder: Path):
    """Documents of the official unit tests with the rules that each must break, and must not."""
    paths = [*folder.glob("eInvoicing-EN16931/test/*/*.xml"), *folder.glob("peppol-bis-invoice-3/rules/unit-*/*.xml")]
    for path in sorted(paths):
        root = ET.parse(path).getroot()
        for number, test in enumerate(root.findall(f"{UNIT_TEST}test")):
            stated = test.find(f"{UNIT_TEST}assert")
            documents = [it for it in test if it.tag != f"{UNIT_TEST}assert"]
            if documents:
                stated = [] if stated is None else list(stated)
                breaks = [it.text.strip() for it in stated if it.tag[len(UNIT_TEST):] in ("error", "warning", "fatal")]
                keeps = [it.text.strip() for it in stated if it.tag == f"{UNIT_TEST}success"]
                yield f"{path.parent.name}-{path.stem}-{number}", path, documents[0], breaks, keeps


def whole_files(folder: Path):
    for pattern in ["xrechnung-testsuite/src/test/**/*.xml", "peppol-bis-invoice-3/rules/examples/*.xml",
                    "eInvoicing-EN16931/test/testfiles/*.xml", "eInvoicing-EN16931/*/examples/*.xml",
                    "xrechnung-schematron/test/**/*.xml"]:
        yield from sorted(folder.glob(pattern))


def mutate(root: ET.Element, chance: random.Random) -> None:
    parents = {child: parent for parent in root.iter() for child in parent}
    element = chance.choice(list(parents))
    kind = chance.randrange(6)
    if kind == 0:
        parents[element].remove(element)
    elif kind == 1:
        parents[element].append(copy.deepcopy(element))
    elif kind == 2:
        chance.choice([it for it in root.iter() if len(it) == 0]).text = chance.choice(VALUES)
    elif kind == 3:
        numbers = [it for it in root.iter() if it.text and "." in it.text and it.text.strip().replace(".", "", 1).isdigit()]
        if numbers:
            number = chance.choice(numbers)
            number.text = str(Decimal(number.text.strip()) + Decimal(chance.choice(["0.01", "-0.01", "0.02", "1"])))
    elif kind == 4:
        named = [it for it in root.iter() if it.attrib]
        if named:
            attributes = chance.choice(named).attrib
            attributes[chance.choice(list(attributes))] = chance.choice(VALUES[1:])
    else:
        other = chance.choice(list(parents))
        element.text, other.text = other.text, element.text


def list_files(folder: Path, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    for name, _, document, _, _ in unit_tests(folder):
        ET.ElementTree(document).write(work / f"{name}.xml", encoding="utf-8", xml_declaration=True)
        print(work / f"{name}.xml")
    paths = list(whole_files(folder))
    print(*paths, sep="\n")
    chance = random.Random(SEED)
    for number in range(MUTATED):
        tree = ET.parse(chance.choice(paths))
        for _ in range(chance.randint(1, 4)):
            mutate(tree.getroot(), chance)
        tree.write(work / f"mutated-{number}.xml", encoding="utf-8", xml_declaration=True)
        print(work / f"mutated-{number}.xml")


def stylesheets(folder: Path, processor) -> dict:
    """The official stylesheets of EN 16931; those of the other sets as SchXslt makes them."""
    pipeline = str(folder / "schxslt/core/src/main/resources/xslt/2.0/pipeline-for-svrl.xsl")
    make = processor.compile_stylesheet(stylesheet_file=pipeline)
    compiled = {}
    for name, version, source, _, _ in SETS:
        if name.startswith("EN"):
            made = source.replace("schematron/preprocessed/", "xslt/").replace("-preprocessed.sch", ".xslt")
            compiled[f"{name} {version}"] = processor.compile_stylesheet(stylesheet_file=str(folder / made))
        else:
            text = make.transform_to_string(source_file=str(folder / source))
            compiled[f"{name} {version}"] = processor.compile_stylesheet(stylesheet_text=text)
    return compiled


def compare(folder: Path, verdicts: Path) -> int:
    import saxonche  # Not needed to list the files.

    saxon = saxonche.PySaxonProcessor(license=False)
    compiled = stylesheets(folder, saxon.new_xslt30_processor())
    counts, broken = Counter(), {}
    for line in verdicts.read_text().splitlines():
        verdict = json.loads(line)
        if "sets" not in verdict:
            continue
        counts["files"] += 1
        path = verdict["file"]
        broken[Path(path).stem] = {it["rule"] for found in verdict["sets"].values() for it in found["findings"]}
        is_cii = ET.parse(path).getroot().tag.endswith("}CrossIndustryInvoice")
        for title, stylesheet in compiled.items():
            if ("CII" in title) != is_cii:
                continue
            counts["runs"] += 1
            found = verdict["sets"][title]
            own = Counter(it["rule"] for it in found["findings"])
            without_value = {it["rule"]: it["error"] for it in found["findings"] if it.get("error")}
            try:
                report = ET.fromstring(stylesheet.transform_to_string(source_file=path))
            except saxonche.PySaxonApiError:
                counts["runs that end with an error on both sides"] += bool(without_value)
                if not without_value:
                    print(f"{path} {title}: Saxon ends with an error")
                    counts["differences"] += 1
                continue
            marks = [f"{REPORT}failed-assert", f"{REPORT}successful-report"]
            peer = Counter(it.get("id", "") for it in report.iter() if it.tag in marks)
            counts["findings"] += peer.total()
            if own != peer or without_value:
                print(f"{path} {title}: ours {own - peer}, Saxon {peer - own}, without a value {without_value}")
                counts["differences"] += 1
    for name, path, _, breaks, keeps in unit_tests(folder):
        rules = broken.get(name, set())
        wrong = [it for it in breaks if it not in rules] + [it for it in keeps if it in rules]
        counts["statements of unit tests"] += len(breaks) + len(keeps)
        counts["statements that do not hold"] += len(wrong)
        if wrong:
            print(f"{path}: {name}: {wrong}")
    print(json.dumps(counts))
    return int(counts["differences"] > 0 or counts["statements that do not hold"] > 0)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("files", "compare"):
        sys.exit(__doc__)
    action = list_files if sys.argv[1] == "files" else compare
    sys.exit(action(Path(sys.argv[2]), Path(sys.argv[3])))
