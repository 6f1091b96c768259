//! Environment variables in which platforms name credentials, read at one place.

use std::collections::BTreeMap;

/// The variables that name credentials. An empty one counts as not set.
#[derive(Debug, Clone, Default)]
pub struct AmbientVariables(BTreeMap<String, String>);

impl AmbientVariables {
    /// Those of this process.
    pub fn from_process() -> Self {
        let all = std::env::vars_os();
        let texts = all.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self(texts.filter(|(name, _)| is_credential_variable(name)).collect())
    }

    /// Given ones alone.
    pub fn from_pairs(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect())
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}

fn is_credential_variable(name: &str) -> bool {
    ["AZURE_", "GCE_", "GOOGLE_", "IDENTITY_"].iter().any(|family| name.starts_with(family))
}
