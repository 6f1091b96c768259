"""A second reading of UBL and CII by the business terms of EN 16931, compared with docmill's.

Written from the syntax bindings of the standard (CEN/TS 16931-3-2 and -3-3), not from the program. Only values
that the standard defines are compared; a value that this reading does not find is not.
usage: einvoice_reading.py PROGRAM DIR
"""

import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ET
from decimal import Decimal, InvalidOperation

UBL = "urn:oasis:names:specification:ubl:schema:xsd:"
CII = "urn:un:unece:uncefact:data:standard:"
SPACES = {
    "cac": UBL + "CommonAggregateComponents-2",
    "cbc": UBL + "CommonBasicComponents-2",
    "rsm": CII + "CrossIndustryInvoice:100",
    "ram": CII + "ReusableAggregateBusinessInformationEntity:100",
    "udt": CII + "UnqualifiedDataType:100",
}
ROOTS = {
    f"{{{UBL}Invoice-2}}Invoice": "ubl",
    f"{{{UBL}CreditNote-2}}CreditNote": "ubl",
    f"{{{CII}CrossIndustryInvoice:100}}CrossIndustryInvoice": "cii",
}
# Business term: field of the program, path in UBL, path in CII (below the root; `|` separates alternatives).
AGREEMENT = "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeAgreement/"
SETTLEMENT = "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeSettlement/"
DELIVERY = "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeDelivery/"
SUMS = SETTLEMENT + "ram:SpecifiedTradeSettlementHeaderMonetarySummation/"
SELLER = "cac:AccountingSupplierParty/cac:Party/"
TOTAL = "cac:LegalMonetaryTotal/"
TEXTS = {
    "BT-1": ("invoice_number", "cbc:ID", "rsm:ExchangedDocument/ram:ID"),
    "BT-3": ("document_type", "cbc:InvoiceTypeCode|cbc:CreditNoteTypeCode", "rsm:ExchangedDocument/ram:TypeCode"),
    "BT-5": ("currency", "cbc:DocumentCurrencyCode", SETTLEMENT + "ram:InvoiceCurrencyCode"),
    "BT-13": (
        "order_number",
        "cac:OrderReference/cbc:ID",
        AGREEMENT + "ram:BuyerOrderReferencedDocument/ram:IssuerAssignedID",
    ),
    "BT-27": (
        "supplier_name",
        SELLER + "cac:PartyLegalEntity/cbc:RegistrationName",
        AGREEMENT + "ram:SellerTradeParty/ram:Name",
    ),
    "BT-44": (
        "buyer_name",
        "cac:AccountingCustomerParty/cac:Party/cac:PartyLegalEntity/cbc:RegistrationName",
        AGREEMENT + "ram:BuyerTradeParty/ram:Name",
    ),
    "BT-83": ("payment_reference", "cac:PaymentMeans/cbc:PaymentID", SETTLEMENT + "ram:PaymentReference"),
}
DAYS = {
    "BT-2": ("invoice_date", "cbc:IssueDate", "rsm:ExchangedDocument/ram:IssueDateTime/udt:DateTimeString"),
    "BT-72": (
        "delivery_date",
        "cac:Delivery/cbc:ActualDeliveryDate",
        DELIVERY + "ram:ActualDeliverySupplyChainEvent/ram:OccurrenceDateTime/udt:DateTimeString",
    ),
    "BT-73": (
        "period_start",
        "cac:InvoicePeriod/cbc:StartDate",
        SETTLEMENT + "ram:BillingSpecifiedPeriod/ram:StartDateTime/udt:DateTimeString",
    ),
    "BT-74": (
        "period_end",
        "cac:InvoicePeriod/cbc:EndDate",
        SETTLEMENT + "ram:BillingSpecifiedPeriod/ram:EndDateTime/udt:DateTimeString",
    ),
}
AMOUNTS = {
    "BT-109": ("subtotal", TOTAL + "cbc:TaxExclusiveAmount", SUMS + "ram:TaxBasisTotalAmount"),
    "BT-112": ("total", TOTAL + "cbc:TaxInclusiveAmount", SUMS + "ram:GrandTotalAmount"),
    "BT-113": ("paid_amount", TOTAL + "cbc:PrepaidAmount", SUMS + "ram:TotalPrepaidAmount"),
    "BT-114": ("rounding_amount", TOTAL + "cbc:PayableRoundingAmount", SUMS + "ram:RoundingAmount"),
    "BT-115": ("amount_due", TOTAL + "cbc:PayableAmount", SUMS + "ram:DuePayableAmount"),
}
LINES = {
    "ubl": {
        "lines": "cac:InvoiceLine|cac:CreditNoteLine",
        "BT-129": "cbc:InvoicedQuantity|cbc:CreditedQuantity",
        "BT-131": "cbc:LineExtensionAmount",
        "BT-146": "cac:Price/cbc:PriceAmount",
        "BT-149": "cac:Price/cbc:BaseQuantity",
        "BT-152": "cac:Item/cac:ClassifiedTaxCategory/cbc:Percent",
        "BT-153": "cac:Item/cbc:Name",
    },
    "cii": {
        "lines": "rsm:SupplyChainTradeTransaction/ram:IncludedSupplyChainTradeLineItem",
        "BT-129": "ram:SpecifiedLineTradeDelivery/ram:BilledQuantity",
        "BT-131": "ram:SpecifiedLineTradeSettlement/ram:SpecifiedTradeSettlementLineMonetarySummation/ram:LineTotalAmount",
        "BT-146": "ram:SpecifiedLineTradeAgreement/ram:NetPriceProductTradePrice/ram:ChargeAmount",
        "BT-149": "ram:SpecifiedLineTradeAgreement/ram:NetPriceProductTradePrice/ram:BasisQuantity",
        "BT-152": "ram:SpecifiedLineTradeSettlement/ram:ApplicableTradeTax/ram:RateApplicablePercent",
        "BT-153": "ram:SpecifiedTradeProduct/ram:Name",
    },
}
CELLS = {"BT-129": "quantity", "BT-131": "amount", "BT-152": "tax_rate"}


