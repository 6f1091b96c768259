//! Asking a model about a transcript: in parts if it is long, some at the same time, one repair per
//! part, and nothing paid for twice.
//!
//! Every reply is kept through the journal before it is looked at (invariant 8), and a data set is
//! whole only if every part ended normally and matched the schema (invariant 11). What was read of
//! an extraction that did not end well is handed out as partial data for the reviewer.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::stream::{FuturesUnordered, StreamExt as _};

use crate::fault::{Error, Fault};
use crate::kinds::{FieldType, Kind};
use crate::llm::{Llm, Prompt, Stop};
use crate::model::{Extraction, Reason, Transcript, Usage};

use super::calls::{Calls, MOST_BYTES, MOST_CALLS};
use super::journal::{Journal, StoredCall};
use super::merge::{Answer, merged};
use super::parts::{Budget, Part};
use super::prompt::{self, Shown};
use super::reply::{self, Envelope, Problem};
use super::schema::Form;

/// What bounds the calls, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// See [`super::identity`]; stored replies of another identity are not used.
    pub identity: String,
    /// `limits.prompt_tokens`.
    pub prompt_tokens: u32,
    /// `llm.max_output_tokens`.
    pub max_output_tokens: u32,
    /// `llm.parts_at_once`.
    pub parts_at_once: usize,
}

/// How an extraction ended that is not whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// A reply could not be used, and neither could its repaired version.
    #[error("the model's reply could not be used, nor could the repaired one: {0}")]
    Unreadable(Problem),
    /// A reply about a few lines was cut, or they did not fit.
    #[error("the reply was cut at the token limit and its lines cannot be split further")]
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
    let session = Session {
        system: prompt::system(kind, &form),
        shown: Shown::of(transcript),
        form,
        kind,
        terms,
        schema_name: schema_name(kind),
        calls: Calls::begin(llm, &terms.identity, journal).await?,
    };
    let (parts, ending) = session.read_all().await?;
    let mut extraction = merged(kind, transcript, parts.whole);
    let (usage, model) = session.calls.spent();
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

/// 1 to 64 of `[a-zA-Z0-9_-]`, from the kind's name.
fn schema_name(kind: &Kind) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = kind.name.chars().take(64).map(plain).collect();
    if name.is_empty() { "document".to_owned() } else { name }
}

/// What was read.
#[derive(Default)]
struct Parts {
    /// In the order of the document.
    whole: Vec<Answer>,
    /// Sound fields of a reply that was never whole.
    rescued: Option<serde_json::Map<String, serde_json::Value>>,
}

/// How the reading of one part ended.
enum Read {
    Whole(Envelope),
    TooMuch,
    Ended(Ending, Option<serde_json::Map<String, serde_json::Value>>),
}

struct Session<'a> {
    kind: &'a Kind,
    form: Arc<Form>,
    system: String,
    shown: Shown,
    terms: &'a Terms,
    schema_name: String,
    calls: Calls<'a>,
}

impl Session<'_> {
    /// Reads some parts at a time. The first that does not end well is the last that is begun; those
    /// under way are waited for, because they are paid for and kept.
    async fn read_all(&self) -> Result<(Parts, Option<Ending>), ExtractError> {
        let mut todo = VecDeque::from(self.first_parts()?);
        let mut under_way = FuturesUnordered::new();
        let mut whole: Vec<(Part, Envelope)> = Vec::new();
        let (mut stopped, mut rescued) = (None, None);
        loop {
            while stopped.is_none() && under_way.len() < self.terms.parts_at_once {
                let Some(part) = todo.pop_front() else { break };
                under_way.push(async {
                    let read = self.read_part(&part).await;
                    (part, read)
                });
            }
            let Some((part, read)) = under_way.next().await else { break };
            match read {
                Ok(Read::Whole(envelope)) => whole.push((part, envelope)),
                Ok(Read::TooMuch) => match self.shown.halves(&part) {
                    Some((first, second)) => {
                        todo.push_front(second);
                        todo.push_front(first);
                    }
                    None => stopped = stopped.or(Some(Ok(Ending::Cut))),
                },
                Ok(Read::Ended(ending, sound)) => {
                    rescued = rescued.or(sound);
                    stopped = stopped.or(Some(Ok(ending)));
                }
                Err(error) => stopped = stopped.or(Some(Err(error))),
            }
        }
        let ending = stopped.transpose()?;
        whole.sort_by_key(|(part, _)| part.start);
        let answer = |(part, envelope): (Part, Envelope)| Answer {
            first_line: self.shown.first_line(&part).unwrap_or_default(),
            envelope,
        };
        Ok((Parts { whole: whole.into_iter().map(answer).collect(), rescued }, ending))
    }

    /// The parts that the limits of prompt and reply ask for.
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
                Fault::Misconfigured,
                format!(
                    "limits.prompt_tokens is {limit}, but the prompt of this kind takes about \
                     {fixed} tokens before the first line of a document: raise it to at least {}",
                    fixed + 600
                ),
            ));
        }
        let has_lists = self.kind.fields().any(|(_, form)| form == FieldType::List);
        // A fifth is left for the single fields and for what the estimate misses.
        let reply = has_lists.then_some(self.terms.max_output_tokens as usize / 5 * 4);
        Ok(self.shown.parts(Budget { prompt: limit - fixed, reply }))
    }

    async fn read_part(&self, part: &Part) -> Result<Read, ExtractError> {
        let name = self.shown.name(part);
        let user = self.shown.user(part);
        let Some(first) = self.call(format!("read {name}"), user).await? else {
            return Ok(Read::Ended(Ending::TooCostly, None));
        };
        let problem = match self.usable(&first) {
            Ok(read) => return Ok(read),
            Err(problem) => problem,
        };
        tracing::debug!(problem = problem.code(), "a model's reply is sent back for repair");
        let user = self.shown.repair(part, &first.text, &problem);
        let Some(second) = self.call(format!("repair {name}"), user).await? else {
            return Ok(Read::Ended(Ending::TooCostly, None));
        };
        match self.usable(&second) {
            Ok(read) => Ok(read),
            Err(problem) => {
                let rescue = |text: &str| self.form.salvage(&reply::parse(text).ok()?);
                let rescued = rescue(&second.text).or_else(|| rescue(&first.text));
                Ok(Read::Ended(Ending::Unreadable(problem), rescued))
            }
        }
    }

    /// The stop reason decides before the text is looked at.
    fn usable(&self, call: &StoredCall) -> Result<Read, Problem> {
        match call.stop {
            Stop::Cut | Stop::TooLong => Ok(Read::TooMuch),
            Stop::Refused => Ok(Read::Ended(Ending::Refused, None)),
            Stop::Garbled => Err(Problem::Garbled),
            Stop::Complete => reply::read(&call.text, &self.form).map(Read::Whole),
        }
    }

    async fn call(&self, purpose: String, user: String) -> Result<Option<StoredCall>, Error> {
        let prompt = Prompt {
            system: self.system.clone(),
            user,
            schema_name: self.schema_name.clone(),
            schema: self.form.schema.clone(),
            max_output_tokens: self.terms.max_output_tokens,
        };
        self.calls.call(purpose, &prompt).await
    }
}
