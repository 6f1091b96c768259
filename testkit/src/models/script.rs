//! The server's answers, as data (for the program) or as a function (for tests in process).

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::picture::{SentPicture, sent_pictures};
use super::read::{self, read_document};
use super::vendor::{End, Vendor};

/// A request as an answering function sees it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The whole body of the request as JSON.
    pub body: Value,
    /// Number of this call, starting at 0.
    pub number: usize,
}

impl Request {
    /// Content of the message with this role, `system` or `user`; empty if there is none.
    pub fn message(&self, role: &str) -> String {
        let asked = read::asked(&self.body);
        if role == "system" { asked.system } else { asked.user }
    }

    /// Schema of the reply, as the request or its text has it; null without one.
    pub fn schema(&self) -> Value {
        read::asked(&self.body).schema
    }

    /// The first picture that was sent, if one was.
    pub fn picture(&self) -> Option<SentPicture> {
        self.pictures().into_iter().next()
    }

    /// The pictures that were sent, in their order.
    pub fn pictures(&self) -> Vec<SentPicture> {
        sent_pictures(&self.body).unwrap_or_default()
    }
}

/// One answer of a script.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer", deny_unknown_fields)]
pub enum Answer {
    /// This JSON as the reply's text.
    Ok {
        /// The JSON that becomes the reply's text.
        content: Value,
    },
    /// This text as the reply's text, e.g. prose or broken JSON.
    Text {
        /// The text of the reply.
        content: String,
    },
    /// The simple reader's result for the document lines of the prompt, in the requested schema.
    Read,
    /// As `Read`, but with a total that its parts do not add up to.
    WrongSums,
    /// The given text with stop reason `length`.
    Cut {
        /// The text generated before the limit.
        content: String,
    },
    /// As `Read`, but cut when the prompt holds more document lines than this.
    CutAbove {
        /// Most document lines that still fit.
        lines: usize,
    },
    /// The model declines, in the vendor's own form.
    Refusal,
    /// As `Read`, but the reply ends for this reason, in the vendor's own word.
    Ends {
        /// The vendor's word for the reason.
        reason: String,
    },
    /// As `Read`, but the model thinks first, unless it is asked not to: out of the same cap.
    Thinks {
        /// Tokens of its thoughts.
        tokens: u64,
    },
    /// As `Read`, in a fence of Markdown.
    Fenced,
    /// A quota is spent: 429, with what Google says of it.
    QuotaSpent {
        /// The quota's id.
        id: String,
        /// Seconds until it is there again.
        seconds: u64,
    },
    /// The beginning of a reply, then white space up to the token limit.
    Whitespace,
    /// As `Read`, but of a stream only the first half comes.
    StreamCut,
    /// As `Read`, but a stream falls silent after its first half.
    StreamStall,
    /// As `Read`, but a stream breaks off with an error.
    StreamError {
        /// The vendor's word for it; with blanks: the words of its message as well.
        kind: String,
    },
    /// A filter stopped the reply.
    ContentFilter,
    /// This many bytes of text.
    Huge {
        /// Length of the text in bytes.
        bytes: usize,
    },
    /// An HTTP status that is an error.
    Status {
        /// The HTTP status code.
        status: u16,
        /// The value of the `retry-after` header, if it is sent.
        #[serde(default)]
        retry_after: Option<String>,
        /// The value of the `retry-after-ms` header, if it is sent.
        #[serde(default)]
        retry_after_ms: Option<String>,
        /// The value of the `x-should-retry` header, if it is sent.
        #[serde(default)]
        should_retry: Option<bool>,
        /// `error.code` of the body.
        #[serde(default)]
        code: Option<String>,
        /// `error.message` of the body.
        #[serde(default)]
        message: Option<String>,
    },
    /// A redirect to another address.
    Redirect {
        /// The value of the `location` header.
        location: String,
    },
    /// Another answer, after a while.
    Late {
        /// The delay in milliseconds.
        millis: u64,
        /// The answer that follows.
        then: Box<Answer>,
    },
    /// Half of a body, then the connection ends.
    CutBody,
    /// The connection is reset before an answer.
    Reset,
    /// No answer until the caller goes away.
    Hang,
}

impl Answer {
    /// The simple reader's result, after a delay.
    pub fn late(after: Duration) -> Self {
        let millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        Self::Late { millis, then: Box::new(Self::Read) }
    }

    /// A status without any further words.
    pub fn status(status: u16) -> Self {
        Self::Status {
            status,
            retry_after: None,
            retry_after_ms: None,
            should_retry: None,
            code: None,
            message: None,
        }
    }

    /// An error status with a code in its body.
    pub fn error(status: u16, code: &str) -> Self {
        Self::Status {
            status,
            retry_after: None,
            retry_after_ms: None,
            should_retry: None,
            code: Some(code.to_owned()),
            message: None,
        }
    }

    /// An error status with a message in its body.
    pub fn told(status: u16, message: &str) -> Self {
        Self::Status {
            status,
            retry_after: None,
            retry_after_ms: None,
            should_retry: None,
            code: None,
            message: Some(message.to_owned()),
        }
    }

    /// 429 with a `retry-after` header.
    pub fn throttled(retry_after: &str) -> Self {
        Self::Status {
            status: 429,
            retry_after: Some(retry_after.to_owned()),
            retry_after_ms: None,
            should_retry: None,
            code: Some("rate_limit_exceeded".to_owned()),
            message: None,
        }
    }

