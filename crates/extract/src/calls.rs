//! The calls about one transcript: each is made at most once and kept before it is used.
//!
//! Several may be under way at the same time. Replies that arrive while others are being kept are
//! kept together by the next write.

use std::sync::Arc;

use super::hash_parts;
use super::journal::{CallRoute, RecordedReplies, ReplyJournal, StoredCall};
use docmill_core::fault;
use docmill_core::metrics;
use docmill_core::model::ModelUsage;
use docmill_core::model::digest::sha256_hex;
use docmill_llm::{FinishReason, Llm, ModelReply, Prompt, PromptThinking};
use parking_lot::Mutex;

/// Most calls about one document: a bound on what one document may cost.
pub(super) const MAX_CALLS: usize = 400;
/// Most bytes of all replies about one document that are kept.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// Precedes the hashes of pictures in a call's key.
const PICTURES: &str = "pictures 1";
/// Part of the key of a call that asks for less thinking, and of one with more room for it.
const LESS_THINKING: &str = "less thinking 1";
const LONGER_THINKING: &str = "longer thinking 1";

/// Calls and their replies.
pub(super) struct JournaledCalls<'a> {
    llm: &'a dyn Llm,
    /// The schema of all calls as text, a part of each call's key.
    schema_text: Arc<str>,
    state: Mutex<CallState>,
    journal: tokio::sync::Mutex<JournalState<'a>>,
}

struct CallState {
    replies: RecordedReplies,
    under_way: usize,
    /// How many replies have arrived; the journal's number marks those that are stored.
    came: u64,
    answered: usize,
    usage: ModelUsage,
    model: Option<String>,
}

struct JournalState<'a> {
    journal: &'a mut dyn ReplyJournal,
    came: u64,
}

/// Counts a call as under way until it is dropped, also if the caller is.
struct InFlightCall<'a>(&'a Mutex<CallState>);

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
    }
}

impl<'a> JournaledCalls<'a> {
    /// Begins with the replies that an earlier run has kept under this identity. `schema_text` is the
    /// schema of every prompt as text.
    pub(super) async fn from_journal(
        llm: &'a dyn Llm,
        schema_text: Arc<str>,
        identity: &str,
        journal: &'a mut dyn ReplyJournal,
    ) -> fault::Result<Self> {
        let kept = journal.load_replies().await?.filter(|replies| {
            replies.format == RecordedReplies::FORMAT && replies.identity == identity
        });
        let state = CallState {
            replies: kept.unwrap_or_else(|| RecordedReplies::new(identity)),
            under_way: 0,
            came: 0,
            answered: 0,
            usage: ModelUsage::default(),
            model: None,
        };
        let journal = tokio::sync::Mutex::new(JournalState { journal, came: 0 });
        Ok(Self { llm, schema_text, state: Mutex::new(state), journal })
    }

    /// The model that is asked.
    pub(super) fn llm(&self) -> &dyn Llm {
        self.llm
    }

    /// One call, or its stored reply. `None`: the document has cost enough.
    pub(super) async fn call(
        &self,
        purpose: String,
        prompt: &Prompt,
    ) -> fault::Result<Option<StoredCall>> {
        let key = prompt_key(prompt, &self.schema_text);
        if let Some(call) = self.find_stored(&key) {
            return Ok(Some(call));
        }
        let Some(_under_way) = self.reserve_call() else { return Ok(None) };
        let route = self.journal.lock().await.journal.route_call(&key, prompt).await?;
        let (reply, batched) = match route {
            CallRoute::Answered(reply) => (reply.check_count(prompt), true),
            CallRoute::Direct => {
                if !self.journal.lock().await.journal.may_call(prompt).await? {
                    return Ok(None);
                }
                (self.llm.complete(prompt).await?, false)
            }
        };
        metrics::count_tokens(&reply.usage);
        if reply.stop == FinishReason::TooLong && !batched {
            self.journal.lock().await.journal.book_unkept(reply.usage).await?;
            return Ok(Some(self.use_unkept(purpose, key, reply)));
        }
        let came = {
            let mut state = self.state.lock();
            if batched {
                state.replies.add_batched(purpose, key.clone(), reply);
            } else {
                state.replies.add_reply(purpose, key.clone(), reply);
            }
            state.came += 1;
            state.came
        };
        self.save_replies(came).await?;
        Ok(self.use_reply(&key))
    }

