//! Receiving: finding messages that are due and free, and locking them.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;

use super::layout::{
    LOCKS, Lock, Marker, TIERS, Ticket, lock_key, name_in, priority_of, read, tier_prefix, todo_key,
};
use super::{ObjectQueue, PAGE, TRIES, after, millis, now, time_of};
use crate::fault::{Error, Result};
use crate::queue::Delivery;
use crate::store::{Entry, Etag, Fetch, Get, Put};

/// The largest marker or lock that is read; SQS bodies are at most 1 MiB.
const LARGEST: u64 = 2 << 20;

/// A message that may be free.
struct Candidate<'a> {
    tier: &'static str,
    name: &'a str,
    entry: &'a Entry,
    lock: Option<&'a Entry>,
}

impl ObjectQueue {
    /// One look at everything that waits. What was locked is returned even if a later request
    /// fails: otherwise it would stay hidden for nothing.
    pub(super) async fn take(&self, max: usize) -> Result<Vec<Delivery>> {
        let locks = self.locks().await?;
        let mut taken = Vec::new();
        for tier in TIERS {
            let done = self.take_from(tier, &locks, max, &mut taken).await;
            if let Err(error) = done {
                if taken.is_empty() {
                    return Err(error);
                }
                return Ok(taken);
            }
            if taken.len() >= max {
                break;
            }
        }
        Ok(taken)
    }

