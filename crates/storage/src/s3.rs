//! Amazon S3 and what speaks its protocol.
//!
//! Relies on conditional writes (`If-None-Match`, `If-Match`), on delete as well; a service that
//! ignores them is refused by [`S3Store::connect`]. The SDK repeats calls that failed with a
//! transient error; a repeated conditional write whose first reply was lost is recognised as our
//! own, so that the winner of a race never takes itself for the loser. Versions are S3's ETags: two
//! writes of the same bytes look the same. No total time limit on a body, but one on every piece of
//! it.

mod connect;
mod faults;
mod inspect;
mod location;
mod probe;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Region;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use bytes::{Bytes, BytesMut};

pub use self::connect::BucketAccess;
use self::connect::{SMALL_BODY, advice_for, build_client, build_upload_client, is_passing};
use self::faults::{S3Failure, classify_failure};
pub use self::inspect::BucketQueueRule;
use self::inspect::queue_rules_of;
use self::location::{S3Location, decode_value, encode_value};
use self::probe::{OWN_PROBE, OwnObject};
use super::{
    Etag, FetchedObject, GetOptions, GetResult, ObjectEntry, ObjectMeta, ObjectName, ObjectStore,
    PresignedWrite, PutResult, S3Address, conditions,
};
use docmill_core::config::{StoreConfig, strip_credentials};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::retry::{Jitter, RetryBackoff, retry, with_deadline};

/// How long the check at start may take altogether.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two tries of the check.
const WAITS: RetryBackoff = RetryBackoff::constant(Duration::from_secs(1));
/// The longest wait for the next piece of a body.
const PART_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a conditional request is repeated that met another one in flight (409).
const CONFLICTS: u32 = 8;
/// The waits in between.
const CONFLICT_WAITS: RetryBackoff = RetryBackoff::doubling(Duration::from_millis(25))
    .up_to(Duration::from_millis(1600))
    .with_jitter(Jitter::Full);
/// Names the write in the object's metadata; see [`S3Store::is_own_write`].
const WRITE_ID: &str = "docmill-write";
/// The most that one listing request returns.
const PAGE: usize = 1000;

/// Objects of a bucket.
#[derive(Debug, Clone)]
pub struct S3Store {
    client: Client,
    /// The same for large bodies.
    uploads: Client,
    bucket: String,
    address: String,
    /// An object of our own beside which a refusal is judged; `None`: a refusal is everybody's.
    probe: Option<&'static str>,
}

/// The condition of a write.
#[derive(Clone, Copy)]
enum S3Condition<'a> {
    Absent,
    Is(&'a Etag),
}

impl S3Store {
    /// Connects, and checks that the bucket can be reached and takes conditional writes.
    ///
    /// # Errors
    /// After about 20 s at the latest: which bucket, at which address, and what to check.
    pub async fn connect(config: &StoreConfig) -> Result<Self> {
        let store =
            Self::connect_as(config, &BucketAccess { keys: None, place: "ingestions/" }).await?;
        Ok(Self { probe: Some(OWN_PROBE), ..store })
    }

    /// The same with another right to it.
    ///
    /// # Errors
    /// As [`S3Store::connect`].
    pub async fn connect_as(config: &StoreConfig, access: &BucketAccess<'_>) -> Result<Self> {
        let client = build_client(config, access).await;
        let region = client.config().region().map_or("no region", Region::as_ref).to_owned();
        let address = match config.endpoint.as_str() {
            "" => format!("AWS ({region})"),
            endpoint => strip_credentials(endpoint),
        };
        let uploads = build_upload_client(&client);
        let store = Self { client, uploads, bucket: config.bucket.clone(), address, probe: None };
        match with_deadline(START_TIMEOUT, store.check_bucket(access.place), || {
            Error::new(Fault::Unavailable, "no answer in time")
        })
        .await
        {
            Ok(()) => Ok(store),
            Err(error) => Err(store.unusable_error(error)),
        }
    }

