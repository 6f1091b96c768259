//! `[einvoice]`: how e-invoices are checked.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How e-invoices are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EinvoiceConfig {
    /// A file of official rules, as `scripts/einvoice_rules.py` makes it, or a folder of such files.
    /// Empty: no rules.
    pub rules: PathBuf,
}
