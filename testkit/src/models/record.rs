//! The record of calls and their ends.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use super::vendor::Tokens;

/// A received call and its answer.
#[derive(Debug, Clone, Serialize)]
pub struct Call {
    /// The same for calls with the same messages.
    pub prompt: String,
    /// The fence around the document's lines: the same for every call about one document part.
    pub marker: Option<String>,
    /// Status that was sent; 0 while or if none was.
    pub status: u16,
    /// Whether a whole answer was sent.
    pub completed: bool,
}

/// A request and what was answered, whole.
#[derive(Debug, Clone, Serialize)]
pub struct Exchange {
    /// Number of the call.
    pub number: usize,
    /// The path of the request.
    pub path: String,
    /// The body of the request as JSON.
    pub request: Value,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The answer's body; of a stream its `events`.
    pub answer: Value,
}

/// Four bytes a token, and never fewer than words and numbers.
fn count_tokens(text: &str) -> usize {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let runs = words.map(|word| {
        word.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).count()
    });
    (text.len() / 4).max(runs.sum())
}

/// All calls so far.
pub struct Records {
    exchanges: Mutex<Vec<Exchange>>,
    /// Hashes of the stable prefixes seen so far: what a vendor's cache would hold.
    prefixes: Mutex<HashSet<u64>>,
    calls: Mutex<Vec<Call>>,
    count: watch::Sender<usize>,
}

impl Default for Records {
    fn default() -> Self {
        let (exchanges, prefixes) = (Mutex::default(), Mutex::default());
        Self { exchanges, prefixes, calls: Mutex::new(Vec::new()), count: watch::Sender::new(0) }
    }
}

impl Records {
    pub(crate) fn all(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn exchanged(&self, exchange: Exchange) {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }

    /// The tokens of a call: the first call with a prefix marked for the cache (or any, at a vendor
    /// that caches by itself) writes it, and later ones read it.
    pub(crate) fn tokens(&self, body: &Value, reply: &str) -> Tokens {
        let asked = super::read::asked(body);
        let (prefix, rest) = (count_tokens(&asked.system), count_tokens(&asked.user));
        let output = reply.len() / 4;
        let marked = body.get("response_format").is_some()
            || body.pointer("/system/0/cache_control").is_some()
            || body.pointer("/system/1/cachePoint").is_some();
        if !marked {
            return Tokens { input: prefix + rest, output, ..Tokens::default() };
        }
        let mut hasher = DefaultHasher::new();
        (asked.system, asked.schema.to_string()).hash(&mut hasher);
        let mut prefixes = self.prefixes.lock().unwrap_or_else(PoisonError::into_inner);
        if prefixes.insert(hasher.finish()) {
            Tokens { input: rest, written: prefix, output, read: 0 }
        } else {
            Tokens { input: rest, read: prefix, output, written: 0 }
        }
    }

    /// Notes an arrival; returns the call's number.
    pub(crate) fn arrive(&self, body: &Value) -> usize {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = body.get("messages").or_else(|| body.get("contents"));
        let messages = messages.map(Value::to_string).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        messages.hash(&mut hasher);
        calls.push(Call {
            prompt: format!("{:016x}", hasher.finish()),
            marker: super::read::marker(body),
            status: 0,
            completed: false,
        });
        self.count.send_replace(calls.len());
        calls.len() - 1
    }

    pub(crate) fn end(&self, number: usize, status: u16, completed: bool) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = calls.get_mut(number) {
            call.status = status;
            call.completed = completed;
        }
    }

    pub(crate) async fn arrived(&self, count: usize) {
        let mut seen = self.count.subscribe();
        // The sender lives in `self`, so the only way out is the condition.
        drop(seen.wait_for(|number| *number >= count).await);
    }

    pub(crate) fn completed_twice(&self) -> Vec<String> {
        let mut times: HashMap<String, usize> = HashMap::new();
        for call in self.all().into_iter().filter(|call| call.completed && call.status == 200) {
            *times.entry(call.prompt).or_default() += 1;
        }
        times.into_iter().filter(|(_, count)| *count > 1).map(|(prompt, _)| prompt).collect()
    }
}
