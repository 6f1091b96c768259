//! BlobForge's variables for what all workers of a bucket share: held against the bucket, never
//! passed over in silence.

use anyhow::bail;

use docmill_compat::bucket::{BlobForgeBucket, BucketSettings};

/// The variables, and the settings of the bucket that took their place.
const SHARED: [(&str, &str); 4] = [
    ("BLOBFORGE_MAX_RETRIES", "max_retries"),
    ("BLOBFORGE_HEARTBEAT_INTERVAL", "heartbeat_interval"),
    ("BLOBFORGE_STALE_TIMEOUT_MINUTES", "stale_timeout_minutes"),
    ("BLOBFORGE_CONVERSION_TIMEOUT", "conversion_timeout"),
];

/// Accepts a variable that equals the bucket's setting, and refuses any other value: workers that
/// disagree about abandoned locks take each other's documents.
///
/// # Errors
/// A variable with another value, with the command that changes the setting for all. Store errors.
pub(super) async fn check_variables(
    bucket: &BlobForgeBucket,
    variables: impl Iterator<Item = (String, String)>,
) -> anyhow::Result<()> {
    let given: Vec<(&str, &str, String)> = variables
        .filter(|(_, value)| !value.trim().is_empty())
        .filter_map(|(name, value)| {
            let (variable, setting) = SHARED.iter().find(|(variable, _)| *variable == name)?;
            Some((*variable, *setting, value))
        })
        .collect();
    if given.is_empty() {
        return Ok(());
    }
    let settings = BucketSettings::load(bucket).await?;
    let shared = serde_json::to_value(&settings)?;
    for (variable, setting, value) in given {
        let own = shared.get(setting).and_then(serde_json::Value::as_u64);
        if value.trim().parse::<u64>().ok() != own || own.is_none() {
            bail!(
                "{variable} is {}, but all workers of this bucket go by its own `{setting}`, {}: \
                 change it for all with `docmill bucket config --set {setting}=NUMBER`, and unset \
                 {variable}",
                value.trim().escape_debug(),
                own.unwrap_or_default()
            );
        }
    }
    Ok(())
}
