//! Receiving: finding messages that are due and free, and locking them.

use std::time::Instant;

use super::blobforge::records::Lock;
use super::blobforge::{Priority, lock_key, marker_in, todo_key};
use super::engine::{Held, TRIES, back_off, json, millis, time_of};
use super::message::{Message, Ticket, end_of};
use super::scan::Scan;
use super::{ObjectQueue, after};
use crate::fault::Result;
use crate::queue::Delivery;
use crate::store::{Entry, Put};

/// A message that may be free.
struct Candidate<'a> {
    tier: Priority,
    name: &'a str,
    entry: &'a Entry,
    lock: Option<&'a Entry>,
}

/// What became of a candidate.
enum Tried {
    /// It is ours.
    Taken(Box<Delivery>),
    /// Hidden or locked; it may be had later.
    Later,
    /// Gone, or somebody was faster; the next listing tells.
    Gone,
}

impl ObjectQueue {
    /// Takes what waits, most urgent first. What was locked is returned even if a later request
    /// fails: otherwise it would stay hidden for nothing.
    pub(super) async fn take(&self, max: usize) -> Result<Vec<Delivery>> {
        let mut scan = self.scan.lock().await;
        let mut taken = Vec::new();
        match self.take_some(&mut scan, max, &mut taken).await {
            Err(error) if taken.is_empty() => Err(error),
            _ => Ok(taken),
        }
    }

    async fn take_some(
        &self,
        scan: &mut Scan,
        max: usize,
        taken: &mut Vec<Delivery>,
    ) -> Result<()> {
        let now = self.engine.now().await?;
        if scan.is_old() {
            scan.refresh(&self.engine, self.each_list).await?;
        }
        loop {
            let mut entries = std::mem::take(&mut scan.found).into_iter();
            for entry in entries.by_ref() {
                if taken.len() >= max {
                    scan.found.push(entry);
                    break;
                }
                let Some((tier, name)) = marker_in(&entry.key) else { continue };
                let lock = scan.locks.get(name);
                match self.try_take(&Candidate { tier, name, entry: &entry, lock }, now).await {
                    Ok(Tried::Taken(delivery)) => taken.push(*delivery),
                    Ok(Tried::Later) => scan.found.push(entry),
                    Ok(Tried::Gone) => {}
                    Err(error) => {
                        scan.forget();
                        return Err(error);
                    }
                }
            }
            scan.found.extend(entries);
            // Where listings are dear, the next look begins elsewhere by itself.
            let go_on = taken.len() < max && self.each_list.is_zero();
            if !go_on || !scan.more(&self.engine).await? {
                return Ok(());
            }
        }
    }

    async fn try_take(&self, candidate: &Candidate<'_>, now: u64) -> Result<Tried> {
        // The hiding is counted from before the first request about this message.
        let started = Instant::now();
        let Candidate { tier, name, entry, lock } = candidate;
        if self.is_locked(name, *lock, now).await? {
            return Ok(Tried::Later);
        }
        match self.is_due(entry, now).await? {
            None => return Ok(Tried::Gone),
            Some(false) => return Ok(Tried::Later),
            Some(true) => {}
        }
        let Some(mut lock) = self.lock(candidate, now).await? else { return Ok(Tried::Gone) };
        match self.count(candidate, now).await {
            Ok(Some(message)) if self.dead_after.is_none_or(|most| message.receives <= most) => {
                let nonce = lock.lease().nonce.clone();
                Ok(Tried::Taken(Box::new(delivery(candidate, nonce, message, started))))
            }
            Ok(Some(message)) => {
                self.bury(name, *tier, &message).await?;
                self.engine.release(&mut lock).await?;
                Ok(Tried::Gone)
            }
            nothing => {
                self.engine.release(&mut lock).await?;
                nothing.map(|_| Tried::Gone)
            }
        }
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
        let Some(lock) = self.engine.lock::<Lock>(&lock_key(name)).await? else {
            return Ok(false);
        };
        let end = end_of(&lock.lease, millis(lock.modified));
        self.seen.note(entry, end, now);
        Ok(end > now)
    }

    /// Whether the message is visible by its marker; `None` if it is gone.
    pub(super) async fn is_due(&self, entry: &Entry, now: u64) -> Result<Option<bool>> {
        if let Some(until) = self.seen.until(entry) {
            return Ok(Some(until <= now));
        }
        let Some(seen) = self.engine.read::<Message>(&entry.key).await? else { return Ok(None) };
        self.seen.note(entry, seen.value.not_before, now);
        Ok(Some(seen.value.not_before <= now))
    }

    /// Takes the lock: a new one if there is none, else by replacing the ended one that was seen.
    async fn lock(&self, candidate: &Candidate<'_>, now: u64) -> Result<Option<Held<Lock>>> {
        let key = lock_key(candidate.name);
        let mut lock = Lock::new(&self.worker, candidate.tier.code(), now);
        lock.expires_at = Some(after(now, self.visibility));
        if let Some(held) = self.engine.take(&key, lock.clone()).await? {
            return Ok(Some(held));
        }
        let Some(old) = self.engine.lock::<Lock>(&key).await? else { return Ok(None) };
        if end_of(&old.lease, millis(old.modified)) > now {
            return Ok(None);
        }
        self.engine.take_over(&key, &old.etag, lock).await
    }

    /// Looks at the marker again, now that the lock is ours, and counts the receive in it.
    /// `None`: the message is done or hidden since it was listed.
    async fn count(&self, candidate: &Candidate<'_>, now: u64) -> Result<Option<Message>> {
        let key = todo_key(candidate.tier, candidate.name);
        for turn in 0..TRIES {
            let Some(seen) = self.engine.read::<Message>(&key).await? else { return Ok(None) };
            let mut message = seen.value;
            if message.not_before > now {
                return Ok(None);
            }
            message.receives = message.receives.saturating_add(1);
            message.first_received_at.get_or_insert(now);
            let bytes = json(&message)?;
            let put = self.engine.store().put_if_match(&key, &seen.etag, bytes).await?;
            if let Put::Written(_) = put {
                return Ok(Some(message));
            }
            back_off(turn).await;
        }
        Ok(None)
    }
}

fn delivery(
    candidate: &Candidate<'_>,
    nonce: String,
    message: Message,
    received: Instant,
) -> Delivery {
    let name = candidate.name.to_owned();
    let tier = candidate.tier.code().to_owned();
    let ticket = Ticket { tier, name: name.clone(), nonce, sends: message.sends };
    Delivery {
        message_id: name.clone(),
        receipt: ticket.receipt(),
        receive_count: message.receives,
        sent_at: (message.queued_at > 0).then(|| time_of(message.queued_at)),
        first_received_at: message.first_received_at.map(time_of),
        body: message.body.unwrap_or(name),
        received,
        priority: Some(candidate.tier.into()),
        tenant: None,
        traceparent: None,
    }
}
