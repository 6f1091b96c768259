//! `[webhooks]`: targets of outcomes and decisions, and retries.

use std::collections::HashSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::secret::check_secret;
use super::units::is_plain_name;
use super::{SecretSource, SecretString};
use crate::file_layout::ExportLayout;

/// Events that are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WebhookEvent {
    /// An ingestion completed.
    #[serde(rename = "document.completed")]
    Completed,
    /// An ingestion failed for good.
    #[serde(rename = "document.failed")]
    Failed,
    /// An ingestion was cancelled, or superseded by a newer version.
    #[serde(rename = "document.cancelled")]
    Cancelled,
    /// A document calls for a person after the end of an ingestion.
    #[serde(rename = "document.review_needed")]
    ReviewNeeded,
    /// A person confirmed the data.
    #[serde(rename = "document.accepted")]
    Accepted,
    /// A person gave other data.
    #[serde(rename = "document.corrected")]
    Corrected,
    /// A person said that it is no document to be recorded.
    #[serde(rename = "document.rejected")]
    Rejected,
}

impl WebhookEvent {
    /// Its name in the payload.
    pub fn code(self) -> &'static str {
        match self {
            Self::Completed => "document.completed",
            Self::Failed => "document.failed",
            Self::Cancelled => "document.cancelled",
            Self::ReviewNeeded => "document.review_needed",
            Self::Accepted => "document.accepted",
            Self::Corrected => "document.corrected",
            Self::Rejected => "document.rejected",
        }
    }
}

/// Addresses that share their first bits, written `10.1.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkRange {
    base: IpAddr,
    bits: u8,
}

impl NetworkRange {
    /// The addresses that share `bits` (0 to 32) bits with this one.
    pub const fn v4(base: Ipv4Addr, bits: u8) -> Self {
        Self { base: IpAddr::V4(base), bits }
    }

    /// The addresses that share `bits` (0 to 128) bits with this one.
    pub const fn v6(base: Ipv6Addr, bits: u8) -> Self {
        Self { base: IpAddr::V6(base), bits }
    }

    /// Whether every address lies in it.
    pub fn is_everything(self) -> bool {
        self.bits == 0
    }

    /// Whether the address lies in it.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let unused = 32_u32.saturating_sub(u32::from(self.bits));
                let differing = base.to_bits() ^ address.to_bits();
                differing.checked_shr(unused).unwrap_or_default() == 0
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let unused = 128_u32.saturating_sub(u32::from(self.bits));
                let differing = base.to_bits() ^ address.to_bits();
                differing.checked_shr(unused).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

impl FromStr for NetworkRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write a network such as 10.1.0.0/16 or fd00:1::/32".to_owned();
        let (base, bits) = text.trim().split_once('/').ok_or_else(wrong)?;
        let base: IpAddr = base.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        if bits > most { Err(wrong()) } else { Ok(Self { base, bits }) }
    }
}

impl fmt::Display for NetworkRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl Serialize for NetworkRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NetworkRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A file that a target in a store gets of each document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveredForm {
    /// Ids and data.
    Json,
    /// A row of fields.
    Csv,
    /// A row for each line.
    CsvLines,
    /// UBL 2.1 by EN 16931.
    Ubl,
    /// The original, with an ending by its content.
    Original,
}

/// A target of webhooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookTarget {
    /// Its name, in metrics, pages and commands.
    pub name: String,
    /// The address, for POST; or the ARN of an SQS queue, an SNS topic or an `EventBridge` bus; or a
    /// prefix of keys, `s3://bucket/prefix/`, or of the own store, `store:prefix/`. May hold a secret
    /// of its own.
    pub url: SecretString,
    /// Where requests about an ARN go; empty: to AWS's own endpoint of its region.
    #[serde(default)]
    pub endpoint: String,
    /// The signing secret: `whsec_…`, or several with blanks between them while one is replaced.
    #[serde(default)]
    pub secret: SecretString,
    /// A file with the same, read anew when it changes.
    #[serde(default)]
    pub secret_file: PathBuf,
    /// The events that it wants; empty: all.
    #[serde(default)]
    pub events: Vec<WebhookEvent>,
    /// Only documents of this tenant are delivered; empty: all.
    #[serde(default)]
    pub tenant: String,
    /// Below a prefix of keys: only documents of these kinds; empty: all.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// Names of files below a prefix of keys, without their endings ([`ExportLayout`]).
    #[serde(default = "usual_layout")]
    pub layout: String,
    /// The files of each document below a prefix of keys.
    #[serde(default = "usual_forms")]
    pub forms: Vec<DeliveredForm>,
    /// Whether the data goes along, not only ids and outcome.
    #[serde(default)]
    pub include_data: bool,
    /// Requests of one process to it at the same time.
    #[serde(default = "usual_concurrency")]
    pub concurrency: u32,
}

