//! Artefacts in the store: identified by their inputs, and written so that a late zombie cannot
//! replace an artefact that a newer claim refers to (invariant 8).
//!
//! The stored form is the content's JSON with `made_from`, the identity, beside it. An artefact
//! that is unreadable or has another identity counts as absent, and is replaced.

use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::claim_handle::ClaimHandle;
use crate::failpoint::{FailureSeam, guard_call};
use docmill_core::fault::{self, Fault};
use docmill_core::model::digest::{LengthOrder, sha256_of_parts};
use docmill_core::work_clock::note_progress;
use docmill_documents::sandbox::CpuPool;
use docmill_storage::{Etag, GetOptions, GetResult, ObjectStore, PutResult};

/// Larger artefacts are neither written nor read: a transcript of `limits.text_bytes` at their most
/// and the replies about one document have less.
const MAX_ARTEFACT_BYTES: u64 = 256 << 20;

/// Content of no more JSON than this is written on the spot: it takes no longer than a way to another
/// thread and back.
const SMALL: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
struct ArtefactEnvelope<T> {
    made_from: String,
    #[serde(flatten)]
    content: T,
}

/// The key of an artefact, and what is stored there now.
#[derive(Debug)]
pub struct ArtefactSlot<T> {
    key: String,
    identity: String,
    /// Version of the stored object, readable or not.
    found: Option<Etag>,
    /// The content, if it is of our identity.
    pub content: Option<T>,
    /// Where its JSON is read and written, which takes as long as a text is long: beside the
    /// threads that keep leases.
    pool: Arc<CpuPool>,
}

/// The identity of an artefact that is made from these parts: SHA-256, in hex.
pub(crate) fn identity_of(parts: &[&str]) -> String {
    sha256_of_parts(LengthOrder::LittleEndian, parts)
}

/// The identity and the content of a stored artefact; `None` if it is not readable.
pub(crate) fn parse_artefact<T: DeserializeOwned>(bytes: &[u8]) -> Option<(String, T)> {
    let envelope = serde_json::from_slice::<ArtefactEnvelope<T>>(bytes).ok()?;
    Some((envelope.made_from, envelope.content))
}

impl<T: Serialize + DeserializeOwned + Send + 'static> ArtefactSlot<T> {
    /// Loads the artefact stored at `key`.
    ///
    /// # Errors
    /// Store errors. Unreadable content is not an error.
    pub async fn load(
        store: &dyn ObjectStore,
        pool: &Arc<CpuPool>,
        key: String,
        identity: String,
    ) -> fault::Result<Self> {
        let what = GetOptions { at_most: MAX_ARTEFACT_BYTES, if_match: None };
        let (found, content) = match store.get(&key, what).await? {
            GetResult::Found(object) => {
                let (bytes, wanted) = (object.bytes, identity.clone());
                (
                    Some(object.etag),
                    pool.run(move || {
                        let envelope = serde_json::from_slice::<ArtefactEnvelope<T>>(&bytes).ok();
                        let ours = envelope.filter(|envelope| envelope.made_from == wanted);
                        ours.map(|envelope| envelope.content)
                    })
                    .await?,
                )
            }
            // Larger than any that is written now: made anew in its place.
            GetResult::TooLarge { .. } => (store.head(&key).await?.map(|meta| meta.etag), None),
            GetResult::Missing | GetResult::Changed => (None, None),
        };
        Ok(Self { key, identity, found, content, pool: Arc::clone(pool) })
    }

    /// Writes new content over the loaded version, while the claim is live.
    ///
    /// # Errors
    /// [`fault::Fault::ClaimLost`], also after a concurrent write: only another claim writes here.
    pub async fn write(
        &mut self,
        store: &dyn ObjectStore,
        hold: &ClaimHandle,
        content: T,
    ) -> fault::Result<()> {
        let envelope = ArtefactEnvelope { made_from: self.identity.clone(), content };
        let (envelope, bytes) = match serialise_small(&envelope) {
            Some(bytes) => (envelope, Ok(bytes)),
            None => {
                self.pool
                    .run(move || {
                        let bytes = serde_json::to_vec(&envelope);
                        (envelope, bytes)
                    })
                    .await?
            }
        };
        let bytes = bytes.map(Bytes::from).map_err(|error| {
            fault::Error::internal("an artefact could not be serialised").with_source(error)
        })?;
        let (size, key) = (bytes.len(), &self.key);
        if size as u64 > MAX_ARTEFACT_BYTES {
            // The limits on text and replies keep far below it.
            let context = format!("{key} has {size} bytes, over the limit");
            return Err(fault::Error::internal(context));
        }
        self.found =
            Some(replace_version(store, hold, &self.key, self.found.as_ref(), bytes).await?);
        note_progress();
        self.content = Some(envelope.content);
        Ok(())
    }

    /// The reference stored in the row.
    pub(crate) fn to_ref(&self) -> docmill_core::model::ArtefactRef {
        docmill_core::model::ArtefactRef { path: self.key.clone(), identity: self.identity.clone() }
    }
}