    /// The same, nothing checked: for documents of other buckets, in which nothing is written.
    pub async fn connect_unchecked(config: &StoreConfig) -> Self {
        let client = build_client(config, &BucketAccess { keys: None, place: "" }).await;
        let (bucket, address) = (config.bucket.clone(), strip_credentials(&config.endpoint));
        Self { uploads: build_upload_client(&client), client, bucket, address, probe: None }
    }

    /// Tries until the bucket answers; gives up at once where trying again cannot help.
    async fn check_bucket(&self, probe: &str) -> Result<()> {
        let passes =
            |error: &Error, failed| WAITS.next_wait(failed).filter(|_| is_passing(error.fault));
        retry(|_| self.check_bucket_once(probe), passes).await
    }

    async fn check_bucket_once(&self, probe: &str) -> Result<()> {
        let place = S3Location { bucket: &self.bucket, key: "", foreign: false };
        if let Err(error) = self.client.head_bucket().bucket(&self.bucket).send().await {
            return Err(classify_failure(error, &place, "look").into_error(&place));
        }
        conditions::check_conditional_writes(self, probe).await
    }

    fn unusable_error(&self, error: Error) -> Error {
        let (advice, bucket, address) = (advice_for(error.fault), &self.bucket, &self.address);
        let text =
            format!("the bucket {bucket} at {address} cannot be used: {}; {advice}", error.context);
        Error { fault: error.fault, context: text.into(), source: error.source }
    }

    /// A store over a client that is set up already. Nothing is checked.
    pub fn with_client(client: Client, bucket: impl Into<String>) -> Self {
        let (bucket, address) = (bucket.into(), "a given client".to_owned());
        Self {
            uploads: build_upload_client(&client),
            client,
            bucket,
            address,
            probe: Some(OWN_PROBE),
        }
    }

    /// Distinguishes a refusal of one object from one of the bucket, where there is an object of
    /// ours.
    async fn judge_refusal(&self, place: &S3Location<'_>, failure: S3Failure) -> S3Failure {
        let Some(key) = self.probe else { return failure };
        OwnObject { client: &self.client, bucket: &self.bucket, key }
            .judge_refusal(place, failure)
            .await
    }

    fn locate_key<'a>(&'a self, key: &'a str) -> Result<S3Location<'a>> {
        S3Location::parse_name(&self.bucket, key)
    }

    async fn put_conditionally(
        &self,
        key: &str,
        condition: S3Condition<'_>,
        bytes: Bytes,
    ) -> Result<PutResult> {
        let place = self.locate_key(key)?;
        let id = uuid::Uuid::new_v4().to_string();
        for conflict in 0..CONFLICTS {
            let request = self.put_request(&place, bytes.clone()).metadata(WRITE_ID, &id);
            let request = match condition {
                S3Condition::Absent => request.if_none_match("*"),
                S3Condition::Is(etag) => request.if_match(&etag.0),
            };
            let failure = match request.send().await {
                Ok(done) => return require_etag(done.e_tag()).map(PutResult::Written),
                Err(error) => classify_failure(error, &place, "write"),
            };
            match failure {
                S3Failure::Precondition => return self.is_own_write(&place, &id).await,
                S3Failure::NoSuchKey => return Ok(PutResult::Refused),
                S3Failure::Conflict => CONFLICT_WAITS.sleep(conflict).await,
                S3Failure::Refused(error) | S3Failure::Other(error) => return Err(error),
            }
        }
        Err(Error::transient(format!("writes to bucket {} keep conflicting", place.bucket)))
    }

    fn put_request(&self, place: &S3Location<'_>, bytes: Bytes) -> PutObjectFluentBuilder {
        let client = if bytes.len() < SMALL_BODY { &self.client } else { &self.uploads };
        client.put_object().bucket(place.bucket).key(place.key).body(ByteStream::from(bytes))
    }

