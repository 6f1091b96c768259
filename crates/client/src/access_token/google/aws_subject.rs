//! The subject token of a workload on AWS: a signed request for `GetCallerIdentity`, which Google
//! sends in our place.
//!
//! Contract: google-auth's `aws.py`. Credentials and region come from AWS's own chain (container,
//! pod, instance, profile, variables), not from the addresses in the configuration.

use std::time::SystemTime;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;
use serde_json::json;
use tokio::sync::OnceCell;

use docmill_core::fault::{Error, Fault, Result};

/// The header that binds the request to one pool of identities.
const TARGET_HEADER: &str = "x-goog-cloud-target-resource";
/// The characters that stay as they are in the token.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// The subject token for an audience; `verification` is the address of `GetCallerIdentity`, in
/// which `{region}` is replaced.
///
/// # Errors
/// [`Fault::Denied`]: there are no AWS credentials, or no region.
pub(super) async fn sign_identity(
    aws: &OnceCell<SdkConfig>,
    verification: &str,
    audience: &str,
) -> Result<String> {
    let config = aws.get_or_init(load_chain).await;
    let Some(region) = config.region().map(AsRef::as_ref) else {
        return Err(no_identity_error("no AWS region: set AWS_REGION"));
    };
    let Some(provider) = config.credentials_provider() else {
        return Err(no_identity_error("no AWS credentials"));
    };
    let credentials = provider.provide_credentials().await;
    let credentials =
        credentials.map_err(|error| no_identity_error("no AWS credentials").with_source(error))?;
    let address = verification.replace("{region}", region);
    let request = IdentityRequest { address: &address, region, audience };
    request.sign(credentials, SystemTime::now())
}

async fn load_chain() -> SdkConfig {
    aws_config::load_defaults(BehaviorVersion::latest()).await
}

fn no_identity_error(why: &str) -> Error {
    let context = format!("no subject token for workload identity federation: {why}");
    Error::new(Fault::Denied, context)
}

/// The request that proves who calls.
struct IdentityRequest<'a> {
    address: &'a str,
    region: &'a str,
    audience: &'a str,
}

impl IdentityRequest<'_> {
    /// The signed request as Google wants it: JSON, percent-encoded.
    fn sign(&self, credentials: Credentials, now: SystemTime) -> Result<String> {
        let unsigned = |error: Box<dyn std::error::Error + Send + Sync>| {
            Error::internal("a request to AWS cannot be signed").with_source(error)
        };
        let host = Url::parse(self.address).ok();
        let host = host.as_ref().and_then(Url::host_str).unwrap_or_default().to_owned();
        let identity = credentials.into();
        let params = v4::SigningParams::builder()
            .identity(&identity)
            .region(self.region)
            .name("sts")
            .time(now)
            .settings(SigningSettings::default())
            .build()
            .map_err(|error| unsigned(error.into()))?
            .into();
        let headers = [("host", host.as_str()), (TARGET_HEADER, self.audience)];
        let body = SignableBody::Bytes(&[]);
        let request = SignableRequest::new("POST", self.address, headers.iter().copied(), body)
            .map_err(|error| unsigned(error.into()))?;
        let (signed, _) =
            sign(request, &params).map_err(|error| unsigned(error.into()))?.into_parts();
        let own = headers.iter().map(|(key, value)| json!({"key": key, "value": value}));
        let added = signed.headers().map(|(key, value)| json!({"key": key, "value": value}));
        let all: Vec<_> = own.chain(added).collect();
        let request = json!({"url": self.address, "method": "POST", "headers": all});
        Ok(utf8_percent_encode(&request.to_string(), ESCAPED).to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use percent_encoding::percent_decode_str;
    use serde_json::Value;

    use super::*;

    /// The signature was computed by botocore 1.43's `SigV4Auth` for the same request.
    #[test]
    fn the_signed_request_is_the_one_that_awss_own_library_signs() {
        let credentials =
            Credentials::new("AKIDEXAMPLE", "secret", Some("session".to_owned()), None, "test");
        let request = IdentityRequest {
            address: "https://sts.eu-central-1.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
            region: "eu-central-1",
            audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/aws",
        };
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let token = request.sign(credentials, now).unwrap();
        assert!(!token.contains(['"', '{', ' ', ':']), "{token}");
        let text = percent_decode_str(&token).decode_utf8().unwrap();
        let sent: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&sent["method"], &sent["url"]), (&json!("POST"), &json!(request.address)));
        let header = |name: &str| {
            let all = sent["headers"].as_array().unwrap();
            let found = all.iter().find(|header| header["key"] == name).unwrap();
            found["value"].as_str().unwrap().to_owned()
        };
        assert_eq!(header(TARGET_HEADER), request.audience);
        assert_eq!(header("x-amz-security-token"), "session");
        assert_eq!(header("host"), "sts.eu-central-1.amazonaws.com");
        let date = header("x-amz-date");
        let authorization = header("authorization");
        let signed =
            "SignedHeaders=host;x-amz-date;x-amz-security-token;x-goog-cloud-target-resource";
        assert!(authorization.contains(signed), "{authorization}");
        assert_eq!(
            (date.as_str(), authorization.rsplit('=').next().unwrap()),
            (
                "20261118T110640Z",
                "eafd7a227a04e3bb02480b95ad0a09d9afc133442726caf2862d07f4e306763c",
            )
        );
    }
}
