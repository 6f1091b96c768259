//! `[hooks]`: services of one's own that are asked before and after a document is read.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::secret::{SecretSource, check_secret};
use super::units::{SecretString, is_plain_name};

/// When a hook is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookMoment {
    /// Once the document is open, before its pages are read.
    Before,
    /// Once its data is judged, before it is recorded.
    After,
}

impl HookMoment {
    /// Its name in settings and questions.
    pub fn code(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// The reaction to a hook without a usable answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookFailure {
    /// The document waits for it, uncounted.
    #[default]
    Defer,
    /// The document goes on without it.
    Continue,
}

/// A hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// Its name, in reasons, results and metrics.
    pub name: String,
    /// When it is asked.
    pub at: HookMoment,
    /// The address, for POST. May hold a secret of its own.
    pub url: SecretString,
    /// The signing secret: `whsec_…`, or several with blanks between them while one is replaced.
    #[serde(default)]
    pub secret: SecretString,
    /// A file with the same, read anew when it changes.
    #[serde(default)]
    pub secret_file: PathBuf,
    /// Only documents of this tenant; empty: all.
    #[serde(default)]
    pub tenant: String,
    /// Of a hook after the reading: only documents of these kinds; empty: all.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// The reaction if it gives no usable answer.
    #[serde(default)]
    pub on_failure: HookFailure,
    /// Of a hook before the reading: whether it gets an address for the original, good for some minutes.
    #[serde(default)]
    pub include_original: bool,
    /// Of a hook after the reading: whether it gets the data.
    #[serde(default)]
    pub include_data: bool,
}

impl HookConfig {
    /// The current signing secret.
    pub fn secret_source(&self) -> SecretSource {
        SecretSource::new(&self.secret, &self.secret_file)
    }

    /// Whether it is asked about documents of this tenant and kind.
    pub fn concerns(&self, tenant: Option<&str>, kind: Option<&str>) -> bool {
        let is_of_tenant = self.tenant.is_empty() || tenant == Some(self.tenant.as_str());
        let is_of_kind = self.kinds.is_empty()
            || kind.is_some_and(|kind| self.kinds.iter().any(|wanted| wanted == kind));
        is_of_tenant && is_of_kind
    }

    /// Whether every document waits while it is down.
    pub fn holds_every_document(&self) -> bool {
        self.on_failure == HookFailure::Defer && self.tenant.is_empty() && self.kinds.is_empty()
    }
}

/// `[hooks]`: services that are asked before and after a document is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HooksConfig {
    /// The hooks, asked in this order.
    pub services: Vec<HookConfig>,
    /// How long one request may take, from the name to the end of the answer.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
}

impl Default for HooksConfig {
    fn default() -> Self {
        Self { services: Vec::new(), timeout: Duration::from_secs(10) }
    }
}

/// Longest timeout: a document holds a slot for as long.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
/// Most hooks, as their answers lie in one row.
const MAX_HOOKS: usize = 16;
/// Longest name: it is part of a reason for review.
const MAX_NAME_CHARS: usize = 32;

impl HooksConfig {
    /// `allow_http`: as `webhooks.allow_http`, which holds for hooks as well.
    pub(super) fn collect_problems(&self, allow_http: bool, problems: &mut Vec<String>) {
        if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            problems.push("hooks.timeout must be more than 0 and at most 1m".to_owned());
        }
        if self.services.len() > MAX_HOOKS {
            problems.push(format!("hooks.services has more than {MAX_HOOKS} hooks"));
        }
        let mut names = HashSet::new();
        for (at, hook) in self.services.iter().enumerate() {
            check_hook(&format!("hooks.services[{at}]"), hook, allow_http, problems);
            if !names.insert(&hook.name) {
                problems.push(format!("hooks.services[{at}] has the name of another"));
            }
        }
    }
}