    /// Goes through a tier once around from a random name, so that workers do not meet at the
    /// first entries and hidden ones there do not keep anybody from the rest.
    async fn take_from(
        &self,
        tier: &'static str,
        locks: &BTreeMap<String, Entry>,
        max: usize,
        taken: &mut Vec<Delivery>,
    ) -> Result<()> {
        let prefix = tier_prefix(tier);
        let start = format!("{prefix}{:016x}", fastrand::u64(..));
        for (from, until) in [(Some(start.clone()), None), (None, Some(start))] {
            let mut cursor = from;
            loop {
                let page = self.store.list(&prefix, cursor.as_deref(), PAGE).await?;
                for entry in &page {
                    if until.as_ref().is_some_and(|until| entry.key > *until) || taken.len() >= max
                    {
                        break;
                    }
                    let Some(name) = name_in(&entry.key, &prefix) else { continue };
                    let lock = locks.get(name);
                    taken.extend(self.try_take(&Candidate { tier, name, entry, lock }).await?);
                }
                cursor = page.last().map(|entry| entry.key.clone());
                let past = until.is_some() && cursor > until;
                if page.len() < PAGE || past || taken.len() >= max {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn try_take(&self, candidate: &Candidate<'_>) -> Result<Option<Delivery>> {
        // The hiding is counted from before the first request about this message.
        let (started, now) = (Instant::now(), now());
        let Candidate { name, entry, lock, .. } = candidate;
        if self.is_locked(name, *lock, now).await? || !self.is_due(entry, now).await? {
            return Ok(None);
        }
        let Some((nonce, etag)) = self.lock(candidate, now).await? else { return Ok(None) };
        let counted = self.count(candidate, now).await;
        match counted {
            Ok(Some(marker)) if self.dead_after.is_some_and(|most| marker.receives > most) => {
                self.bury(name, candidate.tier, &marker).await?;
                self.store.delete_if_match(&lock_key(name), &etag).await?;
                Ok(None)
            }
            Ok(Some(marker)) => Ok(Some(delivery(candidate, nonce, marker, started))),
            nothing => {
                self.store.delete_if_match(&lock_key(name), &etag).await?;
                nothing.map(|_| None)
            }
        }
    }

    /// Every lock, by name.
    pub(super) async fn locks(&self) -> Result<BTreeMap<String, Entry>> {
        let entries = self.list_all(LOCKS).await?;
        let named = entries
            .into_iter()
            .filter_map(|entry| Some((name_in(&entry.key, LOCKS)?.to_owned(), entry)));
        Ok(named.collect())
    }

    /// Whether somebody's lock on the message still lasts.
    pub(super) async fn is_locked(
        &self,
        name: &str,
        lock: Option<&Entry>,
        now: u64,
    ) -> Result<bool> {
        let Some(entry) = lock else { return Ok(false) };
        if self.seen.until(entry).is_some_and(|until| until > now) {
            return Ok(true);
        }
        let Some((lock, _)) = self.read_lock(name).await? else { return Ok(false) };
        let end = lock.end(millis(entry.modified));
        self.seen.note(entry, end);
        Ok(end > now)
    }

    /// Whether the message is visible by its marker.
    pub(super) async fn is_due(&self, entry: &Entry, now: u64) -> Result<bool> {
        if let Some(until) = self.seen.until(entry) {
            return Ok(until <= now);
        }
        let Some((marker, _)) = self.read::<Marker>(&entry.key).await? else { return Ok(false) };
        self.seen.note(entry, marker.not_before);
        Ok(marker.not_before <= now)
    }

    /// Takes the lock: a new one if there is none, else by replacing the ended one that was seen.
    async fn lock(&self, candidate: &Candidate<'_>, now: u64) -> Result<Option<(String, Etag)>> {
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let lock = Lock {
            worker: self.worker.clone(),
            started: now,
            last_heartbeat: now,
            priority: candidate.tier.to_owned(),
            nonce: nonce.clone(),
            lock_version: 2,
            expires_at: Some(after(now, self.visibility)),
            ..Lock::default()
        };
        let key = lock_key(candidate.name);
        let put = match self.read_lock(candidate.name).await? {
            None => self.store.put_if_absent(&key, json(&lock)?).await?,
            Some((old, etag)) => {
                let modified = candidate.lock.map_or(now, |entry| millis(entry.modified));
                if old.end(modified) > now {
                    return Ok(None);
                }
                self.store.put_if_match(&key, &etag, json(&lock)?).await?
            }
        };
        Ok(match put {
            Put::Written(etag) => Some((nonce, etag)),
            Put::Refused => None,
        })
    }

    /// Looks at the marker again, now that the lock is ours, and counts the receive in it.
    /// `None`: the message is done or hidden since it was listed.
    async fn count(&self, candidate: &Candidate<'_>, now: u64) -> Result<Option<Marker>> {
        let key = todo_key(candidate.tier, candidate.name);
        for _ in 0..TRIES {
            let Some((mut marker, etag)) = self.read::<Marker>(&key).await? else {
                return Ok(None);
            };
            if marker.not_before > now {
                return Ok(None);
            }
            marker.receives = marker.receives.saturating_add(1);
            marker.first_received_at.get_or_insert(now);
            if let Put::Written(_) = self.store.put_if_match(&key, &etag, json(&marker)?).await? {
                return Ok(Some(marker));
            }
        }
        Ok(None)
    }

    pub(super) async fn read_lock(&self, name: &str) -> Result<Option<(Lock, Etag)>> {
        self.read(&lock_key(name)).await
    }

    /// Reads one of the queue's objects.
    pub(super) async fn read<T>(&self, key: &str) -> Result<Option<(T, Etag)>>
    where
        T: serde::de::DeserializeOwned + Default,
    {
        match self.store.get(key, Get { at_most: LARGEST, if_match: None }).await? {
            Fetch::Found(object) => Ok(Some((read(&object.bytes), object.etag))),
            Fetch::Missing | Fetch::Changed => Ok(None),
            Fetch::TooLarge { .. } => Err(Error::internal("an object of the queue is too large")),
        }
    }
}

fn delivery(
    candidate: &Candidate<'_>,
    nonce: String,
    marker: Marker,
    received: Instant,
) -> Delivery {
    let name = candidate.name.to_owned();
    let tier = candidate.tier.to_owned();
    let ticket = Ticket { tier, name: name.clone(), nonce, sends: marker.sends };
    Delivery {
        message_id: name.clone(),
        receipt: ticket.receipt(),
        receive_count: marker.receives,
        sent_at: (marker.queued_at > 0).then(|| time_of(marker.queued_at)),
        first_received_at: marker.first_received_at.map(time_of),
        body: marker.body.unwrap_or(name),
        received,
        priority: priority_of(candidate.tier),
        tenant: None,
        traceparent: None,
    }
}

/// The object as it is stored.
pub(super) fn json<T: serde::Serialize>(value: &T) -> Result<Bytes> {
    let text = serde_json::to_vec(value)
        .map_err(|error| Error::internal("an object of the queue has no JSON").because(error))?;
    Ok(text.into())
}
