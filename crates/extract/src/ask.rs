//! Extraction by a model: a long transcript in parts, some at the same time, one repair per part,
//! and no call paid for twice.
//!
//! Every reply is kept through the journal before it is examined (invariant 8), and a data set is
//! whole only if every part ended normally and matched the schema (invariant 11). An extraction that
//! did not end well leaves partial data for the reviewer.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};

use docmill_core::fault::{Error, Fault};
use docmill_core::model::{Extraction, ModelUsage, OutcomeReason, Transcript};
use docmill_gate::PictureClaim;
use docmill_gate::kinds::{FieldType, Kind};
use docmill_llm::{BodyTooLarge, FinishReason, Llm, Prompt, PromptThinking, estimate_tokens};

use super::calls::{JournaledCalls, MAX_BYTES, MAX_CALLS};
use super::endless::is_endless;
use super::journal::{ReplyJournal, StoredCall};
use super::merge::{PartReply, merge_parts};
use super::parts::{PartTokenBudget, ReplyTokenBudget, RowRange};
use super::printed::PrintedNumbers;
use super::prompt::{self, ReadingFaults};
use super::reply::{self, ReplyDefect, ReplyEnvelope};
use super::schema::{self, ReplySchema};
use super::shown_pages::{self, ShownDocument};

/// Tokens that the lines of a document have in a prompt at least.
const MIN_LINE_TOKENS: usize = 600;
/// Tokens of the text around the lines.
const FRAME_TOKENS: usize = 300;
/// Generated tokens beside twice the text's estimate that prove thinking: less is an error of the
/// estimate.
const MIN_THINKING_TOKENS: u64 = 250;

/// Bounds of the calls, and the identity under which they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLimits {
    /// See [`super::extraction_identity`]; stored replies of another identity are not used.
    pub identity: String,
    /// Most tokens of a prompt, from `limits.prompt_tokens`.
    pub prompt_tokens: u32,
    /// Most tokens of a reply, from `llm.max_output_tokens`.
    pub max_output_tokens: u32,
    /// How many parts are read at the same time, from `llm.parts_at_once`.
    pub parts_at_once: usize,
    /// Whether another model is asked if this one gives no acceptable reply.
    pub has_next: bool,
    /// Faults of an earlier reading, which the prompt names; mostly none.
    pub faults: ReadingFaults,
    /// Confirmed documents of the supplier, shown before the document; mostly none.
    pub examples: Arc<str>,
    /// The paragraph about the tenant's own companies in the stable part of the prompt; empty: none.
    pub companies: Arc<str>,
}

/// How an extraction ended that is not whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IncompleteReason {
    /// A reply could not be used, and neither could its repaired version.
    #[error("the model's reply could not be used, nor could the repaired one: {0}")]
    Unreadable(ReplyDefect),
    /// A reply about a few lines was cut, or they did not fit.
    #[error("the reply was cut at the token limit and its lines cannot be split further")]
    Cut,
    /// The reply was cut, but not for lack of room: the model would not have ended.
    #[error("the reply was cut, but repeats itself or is longer than its lines can need")]
    Endless,
    /// The model's thoughts filled its replies, though it was asked to think little and given room.
    #[error(
        "the model's thinking filled its reply: raise llm.thinking_tokens, or take a model that \
         llm.effort can keep from thinking"
    )]
    ThoughtTooLong,
    /// The document needs more calls, longer replies or more money than one document may.
    #[error(
        "the document needs more than {MAX_CALLS} calls, {MAX_BYTES} bytes of replies, \
         cost.document_budget or cost.document_tokens"
    )]
    TooCostly,
    /// The model declined to answer.
    #[error("the model or its filter declined")]
    Refused,
}

impl IncompleteReason {
    /// The code that goes into the row.
    pub fn outcome_reason(&self) -> OutcomeReason {
        match self {
            Self::Unreadable(_) | Self::Endless => OutcomeReason::GateRefused,
            Self::Cut | Self::ThoughtTooLong | Self::TooCostly => OutcomeReason::Cut,
            Self::Refused => OutcomeReason::ModelRefused,
        }
    }
}

