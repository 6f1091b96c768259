//! The portal of AWS IAM Identity Center: `GetRoleCredentials` for a session's token (botocore's model
//! `sso/2019-06-10`).
//!
//! Strict about path, query and the header of the token. Not implemented: lists of accounts and roles,
//! the renewal of tokens.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::served::Served;

/// The session's token that is taken.
pub const TOKEN: &str = "token-of-the-session";
/// The access key that is given for it.
pub const ACCESS_KEY_ID: &str = "AKIAPORTAL";
/// The account and the role that there are.
pub const ACCOUNT: &str = "123456789012";
/// The role of that account.
pub const ROLE: &str = "reader";
/// The end of the year 2099, in milliseconds.
const EXPIRATION: u64 = 4_102_444_799_000;

/// A running portal; it stops when this is dropped.
pub struct Portal {
    served: Served,
    given: Arc<AtomicUsize>,
}

impl Portal {
    /// Starts on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> io::Result<Self> {
        let given = Arc::<AtomicUsize>::default();
        let state = Arc::clone(&given);
        let router = Router::new().route("/federation/credentials", get(give)).with_state(state);
        Ok(Self { served: Served::start(router).await?, given })
    }

    /// The value for `AWS_ENDPOINT_URL_SSO`.
    pub fn endpoint(&self) -> String {
        self.served.endpoint()
    }

    /// How often credentials were given.
    pub fn given(&self) -> usize {
        self.given.load(Ordering::SeqCst)
    }
}

async fn give(
    State(given): State<Arc<AtomicUsize>>,
    uri: Uri,
    headers: HeaderMap,
) -> (StatusCode, Json<Value>) {
    let token = headers.get("x-amz-sso_bearer_token").and_then(|value| value.to_str().ok());
    if token != Some(TOKEN) {
        return refuse(StatusCode::UNAUTHORIZED, "Session token not found or invalid");
    }
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let query: BTreeMap<_, _> = query.collect();
    if query.get("account_id").is_none_or(|named| named != ACCOUNT)
        || query.get("role_name").is_none_or(|named| named != ROLE)
    {
        return refuse(StatusCode::FORBIDDEN, "No access");
    }
    given.fetch_add(1, Ordering::SeqCst);
    let credentials = json!({
        "accessKeyId": ACCESS_KEY_ID, "secretAccessKey": "secret", "sessionToken": "session",
        "expiration": EXPIRATION,
    });
    (StatusCode::OK, Json(json!({"roleCredentials": credentials})))
}

fn refuse(status: StatusCode, message: &str) -> (StatusCode, Json<Value>) {
    (status, Json(json!({"message": message})))
}