/// The JSON of small content; `None` once it grows too large.
fn serialise_small<T: Serialize>(envelope: &ArtefactEnvelope<T>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; SMALL];
    let mut rest = buffer.as_mut_slice();
    serde_json::to_writer(&mut rest, envelope).ok()?;
    let length = SMALL - rest.len();
    buffer.truncate(length);
    Some(buffer)
}

/// The cause of a write that the store does not take although it answers: it is full, read-only, or a right
/// is missing. No document can be kept then.
#[derive(Debug, thiserror::Error)]
#[error("the store takes no writes: {0}")]
pub struct StoreTakesNoWrites(fault::Error);

impl StoreTakesNoWrites {
    /// Whether this is the cause of the error.
    pub fn is_cause_of(error: &fault::Error) -> bool {
        error.source.as_ref().is_some_and(|source| source.is::<Self>())
    }

    /// Names it as the cause of a failed write that nobody would have succeeded in.
    pub(super) fn mark(error: fault::Error) -> fault::Error {
        match error.fault {
            Fault::Unavailable | Fault::Denied | Fault::Misconfigured => {
                fault::Error::new(error.fault, error.context.clone()).with_source(Self(error))
            }
            _ => error,
        }
    }
}

/// Writes `bytes` over the loaded version, while the claim is live.
///
/// # Errors
/// [`fault::Fault::ClaimLost`]; a transient fault after a concurrent write, which only another
/// claim makes; store errors.
pub(super) async fn replace_version(
    store: &dyn ObjectStore,
    hold: &ClaimHandle,
    key: &str,
    found: Option<&Etag>,
    bytes: Bytes,
) -> fault::Result<Etag> {
    hold.ensure_live().await?;
    let putting = async {
        match found {
            None => store.put_if_absent(key, bytes.clone()).await,
            Some(etag) => store.put_if_match(key, etag, bytes.clone()).await,
        }
    };
    match guard_call(FailureSeam::Artefact, putting).await.map_err(StoreTakesNoWrites::mark)? {
        PutResult::Written(etag) => Ok(etag),
        PutResult::Refused => confirm_refused_write(store, key, &bytes).await,
    }
}

/// A refused write may still be this attempt's own: the reply was lost and the client retried.
async fn confirm_refused_write(
    store: &dyn ObjectStore,
    key: &str,
    bytes: &Bytes,
) -> fault::Result<Etag> {
    match store.get(key, GetOptions { at_most: MAX_ARTEFACT_BYTES, if_match: None }).await? {
        GetResult::Found(object) if object.bytes == *bytes => Ok(object.etag),
        GetResult::Found(_) => {
            let context = "another claim wrote this artefact in the meantime";
            Err(fault::Error::transient(context))
        }
        _ => Err(fault::Error::transient("an artefact vanished while it was written")),
    }
}