    /// Whether the object in a write's way is that very write: its first reply was lost and the SDK
    /// sent it again.
    async fn is_own_write(&self, place: &S3Location<'_>, id: &str) -> Result<PutResult> {
        let request = self.client.head_object().bucket(place.bucket).key(place.key);
        match request.send().await {
            Ok(found) => {
                let written_by = found.metadata().and_then(|all| all.get(WRITE_ID));
                if written_by.is_some_and(|by| by == id) {
                    return require_etag(found.e_tag()).map(PutResult::Written);
                }
                Ok(PutResult::Refused)
            }
            Err(error) => match classify_failure(error, place, "look at an object") {
                S3Failure::Refused(error) | S3Failure::Other(error) => Err(error),
                _ => Ok(PutResult::Refused),
            },
        }
    }

    /// The rules that notify queues of new objects.
    ///
    /// # Errors
    /// The bucket does not answer, or not to us (`s3:GetBucketNotification`, which a worker does
    /// not need).
    pub async fn queue_rules(&self) -> Result<Vec<BucketQueueRule>> {
        let request = self.client.get_bucket_notification_configuration().bucket(&self.bucket);
        let place = S3Location { bucket: &self.bucket, key: "", foreign: false };
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) => {
                let failure = classify_failure(error, &place, "look at the notifications");
                return Err(failure.into_error(&place));
            }
        };
        Ok(queue_rules_of(&answer))
    }

    /// Whether a key that is not there is distinguished from one that we may not see: without
    /// `s3:ListBucket` S3 answers both alike, and missing documents look like wrong credentials.
    ///
    /// # Errors
    /// The bucket does not answer, or refuses.
    pub async fn distinguishes_missing(&self) -> Result<bool> {
        let key = format!("ingestions/.probe-{}", uuid::Uuid::new_v4());
        Ok(self.head(&key).await?.is_none())
    }
}

fn require_etag(etag: Option<&str>) -> Result<Etag> {
    let etag = etag.ok_or_else(|| Error::internal("the object store returned no ETag"))?;
    Ok(Etag(etag.to_owned()))
}

