//! The hooks of a process: addresses, secrets and limiters.

use std::sync::Arc;

use docmill_client::throttle::{Governor, LimiterKey};
use docmill_client::webhook::{DestinationPolicy, SignedTarget, SystemResolver, WebhookSender};
use docmill_core::config::{HookConfig, HooksConfig};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::HOOK_PROVIDER;

/// The hooks of a process.
pub struct PipelineHooks {
    pub(super) hooks: Vec<OpenHook>,
    pub(super) sender: WebhookSender,
}

/// A hook whose address and secret were found usable.
pub(super) struct OpenHook {
    pub(super) config: HookConfig,
    pub(super) target: SignedTarget,
    pub(super) key: LimiterKey,
}

impl PipelineHooks {
    /// The hooks of the settings; `None` without any. `policy`: where questions may be sent.
    ///
    /// # Errors
    /// `Misconfigured` if an address is not allowed or a secret is invalid; no TLS on this machine.
    pub fn open(config: &HooksConfig, policy: DestinationPolicy) -> Result<Option<Arc<Self>>> {
        if config.services.is_empty() {
            return Ok(None);
        }
        let mut hooks = Vec::new();
        for hook in &config.services {
            let target = SignedTarget::open(hook.url.reveal(), hook.secret_source(), &policy);
            let target = target.map_err(|why| {
                Error::new(Fault::Misconfigured, format!("hook `{}`: {why}", hook.name))
            })?;
            let account = target.url().origin().ascii_serialization();
            let (provider, model) = (HOOK_PROVIDER.to_owned(), hook.name.clone());
            let key = LimiterKey { provider, account, model };
            hooks.push(OpenHook { config: hook.clone(), target, key });
        }
        let sender = WebhookSender::new(policy, Arc::new(SystemResolver), config.timeout)?;
        Ok(Some(Arc::new(Self { hooks, sender })))
    }

    /// A hook that every document waits for and that is known to be down.
    pub(super) fn find_outage(&self, governor: &Governor) -> Option<String> {
        let mut held = self.hooks.iter().filter(|hook| hook.config.holds_every_document());
        let down = held.find(|hook| governor.is_down(&hook.key));
        down.map(|hook| format!("hook {}", hook.config.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_client::throttle::{CallOutcome, TokenEstimate};
    use docmill_core::config::ThrottleConfig;

    #[tokio::test(start_paused = true)]
    async fn a_hook_that_is_down_closes_intake_if_every_document_waits_for_it() {
        let governor = Governor::new(ThrottleConfig::default());
        for (more, is_held) in [
            ("name = \"all\"", true),
            ("name = \"own\"\ntenant = \"acme\"", false),
            ("name = \"missed\"\non_failure = \"continue\"", false),
        ] {
            let text = format!(
                "at = \"before\"\nurl = \"https://hooks.example.com/\"\n\
                 secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n{more}"
            );
            let services = vec![toml::from_str(&text).unwrap()];
            let config = HooksConfig { services, ..HooksConfig::default() };
            let hooks =
                PipelineHooks::open(&config, DestinationPolicy::default()).unwrap().unwrap();
            assert_eq!(hooks.find_outage(&governor), None, "{more}");
            let key = &hooks.hooks.first().unwrap().key;
            while !governor.is_down(key) {
                let permit = governor.admit(key, TokenEstimate::default()).await.unwrap();
                let _down = permit.report_outcome(&CallOutcome::Failed);
            }
            assert_eq!(hooks.find_outage(&governor).is_some(), is_held, "{more}");
        }
    }
}
