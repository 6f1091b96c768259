//! One document from claim to end, its lock kept alive all the while.

use std::time::Duration;

use tokio::time::Instant;

use super::Shared;
use crate::fault::{Error, Fault, Result};
use crate::model::{ClaimToken, IngestionId, digest};
use crate::ops::bucket::claim::{Claim, Kept};
use crate::ops::bucket::convert::{Converted, Original, Output};
use crate::ops::bucket::end::Ended;
use crate::ops::bucket::output::{Maker, pack};
use crate::ops::bucket::{Bucket, stamp};
use crate::pipeline::{ClaimRenewer, claim_handle};
use crate::queue::objects::blobforge::raw_key;
use crate::store::{Fetch, Get};

/// How often an end is tried before it is left to the janitor.
const TRIES: u32 = 5;

/// What came of a run.
enum Came {
    Whole(Box<(Original, Output)>),
    Refused { code: String, detail: String },
    Failed(Error),
    TimedOut,
    Cancelled,
    Interrupted,
    Lost,
}

/// Converts the document and ends its run; `None` if the end could not be written: then its lock
/// is found abandoned, and the run is counted.
pub(super) async fn run(shared: &Shared, mut claim: Claim) -> Option<Ended> {
    let started = Instant::now();
    let came = attempt(shared, &mut claim).await;
    for turn in 1..=TRIES {
        match end(shared, &mut claim, &came).await {
            Ok(ended) => {
                let elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
                let (document, run) = (claim.hash.as_str(), claim.run);
                let reason = came.reason();
                tracing::info!(
                    document,
                    run,
                    elapsed_ms,
                    ended = ended.code(),
                    reason,
                    "run ended"
                );
                return Some(ended);
            }
            Err(error) => {
                tracing::warn!(error = %error, turn, "cannot end a run: {error}");
                tokio::time::sleep(Duration::from_secs(u64::from(turn))).await;
            }
        }
    }
    None
}

async fn attempt(shared: &Shared, claim: &mut Claim) -> Came {
    let timeout = shared.settings.borrow().timeout();
    let (hash, extension) = (claim.hash.clone(), claim.extension.clone());
    let until = std::time::Instant::now() + shared.settings.borrow().stale();
    let (handle, renewer) = claim_handle::pair(IngestionId::random(), ClaimToken::random(), until);
    let work = async {
        let original = match fetch(&shared.bucket, &hash, &extension, shared.largest).await? {
            Ok(original) => original,
            Err((code, detail)) => return Ok(Came::Refused { code, detail }),
        };
        Ok::<_, Error>(match shared.convert.convert(&original, &handle).await? {
            Converted::Whole(output) => Came::Whole(Box::new((original, output))),
            Converted::Refused { code, detail } => Came::Refused { code, detail },
        })
    };
    tokio::select! {
        came = work => came.unwrap_or_else(Came::Failed),
        came = keep(shared, claim, &renewer) => came,
        () = tokio::time::sleep(timeout) => Came::TimedOut,
        () = shared.stop.until_asked() => Came::Interrupted,
    }
}

/// Renews the lock until it is lost, or until nobody can tell any more whether it still is ours.
async fn keep(shared: &Shared, claim: &mut Claim, renewer: &ClaimRenewer) -> Came {
    let mut sure_since = Instant::now();
    loop {
        let (beat, stale) = {
            let settings = shared.settings.borrow();
            (settings.heartbeat(), settings.stale())
        };
        tokio::time::sleep(beat).await;
        let (asked, until) = (Instant::now(), std::time::Instant::now() + stale);
        match claim.beat(&shared.bucket, "converting").await {
            Ok(Kept::Ours) => {
                sure_since = asked;
                renewer.renewed(until);
            }
            Ok(Kept::Cancelled) => return Came::Cancelled,
            Ok(Kept::Lost) => {
                renewer.lost();
                return Came::Lost;
            }
            Err(error) => {
                tracing::warn!(error = %error, "cannot renew a lock: {error}");
                if sure_since.elapsed() + beat >= stale {
                    return Came::Lost;
                }
            }
        }
    }
}

type Refusal = (String, String);

/// Reads the original and its labels; what is wrong with the document itself is a refusal.
async fn fetch(
    bucket: &Bucket,
    hash: &str,
    extension: &str,
    largest: u64,
) -> Result<std::result::Result<Original, Refusal>> {
    let key = raw_key(hash, extension);
    let missing = || Error::new(Fault::Missing, "its original is not in the bucket");
    let refused = |code: &str, detail: String| Ok(Err((code.to_owned(), detail)));
    let too_large = |size| {
        let detail = format!("{size} bytes, limits.document_bytes is {largest}");
        refused("too_large", detail)
    };
    let store = bucket.engine.store();
    let meta = store.head(&key).await?.ok_or_else(missing)?;
    if meta.size > largest {
        return too_large(meta.size);
    }
    let bytes = match store.get(&key, Get { at_most: largest, if_match: None }).await? {
        Fetch::Found(object) => object.bytes,
        Fetch::TooLarge { size } => return too_large(size),
        Fetch::Missing | Fetch::Changed => return Err(missing()),
    };
    if digest::sha256(&bytes) != hash {
        return refused("corrupt", "the original is not what its hash says".to_owned());
    }
    let label = |name: &str| meta.metadata.get(name).cloned().unwrap_or_default();
    let tags = serde_json::from_str(&label("tags")).unwrap_or_default();
    Ok(Ok(Original { hash: hash.to_owned(), name: label("original-name"), tags, bytes }))
}

/// Writes the end of the run; may be tried again.
async fn end(shared: &Shared, claim: &mut Claim, came: &Came) -> Result<Ended> {
    let bucket = &shared.bucket;
    let max = shared.settings.borrow().max_retries;
    match came {
        Came::Whole(whole) => {
            let (original, output) = whole.as_ref();
            let at = stamp(bucket.engine.now().await?);
            let maker = Maker { worker: &shared.who.id, at: &at };
            claim.publish(bucket, pack(original, output, maker)?).await
        }
        Came::Refused { code, detail } => claim.refuse(bucket, code, detail).await,
        Came::Failed(error) if error.fault == Fault::ClaimLost => Ok(Ended::Lost),
        Came::Failed(error) if is_nobodys(error.fault) => {
            shared.pause();
            claim.give_back(bucket, error.fault.code()).await
        }
        Came::Failed(error) => {
            let text = format!("{}: {}", error.fault.code(), error.context);
            claim.fail(bucket, &text, max).await
        }
        Came::TimedOut => claim.fail(bucket, "timeout: over conversion_timeout", max).await,
        Came::Cancelled => claim.withdraw(bucket).await,
        Came::Interrupted => claim.give_back(bucket, "graceful_shutdown").await,
        Came::Lost => Ok(Ended::Lost),
    }
}

/// Whether every other document would fare the same.
fn is_nobodys(fault: Fault) -> bool {
    match fault {
        Fault::Unavailable
        | Fault::Denied
        | Fault::Misconfigured
        | Fault::Paused
        | Fault::Throttled(_)
        | Fault::OverBudget(_)
        | Fault::Interrupted => true,
        // Whoever has it by now says what becomes of it.
        Fault::ClaimLost => false,
        Fault::Transient | Fault::Missing | Fault::Rejected | Fault::Internal => false,
    }
}

impl Came {
    /// For the log.
    fn reason(&self) -> &str {
        match self {
            Self::Whole(_) => "",
            Self::Refused { code, .. } => code,
            Self::Failed(error) => error.fault.code(),
            Self::TimedOut => "timeout",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
        }
    }
}
