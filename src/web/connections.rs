//! The connections of the health port: how many at once, and for how long each.
//!
//! Whoever reaches the port may open connections and say nothing, and each takes a descriptor that
//! the worker needs for Postgres and the queue. So each is for one request, whose head has to be
//! there in time, and one too many ends the one that has been open longest: a probe that asks at
//! once is answered while others idle. Not promised: an answer to everybody under a flood.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

/// Connections at the same time.
const MOST: usize = 64;
/// How long the head of a request may take to arrive.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a connection may be open, answer included.
const CONNECTION_TIME: Duration = Duration::from_secs(15);
/// After a connection could not be taken, the next is tried this much later.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// That none can be taken is said this often.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// Answers whoever connects, until it is dropped.
pub(super) async fn serve_connections(listener: TcpListener, router: Router) {
    let mut tasks = JoinSet::new();
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    let mut said: Option<Instant> = None;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) => {
                if said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
                    said = Some(Instant::now());
                    tracing::warn!(
                        error = %error,
                        "the health port takes no connections: {error}; if descriptors have run \
                         out, raise the limit (ulimit -n), and let only the platform reach the port"
                    );
                }
                sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        while tasks.try_join_next().is_some() {}
        open.retain(|one| !one.is_finished());
        if open.len() >= MOST
            && let Some(longest) = open.pop_front()
        {
            longest.abort();
        }
        open.push_back(tasks.spawn(answer_one(stream, router.clone())));
    }
}

/// The one who connected has gone again; the listener is well.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// One request and its answer. A connection that breaks is its client's business.
async fn answer_one(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    timeout(CONNECTION_TIME, connection).await.ok();
}
