//! What was called and how it ended.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

/// One call.
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

/// All calls so far.
pub struct Records {
    calls: Mutex<Vec<Call>>,
    count: watch::Sender<usize>,
}

impl Default for Records {
    fn default() -> Self {
        Self { calls: Mutex::new(Vec::new()), count: watch::Sender::new(0) }
    }
}

impl Records {
    pub(crate) fn all(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes an arrival; returns the call's number.
    pub(crate) fn arrive(&self, body: &Value) -> usize {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = body.get("messages").map(Value::to_string).unwrap_or_default();
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
