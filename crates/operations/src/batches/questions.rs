//! The questions of the batch that is being put together.
//!
//! A step may be cut off at any time: what it has loaded is kept for the next try at the same batch,
//! so that a batch of any size is handed in in the end. Only one batch is kept.

use std::collections::HashSet;

use futures::StreamExt as _;
use parking_lot::Mutex;

use super::BatchCollector;
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;
use docmill_ledger::db::lanes::batches::{self as rows, SentQuestion};
use docmill_llm::batch::BatchQuestion;
use docmill_storage::{GetOptions, GetResult, keys};

/// Larger questions are not stored, and so not read.
const MAX_QUESTION_BYTES: u64 = 64 << 20;
/// Questions that are loaded at the same time.
const LOADED_AT_ONCE: usize = 16;

/// Questions of a batch that are loaded.
#[derive(Debug, Default)]
pub(super) struct KeptQuestions(Mutex<Option<(String, Vec<BatchQuestion>)>>);

/// The questions of a batch; kept for the next try when dropped.
pub(super) struct LoadedQuestions<'a> {
    kept: &'a KeptQuestions,
    batch: String,
    questions: Vec<BatchQuestion>,
}

impl KeptQuestions {
    /// Questions of this batch that earlier tries have loaded.
    fn resume(&self, batch: &str) -> LoadedQuestions<'_> {
        let kept = self.0.lock().take().filter(|(name, _)| name == batch);
        let questions = kept.map(|(_, questions)| questions).unwrap_or_default();
        LoadedQuestions { kept: self, batch: batch.to_owned(), questions }
    }
}

impl LoadedQuestions<'_> {
    pub(super) fn as_slice(&self) -> &[BatchQuestion] {
        &self.questions
    }

    /// They are not needed any more.
    pub(super) fn forget(mut self) {
        self.questions.clear();
    }
}

impl Drop for LoadedQuestions<'_> {
    fn drop(&mut self) {
        if !self.questions.is_empty() {
            let loaded = (self.batch.clone(), std::mem::take(&mut self.questions));
            *self.kept.0.lock() = Some(loaded);
        }
    }
}

impl BatchCollector {
    /// The questions of a batch, as they were stored. One whose object is gone went with its
    /// document.
    ///
    /// # Errors
    /// The store or Postgres fails.
    pub(super) async fn load_questions(&self, batch: &str) -> Result<LoadedQuestions<'_>> {
        let mut loaded = self.questions.resume(batch);
        let sent = rows::list_requests(&self.db, batch).await?;
        let waiting: HashSet<&str> =
            sent.iter().filter(|it| it.is_waiting).map(|it| it.custom_id.as_str()).collect();
        loaded.questions.retain(|question| waiting.contains(question.custom_id.as_str()));
        let known: HashSet<String> =
            loaded.questions.iter().map(|question| question.custom_id.clone()).collect();
        let missing = sent.iter().filter(|it| it.is_waiting && !known.contains(&it.custom_id));
        let loads: Vec<_> = missing.map(|sent| self.load_question(sent)).collect();
        let mut loads = futures::stream::iter(loads).buffered(LOADED_AT_ONCE);
        while let Some(question) = loads.next().await {
            loaded.questions.extend(question?);
        }
        drop(loads);
        Ok(loaded)
    }

    async fn load_question(&self, sent: &SentQuestion) -> Result<Option<BatchQuestion>> {
        let key = keys::batch_question_key(IngestionId(sent.ingestion_id), &sent.request);
        let what = GetOptions { at_most: MAX_QUESTION_BYTES, if_match: None };
        let body = match self.store.get(&key, what).await? {
            GetResult::Found(object) => String::from_utf8(object.bytes.to_vec()).ok(),
            GetResult::Missing | GetResult::Changed | GetResult::TooLarge { .. } => None,
        };
        let custom_id = sent.custom_id.clone();
        if body.is_none() {
            rows::leave_request(&self.db, &custom_id, "it could not be read").await?;
        }
        Ok(body.map(|body| BatchQuestion { custom_id, body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_that_is_cut_off_leaves_its_questions_to_the_next_try_at_the_same_batch() {
        let kept = KeptQuestions::default();
        let question = |id: &str| BatchQuestion { custom_id: id.to_owned(), body: String::new() };
        let mut first = kept.resume("one");
        first.questions.extend([question("a"), question("b")]);
        drop(first);
        let mut second = kept.resume("one");
        let ids: Vec<_> = second.as_slice().iter().map(|it| it.custom_id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        second.questions.push(question("c"));
        second.forget();
        assert!(kept.resume("one").as_slice().is_empty(), "it was handed in");
        let mut other = kept.resume("one");
        other.questions.push(question("a"));
        drop(other);
        assert!(kept.resume("two").as_slice().is_empty(), "another batch has others");
    }
}
