//! A supplier's identity, as its remembered documents are found again within one tenant.
//!
//! Keys are hashes of the tenant and one property, so that no key of one tenant is a key of another.
//! Not promised: that two companies of one name without VAT id are told apart.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use uuid::Uuid;

use docmill_core::model::digest::{LengthOrder, sha256_of_parts};
use docmill_formats::notation::party_name::name_key;

/// Characters of a VAT id or an account; shorter ones identify nobody.
const MIN_NUMBER_CHARS: usize = 6;
/// Characters of a folded name; shorter ones identify nobody.
const MIN_NAME_CHARS: usize = 3;
/// Characters of a key behind the letter of its property.
const KEY_CHARS: usize = 32;
/// Accounts of one document that become keys.
const MAX_ACCOUNTS: usize = 8;
/// Remembered documents of one supplier that are used and kept.
pub const MAX_DOCUMENTS: i64 = 12;

/// The property that a key is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupplierProperty {
    /// The VAT identifier.
    VatId,
    /// An account (IBAN).
    Account,
    /// The name without its legal form.
    Name,
}

impl SupplierProperty {
    fn letter(self) -> char {
        match self {
            Self::VatId => 'v',
            Self::Account => 'a',
            Self::Name => 'n',
        }
    }
}

/// The key of a property; `None` if it identifies nobody.
pub fn supplier_key(tenant: &str, property: SupplierProperty, text: &str) -> Option<String> {
    let (plain, least) = match property {
        SupplierProperty::Name => (name_key(text), MIN_NAME_CHARS),
        _ => (normalize_number(text), MIN_NUMBER_CHARS),
    };
    if plain.chars().count() < least {
        return None;
    }
    let hash = sha256_of_parts(LengthOrder::BigEndian, &["docmill supplier", tenant, &plain]);
    Some(format!("{}{}", property.letter(), hash.get(..KEY_CHARS)?))
}

/// Letters and digits in upper case.
pub fn normalize_number(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_uppercase).collect()
}

/// The properties that identify a supplier, as a document's data has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SupplierIdentity {
    /// The name.
    pub name: Option<String>,
    /// The VAT identifier.
    pub vat_id: Option<String>,
    /// The accounts to pay to.
    pub accounts: Vec<String>,
}

impl SupplierIdentity {
    /// The key of the VAT id, and that of the name.
    pub fn own_keys(&self, tenant: &str) -> Vec<String> {
        let vat_id = self.vat_id.as_deref();
        let vat_id = vat_id.and_then(|id| supplier_key(tenant, SupplierProperty::VatId, id));
        let name = self.name.as_deref();
        let name = name.and_then(|name| supplier_key(tenant, SupplierProperty::Name, name));
        vat_id.into_iter().chain(name).collect()
    }

    /// The keys of the accounts.
    pub fn account_keys(&self, tenant: &str) -> Vec<String> {
        let keys = self.accounts.iter().take(MAX_ACCOUNTS);
        keys.filter_map(|it| supplier_key(tenant, SupplierProperty::Account, it)).collect()
    }
}

/// Facts remembered of a document: written with the decision about it, or with its completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupplierLesson {
    /// The tenant; empty: no tenant.
    pub tenant: String,
    /// The key by which the supplier's documents are counted.
    pub supplier: String,
    /// The keys by which it is found.
    pub keys: Vec<String>,
    /// The kind of the document.
    pub kind: String,
}

impl SupplierLesson {
    /// `None` if neither VAT id nor name identifies the supplier.
    pub fn new(tenant: Option<&str>, kind: &str, identity: &SupplierIdentity) -> Option<Self> {
        let tenant = tenant.unwrap_or_default();
        let mut keys = identity.own_keys(tenant);
        let supplier = keys.first()?.clone();
        keys.extend(identity.account_keys(tenant));
        Some(Self { tenant: tenant.to_owned(), supplier, keys, kind: kind.to_owned() })
    }
}

/// By whose word a document is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LessonSource {
    /// A person accepted the data as it was read.
    Accepted,
    /// A person corrected it.
    Corrected,
    /// An e-invoice that no rule doubted.
    Exact,
}

impl LessonSource {
    /// The text in the row.
    pub fn code(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Corrected => "corrected",
            Self::Exact => "exact",
        }
    }

    /// The source of this code; an unknown one counts as the weakest.
    pub(crate) fn from_code(code: &str) -> Self {
        match code {
            "accepted" => Self::Accepted,
            "corrected" => Self::Corrected,
            _ => Self::Exact,
        }
    }

    /// Whether a person said so.
    pub fn is_by_person(self) -> bool {
        self != Self::Exact
    }
}

