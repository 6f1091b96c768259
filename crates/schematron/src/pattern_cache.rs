//! Compiled regular expressions, each compiled once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use regex::Regex;

use crate::pattern_text::compile_pattern;

/// Most patterns that are kept: the rules have some dozens, and a document must not add without end.
const MAX_PATTERNS: usize = 256;

/// The patterns that the rules used so far; `None`: text that is no pattern.
#[derive(Debug, Default)]
pub(crate) struct PatternCache {
    patterns: Mutex<HashMap<String, Option<Arc<Regex>>>>,
}

impl PatternCache {
    /// The compiled form of a pattern with its flags.
    pub(crate) fn find(&self, pattern: &str, flags: &str) -> Option<Arc<Regex>> {
        let key = [flags, "\0", pattern].concat();
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = patterns.get(&key) {
            return known.clone();
        }
        let compiled = compile_pattern(pattern, flags).map(Arc::new);
        if patterns.len() < MAX_PATTERNS {
            patterns.insert(key, compiled.clone());
        }
        compiled
    }
}