fn time_of(stamp: Option<&aws_sdk_s3::primitives::DateTime>) -> SystemTime {
    stamp.and_then(|at| SystemTime::try_from(*at).ok()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn size_of(length: Option<i64>) -> u64 {
    length.and_then(|length| u64::try_from(length).ok()).unwrap_or_default()
}

/// Reads a body piece by piece; `Err(size)` with what was read so far if that is more than allowed.
async fn read_capped(
    mut body: ByteStream,
    at_most: u64,
) -> Result<std::result::Result<Bytes, u64>> {
    let mut bytes = BytesMut::new();
    loop {
        let next = async {
            let piece = body.next().await.transpose();
            piece.map_err(|error| {
                Error::transient("the body of an object broke off").with_source(error)
            })
        };
        let silent =
            || Error::new(Fault::Unavailable, "the object store stopped sending a body".to_owned());
        let Some(piece) = with_deadline(PART_TIMEOUT, next, silent).await? else {
            return Ok(Ok(bytes.freeze()));
        };
        bytes.extend_from_slice(&piece);
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > at_most {
            return Ok(Err(size));
        }
    }
}

#[async_trait]
impl ObjectStore for S3Store {
    fn describe(&self) -> String {
        format!("S3 bucket {} at {}", self.bucket, self.address)
    }

    fn split_name<'a>(&'a self, name: &'a str) -> Option<ObjectName<'a>> {
        let S3Location { bucket, key, foreign } = self.locate_key(name).ok()?;
        Some(ObjectName { bucket, key, foreign })
    }

    async fn head(&self, key: &str) -> Result<Option<ObjectMeta>> {
        let place = self.locate_key(key)?;
        let request = self.client.head_object().bucket(place.bucket).key(place.key);
        let found = match request.send().await {
            Ok(found) => found,
            Err(error) => {
                let failure = classify_failure(error, &place, "look at an object");
                return self.judge_refusal(&place, failure).await.into_absent();
            }
        };
        let metadata = found.metadata().into_iter().flatten();
        let metadata = metadata
            .filter(|(name, _)| name.as_str() != WRITE_ID)
            .map(|(name, value)| (name.to_ascii_lowercase(), decode_value(value)));
        Ok(Some(ObjectMeta {
            size: size_of(found.content_length()),
            etag: require_etag(found.e_tag())?,
            modified: time_of(found.last_modified()),
            metadata: metadata.collect(),
        }))
    }

    async fn locate_in_s3(&self, key: &str) -> Result<Option<S3Address>> {
        let place = self.locate_key(key)?;
        let request = self.client.head_object().bucket(place.bucket).key(place.key);
        let found = match request.send().await {
            Ok(found) => found,
            Err(error) => {
                return classify_failure(error, &place, "look at an object").into_absent();
            }
        };
        Ok(Some(S3Address {
            bucket: place.bucket.to_owned(),
            key: place.key.to_owned(),
            // An object from before the bucket kept versions has one of this name.
            version: found.version_id().filter(|id| *id != "null").map(str::to_owned),
            etag: require_etag(found.e_tag())?,
        }))
    }

    async fn get(&self, key: &str, what: GetOptions) -> Result<GetResult> {
        let place = self.locate_key(key)?;
        let wanted = what.if_match.map(|etag| etag.0);
        let request = self.client.get_object().bucket(place.bucket).key(place.key);
        let found = match request.set_if_match(wanted).send().await {
            Ok(found) => found,
            Err(error) => {
                let failure = classify_failure(error, &place, "read an object");
                return match self.judge_refusal(&place, failure).await {
                    S3Failure::NoSuchKey => Ok(GetResult::Missing),
                    S3Failure::Precondition => Ok(GetResult::Changed),
                    // A write is under way; it says nothing about the version that is there.
                    failure @ S3Failure::Conflict => Err(failure.into_error(&place)),
                    S3Failure::Refused(error) | S3Failure::Other(error) => Err(error),
                };
            }
        };
        let size = size_of(found.content_length());
        if size > what.at_most {
            return Ok(GetResult::TooLarge { size });
        }
        let etag = require_etag(found.e_tag())?;
        Ok(match read_capped(found.body, what.at_most).await? {
            Ok(bytes) => GetResult::Found(FetchedObject { bytes, etag }),
            Err(size) => GetResult::TooLarge { size },
        })
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        metadata: &BTreeMap<String, String>,
    ) -> Result<Etag> {
        let place = self.locate_key(key)?;
        let mut request = self.put_request(&place, bytes);
        for (name, value) in metadata {
            request = request.metadata(name.to_ascii_lowercase(), encode_value(value));
        }
        match request.send().await {
            Ok(done) => require_etag(done.e_tag()),
            Err(error) => Err(classify_failure(error, &place, "write").into_error(&place)),
        }
    }

    async fn presign_write(
        &self,
        key: &str,
        size: u64,
        valid: Duration,
    ) -> Result<Option<PresignedWrite>> {
        let place = self.locate_key(key)?;
        let wrong = |what: &str| Error::internal(format!("an upload cannot be signed: {what}"));
        let terms = PresigningConfig::expires_in(valid).map_err(|_| wrong("the time is none"))?;
        let length = i64::try_from(size).map_err(|_| wrong("the size is none"))?;
        let request = self.client.put_object().bucket(place.bucket).key(place.key);
        let signed = request.content_length(length).presigned(terms).await;
        let signed = signed
            .map_err(|error| classify_failure(error, &place, "sign an upload"))
            .map_err(|failure| failure.into_error(&place))?;
        let headers = signed.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers = headers.collect();
        Ok(Some(PresignedWrite { url: signed.uri().to_owned(), headers }))
    }

    async fn presign_read(&self, key: &str, valid: Duration) -> Result<Option<String>> {
        let place = self.locate_key(key)?;
        let terms = PresigningConfig::expires_in(valid)
            .map_err(|_| Error::internal("a read cannot be signed: the time is none"))?;
        let request = self.client.get_object().bucket(place.bucket).key(place.key);
        let signed = request.presigned(terms).await;
        let signed = signed
            .map_err(|error| classify_failure(error, &place, "sign a read"))
            .map_err(|failure| failure.into_error(&place))?;
        Ok(Some(signed.uri().to_owned()))
    }

    async fn put_if_absent(&self, key: &str, bytes: Bytes) -> Result<PutResult> {
        self.put_conditionally(key, S3Condition::Absent, bytes).await
    }

    async fn put_if_match(&self, key: &str, etag: &Etag, bytes: Bytes) -> Result<PutResult> {
        self.put_conditionally(key, S3Condition::Is(etag), bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        let place = self.locate_key(key)?;
        let request = self.client.delete_object().bucket(place.bucket).key(place.key);
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) => match classify_failure(error, &place, "delete") {
                S3Failure::NoSuchKey => Ok(()),
                failure => Err(failure.into_error(&place)),
            },
        }
    }

    async fn delete_if_match(&self, key: &str, etag: &Etag) -> Result<bool> {
        let place = self.locate_key(key)?;
        for conflict in 0..CONFLICTS {
            // S3 answers 204 to a conditional delete of what is not there.
            if self.head(key).await?.is_none_or(|found| found.etag != *etag) {
                return Ok(false);
            }
            let request = self.client.delete_object().bucket(place.bucket).key(place.key);
            let failure = match request.if_match(&etag.0).send().await {
                Ok(_) => return Ok(true),
                Err(error) => classify_failure(error, &place, "delete"),
            };
            match failure {
                S3Failure::Precondition | S3Failure::NoSuchKey => return Ok(false),
                S3Failure::Conflict => CONFLICT_WAITS.sleep(conflict).await,
                S3Failure::Refused(error) | S3Failure::Other(error) => return Err(error),
            }
        }
        Err(Error::transient(format!("deletes in bucket {} keep conflicting", place.bucket)))
    }

    async fn keeps_delete_conditions(&self, probe: &str) -> Result<bool> {
        let place = self.locate_key(probe)?;
        if self.put_if_absent(probe, Bytes::from_static(b"1")).await? == PutResult::Refused {
            return Err(Error::internal("a fresh key was refused"));
        }
        // Not by `delete_if_match`, which looks first: the service itself has to say no.
        let stale = "\"00000000000000000000000000000000\"";
        let request = self.client.delete_object().bucket(place.bucket).key(place.key);
        let kept = match request.if_match(stale).send().await {
            Ok(_) => false,
            Err(error) => match classify_failure(error, &place, "delete") {
                S3Failure::Precondition | S3Failure::Conflict => true,
                S3Failure::NoSuchKey => false,
                S3Failure::Refused(error) | S3Failure::Other(error) => return Err(error),
            },
        };
        self.delete(probe).await?;
        Ok(kept)
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<ObjectEntry>> {
        let (place, scheme) = S3Location::parse_prefix(&self.bucket, prefix)?;
        let mut found: Vec<ObjectEntry> = Vec::new();
        let mut after = after.map(|key: &str| key.strip_prefix(&scheme).unwrap_or(key).to_owned());
        while found.len() < max {
            let wanted = (max - found.len()).min(PAGE);
            let request = self
                .client
                .list_objects_v2()
                .bucket(place.bucket)
                .prefix(place.key)
                .set_start_after(after)
                .max_keys(i32::try_from(wanted).unwrap_or(1000));
            let page = match request.send().await {
                Ok(page) => page,
                Err(error) => {
                    return Err(classify_failure(error, &place, "list").into_error(&place));
                }
            };
            let entries = page.contents().iter().filter_map(entry_of);
            found.extend(entries);
            after = found.last().map(|entry| entry.key.clone());
            if page.is_truncated() != Some(true) || page.contents().is_empty() {
                break;
            }
        }
        found.iter_mut().for_each(|entry| entry.key.insert_str(0, &scheme));
        Ok(found)
    }
}

fn entry_of(object: &aws_sdk_s3::types::Object) -> Option<ObjectEntry> {
    Some(ObjectEntry {
        key: object.key()?.to_owned(),
        size: size_of(object.size()),
        modified: time_of(object.last_modified()),
    })
}
