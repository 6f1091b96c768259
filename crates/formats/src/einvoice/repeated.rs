//! Elements repeated with different content in a national format or EDIFACT, although the schema
//! allows one: programs differ in which of them counts.
//!
//! Every element is single unless a list below names it as repeatable.

use std::collections::HashMap;

use roxmltree::Node;

use super::edifact::EdifactSegment;
use super::element::{ValueReader, is_of_family, whole_text};
use super::root::EinvoiceSyntax;

/// Repeatable elements of `KSeF`.
const KSEF: &str = "\
    Akapit BlokDanych DaneFaKorygowanej DaneKontaktowe DodatkowyOpis FaWiersz FakturaZaliczkowa \
    Informacje Kol MetaDane NowySrodekTransportu NrPartiiTowaru NrRB Obciazenia Odliczenia \
    Podmiot2K Podmiot3 RachunekBankowy RachunekBankowyFaktora RachunekWlasnyBanku Rejestry Suma \
    SKom TMetaDane Tabela TabelaMetaDane Tekst TerminPlatnosci Transport Umowy WKom WZ Wiersz \
    WysylkaPrzez ZaliczkaCzesciowa Zamowienia ZamowienieWiersz ZaplataCzesciowa";

/// Repeatable elements of `FatturaPA`.
const FATTURA_PA: &str = "\
    Allegati AltriDatiGestionali Causale CodiceArticolo DatiCassaPrevidenziale DatiContratto \
    DatiConvenzione DatiDDT DatiFattureCollegate DatiOrdineAcquisto DatiPagamento DatiRicezione \
    DatiRiepilogo DatiRitenuta DatiSAL DettaglioLinee DettaglioPagamento RiferimentoNumeroLinea \
    ScontoMaggiorazione";

/// Repeatable elements of Italy's simplified invoice.
const FATTURA_SEMPLIFICATA: &str = "Allegati DatiBeniServizi";

/// Repeatable elements of Facturae.
const FACTURAE: &str = "\
    AdministrativeCentre Attachment Charge DeliveryNote Discount Extensions Installment \
    InvoiceLine LegalReference PaymentOnAccount ReimbursableExpenses Subsidy Tax WithheldTax";

/// Repeatable elements of ebInterface.
const EB_INTERFACE: &str = "\
    AdditionalInformation AddressExtension AddressIdentifier ArticleNumber BelowTheLineItem \
    BeneficiaryAccount Classification ContactPerson Description Discount Email \
    FurtherIdentification ItemList ListLineItem OtherTax OtherVATableTax \
    OtherVATableTaxListLineItem Phone PrepaidAmount Reduction ReductionListLineItem \
    RelatedDocument SerialNumber ChargeNumber Size Color Surcharge SurchargeListLineItem TaxItem \
    VATItem Weight";

/// Field and its elements; a doubt about another element has that element's name.
const FIELDS: [(&str, &str); 9] = [
    ("invoice_date", "P_1 Data IssueDate InvoiceDate"),
    ("invoice_number", "P_2 Numero InvoiceNumber"),
    ("total", "P_15 ImportoTotaleDocumento InvoiceTotal InvoiceTotals TotalGrossAmount"),
    ("amount_due", "TotalExecutableAmount PayableAmount"),
    ("currency", "KodWaluty Divisa InvoiceCurrencyCode"),
    ("supplier_name", "Podmiot1 CedentePrestatore SellerParty Biller"),
    ("buyer_name", "Podmiot2 CessionarioCommittente BuyerParty InvoiceRecipient"),
    ("name", "Denominazione"),
    ("due_date", "PaymentConditions"),
];

/// Notes elements of a national format with a sibling of equal name and different text.
pub(super) fn note_repeated_elements(
    root: Node<'_, '_>,
    syntax: EinvoiceSyntax,
    reader: &mut ValueReader,
) {
    let repeatable = match syntax {
        EinvoiceSyntax::Ksef => KSEF,
        EinvoiceSyntax::FatturaPa => FATTURA_PA,
        EinvoiceSyntax::FatturaSemplificata => FATTURA_SEMPLIFICATA,
        EinvoiceSyntax::Facturae => FACTURAE,
        EinvoiceSyntax::EbInterface => EB_INTERFACE,
        _ => return,
    };
    let mut seen: HashMap<(usize, &str), Node<'_, '_>> = HashMap::new();
    let own = root.descendants().filter(|it| it.is_element() && is_of_family(*it, true));
    for node in own {
        let name = node.tag_name().name();
        let Some(parent) = node.parent_element().filter(|_| !has_word(repeatable, name)) else {
            continue;
        };
        match seen.get(&(parent.id().get_usize(), name)) {
            None => {
                seen.insert((parent.id().get_usize(), name), node);
            }
            Some(first) if whole_text(*first) != whole_text(node) => {
                reader.note(format!("several.{}", field_of(name)));
            }
            Some(_) => {}
        }
    }
}

/// Whether a word is one of a list, between blanks.
pub(super) fn has_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|own| own == word)
}

fn field_of(name: &str) -> String {
    let known = FIELDS.iter().find(|(_, elements)| has_word(elements, name));
    known.map_or_else(|| name.to_ascii_lowercase(), |(field, _)| (*field).to_owned())
}

/// Single segments of INVOIC groups, with code and field.
const SEGMENTS: [(&str, &str, &str); 16] = [
    ("BGM", "", "invoice_number"),
    ("DTM", "137", "invoice_date"),
    ("CUX", "2", "currency"),
    ("RFF", "VA", "vat_id"),
    ("RFF", "PQ", "payment_reference"),
    ("MOA", "203", "line_items"),
    ("MOA", "66", "line_items"),
    ("MOA", "79", "line_items"),
    ("MOA", "9", "amount_due"),
    ("MOA", "113", "paid_amount"),
    ("MOA", "124", "taxes"),
    ("MOA", "125", "taxes"),
    ("QTY", "47", "line_items"),
    ("PRI", "AAA", "line_items"),
    ("PRI", "INV", "line_items"),
    ("TAX", "VAT", "line_items"),
];

/// Notes repeated segments of a group whose content differs.
pub(super) fn note_repeated_segments(segments: &[EdifactSegment], reader: &mut ValueReader) {
    let mut seen: HashMap<(&str, &str), String> = HashMap::new();
    let (mut is_opening, mut is_summary, mut is_adjustment) = (true, false, false);
    for segment in segments {
        let tag = segment.tag.as_str();
        is_opening &= matches!(tag, "UNB" | "UNH" | "BGM" | "DTM");
        is_summary |= tag == "UNS";
        // Partners, lines, and the taxes of the summary begin groups of their own.
        if matches!(tag, "NAD" | "LIN" | "UNS") || is_summary && tag == "TAX" {
            seen.clear();
            is_adjustment = false;
        }
        is_adjustment |= tag == "ALC";
        let code = match tag {
            "BGM" => "",
            "TAX" => segment.get(1, 0),
            _ => segment.get(0, 0),
        };
        let is_other = tag == "DTM" && !is_opening || tag == "TAX" && is_adjustment;
        let known = SEGMENTS.iter().find(|(own, of, _)| *own == tag && *of == code && !is_other);
        let Some((_, _, field)) = known else { continue };
        let values = segment.values();
        if seen.get(&(tag, code)).is_some_and(|before| *before != values) {
            reader.note(format!("several.{field}"));
        }
        seen.insert((tag, code), values);
    }
}
