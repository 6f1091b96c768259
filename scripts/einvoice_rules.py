#!/usr/bin/env python3
"""Makes a rules file for docmill of the official Schematron sources, pinned by hash.

    scripts/einvoice_rules.py FOLDER OUT.json

FOLDER holds the repositories as unpacked: eInvoicing-EN16931 (tag validation-1.3.16, EUPL-1.2),
xrechnung-schematron (Apache-2.0), peppol-bis-invoice-3 (2025-Q2; it carries no licence file), fnfempe-france-rfe
(the rules of FNFE-MPE for the French reform, EUPL). None of it is
part of this repository. No package of a registry carries them as sources, so that an image copies OUT.json
in. Exit code 1: a file is absent or another one than pinned.
"""

import hashlib
import json
import sys
from pathlib import Path

EN = "urn:cen.eu:en16931:2017"
PEPPOL = "urn:fdc:peppol.eu:2017:poacc:billing:3.0"
FRANCE = "a mode of invoicing of the French reform"
XRECHNUNG = "urn:xeinkauf.de:kosit:xrechnung_3.0"
CEN = "eInvoicing-EN16931"
BIS = "peppol-bis-invoice-3/rules/sch"
KOSIT = "xrechnung-schematron/src/validation/schematron"
REFORM = "fnfempe-france-rfe/FNFE_RFE_INVOICE"
COMMON = {"../common.sch": f"{KOSIT}/common.sch"}
# Name, version, source, specification that the rules are meant for, included files.
SETS = [
    ("EN 16931 UBL", "1.3.16", f"{CEN}/ubl/schematron/preprocessed/EN16931-UBL-validation-preprocessed.sch", EN, {}),
    ("EN 16931 CII", "1.3.16", f"{CEN}/cii/schematron/preprocessed/EN16931-CII-validation-preprocessed.sch", EN, {}),
    ("Peppol BIS Billing UBL", "3.0.19", f"{BIS}/PEPPOL-EN16931-UBL.sch", PEPPOL, {}),
    ("Peppol BIS Billing CII", "3.0.19", f"{BIS}/PEPPOL-EN16931-CII.sch", PEPPOL, {}),
    ("XRechnung UBL", "2.5.0+", f"{KOSIT}/ubl/XRechnung-UBL-validation.sch", XRECHNUNG, COMMON),
    ("XRechnung CII", "2.5.0+", f"{KOSIT}/cii/XRechnung-CII-validation.sch", XRECHNUNG, COMMON),
    ("France CTC UBL", "1.4.0", f"{REFORM}/UBL/EN16931/schematron/BR-FR-Flux2-Schematron-UBL.sch", FRANCE, {}),
    ("France CTC CII", "1.4.0", f"{REFORM}/CII/EN16931/schematron/BR-FR-Flux2-Schematron-CII.sch", FRANCE, {}),
]
PINS = {
    SETS[0][2]: "268d4f7a2688676695e6c69cba6fba69a6802604fee12cb544a6b30ff09555a3",
    SETS[1][2]: "54e0dc6d06cd7f17d268bb9696ff56f58d386ee28961c9bbef0a56718c400c89",
    SETS[2][2]: "2840f5158f7bbdbf3b3f5d2ea391b9ac9e649e1fdbba8502bd8c15ec52924f23",
    SETS[3][2]: "78dcef8d4a2d502e16affbb342f319aaea985da5b1154d529c8627fb628e7a89",
    SETS[4][2]: "0b2838a9dab49ccd7381ad7547cdcc3348a3d861ee27ddeb4065db05e679c4ef",
    SETS[5][2]: "4a29e3ecaa3719c273e4939d4dcc825754e6345a5db07a40bb64ed309dece146",
    SETS[6][2]: "a37c559b8c14678af02a3ca0d1beadaae6db71df7ad2f96420a15eaf05f7e0b9",
    SETS[7][2]: "5aa5f09db121a190cf59ad4c990a40da357c1584bc81dda1ae95894191dc967a",
    f"{KOSIT}/common.sch": "60b9bbc8d9e3c243fb2d2198aa9933ee5fd21ba871e829bfd905926b5aad3059",
}
UBL_ID = "(/*:Invoice | /*:CreditNote)/*:CustomizationID"
CII_ID = "/*:CrossIndustryInvoice/*:ExchangedDocumentContext/*:GuidelineSpecifiedDocumentContextParameter/*:ID"


# The mode of invoicing (BT-23), which only invoices of the French reform have: B1, S4, M8.
UBL_MODE = "(/*:Invoice | /*:CreditNote)/*:ProfileID"
CII_MODE = (
    "/*:CrossIndustryInvoice/*:ExchangedDocumentContext/*:BusinessProcessSpecifiedDocumentContextParameter/*:ID"
)


def condition(name: str, meant_for: str) -> str:
    """An expression on documents that the rules of a set are meant for."""
    is_cii = name.endswith("CII")
    if meant_for == FRANCE:
        mode = CII_MODE if is_cii else UBL_MODE
        return f"some $mode in {mode} satisfies matches(normalize-space($mode), '^[BSM][1-9]$')"
    # An extension that conforms to the standard alone may break its rules.
    extends = f" and not(starts-with($id, '{EN}#conformant#'))" if meant_for == EN else ""
    place = CII_ID if is_cii else UBL_ID
    return f"some $id in {place} satisfies (contains($id, '{meant_for}'){extends})"


def read_pinned(folder: Path, name: str) -> str:
    content = (folder / name).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != PINS[name]:
        sys.exit(f"{name}: sha256 is {found}, pinned is {PINS[name]}")
    return content.decode("utf-8-sig")


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    sets = []
    for name, version, source, meant_for, includes in SETS:
        sets.append({
            "name": name,
            "version": version,
            "applies": condition(name, meant_for),
            "schematron": read_pinned(folder, source),
            "includes": {address: read_pinned(folder, file) for address, file in includes.items()},
        })
    out.write_text(json.dumps({"format": 1, "sets": sets}, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
