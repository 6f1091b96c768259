//! The connections of a port: how many at once, and for how long each.
//!
//! A client may open connections and stay silent, and each takes a descriptor that the process
//! needs for Postgres and the queue. So each connection is for one request, whose head has to
//! arrive in time. One connection too many closes another, in this order: connections that have
//! sent no head, strangers, visitors who are signed in; of the address with the most of them, and
//! the oldest there. Not promised: an answer to every client under a flood.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
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

/// The sender of a connection's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum ConnectionStanding {
    /// Nobody in particular.
    Stranger = 1,
    /// A visitor who is signed in.
    Visitor,
}

/// The standing of a connection: 0 until the head of its request has arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct StandingOfConnection(Arc<AtomicU8>);

impl StandingOfConnection {
    /// Raises the standing; it never falls.
    pub(super) fn raise(&self, standing: ConnectionStanding) {
        self.0.fetch_max(standing as u8, Ordering::Relaxed);
    }

    fn rank(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct OpenConnection {
    task: AbortHandle,
    peer: IpAddr,
    standing: StandingOfConnection,
}

/// The place of the connection to be closed, of connections in the order of their age.
fn find_expendable(open: &[OpenConnection]) -> Option<usize> {
    let lowest = open.iter().map(|one| one.standing.rank()).min()?;
    let mut of_peer: HashMap<IpAddr, usize> = HashMap::new();
    for one in open.iter().filter(|one| one.standing.rank() == lowest) {
        *of_peer.entry(one.peer).or_default() += 1;
    }
    let most = of_peer.values().copied().max();
    open.iter()
        .position(|one| one.standing.rank() == lowest && of_peer.get(&one.peer).copied() == most)
}

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
    let mut open: Vec<OpenConnection> = Vec::new();
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
        open.retain(|one| !one.task.is_finished());
        if open.len() >= limits.most
            && let Some(at) = find_expendable(&open)
        {
            open.remove(at).task.abort();
        }
        let standing = StandingOfConnection::default();
        let known = RequestOrigin { peer, standing: standing.clone() };
        let task = tasks.spawn(answer_one(stream, known, router.clone(), limits));
        open.push(OpenConnection { task, peer: peer.0, standing });
    }
}

/// The client has closed the connection; the listener is well.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Facts about a connection that its request carries.
struct RequestOrigin {
    peer: PeerAddress,
    standing: StandingOfConnection,
}

/// One request and its answer. A connection that breaks is its client's business.
async fn answer_one(
    stream: TcpStream,
    RequestOrigin { peer, standing }: RequestOrigin,
    router: Router,
    limits: ConnectionLimits,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        standing.raise(ConnectionStanding::Stranger);
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(standing.clone());
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    timeout(limits.connection_time, connection).await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn silent_connections_go_before_strangers_and_those_before_visitors() {
        let [silent, stranger, visitor] =
            [None, Some(ConnectionStanding::Stranger), Some(ConnectionStanding::Visitor)];
        let open = |connections: &[(u8, Option<ConnectionStanding>)]| -> Vec<OpenConnection> {
            let one = |(peer, standing): &(u8, Option<ConnectionStanding>)| {
                let known = StandingOfConnection::default();
                standing.iter().for_each(|standing| known.raise(*standing));
                let task = tokio::spawn(std::future::pending::<()>()).abort_handle();
                OpenConnection { task, peer: IpAddr::from([10, 0, 0, *peer]), standing: known }
            };
            connections.iter().map(one).collect()
        };
        for (connections, expected) in [
            (vec![], None),
            (vec![(1, visitor)], Some(0)),
            (vec![(1, visitor), (1, stranger), (2, silent)], Some(2)),
            (vec![(1, visitor), (2, stranger), (3, visitor)], Some(1)),
            // The address of the flood, and not the one that happens to be older.
            (vec![(1, silent), (2, visitor), (3, silent), (3, silent)], Some(2)),
            (vec![(1, silent), (3, silent)], Some(0)),
        ] {
            assert_eq!(find_expendable(&open(&connections)), expected, "{connections:?}");
        }
    }
}
