//! Requests to a vendor beside those for a reply: files, batches, lists.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Body, Method, RequestBuilder, Response, Url};

use super::{ApiErrorBody, ChatTransport, SMALL_CAP, join_url};
use docmill_client::http;
use docmill_core::config::strip_credentials;
use docmill_core::fault::{Error, Fault, Result};
use serde::de::DeserializeOwned;

/// One request below the vendor's address.
pub(crate) struct VendorRequest<'a> {
    method: Method,
    path: &'a str,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    /// The part before the path of the configured address.
    above: &'static str,
    body: Option<Body>,
    content_type: String,
    longest: Option<Duration>,
}

impl<'a> VendorRequest<'a> {
    pub(crate) fn new(method: Method, path: &'a str) -> Self {
        let content_type = "application/json".to_owned();
        let (query, headers) = (Vec::new(), Vec::new());
        let (body, longest) = (None, None);
        Self { method, path, query, headers, above: "", body, content_type, longest }
    }

    pub(crate) fn get(path: &'a str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn with_query(mut self, name: &'static str, value: &str) -> Self {
        self.query.push((name, value.to_owned()));
        self
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Asks beside the settings' address: `/upload` and `https://host/v1` make `https://host/upload/v1`.
    pub(crate) fn above_base(mut self, above: &'static str) -> Self {
        self.above = above;
        self
    }

    pub(crate) fn with_body(mut self, body: impl Into<Body>, content_type: &str) -> Self {
        self.body = Some(body.into());
        content_type.clone_into(&mut self.content_type);
        self
    }

    pub(crate) fn within(mut self, longest: Duration) -> Self {
        self.longest = Some(longest);
        self
    }
}

impl ChatTransport {
    /// The vendor's address, without credentials.
    pub(crate) fn place(&self) -> String {
        strip_credentials(self.base.as_str())
    }

    /// Makes a request once.
    ///
    /// # Errors
    /// No answer, or one without a status of success.
    pub(crate) async fn call_vendor(&self, call: VendorRequest<'_>) -> Result<Response> {
        let url = self.vendor_url(&call)?;
        self.call_at(url, call).await
    }

    async fn call_at(&self, url: Url, call: VendorRequest<'_>) -> Result<Response> {
        let what = format!("{} {}", call.method, strip_credentials(url.as_str()));
        let mut request: RequestBuilder = self.client.request(call.method, url);
        let signed = self.request_headers().await?;
        request = request.headers(signed.headers.clone());
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        if let Some(body) = call.body {
            request = request.header(CONTENT_TYPE, call.content_type).body(body);
        }
        if let Some(longest) = call.longest {
            request = request.timeout(longest.min(self.timeout));
        }
        let response = request.send().await.map_err(|error| http::no_answer_error(error, &what))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        self.credential.note_status(status, &signed).await;
        let headers: HeaderMap = response.headers().clone();
        let body = http::read_capped_body(response, SMALL_CAP).await.ok().flatten();
        let refusal = ApiErrorBody::parse(&body.unwrap_or_default());
        let error = refusal.into_error(&what, status, &headers, &self.model);
        Err(self.credential.name_role(error, status))
    }

    /// Makes a request once, and reads the JSON of its answer.
    ///
    /// # Errors
    /// As [`ChatTransport::call_vendor`]; the answer is of another form.
    pub(crate) async fn ask_vendor<T: DeserializeOwned>(
        &self,
        call: VendorRequest<'_>,
    ) -> Result<T> {
        let what = format!("{} {}", call.method, call.path);
        read_json(self.call_vendor(call).await?, &what).await
    }

    /// The same at the address that the vendor named: the request's path is all of it.
    ///
    /// # Errors
    /// As [`ChatTransport::ask_vendor`]; the address is not the vendor's own, and gets neither key nor
    /// document.
    pub(crate) async fn ask_vendor_at<T: DeserializeOwned>(
        &self,
        call: VendorRequest<'_>,
    ) -> Result<T> {
        let url = Url::parse(call.path).ok().filter(|url| url.origin() == self.base.origin());
        let Some(url) = url else {
            let context = "the vendor names an address that is not that of llm.base_url";
            return Err(Error::new(Fault::Denied, context));
        };
        let what = format!("{} {}", call.method, url.path());
        read_json(self.call_at(url, call).await?, &what).await
    }

    fn vendor_url(&self, call: &VendorRequest<'_>) -> Result<Url> {
        let mut url = join_url(self.base.as_str(), call.path)?;
        if !call.above.is_empty() {
            let path = format!("{}{}", call.above, url.path());
            url.set_path(&path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        Ok(url)
    }
}

async fn read_json<T: DeserializeOwned>(response: Response, what: &str) -> Result<T> {
    let body = http::read_capped_body(response, SMALL_CAP).await;
    let body = body.map_err(|error| http::no_answer_error(error, what))?;
    let form = || Error::transient(format!("{what}: an answer of another form"));
    serde_json::from_slice(&body.ok_or_else(form)?).map_err(|_| form())
}
