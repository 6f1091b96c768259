//! `docmill companies`: the own companies of tenants.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;

use super::print;
use docmill_operations::Db;
use docmill_operations::companies::{self, OwnCompany};
use docmill_operations::retry::AuditNote;

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum CompaniesCommand {
    /// List own companies
    List,
    /// Load a TOML file of `[[company]]` tables: replaces all companies of each tenant that it names
    Load {
        /// File
        file: PathBuf,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
    /// Remove a company
    Remove {
        /// Name
        name: String,
        /// Tenant; left out: documents without a tenant
        #[arg(long)]
        tenant: Option<String>,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
}

impl CompaniesCommand {
    /// The comment for the audit log.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::List => "",
            Self::Load { why, .. } | Self::Remove { why, .. } => why,
        }
    }
}

/// Does it, and returns what there is then.
pub(super) async fn apply(
    db: &Db,
    what: &CompaniesCommand,
    by: &AuditNote,
) -> anyhow::Result<Vec<OwnCompany>> {
    match what {
        CompaniesCommand::List => {}
        CompaniesCommand::Load { file, .. } => {
            let text = read_bounded(file, companies::MAX_FILE_BYTES)
                .with_context(|| format!("cannot read {}", file.display()))?;
            let all = companies::parse_companies(&text)
                .with_context(|| format!("{} was not loaded", file.display()))?;
            let mut by_tenant: BTreeMap<Option<String>, Vec<OwnCompany>> = BTreeMap::new();
            for company in all {
                by_tenant.entry(company.tenant.clone()).or_default().push(company);
            }
            for (tenant, own) in &by_tenant {
                companies::replace_companies(db, tenant.as_deref(), own, by).await?;
            }
        }
        CompaniesCommand::Remove { name, tenant, .. } => {
            if !companies::remove_company(db, tenant.as_deref(), name, by).await? {
                anyhow::bail!("there is no such company: docmill companies list");
            }
        }
    }
    Ok(companies::list_all_companies(db).await?)
}

/// The companies as a table.
pub(super) fn table_of(kept: &[OwnCompany]) -> String {
    match kept.is_empty() {
        true => "no own companies".to_owned(),
        false => print::table(["tenant", "name", "VAT ids", "accounts"], &rows_of(kept)),
    }
}

/// The text of a file, and no more than one byte beyond the limit.
pub(super) fn read_bounded(file: &Path, most_bytes: usize) -> std::io::Result<String> {
    let most = u64::try_from(most_bytes).unwrap_or(u64::MAX);
    let mut text = String::new();
    File::open(file)?.take(most + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn rows_of(kept: &[OwnCompany]) -> Vec<[String; 4]> {
    let rows = kept.iter().map(|company| {
        let tenant = company.tenant.clone().unwrap_or_else(|| "–".to_owned());
        [tenant, company.name.clone(), company.vat_ids.join(", "), company.accounts.join(", ")]
    });
    rows.collect()
}