def find_all(node, paths):
    return [found for path in paths.split("|") for found in node.findall(path, SPACES)]


def text_of(node):
    return " ".join("".join(node.itertext()).split()) or None if node is not None else None


def first_text(node, paths):
    texts = (text_of(found) for found in find_all(node, paths))
    return next((text for text in texts if text), None)


def number(text):
    try:
        return Decimal(text) if text else None
    except InvalidOperation:
        return None


def day(text):
    if text and len(text) == 8 and text.isdigit():
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    return text[:10] if text else None


def is_group(line):
    status = first_text(line, "ram:AssociatedDocumentLineDocument/ram:LineStatusReasonCode")
    return status in ("GROUP", "INFORMATION")


def amount(root, paths, currency):
    found = [node for node in find_all(root, paths) if node.get("currencyID") in (None, currency)]
    return number(text_of(found[0])) if found else None


def vat_ids(root, syntax):
    if syntax == "cii":
        ids = find_all(root, AGREEMENT + "ram:SellerTradeParty/ram:SpecifiedTaxRegistration/ram:ID")
        return [text_of(one) for one in ids if (one.get("schemeID") or "").upper() in ("VA", "VAT")]
    schemes = find_all(root, SELLER + "cac:PartyTaxScheme")
    named = [one for one in schemes if (first_text(one, "cac:TaxScheme/cbc:ID") or "").upper() in ("VA", "VAT")]
    return [first_text(one, "cbc:CompanyID") for one in named]


def accounts(root, syntax):
    paths = "cac:PaymentMeans/cac:PayeeFinancialAccount/cbc:ID"
    if syntax == "cii":
        account = SETTLEMENT + "ram:SpecifiedTradeSettlementPaymentMeans/ram:PayeePartyCreditorFinancialAccount/"
        paths = f"{account}ram:IBANID|{account}ram:ProprietaryID"
    return {text_of(found).replace(" ", "").upper() for found in find_all(root, paths) if text_of(found)}


