//! Asking a model about a transcript: parts, one repair per part, and nothing paid for twice.
//!
//! Every reply is kept through the journal before it is looked at (invariant 8), and a data set is
//! whole only if every part ended normally and matched the schema (invariant 11). What was read of
//! an extraction that did not end well is handed out as partial data for the reviewer.

use crate::fault::{self, Error, Fault};
use crate::kinds::Kind;
use crate::llm::{Llm, Prompt, Stop};
use crate::metrics;
use crate::model::{Extraction, Reason, Transcript, Usage};

use super::hash;
use super::journal::{Journal, Replies, StoredCall};
use super::merge::merged;
use super::prompt::{self, Part, Shown};
use super::reply::{self, Envelope, Problem};
use super::schema::Form;

/// Most calls about one document: a bound on what one document may cost.
const MOST_CALLS: usize = 100;
/// Most bytes of all replies about one document that are kept.
const MOST_BYTES: usize = 32 << 20;

/// What bounds the calls, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// See [`super::identity`]; stored replies of another identity are not used.
    pub identity: String,
    /// `limits.prompt_tokens`.
    pub prompt_tokens: u32,
    /// `llm.max_output_tokens`.
    pub max_output_tokens: u32,
}

/// How an extraction ended that is not whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// A reply could not be used, and neither could its repaired version.
    #[error("the model's reply could not be used, nor could the repaired one: {0}")]
    Unreadable(Problem),
    /// A reply about a single page was cut, or the page did not fit.
    #[error("the reply was cut at the token limit and its pages cannot be split further")]
    Cut,
    /// The document needs more calls or longer replies than one document may.
    #[error("the document needs more than {MOST_CALLS} calls or {MOST_BYTES} bytes of replies")]
    TooCostly,
    /// The model declined.
    #[error("the model or its filter declined")]
    Refused,
}

impl Ending {
    /// The code that goes into the row.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Unreadable(_) => Reason::GateRefused,
            Self::Cut | Self::TooCostly => Reason::Cut,
            Self::Refused => Reason::ModelRefused,
        }
    }
}

/// Why there is no whole extraction.
#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    /// The model answered, but not acceptably; asking again the same way gives the same.
    #[error("{ending}")]
    Ended {
        /// How.
        ending: Ending,
        /// What was read before it ended, never `successful`.
        partial: Option<Box<Extraction>>,
        /// Tokens spent on it.
        usage: Usage,
        /// The model that answered last.
        model: Option<String>,
    },
    /// The model or the journal could not be reached; the fault says how to react.
    #[error(transparent)]
    Fault(#[from] Error),
}

/// Reads a transcript by a model.
///
/// # Errors
/// See [`ExtractError`].
pub async fn ask(
    llm: &dyn Llm,
    kind: &Kind,
    transcript: &Transcript,
    terms: &Terms,
    journal: &mut dyn Journal,
) -> Result<Extraction, ExtractError> {
    let form = Form::of(kind)?;
    let mut session = Session {
        llm,
        system: prompt::system(kind, &form),
        shown: Shown::of(transcript),
        form,
        terms,
        schema_name: schema_name(kind),
        replies: kept(journal, &terms.identity).await?,
        journal,
        usage: Usage::default(),
        model: None,
        calls: 0,
    };
    let (parts, ending) = session.read_all().await?;
    let mut extraction = merged(kind, transcript, parts.whole);
    extraction.model.clone_from(&session.model);
    extraction.usage = session.usage;
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
    Err(ExtractError::Ended {
        ending,
        partial: (!empty).then(|| Box::new(extraction)),
        usage: session.usage,
        model: session.model,
    })
}

/// What an earlier run has kept, if it is about the same.
async fn kept(journal: &mut dyn Journal, identity: &str) -> fault::Result<Replies> {
    let kept = journal.load().await?;
    let same = |it: &Replies| it.format == Replies::FORMAT && it.identity == identity;
    Ok(kept.filter(same).unwrap_or_else(|| Replies::new(identity)))
}

/// 1 to 64 of `[a-zA-Z0-9_-]`, from the kind's name.
fn schema_name(kind: &Kind) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = kind.name.chars().take(64).map(plain).collect();
    if name.is_empty() { "document".to_owned() } else { name }
}

/// What was read, part by part.
#[derive(Default)]
struct Parts {
    whole: Vec<Envelope>,
    /// Sound fields of a reply that was never whole.
    rescued: Option<serde_json::Map<String, serde_json::Value>>,
}

/// How the reading of one part ended.
enum Read {
    Whole(Envelope),
    TooMuch,
    Ended(Ending),
}

struct Session<'a> {
    llm: &'a dyn Llm,
    form: Form,
    system: String,
    shown: Shown,
    terms: &'a Terms,
    schema_name: String,
    replies: Replies,
    journal: &'a mut dyn Journal,
    usage: Usage,
    model: Option<String>,
    calls: usize,
}

