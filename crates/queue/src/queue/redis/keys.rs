//! The names of keys. `PREFIX:queue`, `PREFIX:processing`, `PREFIX:item:ID` and `PREFIX:lease:ID`
//! are those of redis-work-queue 0.3.0, by plain concatenation; everything of our own lies under
//! `PREFIX:docmill:`, where its clients do not look.

use crate::model::Priority;

/// The keys of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) prefix: String,
}

impl Keys {
    /// The queue of a priority: each is a complete queue of its own, so that other clients can
    /// work on any of them. The normal one has the prefix as it is.
    pub(super) fn of(prefix: &str, priority: Priority) -> Self {
        let prefix = match priority {
            Priority::Normal => prefix.to_owned(),
            other => format!("{prefix}:{other}"),
        };
        Self { prefix }
    }

    pub(super) fn queue(&self) -> String {
        format!("{}:queue", self.prefix)
    }

    pub(super) fn processing(&self) -> String {
        format!("{}:processing", self.prefix)
    }

    pub(super) fn late(&self) -> String {
        format!("{}:docmill:late", self.prefix)
    }

    pub(super) fn dead(&self) -> String {
        format!("{}:docmill:dead", self.prefix)
    }

    /// What all item keys begin with.
    pub(super) fn items(&self) -> String {
        format!("{}:item:", self.prefix)
    }

    /// The pattern of all item keys for SCAN.
    pub(super) fn items_pattern(&self) -> String {
        format!("{}*", escaped(&self.items()))
    }
}

/// A text that a glob-style pattern matches literally.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_the_other_clients() {
        let keys = Keys::of("{n}", Priority::Normal);
        assert_eq!(
            (keys.queue(), keys.processing()),
            ("{n}:queue".into(), "{n}:processing".into())
        );
        assert_eq!(Keys::of("n", Priority::High).queue(), "n:high:queue");
    }

    #[test]
    fn a_prefix_with_the_letters_of_a_pattern_matches_only_itself() {
        let keys = Keys::of(r"a[b]*\", Priority::Normal);
        assert_eq!(keys.items_pattern(), r"a\[b\]\*\\:item:*");
    }
}