    /// Whether a reply comes to its end.
    pub(crate) fn is_whole(&self) -> bool {
        !matches!(self, Self::StreamCut | Self::StreamStall | Self::StreamError { .. })
    }

    /// The reply text and why it ends, for answers that are replies.
    pub(crate) fn reply(&self, request: &Request) -> Option<(String, End)> {
        Some(match self {
            Self::Ok { content } => (content.to_string(), End::Done),
            Self::Text { content } => (content.clone(), End::Done),
            Self::Read
            | Self::Thinks { .. }
            | Self::StreamCut
            | Self::StreamStall
            | Self::StreamError { .. } => (read_document(&request.body).to_string(), End::Done),
            Self::Fenced => {
                (format!("```json\n{}\n```\n", read_document(&request.body)), End::Done)
            }
            Self::Ends { reason } => {
                (read_document(&request.body).to_string(), End::Other(reason.clone()))
            }
            Self::Whitespace => (format!("{{\"fields\": {{{}", " \n".repeat(20_000)), End::Length),
            Self::WrongSums => {
                let mut value = read_document(&request.body);
                if let Some(total) = value.pointer_mut("/fields/total") {
                    *total = wrong(total);
                }
                (value.to_string(), End::Done)
            }
            Self::Cut { content } => (content.clone(), End::Length),
            Self::CutAbove { lines } => {
                let text = read_document(&request.body).to_string();
                if read::document_lines(&request.body).len() > *lines {
                    (text.chars().take(text.chars().count() / 2).collect(), End::Length)
                } else {
                    (text, End::Done)
                }
            }
            Self::Refusal => (String::new(), End::Declined),
            Self::ContentFilter => (String::new(), End::Filter),
            Self::Huge { bytes } => ("x".repeat(*bytes), End::Done),
            _ => return None,
        })
    }
}

fn wrong(total: &Value) -> Value {
    match total {
        Value::Number(number) => (number.as_f64().unwrap_or(0.0) + 1.0).into(),
        Value::String(text) => format!("{:.2}", text.parse::<f64>().unwrap_or(0.0) + 1.0).into(),
        _ => 1.0.into(),
    }
}

/// Which names of the cap on the reply the server takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitNames {
    /// Either, but not both at once.
    #[default]
    Either,
    /// `max_completion_tokens` only, as OpenAI's newer models.
    Newer,
}

/// Request fields that a model accepts or refuses.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelRules {
    pub(crate) limit: LimitNames,
    pub(crate) refuses: Vec<String>,
    pub(crate) output_limit: Option<u64>,
}

/// A function from requests to answers.
pub type Function = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

/// Everything the server answers.
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// Whose protocol is spoken.
    pub vendor: Vendor,
    /// Whether whole requests and replies are kept.
    pub record: bool,
    /// Most tokens of a prompt that are read; what is beyond goes without a word.
    pub window: Option<usize>,
    /// Pictures go without a word: no token is counted for them.
    pub blind: bool,
    /// Given to calls in the order of their arrival.
    pub answers: VecDeque<Answer>,
    /// Given when `answers` is used up.
    pub then: Answer,
    /// Demanded as bearer token.
    pub api_key: Option<String>,
    /// Served at `/v1/models`; absent: 404.
    pub models: Option<Vec<String>>,
    /// Which names of the cap on the reply are taken.
    pub limit: LimitNames,
    /// Fields that the model refuses, by their names: `temperature`, `thinking`, `store`, …
    pub refuses: Vec<String>,
    /// Most tokens of a cap on the reply that the model takes.
    pub output_limit: Option<u64>,
    /// Asked when `answers` is used up, instead of `then`.
    #[serde(skip)]
    pub function: Option<Function>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            vendor: Vendor::default(),
            record: false,
            window: None,
            blind: false,
            answers: VecDeque::new(),
            then: Answer::Read,
            api_key: None,
            models: None,
            limit: LimitNames::default(),
            refuses: Vec::new(),
            output_limit: None,
            function: None,
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("answers", &self.answers).finish_non_exhaustive()
    }
}

impl Script {
    /// These answers in order, then [`Answer::Read`].
    pub fn of(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: answers.into_iter().collect(), ..Self::default() }
    }

    /// A script that always gives this answer.
    pub fn always(answer: Answer) -> Self {
        Self { then: answer, ..Self::default() }
    }

    /// The same, spoken in another vendor's protocol.
    #[must_use]
    pub fn from(self, vendor: Vendor) -> Self {
        Self { vendor, ..self }
    }

    /// Asks a function for every answer.
    pub fn function(answer: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self { function: Some(Arc::new(answer)), ..Self::default() }
    }

    /// Request fields that the model accepts.
    pub(crate) fn rules(&self) -> ModelRules {
        let Self { limit, refuses, output_limit, .. } = self;
        ModelRules { limit: *limit, refuses: refuses.clone(), output_limit: *output_limit }
    }

    pub(crate) fn next(&mut self, request: &Request) -> Answer {
        if let Some(answer) = self.answers.pop_front() {
            return answer;
        }
        self.function.as_ref().map_or_else(|| self.then.clone(), |function| function(request))
    }
}
