//! Those who take what there is and give nothing: sockets that say nothing, and uploads that never end.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::{Duration, Instant};

use docmill::app::raise_descriptor_limit;
use reqwest::{Method, StatusCode};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::desk::{WebConsole, send, token_of};
use crate::support::documents;
use crate::support::world::{SOON, until};

/// Sockets of the attack.
const IDLE: usize = 10_000;
/// Connections that the pages have at most, as docs/guides/web.md says.
const SERVED: usize = 256;
/// Descriptors of this process besides: its pool, its files, its clients.
const BESIDES: usize = 150;
/// Documents that are handed in at the same time, as docs/guides/web.md says.
const PLACES: usize = 4;
/// How long a connection may be open, as docs/guides/web.md says.
const CONNECTION_TIME: Duration = Duration::from_secs(30);

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_sockets_are_closed_and_keep_nobody_out() {
    raise_descriptor_limit();
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    assert!(limit > 11_000, "this attack needs more descriptors than the {limit} allowed");
    let desk = WebConsole::open().await;
    let mut idle = Vec::new();
    for number in 0..IDLE {
        let mut stream = TcpStream::connect(desk.address).await.unwrap();
        // Some say nothing at all, some begin and never end.
        if number % 2 == 0 {
            stream.write_all(b"GET /overview HTTP/1.1\r\nx-slow: ").await.ok();
        }
        idle.push(stream);
        if number % 2_000 == 1_999 {
            let answer = timeout(SOON, desk.get("/ingestions", "viewer")).await;
            assert_eq!(answer.expect("who asks is answered").status, StatusCode::OK);
        }
    }
    // The attacker still holds all of his ends; of ours there are no more than were granted.
    let most = IDLE + SERVED + BESIDES;
    until(SOON, || async { open_descriptors() <= most }).await;
    assert!(open_descriptors() > IDLE, "the attack was none");
    let answer = timeout(SOON, desk.get("/overview", "viewer")).await;
    assert_eq!(answer.expect("who asks is answered").status, StatusCode::OK);
    let closed = idle.into_iter().map(|mut stream| async move {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.ok();
    });
    let all = futures::future::join_all(closed);
    timeout(SOON, all).await.expect("all of them are closed");
}

/// Begins to hand a document in, and says how long it will be.
async fn begin_upload(desk: &WebConsole) -> TcpStream {
    let mut stream = TcpStream::connect(desk.address).await.unwrap();
    let head = format!(
        "POST /api/v1/documents HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-length: 100000\r\n\r\n%PDF-1.7\n",
        token_of("producer")
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Sends a byte again and again, until the other side is gone. How long that took.
async fn trickle(mut stream: TcpStream, begun: Instant) -> Duration {
    let (mut read, mut write) = stream.split();
    let ended = async {
        let mut rest = Vec::new();
        read.read_to_end(&mut rest).await.ok();
    };
    let sending = async {
        let mut pace = tokio::time::interval(Duration::from_millis(250));
        loop {
            pace.tick().await;
            if write.write_all(b"x").await.is_err() {
                break;
            }
        }
    };
    tokio::select! { () = ended => {}, () = sending => {} }
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_trickle_in_take_nobodys_place_and_end_with_their_connections() {
    let desk = WebConsole::open().await;
    let begun = Instant::now();
    let mut slow = Vec::new();
    for _ in 0..PLACES * 2 {
        slow.push(begin_upload(&desk).await);
    }
    for name in ["rival", "producer", "operator"] {
        let call = desk.call(Method::POST, "/documents?name=a.pdf", name);
        let answer = send(call.body(documents::invoice("L-1"))).await;
        assert_eq!(answer.status, StatusCode::OK, "{name}: {answer:?}");
    }
    let before = desk.scalar("SELECT count(*) FROM document").await;
    let all = slow.into_iter().map(|stream| trickle(stream, begun));
    let took = timeout(CONNECTION_TIME + SOON, futures::future::join_all(all)).await;
    let took = took.expect("whoever sends a byte now and then is cut off");
    assert!(took.iter().all(|it| *it >= CONNECTION_TIME), "{took:?}: not for being slow");
    assert_eq!(desk.scalar("SELECT count(*) FROM document").await, before, "half a document");
}
