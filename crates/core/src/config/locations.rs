//! Whose events are taken, and which places the row of a tenant may name. Pure: names only.
//!
//! Not promised: that a tenant's identity is true; that is checked where logins are issued.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::StoreConfig;

/// Stands for the tenant in a prefix: one segment of the key.
const TENANT: &str = "{tenant}";

/// A place whose events are taken, and whose objects rows may name. In the settings a table, or in
/// short `bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPrefix {
    /// Name of the bucket.
    pub bucket: String,
    /// Prefix of the keys; empty: every key. A segment `{tenant}` stands for any tenant's name, and
    /// the documents belong to that tenant.
    pub prefix: String,
    /// The tenant of these documents; `None`: none, or the one in `{tenant}`.
    pub tenant: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AllowedTable {
    bucket: String,
    #[serde(default)]
    prefix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AllowedForm {
    Short(String),
    Table(AllowedTable),
}

impl<'de> Deserialize<'de> for AllowedPrefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match AllowedForm::deserialize(deserializer)? {
            AllowedForm::Short(text) => text.parse().map_err(serde::de::Error::custom)?,
            AllowedForm::Table(AllowedTable { bucket, prefix, tenant }) => {
                Self { bucket, prefix, tenant }
            }
        })
    }
}

impl Serialize for AllowedPrefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { bucket, prefix, tenant } = self.clone();
        AllowedTable { bucket, prefix, tenant }.serialize(serializer)
    }
}

impl FromStr for AllowedPrefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (bucket, prefix) = text.trim().split_once('/').ok_or("a place is bucket/prefix")?;
        if bucket.is_empty() {
            return Err("a place is bucket/prefix");
        }
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned(), tenant: None })
    }
}

impl fmt::Display for AllowedPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bucket, self.prefix)
    }
}

/// Attributes of an object that follow from its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowedLocation<'a> {
    /// The tenant of the documents there; `None`: none.
    pub tenant: Option<&'a str>,
}

impl AllowedPrefix {
    /// The prefix for a notification's filter: this pattern up to its first placeholder.
    pub fn literal_prefix(&self) -> &str {
        self.prefix.split(TENANT).next().unwrap_or_default()
    }

    /// Whether the object lies here, and whose it is then.
    pub fn find<'a>(&'a self, bucket: &str, key: &'a str) -> Option<AllowedLocation<'a>> {
        if self.bucket != bucket {
            return None;
        }
        let Some((before, after)) = self.prefix.split_once(TENANT) else {
            let tenant = self.tenant.as_deref();
            return key.starts_with(&self.prefix).then_some(AllowedLocation { tenant });
        };
        let (tenant, _) = key.strip_prefix(before)?.split_once('/')?;
        let rest = key.strip_prefix(before)?.strip_prefix(tenant)?;
        (!tenant.is_empty() && rest.starts_with(after))
            .then_some(AllowedLocation { tenant: Some(tenant) })
    }

    fn collect_problems(&self, problems: &mut Vec<String>) {
        let Some((_, after)) = self.prefix.split_once(TENANT) else { return };
        if !after.starts_with('/') || after.contains(TENANT) {
            problems.push(format!("store.allow: {self}: {{tenant}} is one whole segment, once"));
        }
        if self.tenant.is_some() {
            problems.push(format!("store.allow: {self}: either `tenant` or {{tenant}}"));
        }
    }
}

impl StoreConfig {
    pub(super) fn collect_place_problems(&self, problems: &mut Vec<String>) {
        self.allow.iter().for_each(|place| place.collect_problems(problems));
    }

    /// Whether events about this object are taken, and whose it is then. The first place that fits
    /// says so.
    pub fn find_place<'a>(&'a self, bucket: &str, key: &'a str) -> Option<AllowedLocation<'a>> {
        self.allow.iter().find_map(|place| place.find(bucket, key))
    }

