//! The values of an e-invoice as the data of a kind. The XML itself is read where documents are opened
//! (`docmill_formats::einvoice`).

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use docmill_core::model::{Extraction, ExtractionMethod, ModelUsage, StatedConfidence};
use docmill_formats::einvoice::{ParsedInvoiceXml, REQUIRED};
use docmill_gate::kinds::Kind;

/// The values of an e-invoice as data of `kind`. Fields that an e-invoice does not have stay null.
pub fn extract_einvoice(invoice: &ParsedInvoiceXml, kind: &Kind) -> Extraction {
    let data: Map<String, Value> = kind
        .fields()
        .map(|(name, _)| (name.to_owned(), invoice.field(kind.role_name(name))))
        .collect();
    let missing = data.iter().filter(|(_, value)| value.is_null());
    Extraction {
        reader: ExtractionMethod::Einvoice,
        model: None,
        kind: kind.name.clone(),
        missing_fields: missing.map(|(name, _)| name.clone()).collect(),
        successful: true,
        confidence: StatedConfidence::High,
        evidence: Vec::new(),
        certainties: Vec::new(),
        usage: ModelUsage::default(),
        data,
    }
}

/// Fills fields that an e-invoice lacks from its pages, with their evidence. Returns their names.
pub fn fill_absent_fields(extraction: &mut Extraction, pages: Extraction) -> Vec<String> {
    let mut filled = Vec::new();
    for (field, value) in pages.data {
        let absent = extraction.data.get_mut(&field).filter(|own| own.is_null());
        if let Some(own) = absent.filter(|_| !value.is_null()) {
            *own = value;
            filled.push(field);
        }
    }
    let evidence = pages.evidence.into_iter().filter(|one| {
        let field = one.field.split(['[', '.']).next().unwrap_or_default();
        filled.iter().any(|own| own == field)
    });
    extraction.evidence.extend(evidence);
    extraction.missing_fields.retain(|field| !filled.contains(field));
    filled
}

/// Whether documents of this kind are recognised by an e-invoice: a contract that carries one is
/// not.
pub fn kind_uses_einvoice(kind: &Kind) -> bool {
    REQUIRED.iter().all(|role| kind.has_field(kind.field_named(role)))
}