/// Why there is no whole extraction.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// The model answered, but not acceptably; asking again the same way gives the same.
    #[error("{ending}")]
    Ended {
        /// Why the extraction is not whole.
        ending: IncompleteReason,
        /// The data read before it ended, never `successful`.
        partial: Option<Box<Extraction>>,
        /// Tokens spent on it.
        usage: ModelUsage,
        /// The model that answered last.
        model: Option<String>,
    },
    /// The model or the journal could not be reached; the fault says how to react.
    #[error(transparent)]
    Fault(#[from] Error),
}

/// Has a model read a transcript.
///
/// # Errors
/// [`ExtractError::Fault`].
pub async fn read_by_model(
    llm: &dyn Llm,
    kind: &Kind,
    mut shown: ShownDocument,
    terms: &CallLimits,
    journal: &mut dyn ReplyJournal,
) -> Result<ModelReading, ExtractError> {
    if !shown.pages.is_empty() {
        let form = ReplySchema::for_reading(kind, true)?;
        let fixed = fixed_tokens(&form, terms) + MIN_LINE_TOKENS;
        // Half of the prompt is reserved for the lines.
        shown.keep_within((terms.prompt_tokens as usize).saturating_sub(fixed) / 2);
    }
    let form = ReplySchema::for_reading(kind, !shown.pages.is_empty())?;
    let shown_pages = shown.pages.iter().map(|page| page.number).collect();
    let schema_text = Arc::clone(&form.schema_text);
    let session = ExtractionSession {
        numbers: PrintedNumbers::of_document(Arc::clone(&shown.text) as _),
        shown,
        form,
        kind,
        terms,
        schema_name: schema_name(kind),
        calls: JournaledCalls::from_journal(llm, schema_text, &terms.identity, journal).await?,
    };
    let (parts, ending) = session.read_all().await?;
    let (usage, model) = session.calls.total_usage();
    Ok(ModelReading { parts, ending, usage, model, shown_pages })
}

/// A model's replies about a document, part by part.
#[derive(Debug)]
pub struct ModelReading {
    parts: PartsRead,
    /// The reason if it is not whole.
    ending: Option<IncompleteReason>,
    usage: ModelUsage,
    model: Option<String>,
    shown_pages: Vec<u32>,
}

impl ModelReading {
    /// The pages that were shown as pictures: those for which there was room in the prompt.
    pub fn shown_pages(&self) -> &[u32] {
        &self.shown_pages
    }

    /// The values that the model claims to have read from the pictures of shown pages.
    pub fn list_claims(&self) -> Vec<PictureClaim> {
        let replies = self.parts.whole.iter().map(|part| &part.envelope);
        let claims = replies.flat_map(|it| shown_pages::list_claims(&it.fields, &it.pictures));
        claims.filter(|claim| self.shown_pages.contains(&claim.page)).collect()
    }

    /// Joins the parts. Work that grows with what was replied.
    ///
    /// # Errors
    /// [`ExtractError::Ended`].
    pub fn into_extraction(
        self,
        kind: &Kind,
        transcript: &Transcript,
    ) -> Result<Extraction, ExtractError> {
        let Self { parts, ending, usage, model, shown_pages: _ } = self;
        let mut extraction = merge_parts(kind, transcript, parts.whole);
        extraction.model.clone_from(&model);
        extraction.usage = usage;
        let Some(ending) = ending else { return Ok(extraction) };
        if let Some(rescued) = parts.rescued {
            for (name, value) in rescued {
                let place = extraction.data.entry(name).or_insert(serde_json::Value::Null);
                if place.is_null() {
                    *place = value;
                }
            }
        }
        extraction.successful = false;
        let empty = extraction.data.values().all(serde_json::Value::is_null);
        let partial = (!empty).then(|| Box::new(extraction));
        Err(ExtractError::Ended { ending, partial, usage, model })
    }
}

/// Tokens before the lines. The schema is in the text or beside it.
fn fixed_tokens(form: &ReplySchema, terms: &CallLimits) -> usize {
    let texts = [&form.system, &terms.companies, &form.schema_text];
    texts.into_iter().map(|text| prompt::estimated_tokens(text)).sum::<usize>() + FRAME_TOKENS
}

/// The stable part of the prompt, the same for every document of a kind and tenant.
fn system_prompt(form: &ReplySchema, terms: &CallLimits) -> Arc<str> {
    if terms.companies.is_empty() {
        return Arc::clone(&form.system);
    }
    format!("{}{}", form.system, terms.companies).into()
}