fn usual_concurrency() -> u32 {
    4
}

fn usual_layout() -> String {
    "{tenant}/{kind}/{day}/{id}".to_owned()
}

fn usual_forms() -> Vec<DeliveredForm> {
    vec![DeliveredForm::Json]
}

impl WebhookTarget {
    /// The prefix of keys that it is, as the store names objects; `None`: another sort of target.
    pub fn key_prefix(&self) -> Option<&str> {
        let url = self.url.reveal();
        url.strip_prefix("store:").or_else(|| url.starts_with("s3://").then_some(url))
    }

    /// The same in two: bucket (`None`: the store's own) and prefix in it.
    pub fn bucket_and_prefix(&self) -> Option<(Option<&str>, &str)> {
        let prefix = self.key_prefix()?;
        let Some(rest) = prefix.strip_prefix("s3://") else { return Some((None, prefix)) };
        let (bucket, below) = rest.split_once('/').unwrap_or((rest, ""));
        Some((Some(bucket), below))
    }

    fn has_files(&self) -> bool {
        !self.kinds.is_empty() || self.layout != usual_layout() || self.forms != usual_forms()
    }

    fn has_secret(&self) -> bool {
        !self.secret.is_empty() || !self.secret_file.as_os_str().is_empty()
    }

    /// The current signing secret.
    pub fn secret_source(&self) -> SecretSource {
        SecretSource::new(&self.secret, &self.secret_file)
    }
}

/// `[webhooks]`: targets and retries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhooksConfig {
    /// The targets.
    pub targets: Vec<WebhookTarget>,
    /// How long one request may take, from the name to the answer.
    #[serde(with = "humantime_serde")]
    pub timeout: Duration,
    /// How often it is looked for what is due.
    #[serde(with = "humantime_serde")]
    pub poll: Duration,
    /// The wait after the first failure, doubled after each further one.
    #[serde(with = "humantime_serde")]
    pub first_retry: Duration,
    /// The longest wait between two tries.
    #[serde(with = "humantime_serde")]
    pub longest_retry: Duration,
    /// After so long it is given up.
    #[serde(with = "humantime_serde")]
    pub give_up_after: Duration,
    /// How long what was delivered or given up is kept for a replay.
    #[serde(with = "humantime_serde")]
    pub retention: Duration,
    /// Private networks that targets may lie in.
    pub allowed_networks: Vec<NetworkRange>,
    /// Whether `http://` is allowed: for tests, and inside one machine.
    pub allow_http: bool,
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            timeout: Duration::from_secs(20),
            poll: Duration::from_secs(1),
            first_retry: Duration::from_secs(5),
            longest_retry: Duration::from_secs(3600),
            give_up_after: Duration::from_secs(5 * 24 * 3600),
            retention: Duration::from_secs(30 * 24 * 3600),
            allowed_networks: Vec::new(),
            allow_http: false,
        }
    }
}

/// Longest timeout: a lease of a delivery is some of these.
const MAX_TIMEOUT: Duration = Duration::from_secs(120);
/// Most requests to one target at the same time.
const MAX_CONCURRENT: u32 = 256;

