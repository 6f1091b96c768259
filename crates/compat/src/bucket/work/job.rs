//! One document from claim to end.

use std::time::Duration;

use tokio::sync::Mutex;

use crate::bucket::claim::{BucketClaim, LockRenewal};
use crate::bucket::convert::{
    ConversionOutput, ConversionResult, DocumentConverter, OriginalDocument,
};
use crate::bucket::output::{OutputMaker, pack_output};
use crate::bucket::worker_identity::WorkerIdentity;
use crate::bucket::{BlobForgeBucket, format_rfc3339};
use crate::objects::blobforge::raw_key;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::{OutcomeReason, digest};
use docmill_core::retry::{RetryBackoff, retry};
use docmill_pipeline::ClaimHandle;
use docmill_storage::{GetOptions, GetResult};
use docmill_worker::runner::{FinishedJob, JobConclusion, JobEnd};

/// Retries of an end before it is left to the janitor: about five minutes, a third of the time that
/// an unrenewed lock is valid.
const BACKOFF: RetryBackoff =
    RetryBackoff::doubling(Duration::from_secs(1)).up_to(Duration::from_secs(30)).with_retries(13);

/// A document that this worker has claimed.
pub(super) struct BucketJob {
    pub(super) hash: String,
    pub(super) run: u32,
    extension: String,
    /// Gone once its end is being written: every end renews the lock itself.
    claim: Mutex<Option<BucketClaim>>,
}

/// The result of a run.
pub(super) enum JobConversion {
    Whole(Box<(OriginalDocument, ConversionOutput)>),
    Refused(DocumentRefusal),
}

/// The document itself is at fault.
pub(super) struct DocumentRefusal {
    code: String,
    detail: String,
}

impl BucketJob {
    pub(super) fn new(claim: BucketClaim) -> Self {
        let BucketClaim { hash, run, extension, .. } = &claim;
        let (hash, run, extension) = (hash.clone(), *run, extension.clone());
        Self { hash, run, extension, claim: Mutex::new(Some(claim)) }
    }

    /// Fetches the document and converts it.
    pub(super) async fn convert(
        &self,
        bucket: &BlobForgeBucket,
        convert: &dyn DocumentConverter,
        claim: &ClaimHandle,
        largest: u64,
    ) -> Result<JobConversion> {
        let original = match self.fetch(bucket, largest).await? {
            Ok(original) => original,
            Err(refusal) => return Ok(JobConversion::Refused(refusal)),
        };
        Ok(match convert.convert(&original, claim).await? {
            ConversionResult::Whole(output) => JobConversion::Whole(Box::new((original, output))),
            ConversionResult::Refused { code, detail } => {
                JobConversion::Refused(DocumentRefusal { code, detail })
            }
        })
    }

    /// Renews the lock; `None`: the end of the run is being written.
    pub(super) async fn renew(&self, bucket: &BlobForgeBucket) -> Result<Option<LockRenewal>> {
        match self.claim.lock().await.as_mut() {
            None => Ok(None),
            Some(claim) => claim.renew(bucket, "converting").await.map(Some),
        }
    }

    /// Reads the original and its labels; what is wrong with the document itself is a refusal.
    async fn fetch(
        &self,
        bucket: &BlobForgeBucket,
        largest: u64,
    ) -> Result<std::result::Result<OriginalDocument, DocumentRefusal>> {
        let key = raw_key(&self.hash, &self.extension);
        let missing = || Error::new(Fault::Missing, "its original is not in the bucket");
        let refused =
            |code: &str, detail: String| Ok(Err(DocumentRefusal { code: code.to_owned(), detail }));
        let too_large = |size| {
            let detail = format!("{size} bytes, limits.document_bytes is {largest}");
            refused("too_large", detail)
        };
        let store = bucket.engine.store();
        let meta = store.head(&key).await?.ok_or_else(missing)?;
        if meta.size > largest {
            return too_large(meta.size);
        }
        let bytes = match store.get(&key, GetOptions { at_most: largest, if_match: None }).await? {
            GetResult::Found(object) => object.bytes,
            GetResult::TooLarge { size } => return too_large(size),
            GetResult::Missing | GetResult::Changed => return Err(missing()),
        };
        if digest::sha256_hex(&bytes) != self.hash {
            return refused("corrupt", "the original does not match its hash".to_owned());
        }
        let label = |name: &str| meta.metadata.get(name).cloned().unwrap_or_default();
        let tags = serde_json::from_str(&label("tags")).unwrap_or_default();
        Ok(Ok(OriginalDocument {
            hash: self.hash.clone(),
            name: label("original-name"),
            tags,
            bytes,
        }))
    }

