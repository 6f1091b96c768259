//! One group: its documents one after the other, what became of each, and the result of all.
//!
//! A document that fails is begun again in a later run of its group, while those beside it keep
//! what was read of them; after `tries` it is left out of the result, and stays in the ledger.

use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;

use super::claim::{Claim, Claimed};
use super::ledger::{Entry, Known, Standing};
use super::read::{Read, Reading};
use super::source::{Fetched, Sources};
use super::work::{Counts, Terms};
use super::{Workspace, dolma};
use crate::fault::{Error, Fault, Result};
use crate::model::{ClaimToken, IngestionId};
use crate::pipeline::{ClaimHandle, ClaimRenewer, claim_handle};
use crate::queue::objects::olmocr::index::Group;
use crate::queue::objects::olmocr::{flag, result, sha1};
use crate::shutdown::Stop;
use crate::store::Put;

/// How often the end of a run is tried to be written.
const TRIES: u32 = 3;

/// What the jobs of a worker share.
pub(super) struct Shared {
    pub(super) workspace: Arc<Workspace>,
    pub(super) reader: Arc<dyn Read>,
    pub(super) sources: Arc<Sources>,
    pub(super) terms: Terms,
    pub(super) worker: String,
    pub(super) counts: Counts,
    pub(super) stop: Stop,
}

/// How a run of a group ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Its result is there, by us.
    Done,
    /// Its result was there.
    Settled,
    /// Somebody else has it, for so long at most.
    Busy(Duration),
    /// Documents of it are to be tried again.
    Partial,
    /// Given back: we are to stop.
    Interrupted,
    /// Given back: every other group would fare the same.
    Held,
    /// Somebody else took it over.
    Lost,
}

/// Takes a group and works on it.
pub(super) async fn run(shared: &Shared, group: &Group) -> Result<Outcome> {
    let mut claim = match shared.workspace.claim(&shared.worker, group).await? {
        Claimed::Ours(claim) => claim,
        Claimed::Busy(left) => return Ok(Outcome::Busy(left)),
        Claimed::Done => return Ok(Outcome::Settled),
    };
    let outcome = match Known::load(&shared.workspace, &group.hash).await {
        Ok(mut known) => {
            let outcome = attempt(shared, group, &mut claim, &mut known).await;
            end(shared, group, (&mut claim, &mut known), outcome).await
        }
        Err(error) => Err(error),
    };
    shared.workspace.give_up(&mut claim).await;
    outcome
}

async fn attempt(
    shared: &Shared,
    group: &Group,
    claim: &mut Claim,
    known: &mut Known,
) -> Result<Outcome> {
    let until = std::time::Instant::now() + shared.workspace.timeout();
    let (handle, renewer) = claim_handle::pair(IngestionId::random(), ClaimToken::random(), until);
    tokio::select! {
        outcome = documents(shared, group, known, &handle) => outcome,
        () = keep(&shared.workspace, claim, &renewer) => Ok(Outcome::Lost),
        () = shared.stop.until_asked() => Ok(Outcome::Interrupted),
    }
}

/// Renews the locks until they are lost, or until nobody can tell any more whether they still are
/// ours.
async fn keep(workspace: &Workspace, claim: &mut Claim, renewer: &ClaimRenewer) {
    let mut sure_since = Instant::now();
    loop {
        tokio::time::sleep(workspace.beat()).await;
        let asked = Instant::now();
        let until = std::time::Instant::now() + workspace.timeout();
        match workspace.renew(claim).await {
            Ok(true) => {
                sure_since = asked;
                renewer.renewed(until);
            }
            Ok(false) => return renewer.lost(),
            Err(error) => {
                tracing::warn!(error = %error, "cannot renew a lock: {error}");
                if sure_since.elapsed() + workspace.beat() >= workspace.timeout() {
                    return;
                }
            }
        }
    }
}

/// Reads what is not settled yet.
async fn documents(
    shared: &Shared,
    group: &Group,
    known: &mut Known,
    claim: &ClaimHandle,
) -> Result<Outcome> {
    let (workspace, most) = (&shared.workspace, shared.terms.tries);
    let mut outcome = Outcome::Done;
    for path in &group.paths {
        let mut entry = known.of(path);
        if entry.is_settled(most) {
            continue;
        }
        // Counted when it begins, so that a document that kills its workers is counted too.
        (entry.standing, entry.tries) = (Standing::Begun, entry.tries.saturating_add(1));
        if !known.save(workspace, entry.clone()).await? {
            return Ok(Outcome::Lost);
        }
        let document = sha1(path.as_bytes());
        tracing::debug!(group = group.hash, document, run = entry.tries, "document begun");
        match read(shared, path, claim).await {
            Ok(read) => read.note(&mut entry),
            Err(error) if error.fault == Fault::ClaimLost => return Ok(Outcome::Lost),
            Err(error) if is_nobodys(error.fault) => {
                tracing::warn!(error = %error, "a group is given back: {error}");
                return Ok(Outcome::Held);
            }
            Err(error) => {
                entry.standing = Standing::Failed;
                error.fault.code().clone_into(&mut entry.reason);
                entry.detail = error.context.into_owned();
            }
        }
        if !entry.is_settled(most) {
            outcome = Outcome::Partial;
        }
        if !known.save(workspace, entry).await? {
            return Ok(Outcome::Lost);
        }
    }
    Ok(outcome)
}

