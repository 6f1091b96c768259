//! The calls.

use std::net::IpAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url, redirect};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;
use uuid::Uuid;

use super::answers::{
    ChangeListing, ChangeReceipt, DecisionReceipt, EndedResult, ExportListing, IngestionListing,
    IngestionView, OpenReview, QueuedReview, RejectionListing, RejectionReceipt, ReviewListing,
    UndoListing, UndoReceipt, UploadReceipt,
};
use super::failure::{ApiFailure, ApiProblem};
use super::pace::{RetryPace, read_pause};
use super::requests::{
    DecisionTerms, DocumentUpload, IngestionQuery, IngestionSelection, ReviewChoice, ReviewQuery,
};

/// One call with its answer; the service itself ends a connection after 30 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(35);
/// Until a connection has come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest that the service is asked to wait for the end of an ingestion, in seconds.
const MAX_WAIT_S: u64 = 20;
/// A longer answer is no transcript of docmill's.
const MAX_ANSWER_BYTES: usize = 256 << 20;

/// A service of docmill, and the caller's token. Cheap to clone: clones share their connections.
#[derive(Debug, Clone)]
pub struct ApiClient {
    http: Client,
    base: Url,
    /// Marked as secret: it is in no debug output.
    token: HeaderValue,
    pace: RetryPace,
}

/// One request, which can be sent again.
struct ApiCall {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

/// An answer to a call that was done.
struct ApiAnswer {
    headers: HeaderMap,
    body: Bytes,
}

/// How one sending of a call went wrong.
struct FailedRequest {
    failure: ApiFailure,
    /// Whether another sending may fare better.
    may_pass: bool,
    /// The pause that the service wants.
    told: Option<Duration>,
}

impl ApiClient {
    /// `address` is where the pages of `docmill web` are, e.g. `https://ops.example.com/docmill`.
    ///
    /// # Errors
    /// Misused: an address that is none, a token with signs that none has, no TLS on this machine.
    pub fn new(address: &str, token: &str) -> Result<Self, ApiFailure> {
        let misused = |text: &str| ApiFailure::Misused(text.to_owned());
        let base = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base = base.ok_or_else(|| misused("the address is no http or https address"))?;
        let mut token = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| misused("the token has characters that cannot be sent"))?;
        token.set_sensitive(true);
        let mut builder = Client::builder();
        if is_loopback(&base) {
            // A proxy would look for it on its own machine.
            builder = builder.no_proxy();
        }
        let http = builder
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            .user_agent(concat!("docmill-api-client/", env!("CARGO_PKG_VERSION")))
            // The token is for this service and no other.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|_| misused("no TLS on this machine; are root certificates installed?"))?;
        Ok(Self { http, base, token, pace: RetryPace::default() })
    }

    /// Repeats at another pace.
    #[must_use]
    pub fn with_pace(mut self, pace: RetryPace) -> Self {
        self.pace = pace;
        self
    }

    /// Hands a document in. The same bytes of a tenant are one document: handed in again, its receipt
    /// names the ingestion that is there.
    ///
    /// # Errors
    /// `refused` (no document that can be read), `too_large`, `idempotency_key_reused` and others.
    pub async fn submit_document(
        &self,
        upload: &DocumentUpload,
    ) -> Result<UploadReceipt, ApiFailure> {
        let mut call = self.build_call(Method::POST, &["documents"], &upload.parameters())?;
        // With a key a repetition is answered as the first would have been.
        let key = upload.idempotency_key.clone();
        let key = key.unwrap_or_else(|| Uuid::new_v4().to_string());
        let key = HeaderValue::from_str(&key)
            .map_err(|_| ApiFailure::Misused("the idempotency key is not plain text".into()))?;
        call.headers.insert(HeaderName::from_static("idempotency-key"), key);
        call.body = upload.bytes.clone();
        self.send_for(&call).await
    }

    /// The view of an ingestion; of a document's id, its newest.
    ///
    /// # Errors
    /// `not_found`, and what any call may end in.
    pub async fn find_ingestion(&self, id: Uuid) -> Result<IngestionView, ApiFailure> {
        self.get(&["ingestions", &id.to_string()], &[]).await
    }

