//! Token servers of two clouds: Google's (key file, metadata, Security Token Service, impersonation)
//! and Microsoft Entra's (workload identity, App Service, machine).
//!
//! As strict as the real ones about paths, headers and fields of a form. Signatures are not checked
//! here; the recorded forms let a test do it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::served::{Served, lock};

/// A request for a token of Entra ID that was well formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntraAsked {
    /// By a workload identity.
    Workload {
        /// The cluster's token.
        assertion: String,
    },
    /// By an application with its secret.
    Application {
        /// The service that the token is for.
        scope: String,
    },
    /// By a managed identity.
    Managed {
        /// The client of a user-assigned identity.
        client_id: Option<String>,
    },
}

#[derive(Default)]
struct Asked {
    forms: Vec<BTreeMap<String, String>>,
    impersonated: Vec<Value>,
    entra: Vec<EntraAsked>,
    /// Answers of this status come first.
    faults: Vec<u16>,
}

type Desk = Arc<Mutex<Asked>>;

/// A running server; it stops when this is dropped.
pub struct Server {
    served: Served,
    desk: Desk,
}

impl Server {
    /// Starts on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> io::Result<Self> {
        let desk = Desk::default();
        let router = Router::new()
            .route("/token", post(assertion_grant))
            .route("/v1/token", post(exchange))
            .route("/v1/projects/-/serviceAccounts/{account}", post(impersonate))
            .route("/subject", get(subject))
            .route("/computeMetadata/v1/instance/service-accounts/default/token", get(metadata))
            .route("/{tenant}/oauth2/v2.0/token", post(entra_workload))
            .route("/msi/token", get(entra_app))
            .route("/metadata/identity/oauth2/token", get(entra_machine))
            .with_state(Arc::clone(&desk));
        Ok(Self { served: Served::start(router).await?, desk })
    }

    /// `http://ADDRESS`.
    pub fn endpoint(&self) -> String {
        self.served.endpoint()
    }

    /// The forms that Google's token endpoints were sent, in order.
    pub fn forms(&self) -> Vec<BTreeMap<String, String>> {
        lock(&self.desk).forms.clone()
    }

    /// The bodies of calls of `generateAccessToken`, in order.
    pub fn impersonated(&self) -> Vec<Value> {
        lock(&self.desk).impersonated.clone()
    }

    /// The well-formed requests for tokens of Entra, in order.
    pub fn entra_asked(&self) -> Vec<EntraAsked> {
        lock(&self.desk).entra.clone()
    }

    /// The next requests of Google's token endpoints are answered with these statuses.
    pub fn fail_next(&self, statuses: &[u16]) {
        lock(&self.desk).faults.extend(statuses);
    }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response
}

/// A refusal as OAuth has it; the description must not be passed on.
fn refused(code: &str) -> Response {
    let body = json!({"error": code, "error_description": "refused: it names the credential"});
    answer(StatusCode::BAD_REQUEST, &body)
}

fn granted(token: &str) -> Response {
    let body = json!({"access_token": token, "expires_in": 3600, "token_type": "Bearer"});
    answer(StatusCode::OK, &body)
}

/// The fields of a form, and the fault that comes first.
fn read_form(
    desk: &Desk,
    headers: &HeaderMap,
    body: &str,
) -> Result<BTreeMap<String, String>, Box<Response>> {
    if headers.get("content-type").is_none_or(|it| it != "application/x-www-form-urlencoded") {
        return Err(Box::new(refused("invalid_request")));
    }
    let form: BTreeMap<String, String> =
        form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let mut asked = lock(desk);
    asked.forms.push(form.clone());
    if !asked.faults.is_empty() {
        let status = StatusCode::from_u16(asked.faults.remove(0));
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return Err(Box::new(answer(status, &json!({}))));
    }
    Ok(form)
}

fn field<'a>(form: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    form.get(name).map_or("", String::as_str)
}

async fn assertion_grant(State(desk): State<Desk>, headers: HeaderMap, body: String) -> Response {
    let form = match read_form(&desk, &headers, &body) {
        Ok(form) => form,
        Err(fault) => return *fault,
    };
    if field(&form, "grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
        return refused("unsupported_grant_type");
    }
    let parts: Vec<&str> = field(&form, "assertion").split('.').collect();
    let is_plain = |part: &&str| !part.is_empty() && !part.contains(['=', '+', '/']);
    if parts.len() != 3 || !parts.iter().all(is_plain) {
        return refused("invalid_grant");
    }
    granted("of-the-account")
}

async fn exchange(State(desk): State<Desk>, headers: HeaderMap, body: String) -> Response {
    let form = match read_form(&desk, &headers, &body) {
        Ok(form) => form,
        Err(fault) => return *fault,
    };
    let fixed = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
    ];
    if fixed.iter().any(|(name, value)| field(&form, name) != *value) {
        return refused("invalid_request");
    }
    if !field(&form, "audience").starts_with("//iam.googleapis.com/projects/") {
        return refused("invalid_target");
    }
    let is_known = field(&form, "subject_token_type").starts_with("urn:ietf:params:");
    if !is_known || field(&form, "subject_token").is_empty() {
        return refused("invalid_grant");
    }
    granted("federated")
}

