//! A model without a server: reads plain invoices line by line, with a delay by their number.
//!
//! The replies have the size and form of a real model's, so that storing, reading and judging them
//! costs the same. They say nothing about models.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::fault::{Error, Result};
use docmill_core::model::ModelUsage;
use docmill_llm::{FinishReason, Llm, ModelReply, Prompt};
use docmill_testkit::openai::read_document;
use serde_json::json;

/// The texts before the number and the days on the invoices of `tests/it/support/documents.rs`.
const NUMBER_LABEL: &str = "Invoice number: ";
const DAY_LABEL: &str = "Invoice date: ";

/// Answers for invoices that differ in their number and day alone.
pub(crate) struct Answering {
    length: fn(&str) -> Duration,
    /// The invoice that came first; the replies for the others are made from its own.
    first: OnceLock<AnsweredInvoice>,
}

struct AnsweredInvoice {
    number: String,
    day: String,
    reply: String,
}

impl Answering {
    /// A model with a delay of `length` by an invoice's number.
    pub(crate) fn new(length: fn(&str) -> Duration) -> Self {
        Self { length, first: OnceLock::new() }
    }
}

#[async_trait]
impl Llm for Answering {
    fn provider(&self) -> &'static str {
        "answering"
    }

    fn model(&self) -> &'static str {
        "line-by-line"
    }

    async fn complete(&self, prompt: &Prompt) -> Result<ModelReply> {
        let [number, day] = [NUMBER_LABEL, DAY_LABEL].map(|label| find_value(&prompt.user, label));
        let (Some(number), Some(day)) = (number, day) else {
            return Err(Error::internal("the prompt shows no invoice number or no day"));
        };
        let length = (self.length)(number);
        if !length.is_zero() {
            sleep_exactly(length).await?;
        }
        let first = self.first.get_or_init(|| AnsweredInvoice {
            number: number.to_owned(),
            day: day.to_owned(),
            reply: read(prompt),
        });
        let text = first.reply.replace(&first.number, number).replace(&first.day, day);
        let usage = ModelUsage { input: 1000, output: 300, ..ModelUsage::default() };
        Ok(ModelReply {
            text,
            stop: FinishReason::Complete,
            usage,
            model: self.model().to_owned(),
            limits: docmill_client::throttle::RateLimitHeaders::default(),
        })
    }
}

/// By a thread of its own: a timer of the runtime would add a millisecond.
#[expect(
    clippy::disallowed_methods,
    reason = "no more threads than slots, and none of the runtime's"
)]
async fn sleep_exactly(length: Duration) -> Result<()> {
    let sleep = tokio::task::spawn_blocking(move || std::thread::sleep(length));
    sleep.await.map_err(|_died| Error::internal("the sleep ended early"))
}

fn find_value<'a>(prompt: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = prompt.split_once(label)?;
    rest.split_whitespace().next()
}

fn read(prompt: &Prompt) -> String {
    let body = json!({
        "messages": [{"role": "user", "content": prompt.user}],
        "response_format": {"json_schema": {"schema": prompt.schema}},
    });
    read_document(&body).to_string()
}
