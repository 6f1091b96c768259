//! An invoice and its parties as its XML names them: the address for answers to its sender.

use serde::{Deserialize, Serialize};

/// An identifier with the code of its scheme (ISO 6523 or EAS), if it names one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartyIdentifier {
    /// `0088`; `None`: none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// The identifier.
    pub id: String,
}

/// A party of an invoice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvoiceParty {
    /// BT-27 or BT-44.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Electronic address, BT-34 or BT-49.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<PartyIdentifier>,
    /// Legal registration, BT-30 or BT-47.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legal_id: Option<PartyIdentifier>,
}

/// A file within an invoice (BG-24). Its content is in the original alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddedFile {
    /// Name of the file, as the invoice has it; for display only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Media type that the invoice states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// BT-123.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its size, decoded.
    pub bytes: u64,
}

/// An invoice in UBL or CII, by which an answer names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvoiceReference {
    /// BT-1.
    pub number: String,
    /// BT-2, `YYYY-MM-DD`.
    pub issued: String,
    /// BT-3.
    pub type_code: String,
    /// The sender of the invoice.
    pub seller: InvoiceParty,
    /// Its receiver, who answers.
    pub buyer: InvoiceParty,
    /// Files within it, the first [`Self::MAX_EMBEDDED_FILES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub embedded_files: Vec<EmbeddedFile>,
}

impl InvoiceReference {
    /// Most bytes of a value.
    pub const MAX_VALUE_BYTES: usize = 1_000;
    /// Most files that are listed.
    pub const MAX_EMBEDDED_FILES: usize = 100;

    /// Whether all values are within the bounds: for one that another process read.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let own = [&self.number, &self.issued, &self.type_code];
        let files = self.embedded_files.iter();
        let of_files =
            files.flat_map(|it| it.name.iter().chain(&it.media_type).chain(&it.description));
        let parties = self.seller.values().chain(self.buyer.values());
        self.embedded_files.len() <= Self::MAX_EMBEDDED_FILES
            && own.into_iter().chain(parties).chain(of_files).all(|value| {
                value.len() <= Self::MAX_VALUE_BYTES && !value.chars().any(char::is_control)
            })
    }
}

impl InvoiceParty {
    fn values(&self) -> impl Iterator<Item = &String> {
        let identifiers = self.endpoint.iter().chain(&self.legal_id);
        let parts = identifiers.flat_map(|it| it.scheme.iter().chain([&it.id]));
        self.name.iter().chain(parts)
    }
}
