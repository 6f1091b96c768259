//! Master data of a tenant: suppliers and orders as its ERP has them.

use serde::{Deserialize, Serialize};

/// A supplier of the master data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MasterSupplier {
    /// Its number in the ERP.
    pub number: String,
    /// Its name.
    pub name: String,
    /// Its VAT identifiers.
    #[serde(default)]
    pub vat_ids: Vec<String>,
    /// Its bank accounts.
    #[serde(default)]
    pub accounts: Vec<String>,
}

/// A purchase order of the master data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MasterOrder {
    /// Its number.
    pub number: String,
    /// The number of its supplier in the ERP.
    #[serde(default)]
    pub supplier: Option<String>,
    /// Its amount, as a decimal number.
    #[serde(default)]
    pub amount: Option<String>,
    /// ISO 4217.
    #[serde(default)]
    pub currency: Option<String>,
}

/// By what a supplier is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MasterMarkSort {
    /// Its VAT identifier.
    VatId,
    /// Its account.
    Account,
    /// Its name, without the legal form.
    Name,
}

impl MasterMarkSort {
    /// The word in rows and results.
    pub fn code(self) -> &'static str {
        match self {
            Self::VatId => "vat_id",
            Self::Account => "account",
            Self::Name => "name",
        }
    }

    /// The sort with this word.
    pub fn from_code(code: &str) -> Option<Self> {
        [Self::VatId, Self::Account, Self::Name].into_iter().find(|sort| sort.code() == code)
    }
}

/// The folded values of a document that are searched for; empty: it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MasterQuery {
    /// The supplier's VAT identifier.
    pub vat_id: String,
    /// The account to pay to.
    pub account: String,
    /// The supplier's name.
    pub name: String,
    /// The number of the order.
    pub order: String,
}

/// A supplier that one of the values belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterHit {
    /// By what it was found.
    pub sort: MasterMarkSort,
    /// Its number in the ERP.
    pub number: String,
    /// Its name.
    pub name: String,
}

/// All that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MasterHits {
    /// Suppliers, one for each value and supplier.
    pub suppliers: Vec<MasterHit>,
    /// Orders of this number.
    pub orders: Vec<MasterOrder>,
}

/// The supplier that a document belongs to, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupplierMatch {
    /// Its number in the ERP.
    pub number: String,
    /// Its name there.
    pub name: String,
    /// By what it was found, the surest first.
    pub by: Vec<MasterMarkSort>,
    /// Values that belong to other suppliers alone.
    pub against: Vec<MasterMarkSort>,
}

/// The order that a document belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderMatch {
    /// Its number.
    pub number: String,
    /// The number of its supplier in the ERP.
    pub supplier: Option<String>,
    /// Its amount, as a decimal number.
    pub amount: Option<String>,
    /// ISO 4217.
    pub currency: Option<String>,
}

/// Match of a document with the master data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MasterMatch {
    /// The supplier.
    pub supplier: Option<SupplierMatch>,
    /// The order.
    pub order: Option<OrderMatch>,
}