    /// Writes the end of the run, which may have been begun `most` times. If that fails for good,
    /// its lock is found abandoned, and the run is counted.
    pub(super) async fn finish_run(
        &self,
        bucket: &BlobForgeBucket,
        who: &WorkerIdentity,
        conclusion: &JobConclusion<JobConversion>,
        most: u32,
    ) -> FinishedJob<()> {
        let unwritten = FinishedJob { end: JobEnd::Lost, outcome: "unwritten", rest: () };
        let Some(claim) = self.claim.lock().await.take() else { return unwritten };
        let claim = Mutex::new(claim);
        let write =
            |_| async { write_end(bucket, who, &mut *claim.lock().await, conclusion, most).await };
        match retry(write, |error: &Error, failed| {
            tracing::warn!(error = %error, turn = failed + 1, "cannot end a run: {error}");
            BACKOFF.next_wait(failed)
        })
        .await
        {
            Ok(JobEnd::Lost) => FinishedJob { end: JobEnd::Lost, outcome: "claim_lost", rest: () },
            // Perhaps noticed only while another end was being written.
            Ok(end @ JobEnd::Cancelled) => FinishedJob { end, outcome: "cancelled", rest: () },
            Ok(end) => FinishedJob { end, outcome: outcome_label(conclusion), rest: () },
            Err(_logged) => unwritten,
        }
    }
}

/// May be tried again.
async fn write_end(
    bucket: &BlobForgeBucket,
    who: &WorkerIdentity,
    claim: &mut BucketClaim,
    conclusion: &JobConclusion<JobConversion>,
    most: u32,
) -> Result<JobEnd> {
    match conclusion {
        JobConclusion::Completed(JobConversion::Whole(whole)) => {
            let (original, output) = whole.as_ref();
            let at = format_rfc3339(bucket.engine.now().await?);
            let maker = OutputMaker { worker: &who.id, at: &at };
            claim.publish(bucket, pack_output(original, output, maker)?).await
        }
        JobConclusion::Completed(JobConversion::Refused(DocumentRefusal { code, detail })) => {
            claim.refuse(bucket, code, detail).await
        }
        // As BlobForge has it: counted, and begun again like every failure.
        JobConclusion::Ended { reason: OutcomeReason::Timeout, .. } => {
            claim.fail(bucket, "timeout: over conversion_timeout", most).await
        }
        JobConclusion::Ended { reason, detail, .. } if !reason.is_technical() => {
            claim.refuse(bucket, reason.code(), detail).await
        }
        JobConclusion::Ended { reason, detail, .. } => {
            claim.fail(bucket, &format!("{}: {detail}", reason.code()), most).await
        }
        JobConclusion::Again { fault, counted: true, detail, .. } => {
            claim.fail(bucket, &format!("{}: {detail}", fault.code()), most).await
        }
        JobConclusion::Again { fault: Fault::Interrupted, .. } => {
            claim.return_document(bucket, "graceful_shutdown").await
        }
        JobConclusion::Again { fault, .. } => claim.return_document(bucket, fault.code()).await,
        JobConclusion::Withdrawn => claim.withdraw(bucket).await,
        JobConclusion::ClaimLost => Ok(JobEnd::Lost),
    }
}

/// The word of metrics and logs.
fn outcome_label(conclusion: &JobConclusion<JobConversion>) -> &'static str {
    match conclusion {
        JobConclusion::Completed(JobConversion::Whole(_)) => "completed",
        JobConclusion::Completed(JobConversion::Refused(DocumentRefusal { code, .. })) => {
            OutcomeReason::from_code(code).map_or("refused", OutcomeReason::code)
        }
        JobConclusion::Ended { reason, .. } => reason.code(),
        JobConclusion::Again { fault, .. } => fault.code(),
        JobConclusion::Withdrawn => "cancelled",
        JobConclusion::ClaimLost => "claim_lost",
    }
}
