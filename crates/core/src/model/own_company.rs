//! A tenant's own companies: the buyer of its invoices.

use serde::{Deserialize, Serialize};

/// A company of a tenant, as operators name it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnCompany {
    /// Whose it is; none: that of documents without a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Its full name, with the legal form.
    pub name: String,
    /// Other names that it is written to under.
    #[serde(default)]
    pub other_names: Vec<String>,
    /// Its VAT identifiers.
    #[serde(default)]
    pub vat_ids: Vec<String>,
    /// Its bank accounts, as IBANs.
    #[serde(default)]
    pub accounts: Vec<String>,
    /// Its addresses, each in one line, with commas between street and town.
    #[serde(default)]
    pub addresses: Vec<String>,
}

impl OwnCompany {
    /// Companies of one tenant.
    pub const MAX_PER_TENANT: usize = 500;
    /// Values of one sort of a company.
    pub const MAX_VALUES: usize = 50;
    /// Characters of a value.
    pub const MAX_VALUE_CHARS: usize = 200;
    /// Letters and digits that a value must have, so that it is no common word.
    pub const MIN_VALUE_CHARS: usize = 2;

    /// Every value by its sort.
    fn values(&self) -> [(&'static str, &[String]); 4] {
        [
            ("other_names", &self.other_names),
            ("vat_ids", &self.vat_ids),
            ("accounts", &self.accounts),
            ("addresses", &self.addresses),
        ]
    }

    /// The first fault of its form, by field; never with the value.
    pub fn find_problem(&self) -> Option<String> {
        if !is_sound(&self.name) {
            return Some(format!("name: {}", fault_text()));
        }
        self.values().into_iter().find_map(|(field, values)| {
            if values.len() > Self::MAX_VALUES {
                return Some(format!("{field}: at most {} values", Self::MAX_VALUES));
            }
            let at = values.iter().position(|value| !is_sound(value))?;
            Some(format!("{field}[{at}]: {}", fault_text()))
        })
    }
}

fn is_sound(value: &str) -> bool {
    let letters = value.chars().filter(|c| c.is_alphanumeric()).count();
    letters >= OwnCompany::MIN_VALUE_CHARS
        && value.chars().count() <= OwnCompany::MAX_VALUE_CHARS
        && !value.chars().any(char::is_control)
}

fn fault_text() -> String {
    format!(
        "{} letters or digits at least, {} characters at most, no control characters",
        OwnCompany::MIN_VALUE_CHARS,
        OwnCompany::MAX_VALUE_CHARS
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_cannot_be_anybodys_is_named_by_its_field_and_not_repeated() {
        let sound = OwnCompany { name: "Muster GmbH".to_owned(), ..OwnCompany::default() };
        assert_eq!(sound.find_problem(), None);
        let many = vec!["DE123456788".to_owned(); OwnCompany::MAX_VALUES + 1];
        for (broken, field) in [
            (OwnCompany { name: " - ".to_owned(), ..sound.clone() }, "name"),
            (OwnCompany { name: "x".repeat(201), ..sound.clone() }, "name"),
            (
                OwnCompany { other_names: vec!["A\u{202e}\nB".to_owned()], ..sound.clone() },
                "other_names[0]",
            ),
            (OwnCompany { vat_ids: many, ..sound.clone() }, "vat_ids"),
            (
                OwnCompany { accounts: vec!["DE89".to_owned(), String::new()], ..sound },
                "accounts[1]",
            ),
        ] {
            let problem = broken.find_problem().unwrap();
            assert!(problem.starts_with(&format!("{field}:")), "{problem}");
        }
    }
}
