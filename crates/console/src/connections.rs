//! The connections of a port: how many at once, and for how long each.
//!
//! A client may open connections and stay silent, and each takes a descriptor that the process
//! needs for Postgres and the queue. So each connection is for one request, whose head has to
//! arrive in time. One connection too many closes the oldest: a probe is answered while others
//! idle. Not promised: an answer to every client under a flood.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

/// The peer address of the connection; headers do not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeerAddress(pub(super) IpAddr);

/// How much of the process the clients of a port may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Name of the port in log lines.
    pub(super) port: &'static str,
    /// Connections at the same time.
    pub(super) most: usize,
    /// How long the head of a request may take to arrive.
    pub(super) head_time: Duration,
    /// How long a connection may be open, body and answer included.
    pub(super) connection_time: Duration,
}

/// After a connection could not be taken, the next is tried this much later.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// How often a failing `accept` is logged.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Answers all connections, until it is dropped.
pub(super) async fn serve_connections(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
) {
    let mut tasks = JoinSet::new();
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    let mut said: Option<Instant> = None;
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok((stream, peer)) => (stream, PeerAddress(peer.ip())),
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) => {
                if said.is_none_or(|said| said.elapsed() >= LOG_INTERVAL) {
                    said = Some(Instant::now());
                    tracing::warn!(
                        error = %error,
                        "the {} takes no connections: {error}; if descriptors have run out, raise \
                         the limit (ulimit -n), and let only those reach the port who need it",
                        limits.port
                    );
                }
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while tasks.try_join_next().is_some() {}
        open.retain(|one| !one.is_finished());
        if open.len() >= limits.most
            && let Some(longest) = open.pop_front()
        {
            longest.abort();
        }
        open.push_back(tasks.spawn(answer_one(stream, peer, router.clone(), limits)));
    }
}

/// The client has closed the connection; the listener is well.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// One request and its answer. A connection that breaks is its client's business.
async fn answer_one(
    stream: TcpStream,
    peer: PeerAddress,
    router: Router,
    limits: ConnectionLimits,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    timeout(limits.connection_time, connection).await.ok();
}
