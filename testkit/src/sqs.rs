//! A strict, fast stand-in for Amazon SQS over its AWS JSON 1.0 protocol.
//!
//! Standard queues only. Messages, visibility, delays, redrive and move tasks behave as documented,
//! and the service's refusals are reproduced: stale handles, batches of more than ten, hiding
//! beyond twelve hours. On request ([`Server::faults`]) it misbehaves as the service sometimes
//! does. Signatures are not checked; state is in memory and ends with the [`Server`]. The same
//! probe runs against it and against a third-party SQS stand-in (`tests/it/sqs_probe.rs`).
//!
//! Time is real time plus the sum of [`Server::advance`], so that tests need not sleep until
//! something expires. Long polls wait in real time.

mod action;
mod answer;
mod broker;
mod clock;
mod faults;
mod message;
mod moves;
mod refusal;
mod settings;
mod shelf;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::serve::ListenerExt as _;
use serde_json::Value;
use tokio::net::TcpListener;

pub use action::Action;
pub use faults::{Counts, Failure, Faults};
pub use shelf::Depth;

use answer::Request;
use broker::Broker;
use refusal::{Answer, Kind, refuse};

/// A running server; it stops when this is dropped.
#[derive(Debug)]
pub struct Server {
    broker: Arc<Broker>,
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Debug, Clone)]
struct Shared {
    broker: Arc<Broker>,
    base: Arc<str>,
}

impl Server {
    /// Starts on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port could be had.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// Starts on the given address.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start_on(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let broker = Arc::new(Broker::new());
        let shared =
            Shared { broker: Arc::clone(&broker), base: Arc::from(format!("http://{address}")) };
        let router = Router::new().fallback(serve).with_state(shared);
        let router = router.layer(axum::extract::DefaultBodyLimit::max(8 << 20));
        let listener = listener.tap_io(|stream| {
            // Without it small answers wait for the delayed acknowledgement of the one before.
            drop(stream.set_nodelay(true));
        });
        let task = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { broker, address, task })
    }

    /// The server's URL, `http://127.0.0.1:PORT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of a queue of this name, whether it exists or not.
    pub fn queue_url(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.endpoint(), broker::ACCOUNT)
    }

    /// The ARN of a queue of this name, whether it exists or not.
    pub fn queue_arn(&self, name: &str) -> String {
        broker::arn(name)
    }

    /// Creates a queue and returns its URL.
    ///
    /// # Errors
    /// The service's error, for a bad name or attribute.
    pub fn create_queue(&self, name: &str, attributes: &[(&str, &str)]) -> Result<String, String> {
        let attributes: BTreeMap<String, String> = attributes
            .iter()
            .map(|(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        self.broker.create(name, &attributes).map_err(|refusal| refusal.message)?;
        Ok(self.queue_url(name))
    }

    /// Makes a queue `name` and its dead-letter queue `name-dead`, and answers the first's URL.
    ///
    /// # Errors
    /// As [`Server::create_queue`].
    pub fn create_queue_with_dead(&self, name: &str, max_receives: u32) -> Result<String, String> {
        let dead = format!("{name}-dead");
        self.create_queue(&dead, &[])?;
        let policy = format!(
            r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":"{max_receives}"}}"#,
            self.queue_arn(&dead)
        );
        self.create_queue(name, &[("RedrivePolicy", policy.as_str())])
    }

    /// The injected faults.
    pub fn faults(&self) -> &Faults {
        &self.broker.faults
    }

    /// How many requests came in so far.
    pub fn counts(&self) -> Counts {
        self.broker.faults.counts()
    }

    /// Moves the server's clock forward; what becomes visible wakes waiting receives.
    pub fn advance(&self, by: Duration) {
        self.broker.advance(by);
    }

    /// Message counts of a queue by state; zeros if there is no such queue.
    pub fn depth(&self, name: &str) -> Depth {
        self.broker.by_name(name).map(|cell| self.broker.depth(&cell)).unwrap_or_default()
    }

    /// The names of all queues.
    pub fn queue_names(&self) -> Vec<String> {
        self.broker.names().into_iter().collect()
    }

    /// Waits until the server ends by itself, which it only does when its task fails.
    pub async fn join(&mut self) {
        drop((&mut self.task).await);
    }
}

/// Handles one HTTP request, with what was asked to go wrong.
async fn serve(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let request = match parse(&shared, &headers, &body) {
        Ok(request) => request,
        Err(refusal) => return response(Err(refusal)),
    };
    let action = request.action;
    let faults = &shared.broker.faults;
    let (latency, failure) = faults.begin(action);
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let refused = match failure {
        Some(Failure::Throttle) => Some((Kind::RequestThrottled, "Rate exceeded")),
        Some(Failure::ServerError) => Some((Kind::InternalFailure, "Internal error")),
        Some(Failure::Unavailable) => Some((Kind::ServiceUnavailable, "Service unavailable")),
        Some(Failure::AccessDenied) => Some((Kind::AccessDenied, "Access denied")),
        Some(Failure::Hang) => std::future::pending().await,
        Some(Failure::LoseReply | Failure::Silence) | None => None,
    };
    let result = match refused {
        Some((kind, message)) => {
            faults.end(action);
            refuse(kind, message)
        }
        None => perform(Arc::clone(&shared.broker), request).await,
    };
    match failure {
        Some(Failure::LoseReply) => return cut(),
        Some(Failure::Silence) => std::future::pending().await,
        _ => {}
    }
    response(result)
}

/// Runs the request in a separate task: a disconnected client does not stop it, so that the
/// messages of an abandoned long poll are handed out anyway, as by the service.
async fn perform(broker: Arc<Broker>, request: Request) -> Answer<Value> {
    let work = async move {
        let result = answer::answer(&broker, &request).await;
        broker.faults.end(request.action);
        result
    };
    match tokio::spawn(work).await {
        Ok(result) => result,
        Err(error) => refuse(Kind::InternalFailure, error.to_string()),
    }
}

fn parse(shared: &Shared, headers: &HeaderMap, body: &Bytes) -> Answer<Request> {
    let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
    let name = target.and_then(|target| target.strip_prefix("AmazonSQS.")).unwrap_or_default();
    let Some(action) = Action::from_name(name) else {
        return refuse(
            Kind::InvalidAction,
            format!("The action {name} is not valid for this endpoint."),
        );
    };
    let input = match serde_json::from_slice(body) {
        Ok(input @ Value::Object(_)) => input,
        _ => return refuse(Kind::InvalidParameterValue, "The body is not a JSON object."),
    };
    Ok(Request { action, input, base: shared.base.to_string() })
}

fn response(result: Answer<Value>) -> Response<Body> {
    let mut builder = Response::builder()
        .header(header::CONTENT_TYPE, "application/x-amz-json-1.0")
        .header("x-amzn-requestid", uuid::Uuid::new_v4().to_string());
    let body = match result {
        Ok(value) => value.to_string(),
        Err(refusal) => {
            let status = StatusCode::from_u16(refusal.status());
            builder = builder
                .status(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
                .header("x-amzn-query-error", refusal.query_error());
            refusal.body().to_string()
        }
    };
    builder.body(Body::from(body)).unwrap_or_default()
}

/// An answer that fails while it is written: the connection ends instead.
fn cut() -> Response<Body> {
    let broken = futures::stream::once(async {
        Err::<Bytes, _>(io::Error::other("the reply was lost on request"))
    });
    Response::new(Body::from_stream(broken))
}