/// A remembered document.
#[derive(Debug, Clone, PartialEq)]
pub struct RememberedDocument {
    /// Id of the document.
    pub document_id: Uuid,
    /// The keys by which it was found.
    pub keys: Vec<String>,
    /// Its kind.
    pub kind: String,
    /// By whose word.
    pub source: LessonSource,
    /// Since when it is known.
    pub learned_at: OffsetDateTime,
    /// Its data; without lists and objects where it is large.
    pub data: Map<String, Value>,
    /// Where its transcript lies.
    pub transcript: Option<String>,
}

impl RememberedDocument {
    fn keys_of(&self, property: SupplierProperty) -> impl Iterator<Item = &String> {
        self.keys.iter().filter(move |key| key.starts_with(property.letter()))
    }

    fn has_vat_id(&self) -> bool {
        self.keys_of(SupplierProperty::VatId).next().is_some()
    }
}

/// Documents of one supplier, the newest first.
pub type SupplierDocuments = Vec<RememberedDocument>;

/// Puts documents together by supplier: those of one VAT id, and with them those of the same name
/// without one, if no other VAT id has that name.
pub fn group_by_supplier(mut found: Vec<RememberedDocument>) -> Vec<SupplierDocuments> {
    found.sort_by_key(|it| (!it.has_vat_id(), std::cmp::Reverse(it.learned_at)));
    let mut groups: Vec<SupplierDocuments> = Vec::new();
    for document in found {
        let property =
            if document.has_vat_id() { SupplierProperty::VatId } else { SupplierProperty::Name };
        let own: BTreeSet<&String> = document.keys_of(property).collect();
        let mut matching = groups.iter().enumerate().filter(|(_, group)| {
            group.iter().any(|other| other.keys_of(property).any(|key| own.contains(key)))
        });
        let first = matching.next().map(|(at, _)| at);
        let only = first.filter(|_| matching.next().is_none());
        match only.and_then(|at| groups.get_mut(at)) {
            Some(group) => group.push(document),
            None => groups.push(vec![document]),
        }
    }
    for group in &mut groups {
        group.sort_by_key(|it| std::cmp::Reverse(it.learned_at));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(name: &str, vat_id: Option<&str>, account: &str) -> SupplierIdentity {
        let (name, vat_id) = (Some(name.to_owned()), vat_id.map(str::to_owned));
        SupplierIdentity { name, vat_id, accounts: vec![account.to_owned()] }
    }

    fn remembered(name: &str, vat_id: Option<&str>, day: i64) -> RememberedDocument {
        let lesson = SupplierLesson::new(None, "invoice", &identity(name, vat_id, "DE1234567"));
        RememberedDocument {
            document_id: Uuid::new_v4(),
            keys: lesson.unwrap().keys,
            kind: "invoice".to_owned(),
            source: LessonSource::Accepted,
            learned_at: OffsetDateTime::UNIX_EPOCH + time::Duration::days(day),
            data: Map::new(),
            transcript: None,
        }
    }

    #[test]
    fn no_key_of_one_tenant_is_a_key_of_another_and_spellings_share_one() {
        let key = |tenant: &str, text: &str| supplier_key(tenant, SupplierProperty::Name, text);
        assert_eq!(key("a", "Müller GmbH"), key("a", "MULLER"));
        assert_ne!(key("a", "Müller GmbH"), key("b", "Müller GmbH"));
        let vat = |text: &str| supplier_key("a", SupplierProperty::VatId, text);
        assert_eq!(vat("DE 123 456 789"), vat("de123456789"));
        assert_eq!(vat("DE 1"), None, "too short to identify anybody");
        assert_ne!(vat("MULLER"), key("a", "MULLER"), "a name is no VAT id");
    }

    #[test]
    fn documents_of_one_vat_id_are_one_suppliers_and_a_shared_name_joins_no_two_of_them() {
        let groups = group_by_supplier(vec![
            remembered("Müller", Some("DE123456789"), 1),
            remembered("Müller Bau", Some("DE123456789"), 3),
            remembered("Müller Bau", None, 2),
            remembered("Weber", Some("DE111111111"), 1),
            remembered("Weber", Some("DE222222222"), 1),
            remembered("Weber", None, 1),
        ]);
        let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 6);
        let first = groups.iter().find(|group| group.len() == 3).unwrap();
        assert!(first.is_sorted_by_key(|it| std::cmp::Reverse(it.learned_at)), "newest first");
        assert_eq!(sizes.iter().filter(|size| **size == 1).count(), 3, "{sizes:?}");
    }
}
