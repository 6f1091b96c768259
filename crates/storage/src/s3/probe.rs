//! Whether a refusal concerns one object or the whole bucket.
//!
//! S3 answers "access denied" both to a lost right, which affects every document, and to one object
//! that is encrypted with a foreign key. Two requests distinguish them: a look beside the object,
//! and a read of an object of our own. Not promised: a verdict without `s3:ListBucket`, where a
//! missing object looks like a refusal; then every document counts as affected.

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;

use super::faults::{S3Failure, classify_failure};
use super::location::S3Location;
use docmill_core::fault::{Error, Fault};

/// An object of ours, written with the bucket's own encryption where there is none yet.
pub(super) const OWN_PROBE: &str = "ingestions/.docmill-probe";
/// An unused key, requested beside the refused object.
const NOBODYS: &str = ".docmill-nobodys";

/// The object of ours beside which a refusal is judged.
pub(super) struct OwnObject<'a> {
    pub client: &'a Client,
    pub bucket: &'a str,
    pub key: &'static str,
}

impl OwnObject<'_> {
    /// A refusal of a read that concerns this object alone becomes `Missing`: for us it is not
    /// there, and others are.
    pub(super) async fn judge_refusal(
        &self,
        place: &S3Location<'_>,
        failure: S3Failure,
    ) -> S3Failure {
        let S3Failure::Refused(error) = &failure else { return failure };
        if !(self.may_look_beside(place).await && self.can_be_read().await) {
            return failure;
        }
        let text = format!(
            "{}, but others can be read: see who may read this object, its encryption key and its \
             storage class",
            error.context
        );
        S3Failure::Other(Error::new(Fault::Missing, text))
    }

    async fn may_look_beside(&self, place: &S3Location<'_>) -> bool {
        let folder = place.key.rsplit_once('/').map_or("", |(folder, _)| folder);
        let separator = if folder.is_empty() { "" } else { "/" };
        let key = format!("{folder}{separator}{NOBODYS}");
        let beside = S3Location { key: &key, ..*place };
        match self.client.head_object().bucket(place.bucket).key(&key).send().await {
            Ok(_) => true,
            Err(error) => {
                matches!(classify_failure(error, &beside, "probe"), S3Failure::NoSuchKey)
            }
        }
    }

    async fn can_be_read(&self) -> bool {
        let own = S3Location { bucket: self.bucket, key: self.key, foreign: false };
        let read = || self.client.get_object().bucket(own.bucket).key(own.key).send();
        match read().await {
            Ok(_) => return true,
            Err(error) => {
                if !matches!(classify_failure(error, &own, "probe"), S3Failure::NoSuchKey) {
                    return false;
                }
            }
        }
        let body = ByteStream::from_static(b"docmill");
        let write = self.client.put_object().bucket(own.bucket).key(own.key).body(body);
        write.send().await.is_ok() && read().await.is_ok()
    }
}