    fn find_stored(&self, key: &str) -> Option<StoredCall> {
        let is_first = self.state.lock().answered == 0;
        let call = self.use_reply(key)?;
        if is_first {
            metrics::count_reuse("extraction");
        }
        Some(call)
    }

    /// A stored reply, counted as used.
    fn use_reply(&self, key: &str) -> Option<StoredCall> {
        let mut state = self.state.lock();
        let call = state.replies.find_call(key).cloned()?;
        state.answered += 1;
        state.usage += call.usage;
        state.model = Some(call.model.clone());
        Some(call)
    }

    /// The prompt did not fit. A later run asks again: the model may have a larger window by then.
    fn use_unkept(&self, purpose: String, key: String, reply: ModelReply) -> StoredCall {
        let call = StoredCall::from_reply(purpose, key, reply);
        let mut state = self.state.lock();
        state.usage += call.usage;
        state.model = Some(call.model.clone());
        call
    }

    fn reserve_call(&self) -> Option<InFlightCall<'_>> {
        let mut state = self.state.lock();
        let calls = state.replies.calls.len() + state.under_way;
        if calls >= MAX_CALLS || state.replies.text_bytes() > MAX_BYTES {
            return None;
        }
        state.under_way += 1;
        Some(InFlightCall(&self.state))
    }

    /// Returns when this reply is stored, perhaps together with others.
    async fn save_replies(&self, came: u64) -> fault::Result<()> {
        let mut kept = self.journal.lock().await;
        if kept.came >= came {
            return Ok(());
        }
        let (replies, newest) = {
            let state = self.state.lock();
            (state.replies.clone(), state.came)
        };
        kept.journal.save_replies(&replies).await?;
        kept.came = newest;
        Ok(())
    }

    /// Tokens of the calls that were used, and the model that answered last.
    pub(super) fn total_usage(&self) -> (ModelUsage, Option<String>) {
        let state = self.state.lock();
        (state.usage, state.model.clone())
    }
}

/// The key of a call: equal keys are one call.
fn prompt_key(prompt: &Prompt, schema_text: &str) -> String {
    let most = prompt.max_output_tokens.to_string();
    let mut parts: Vec<&str> =
        vec![&prompt.system, &prompt.user, &prompt.schema_name, schema_text, &most];
    // A call without pictures keeps the key of earlier builds.
    let pictures: Vec<String> =
        prompt.pictures.iter().map(|picture| sha256_hex(&picture.image.bytes)).collect();
    if !pictures.is_empty() {
        parts.push(PICTURES);
        parts.extend(pictures.iter().map(String::as_str));
    }
    match prompt.thinking {
        PromptThinking::AsConfigured => {}
        PromptThinking::Less => parts.push(LESS_THINKING),
        PromptThinking::Longer => parts.push(LONGER_THINKING),
    }
    hash_parts(&parts)
}

#[cfg(test)]
mod tests {
    use docmill_core::model::{EncodedImage, ImageEncoding, ImageHeader, PictureRule};
    use docmill_llm::PromptPicture;

    use super::*;

    #[test]
    fn a_call_with_another_picture_is_another_call_and_one_without_keeps_its_key() {
        let header = ImageHeader { width: 9, height: 9, dpi: 99, encoding: ImageEncoding::Png };
        let picture = |byte: u8| {
            let image = Arc::new(EncodedImage { header, bytes: vec![byte] });
            PromptPicture::new(image, PictureRule::OTHER)
        };
        let asked = |pictures: &[u8], thinking: PromptThinking| {
            let prompt = Prompt {
                system: "s".into(),
                user: "u".to_owned(),
                schema_name: "n".to_owned(),
                schema: serde_json::json!({}).into(),
                schema_in_text: true,
                thinking,
                max_output_tokens: 9,
                pictures: pictures.iter().map(|byte| picture(*byte)).collect(),
            };
            prompt_key(&prompt, &prompt.schema.to_string())
        };
        let key = |pictures: &[u8]| asked(pictures, PromptThinking::AsConfigured);
        assert_eq!(key(&[]), hash_parts(&["s", "u", "n", "{}", "9"]), "as stored by every build");
        let [less, longer] = [PromptThinking::Less, PromptThinking::Longer];
        let keys = [key(&[]), key(&[1]), key(&[2]), key(&[1, 2]), key(&[2, 1])];
        let keys = keys.into_iter().chain([asked(&[], less), asked(&[], longer)]);
        let keys: Vec<String> = keys.collect();
        let different: std::collections::BTreeSet<&String> = keys.iter().collect();
        assert_eq!(different.len(), keys.len());
    }
}