impl WebhooksConfig {
    pub(super) fn collect_problems(&self, problems: &mut Vec<String>) {
        if self.timeout.is_zero() || self.timeout > MAX_TIMEOUT {
            problems.push("webhooks.timeout must be more than 0 and at most 2m".to_owned());
        }
        if self.poll < Duration::from_millis(10) {
            problems.push("webhooks.poll must be at least 10ms".to_owned());
        }
        if self.first_retry.is_zero() || self.longest_retry < self.first_retry {
            problems.push(
                "webhooks.first_retry must be more than 0, and webhooks.longest_retry at least that"
                    .to_owned(),
            );
        }
        if self.give_up_after < self.longest_retry {
            problems
                .push("webhooks.give_up_after must be at least webhooks.longest_retry".to_owned());
        }
        let mut names = HashSet::new();
        for (at, target) in self.targets.iter().enumerate() {
            self.check_target(at, target, problems);
            if !names.insert(&target.name) {
                problems.push(format!("webhooks.targets[{at}] has the name of another"));
            }
        }
    }

    fn is_web_address(&self, url: &str) -> bool {
        url.starts_with("https://") || (self.allow_http && url.starts_with("http://"))
    }

    fn check_target(&self, at: usize, target: &WebhookTarget, problems: &mut Vec<String>) {
        let key = format!("webhooks.targets[{at}]");
        if target.name.len() > 64 || !is_plain_name(&target.name, "-_.") {
            problems.push(format!("{key}.name must be 1 to 64 of a-z, A-Z, 0-9, - _ ."));
        }
        let url = target.url.reveal();
        let is_arn = url.starts_with("arn:");
        if target.key_prefix().is_some() {
            check_prefix(target, &key, problems);
        } else if target.has_files() {
            problems.push(format!("{key}: kinds, layout and forms go with a prefix of keys"));
        } else if !is_arn && !self.is_web_address(url) {
            problems.push(format!(
                "{key}.url must begin with https:// (with http:// only under webhooks.allow_http), \
                 be an ARN, or be s3://bucket/prefix/ or store:prefix/"
            ));
        }
        let has_endpoint = !target.endpoint.is_empty();
        if has_endpoint && (!is_arn || !self.is_web_address(&target.endpoint)) {
            problems.push(format!(
                "{key}.endpoint goes with an ARN, and begins with https:// (with http:// only under \
                 webhooks.allow_http)"
            ));
        }
        check_secret(&target.secret, &target.secret_file, &format!("{key}.secret"), problems);
        let has_secret = target.has_secret();
        if is_arn && has_secret {
            problems.push(format!("{key} has a secret, and AWS takes its own signatures alone"));
        }
        if !is_arn && !has_secret && target.key_prefix().is_none() {
            problems.push(format!(
                "{key} has neither secret nor secret_file: docmill webhooks new-secret makes one"
            ));
        }
        if target.concurrency == 0 || target.concurrency > MAX_CONCURRENT {
            problems.push(format!("{key}.concurrency must be 1 to {MAX_CONCURRENT}"));
        }
    }
}

/// A prefix of keys ends with a slash and leads nowhere else; nothing is signed there.
fn check_prefix(target: &WebhookTarget, key: &str, problems: &mut Vec<String>) {
    let (bucket, below) = target.bucket_and_prefix().unwrap_or_default();
    let parts = below.strip_suffix('/').unwrap_or_default().split('/');
    if !bucket.into_iter().chain(parts).all(is_plain_part) {
        problems.push(format!(
            "{key}.url: a prefix is s3://bucket/prefix/ or store:prefix/, its parts of a-z, A-Z, 0-9, \
             - _ ."
        ));
    }
    if let Err(defect) = ExportLayout::parse(&target.layout) {
        problems.push(format!("{key}.layout: {defect}"));
    }
    if target.has_secret() {
        problems.push(format!("{key} has a secret, and objects in a store are not signed"));
    }
    if target.include_data {
        problems.push(format!("{key}.include_data: files have the data; leave it out"));
    }
    if target.forms.is_empty() {
        problems.push(format!("{key}.forms is empty: nothing would be delivered"));
    }
}

fn is_plain_part(part: &str) -> bool {
    is_plain_name(part, "-_.") && !part.chars().all(|c| c == '.')
}

#[cfg(test)]
mod tests {
    use super::DeliveredForm::Json;
    use super::*;

