//! UN/CEFACT Cross Industry Invoice: `ZUGFeRD` 1.0 and its successors, whose elements differ in the
//! names of the aggregates but not in what they hold.

use roxmltree::Node;
use serde_json::Value;

use super::consistency::{StatedSums, note_indicator, note_repeated};
use super::element::{
    ValueReader, attribute_value, code_value, element_at, elements_below, first_element,
    flag_value, plain_text,
};
use super::fields::{
    InvoiceXmlFields, InvoiceXmlLine, PaymentAccounts, PaymentTerm, TaxRow, adjustment_value,
    cash_discount, parse_marked_discounts, party_names, settle_terms, vat_id_of_form,
    vat_id_of_scheme,
};

/// Namespace of CII, used since `ZUGFeRD` 2 and by Factur-X.
pub(super) const NAMESPACE: &str = "urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100";
/// Namespace of `ZUGFeRD` 1.0, an older form of CII.
pub(super) const ZUGFERD_1: &str = "urn:ferd:CrossIndustryDocument:invoice:1p0";

/// Fields with the parts that an invoice has once, and those of its trade, of a way to pay, of a term
/// and of a line.
const SINGLE: [(&str, &str); 2] =
    [("invoice_number", "ExchangedDocument"), ("total", "SupplyChainTradeTransaction")];
const SINGLE_OF_TRADE: [(&str, &str); 3] = [
    ("supplier_name", "ApplicableHeaderTradeAgreement"),
    ("delivery_date", "ApplicableHeaderTradeDelivery"),
    ("total", "ApplicableHeaderTradeSettlement"),
];
const SINGLE_OF_PAYMENT: [(&str, &str); 2] = [
    ("iban", "PayeePartyCreditorFinancialAccount"),
    ("iban", "PayeePartyCreditorFinancialAccount/IBANID"),
];
const SINGLE_OF_TERM: [(&str, &str); 1] = [("due_date", "DueDateDateTime")];
const SINGLE_OF_LINE: [(&str, &str); 5] = [
    ("line_items", "SpecifiedTradeProduct/Name"),
    ("line_items", "SpecifiedLineTradeAgreement/NetPriceProductTradePrice/ChargeAmount"),
    ("line_items", "SpecifiedLineTradeDelivery/BilledQuantity"),
    ("line_items", "SpecifiedLineTradeSettlement/ApplicableTradeTax/RateApplicablePercent"),
    (
        "line_items",
        "SpecifiedLineTradeSettlement/SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount",
    ),
];

/// The parts of the header.
struct CiiHeader<'a, 'i> {
    document: Option<Node<'a, 'i>>,
    agreement: Option<Node<'a, 'i>>,
    delivery: Option<Node<'a, 'i>>,
    settlement: Option<Node<'a, 'i>>,
}

pub(super) fn parse_cii(root: Node<'_, '_>, reader: &mut ValueReader) -> InvoiceXmlFields {
    let root = Some(root);
    let trade = first_element(
        root,
        &["SupplyChainTradeTransaction", "SpecifiedSupplyChainTradeTransaction"],
    );
    let header = CiiHeader {
        document: first_element(root, &["ExchangedDocument", "HeaderExchangedDocument"]),
        agreement: first_element(
            trade,
            &["ApplicableHeaderTradeAgreement", "ApplicableSupplyChainTradeAgreement"],
        ),
        delivery: first_element(
            trade,
            &["ApplicableHeaderTradeDelivery", "ApplicableSupplyChainTradeDelivery"],
        ),
        settlement: first_element(
            trade,
            &["ApplicableHeaderTradeSettlement", "ApplicableSupplyChainTradeSettlement"],
        ),
    };
    let mut fields = InvoiceXmlFields {
        currency: reader.currency(first_element(header.settlement, &["InvoiceCurrencyCode"])),
        ..InvoiceXmlFields::default()
    };
    header.read_document(&mut fields, reader);
    header.read_parties(&mut fields, reader);
    header.read_payment(&mut fields, reader);
    header.read_totals(&mut fields, reader);
    fields.lines = invoice_lines(trade, reader);
    let has_advance = first_element(header.settlement, &["SpecifiedAdvancePayment"]).is_some();
    if has_advance && fields.paid_amount.is_null() {
        reader.note("unread.paid_amount");
    }
    note_repeated(root, &SINGLE, reader);
    note_repeated(trade, &SINGLE_OF_TRADE, reader);
    header.note_repeated(reader);
    note_indicator("copy", header.document, "CopyIndicator/Indicator", reader);
    // ZUGFeRD 1.0 has it elsewhere, and samples alone set it there.
    let context = first_element(root, &["ExchangedDocumentContext"]);
    note_indicator("test", context, "TestIndicator/Indicator", reader);
    fields.check_type(false, reader);
    let names = ["LineTotalAmount", "AllowanceTotalAmount", "ChargeTotalAmount"];
    fields.check_sums(&StatedSums::read(header.sums(), names, reader), reader);
    fields
}