def is_alike(field, given, own):
    if isinstance(own, Decimal):
        return isinstance(given, (int, float)) and abs(Decimal(str(given)) - own) < Decimal("0.000001")
    if isinstance(own, str) and isinstance(given, str) and given.endswith("…"):
        return own.startswith(given[:-1])
    return given == own


def differences(root, syntax, data):
    """Pairs of business term and values that differ."""
    at = 1 if syntax == "ubl" else 2
    own = {term: (entry[0], first_text(root, entry[at])) for term, entry in TEXTS.items()}
    own |= {term: (entry[0], day(first_text(root, entry[at]))) for term, entry in DAYS.items()}
    currency = own["BT-5"][1]
    own |= {term: (entry[0], amount(root, entry[at], currency)) for term, entry in AMOUNTS.items()}
    own["BT-31"] = ("supplier_vat_id", next(iter(vat_ids(root, syntax)), None))
    for term, (field, value) in own.items():
        if value is not None and not is_alike(field, data.get(field), value):
            yield term, data.get(field), value
    read = {data.get("iban"), *(data.get("further_accounts") or [])} - {None}
    read = {account.replace(" ", "").upper() for account in read}
    if read != accounts(root, syntax):
        yield "BT-84", sorted(read), sorted(accounts(root, syntax))
    yield from line_differences(root, syntax, data.get("line_items") or [])


def line_differences(root, syntax, rows):
    paths = LINES[syntax]
    lines = [line for line in find_all(root, paths["lines"]) if not is_group(line)]
    if len(lines) != len(rows):
        yield "BG-25", len(rows), len(lines)
        return
    for line, row in zip(lines, rows):
        for term, cell in CELLS.items():
            value = number(first_text(line, paths[term]))
            if value is not None and not is_alike(cell, row.get(cell), value):
                yield term, row.get(cell), value
        name = first_text(line, paths["BT-153"])
        if name and not is_alike("description", row.get("description"), name):
            yield "BT-153", row.get("description"), name
        price = number(first_text(line, paths["BT-146"]))
        if price is not None:
            base = number(first_text(line, paths["BT-149"])) or Decimal(1)
            given = row.get("unit_price")
            given = None if given is None else Decimal(str(given)) / Decimal(str(row["price_base_quantity"] or 1))
            if given is None or abs(given - price / base) > Decimal("0.000001"):
                yield "BT-146", given, price / base


def read_with(program, path):
    run = subprocess.run([program, "process", str(path), "--json"], capture_output=True, text=True, check=False)
    try:
        return path, json.loads(run.stdout)
    except json.JSONDecodeError:
        return path, {"status": f"no result, exit {run.returncode}", "review_reasons": []}


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    trees = {}
    for path in sorted(folder.rglob("*.xml")):
        try:
            root = ET.parse(path).getroot()
        except (ET.ParseError, ValueError, LookupError):
            continue
        if root.tag in ROOTS:
            trees[path] = (root, ROOTS[root.tag])
    ends, reasons, wrong = collections.Counter(), collections.Counter(), collections.Counter()
    flagged = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for path, result in pool.map(lambda path: read_with(program, path), trees):
            ends[" ".join(str(result.get(key)) for key in ("status", "reason") if result.get(key))] += 1
            flagged += bool(result["review_reasons"])
            reasons.update({reason for reason in result["review_reasons"]})
            for reason in result["review_reasons"]:
                print(f"flag\t{path.relative_to(folder)}\t{reason}")
            if not result.get("data"):
                continue
            for term, given, own in differences(*trees[path], result["data"]):
                wrong[term] += 1
                print(f"difference\t{path.relative_to(folder)}\t{term}\t{given}\t{own}")
    print(f"{len(trees)} invoices: " + ", ".join(f"{count} {end}" for end, count in ends.most_common()))
    print(f"flagged: {flagged}; " + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()))
    print(f"differences: {sum(wrong.values())}; " + ", ".join(f"{count} {term}" for term, count in wrong.most_common()))
    sys.exit(any(end.startswith("no result") for end in ends) or bool(wrong))


main()