    /// Waits until an ingestion has ended, asking the service to say so at once.
    ///
    /// # Errors
    /// [`ApiFailure::StillOpen`] after `within`; it goes on all the same.
    pub async fn wait_for_end(
        &self,
        id: Uuid,
        within: Duration,
    ) -> Result<IngestionView, ApiFailure> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // Whole seconds, rounded up: less than one would be asked for over and over.
            let wait = left.as_millis().div_ceil(1000).min(MAX_WAIT_S.into()).to_string();
            let call =
                self.build_call(Method::GET, &["ingestions", &id.to_string()], &[("wait", wait)])?;
            // Repetitions and all; the answer itself takes a moment.
            let asking = self.send_for::<IngestionView>(&call);
            match tokio::time::timeout(left + CONNECT_TIMEOUT, asking).await {
                Ok(Ok(found)) if found.status.has_ended() => return Ok(found),
                Ok(Err(failure)) => return Err(failure),
                Ok(Ok(_)) if !left.is_zero() => {}
                Ok(Ok(_)) | Err(_) => return Err(ApiFailure::StillOpen { id, within }),
            }
        }
    }

    /// The result of an ended ingestion.
    ///
    /// # Errors
    /// `conflict` while it is in progress.
    pub async fn load_result(&self, id: Uuid) -> Result<EndedResult, ApiFailure> {
        self.get(&["ingestions", &id.to_string(), "result"], &[]).await
    }

    /// The text of an ingestion's pages with boxes and confidences, as
    /// docs/reference/transcripts.md says.
    ///
    /// # Errors
    /// `conflict` while there is none.
    pub async fn load_transcript(&self, id: Uuid) -> Result<Value, ApiFailure> {
        self.get(&["ingestions", &id.to_string(), "transcript"], &[]).await
    }

    /// A page of ingestions, newest first; the next with its `next_cursor` as `cursor`.
    ///
    /// # Errors
    /// `bad_request`, and what any call may end in.
    pub async fn list_ingestions(
        &self,
        query: &IngestionQuery,
    ) -> Result<IngestionListing, ApiFailure> {
        self.get(&["ingestions"], &query.parameters()).await
    }

    /// Works on an ingestion once more.
    ///
    /// # Errors
    /// `forbidden` for tokens that are no operator's.
    pub async fn retry_ingestion(&self, id: Uuid, why: &str) -> Result<ChangeReceipt, ApiFailure> {
        let path = ["ingestions", &id.to_string(), "retry"];
        self.post(&path, &json!({ "why": why }), None).await
    }

    /// Withdraws an ingestion that has not ended.
    ///
    /// # Errors
    /// `forbidden` for tokens that are no operator's.
    pub async fn cancel_ingestion(&self, id: Uuid, why: &str) -> Result<ChangeReceipt, ApiFailure> {
        let path = ["ingestions", &id.to_string(), "cancel"];
        self.post(&path, &json!({ "why": why }), None).await
    }

    /// Changes up to 500 ingestions: `retry`, `cancel` or a priority. Of a filter `limit` does not count.
    ///
    /// # Errors
    /// `forbidden` for tokens that are no operator's; `bad_request` for a filter without a status.
    pub async fn change_ingestions(
        &self,
        chosen: &IngestionSelection,
        change: &str,
        why: &str,
    ) -> Result<ChangeListing, ApiFailure> {
        let body = chosen.body(change, why);
        self.post(&["ingestions", "change"], &body, None).await
    }

    /// The data of up to 500 documents of the query's kind, newest first; its `limit` does not count.
    ///
    /// # Errors
    /// `bad_request` without a kind; `refused` if they are larger than 32 MiB together.
    pub async fn export_ingestions(
        &self,
        query: &IngestionQuery,
    ) -> Result<ExportListing, ApiFailure> {
        let query = IngestionQuery { limit: None, ..query.clone() };
        let mut asked = query.parameters();
        asked.push(("form", "json".to_owned()));
        self.get(&["ingestions", "export"], &asked).await
    }

    /// A page of what waits for a person, longest first.
    ///
    /// # Errors
    /// `bad_request`, and what any call may end in.
    pub async fn list_reviews(&self, query: &ReviewQuery) -> Result<ReviewListing, ApiFailure> {
        self.get(&["reviews"], &query.parameters()).await
    }

    /// Rejects up to 200 documents as they were listed. Of those that changed or are open at another
    /// reviewer nothing is written.
    ///
    /// # Errors
    /// `refused` without a reason; `forbidden` for tokens that are no reviewer's.
    pub async fn reject_reviews(
        &self,
        listed: &[QueuedReview],
        why: &str,
    ) -> Result<Vec<RejectionReceipt>, ApiFailure> {
        let seen = listed.iter().map(|one| {
            let version = one.since.format(&Rfc3339).unwrap_or_default();
            json!({ "document_id": one.document_id, "version": version })
        });
        let body = json!({ "documents": seen.collect::<Vec<_>>(), "why": why });
        let done: RejectionListing = self.post(&["reviews", "reject"], &body, None).await?;
        Ok(done.items)
    }

    /// A document as a reviewer sees it, in the version that a decision is then about.
    ///
    /// # Errors
    /// `not_found`, and what any call may end in.
    pub async fn open_review(&self, document_id: Uuid) -> Result<OpenReview, ApiFailure> {
        let path = ["reviews", &document_id.to_string()];
        let answer = self.send(&self.build_call(Method::GET, &path, &[])?).await?;
        let version = answer.headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
        let version = version.map(str::to_owned);
        Ok(OpenReview {
            view: read_json(&answer.body)?,
            version: version
                .ok_or_else(|| ApiFailure::Unreadable("a review without its version".to_owned()))?,
        })
    }

    /// Decides about a document as it was seen.
    ///
    /// # Errors
    /// `version_changed`: another reviewer was faster, or this very call had been done before its
    /// answer was lost: open it again. `held`: another reviewer has it open. `refused`: the data
    /// does not fit the kind.
    pub async fn decide_review(
        &self,
        review: &OpenReview,
        choice: &ReviewChoice,
        terms: &DecisionTerms,
    ) -> Result<DecisionReceipt, ApiFailure> {
        let path = ["reviews", &review.view.document_id.to_string(), "decision"];
        self.post(&path, &choice.body(terms), Some(&review.version)).await
    }

    /// Takes back what this token decided last about a document, while that can be undone.
    ///
    /// # Errors
    /// `conflict` or `refused` where nothing can be undone.
    pub async fn undo_decision(&self, document_id: Uuid) -> Result<DecisionReceipt, ApiFailure> {
        self.post(&["reviews", &document_id.to_string(), "undo"], &json!({}), None).await
    }

    /// Takes back what this token decided last about up to 200 documents, e.g. one rejection of them
    /// all. Of those that changed since nothing is written.
    ///
    /// # Errors
    /// `forbidden` for tokens that are no reviewer's.
    pub async fn undo_decisions(
        &self,
        documents: &[Uuid],
        why: &str,
    ) -> Result<Vec<UndoReceipt>, ApiFailure> {
        let body = json!({ "documents": documents, "why": why });
        let done: UndoListing = self.post(&["reviews", "undo"], &body, None).await?;
        Ok(done.items)
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        asked: &[(&'static str, String)],
    ) -> Result<T, ApiFailure> {
        self.send_for(&self.build_call(Method::GET, path, asked)?).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &Value,
        version: Option<&str>,
    ) -> Result<T, ApiFailure> {
        let mut call = self.build_call(Method::POST, path, &[])?;
        call.body = body.to_string().into();
        let json = HeaderValue::from_static("application/json");
        call.headers.insert(header::CONTENT_TYPE, json);
        if let Some(version) = version {
            let version = HeaderValue::from_str(version).map_err(|_| {
                ApiFailure::Misused("the version is not one of the service's".into())
            })?;
            call.headers.insert(header::IF_MATCH, version);
        }
        self.send_for(&call).await
    }

    fn build_call(
        &self,
        method: Method,
        path: &[&str],
        asked: &[(&'static str, String)],
    ) -> Result<ApiCall, ApiFailure> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut segments) => {
                segments.pop_if_empty().extend(["api", "v1"]).extend(path);
            }
            Err(()) => return Err(ApiFailure::Misused("the address has no path".to_owned())),
        }
        if !asked.is_empty() {
            url.query_pairs_mut().extend_pairs(asked);
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, self.token.clone());
        Ok(ApiCall { method, url, headers, body: Bytes::new() })
    }

    async fn send_for<T: DeserializeOwned>(&self, call: &ApiCall) -> Result<T, ApiFailure> {
        read_json(&self.send(call).await?.body)
    }

    /// Sends a call until it is answered, or the pace says that it was the last time.
    async fn send(&self, call: &ApiCall) -> Result<ApiAnswer, ApiFailure> {
        let mut failed = 0;
        loop {
            let FailedRequest { failure, may_pass, told } = match self.send_once(call).await {
                Ok(answer) => return Ok(answer),
                Err(tried) => tried,
            };
            failed += 1;
            let pause = self.pace.next_pause(failed, told, fastrand::f64());
            match pause.filter(|_| may_pass) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(failure),
            }
        }
    }

    async fn send_once(&self, call: &ApiCall) -> Result<ApiAnswer, FailedRequest> {
        let request = self.http.request(call.method.clone(), call.url.clone());
        let request = request.headers(call.headers.clone()).body(call.body.clone());
        // The address may name documents.
        let unreachable = |error: reqwest::Error| FailedRequest {
            failure: ApiFailure::Unreachable(error.without_url()),
            may_pass: true,
            told: None,
        };
        let response = request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = match read_capped(response).await.map_err(unreachable)? {
            Some(body) => body,
            None => {
                return Err(FailedRequest::final_with(ApiFailure::Unreadable("too long".into())));
            }
        };
        if status.is_success() {
            return Ok(ApiAnswer { headers, body });
        }
        let told = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let told = read_pause(told);
        let may_pass = matches!(status.as_u16(), 429 | 503);
        let failure = match serde_json::from_slice::<ApiProblem>(&body) {
            Ok(problem) => ApiFailure::Problem(problem),
            Err(_) => ApiFailure::Unreadable(format!("status {}", status.as_u16())),
        };
        Err(FailedRequest { failure, may_pass, told })
    }
}

