//! One document from claim to end.

use std::time::Duration;

use tokio::sync::Mutex;

use crate::fault::{Error, Fault, Result};
use crate::model::{Reason, digest};
use crate::ops::bucket::claim::{Claim, Kept};
use crate::ops::bucket::convert::{Convert, Converted, Original, Output};
use crate::ops::bucket::output::{Maker, pack};
use crate::ops::bucket::who::Who;
use crate::ops::bucket::{Bucket, stamp};
use crate::pipeline::ClaimHandle;
use crate::queue::objects::blobforge::raw_key;
use crate::runner::{Conclusion, JobEnd, Settlement};
use crate::store::{Fetch, Get};

/// How often an end is tried before it is left to the janitor.
const TRIES: u32 = 5;

/// A document in work.
pub(super) struct BucketJob {
    pub(super) hash: String,
    pub(super) run: u32,
    extension: String,
    /// Gone once its end is being written: every end renews the lock itself.
    claim: Mutex<Option<Claim>>,
}

/// What a document became.
pub(super) enum Conversion {
    Whole(Box<(Original, Output)>),
    Refused(Refusal),
}

/// The document itself is at fault.
pub(super) struct Refusal {
    code: String,
    detail: String,
}

impl BucketJob {
    pub(super) fn new(claim: Claim) -> Self {
        let Claim { hash, run, extension, .. } = &claim;
        let (hash, run, extension) = (hash.clone(), *run, extension.clone());
        Self { hash, run, extension, claim: Mutex::new(Some(claim)) }
    }

    /// Fetches the document and converts it.
    pub(super) async fn convert(
        &self,
        bucket: &Bucket,
        convert: &dyn Convert,
        claim: &ClaimHandle,
        largest: u64,
    ) -> Result<Conversion> {
        let original = match self.fetch(bucket, largest).await? {
            Ok(original) => original,
            Err(refusal) => return Ok(Conversion::Refused(refusal)),
        };
        Ok(match convert.convert(&original, claim).await? {
            Converted::Whole(output) => Conversion::Whole(Box::new((original, output))),
            Converted::Refused { code, detail } => Conversion::Refused(Refusal { code, detail }),
        })
    }

    /// Keeps the lock for another while; `None`: its end is being written.
    pub(super) async fn renew(&self, bucket: &Bucket) -> Result<Option<Kept>> {
        match self.claim.lock().await.as_mut() {
            None => Ok(None),
            Some(claim) => claim.beat(bucket, "converting").await.map(Some),
        }
    }

    /// Reads the original and its labels; what is wrong with the document itself is a refusal.
    async fn fetch(
        &self,
        bucket: &Bucket,
        largest: u64,
    ) -> Result<std::result::Result<Original, Refusal>> {
        let key = raw_key(&self.hash, &self.extension);
        let missing = || Error::new(Fault::Missing, "its original is not in the bucket");
        let refused =
            |code: &str, detail: String| Ok(Err(Refusal { code: code.to_owned(), detail }));
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
        if digest::sha256(&bytes) != self.hash {
            return refused("corrupt", "the original is not what its hash says".to_owned());
        }
        let label = |name: &str| meta.metadata.get(name).cloned().unwrap_or_default();
        let tags = serde_json::from_str(&label("tags")).unwrap_or_default();
        Ok(Ok(Original { hash: self.hash.clone(), name: label("original-name"), tags, bytes }))
    }

    /// Writes the end of the run, which may have been begun `most` times. If that fails for good,
    /// its lock is found abandoned, and the run is counted.
    pub(super) async fn settle(
        &self,
        bucket: &Bucket,
        who: &Who,
        conclusion: &Conclusion<Conversion>,
        most: u32,
    ) -> Settlement<()> {
        let unwritten = Settlement { end: JobEnd::Lost, outcome: "unwritten", rest: () };
        let Some(mut claim) = self.claim.lock().await.take() else { return unwritten };
        for turn in 1..=TRIES {
            match end(bucket, who, &mut claim, conclusion, most).await {
                Ok(JobEnd::Lost) => {
                    return Settlement { end: JobEnd::Lost, outcome: "claim_lost", rest: () };
                }
                Ok(end) => return Settlement { end, outcome: outcome(conclusion), rest: () },
                Err(error) => {
                    tracing::warn!(error = %error, turn, "cannot end a run: {error}");
                    tokio::time::sleep(Duration::from_secs(u64::from(turn))).await;
                }
            }
        }
        unwritten
    }
}

/// May be tried again.
async fn end(
    bucket: &Bucket,
    who: &Who,
    claim: &mut Claim,
    conclusion: &Conclusion<Conversion>,
    most: u32,
) -> Result<JobEnd> {
    match conclusion {
        Conclusion::Completed(Conversion::Whole(whole)) => {
            let (original, output) = whole.as_ref();
            let at = stamp(bucket.engine.now().await?);
            let maker = Maker { worker: &who.id, at: &at };
            claim.publish(bucket, pack(original, output, maker)?).await
        }
        Conclusion::Completed(Conversion::Refused(Refusal { code, detail })) => {
            claim.refuse(bucket, code, detail).await
        }
        // As BlobForge has it: counted, and begun again like every failure.
        Conclusion::Ended { reason: Reason::Timeout, .. } => {
            claim.fail(bucket, "timeout: over conversion_timeout", most).await
        }
        Conclusion::Ended { reason, detail, .. } if !reason.is_technical() => {
            claim.refuse(bucket, reason.code(), detail).await
        }
        Conclusion::Ended { reason, detail, .. } => {
            claim.fail(bucket, &format!("{}: {detail}", reason.code()), most).await
        }
        Conclusion::Again { fault, counted: true, detail, .. } => {
            claim.fail(bucket, &format!("{}: {detail}", fault.code()), most).await
        }
        Conclusion::Again { fault: Fault::Interrupted, .. } => {
            claim.give_back(bucket, "graceful_shutdown").await
        }
        Conclusion::Again { fault, .. } => claim.give_back(bucket, fault.code()).await,
        Conclusion::Withdrawn => claim.withdraw(bucket).await,
        Conclusion::ClaimLost => Ok(JobEnd::Lost),
    }
}

/// The word of metrics and logs.
fn outcome(conclusion: &Conclusion<Conversion>) -> &'static str {
    match conclusion {
        Conclusion::Completed(Conversion::Whole(_)) => "completed",
        Conclusion::Completed(Conversion::Refused(Refusal { code, .. })) => {
            Reason::from_code(code).map_or("refused", Reason::code)
        }
        Conclusion::Ended { reason, .. } => reason.code(),
        Conclusion::Again { fault, .. } => fault.code(),
        Conclusion::Withdrawn => "cancelled",
        Conclusion::ClaimLost => "claim_lost",
    }
}
