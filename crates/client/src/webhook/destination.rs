//! Where messages may be sent: not to what only this machine or its network can reach.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::Pin;

use reqwest::Url;

use docmill_core::config::{NetworkRange, WebhooksConfig};

/// Addresses of a name, once they are found.
type FoundAddresses = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a name.
pub trait NameResolver: Send + Sync + 'static {
    /// All addresses that a connection to `name` may go to.
    fn look_up(&self, name: &str) -> FoundAddresses;
}

/// As the system resolves names.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl NameResolver for SystemResolver {
    fn look_up(&self, name: &str) -> FoundAddresses {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// An address to which nothing is sent, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForbiddenDestination(String);

impl fmt::Display for ForbiddenDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ForbiddenDestination {}

/// Which addresses may be sent to.
#[derive(Debug, Clone, Default)]
pub struct DestinationPolicy {
    /// Networks that are allowed although they are private; never those of a cloud's metadata.
    pub allowed: Vec<NetworkRange>,
    /// Whether `http://` is allowed.
    pub allow_http: bool,
}

/// Sources of a cloud machine's credentials: always refused.
const METADATA: [NetworkRange; 4] = [
    NetworkRange::v4(Ipv4Addr::new(169, 254, 0, 0), 16),
    NetworkRange::v4(Ipv4Addr::new(100, 100, 100, 200), 32),
    NetworkRange::v6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    NetworkRange::v6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
];

/// Ranges that the Internet does not route, by the registries of special addresses (IANA).
const PRIVATE_V4: [(Ipv4Addr, u8); 14] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Of IPv6 only what is routed at all, less what leads to IPv4 or is for documentation.
const PUBLIC_V6: NetworkRange = NetworkRange::v6(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const SPECIAL_V6: [NetworkRange; 4] = [
    NetworkRange::v6(Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    NetworkRange::v6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    NetworkRange::v6(Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    NetworkRange::v6(Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

impl DestinationPolicy {
    /// The policy of these settings, which hold for hooks as well.
    pub fn of(config: &WebhooksConfig) -> Self {
        Self { allowed: config.allowed_networks.clone(), allow_http: config.allow_http }
    }

    /// Whether the address may be asked for as it is written; what its name leads to is for
    /// [`DestinationPolicy::check_address`].
    ///
    /// # Errors
    /// Why it may not be.
    pub fn check_url(&self, url: &Url) -> Result<(), ForbiddenDestination> {
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http => {}
            _ => return forbid("only https:// is allowed (webhooks.allow_http)"),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return forbid("a user or password in the address is not allowed");
        }
        // Numeric hosts of any form became addresses when the URL was parsed.
        let Some(host) = url.host_str() else { return forbid("the address has no host") };
        match host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => self.check_address(address),
            Err(_) => Ok(()),
        }
    }

    /// Whether a connection to this address may be opened.
    ///
    /// # Errors
    /// Why it may not be.
    pub fn check_address(&self, address: IpAddr) -> Result<(), ForbiddenDestination> {
        let address = address.to_canonical();
        if METADATA.iter().any(|range| range.contains(address)) {
            return forbid(&format!(
                "{address} is an address of the machine's own link: nothing is sent there"
            ));
        }
        if self.allowed.iter().any(|range| range.contains(address)) || is_public(address) {
            return Ok(());
        }
        forbid(&format!(
            "{address} is no address of the Internet (webhooks.allowed_networks): nothing is sent there"
        ))
    }
}

fn forbid(why: &str) -> Result<(), ForbiddenDestination> {
    Err(ForbiddenDestination(why.to_owned()))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => {
            let private =
                |(base, bits): &(Ipv4Addr, u8)| NetworkRange::v4(*base, *bits).contains(address);
            !PRIVATE_V4.iter().any(private)
        }
        IpAddr::V6(_) => {
            PUBLIC_V6.contains(address) && !SPECIAL_V6.iter().any(|range| range.contains(address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(policy: &DestinationPolicy, url: &str) -> bool {
        policy.check_url(&url.parse().unwrap()).is_ok()
    }

    #[test]
    #[rustfmt::skip]
    fn private_addresses_are_refused_in_every_notation() {
        let policy = DestinationPolicy::default();
        for url in [
            "https://127.0.0.1/", "https://127.1/", "https://2130706433/", "https://0x7f.1/",
            "https://0177.0.0.1/", "https://0.0.0.0/", "https://10.1.2.3/", "https://100.64.0.1/",
            "https://169.254.169.254/latest/meta-data", "https://172.31.0.1/",
            "https://192.168.0.1/", "https://192.0.0.192/", "https://198.18.0.1/",
            "https://224.0.0.1/", "https://255.255.255.255/", "https://[::]/", "https://[::1]/",
            "https://[::ffff:7f00:1]/", "https://[::ffff:10.0.0.1]/", "https://[fc00::1]/",
            "https://[fe80::1]/", "https://[fd00:ec2::254]/", "https://[64:ff9b::a9fe:a9fe]/",
            "https://[2002:7f00:1::]/", "https://[2001:db8::1]/", "https://[ff02::1]/",
            "https://[5f00::1]/", "https://[100::1]/", "https://100.100.100.200/",
            "http://example.com/", "ftp://example.com/", "https://user@example.com/",
            "https://user:secret@example.com/", "file:///etc/passwd",
        ] {
            assert!(!allows(&policy, url), "{url} is allowed");
        }
        for url in
            ["https://example.com/x?y=z", "https://93.184.216.34/", "https://[2606:4700::1]/"]
        {
            assert!(allows(&policy, url), "{url} is refused");
        }
    }

    #[test]
    fn a_private_network_is_reached_only_if_it_is_allowed_and_a_clouds_metadata_never() {
        let every = ["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        let policy = DestinationPolicy { allowed: every.to_vec(), allow_http: true };
        for url in ["http://127.0.0.1:8080/", "https://10.0.0.1/", "http://[::1]/"] {
            assert!(allows(&policy, url), "{url} is refused");
        }
        for url in ["http://169.254.169.254/", "http://[fd00:ec2::254]/", "http://[fe80::1]/"] {
            assert!(!allows(&policy, url), "{url} is allowed");
        }
    }
}
