//! Whether a model server is there and takes our key, asked without spending a token.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::Value;

use super::{ChatTransport, SMALL_CAP, VendorRequest};
use docmill_client::http;
use docmill_core::config::strip_credentials;
use docmill_core::fault::{Error, Fault, Result};

/// Longest the check may take.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

impl ChatTransport {
    /// Checks at start that the server is there and takes our key, without spending a token. A
    /// server without a list of models passes.
    ///
    /// # Errors
    /// Which address did not answer or refused, and which setting to check.
    pub(crate) async fn check_server(&self) -> Result<()> {
        let what = format!(
            "the model server at {} (llm.base_url)",
            strip_credentials(self.models.as_str())
        );
        let signed = self.request_headers().await?;
        let request = self.client.get(self.models.clone()).headers(signed.headers.clone());
        let response = request.timeout(PING_TIMEOUT).send().await.map_err(|error| {
            let mut error = http::no_answer_error(error, &what);
            error.fault = Fault::Unavailable;
            error
        })?;
        let status = response.status();
        self.credential.note_status(status, &signed).await;
        match status.as_u16() {
            200..=299 => self.warn_if_model_unlisted(response).await,
            404 | 405 | 501 => Ok(()),
            401 | 403 => {
                let context = format!("{what} answered {status}: check llm.api_key");
                Err(self.credential.name_role(Error::new(Fault::Denied, context), status))
            }
            _ => {
                let fault = http::fault_of_response(status, response.headers());
                Err(Error::new(fault, format!("{what} answered {status}")))
            }
        }
    }

    /// The same at a host without a list of models: has a short text counted, which is free.
    ///
    /// # Errors
    /// As [`ChatTransport::check_server`]; the model is not there.
    pub(crate) async fn check_by_counting(&self, path: &str, body: &Value) -> Result<()> {
        let call = VendorRequest::new(Method::POST, path);
        let call = call.with_body(body.to_string(), "application/json").within(PING_TIMEOUT);
        self.call_vendor(call).await.map(drop)
    }

    /// Warns if the server lists models and ours is not among them. Only a warning: gateways
    /// resolve aliases that they do not list.
    async fn warn_if_model_unlisted(&self, response: Response) -> Result<()> {
        let body = http::read_capped_body(response, SMALL_CAP).await.ok().flatten();
        let names = body.and_then(|body| parse_model_list(&body)).unwrap_or_default();
        if self.lists_our_model && !names.is_empty() && !names.contains(&self.model) {
            tracing::warn!(
                llm.model = self.model,
                "the model server at {} does not list {}, the model of llm.model",
                strip_credentials(self.url.as_str()),
                self.model
            );
        }
        Ok(())
    }
}

/// The names in a list of models, which looks the same at every vendor; `None` if the body is no
/// such list.
fn parse_model_list(body: &[u8]) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct ModelList {
        data: Vec<ListedModel>,
    }
    #[derive(serde::Deserialize)]
    struct ListedModel {
        id: String,
    }
    let list: ModelList = serde_json::from_slice(body).ok()?;
    Some(list.data.into_iter().map(|model| model.id).collect())
}