/// 1 to 64 of `[a-zA-Z0-9_-]`, from the kind's name.
pub(super) fn schema_name(kind: &Kind) -> String {
    let mut name = String::new();
    for c in kind.name.chars().take(64) {
        name.push(if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    }
    if name.is_empty() { "document".to_owned() } else { name }
}

/// The parts read so far.
#[derive(Debug, Default)]
struct PartsRead {
    /// In the order of the document.
    whole: Vec<PartReply>,
    /// Sound fields of a reply that was never whole.
    rescued: Option<serde_json::Map<String, serde_json::Value>>,
}

/// How the reading of one part ended.
enum PartOutcome {
    Whole(ReplyEnvelope),
    /// The reply was cut.
    TooMuch,
    /// The prompt did not fit into the model's window.
    TooLong,
    Ended(IncompleteReason, Option<serde_json::Map<String, serde_json::Value>>),
}

struct ExtractionSession<'a> {
    kind: &'a Kind,
    form: Arc<ReplySchema>,
    shown: ShownDocument,
    terms: &'a CallLimits,
    schema_name: String,
    /// Reads numbers that a reply has as texts.
    numbers: PrintedNumbers,
    calls: JournaledCalls<'a>,
}

impl ExtractionSession<'_> {
    /// Reads some parts at a time. After the first failure no part is begun; those under way are
    /// awaited, because they are paid for and kept.
    async fn read_all(&self) -> Result<(PartsRead, Option<IncompleteReason>), Error> {
        let mut todo = VecDeque::from(self.first_parts()?);
        if todo.len() > MAX_CALLS {
            // Known before the first call, so that no call is paid for in vain.
            return Ok((PartsRead::default(), Some(IncompleteReason::TooCostly)));
        }
        // The plan left room for the reply: if it is cut nevertheless, the next model is asked.
        let is_passed_on = self.terms.has_next && todo.len() == 1;
        let mut under_way = FuturesUnordered::new();
        let mut whole: Vec<(RowRange, ReplyEnvelope)> = Vec::new();
        let (mut stopped, mut rescued) = (None, None);
        let mut put_off: Option<Error> = None;
        loop {
            while stopped.is_none() && under_way.len() < self.terms.parts_at_once {
                let Some(part) = todo.pop_front() else { break };
                // Boxed: the list allocates one slot more than it holds.
                under_way.push(Box::pin(async {
                    let read = self.read_part(&part).await;
                    (part, read)
                }));
            }
            let Some((part, read)) = under_way.next().await else { break };
            let is_too_much = asks_for_halves(&read, is_passed_on);
            let halves = is_too_much.then(|| self.shown.text.split_in_half(&part)).flatten();
            if let Some((first, second)) = halves {
                todo.push_front(second);
                todo.push_front(first);
                continue;
            }
            match read {
                Ok(PartOutcome::Whole(envelope)) => whole.push((part, envelope)),
                Ok(PartOutcome::TooLong) if self.is_of_few_tokens(&part) => {
                    stopped = stopped.or(Some(Err(self.narrow_window_error())));
                }
                Ok(PartOutcome::TooMuch | PartOutcome::TooLong) => {
                    stopped = stopped.or(Some(Ok(IncompleteReason::Cut)));
                }
                Ok(PartOutcome::Ended(ending, sound)) => {
                    rescued = rescued.or(sound);
                    stopped = stopped.or(Some(Ok(ending)));
                }
                // The other parts are asked for as well, so that they wait at the same time.
                Err(error) if matches!(error.fault, Fault::Batched(_)) => {
                    put_off = put_off.or(Some(error));
                }
                Err(error) => stopped = stopped.or(Some(Err(error))),
            }
        }
        let ending = stopped.transpose()?;
        if let Some(error) = put_off {
            return Err(error);
        }
        whole.sort_by_key(|(part, _)| part.start);
        let mut replies = Vec::with_capacity(whole.len());
        for (part, envelope) in whole {
            let first_line = self.shown.text.first_line(&part).unwrap_or_default();
            replies.push(PartReply { first_line, envelope });
        }
        Ok((PartsRead { whole: replies, rescued }, ending))
    }

    /// The parts that the limits of prompt and reply ask for.
    fn first_parts(&self) -> Result<Vec<RowRange>, Error> {
        if self.shown.text.is_empty() {
            return Err(Error::internal("a transcript without text was given to a model"));
        }
        let examples = prompt::estimated_tokens(&self.terms.examples);
        let fixed = fixed_tokens(&self.form, self.terms) + self.shown.picture_tokens() + examples;
        let limit = self.terms.prompt_tokens as usize;
        if limit < fixed + MIN_LINE_TOKENS {
            return Err(Error::new(
                Fault::Misconfigured,
                format!(
                    "limits.prompt_tokens is {limit}, but the prompt of this kind takes about \
                     {fixed} tokens before the first line of a document: raise it to at least {}",
                    fixed + MIN_LINE_TOKENS
                ),
            ));
        }
        let has_lists = self.kind.fields().any(|(_, form)| form == FieldType::List);
        // A fifth is left for the single fields and for errors of the estimate.
        let tokens = self.terms.max_output_tokens as usize / 5 * 4;
        let entry = schema::entry_tokens(&self.kind.asked_schema());
        let reply = has_lists.then_some(ReplyTokenBudget { tokens, entry });
        Ok(self.shown.text.split_into_parts(PartTokenBudget { prompt: limit - fixed, reply }))
    }

    /// Whether a part is at most as long as every supported window has room for.
    fn is_of_few_tokens(&self, part: &RowRange) -> bool {
        let tokens = prompt::estimated_tokens(&self.shown.text.user_prompt(part));
        tokens <= FRAME_TOKENS + MIN_LINE_TOKENS
    }

    /// The smallest possible part does not fit: not the document's fault.
    fn narrow_window_error(&self) -> Error {
        let least = fixed_tokens(&self.form, self.terms) + MIN_LINE_TOKENS;
        Error::new(
            Fault::Misconfigured,
            format!(
                "the context window of model {} has no room for this kind's prompt and one line of a \
                 document, or its server counts fewer tokens than the prompt has words: run it with a \
                 window of at least {least} tokens (num_ctx of Ollama)",
                self.calls.llm().model()
            ),
        )
    }

    async fn read_part(&self, part: &RowRange) -> Result<PartOutcome, Error> {
        let name = self.shown.text.part_name(part);
        let again = &self.terms.faults;
        let (verb, user) = if again.is_empty() {
            ("read", self.shown.text.user_prompt(part))
        } else {
            ("read again", self.shown.text.second_prompt(part, again))
        };
        let user = format!("{}{user}", self.terms.examples);
        let prompt = self.part_prompt(user, part);
        let purpose = format!("{verb} {name}");
        let Some(mut first) = self.calls.call(purpose.clone(), &prompt).await? else {
            return Ok(PartOutcome::Ended(IncompleteReason::TooCostly, None));
        };
        if is_cut_by_thinking(&first) {
            // Rare, so it is boxed: the future of the first reply stays small.
            let thinking = Box::pin(self.bound_thinking(purpose, prompt, first)).await?;
            let Some(second) = thinking else {
                return Ok(PartOutcome::Ended(IncompleteReason::ThoughtTooLong, None));
            };
            first = second;
        }
        match self.check_reply(part, &first) {
            Ok(read) => Ok(read),
            // Rare, so it is boxed: the future of the first reply stays small.
            Err(problem) => Box::pin(self.repair_reply(part, first, problem)).await,
        }
    }

    /// Asks again for a reply that thinking cut: with less of it where the model can, then with more room
    /// for it. The same request again would be paid for twice. `None`: nothing helps.
    async fn bound_thinking(
        &self,
        purpose: String,
        mut prompt: Prompt,
        mut reply: StoredCall,
    ) -> Result<Option<StoredCall>, Error> {
        let Some(options) = self.calls.llm().request_options() else { return Ok(None) };
        let ways =
            [(PromptThinking::Less, "less thinking"), (PromptThinking::Longer, "longer thinking")];
        for (thinking, way) in ways {
            let helps = match thinking {
                PromptThinking::Less => options.can_think_less(&prompt),
                _ => options.make_room(&prompt, reply.usage.output),
            };
            if !helps {
                continue;
            }
            prompt.thinking = thinking;
            let purpose = format!("{purpose} with {way}");
            let Some(second) = self.calls.call(purpose, &prompt).await? else { return Ok(None) };
            if !is_cut_by_thinking(&second) {
                return Ok(Some(second));
            }
            reply = second;
        }
        Ok(None)
    }

    /// Has the model repair a reply that could not be used.
    async fn repair_reply(
        &self,
        part: &RowRange,
        first: StoredCall,
        problem: ReplyDefect,
    ) -> Result<PartOutcome, Error> {
        let name = self.shown.text.part_name(part);
        tracing::debug!(problem = problem.code(), "a model's reply is sent back for repair");
        let user = self.shown.text.repair_prompt(part, &first.text, &problem);
        let prompt = self.part_prompt(user, part);
        let Some(second) = self.calls.call(format!("repair {name}"), &prompt).await? else {
            return Ok(PartOutcome::Ended(IncompleteReason::TooCostly, None));
        };
        match self.check_reply(part, &second) {
            Ok(read) => Ok(read),
            // llama.cpp reports a cut reply as one that it cannot parse: fewer pages may help.
            Err(ReplyDefect::Garbled) if first.text.is_empty() && second.text.is_empty() => {
                Ok(PartOutcome::TooMuch)
            }
            Err(problem) => {
                let rescued = self.salvage_text(&second.text);
                let rescued = rescued.or_else(|| self.salvage_text(&first.text));
                Ok(PartOutcome::Ended(IncompleteReason::Unreadable(problem), rescued))
            }
        }
    }

    /// The sound fields of a reply that is not whole.
    fn salvage_text(&self, text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
        let mut reply = reply::parse_json_object(text).ok()?;
        self.form.restore_reply(&mut reply, &self.numbers);
        self.form.salvage_fields(&reply)
    }

    /// The stop reason decides before the text is parsed.
    fn check_reply(&self, part: &RowRange, call: &StoredCall) -> Result<PartOutcome, ReplyDefect> {
        match call.stop {
            FinishReason::Cut if self.is_endless(part, &call.text) => {
                Ok(PartOutcome::Ended(IncompleteReason::Endless, None))
            }
            FinishReason::Cut => Ok(PartOutcome::TooMuch),
            FinishReason::TooLong => Ok(PartOutcome::TooLong),
            FinishReason::Refused => Ok(PartOutcome::Ended(IncompleteReason::Refused, None)),
            FinishReason::Garbled => Err(ReplyDefect::Garbled),
            FinishReason::Stopped => Err(ReplyDefect::Stopped),
            FinishReason::Complete => {
                let read = reply::read_reply(&call.text, &self.form, &self.numbers);
                read.map(PartOutcome::Whole)
            }
        }
    }

    /// Whether a cut reply would not end with more room either, so that its halves would be cut as
    /// well. Unknown for pages shown as images.
    fn is_endless(&self, part: &RowRange, reply: &str) -> bool {
        let need = self.shown.text.reply_need(part, &self.kind.asked_schema());
        self.shown.pages_of(part).is_empty() && is_endless(reply, need)
    }

    fn part_prompt(&self, mut user: String, part: &RowRange) -> Prompt {
        let pages = self.shown.pages_of(part);
        user.push_str(&shown_pages::describe_pictures(&pages));
        user.shrink_to_fit();
        Prompt {
            system: system_prompt(&self.form, self.terms),
            user,
            schema_name: self.schema_name.clone(),
            schema: Arc::clone(&self.form.schema),
            schema_in_text: true,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: self.terms.max_output_tokens,
            pictures: pages.into_iter().map(|page| page.picture.clone()).collect(),
        }
    }
}

/// Whether fewer lines may be read where these were not.
fn asks_for_halves(read: &Result<PartOutcome, Error>, is_passed_on: bool) -> bool {
    match read {
        Ok(PartOutcome::TooMuch) => !is_passed_on,
        Ok(outcome) => matches!(outcome, PartOutcome::TooLong),
        Err(error) => BodyTooLarge::is_cause_of(error),
    }
}

/// Whether a reply was cut, and most of what was generated is not in its text. Fewer lines would not
/// help: the model thinks as long about them.
fn is_cut_by_thinking(call: &StoredCall) -> bool {
    let text = estimate_tokens(&call.text);
    call.stop == FinishReason::Cut
        && call.usage.output > text.saturating_mul(2) + MIN_THINKING_TOKENS
}
