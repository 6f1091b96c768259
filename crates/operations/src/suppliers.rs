//! The memory of a tenant's suppliers, as operators and reviewers see it.

use serde_json::{Map, Value};

use docmill_core::fault::{Error, Fault, Result};
use docmill_gate::kinds::Kind;
use docmill_ledger::db::Db;
use docmill_ledger::db::operators::AuditNote;
use docmill_ledger::db::suppliers::{self, ForgottenPart};
use docmill_ledger::supplier::{SupplierProperty, supplier_key};
use docmill_pipeline::supplier_memory::{
    gather_history, identify_supplier, list_accounts, lookup_keys,
};
use uuid::Uuid;

pub use docmill_ledger::db::suppliers::MemoryRow;
pub use docmill_pipeline::supplier_memory::KnownAccount;

/// Rows that are listed.
const MAX_LISTED: u32 = 200;

/// The supplier that an operator means: documents with any of these.
#[derive(Debug, Clone, Default)]
pub struct SupplierChoice {
    /// Its VAT identifier.
    pub vat_id: Option<String>,
    /// One of its accounts.
    pub iban: Option<String>,
    /// Its name; the legal form does not count.
    pub name: Option<String>,
}

impl SupplierChoice {
    /// The keys; `None`: nothing is chosen.
    fn keys(&self, tenant: Option<&str>) -> Result<Option<Vec<String>>> {
        let chosen = [
            (SupplierProperty::VatId, &self.vat_id),
            (SupplierProperty::Account, &self.iban),
            (SupplierProperty::Name, &self.name),
        ];
        let mut keys = Vec::new();
        for (property, text) in chosen {
            let Some(text) = text else { continue };
            let key =
                supplier_key(tenant.unwrap_or_default(), property, text).ok_or_else(|| {
                    Error::new(
                        Fault::Rejected,
                        "a VAT id, account or name is too short to identify anybody",
                    )
                })?;
            keys.push(key);
        }
        Ok((!keys.is_empty()).then_some(keys))
    }
}

/// The remembered documents of a tenant, or of a supplier of it; the newest first.
///
/// # Errors
/// `Rejected` if the choice identifies nobody; no answer from Postgres.
pub async fn list_memory(
    db: &Db,
    tenant: Option<&str>,
    choice: &SupplierChoice,
) -> Result<Vec<MemoryRow>> {
    let keys = choice.keys(tenant)?;
    suppliers::list_memory(db, tenant, keys.as_deref(), MAX_LISTED).await
}

/// Forgets a supplier of a tenant, or without a choice all of them. The documents stay.
///
/// # Errors
/// As [`list_memory`].
pub async fn forget_suppliers(
    db: &Db,
    tenant: Option<&str>,
    choice: &SupplierChoice,
    by: &AuditNote,
) -> Result<u64> {
    let keys = choice.keys(tenant)?;
    let part = keys.as_deref().map_or(ForgottenPart::All, ForgottenPart::Keys);
    suppliers::forget_suppliers(db, tenant, part, by).await
}

/// Whose data it is, and what it says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SupplierData<'a> {
    /// The document; it confirms nothing of itself.
    pub(crate) document: Uuid,
    /// Its tenant.
    pub(crate) tenant: Option<&'a str>,
    /// Its kind.
    pub(crate) kind: &'a Kind,
    /// Its data.
    pub(crate) data: &'a Map<String, Value>,
}

/// The accounts that were confirmed of the supplier of a document, with since when.
///
/// # Errors
/// No answer from Postgres.
pub(crate) async fn find_known_accounts(
    db: &Db,
    about: SupplierData<'_>,
) -> Result<Vec<KnownAccount>> {
    let SupplierData { document, tenant, kind, data } = about;
    let mut found =
        suppliers::find_remembered(db, tenant, &lookup_keys(kind, tenant, data)).await?;
    found.retain(|it| it.document_id != document);
    Ok(list_accounts(kind, tenant, data, found))
}

/// Whether the data pays to an account that is news for its supplier.
///
/// # Errors
/// No answer from Postgres.
pub(crate) async fn has_new_account(db: &Db, about: SupplierData<'_>) -> Result<bool> {
    let SupplierData { document, tenant, kind, data } = about;
    let mut found =
        suppliers::find_remembered(db, tenant, &lookup_keys(kind, tenant, data)).await?;
    found.retain(|it| it.document_id != document);
    let history = gather_history(kind, tenant, data, found);
    let accounts = identify_supplier(kind, data).accounts;
    Ok(accounts
        .iter()
        .any(|account| history.is_unknown_account(account) || history.is_account_of_other(account)))
}
