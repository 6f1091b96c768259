//! Sends signed messages to addresses that others have given us, by the Standard Webhooks
//! specification 1.0.
//!
//! An address is checked twice: as written, and by every address that its name resolves to, at the
//! connection itself: there is no moment between check and connection. No redirect is followed, no
//! proxy used. Of the answer to a message only the status and `Retry-After` are kept; that to a
//! question is read up to a limit. Not promised: delivery only once; the receiver recognises
//! repetitions by the id.

mod aws_target;
mod destination;
mod signature;
mod signed_target;

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, RequestBuilder, Response, Url, redirect};

use aws_target::AwsCredentials;

pub use aws_sdk_sqs::config::SharedCredentialsProvider;
pub use aws_target::{AwsMessage, AwsTarget};
pub use destination::{DestinationPolicy, ForbiddenDestination, NameResolver, SystemResolver};
pub use signature::{SignedMessage, SigningSecret, parse_secrets, sign_message, write_secret};
pub use signed_target::SignedTarget;

use crate::http::{fault_of_response, no_answer_error, parse_retry_after, read_capped_body};
use docmill_core::fault::{Error, Fault, Result};

/// Longest a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// So much of an answer is read, so that its connection can be used again; the rest is cut off.
const READ_BODY: usize = 4 << 10;
/// So long is waited for it.
const BODY_TIMEOUT: Duration = Duration::from_millis(500);
/// A connection that is not used for so long is closed: a target that moves is looked up again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// The result of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookReply {
    /// Status of the answer; `None`: there was none.
    pub status: Option<u16>,
    /// How long we are asked to wait.
    pub retry_after: Option<Duration>,
    /// Why it was not taken; never what the target said.
    pub problem: Option<String>,
}

impl WebhookReply {
    /// Whether the message was taken.
    pub fn is_taken(&self) -> bool {
        self.problem.is_none()
    }

    /// Whether the target wants no more, ever.
    pub fn is_gone(&self) -> bool {
        self.status == Some(410)
    }
}

/// Sends messages to any target that the policy allows.
pub struct WebhookSender {
    client: Client,
    policy: Arc<DestinationPolicy>,
    credentials: AwsCredentials,
}

