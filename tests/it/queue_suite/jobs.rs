//! The queue for work other than documents: the program that docs/guides/jobs.md names beside the Rust
//! client of redis-work-queue, in both directions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use docmill_core::fault::{Error, Result};
use redis_work_queue::{Item, KeyPrefix, WorkQueue};

#[path = "../../../crates/queue/examples/jobs.rs"]
#[expect(dead_code, reason = "its main function is for the program")]
mod example;

use self::example::JobQueue;
use crate::support::redis::Redis;

const SHORT: Duration = Duration::from_millis(200);

async fn open(server: &Redis, lease: Duration) -> JobQueue {
    JobQueue::open(&server.url(), "jobs", lease).await.unwrap()
}

async fn their_connection(server: &Redis) -> redis_of_peer::aio::MultiplexedConnection {
    let client = redis_of_peer::Client::open(server.url()).unwrap();
    client.get_multiplexed_async_std_connection().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_either_library_is_done_once_by_the_other() {
    let server = Redis::start().await;
    let (ours, theirs) =
        (open(&server, Duration::from_secs(30)).await, WorkQueue::new(KeyPrefix::from("jobs")));
    let db = &mut their_connection(&server).await;
    for job in ["resize 1", "resize 2"] {
        let item = Item::from_string_data(job.to_owned());
        assert!(theirs.add_item(db, &item).await.unwrap());
    }
    let seen = Mutex::new(Vec::new());
    let work = async |text: &str| -> Result<()> {
        seen.lock().unwrap().push(text.to_owned());
        Ok(())
    };
    assert_eq!(ours.do_jobs(SHORT, work).await.unwrap(), 2);
    assert_eq!(*seen.lock().unwrap(), ["resize 1", "resize 2"]);
    assert_eq!(theirs.queue_len(db).await.unwrap() + theirs.processing(db).await.unwrap(), 0);

    ours.add_job("mail 3").await.unwrap();
    let lease = Duration::from_secs(30);
    let leased = theirs.lease(db, Some(Duration::ZERO), lease).await.unwrap().unwrap();
    assert_eq!(&*leased.data, b"mail 3");
    assert_eq!(ours.do_jobs(SHORT, work).await.unwrap(), 0, "it is theirs");
    assert!(theirs.complete(db, &leased).await.unwrap());
    assert_eq!(ours.do_jobs(SHORT, work).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_outlasts_its_lease_is_renewed_and_one_that_fails_is_tried_again() {
    let server = Redis::start().await;
    let lease = Duration::from_secs(1);
    let (one, other) = (open(&server, lease).await, open(&server, lease).await);
    one.add_job("long").await.unwrap();
    let begun = AtomicU32::new(0);
    let long = async |_: &str| -> Result<()> {
        begun.fetch_add(1, Ordering::SeqCst);
        // Two leases: without a renewal the other worker, who looks all the time, would have it.
        tokio::time::sleep(2 * lease).await;
        Ok(())
    };
    let looking = Duration::from_millis(2500);
    let (first, second) = tokio::join!(one.do_jobs(looking, long), other.do_jobs(looking, long));
    assert_eq!(first.unwrap() + second.unwrap(), 1);
    assert_eq!(begun.load(Ordering::SeqCst), 1, "nobody else began it");

    one.add_job("fails at first").await.unwrap();
    let tries = AtomicU32::new(0);
    let failing = async |_: &str| match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Err(Error::transient("told to fail")),
        _ => Ok(()),
    };
    assert_eq!(one.do_jobs(2 * lease, failing).await.unwrap(), 1);
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}