fn check_hook(key: &str, hook: &HookConfig, allow_http: bool, problems: &mut Vec<String>) {
    if hook.name.len() > MAX_NAME_CHARS || !is_plain_name(&hook.name, "-_") {
        problems.push(format!("{key}.name must be 1 to {MAX_NAME_CHARS} of a-z, A-Z, 0-9, - _"));
    }
    let url = hook.url.reveal();
    if !(url.starts_with("https://") || allow_http && url.starts_with("http://")) {
        problems.push(format!(
            "{key}.url must begin with https:// (with http:// only under webhooks.allow_http)"
        ));
    }
    check_secret(&hook.secret, &hook.secret_file, &format!("{key}.secret"), problems);
    if hook.secret.is_empty() && hook.secret_file.as_os_str().is_empty() {
        problems.push(format!(
            "{key} has neither secret nor secret_file: docmill webhooks new-secret makes one"
        ));
    }
    if hook.at == HookMoment::Before && (hook.include_data || !hook.kinds.is_empty()) {
        problems.push(format!(
            "{key}: kinds and include_data go with at = \"after\": before it neither is known"
        ));
    }
    if hook.at == HookMoment::After && hook.include_original {
        problems.push(format!("{key}.include_original goes with at = \"before\""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str) -> HookConfig {
        HookConfig {
            name: name.to_owned(),
            at: HookMoment::Before,
            url: "https://hooks.example.com/a".to_owned().into(),
            secret: "whsec_x".to_owned().into(),
            secret_file: PathBuf::new(),
            tenant: String::new(),
            kinds: Vec::new(),
            on_failure: HookFailure::Defer,
            include_original: false,
            include_data: false,
        }
    }

    fn problems(services: Vec<HookConfig>, allow_http: bool) -> String {
        let mut problems = Vec::new();
        HooksConfig { services, ..HooksConfig::default() }
            .collect_problems(allow_http, &mut problems);
        problems.join("\n")
    }

    #[test]
    fn a_hook_that_could_not_work_is_a_problem_by_its_key() {
        let http = HookConfig { url: "http://hooks.example.com".to_owned().into(), ..hook("a") };
        assert_eq!(problems(vec![hook("a"), hook("b")], false), "");
        assert_eq!(problems(vec![http.clone()], true), "");
        let after = HookConfig { at: HookMoment::After, ..hook("a") };
        for (services, said) in [
            (vec![http], "services[0].url must begin"),
            (vec![hook("a"), hook("a")], "services[1] has the name of another"),
            (vec![hook("a:b")], "services[0].name"),
            (vec![HookConfig { secret: String::new().into(), ..hook("a") }], "neither secret"),
            (vec![HookConfig { include_data: true, ..hook("a") }], "kinds and include_data"),
            (vec![HookConfig { kinds: vec!["x".to_owned()], ..hook("a") }], "kinds and"),
            (vec![HookConfig { include_original: true, ..after.clone() }], "include_original"),
            ((0..17).map(|at| hook(&format!("h{at}"))).collect(), "more than 16"),
        ] {
            let found = problems(services, false);
            assert!(found.contains(said), "{said:?} is not in {found:?}");
        }
    }

    #[test]
    fn a_hook_is_asked_about_its_tenant_and_its_kinds_alone() {
        let all = hook("a");
        assert!(all.concerns(None, None) && all.holds_every_document());
        let own = HookConfig {
            tenant: "acme".to_owned(),
            kinds: vec!["invoice".to_owned()],
            ..hook("a")
        };
        assert!(own.concerns(Some("acme"), Some("invoice")) && !own.holds_every_document());
        for (tenant, kind) in
            [(None, Some("invoice")), (Some("other"), Some("invoice")), (Some("acme"), None)]
        {
            assert!(!own.concerns(tenant, kind), "{tenant:?} {kind:?}");
        }
        let skipped = HookConfig { on_failure: HookFailure::Continue, ..hook("a") };
        assert!(!skipped.holds_every_document());
    }
}
