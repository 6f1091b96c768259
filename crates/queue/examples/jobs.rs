//! Jobs of your own in Redis: add, take, renew, done. `jobs URL PREFIX add TEXT…` adds a job for each
//! text, `jobs URL PREFIX work` writes each job it does to standard output, until none has come for a
//! second. Clients of redis-work-queue may do either on the same prefix.

use std::io::Write as _;
use std::time::Duration;

use docmill_core::config::{QueueBackend, QueueConfig};
use docmill_core::fault::{Error, Fault, Result};
use docmill_queue::redis::RedisQueue;
use docmill_queue::{Delivery, MessageQueue, OutgoingMessage};

/// A queue of jobs, and the lease of a job without renewal.
pub(crate) struct JobQueue {
    queue: RedisQueue,
    lease: Duration,
}

impl JobQueue {
    /// The queue below `prefix`. A job that was taken six times and never done is put aside.
    pub(crate) async fn open(url: &str, prefix: &str, lease: Duration) -> Result<Self> {
        let config = QueueConfig {
            backend: QueueBackend::Redis,
            redis_url: url.to_owned().into(),
            redis_prefix: prefix.to_owned(),
            visibility: lease,
            max_receives: 6,
            ..QueueConfig::default()
        };
        Ok(Self { queue: RedisQueue::connect(&config).await?, lease })
    }

    /// Adds a job; what it says is yours.
    pub(crate) async fn add_job(&self, text: &str) -> Result<()> {
        let sent = self.queue.send(&[OutgoingMessage::from_body(text)]).await;
        sent.into_iter().collect()
    }

    /// Does jobs until none has come for `patience`; returns how many this worker has done.
    pub(crate) async fn do_jobs(
        &self,
        patience: Duration,
        work: impl AsyncFn(&str) -> Result<()>,
    ) -> Result<u64> {
        let mut done = 0;
        while let Some(job) = self.queue.receive(1, patience).await?.pop() {
            done += u64::from(self.do_job(&job, &work).await?);
        }
        Ok(done)
    }

    /// Whether the job was done, and by this worker: of several workers with the job, one gets
    /// `true`.
    async fn do_job(
        &self,
        job: &Delivery,
        work: &impl AsyncFn(&str) -> Result<()>,
    ) -> Result<bool> {
        let receipt = std::slice::from_ref(&job.receipt);
        let mut working = std::pin::pin!(work(&job.body));
        let ended = loop {
            tokio::select! {
                ended = &mut working => break ended,
                () = tokio::time::sleep(self.lease / 3) => {}
            }
            for renewed in self.queue.extend_visibility(receipt, self.lease).await {
                match renewed {
                    // Somebody else has it: what is left of the work is dropped.
                    Err(error) if error.fault == Fault::Missing => return Ok(false),
                    // Redis does not answer: the next renewal may be in time.
                    Err(_) | Ok(()) => {}
                }
            }
        };
        if ended.is_err() {
            // For another try, by whomever, in a while.
            let hidden = self.queue.hide(&[(job.receipt.clone(), self.lease)]).await;
            return hidden.into_iter().collect::<Result<()>>().map(|()| false);
        }
        let answers = self.queue.try_acknowledge(receipt).await;
        match answers.into_iter().next() {
            // The lease had run out, and another worker may have done it as well.
            Some(Err(error)) if error.fault == Fault::Missing => Ok(false),
            Some(answer) => answer,
            None => Err(Error::internal("no answer for a receipt")),
        }
    }
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, prefix, what, texts @ ..] = arguments.as_slice() else {
        return Err("jobs URL PREFIX add TEXT… | jobs URL PREFIX work".into());
    };
    let jobs = JobQueue::open(url, prefix, Duration::from_secs(30)).await?;
    match what.as_str() {
        "add" => {
            for text in texts {
                jobs.add_job(text).await?;
            }
        }
        "work" => {
            let work = async |text: &str| {
                let written = writeln!(std::io::stdout(), "{text}");
                written.map_err(|error| Error::transient("standard output").with_source(error))
            };
            jobs.do_jobs(Duration::from_secs(1), work).await?;
        }
        _ => return Err("neither add nor work".into()),
    }
    Ok(())
}