impl<'a, 'i: 'a> CiiHeader<'a, 'i> {
    fn read_document(&self, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
        fields.document_type = code_value(first_element(self.document, &["TypeCode"]));
        fields.number = reader.text(first_element(self.document, &["ID"]));
        let issued = ["IssueDateTime/DateTimeString", "IssueDateTime/DateTime", "IssueDateTime"];
        fields.date = reader.day("invoice_date", first_element(self.document, &issued));
        let order =
            ["BuyerOrderReferencedDocument/IssuerAssignedID", "BuyerOrderReferencedDocument/ID"];
        fields.order_number = reader.text(first_element(self.agreement, &order));
        let delivered = [
            "ActualDeliverySupplyChainEvent/OccurrenceDateTime/DateTimeString",
            "ActualDeliverySupplyChainEvent/OccurrenceDateTime",
        ];
        fields.delivery_date =
            reader.day("delivery_date", first_element(self.delivery, &delivered));
        let period = first_element(self.settlement, &["BillingSpecifiedPeriod"]);
        fields.period = [
            reader.day("period_start", first_element(period, &["StartDateTime/DateTimeString"])),
            reader.day("period_end", first_element(period, &["EndDateTime/DateTimeString"])),
        ];
    }

    fn read_parties(&self, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
        let seller = first_element(self.agreement, &["SellerTradeParty"]);
        let buyer = first_element(self.agreement, &["BuyerTradeParty"]);
        (fields.supplier_name, fields.trading_name) = names_of(seller, reader);
        (fields.buyer_name, _) = names_of(buyer, reader);
        let address = first_element(seller, &["PostalTradeAddress"]);
        fields.supplier_address = reader.address(
            &["LineOne", "LineTwo", "LineThree"].map(|name| [first_element(address, &[name])]),
            ["PostcodeCode", "CityName", "CountryID"].map(|name| first_element(address, &[name])),
        );
        fields.supplier_vat_id = vat_id("supplier_vat_id", seller, reader);
        fields.buyer_vat_id = vat_id("buyer_vat_id", buyer, reader);
        fields.payee_name = reader.text(first_element(self.settlement, &["PayeeTradeParty/Name"]));
    }

    fn read_payment(&self, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
        let settlement = self.settlement;
        fields.payment_terms = reader
            .joined_text(elements_below(settlement, "SpecifiedTradePaymentTerms/Description"));
        fields.cash_discounts = parse_marked_discounts(reader, &fields.payment_terms);
        let path = "SpecifiedTradePaymentTerms/ApplicableTradePaymentDiscountTerms";
        for discount in elements_below(settlement, path) {
            let percent = element_at(discount, "CalculationPercent");
            let percent = reader.number("cash_discounts", percent);
            let period = element_at(discount, "BasisPeriodMeasure");
            let in_days = attribute_value(period, "unitCode").as_str() == Some("DAY");
            let days = reader.number("cash_discounts", period.filter(|_| in_days));
            fields.cash_discounts.extend(cash_discount(percent, days));
        }
        let terms = elements_below(settlement, "SpecifiedTradePaymentTerms").into_iter();
        let terms = terms.map(|term| payment_term(term, reader)).collect();
        (fields.due_date, fields.instalments) = settle_terms(terms);
        fields.payment_reference = reader.text(first_element(settlement, &["PaymentReference"]));
        let mut accounts = PaymentAccounts::default();
        for means in elements_below(settlement, "SpecifiedTradeSettlementPaymentMeans") {
            note_repeated(Some(means), &SINGLE_OF_PAYMENT, reader);
            let bank = element_at(means, "PayeeSpecifiedCreditorFinancialInstitution/BICID");
            for name in ["IBANID", "ProprietaryID"] {
                let path = format!("PayeePartyCreditorFinancialAccount/{name}");
                let account = element_at(means, &path).and_then(|node| plain_text(Some(node)));
                accounts.add(account.into(), reader.text(bank));
            }
        }
        fields.accounts = accounts;
    }

    fn sums(&self) -> Option<Node<'a, 'i>> {
        first_element(
            self.settlement,
            &[
                "SpecifiedTradeSettlementHeaderMonetarySummation",
                "SpecifiedTradeSettlementMonetarySummation",
            ],
        )
    }

    /// Notes what is stated several times of the elements that an invoice has once.
    fn note_repeated(&self, reader: &mut ValueReader) {
        let document = [
            ("invoice_number", "ID"),
            ("document_type", "TypeCode"),
            ("invoice_date", "IssueDateTime"),
        ];
        note_repeated(self.document, &document, reader);
        let parties = [
            ("supplier_name", "SellerTradeParty"),
            ("supplier_name", "SellerTradeParty/Name"),
            ("supplier_address", "SellerTradeParty/PostalTradeAddress"),
            ("buyer_name", "BuyerTradeParty"),
            ("buyer_name", "BuyerTradeParty/Name"),
            ("order_number", "BuyerOrderReferencedDocument"),
        ];
        note_repeated(self.agreement, &parties, reader);
        let settlement = [
            ("currency", "InvoiceCurrencyCode"),
            ("payee_name", "PayeeTradeParty"),
            ("payment_reference", "PaymentReference"),
            ("total", "SpecifiedTradeSettlementHeaderMonetarySummation"),
        ];
        note_repeated(self.settlement, &settlement, reader);
    }

    fn read_totals(&self, fields: &mut InvoiceXmlFields, reader: &mut ValueReader) {
        let settlement = self.settlement;
        let sums = self.sums();
        let currency = fields.currency.clone();
        for (field, path, value) in [
            ("subtotal", "TaxBasisTotalAmount", &mut fields.subtotal),
            ("vat_amount", "TaxTotalAmount", &mut fields.vat_amount),
            ("total", "GrandTotalAmount", &mut fields.total),
            ("paid_amount", "TotalPrepaidAmount", &mut fields.paid_amount),
            ("rounding_amount", "RoundingAmount", &mut fields.rounding_amount),
            ("amount_due", "DuePayableAmount", &mut fields.amount_due),
        ] {
            *value = reader.amount(field, &elements_below(sums, path), &currency);
        }
        for tax in elements_below(settlement, "ApplicableTradeTax") {
            let row = TaxRow {
                rate: reader.number("taxes.rate", first_element(Some(tax), &RATES)),
                base: reader.number("taxes.base", element_at(tax, "BasisAmount")),
                amount: reader.number("taxes.amount", element_at(tax, "CalculatedAmount")),
                category: code_value(element_at(tax, "CategoryCode")),
                exemption_reason: reader.first_text(
                    ["ExemptionReason", "ExemptionReasonCode"].map(|path| element_at(tax, path)),
                ),
            };
            fields.taxes.push(row.into_value());
        }
        read_adjustments(settlement, fields, reader);
    }
}

