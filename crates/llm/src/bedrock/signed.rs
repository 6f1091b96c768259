//! Signed requests to AWS over plain HTTP: Bedrock's control plane, and the bucket through which batches
//! travel.
//!
//! Six operations in all, for which two more SDKs would take minutes to compile. Credentials are asked
//! for at each request, as the SDKs do. Not promised: repetitions, which are the caller's.

use std::time::{Duration, SystemTime};

use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method, Response, Url};
use serde::de::DeserializeOwned;

use super::errors;
use docmill_client::http;
use docmill_core::config::strip_credentials;
use docmill_core::fault::{Error, Fault, Result};

/// Most bytes of an answer that is no file.
const SMALL_CAP: usize = 4 << 20;

/// A service whose requests are signed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignedService {
    /// Bedrock's control plane.
    Bedrock,
    /// The bucket.
    S3,
}

impl SignedService {
    fn signing_name(self) -> &'static str {
        match self {
            Self::Bedrock => "bedrock",
            Self::S3 => "s3",
        }
    }

    fn settings(self) -> SigningSettings {
        let mut settings = SigningSettings::default();
        if self == Self::S3 {
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        settings
    }

    /// A file of hundreds of megabytes is not hashed for its signature: the connection protects it.
    fn signable(self, body: &str) -> SignableBody<'_> {
        match self {
            Self::Bedrock => SignableBody::Bytes(body.as_bytes()),
            Self::S3 => SignableBody::UnsignedPayload,
        }
    }
}

/// A request that is not signed yet.
#[derive(Debug)]
pub(super) struct AwsCall {
    service: SignedService,
    method: Method,
    url: Url,
    body: String,
    longest: Duration,
}

impl AwsCall {
    /// Without a body; it may take so long, its answer's body included.
    pub(super) fn new(service: SignedService, method: Method, url: Url, longest: Duration) -> Self {
        Self { service, method, url, body: String::new(), longest }
    }

    /// The same with a body: JSON, or lines of it.
    pub(super) fn with_body(self, body: String) -> Self {
        Self { body, ..self }
    }
}

/// Signs and sends.
pub(super) struct SignedClient {
    client: Client,
    credentials: SharedCredentialsProvider,
    region: String,
    /// The configured model, for errors.
    model: String,
}

impl SignedClient {
    /// Looks once whether there are credentials.
    ///
    /// # Errors
    /// There are none.
    pub(super) async fn connect(
        credentials: Option<SharedCredentialsProvider>,
        region: String,
        model: String,
        client: Client,
    ) -> Result<Self> {
        let credentials = credentials.ok_or_else(no_credentials_error)?;
        let signed = Self { client, credentials, region, model };
        signed.current_credentials().await?;
        Ok(signed)
    }

    async fn current_credentials(&self) -> Result<aws_credential_types::Credentials> {
        let found = self.credentials.provide_credentials().await;
        found.map_err(|error| no_credentials_error().with_source(error))
    }

    /// Makes a request once.
    ///
    /// # Errors
    /// No answer, or one without a status of success; [`Fault::Missing`] for an object that is not there.
    pub(super) async fn send(&self, call: AwsCall) -> Result<Response> {
        let what = format!("{} {}", call.method, strip_credentials(call.url.as_str()));
        let headers = self.sign_headers(&call).await?;
        let AwsCall { service, method, url, body, longest } = call;
        let mut request = self.client.request(method, url).timeout(longest);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let sent = request.header(CONTENT_TYPE, "application/json").body(body).send().await;
        let response = sent.map_err(|error| http::no_answer_error(error, &what))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if service == SignedService::S3 && status.as_u16() == 404 {
            return Err(Error::new(Fault::Missing, format!("{what}: there is no such object")));
        }
        let named = response.headers().get("x-amzn-errortype").and_then(|it| it.to_str().ok());
        let named = named.map(|code| code.split(':').next().unwrap_or_default().to_owned());
        let body = http::read_capped_body(response, SMALL_CAP).await.ok().flatten();
        let text = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
        let code = named
            .or_else(|| Some(text.split_once("<Code>")?.1.split_once("</Code>")?.0.to_owned()))
            .unwrap_or_default();
        Err(errors::from_batch_answer(&what, &self.model, &code, status.as_u16()))
    }

    /// Makes a request once, and reads the JSON of its answer.
    ///
    /// # Errors
    /// As [`SignedClient::send`]; the answer is of another form.
    pub(super) async fn ask<T: DeserializeOwned>(&self, call: AwsCall) -> Result<T> {
        let what = format!("{} {}", call.method, call.url.path());
        let response = self.send(call).await?;
        let body = http::read_capped_body(response, SMALL_CAP).await;
        let body = body.map_err(|error| http::no_answer_error(error, &what))?;
        let form = || Error::transient(format!("{what}: an answer of another form"));
        serde_json::from_slice(&body.ok_or_else(form)?).map_err(|_| form())
    }

    async fn sign_headers(&self, call: &AwsCall) -> Result<Vec<(String, String)>> {
        let failed = |what: &str| Error::internal(format!("a request cannot be signed: {what}"));
        let identity = self.current_credentials().await?.into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(call.service.signing_name())
            .time(SystemTime::now())
            .settings(call.service.settings())
            .build()
            .map_err(|_| failed("a part is missing"))?
            .into();
        let body = call.service.signable(&call.body);
        let no_headers = std::iter::empty();
        let request =
            SignableRequest::new(call.method.as_str(), call.url.as_str(), no_headers, body)
                .map_err(|_| failed("its address is none"))?;
        let (signed, _) =
            sign(request, &parameters).map_err(|_| failed("its parts do not fit"))?.into_parts();
        Ok(signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

fn no_credentials_error() -> Error {
    Error::new(
        Fault::Denied,
        "no AWS credentials for Bedrock's batches: give the task or pod a role that may use the bucket \
         and start batches, or set llm.batch.bedrock.access_key_id",
    )
}