impl Session<'_> {
    /// Reads part by part, in order; stops at the first that does not end well.
    async fn read_all(&mut self) -> Result<(Parts, Option<Ending>), ExtractError> {
        let mut parts = Parts::default();
        let mut todo = self.first_parts()?;
        todo.reverse();
        while let Some(part) = todo.pop() {
            let ending = match self.read_part(&part, &mut parts).await? {
                Read::Whole(envelope) => {
                    parts.whole.push(envelope);
                    continue;
                }
                Read::Ended(ending) => ending,
                Read::TooMuch => match self.shown.halves(&part) {
                    Some((first, second)) => {
                        todo.extend([second, first]);
                        continue;
                    }
                    None => Ending::Cut,
                },
            };
            return Ok((parts, Some(ending)));
        }
        Ok((parts, None))
    }

    /// The parts that the prompt's limit asks for.
    fn first_parts(&self) -> Result<Vec<Part>, Error> {
        if self.shown.is_empty() {
            return Err(Error::internal("a transcript without text was given to a model"));
        }
        // The schema travels beside the prompt as well, and what surrounds the lines is small.
        let fixed = prompt::estimated_tokens(&self.system)
            + prompt::estimated_tokens(&self.form.schema.to_string())
            + 300;
        let limit = self.terms.prompt_tokens as usize;
        if limit < fixed + 600 {
            return Err(Error::new(
                Fault::Denied,
                format!(
                    "limits.prompt_tokens is {limit}, but the prompt of this kind takes about \
                     {fixed} tokens before the first line of a document: raise it to at least {}",
                    fixed + 600
                ),
            ));
        }
        Ok(self.shown.parts(limit - fixed))
    }

    async fn read_part(&mut self, part: &Part, parts: &mut Parts) -> Result<Read, ExtractError> {
        let name = self.shown.name(part);
        let user = self.shown.user(part);
        let Some(first) = self.call(format!("read {name}"), user).await? else {
            return Ok(Read::Ended(Ending::TooCostly));
        };
        let problem = match self.usable(&first) {
            Ok(read) => return Ok(read),
            Err(problem) => problem,
        };
        tracing::debug!(problem = problem.code(), "a model's reply is sent back for repair");
        let user = self.shown.repair(part, &first.text, &problem);
        let Some(second) = self.call(format!("repair {name}"), user).await? else {
            return Ok(Read::Ended(Ending::TooCostly));
        };
        match self.usable(&second) {
            Ok(read) => Ok(read),
            Err(problem) => {
                let rescue = |text: &str| self.form.salvage(&reply::parse(text).ok()?);
                parts.rescued = rescue(&second.text).or_else(|| rescue(&first.text));
                Ok(Read::Ended(Ending::Unreadable(problem)))
            }
        }
    }

    /// The stop reason decides before the text is looked at.
    fn usable(&self, call: &StoredCall) -> Result<Read, Problem> {
        match call.stop {
            Stop::Cut | Stop::TooLong => Ok(Read::TooMuch),
            Stop::Refused => Ok(Read::Ended(Ending::Refused)),
            Stop::Garbled => Err(Problem::Garbled),
            Stop::Complete => reply::read(&call.text, &self.form).map(Read::Whole),
        }
    }

    /// One call, or its stored reply. `None`: the document has cost enough.
    async fn call(&mut self, purpose: String, user: String) -> fault::Result<Option<StoredCall>> {
        let prompt = Prompt {
            system: self.system.clone(),
            user,
            schema_name: self.schema_name.clone(),
            schema: self.form.schema.clone(),
            max_output_tokens: self.terms.max_output_tokens,
        };
        let key = key(&prompt);
        if self.replies.find(&key).is_none() {
            if self.replies.calls.len() >= MOST_CALLS || self.replies.bytes() > MOST_BYTES {
                return Ok(None);
            }
            self.journal.ready().await?;
            let reply = self.llm.ask(&prompt).await?;
            metrics::tokens(&reply.usage);
            self.replies.add(purpose, key.clone(), reply);
            self.journal.save(&self.replies).await?;
        } else if self.calls == 0 {
            metrics::reused("extraction");
        }
        self.calls += 1;
        let call = self.replies.find(&key).cloned();
        if let Some(call) = &call {
            self.usage += call.usage;
            self.model = Some(call.model.clone());
        }
        Ok(call)
    }
}

/// What makes two calls the same.
fn key(prompt: &Prompt) -> String {
    hash(&[
        &prompt.system,
        &prompt.user,
        &prompt.schema_name,
        &prompt.schema.to_string(),
        &prompt.max_output_tokens.to_string(),
    ])
}