fn names_of(party: Option<Node<'_, '_>>, reader: &mut ValueReader) -> (Value, Value) {
    let trading = ["SpecifiedLegalOrganization/TradingBusinessName"];
    let registered = reader.text(first_element(party, &["Name"]));
    party_names(registered, reader.text(first_element(party, &trading)))
}

/// The tax registration of a VAT scheme, then one that has none and the form of a VAT identifier,
/// then other identifiers of a VAT scheme.
fn vat_id(field: &str, party: Option<Node<'_, '_>>, reader: &mut ValueReader) -> Value {
    let registrations = elements_below(party, "SpecifiedTaxRegistration/ID");
    let by_scheme = |id: &Node<'_, '_>| vat_id_of_scheme(plain_text(Some(*id)), scheme_of(*id));
    let bare = registrations.iter().filter(|id| scheme_of(**id).is_none());
    let others =
        ["GlobalID", "ID", "SpecifiedLegalOrganization/ID", "URIUniversalCommunication/URIID"];
    let others = others.into_iter().flat_map(|path| elements_below(party, path));
    let found = reader.only_id(field, registrations.iter().filter_map(by_scheme));
    let found =
        found.or_else(|| bare.into_iter().find_map(|id| vat_id_of_form(plain_text(Some(*id)))));
    found.or_else(|| others.into_iter().find_map(|id| by_scheme(&id))).into()
}

fn scheme_of<'a>(id: Node<'a, '_>) -> Option<&'a str> {
    id.attribute("schemeID").filter(|scheme| !scheme.trim().is_empty())
}

fn payment_term(term: Node<'_, '_>, reader: &mut ValueReader) -> PaymentTerm {
    note_repeated(Some(term), &SINGLE_OF_TERM, reader);
    let day = ["DueDateDateTime/DateTimeString", "DueDateDateTime/DateTime", "DueDateDateTime"];
    let description = plain_text(element_at(term, "Description")).unwrap_or_default();
    let is_discount = element_at(term, "ApplicableTradePaymentDiscountTerms").is_some()
        || PaymentTerm::describes_discount(&description);
    let amount = reader.number("instalments.amount", element_at(term, "PartialPaymentAmount"));
    PaymentTerm {
        day: reader.day("due_date", first_element(Some(term), &day)),
        // An instalment is due on its date even if it has a discount.
        has_discount: is_discount && amount.is_null(),
        amount,
    }
}

