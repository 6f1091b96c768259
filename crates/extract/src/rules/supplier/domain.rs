//! Names in mail and web addresses.

use super::compact_name;
use crate::rules::characters::has_digit;

/// Letters of the longest ending of a domain: `photography`.
const MAX_ENDING_LETTERS: usize = 12;

/// Hosts of public mail services, which do not identify a company.
const SHARED_HOSTS: [&str; 16] = [
    "gmail",
    "googlemail",
    "hotmail",
    "outlook",
    "yahoo",
    "gmx",
    "web",
    "icloud",
    "live",
    "msn",
    "aol",
    "tonline",
    "proton",
    "wanadoo",
    "orange",
    "example",
];

/// The name in a mail or web address.
pub(super) fn domain_name(word: &str) -> Option<String> {
    let text = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let mail = text.contains('@');
    let host = text.rsplit('@').next()?;
    let host = host.rsplit("://").next()?;
    let web = text.contains("://") || host.starts_with("www.");
    let host = host.trim_start_matches("www.").split(['/', '?', ':']).next()?;
    let labels: Vec<&str> = host.split('.').filter(|label| !label.is_empty()).collect();
    let ending = labels.last().filter(|ending| (2..=MAX_ENDING_LETTERS).contains(&ending.len()))?;
    let known =
        mail || web || matches!(*ending, "com" | "de" | "fr" | "net" | "org" | "nl" | "eu" | "io");
    let letters = host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-'));
    if labels.len() < 2 || !known || !letters || has_digit(ending) {
        return None;
    }
    let second = labels.iter().rev().nth(1)?;
    // `shop.example.co.uk`
    let name = match labels.len() {
        3.. if second.len() <= 3 => labels.iter().rev().nth(2)?,
        _ => second,
    };
    let name = compact_name(name);
    (name.len() >= 3 && !SHARED_HOSTS.contains(&name.as_str())).then_some(name)
}
