//! Kinds whose fields have other names.

use std::path::Path;

use docmill_core::config::KindsConfig;
use docmill_extract::einvoice::{extract_einvoice, kind_uses_einvoice};
use docmill_extract::rules::extract_by_rules;
use docmill_formats::einvoice::parse_einvoice;
use docmill_gate::kinds::{Kind, KindSet};
use serde_json::{Map, Value, json};

use super::{corpus, transcript};

/// A folder with the kind `bill`: an invoice whose fields all have a prefix, by its roles.
fn write_renamed(folder: &Path, invoice: &Kind) {
    let renamed = |name: &str| format!("own_{name}");
    let names = || invoice.fields().map(|(name, _)| name);
    let properties: Map<String, Value> = invoice
        .schema
        .get("properties")
        .unwrap()
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, of)| (renamed(name), of.clone()))
        .collect();
    let required: Vec<String> = invoice.required_fields().into_iter().map(renamed).collect();
    let schema = json!({
        "type": "object", "additionalProperties": false,
        "required": &required, "properties": properties,
    });
    let roles: String = names().map(|name| format!("{name} = '{}'\n", renamed(name))).collect();
    let rules = format!(
        "[[rule]]\nname = 'required'\ncheck = 'required'\nfields = {required:?}\n\
         consequence = 'again'\n"
    );
    let folder = folder.join("bill");
    std::fs::create_dir(&folder).unwrap();
    for (file, text) in [
        ("kind.toml", format!("title = 'Bill'\n[roles]\n{roles}")),
        ("schema.json", schema.to_string()),
        ("labels.toml", "include = ['invoice']\n".to_owned()),
        ("rules.toml", rules),
        ("prompt.md", "Read the bill.".to_owned()),
    ] {
        std::fs::write(folder.join(file), text).unwrap();
    }
}

fn kinds_with_bill() -> (tempfile::TempDir, KindSet) {
    let root = tempfile::tempdir().unwrap();
    let invoice = KindSet::load(&KindsConfig::default()).unwrap();
    write_renamed(root.path(), invoice.get("invoice").unwrap());
    let kinds = KindsConfig { path: root.path().to_owned(), ..KindsConfig::default() };
    let kinds = KindSet::load(&kinds).unwrap();
    (root, kinds)
}

/// The data under the names of an invoice.
fn own_names(data: Map<String, Value>) -> Map<String, Value> {
    data.into_iter()
        .map(|(name, value)| (name.strip_prefix("own_").unwrap().to_owned(), value))
        .collect()
}

#[test]
fn a_kind_with_other_field_names_and_the_same_roles_is_read_alike() {
    let (_root, kinds) = kinds_with_bill();
    let (invoice, bill) = (kinds.get("invoice").unwrap(), kinds.get("bill").unwrap());
    let (mut read, mut filled) = (0, 0);
    for page in corpus().iter().filter(|page| page.value("expect").is_some()) {
        if page.value("kind") != Some("invoice") {
            continue;
        }
        let transcript = transcript(&page.pages);
        let expected = extract_by_rules(&transcript, invoice);
        let given = extract_by_rules(&transcript, bill);
        let certainties: Vec<(&str, f32)> = given
            .certainties
            .iter()
            .map(|one| (one.field.strip_prefix("own_").unwrap(), one.certainty))
            .collect();
        let known: Vec<(&str, f32)> =
            expected.certainties.iter().map(|one| (one.field.as_str(), one.certainty)).collect();
        assert_eq!(own_names(given.data), expected.data, "{:?}", page.path);
        assert_eq!(certainties, known, "{:?}", page.path);
        assert_eq!(
            (given.successful, given.confidence),
            (expected.successful, expected.confidence)
        );
        read += 1;
        filled += expected.data.values().filter(|value| !value.is_null()).count();
    }
    assert!(read > 100 && filled > 5 * read, "{read} pages, {filled} values");
}

const XML: &str = r#"<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2"
  xmlns:c="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"
  xmlns:b="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">
  <b:ID>RE-17</b:ID><b:IssueDate>2026-03-05</b:IssueDate>
  <b:DocumentCurrencyCode>EUR</b:DocumentCurrencyCode>
  <c:AccountingSupplierParty><c:Party><c:PartyLegalEntity>
    <b:RegistrationName>Paper Ltd</b:RegistrationName>
  </c:PartyLegalEntity></c:Party></c:AccountingSupplierParty>
  <c:LegalMonetaryTotal>
    <b:TaxInclusiveAmount currencyID="EUR">12.50</b:TaxInclusiveAmount>
  </c:LegalMonetaryTotal>
</Invoice>"#;

#[test]
fn the_values_of_an_einvoice_go_to_the_fields_of_their_roles() {
    let (_root, kinds) = kinds_with_bill();
    let (invoice, bill) = (kinds.get("invoice").unwrap(), kinds.get("bill").unwrap());
    let xml = parse_einvoice(XML.as_bytes()).unwrap();
    let given = extract_einvoice(&xml, bill);
    assert_eq!(
        (&given.data["own_total"], &given.data["own_invoice_number"]),
        (&json!(12.5), &json!("RE-17"))
    );
    assert_eq!(own_names(given.data), extract_einvoice(&xml, invoice).data);
    assert!(kind_uses_einvoice(bill) && !kind_uses_einvoice(kinds.get("contract").unwrap()));
}