impl WebhookSender {
    /// `timeout` bounds each request, the lookup of its name included.
    ///
    /// # Errors
    /// No usable TLS set-up on this machine (usually: no root certificates).
    pub fn new(
        policy: DestinationPolicy,
        names: Arc<dyn NameResolver>,
        timeout: Duration,
    ) -> Result<Self> {
        let policy = Arc::new(policy);
        let resolver = CheckedResolver { policy: Arc::clone(&policy), names };
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .timeout(timeout)
            .user_agent(concat!("docmill/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .dns_resolver(Arc::new(resolver))
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()
            .map_err(|error| {
                let text =
                    "the client of webhooks cannot be set up; are root certificates installed?";
                Error::internal(text).with_source(error)
            })?;
        Ok(Self { client, policy, credentials: AwsCredentials::default() })
    }

    /// The same, with these credentials for AWS in the place of its usual chain.
    pub fn with_credentials(&self, provider: SharedCredentialsProvider) -> Self {
        Self {
            client: self.client.clone(),
            policy: Arc::clone(&self.policy),
            credentials: AwsCredentials::given(provider),
        }
    }

    /// Sends a message; what went wrong is part of the reply.
    pub async fn send_message(&self, url: &Url, message: SignedMessage) -> WebhookReply {
        if let Err(problem) = self.policy.check_url(url) {
            return not_sent(problem.to_string());
        }
        let response = match self.write_request(url, message).send().await {
            Ok(response) => response,
            Err(error) => return not_sent(describe_failure(&error)),
        };
        let status = response.status();
        let retry_after = parse_retry_after(response.headers(), SystemTime::now());
        // Only so that the connection can be used again; the status has said it all.
        let rest = read_capped_body(response, READ_BODY);
        drop(tokio::time::timeout(BODY_TIMEOUT, rest).await);
        let problem = (!status.is_success()).then(|| match status.is_redirection() {
            true => format!("{status}: redirects are not followed"),
            false => status.to_string(),
        });
        WebhookReply { status: Some(status.as_u16()), retry_after, problem }
    }

    /// Sends a question, and reads the answer: at most `cap` bytes of it, and none behind a status other
    /// than 2xx.
    ///
    /// # Errors
    /// `Denied` for an address that is not allowed; `Unavailable` or `Transient` without a whole answer;
    /// `Rejected` for a longer one; of other statuses those of [`fault_of_response`].
    pub async fn ask_question(
        &self,
        url: &Url,
        question: SignedMessage,
        cap: usize,
    ) -> Result<Bytes> {
        self.policy.check_url(url).map_err(|problem| denied_address(&problem))?;
        let response = match self.write_request(url, question).send().await {
            Ok(response) => response,
            Err(error) => match find_forbidden(&error) {
                Some(forbidden) => return Err(denied_address(&forbidden)),
                None => return Err(no_answer_error(error, "asking")),
            },
        };
        let status = response.status();
        if !status.is_success() {
            let fault = fault_of_response(status, response.headers());
            return Err(Error::new(fault, format!("the answer is {status}")));
        }
        let body = read_capped_body(response, cap).await;
        let body = body.map_err(|error| no_answer_error(error, "reading the answer"))?;
        body.ok_or_else(|| {
            Error::new(Fault::Rejected, format!("an answer of more than {cap} bytes"))
        })
    }

    /// The request of a signed message.
    fn write_request(&self, url: &Url, message: SignedMessage) -> RequestBuilder {
        self.client
            .post(url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", message.id)
            .header("webhook-timestamp", message.timestamp)
            .header("webhook-signature", message.signatures)
            .body(message.body)
    }

    /// Sends a message to a queue, topic or event bus of AWS; what went wrong is part of the reply.
    pub async fn send_to_aws(&self, target: &AwsTarget, message: &AwsMessage) -> WebhookReply {
        if let Err(problem) = self.policy.check_url(target.endpoint()) {
            return not_sent(problem.to_string());
        }
        let request = target.write_request(message);
        let credentials = match self.credentials.current().await {
            Ok(credentials) => credentials,
            Err(problem) => return not_sent(problem),
        };
        let headers = match target.sign_request(&request, credentials, SystemTime::now()) {
            Ok(headers) => headers,
            Err(problem) => return not_sent(problem),
        };
        let post = self.client.post(target.endpoint().clone()).body(request.body);
        let post = headers.into_iter().fold(post, |post, (name, value)| post.header(name, value));
        let response = match post.send().await {
            Ok(response) => response,
            Err(error) => return not_sent(describe_failure(&error)),
        };
        let kind = response.headers().get("x-amzn-errortype");
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
        let (status, retry_after, body) = read_answer(response).await;
        let problem = target.find_problem(status, &kind, &body);
        // Some services report throttling with 400: a matter of pace, not of the message.
        let throttled = problem.as_ref().is_some_and(|problem| problem.contains("Throttl"));
        let status = if throttled { 429 } else { status };
        WebhookReply { status: Some(status), retry_after, problem }
    }
}

/// Status, wished wait and the beginning of an answer.
async fn read_answer(response: Response) -> (u16, Option<Duration>, Vec<u8>) {
    let status = response.status().as_u16();
    let retry_after = parse_retry_after(response.headers(), SystemTime::now());
    let body = tokio::time::timeout(BODY_TIMEOUT, read_capped_body(response, READ_BODY)).await;
    let body = body.ok().and_then(std::result::Result::ok).flatten();
    let body = body.map(|bytes| bytes.to_vec()).unwrap_or_default();
    (status, retry_after, body)
}

/// The fault of an address that the settings do not allow.
fn denied_address(problem: &impl std::fmt::Display) -> Error {
    Error::new(Fault::Denied, problem.to_string())
}

fn not_sent(problem: String) -> WebhookReply {
    WebhookReply { status: None, retry_after: None, problem: Some(problem) }
}

/// The refusal of the address that a name led to, if that is why there was no answer.
fn find_forbidden(error: &reqwest::Error) -> Option<&ForbiddenDestination> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(forbidden) = inner.downcast_ref::<ForbiddenDestination>() {
            return Some(forbidden);
        }
        cause = inner.source();
    }
    None
}

/// Why there was no answer, without the address, which may hold a secret.
fn describe_failure(error: &reqwest::Error) -> String {
    if let Some(forbidden) = find_forbidden(error) {
        return forbidden.to_string();
    }
    match error {
        error if error.is_timeout() => "no answer in time",
        error if error.is_connect() => "it cannot be connected to",
        _ => "the connection broke",
    }
    .to_owned()
}

/// Looks names up and lets nothing through that is not allowed.
struct CheckedResolver {
    policy: Arc<DestinationPolicy>,
    names: Arc<dyn NameResolver>,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, found) = (Arc::clone(&self.policy), self.names.look_up(name.as_str()));
        Box::pin(async move {
            let found = found.await?;
            // All of them: which one is connected to is not ours to say.
            for address in &found {
                policy.check_address(*address)?;
            }
            let addresses: Addrs = Box::new(found.into_iter().map(|address| (address, 0).into()));
            Ok(addresses)
        })
    }
}
