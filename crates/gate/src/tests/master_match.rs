//! Master data against data.

use super::*;
use docmill_core::model::{MasterHit, MasterHits, MasterMarkSort, MasterOrder};

fn hit(sort: MasterMarkSort, number: &str) -> MasterHit {
    MasterHit { sort, number: number.to_owned(), name: format!("Supplier {number}") }
}

fn order(supplier: Option<&str>, amount: &str, currency: &str) -> MasterOrder {
    MasterOrder {
        number: "4500".to_owned(),
        supplier: supplier.map(str::to_owned),
        amount: Some(amount.to_owned()),
        currency: Some(currency.to_owned()),
    }
}

fn matched(hits: &MasterHits) -> (Option<String>, Vec<String>) {
    let kind = KINDS.get("invoice").unwrap();
    let (found, findings) = match_master_data(&sound().data, kind, hits);
    let verdict = Verdict { findings, ..Verdict::default() };
    (found.supplier.map(|supplier| supplier.number), verdict.review_reasons())
}

#[test]
fn a_supplier_is_matched_by_its_surest_value_and_what_contradicts_it_is_flagged() {
    use MasterMarkSort::{Account, Name, VatId};
    for (hits, expected, reasons) in [
        (vec![], None, vec![]),
        (vec![hit(VatId, "A"), hit(Account, "A"), hit(Name, "A")], Some("A"), vec![]),
        (vec![hit(VatId, "A"), hit(Account, "B")], Some("A"), vec!["supplier_contradicted:iban"]),
        (vec![hit(VatId, "A"), hit(Name, "B")], Some("A"), vec![]),
        (
            vec![hit(Account, "A"), hit(Name, "B")],
            Some("A"),
            vec!["supplier_contradicted:supplier_name"],
        ),
        (vec![hit(Name, "A"), hit(Name, "B")], None, vec!["supplier_ambiguous:supplier_name"]),
        (vec![hit(VatId, "A"), hit(VatId, "B"), hit(Account, "B")], Some("B"), vec![]),
    ] {
        let hits = MasterHits { suppliers: hits, orders: vec![] };
        let (number, seen) = matched(&hits);
        assert_eq!(
            (number.as_deref(), seen),
            (expected, reasons.iter().map(|it| (*it).to_owned()).collect()),
            "{hits:?}"
        );
    }
}

#[test]
fn an_order_is_exceeded_if_net_and_gross_are_over_it_and_may_be_another_suppliers() {
    for (order, reasons) in [
        (order(Some("A"), "441.87", "EUR"), vec![]),
        (order(None, "393.0000", "EUR"), vec![]),
        (order(Some("A"), "392.99", "EUR"), vec!["order_exceeded:total"]),
        (order(Some("A"), "1000", "USD"), vec!["order_exceeded:total"]),
        (order(Some("B"), "1000", "EUR"), vec!["order_of_other_supplier:order_number"]),
    ] {
        let hits =
            MasterHits { suppliers: vec![hit(MasterMarkSort::VatId, "A")], orders: vec![order] };
        assert_eq!(matched(&hits).1, reasons, "{hits:?}");
    }
    let two = vec![order(Some("B"), "1", "EUR"), order(Some("A"), "1000", "EUR")];
    let hits = MasterHits { suppliers: vec![hit(MasterMarkSort::VatId, "A")], orders: two };
    assert_eq!(matched(&hits).1, Vec::<String>::new(), "of two the supplier's own");
}

#[test]
fn values_are_searched_folded_and_names_without_their_form() {
    let kind = KINDS.get("invoice").unwrap();
    let data = with(json!({"supplier_vat_id": "DE 123.456.789", "order_number": "PO 4500-1"})).data;
    let query = master_query(&data, kind);
    assert_eq!((query.vat_id.as_str(), query.name.as_str()), ("de123456789", "korkstein"));
    assert_eq!((query.order.as_str(), query.account.as_str()), ("po45001", ""));
}
