//! The names of keys. `PREFIX:queue`, `PREFIX:processing`, `PREFIX:item:ID` and `PREFIX:lease:ID`
//! are those of redis-work-queue 0.3.0, by plain concatenation, `PREFIX:leased_by_session:ID` that of
//! a lease in 0.1; everything of our own lies under
//! `PREFIX:docmill:`, which its clients do not read.

use docmill_core::model::Priority;

/// The keys of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RedisKeys {
    pub(super) prefix: String,
}

impl RedisKeys {
    /// The queue of a priority: each is a complete queue of its own, so that other clients can
    /// work on any of them. The normal one has the prefix as it is.
    pub(super) fn for_priority(prefix: &str, priority: Priority) -> Self {
        let prefix = match priority {
            Priority::Normal => prefix.to_owned(),
            other => format!("{prefix}:{other}"),
        };
        Self { prefix }
    }

    pub(super) fn queue_key(&self) -> String {
        format!("{}:queue", self.prefix)
    }

    pub(super) fn processing_key(&self) -> String {
        format!("{}:processing", self.prefix)
    }

    pub(super) fn late_key(&self) -> String {
        format!("{}:docmill:late", self.prefix)
    }

    pub(super) fn dead_key(&self) -> String {
        format!("{}:docmill:dead", self.prefix)
    }

    /// Prefix of all item keys.
    pub(super) fn item_prefix(&self) -> String {
        format!("{}:item:", self.prefix)
    }

    /// The pattern of all item keys for SCAN.
    pub(super) fn item_pattern(&self) -> String {
        format!("{}*", escape_glob(&self.item_prefix()))
    }
}

/// A text that a glob-style pattern matches literally.
fn escape_glob(text: &str) -> String {
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
        let keys = RedisKeys::for_priority("{n}", Priority::Normal);
        assert_eq!(
            (keys.queue_key(), keys.processing_key()),
            ("{n}:queue".into(), "{n}:processing".into())
        );
        assert_eq!(RedisKeys::for_priority("n", Priority::High).queue_key(), "n:high:queue");
    }

    #[test]
    fn a_prefix_with_the_letters_of_a_pattern_matches_only_itself() {
        let keys = RedisKeys::for_priority(r"a[b]*\", Priority::Normal);
        assert_eq!(keys.item_pattern(), r"a\[b\]\*\\:item:*");
    }
}
