//! `docmill suppliers` and `docmill orders`: master data of tenants.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;

use super::companies::read_bounded;
use docmill_operations::Db;
use docmill_operations::master_data::{self, MasterCounts, MasterFormat};
use docmill_operations::retry::AuditNote;

/// Subcommands of both.
#[derive(Debug, Subcommand)]
pub(super) enum MasterCommand {
    /// Load a file (.csv, .json, .toml): replaces all of the tenant's
    Load {
        /// File
        file: PathBuf,
        /// Tenant; left out: documents without a tenant
        #[arg(long)]
        tenant: Option<String>,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Count suppliers and orders
    Count {
        /// Tenant; left out: documents without a tenant
        #[arg(long)]
        tenant: Option<String>,
    },
}

/// Which master data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MasterTable {
    /// Suppliers.
    Suppliers,
    /// Purchase orders.
    Orders,
}

impl MasterCommand {
    /// The comment for the audit log.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Load { why, .. } => why,
            Self::Count { .. } => "",
        }
    }
}

/// Does it, and returns how many rows the tenant has then.
pub(super) async fn apply(
    db: &Db,
    table: MasterTable,
    what: &MasterCommand,
    by: &AuditNote,
) -> anyhow::Result<MasterCounts> {
    let (MasterCommand::Load { tenant, .. } | MasterCommand::Count { tenant }) = what;
    let tenant = tenant.as_deref();
    if let MasterCommand::Load { file, .. } = what {
        let (text, format) = read_file(file)?;
        match table {
            MasterTable::Suppliers => {
                let rows = master_data::parse_suppliers(&text, format)
                    .with_context(|| not_loaded(file))?;
                let replaced = master_data::replace_suppliers(db, tenant, rows, by);
                replaced.await.with_context(|| not_loaded(file))?;
            }
            MasterTable::Orders => {
                let rows =
                    master_data::parse_orders(&text, format).with_context(|| not_loaded(file))?;
                let replaced = master_data::replace_orders(db, tenant, rows, by);
                replaced.await.with_context(|| not_loaded(file))?;
            }
        }
    }
    Ok(master_data::count_master_data(db, tenant).await?)
}

fn not_loaded(file: &Path) -> String {
    format!("{} was not loaded", file.display())
}

fn read_file(file: &Path) -> anyhow::Result<(String, MasterFormat)> {
    let format = MasterFormat::from_name(&file.to_string_lossy());
    let format = format.context("the file's name has to end in .csv, .json or .toml")?;
    let text = read_bounded(file, master_data::MAX_FILE_BYTES)
        .with_context(|| format!("cannot read {}", file.display()))?;
    if text.len() > master_data::MAX_FILE_BYTES {
        anyhow::bail!("{} is larger than {} bytes", file.display(), master_data::MAX_FILE_BYTES);
    }
    Ok((text, format))
}
