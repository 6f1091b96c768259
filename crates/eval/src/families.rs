//! The families of documents, and the part that each family is in.
//!
//! A family is an issuer and a layout. Weights are fitted on the tune part and figures quoted for
//! the check part, so a family is in one part as a whole. A hash of its name decides which: nobody
//! chooses, and a new family moves no other.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::EvalError;
use docmill_core::model::digest;
use docmill_formats::notation::fold_text;

/// Tables that may name families, in a folder of documents or beside it: tab-separated, with a
/// column `name` and a column `group`.
const TABLES: [&str; 3] = ["FAMILIES.tsv", "TRUTH_CHECK.tsv", "../TRUTH_CHECK.tsv"];

/// Families are dealt onto so many heaps...
const HEAPS: u8 = 5;
/// ... of which these many are the check part.
const CHECK_HEAPS: u8 = 2;

/// One of the two parts of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FamilyPart {
    /// The part on which weights and words are fitted.
    Tune,
    /// The part for which figures are quoted; never fitted on.
    Check,
}

impl FamilyPart {
    /// The part that a family is in.
    pub fn of_family(family: &str) -> Self {
        let digest = digest::sha256_hex(family.as_bytes());
        let first = digest.get(..2).and_then(|byte| u8::from_str_radix(byte, 16).ok());
        match first.unwrap_or(0) % HEAPS < CHECK_HEAPS {
            true => Self::Check,
            false => Self::Tune,
        }
    }
}

/// The families that tables of a folder name, by name of document.
///
/// # Errors
/// A table that cannot be read. There need be none.
pub(super) fn read_families(dir: &Path) -> Result<BTreeMap<String, String>, EvalError> {
    let mut families = BTreeMap::new();
    for table in TABLES {
        let Some(text) = super::read_optional(&dir.join(table))? else { continue };
        let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        let header = lines.next().unwrap_or_default();
        let columns =
            ["name", "group"].map(|wanted| header.iter().position(|name| *name == wanted));
        let [Some(name), Some(group)] = columns else { continue };
        for line in lines {
            if let (Some(name), Some(group)) = (line.get(name), line.get(group)) {
                families.entry((*name).to_owned()).or_insert_with(|| (*group).to_owned());
            }
        }
    }
    Ok(families)
}

/// The family of a document that no table names: its issuer, else itself.
pub(super) fn own_family(name: &str, data: Option<&Map<String, Value>>) -> String {
    let issuer = data.and_then(|data| data.get("supplier_name")?.as_str());
    issuer.map_or_else(|| name.to_owned(), |issuer| format!("n:{}", fold_text(issuer)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_always_in_the_same_part_and_both_parts_have_some() {
        let parts: Vec<FamilyPart> =
            (0..200).map(|at| FamilyPart::of_family(&format!("n:issuer {at}"))).collect();
        let check = parts.iter().filter(|part| **part == FamilyPart::Check).count();
        assert!((50..=110).contains(&check), "{check}");
        assert_eq!(FamilyPart::of_family("n:korkstein gmbh"), FamilyPart::Tune);
        assert_eq!(FamilyPart::of_family("h:korkstein"), FamilyPart::of_family("h:korkstein"));
    }
}
