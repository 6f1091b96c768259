//! The supplier of a document that comes to known companies: an own company is none.
//!
//! The rules reader is asked again for the supplier, on the pages without the words that are our own.
//! A model's values are taken back where they are ours; its word on the supplier's name stays, and the
//! gate says that it is wrong.

use serde_json::Value;

use super::rules::extract_by_rules;
use docmill_core::model::{Extraction, StatedConfidence, Transcript};
use docmill_gate::OwnCompanies;
use docmill_gate::kinds::{FieldRole, FieldRole as R, Kind};

/// Fields of one supplier: who reads one of the first three wrong may have all wrong.
const PARTY: [FieldRole; 3] = [R::SupplierName, R::SupplierAddress, R::SupplierVatId];

/// The account and its bank.
const ACCOUNT: [FieldRole; 2] = [R::Iban, R::Bic];

/// Reads a transcript by labels and layout, and no own company as the supplier.
pub fn extract_from_others(transcript: &Transcript, kind: &Kind, own: &OwnCompanies) -> Extraction {
    let mut read = extract_by_rules(transcript, kind);
    let wrong = roles_to_replace(&read, kind, own);
    if !wrong.is_empty() {
        let apart = extract_by_rules(&own.without_marks(transcript), kind);
        note_buyer(&mut read, kind, own);
        for role in wrong {
            replace_field(&mut read, &apart, kind, role, own);
        }
        if rank(apart.confidence) < rank(read.confidence) {
            read.confidence = apart.confidence;
        }
    }
    read
}

fn rank(confidence: StatedConfidence) -> u8 {
    match confidence {
        StatedConfidence::Low => 0,
        StatedConfidence::Medium => 1,
        StatedConfidence::High => 2,
    }
}

fn roles_to_replace(read: &Extraction, kind: &Kind, own: &OwnCompanies) -> Vec<FieldRole> {
    let is_own = |role: FieldRole| own.is_own_field(&read.data, kind, role);
    let party = match (is_own(R::SupplierName), is_own(R::SupplierVatId)) {
        (true, _) => PARTY.as_slice(),
        (false, true) => &[R::SupplierVatId],
        (false, false) => &[],
    };
    let account = if is_own(R::Iban) { ACCOUNT.as_slice() } else { &[] };
    party.iter().chain(account).copied().collect()
}

/// Puts the field of another reading in the place of this one's, with its certainty and evidence.
fn replace_field(
    read: &mut Extraction,
    apart: &Extraction,
    kind: &Kind,
    role: FieldRole,
    own: &OwnCompanies,
) {
    let field = kind.field_of(role);
    let Some(place) = read.data.get_mut(field) else { return };
    let found = apart.data.get(field).filter(|value| !own.is_own_value(role, value));
    *place = found.cloned().unwrap_or(Value::Null);
    read.certainties.retain(|one| one.field != field);
    read.certainties.extend(apart.certainties.iter().filter(|one| one.field == field).cloned());
    // Its lines are counted without those that were left out.
    read.evidence.retain(|one| one.field != field);
}

/// An own name or identifier in the supplier's place is the buyer's, if that is not known.
fn note_buyer(read: &mut Extraction, kind: &Kind, own: &OwnCompanies) {
    for (from, to) in [(R::SupplierName, R::BuyerName), (R::SupplierVatId, R::BuyerVatId)] {
        let value = read.data.get(kind.field_of(from)).cloned().unwrap_or(Value::Null);
        let place = read.data.get_mut(kind.field_of(to)).filter(|place| place.is_null());
        if let Some(place) = place.filter(|_| own.is_own_value(from, &value)) {
            *place = value;
        }
    }
}