/// The rate of a tax: `ZUGFeRD` 1.0 has another name for it.
const RATES: [&str; 2] = ["RateApplicablePercent", "ApplicablePercent"];

/// Allowances and charges of the whole document. One that is neither is left out and noted.
fn read_adjustments(
    settlement: Option<Node<'_, '_>>,
    fields: &mut InvoiceXmlFields,
    reader: &mut ValueReader,
) {
    let rates = RATES.map(|name| format!("CategoryTradeTax/{name}"));
    let [rate, rate_1] = &rates;
    for part in elements_below(settlement, "SpecifiedTradeAllowanceCharge") {
        let one = Some(part);
        let indicator = ["ChargeIndicator/Indicator", "ChargeIndicator"];
        let list = match flag_value(first_element(one, &indicator)) {
            Some(true) => &mut fields.charges,
            Some(false) => &mut fields.allowances,
            None => {
                reader.note("unread.allowances");
                continue;
            }
        };
        list.push(adjustment_value(
            reader.first_text(["Reason", "ReasonCode"].map(|path| element_at(part, path))),
            reader.number("allowances.tax_rate", first_element(one, &[rate, rate_1])),
            reader.number("allowances.amount", first_element(one, &["ActualAmount"])),
        ));
    }
    let rates = RATES.map(|name| format!("AppliedTradeTax/{name}"));
    let [rate, rate_1] = &rates;
    for part in elements_below(settlement, "SpecifiedLogisticsServiceCharge") {
        let one = Some(part);
        fields.charges.push(adjustment_value(
            reader.text(first_element(one, &["Description"])),
            reader.number("charges.tax_rate", first_element(one, &[rate, rate_1])),
            reader.number("charges.amount", first_element(one, &["AppliedAmount"])),
        ));
    }
}

fn invoice_lines(trade: Option<Node<'_, '_>>, reader: &mut ValueReader) -> Vec<Value> {
    let items = elements_below(trade, "IncludedSupplyChainTradeLineItem").into_iter();
    items.filter_map(|item| invoice_line(item, reader)).collect()
}

/// One line; none for a subtotal or a remark among the lines.
fn invoice_line(item: Node<'_, '_>, reader: &mut ValueReader) -> Option<Value> {
    let item = Some(item);
    let status = first_element(item, &["AssociatedDocumentLineDocument/LineStatusReasonCode"]);
    if matches!(plain_text(status).as_deref(), Some("GROUP" | "INFORMATION")) {
        return None;
    }
    note_repeated(item, &SINGLE_OF_LINE, reader);
    let product = first_element(item, &["SpecifiedTradeProduct"]);
    let agreement =
        first_element(item, &["SpecifiedLineTradeAgreement", "SpecifiedSupplyChainTradeAgreement"]);
    let delivery =
        first_element(item, &["SpecifiedLineTradeDelivery", "SpecifiedSupplyChainTradeDelivery"]);
    let settlement = first_element(
        item,
        &["SpecifiedLineTradeSettlement", "SpecifiedSupplyChainTradeSettlement"],
    );
    let amount = first_element(
        settlement,
        &[
            "SpecifiedTradeSettlementLineMonetarySummation/LineTotalAmount",
            "SpecifiedTradeSettlementMonetarySummation/LineTotalAmount",
        ],
    );
    let billed = first_element(delivery, &["BilledQuantity"]);
    // Of the net price; some state it at the gross price alone.
    let base = first_element(
        agreement,
        &["NetPriceProductTradePrice/BasisQuantity", "GrossPriceProductTradePrice/BasisQuantity"],
    );
    let rates = RATES.map(|name| format!("ApplicableTradeTax/{name}"));
    let [rate, rate_1] = &rates;
    let named = |path: &'static str| first_element(product, &[path]);
    let price = first_element(agreement, &["NetPriceProductTradePrice/ChargeAmount"]);
    let line = InvoiceXmlLine {
        description: reader.first_text(["Name", "Description"].map(named)),
        article_number: reader.first_text(["SellerAssignedID", "GlobalID"].map(named)),
        unit: attribute_value(billed, "unitCode"),
        quantity: reader.number("line_items.quantity", billed),
        price: reader.number("line_items.unit_price", price),
        price_base: reader.number("line_items.price_base_quantity", base),
        price_base_unit: attribute_value(base, "unitCode"),
        tax_rate: reader.number("line_items.tax_rate", first_element(settlement, &[rate, rate_1])),
        amount: reader.number("line_items.amount", amount),
        is_adjusted: first_element(settlement, &["SpecifiedTradeAllowanceCharge"]).is_some(),
    };
    // ZUGFeRD 1.0 has lines that hold nothing but a note.
    let is_note =
        line.description.is_null() && plain_text(billed).is_none() && plain_text(amount).is_none();
    (!is_note).then(|| line.into_value(reader))
}
