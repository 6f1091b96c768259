"""E-invoices for make_samples.py: the XML of an invoice in both syntaxes of EN 16931, and a PDF
with one attached. Of each syntax only what these invoices need; not checked against a schema."""

import re
from decimal import ROUND_HALF_UP, Decimal
from xml.sax.saxutils import escape

CII = "urn:un:unece:uncefact:data:standard:"
UBL = "urn:oasis:names:specification:ubl:schema:xsd:"


def cents(value):
    return Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)


def tag(name, content, **attributes):
    """An element; content that is no markup is escaped."""
    text = content if content.startswith("<") else escape(content)
    extra = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{extra}>{text}</{name}>"


def cii(invoice, net, taxes, gross):
    """Cross Industry Invoice, profile EN 16931, as Factur-X and ZUGFeRD 2 attach it."""
    facts, currency = invoice["xml"], invoice["xml"]["currency"]

    def day(date):
        compact = date.replace("-", "")
        return tag("udt:DateTimeString", compact, format="102")

    def line(number, what, quantity, price, rate):
        amount = str(cents(Decimal(quantity) * Decimal(price)))
        tax = tag("ram:TypeCode", "VAT") + tag("ram:CategoryCode", "S")
        tax += tag("ram:RateApplicablePercent", str(rate))
        total = tag("ram:LineTotalAmount", amount)
        return tag(
            "ram:IncludedSupplyChainTradeLineItem",
            tag("ram:AssociatedDocumentLineDocument", tag("ram:LineID", str(number)))
            + tag("ram:SpecifiedTradeProduct", tag("ram:Name", what))
            + tag("ram:SpecifiedLineTradeAgreement",
                  tag("ram:NetPriceProductTradePrice", tag("ram:ChargeAmount", price)))
            + tag("ram:SpecifiedLineTradeDelivery",
                  tag("ram:BilledQuantity", quantity, unitCode="C62"))
            + tag("ram:SpecifiedLineTradeSettlement",
                  tag("ram:ApplicableTradeTax", tax)
                  + tag("ram:SpecifiedTradeSettlementLineMonetarySummation", total)))

    street, postcode, city, country = facts["place"]
    place = tag("ram:PostcodeCode", postcode) + tag("ram:LineOne", street)
    place += tag("ram:CityName", city) + tag("ram:CountryID", country)
    vat = str(sum(tax for _, tax in taxes))
    seller = tag("ram:Name", invoice["supplier"]) + tag("ram:PostalTradeAddress", place)
    seller += tag("ram:SpecifiedTaxRegistration", tag("ram:ID", facts["vat_id"], schemeID="VA"))
    sums = tag("ram:LineTotalAmount", str(net)) + tag("ram:TaxBasisTotalAmount", str(net))
    sums += tag("ram:TaxTotalAmount", vat, currencyID=currency)
    sums += tag("ram:GrandTotalAmount", str(gross)) + tag("ram:DuePayableAmount", str(gross))
    lines = "".join(line(at, *one) for at, one in enumerate(invoice["lines"], 1))
    body = tag("rsm:ExchangedDocumentContext", tag(
        "ram:GuidelineSpecifiedDocumentContextParameter", tag("ram:ID", "urn:cen.eu:en16931:2017")))
    body += tag("rsm:ExchangedDocument", tag("ram:ID", invoice["facts"][0][1])
                + tag("ram:TypeCode", "380") + tag("ram:IssueDateTime", day(facts["date"])))
    body += tag("rsm:SupplyChainTradeTransaction", lines
                + tag("ram:ApplicableHeaderTradeAgreement",
                      tag("ram:SellerTradeParty", seller)
                      + tag("ram:BuyerTradeParty", tag("ram:Name", invoice["customer"][0])))
                + "<ram:ApplicableHeaderTradeDelivery/>"
                + tag("ram:ApplicableHeaderTradeSettlement",
                      tag("ram:InvoiceCurrencyCode", currency)
                      + tag("ram:SpecifiedTradePaymentTerms",
                            tag("ram:DueDateDateTime", day(facts["due"])))
                      + tag("ram:SpecifiedTradeSettlementHeaderMonetarySummation", sums)))
    spaces = {"xmlns:rsm": CII + "CrossIndustryInvoice:100",
              "xmlns:ram": CII + "ReusableAggregateBusinessInformationEntity:100",
              "xmlns:udt": CII + "UnqualifiedDataType:100"}
    whole = tag("rsm:CrossIndustryInvoice", body, **spaces)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'.encode()