async fn impersonate(
    State(desk): State<Desk>,
    Path(account): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let bearer = headers.get("authorization").and_then(|value| value.to_str().ok());
    let Some((name, "generateAccessToken")) = account.split_once(':') else {
        return answer(StatusCode::NOT_FOUND, &json!({"error": {"status": "NOT_FOUND"}}));
    };
    if bearer != Some("Bearer federated") {
        let error = json!({"error": {"code": 403, "status": "PERMISSION_DENIED"}});
        return answer(StatusCode::FORBIDDEN, &error);
    }
    let Ok(body) = serde_json::from_str(&body) else { return refused("invalid_request") };
    lock(&desk).impersonated.push(body);
    let token = format!("of-{name}");
    let end = json!({"accessToken": token, "expireTime": "2999-01-01T00:00:00Z"});
    answer(StatusCode::OK, &end)
}

async fn subject(headers: HeaderMap) -> Response {
    if headers.get("x-asked-by").is_none_or(|it| it != "docmill") {
        return answer(StatusCode::FORBIDDEN, &json!({}));
    }
    answer(StatusCode::OK, &json!({"value": "subject-of-the-address"}))
}

async fn metadata(headers: HeaderMap) -> Response {
    if headers.get("metadata-flavor").is_none_or(|it| it != "Google") {
        return answer(StatusCode::FORBIDDEN, &json!({}));
    }
    granted("of-the-machine")
}

async fn entra_workload(
    State(desk): State<Desk>,
    Path(tenant): Path<String>,
    body: String,
) -> Response {
    let form: BTreeMap<String, String> =
        form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    if form.contains_key("client_secret") {
        return entra_application(&desk, &tenant, &form);
    }
    let fixed = [
        ("grant_type", "client_credentials"),
        ("scope", "https://cognitiveservices.azure.com/.default"),
        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
    ];
    if tenant != "tenant-1" || fixed.iter().any(|(name, value)| field(&form, name) != *value) {
        return refused("invalid_request");
    }
    let assertion = field(&form, "client_assertion").to_owned();
    if assertion.is_empty() || assertion == "refused" {
        return refused("invalid_client");
    }
    let token = format!("entra-of-{}", field(&form, "client_id"));
    lock(&desk).entra.push(EntraAsked::Workload { assertion });
    let body = json!({"token_type": "Bearer", "expires_in": 3599, "access_token": token});
    answer(StatusCode::OK, &body)
}

/// The token of an application for any service.
fn entra_application(desk: &Desk, tenant: &str, form: &BTreeMap<String, String>) -> Response {
    let scope = field(form, "scope").to_owned();
    let is_form = field(form, "grant_type") == "client_credentials" && scope.ends_with("/.default");
    if tenant != "tenant-1" || !is_form {
        return refused("invalid_request");
    }
    if !field(form, "client_secret").starts_with("secret-") {
        return refused("invalid_client");
    }
    let token = format!("entra-of-{}", field(form, "client_id"));
    lock(desk).entra.push(EntraAsked::Application { scope });
    let body = json!({"token_type": "Bearer", "expires_in": 3599, "access_token": token});
    answer(StatusCode::OK, &body)
}

/// The token of a managed identity, for the right version and resource.
fn managed(desk: &Desk, asked_for: &Uri, version: &str) -> Option<String> {
    let query = asked_for.query().unwrap_or_default();
    let asking: BTreeMap<String, String> =
        form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let is_right = field(&asking, "api-version") == version
        && field(&asking, "resource") == "https://cognitiveservices.azure.com";
    let client_id = asking.get("client_id").cloned();
    let token = format!("entra-of-{}", client_id.as_deref().unwrap_or("system"));
    is_right.then(|| lock(desk).entra.push(EntraAsked::Managed { client_id }))?;
    Some(token)
}

/// App Service says when a token ends.
async fn entra_app(State(desk): State<Desk>, asked_for: Uri, headers: HeaderMap) -> Response {
    if headers.get("x-identity-header").is_none_or(|it| it != "header-1") {
        return answer(StatusCode::UNAUTHORIZED, &json!({}));
    }
    let Some(token) = managed(&desk, &asked_for, "2019-08-01") else {
        return refused("invalid_request");
    };
    let end = SystemTime::now() + Duration::from_secs(3600);
    let end = end.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    answer(StatusCode::OK, &json!({"access_token": token, "expires_on": end.to_string()}))
}

/// A machine's metadata service writes numbers as text.
async fn entra_machine(State(desk): State<Desk>, asked_for: Uri, headers: HeaderMap) -> Response {
    if headers.get("metadata").is_none_or(|it| it != "true") {
        return refused("bad_request_102");
    }
    match managed(&desk, &asked_for, "2018-02-01") {
        Some(token) => {
            answer(StatusCode::OK, &json!({"access_token": token, "expires_in": "86399"}))
        }
        None => refused("invalid_request"),
    }
}
