//! `[packets]`: files of several documents, and when they are cut without a person.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// When a file is cut into documents of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketMode {
    /// Never; a file that is certainly several documents is flagged.
    #[default]
    Never,
    /// At separator sheets.
    Separator,
    /// At separator sheets, else by what the pages say; a person decides where that is not certain.
    Content,
}

/// When files are cut. Every worker must run a release that knows parts of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PacketsConfig {
    /// When a file is cut.
    pub mode: PacketMode,
    /// The same for tenants by name, in the place of the above.
    pub tenants: BTreeMap<String, PacketMode>,
    /// Texts of the codes (QR, code 128, code 39) that separate documents; `*` at the end stands for
    /// anything. Patch codes T and 2 always do.
    pub separators: Vec<String>,
    /// Whether a model is asked about boundaries that the pages leave open, in `content` mode.
    pub ask_on_ties: bool,
}

impl PacketsConfig {
    /// When a file of a tenant is cut.
    pub fn mode_for(&self, tenant: Option<&str>) -> PacketMode {
        let named = tenant.and_then(|tenant| self.tenants.get(tenant));
        named.copied().unwrap_or(self.mode)
    }

    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.separators.iter().any(|text| text.trim_end_matches('*').is_empty()) {
            problems.push(
                "packets.separators must have a text before any `*`: every code would separate"
                    .to_owned(),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_its_own_mode_and_a_separator_says_something() {
        let tenants = [("acme".to_owned(), PacketMode::Content)].into();
        let mut config = PacketsConfig { tenants, ..PacketsConfig::default() };
        for (tenant, mode) in [
            (None, PacketMode::Never),
            (Some("acme"), PacketMode::Content),
            (Some("other"), PacketMode::Never),
        ] {
            assert_eq!(config.mode_for(tenant), mode, "{tenant:?}");
        }
        for (text, found) in [("NEXT", 0), ("DOC-*", 0), ("*", 1), ("", 1)] {
            config.separators = vec![text.to_owned()];
            let mut problems = Vec::new();
            config.collect_problems(&mut problems);
            assert_eq!(problems.len(), found, "{text}");
        }
    }
}