/// What reading a document came to.
enum Came {
    Line(String),
    Empty,
    Refused { code: String, detail: String },
}

impl Came {
    fn note(self, entry: &mut Entry) {
        (entry.reason, entry.detail) = (String::new(), String::new());
        match self {
            Self::Line(line) => (entry.standing, entry.line) = (Standing::Read, Some(line)),
            Self::Empty => entry.standing = Standing::Empty,
            Self::Refused { code, detail } => {
                entry.standing = Standing::Refused;
                (entry.reason, entry.detail) = (code, detail);
            }
        }
    }
}

async fn read(shared: &Shared, path: &str, claim: &ClaimHandle) -> Result<Came> {
    let refused = |code: &str, detail: String| Ok(Came::Refused { code: code.to_owned(), detail });
    let bytes = match shared.sources.fetch(path).await? {
        Fetched::Bytes(bytes) => bytes,
        Fetched::TooLarge => {
            let limit = shared.sources.largest;
            return refused("too_large", format!("limits.document_bytes is {limit}"));
        }
    };
    let text = match shared.reader.read(path, bytes, claim).await? {
        Reading::Whole(text) => text,
        Reading::Empty => return Ok(Came::Empty),
        Reading::Refused { code, detail } => return Ok(Came::Refused { code, detail }),
    };
    if is_beyond(text.lost, text.pages.len(), shared.terms.page_error_rate) {
        let detail = format!("{} of {} pages were lost", text.lost, text.pages.len());
        return refused("page_errors", detail);
    }
    let today = OffsetDateTime::now_utc().date().to_string();
    Ok(dolma::line(path, &text, &today).map_or(Came::Empty, Came::Line))
}

/// Whether more pages were lost than a document may lose; the rate is lost pages per page.
fn is_beyond(lost: usize, pages: usize, rate: f64) -> bool {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    count(lost) > rate * count(pages)
}

/// Writes how the run ended; the locks are still to be given back.
async fn end(
    shared: &Shared,
    group: &Group,
    (claim, known): (&mut Claim, &mut Known),
    outcome: Result<Outcome>,
) -> Result<Outcome> {
    match outcome? {
        Outcome::Done => {
            for turn in 1..TRIES {
                match finish(shared, group, claim, known).await {
                    Err(error) if error.fault == Fault::Transient => {
                        tracing::warn!(error = %error, turn, "cannot finish a group: {error}");
                        tokio::time::sleep(Duration::from_secs(u64::from(turn))).await;
                    }
                    ended => return ended,
                }
            }
            finish(shared, group, claim, known).await
        }
        given_back @ (Outcome::Interrupted | Outcome::Held) => {
            let begun: Vec<Entry> = known
                .entries()
                .filter(|entry| entry.standing == Standing::Begun)
                .cloned()
                .collect();
            for mut entry in begun {
                // Not its fault: the run does not count.
                (entry.standing, entry.tries) = (Standing::Waiting, entry.tries.saturating_sub(1));
                known.save(&shared.workspace, entry).await?;
            }
            Ok(given_back)
        }
        other => Ok(other),
    }
}

/// The result first, then the flag: whoever sees either knows that the group is done.
async fn finish(
    shared: &Shared,
    group: &Group,
    claim: &mut Claim,
    known: &mut Known,
) -> Result<Outcome> {
    let workspace = &shared.workspace;
    if !bury_crashed(shared, group, known).await? || !workspace.renew(claim).await? {
        return Ok(Outcome::Lost);
    }
    let mut lines = String::new();
    for path in &group.paths {
        if let Some(line) = known.of(path).line {
            lines.push_str(&line);
            lines.push('\n');
        }
    }
    let store = workspace.engine.store();
    let written = store.put_if_absent(&result(&group.hash), lines.into()).await?;
    if workspace.format.has_flags() {
        store.put_if_absent(&flag(&group.hash), bytes::Bytes::new()).await?;
    }
    if written != Put::Refused {
        shared.counts.documents(group.paths.iter().map(|path| known.of(path)));
    }
    known.remove(workspace, |entry| !entry.is_unread()).await?;
    Ok(Outcome::Done)
}

/// Documents whose worker died over them as often as they may be begun.
async fn bury_crashed(shared: &Shared, group: &Group, known: &mut Known) -> Result<bool> {
    for path in &group.paths {
        let mut entry = known.of(path);
        if entry.standing == Standing::Begun {
            (entry.standing, entry.reason) = (Standing::Failed, "crashed".to_owned());
            if !known.save(&shared.workspace, entry).await? {
                return Ok(false);
            }
        }
    }
    Ok(true)
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

/// For a job that could not even begin.
pub(super) fn told(error: &Error) {
    tracing::warn!(error = %error, "cannot work on a group: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_discarded_only_above_the_rate() {
        for (lost, pages, rate, expected) in [
            (0, 0, 0.004, false),
            (0, 10, 0.0, false),
            (1, 250, 0.004, false),
            (1, 249, 0.004, true),
            (1, 10, 0.1, false),
            (10, 10, 1.0, false),
        ] {
            assert_eq!(is_beyond(lost, pages, rate), expected, "{lost} of {pages} at {rate}");
        }
    }
}
