//! The account guard over a ledger of fifty suppliers with ten invoices each. Twenty-five accounts are
//! swapped, ten change honestly. The figures are those of docs/explanation/accuracy.md.

use docmill_core::config::KindsConfig;
use docmill_core::model::{DocumentId, ExtractionMethod, ModelUsage, StatedConfidence};
use docmill_gate::kinds::KindSet;
use docmill_gate::{GateLookups, judge_extraction};
use docmill_ledger::supplier::LessonSource;
use serde_json::json;

use super::*;

const SUPPLIERS: usize = 50;
const INVOICES: usize = 10;
const TENANT: Option<&str> = Some("t");

/// A German IBAN with sound check digits.
fn account(seed: usize) -> String {
    let body = format!("{:018}", 370_400_440_000_000_000_u64 + seed as u64 * 7_919);
    let number = format!("{body}131400");
    let rest = number.bytes().fold(0_u64, |rest, digit| (rest * 10 + u64::from(digit - b'0')) % 97);
    format!("DE{:02}{body}", 98 - rest)
}

/// The invoice of a supplier; every third supplier prints no VAT id, every second spells its name anew.
fn invoice(supplier: usize, at: usize, iban: &str) -> Map<String, Value> {
    let form = if supplier.is_multiple_of(2) && at.is_multiple_of(2) { "GmbH" } else { "G.m.b.H." };
    let vat_id = (!supplier.is_multiple_of(3)).then(|| format!("DE{:09}", 200_000_000 + supplier));
    let data = json!({
        "supplier_name": format!("Supplier {supplier} {form}"), "supplier_vat_id": vat_id,
        "iban": iban, "currency": "EUR", "invoice_number": format!("R{supplier}-{:04}", 90 + at),
        "total": 100 + 37 * at,
    });
    data.as_object().unwrap().clone()
}

/// The supplier's own invoices whose account is a swindler's, or of which it is honestly another from
/// then on.
fn account_of(supplier: usize, at: usize) -> (String, bool) {
    let swapped = supplier < 25 && at == 2 + supplier % 8;
    let changed = (25..35).contains(&supplier) && at >= 3 + supplier % 5;
    match (swapped, changed) {
        // A third of the swindlers are suppliers themselves.
        (true, _) if supplier.is_multiple_of(3) => (account(supplier + 20), true),
        (true, _) => (account(9_000 + supplier), true),
        (_, true) => (account(5_000 + supplier), false),
        _ => (account(supplier), false),
    }
}

fn guard_reasons(
    kinds: &KindSet,
    data: Map<String, Value>,
    found: Vec<RememberedDocument>,
) -> bool {
    let kind = kinds.get("invoice").unwrap();
    let history = gather_history(kind, TENANT, &data, found);
    let day = time::macros::date!(2026 - 01 - 15);
    let lookups = GateLookups { history, ..GateLookups::on_day(day) };
    let extraction = docmill_core::model::Extraction {
        reader: ExtractionMethod::Einvoice,
        model: None,
        kind: "invoice".to_owned(),
        data,
        successful: true,
        confidence: StatedConfidence::High,
        missing_fields: Vec::new(),
        evidence: Vec::new(),
        certainties: Vec::new(),
        usage: ModelUsage::default(),
    };
    let transcript = Transcript {
        format: Transcript::FORMAT,
        sha256: String::new(),
        provider: String::new(),
        pages: Vec::new(),
        quality: 1.0,
    };
    let verdict = judge_extraction(&extraction, &transcript, kind, &lookups);
    let guards = [
        "account_changed",
        "account_of_other",
        "account_abroad",
        "currency_changed",
        "number_unusual",
        "amount_unusual",
    ];
    verdict.review_reasons().iter().any(|reason| guards.iter().any(|name| reason.starts_with(name)))
}

#[test]
fn every_swapped_account_is_found_and_hardly_an_honest_invoice_is_flagged() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let mut ledger: Vec<RememberedDocument> = Vec::new();
    let (mut found, mut changes, mut false_alarms) = (0, 0, Vec::new());
    for (at, supplier) in (0..INVOICES).flat_map(|at| (0..SUPPLIERS).map(move |it| (at, it))) {
        let (iban, is_swapped) = account_of(supplier, at);
        let data = invoice(supplier, at, &iban);
        let keys = lookup_keys(kind, TENANT, &data);
        let known = ledger.iter().filter(|it| it.keys.iter().any(|key| keys.contains(key)));
        let flagged = guard_reasons(&kinds, data.clone(), known.cloned().collect());
        let is_change = (25..35).contains(&supplier) && at == 3 + supplier % 5;
        match (is_swapped, is_change) {
            (true, _) => found += usize::from(flagged),
            (_, true) => changes += usize::from(flagged),
            _ if flagged => false_alarms.push((supplier, at)),
            _ => {}
        }
        // Swapped ones are rejected; all others are confirmed, by a person where flagged.
        if !is_swapped {
            let source = if flagged { LessonSource::Accepted } else { LessonSource::Exact };
            ledger.push(RememberedDocument {
                document_id: DocumentId::random().0,
                keys: lesson_of(kind, TENANT, &data).unwrap().keys,
                kind: kind.name.clone(),
                source,
                learned_at: OffsetDateTime::UNIX_EPOCH
                    + time::Duration::hours((at * SUPPLIERS + supplier) as i64),
                data,
                transcript: None,
            });
        }
    }
    assert_eq!((found, changes), (25, 10));
    assert!(false_alarms.len() <= SUPPLIERS * INVOICES / 100, "{false_alarms:?}");
}
