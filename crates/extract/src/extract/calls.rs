//! The calls about one transcript: each is made at most once and kept before it is used.
//!
//! Several may be under way at the same time. Replies that arrive while others are being kept are
//! kept together by the next write.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::hash_parts;
use super::journal::{Journal, Replies, StoredCall};
use crate::fault;
use crate::llm::{Llm, Prompt};
use crate::metrics;
use crate::model::Usage;

/// Most calls about one document: a bound on what one document may cost.
pub(super) const MOST_CALLS: usize = 400;
/// Most bytes of all replies about one document that are kept.
pub(super) const MOST_BYTES: usize = 32 << 20;

/// Calls and their replies.
pub(super) struct Calls<'a> {
    llm: &'a dyn Llm,
    state: Mutex<State>,
    journal: tokio::sync::Mutex<Kept<'a>>,
}

struct State {
    replies: Replies,
    under_way: usize,
    /// How many replies have come in; what is kept is told by this number.
    came: u64,
    answered: usize,
    usage: Usage,
    model: Option<String>,
}

struct Kept<'a> {
    journal: &'a mut dyn Journal,
    came: u64,
}

/// Counts a call as under way until it is dropped, also if the caller is.
struct UnderWay<'a>(&'a Mutex<State>);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        lock(self.0).under_way -= 1;
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Calls<'a> {
    /// Begins with what an earlier run has kept under this identity.
    pub(super) async fn begin(
        llm: &'a dyn Llm,
        identity: &str,
        journal: &'a mut dyn Journal,
    ) -> fault::Result<Self> {
        let same = |it: &Replies| it.format == Replies::FORMAT && it.identity == identity;
        let kept = journal.load().await?.filter(same);
        let state = State {
            replies: kept.unwrap_or_else(|| Replies::new(identity)),
            under_way: 0,
            came: 0,
            answered: 0,
            usage: Usage::default(),
            model: None,
        };
        let journal = tokio::sync::Mutex::new(Kept { journal, came: 0 });
        Ok(Self { llm, state: Mutex::new(state), journal })
    }

    /// One call, or its stored reply. `None`: the document has cost enough.
    pub(super) async fn call(
        &self,
        purpose: String,
        prompt: &Prompt,
    ) -> fault::Result<Option<StoredCall>> {
        let key = key(prompt);
        if let Some(call) = self.stored(&key) {
            return Ok(Some(call));
        }
        let Some(_under_way) = self.may_call() else { return Ok(None) };
        self.journal.lock().await.journal.ready().await?;
        let reply = self.llm.ask(prompt).await?;
        metrics::tokens(&reply.usage);
        let came = {
            let mut state = lock(&self.state);
            state.replies.add(purpose, key.clone(), reply);
            state.came += 1;
            state.came
        };
        self.keep(came).await?;
        Ok(self.answer(&key))
    }

    fn stored(&self, key: &str) -> Option<StoredCall> {
        let is_first = lock(&self.state).answered == 0;
        let call = self.answer(key)?;
        if is_first {
            metrics::reused("extraction");
        }
        Some(call)
    }

    /// Counts what is about to be used.
    fn answer(&self, key: &str) -> Option<StoredCall> {
        let mut state = lock(&self.state);
        let call = state.replies.find(key).cloned()?;
        state.answered += 1;
        state.usage += call.usage;
        state.model = Some(call.model.clone());
        Some(call)
    }

    fn may_call(&self) -> Option<UnderWay<'_>> {
        let mut state = lock(&self.state);
        let calls = state.replies.calls.len() + state.under_way;
        if calls >= MOST_CALLS || state.replies.bytes() > MOST_BYTES {
            return None;
        }
        state.under_way += 1;
        Some(UnderWay(&self.state))
    }

    /// Returns when this reply is safe, perhaps kept together with others.
    async fn keep(&self, came: u64) -> fault::Result<()> {
        let mut kept = self.journal.lock().await;
        if kept.came >= came {
            return Ok(());
        }
        let (replies, newest) = {
            let state = lock(&self.state);
            (state.replies.clone(), state.came)
        };
        kept.journal.save(&replies).await?;
        kept.came = newest;
        Ok(())
    }

    /// Tokens of the calls that were used, and the model that answered last.
    pub(super) fn spent(&self) -> (Usage, Option<String>) {
        let state = lock(&self.state);
        (state.usage, state.model.clone())
    }
}

/// What makes two calls the same.
fn key(prompt: &Prompt) -> String {
    hash_parts(&[
        &prompt.system,
        &prompt.user,
        &prompt.schema_name,
        &prompt.schema.to_string(),
        &prompt.max_output_tokens.to_string(),
    ])
}
