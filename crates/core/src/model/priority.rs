//! The urgency of a document: five words, the same in the queue's tiers, the row and the command
//! line. The weight of each tier is set in the queue's configuration.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How urgent, most urgent first (the order of the variants).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Processed before everything else.
    Critical,
    /// A person waits for it.
    High,
    /// The default, where no priority was given.
    #[default]
    Normal,
    /// May wait behind the day's work.
    Low,
    /// Whenever there is nothing else to do.
    Background,
}

impl Priority {
    /// All, most urgent first.
    pub const ALL: [Self; 5] =
        [Self::Critical, Self::High, Self::Normal, Self::Low, Self::Background];

    /// The word for it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
            Self::Background => "background",
        }
    }

    /// The priority of this word.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|priority| priority.code() == code)
    }

    /// The word in the keys and records of a BlobForge bucket; in the order of urgency.
    pub fn blobforge_key(self) -> &'static str {
        match self {
            Self::Critical => "1_critical",
            Self::High => "2_high",
            Self::Normal => "3_normal",
            Self::Low => "4_low",
            Self::Background => "5_background",
        }
    }

    /// The priority of a word of BlobForge's, with or without its number.
    pub fn from_blobforge_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one: &Self| one.blobforge_key() == key || one.code() == key)
    }

    /// The one of `offered` that replaces this: itself; else the next less urgent one, so that
    /// nothing overtakes more urgent work; else the least urgent.
    pub fn nearest_among(self, offered: &[Self]) -> Option<usize> {
        let less_urgent = Self::ALL.into_iter().filter(|other| *other >= self);
        let more_urgent = Self::ALL.into_iter().rev().filter(|other| *other < self);
        less_urgent
            .chain(more_urgent)
            .find_map(|wanted: Self| offered.iter().position(|one| *one == wanted))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_code(text)
            .ok_or_else(|| format!("one of {} is needed", Self::ALL.map(Self::code).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_and_no_other() {
        for priority in Priority::ALL {
            assert_eq!(priority.code().parse(), Ok(priority));
            assert_eq!(serde_json::to_value(priority).unwrap(), priority.code());
        }
        assert!("urgent".parse::<Priority>().unwrap_err().contains("critical, high"));
    }

    #[test]
    fn blobforges_word_is_the_same_with_a_number_before_it_that_sorts_by_urgency() {
        let keys = Priority::ALL.map(Priority::blobforge_key);
        assert_eq!(keys, ["1_critical", "2_high", "3_normal", "4_low", "5_background"]);
        for priority in Priority::ALL {
            for word in [priority.blobforge_key(), priority.code()] {
                assert_eq!(Priority::from_blobforge_key(word), Some(priority), "{word}");
            }
        }
        for word in ["urgent", "", "3_high", "3_"] {
            assert_eq!(Priority::from_blobforge_key(word), None, "{word}");
        }
    }

    #[test]
    fn a_tier_that_is_not_there_is_stood_in_for_by_the_next_less_urgent_one() {
        use Priority::{Background, Critical, High, Low, Normal};
        #[rustfmt::skip]
        let table = [
            (Normal,     vec![Normal],            Some(0)),
            (Critical,   vec![High, Normal],      Some(0)),
            (High,       vec![Critical, Normal],  Some(1)),
            (Background, vec![Critical, Normal],  Some(1)),
            (Low,        vec![High, Critical],    Some(0)),
            (Low,        vec![],                  None),
        ];
        for (wanted, offered, expected) in table {
            assert_eq!(wanted.nearest_among(&offered), expected, "{wanted} of {offered:?}");
        }
    }
}
