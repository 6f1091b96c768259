//! Whether a model server is there and takes our key, asked without spending a token.

use std::time::Duration;

use reqwest::Response;

use super::{Exchange, SMALL_CAP, shown};
use crate::fault::{Error, Fault, Result};
use crate::http;

/// Longest the check may take.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

impl Exchange {
    /// Checks at start that the server is there and takes our key, without spending a token. A
    /// server without a list of models passes.
    ///
    /// # Errors
    /// Which address did not answer or refused, and which setting to look at.
    pub(in crate::llm) async fn ping(&self) -> Result<()> {
        let what = format!("the model server at {} (llm.base_url)", shown(&self.models));
        let request = self.client.get(self.models.clone()).headers(self.headers()?);
        let response = request.timeout(PING_TIMEOUT).send().await.map_err(|error| {
            let mut error = http::no_answer(error, &what);
            error.fault = Fault::Unavailable;
            error
        })?;
        let status = response.status();
        match status.as_u16() {
            200..=299 => self.look_for_model(response).await,
            404 | 405 | 501 => Ok(()),
            401 | 403 => Err(Error::new(
                Fault::Denied,
                format!("{what} answered {status}: check llm.api_key"),
            )),
            _ => {
                let fault = http::fault_of(status, response.headers());
                Err(Error::new(fault, format!("{what} answered {status}")))
            }
        }
    }

    /// Warns if the server lists models and ours is not among them. Only a warning: gateways
    /// resolve aliases that they do not list.
    async fn look_for_model(&self, response: Response) -> Result<()> {
        let body = http::read_capped(response, SMALL_CAP).await.ok().flatten();
        let names = body.and_then(|body| listed(&body)).unwrap_or_default();
        if !names.is_empty() && !names.contains(&self.model) {
            tracing::warn!(
                llm.model = self.model,
                "the model server at {} does not list {}, the model of llm.model",
                shown(&self.url),
                self.model
            );
        }
        Ok(())
    }
}

/// The names in a list of models, which looks the same at every vendor; `None` if the body is no
/// such list.
fn listed(body: &[u8]) -> Option<Vec<String>> {
    #[derive(serde::Deserialize)]
    struct List {
        data: Vec<Model>,
    }
    #[derive(serde::Deserialize)]
    struct Model {
        id: String,
    }
    let list: List = serde_json::from_slice(body).ok()?;
    Some(list.data.into_iter().map(|model| model.id).collect())
}
