//! The key file of a service account: a signed assertion (RFC 7523) is exchanged for a token.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair;
use aws_lc_rs::signature::RSA_PKCS1_SHA256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::scope::SCOPE;
use crate::access_token::GrantedToken;
use crate::access_token::server::{TokenAnswer, TokenServer};
use docmill_core::fault::{Error, Result};

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Where tokens come from, if the file does not say.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// Seconds for which an assertion is valid, at most an hour by Google's rule.
const ASSERTION_SECONDS: i64 = 3600;

/// The key of a service account.
pub(super) struct ServiceAccountKey {
    email: String,
    key_id: String,
    token_uri: String,
    pair: KeyPair,
}

impl ServiceAccountKey {
    /// Reads a key file; `None`: it is none.
    pub(super) fn parse(file: &Value) -> Option<Self> {
        let text = |name: &str| file.get(name)?.as_str().map(str::to_owned);
        let der = PrivatePkcs8KeyDer::from_pem_slice(text("private_key")?.as_bytes()).ok()?;
        Some(Self {
            email: text("client_email")?,
            key_id: text("private_key_id").unwrap_or_default(),
            token_uri: text("token_uri").unwrap_or_else(|| TOKEN_URI.to_owned()),
            pair: KeyPair::from_pkcs8(der.secret_pkcs8_der()).ok()?,
        })
    }

    pub(super) async fn request_token(&self, named: &str) -> Result<GrantedToken> {
        let advice = format!("check {named} and that the key of the service account is active");
        let server = TokenServer::new(&self.token_uri, &advice)?;
        let assertion = self.sign_assertion(OffsetDateTime::now_utc())?;
        let request = server.post_form(&[("grant_type", GRANT_TYPE), ("assertion", &assertion)]);
        let answer: TokenAnswer = server.ask_json(request).await?;
        Ok(answer.into_token(std::time::SystemTime::now()))
    }

    /// The assertion (JWT, RS256) that this account asks for a token.
    fn sign_assertion(&self, now: OffsetDateTime) -> Result<String> {
        let issued = now.unix_timestamp();
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.key_id});
        let claims = json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": issued,
            "exp": issued.saturating_add(ASSERTION_SECONDS),
        });
        let parts = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = parts.join(".");
        let mut signature = vec![0; self.pair.public_modulus_len()];
        let random = SystemRandom::new();
        self.pair
            .sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature)
            .map_err(|_unspecified| Error::internal("the key of a service account cannot sign"))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
