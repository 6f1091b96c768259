//! Whether the folder of a store is there, or only the empty place of a volume that is not mounted.

use docmill_core::config::{StoreBackend, StoreConfig};
use docmill_core::fault::{Error, Fault, Result};
use docmill_ledger::db::Db;
use docmill_ledger::db::reports::{IngestionFilter, list_ingestion_ids};
use docmill_storage::folder::FolderStore;

/// Refuses an empty folder as the store of a database with documents: each of them would be missing. Called
/// before the store is opened, which would make it one.
///
/// # Errors
/// `Unavailable`; no answer from Postgres; the folder cannot be listed.
pub async fn require_mounted(db: &Db, store: &StoreConfig) -> Result<()> {
    let is_folder = store.backend == StoreBackend::Folder;
    if !is_folder || !FolderStore::is_unused(&store.path).await? {
        return Ok(());
    }
    if list_ingestion_ids(db, &IngestionFilter::default(), 1, None).await?.is_empty() {
        return Ok(());
    }
    let folder = store.path.display();
    let told = format!(
        "the folder {folder} (store.path) is empty, but the database has documents: is its volume mounted? \
         If it is to be empty, make the folder {folder}/.docmill-store"
    );
    Err(Error::new(Fault::Unavailable, told))
}
