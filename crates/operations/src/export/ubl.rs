//! UBL of a document's data: fields by their roles, units by their codes, the buyer's address from
//! the tenant's own companies.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::OwnCompany;
use docmill_extract::einvoice::kind_uses_einvoice;
use docmill_formats::einvoice::write_ubl;
use docmill_formats::notation::party_name::name_key;
use docmill_gate::kinds::Kind;
use docmill_ledger::db::reports::ExportedDocument;

/// The kind of credit notes, as e-invoices are given it.
pub(super) const CREDIT_NOTE_KIND: &str = "credit_note";
/// UN/ECE Recommendation 20: mutually defined.
const OTHER_UNIT: &str = "ZZ";

/// Code by printed unit; built in, a test reads it.
static UNIT_CODES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let codes: BTreeMap<String, Vec<String>> =
        toml::from_str(include_str!("../../../../config/unit_codes.toml")).unwrap_or_default();
    codes
        .into_iter()
        .flat_map(|(code, words)| words.into_iter().map(move |word| (word, code.clone())))
        .collect()
});

/// Writes a document as UBL.
///
/// # Errors
/// `Rejected`: the kind is none of invoices, or the data lacks parts of the standard, by name.
pub(super) fn write(
    kind: &Kind,
    document: &ExportedDocument,
    own: &[OwnCompany],
) -> Result<String> {
    if !kind_uses_einvoice(kind) {
        return Err(refusal(format!("documents of kind {} are no invoices", kind.name)));
    }
    let mut data = role_data(kind, document);
    for line in data.get_mut("line_items").and_then(Value::as_array_mut).into_iter().flatten() {
        for cell in ["unit", "price_base_unit"] {
            if let Some(Value::String(unit)) = line.get_mut(cell) {
                *unit = unit_code(unit);
            }
        }
    }
    complete_buyer(&mut data, own);
    write_ubl(&data, kind.name == CREDIT_NOTE_KIND).map_err(|defects| refusal(defects.to_string()))
}

/// The data, its fields by the names of their roles.
pub(super) fn role_data(kind: &Kind, document: &ExportedDocument) -> Map<String, Value> {
    let fields = document.data.as_object().cloned().unwrap_or_default();
    let fields = fields.into_iter().map(|(name, value)| (kind.role_name(&name).to_owned(), value));
    fields.collect()
}

pub(super) fn refusal(text: String) -> Error {
    Error::new(Fault::Rejected, text)
}

/// A code of UN/ECE Recommendation 20 for a unit as it is printed. Codes with a digit come from
/// e-invoices and stay.
fn unit_code(unit: &str) -> String {
    let word = unit.trim().trim_end_matches('.').to_lowercase();
    if let Some(code) = UNIT_CODES.get(&word) {
        return code.clone();
    }
    let is_code = (2..=3).contains(&unit.len())
        && unit.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        && unit.bytes().any(|b| b.is_ascii_digit());
    if is_code { unit.to_owned() } else { OTHER_UNIT.to_owned() }
}

/// Fills VAT identifier and address of a buyer that is one of the tenant's own companies by name.
fn complete_buyer(data: &mut Map<String, Value>, own: &[OwnCompany]) {
    let name = data.get("buyer_name").and_then(Value::as_str).map(name_key).unwrap_or_default();
    let mut named = own.iter().filter(|company| {
        let names = std::iter::once(&company.name).chain(&company.other_names);
        !name.is_empty() && names.into_iter().any(|own| name_key(own) == name)
    });
    let (Some(company), None) = (named.next(), named.next()) else { return };
    for (field, values) in
        [("buyer_vat_id", &company.vat_ids), ("buyer_address", &company.addresses)]
    {
        // Of several it is not known which one is meant.
        if let (true, [value]) = (data.get(field).is_none_or(Value::is_null), values.as_slice()) {
            data.insert(field.to_owned(), value.as_str().into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;
    use serde_json::json;

    fn own(vat_ids: &[&str]) -> OwnCompany {
        OwnCompany {
            tenant: None,
            name: "Backhaus Nord GmbH".to_owned(),
            other_names: vec!["BHN".to_owned()],
            vat_ids: vat_ids.iter().map(|id| (*id).to_owned()).collect(),
            accounts: Vec::new(),
            addresses: vec!["Hafen 1, 20457 Hamburg, DE".to_owned()],
        }
    }

    fn printed() -> Value {
        json!({
            "supplier_name": "Mühle", "supplier_address": "Am Bach 3, 80331 München",
            "supplier_vat_id": "DE 123 456 789", "buyer_name": "BACKHAUS NORD GMBH",
            "buyer_vat_id": null, "invoice_number": "R-17", "invoice_date": "2026-11-02",
            "currency": "EUR", "subtotal": 20, "vat_amount": 3.8, "total": 23.8,
            "line_items": [{"description": "Mehl", "quantity": 2, "unit": "Stk.", "unit_price": 10,
                "tax_rate": 19, "amount": 20}],
        })
    }

    #[test]
    fn a_printed_invoice_to_an_own_company_is_written_with_that_companys_address() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        let document = sample(None, printed());
        let xml = write(kind, &document, &[own(&["DE811569869"])]).unwrap();
        for part in [
            "<cbc:CompanyID>DE811569869<",
            "<cbc:CityName>Hamburg<",
            "<cbc:IdentificationCode>DE<",
            "unitCode=\"H87\">2<",
            "<cbc:InvoiceTypeCode>380<",
        ] {
            assert!(xml.contains(part), "{part}\n{xml}");
        }
        for (companies, kind, problem) in [
            (vec![own(&[])], "invoice", ""),
            (vec![], "invoice", "BT-55"),
            (vec![own(&["DE811569869"]), own(&["DE811569869"])], "invoice", "BT-55"),
            (vec![own(&["DE811569869"])], "contract", "no invoices"),
        ] {
            let kind = kinds.get(kind).unwrap();
            let done = write(kind, &document, &companies).map_err(|error| error.to_string());
            let said = done.err().unwrap_or_default();
            assert!(said.contains(problem) && said.is_empty() == problem.is_empty(), "{said}");
        }
    }

    #[test]
    fn a_unit_is_a_code_of_the_list_however_it_is_printed() {
        assert!(UNIT_CODES.len() > 100);
        for (printed, code) in [
            ("Stk.", "H87"),
            ("STÜCK", "H87"),
            ("h", "HUR"),
            ("kg", "KGM"),
            ("m²", "MTK"),
            ("HUR", "HUR"),
            ("C62", "C62"),
            ("D97", "D97"),
            ("VPE", "ZZ"),
            ("Handvoll", "ZZ"),
        ] {
            assert_eq!(unit_code(printed), code, "{printed}");
        }
    }
}