    /// A name in its one form: a key of our own bucket without the bucket's name.
    pub fn plain_name<'a>(&self, name: &'a str) -> &'a str {
        let own = |rest: &'a str| rest.strip_prefix(self.bucket.as_str())?.strip_prefix('/');
        match name.strip_prefix("s3://").and_then(own) {
            Some(key) if !self.bucket.is_empty() => key,
            _ => name,
        }
    }

    /// The name of an object by bucket and key.
    pub fn object_name(&self, bucket: &str, key: &str) -> String {
        if bucket == self.bucket { key.to_owned() } else { format!("s3://{bucket}/{key}") }
    }

    /// Whether the row of a tenant may name this place ([`StoreConfig::plain_name`]): a key of our own
    /// bucket unless `store.allow` says that another tenant's documents lie there, and of other
    /// buckets what `store.allow` lists.
    ///
    /// # Errors
    /// Why not, for operators; the key is not in it.
    pub fn check_place(&self, name: &str, tenant: Option<&str>) -> Result<(), String> {
        let (bucket, key) = match name.strip_prefix("s3://") {
            Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
            None => (self.bucket.as_str(), name),
        };
        match self.find_place(bucket, key) {
            None if bucket == self.bucket => Ok(()),
            None => Err(format!("bucket {bucket} is not in store.allow for this place")),
            Some(AllowedLocation { tenant: None }) => Ok(()),
            Some(AllowedLocation { tenant: whose }) if whose == tenant => Ok(()),
            Some(_) => Err("store.allow gives this place to another tenant".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(allow: &[&str]) -> StoreConfig {
        let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
        StoreConfig { bucket: "own".to_owned(), allow, ..StoreConfig::default() }
    }

    #[test]
    fn the_location_of_an_object_decides_its_tenant() {
        let mut config = config(&["own/inbox/{tenant}/scans/", "up/", "own/documents/"]);
        config.allow.push(AllowedPrefix {
            bucket: "a".to_owned(),
            prefix: String::new(),
            tenant: Some("acme".to_owned()),
        });
        for (bucket, key, expected) in [
            ("own", "inbox/acme/scans/x.pdf", Some(Some("acme"))),
            ("own", "inbox/acme/x.pdf", None),
            ("own", "inbox//scans/x.pdf", None),
            ("own", "documents/x.pdf", Some(None)),
            ("own", "else/x.pdf", None),
            ("up", "x.pdf", Some(None)),
            ("a", "x.pdf", Some(Some("acme"))),
            ("b", "x.pdf", None),
        ] {
            let found = config.find_place(bucket, key).map(|place| place.tenant);
            assert_eq!(found, expected, "{bucket} {key}");
        }
    }

    #[test]
    fn a_row_may_name_only_locations_of_its_own_tenant() {
        let config = config(&["own/inbox/{tenant}/", "up/x/"]);
        for (name, tenant, expected) in [
            ("documents/x.pdf", None, true),
            ("documents/x.pdf", Some("b"), true),
            ("s3://own/documents/x.pdf", Some("b"), true),
            ("inbox/a/x.pdf", Some("a"), true),
            ("inbox/a/x.pdf", Some("b"), false),
            ("s3://own/inbox/a/x.pdf", Some("b"), false),
            ("inbox/a/x.pdf", None, false),
            ("s3://up/x/1.pdf", Some("b"), true),
            ("s3://up/y/1.pdf", Some("b"), false),
            ("s3://any/x.pdf", None, false),
            ("s3://any", None, false),
        ] {
            let answer = config.check_place(config.plain_name(name), tenant);
            assert_eq!(answer.is_ok(), expected, "{name} {tenant:?} {answer:?}");
        }
        assert_eq!(config.plain_name("s3://own/a"), "a");
        assert_eq!(config.plain_name("s3://owner/a"), "s3://owner/a");
        assert_eq!(StoreConfig::default().plain_name("s3:///a"), "s3:///a");
    }

    #[test]
    fn a_placeholder_is_one_whole_segment() {
        for (text, right) in
            [("b/{tenant}/", true), ("b/in-{tenant}", false), ("b/{tenant}", false)]
        {
            let mut problems = Vec::new();
            config(&[text]).collect_place_problems(&mut problems);
            assert_eq!(problems.is_empty(), right, "{text} {problems:?}");
        }
    }
}
