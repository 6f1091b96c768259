//! Passwords for Amazon RDS that AWS signs: IAM database authentication.
//!
//! Such a password is a presigned request to `connect`, without its scheme, good for 15 minutes
//! (AWS, "IAM database authentication" of its user guide). RDS takes it over TLS
//! only.

use std::time::{Duration, SystemTime};

use aws_config::{BehaviorVersion, Region};
use aws_sdk_s3::config::{Credentials, ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use docmill_core::fault::{Error, Fault, Result};

/// The longest that AWS allows.
const PASSWORD_LIFETIME: Duration = Duration::from_secs(900);
/// Characters that a query need not escape (RFC 3986, unreserved).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The user of a server that a password is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct DatabaseUser<'a> {
    /// The server's name, as the certificate has it.
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) name: &'a str,
}

/// Signs passwords with credentials of AWS's usual chain.
#[derive(Debug)]
pub(super) struct PasswordSigner {
    credentials: SharedCredentialsProvider,
    region: String,
}

impl PasswordSigner {
    /// `region` may be empty: then AWS's usual chain names it.
    pub(super) async fn new(region: &str) -> Result<Self> {
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if !region.is_empty() {
            loader = loader.region(Region::new(region.to_owned()));
        }
        let shared = loader.load().await;
        let denied = |what: &'static str| Error::new(Fault::Denied, what);
        let region = shared.region().map(|region| region.as_ref().to_owned());
        let region = region.ok_or_else(|| denied("database.iam needs database.region"))?;
        let credentials = shared.credentials_provider();
        let credentials = credentials.ok_or_else(|| denied("database.iam finds no credentials"))?;
        Ok(Self { credentials, region })
    }

    /// A password for this user.
    pub(super) async fn sign_password(&self, user: DatabaseUser<'_>) -> Result<String> {
        let credentials = self.credentials.provide_credentials().await.map_err(|error| {
            let text = "database.iam: AWS gives no credentials; check the role or environment";
            Error::new(Fault::Denied, text).with_source(error)
        })?;
        presign_login(credentials, &self.region, SystemTime::now(), user)
    }
}

fn presign_login(
    credentials: Credentials,
    region: &str,
    now: SystemTime,
    user: DatabaseUser<'_>,
) -> Result<String> {
    let failed = |error: String| Error::internal(format!("signing a password: {error}"));
    let mut settings = SigningSettings::default();
    settings.expires_in = Some(PASSWORD_LIFETIME);
    settings.signature_location = SignatureLocation::QueryParams;
    let identity = credentials.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("rds-db")
        .time(now)
        .settings(settings)
        .build()
        .map_err(|error| failed(error.to_string()))?
        .into();
    let DatabaseUser { host, port, name } = user;
    let name = utf8_percent_encode(name, ESCAPED);
    let place = format!("{host}:{port}/?Action=connect&DBUser={name}");
    let url = format!("https://{place}");
    let headers = std::iter::empty();
    let request = SignableRequest::new("GET", &url, headers, SignableBody::Bytes(&[]))
        .map_err(|error| failed(error.to_string()))?;
    let (instructions, _) =
        sign(request, &parameters).map_err(|error| failed(error.to_string()))?.into_parts();
    let mut token = place;
    for (name, value) in instructions.params() {
        token.push_str(&format!("&{name}={}", utf8_percent_encode(value, ESCAPED)));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Expected values: botocore 1.43.11, `generate_db_auth_token` at the same moment.
    #[test]
    fn a_password_is_the_one_that_awss_own_library_signs() {
        let host = "db.example.eu-central-1.rds.amazonaws.com";
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_248_000); // 2026-11-21 08:00
        let table = [
            (None, "31bbc639b83a7c1e6727f96fdad061912043fbadc4d1d66b67c68cceb5d384e6"),
            (
                Some("IQoJ+token/with=chars"),
                "737595c0423d6a0b31c76264011d6daf9af6d9e17a96f2a19e603b3748086e9a",
            ),
        ];
        for (session, signature) in table {
            let credentials = Credentials::new(
                "AKIDEXAMPLE",
                "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                session.map(str::to_owned),
                None,
                "test",
            );
            let user = DatabaseUser { host, port: 5432, name: "docmill_worker" };
            let token = presign_login(credentials, "eu-central-1", now, user).unwrap();
            let (place, query) = token.split_once("/?").unwrap();
            assert_eq!(place, format!("{host}:5432"));
            let parts: BTreeSet<&str> = query.split('&').collect();
            let mut expected = BTreeSet::from([
                "Action=connect",
                "DBUser=docmill_worker",
                "X-Amz-Algorithm=AWS4-HMAC-SHA256",
                "X-Amz-Credential=AKIDEXAMPLE%2F20261121%2Feu-central-1%2Frds-db%2Faws4_request",
                "X-Amz-Date=20261121T080000Z",
                "X-Amz-Expires=900",
                "X-Amz-SignedHeaders=host",
            ]);
            let signature = format!("X-Amz-Signature={signature}");
            expected.insert(&signature);
            if session.is_some() {
                expected.insert("X-Amz-Security-Token=IQoJ%2Btoken%2Fwith%3Dchars");
            }
            assert_eq!(parts, expected);
        }
    }
}