    fn target(name: &str, url: &str) -> WebhookTarget {
        WebhookTarget {
            name: name.to_owned(),
            url: url.to_owned().into(),
            endpoint: String::new(),
            secret: "whsec_x".to_owned().into(),
            secret_file: PathBuf::new(),
            events: Vec::new(),
            tenant: String::new(),
            kinds: Vec::new(),
            layout: usual_layout(),
            forms: usual_forms(),
            include_data: false,
            concurrency: 4,
        }
    }

    fn stored(url: &str) -> WebhookTarget {
        WebhookTarget { secret: SecretString::default(), ..target("files", url) }
    }

    fn with_files(url: &str, layout: &str, forms: &[DeliveredForm]) -> WebhookTarget {
        WebhookTarget { layout: layout.to_owned(), forms: forms.to_vec(), ..stored(url) }
    }

    fn problems(targets: Vec<WebhookTarget>) -> Vec<String> {
        let mut problems = Vec::new();
        WebhooksConfig { targets, ..WebhooksConfig::default() }.collect_problems(&mut problems);
        problems
    }

    #[test]
    fn an_unsafe_target_is_refused_before_anything_starts() {
        let right = || target("erp", "https://erp.example.com/hooks?key=SECRETMARK");
        for right in [right(), stored("s3://bucket/out/a/"), stored("store:out/")] {
            assert_eq!(problems(vec![right]), Vec::<String>::new());
        }
        for (wrong, said) in [
            (vec![target("", "https://a")], "name must be"),
            (vec![target("a b", "https://a")], "name must be"),
            (vec![target("a", "http://SECRETMARK")], "must begin with https://"),
            (vec![right(), right()], "the name of another"),
            (vec![WebhookTarget { secret: SecretString::default(), ..right() }], "new-secret"),
            (vec![WebhookTarget { concurrency: 0, ..right() }], "concurrency must be"),
            (vec![target("a", "arn:aws:sqs:eu-west-1:1:q")], "its own signatures alone"),
            (vec![stored("s3://bucket")], "a prefix is"),
            (vec![stored("s3://bucket/out")], "a prefix is"),
            (vec![stored("store:../out/")], "a prefix is"),
            (vec![stored("store:/")], "a prefix is"),
            (vec![target("a", "store:out/")], "not signed"),
            (vec![stored("s3:///out/")], "a prefix is"),
            (vec![with_files("store:out/", "{iban}", &[Json])], "layout: its parts are {tenant}"),
            (vec![with_files("store:out/", "../{id}", &[Json])], "layout: no part"),
            (vec![with_files("store:out/", "{id}", &[])], "forms is empty"),
            (vec![WebhookTarget { include_data: true, ..stored("store:out/") }], "include_data"),
            (
                vec![WebhookTarget { kinds: vec!["x".to_owned()], ..right() }],
                "with a prefix of keys",
            ),
            (
                vec![WebhookTarget { endpoint: "https://x".to_owned(), ..right() }],
                "goes with an ARN",
            ),
        ] {
            let found = problems(wrong);
            assert!(found.len() == 1 && found[0].contains(said), "{said}: {found:?}");
            assert!(!found[0].contains("SECRETMARK"), "{found:?}");
        }
    }

    #[test]
    fn a_network_holds_the_addresses_that_share_its_bits_and_no_others() {
        for (range, address, inside) in [
            ("10.1.0.0/16", "10.1.255.255", true),
            ("10.1.0.0/16", "10.2.0.0", false),
            ("10.1.0.0/16", "::ffff:10.1.2.3", true),
            ("127.0.0.1/32", "127.0.0.2", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("fd00:1::/32", "fd00:1:2::3", true),
            ("fd00:1::/32", "fd00:2::", false),
            ("::/0", "10.0.0.1", false),
        ] {
            let range: NetworkRange = range.parse().unwrap();
            assert_eq!(range.contains(address.parse().unwrap()), inside, "{range} {address}");
        }
        for wrong in ["10.0.0.0", "10.0.0.0/33", "x/8", "::/129", ""] {
            assert!(wrong.parse::<NetworkRange>().is_err(), "{wrong}");
        }
    }
}