/// Takes our own identifier and account back from the supplier: the identifier is the buyer's.
#[must_use]
pub fn release_own_values(mut read: Extraction, kind: &Kind, own: &OwnCompanies) -> Extraction {
    if own.is_empty() {
        return read;
    }
    note_buyer(&mut read, kind, own);
    let wrong = [R::SupplierVatId, R::Iban].into_iter();
    let wrong: Vec<FieldRole> =
        wrong.filter(|role| own.is_own_field(&read.data, kind, *role)).collect();
    for role in wrong {
        let bank = (role == R::Iban).then_some(R::Bic);
        for role in std::iter::once(role).chain(bank) {
            if let Some(place) = read.data.get_mut(kind.field_of(role)) {
                *place = Value::Null;
            }
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_core::model::{BoundingBox, OwnCompany, PageText, TextLine, TextWord};
    use docmill_gate::kinds::KindSet;

    fn own() -> OwnCompanies {
        OwnCompanies::new(&[OwnCompany {
            name: "Moebelhaus Rehna GmbH".to_owned(),
            vat_ids: vec!["DE129273398".to_owned()],
            accounts: vec!["DE89370400440532013000".to_owned()],
            addresses: vec!["Lindenweg 4, 19217 Rehna".to_owned()],
            ..OwnCompany::default()
        }])
    }

    /// A page of cells: each line's texts with their left edges.
    fn page(rows: &[&[(f32, &str)]]) -> Transcript {
        let mut lines = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let mut words = Vec::new();
            for (left, text) in *row {
                let mut x = *left;
                for word in text.split(' ') {
                    #[expect(clippy::cast_precision_loss, reason = "a few letters and lines")]
                    let (w, y) = (word.chars().count() as f32 * 5.0, 60.0 + at as f32 * 14.0);
                    let bounding_box = BoundingBox { x, y, w, h: 10.0 };
                    words.push(TextWord {
                        text: word.into(),
                        bounding_box,
                        confidence: 1.0,
                        unwitnessed: false,
                    });
                    x += w + 4.0;
                }
            }
            lines.push(TextLine { words });
        }
        let page = PageText::from_native(1, (595.0, 842.0), 1.0, lines);
        Transcript {
            format: Transcript::FORMAT,
            sha256: String::new(),
            provider: String::new(),
            pages: vec![page],
            quality: 1.0,
        }
    }

    /// The buyer stands at the head, the supplier is in the footer: read plainly it is the wrong one.
    fn misleading() -> Transcript {
        page(&[
            &[(40.0, "Moebelhaus Rehna GmbH")],
            &[(40.0, "Lindenweg 4")],
            &[(40.0, "19217 Rehna")],
            &[(40.0, "VAT ID: DE129273398")],
            &[(40.0, "INVOICE")],
            &[(40.0, "Invoice number: GH-2026-118"), (300.0, "Date: 2026-11-03")],
            &[(40.0, "Desk lamps"), (300.0, "4"), (360.0, "25.00"), (440.0, "100.00")],
            &[(40.0, "Total USD"), (440.0, "100.00")],
            &[(40.0, "Golden Harbour Trading Ltd")],
            &[(40.0, "18 Queen's Road Central, Hong Kong")],
        ])
    }

    #[test]
    fn the_rules_reader_takes_no_own_company_for_the_supplier() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let invoice = kinds.get("invoice").unwrap();
        let transcript = misleading();
        let plain = extract_by_rules(&transcript, invoice);
        assert_eq!(
            plain.data.get("supplier_name"),
            Some(&json!("Moebelhaus Rehna GmbH")),
            "the trap"
        );
        let read = extract_from_others(&transcript, invoice, &own());
        assert_eq!(read.data.get("supplier_name"), Some(&json!("Golden Harbour Trading Ltd")));
        assert_eq!(read.data.get("supplier_vat_id"), Some(&Value::Null));
        assert_eq!(read.data.get("buyer_vat_id"), Some(&json!("DE129273398")));
        assert_eq!(read.data.get("total"), plain.data.get("total"));
        let none = extract_from_others(&transcript, invoice, &OwnCompanies::default());
        assert_eq!(none.data, plain.data);
    }

    #[test]
    fn a_models_values_that_are_ours_go_to_the_buyer_or_nowhere() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let invoice = kinds.get("invoice").unwrap();
        let mut read = extract_by_rules(&misleading(), invoice);
        for (field, value) in [
            ("supplier_name", "Golden Harbour Trading Ltd"),
            ("supplier_vat_id", "DE 129 273 398"),
            ("iban", "DE89 3704 0044 0532 0130 00"),
            ("bic", "COBADEFFXXX"),
        ] {
            read.data.insert(field.to_owned(), json!(value));
        }
        read.data.insert("buyer_vat_id".to_owned(), Value::Null);
        let released = release_own_values(read.clone(), invoice, &own());
        let told = |field: &str| released.data.get(field).cloned().unwrap_or_default();
        assert_eq!(told("buyer_vat_id"), json!("DE 129 273 398"));
        for field in ["supplier_vat_id", "iban", "bic"] {
            assert_eq!(told(field), Value::Null, "{field}");
        }
        assert_eq!(told("supplier_name"), json!("Golden Harbour Trading Ltd"));
        assert_eq!(release_own_values(read.clone(), invoice, &OwnCompanies::default()), read);
    }
}