def ubl(invoice, net, taxes, gross):
    """UBL 2.1, as Peppol and XRechnung send it."""
    facts, currency = invoice["xml"], invoice["xml"]["currency"]

    def amount(name, value):
        return tag(f"cbc:{name}", str(cents(value)), currencyID=currency)

    def line(number, what, quantity, price, _rate):
        return tag(
            "cac:InvoiceLine",
            tag("cbc:ID", str(number)) + tag("cbc:InvoicedQuantity", quantity, unitCode="C62")
            + amount("LineExtensionAmount", Decimal(quantity) * Decimal(price))
            + tag("cac:Item", tag("cbc:Name", what)) + tag("cac:Price", amount("PriceAmount", price)))

    street, postcode, city, country = facts["place"]
    place = tag("cbc:StreetName", street) + tag("cbc:CityName", city)
    place += tag("cbc:PostalZone", postcode)
    place += tag("cac:Country", tag("cbc:IdentificationCode", country))
    scheme = tag("cbc:CompanyID", facts["vat_id"]) + tag("cac:TaxScheme", tag("cbc:ID", "VAT"))
    seller = tag("cac:PartyName", tag("cbc:Name", invoice["supplier"]))
    seller += tag("cac:PostalAddress", place) + tag("cac:PartyTaxScheme", scheme)
    buyer = tag("cac:PartyName", tag("cbc:Name", invoice["customer"][0]))
    body = tag("cbc:CustomizationID", "urn:cen.eu:en16931:2017")
    body += tag("cbc:ID", invoice["facts"][0][1])
    body += tag("cbc:IssueDate", facts["date"]) + tag("cbc:DueDate", facts["due"])
    body += tag("cbc:InvoiceTypeCode", "380") + tag("cbc:DocumentCurrencyCode", currency)
    body += tag("cac:AccountingSupplierParty", tag("cac:Party", seller))
    body += tag("cac:AccountingCustomerParty", tag("cac:Party", buyer))
    body += tag("cac:TaxTotal", amount("TaxAmount", sum(tax for _, tax in taxes)))
    body += tag("cac:LegalMonetaryTotal", amount("LineExtensionAmount", net)
                + amount("TaxExclusiveAmount", net) + amount("TaxInclusiveAmount", gross)
                + amount("PayableAmount", gross))
    body += "".join(line(at, *one) for at, one in enumerate(invoice["lines"], 1))
    spaces = {"xmlns": UBL + "Invoice-2", "xmlns:cac": UBL + "CommonAggregateComponents-2",
              "xmlns:cbc": UBL + "CommonBasicComponents-2"}
    whole = tag("Invoice", body, **spaces)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'.encode()


def attached(pdf, name, content):
    """The PDF with a file attached, written behind it as an update (PDF 32000-1 §7.5.6)."""
    root = int(re.search(rb"/Root (\d+) 0 R", pdf).group(1))
    size = int(re.search(rb"/Size (\d+)", pdf).group(1))
    before = int(re.search(rb"startxref\s+(\d+)\s+%%EOF\s*$", pdf).group(1))
    catalog = re.search(rb"(?:^|[\r\n])%d 0 obj\s*<<(.*?)>>\s*endobj" % root, pdf, re.S).group(1)
    stream, file = size, size + 1
    objects = {
        stream: b"<< /Type /EmbeddedFile /Subtype /text#2Fxml /Length %d >>\nstream\n%s\nendstream"
        % (len(content), content),
        file: b"<< /Type /Filespec /AFRelationship /Alternative /F (%s) /UF (%s) "
        b"/EF << /F %d 0 R /UF %d 0 R >> >>" % (name, name, stream, stream),
        root: b"<<%s /AF [%d 0 R] /Names << /EmbeddedFiles << /Names [(%s) %d 0 R] >> >> >>"
        % (catalog, file, name, file),
    }
    out, table = bytearray(pdf), b"xref\n"
    for number, body in sorted(objects.items()):
        table += b"%d 1\n%010d 00000 n \n" % (number, len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    end = b"trailer\n<< /Size %d /Root %d 0 R /Prev %d >>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(out) + table + end % (size + 2, root, before, len(out))
