//! Bringing the schema up to date, and taking over what an earlier system left
//! (docs/guides/moving.md). Not promised: anything about the product's own code over those tables.

use docmill_core::fault::{Error, Result};
use docmill_ledger::db::Db;
pub use docmill_ledger::db::migrating::adopting::{EarlierWorkers, MigrationOptions};
use docmill_pipeline::shutdown::Shutdown;

/// Applies the missing migrations and the optional extras. After a stop, Postgres cancels the
/// running migration once it notices that the client has gone.
///
/// # Errors
/// The failing migration, or all obstacles to an adoption; nothing of it has changed then. It was stopped.
pub async fn migrate_schema(db: &Db, options: &MigrationOptions, stop: &Shutdown) -> Result<()> {
    let ended = stop.unless_requested(db.migrate_with(options)).await;
    ended.ok_or_else(|| Error::internal("stopped by a signal: run `docmill migrate` again"))?
}