impl FailedRequest {
    fn final_with(failure: ApiFailure) -> Self {
        Self { failure, may_pass: false, told: None }
    }
}

fn is_loopback(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn read_capped(mut response: Response) -> reqwest::Result<Option<Bytes>> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body.freeze()))
}

fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiFailure> {
    serde_json::from_slice(body).map_err(|error| {
        // The parser's own words may quote what was read of a document.
        let (line, column) = (error.line(), error.column());
        ApiFailure::Unreadable(format!("at line {line}, column {column}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_sub_path_and_parameters_are_escaped() {
        for address in ["https://ops.example.com/docmill", "https://ops.example.com/docmill/"] {
            let client = ApiClient::new(address, "dm_1").unwrap();
            let asked = [("name", "a b&c=d/é.pdf".to_owned())];
            let call = client.build_call(Method::POST, &["documents"], &asked).unwrap();
            let expected = "https://ops.example.com/docmill/api/v1/documents\
                            ?name=a+b%26c%3Dd%2F%C3%A9.pdf";
            assert_eq!(call.url.as_str(), expected);
        }
    }

    #[test]
    fn a_service_of_this_machine_is_looked_for_on_it_and_no_other_is() {
        for (address, here) in [
            ("http://127.0.0.1:8090/x", true),
            ("http://[::1]:8090", true),
            ("http://localhost", true),
            ("https://localhost.example.com", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(address).unwrap()), here, "{address}");
        }
    }

    #[test]
    fn a_token_is_in_no_debug_output_and_nonsense_is_refused_at_once() {
        let client = ApiClient::new("http://127.0.0.1:1", "dm_secret").unwrap();
        assert!(!format!("{client:?}").contains("secret"));
        for (address, token) in [("ftp://x", "t"), ("x", "t"), ("http://x", "a\nb")] {
            let refused = ApiClient::new(address, token);
            assert!(matches!(refused, Err(ApiFailure::Misused(_))), "{address}");
        }
    }
}
