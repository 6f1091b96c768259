//! Bringing the schema up to date, and taking over what an earlier system left
//! (docs/guides/moving.md). Not promised: anything about the product's own code over those tables.

use docmill_core::fault::Result;
use docmill_ledger::db::Db;
pub use docmill_ledger::db::migrating::adopting::{EarlierWorkers, MigrationOptions};

/// Applies the missing migrations and the optional extras.
///
/// # Errors
/// The failing migration, or all obstacles to an adoption; nothing has changed then.
pub async fn migrate_schema(db: &Db, options: &MigrationOptions) -> Result<()> {
    db.migrate_with(options).await
}
