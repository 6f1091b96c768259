//! How a model server is shown who asks: by a key, or by an access token of its cloud.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use docmill_client::access_token::AccessTokenCache;
use docmill_client::access_token::ambient::AmbientVariables;
use docmill_client::access_token::entra::EntraGrant;
use docmill_client::access_token::google::GoogleGrant;
use docmill_core::config::{
    ExtraHeaders, LlmAuth, LlmConfig, LlmProvider, SecretSource, SecretString,
};
use docmill_core::fault::{Error, Fault, Result};

/// The setting that names Google's credentials, for errors.
const GOOGLE_SETTING: &str = "llm.api_key_file";

/// The header in which a vendor wants the key; none for an empty key.
pub(crate) type AuthHeaderFn =
    Box<dyn Fn(&str) -> Result<Option<(HeaderName, HeaderValue)>> + Send + Sync>;

/// Proof of the caller's identity.
pub(super) enum TransportCredential {
    /// A key, which may be replaced at run time, in the vendor's header.
    Key(SecretSource, AuthHeaderFn),
    /// A token in the header `authorization`, and the role to check if it is refused.
    Token(AccessTokenCache, &'static str),
}

impl TransportCredential {
    /// The credential of a configuration; nothing is sent.
    ///
    /// # Errors
    /// The key cannot be read or sent, or there are no credentials for a token.
    pub(super) fn find(config: &LlmConfig, authorised: AuthHeaderFn) -> Result<Self> {
        let variables = AmbientVariables::from_process;
        if config.provider == LlmProvider::Vertex {
            let grant = GoogleGrant::find(config.key_source(), GOOGLE_SETTING, &variables())?;
            let role = "Vertex AI User (roles/aiplatform.user)";
            return Ok(Self::Token(AccessTokenCache::new(grant), role));
        }
        if config.auth == LlmAuth::Entra {
            let grant = EntraGrant::find(EntraGrant::COGNITIVE_SERVICES, &variables())?;
            let role = "Cognitive Services OpenAI User";
            return Ok(Self::Token(AccessTokenCache::new(grant), role));
        }
        let key = config.key_source();
        let current = key.current_secret().map_err(|problem| key_error(&problem))?;
        authorised(current.reveal())?;
        Ok(Self::Key(key, authorised))
    }
}

/// The headers of one request, and the token in them.
pub(super) struct SignedHeaders {
    pub(super) headers: HeaderMap,
    token: Option<SecretString>,
}

impl TransportCredential {
    /// The headers of a request, with the current key or token.
    pub(super) async fn sign_headers(&self, headers: &HeaderMap) -> Result<SignedHeaders> {
        let mut headers = headers.clone();
        let token = match self {
            Self::Key(key, authorised) => {
                let key = key.current_secret().map_err(|problem| key_error(&problem))?;
                headers.extend(authorised(key.reveal())?);
                None
            }
            Self::Token(tokens, _) => {
                let token = tokens.current_token().await?;
                let bearer = secret_header("authorization", &format!("Bearer {}", token.reveal()))?;
                headers.extend([bearer]);
                Some(token)
            }
        };
        Ok(SignedHeaders { headers, token })
    }

    /// Has a refused token renewed before the next request.
    pub(super) async fn note_status(&self, status: StatusCode, sent: &SignedHeaders) {
        if let (Self::Token(tokens, _), Some(token)) = (self, &sent.token)
            && status == StatusCode::UNAUTHORIZED
        {
            tokens.forget_token(token).await;
        }
    }

    /// Names the role to check where a token was taken and refused.
    pub(super) fn name_role(&self, mut error: Error, status: StatusCode) -> Error {
        if let Self::Token(_, role) = self
            && matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
        {
            error.context = format!("{}, and the role {role}", error.context).into();
        }
        error
    }
}

/// Adds the headers of the settings, in the place of those of the same name.
///
/// # Errors
/// The file of one cannot be read, or its content cannot be sent.
pub(super) fn add_extra_headers(extra: &ExtraHeaders, headers: &mut HeaderMap) -> Result<()> {
    let extra = extra.current_headers();
    let extra = extra.map_err(|why| Error::new(Fault::Denied, format!("llm.{why}")))?;
    for (name, value) in extra {
        let parsed = HeaderName::from_bytes(name.as_bytes()).ok();
        let value = HeaderValue::from_str(value.reveal()).ok();
        let (Some(parsed), Some(mut value)) = (parsed, value) else {
            let context = format!("llm.headers: {name} holds characters that cannot be sent");
            return Err(Error::new(Fault::Misconfigured, context));
        };
        value.set_sensitive(true);
        headers.insert(parsed, value);
    }
    Ok(())
}

/// A header whose value is never shown.
///
/// # Errors
/// The value has characters that no header can have.
pub(crate) fn secret_header(name: &'static str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_str(value).map_err(|error| {
        Error::new(Fault::Misconfigured, "llm.api_key holds characters that cannot be sent")
            .with_source(error)
    })?;
    value.set_sensitive(true);
    Ok((HeaderName::from_static(name), value))
}

/// The file of the key cannot be read.
pub(crate) fn key_error(problem: &str) -> Error {
    Error::new(Fault::Denied, format!("llm.api_key_file: {problem}"))
}
