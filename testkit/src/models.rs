//! A scripted model server that speaks the protocols of four vendors, and of Vertex AI.
//!
//! It speaks HTTP/1.1 over plain sockets, so that it can do what a web framework forbids: reset a
//! connection, cut a body, stay silent. Requests are checked as strictly as the contracts allow
//! (`openai/openai-openapi` 2.3.0, `PyPI`'s anthropic 2.11 and google-genai 3.4, botocore's
//! bedrock-runtime and bedrock). Replies carry every required field. Every call is recorded, so
//! that a test can prove that no completed call was repeated. `scripts/contracts.sh` compares its
//! messages with the vendors' own types.
//!
//! Pictures are validated, not read: the script defines their content.
//!
//! Not implemented: pipelined requests.

mod batches;
mod connection;
mod frame;
mod picture;
mod rate;
mod read;
mod record;
mod script;
mod stream;
mod vendor;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use batches::BatchShelf;

pub use batches::{BatchPlan, HeldBatch};
pub use picture::SentPicture;
pub use rate::{Counts, RateLimit};
pub use read::{document_lines, read_document};
pub use record::{Call, Exchange, Records};
pub use script::{Answer, Function, LimitNames, Request, Script};
pub use vendor::Vendor;

/// A running server; it stops when this is dropped.
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

pub(crate) struct State {
    pub(crate) script: Mutex<Script>,
    pub(crate) records: Records,
    pub(crate) batches: Mutex<BatchShelf>,
    /// Access tokens that were granted, at Vertex AI.
    pub(crate) tokens: AtomicUsize,
}

impl State {
    /// Keeps a request and its answer, if the script wants that.
    pub(crate) fn exchanged(
        &self,
        number: usize,
        path: String,
        request: &Value,
        (status, answer): (u16, &Value),
    ) {
        if self.script.lock().unwrap_or_else(PoisonError::into_inner).record {
            let (request, answer) = (request.clone(), answer.clone());
            self.records.exchanged(Exchange { number, path, request, status, answer });
        }
    }
}

impl Server {
    /// Starts on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::listen(SocketAddr::from(([127, 0, 0, 1], 0)), script).await
    }

    /// Starts at a given address.
    ///
    /// # Errors
    /// The address is in use or not local.
    pub async fn listen(address: SocketAddr, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            script: Mutex::new(script),
            records: Records::default(),
            batches: Mutex::default(),
            tokens: AtomicUsize::default(),
        });
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            // Dropped with this task, so that a stopped server closes its connections too.
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((stream, _)) = listener.accept() => {
                        connections.spawn(connection::serve(stream, Arc::clone(&shared)));
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Self { address, state, task })
    }

    /// The address of the stand-in.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value for `llm.base_url`.
    pub fn base_url(&self) -> String {
        let script = self.state.script.lock().unwrap_or_else(PoisonError::into_inner);
        format!("http://{}{}", self.address, script.vendor.base_path())
    }

    /// Replaces the script; calls that are being answered keep their answer.
    pub fn set(&self, script: Script) {
        *self.state.script.lock().unwrap_or_else(PoisonError::into_inner) = script;
    }

    /// Sets the fate of batches from now on.
    pub fn plan_batches(&self, plan: BatchPlan) {
        self.state.shelf().plan = plan;
    }

    /// Every batch so far, in the order of arrival.
    pub fn batches(&self) -> Vec<HeldBatch> {
        self.state.shelf().batches.clone()
    }

    /// How many files of questions are kept.
    pub fn kept_files(&self) -> usize {
        self.state.shelf().files.len()
    }

    /// How many access tokens were granted, at Vertex AI.
    pub fn tokens_granted(&self) -> usize {
        self.state.tokens.load(Ordering::SeqCst)
    }

    /// Every call so far, in the order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.state.records.all()
    }

    /// Whole requests and answers, if the script keeps them.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.state.records.exchanges()
    }

    /// The prompts that were answered with a whole 200 reply more than once.
    pub fn completed_twice(&self) -> Vec<String> {
        self.state.records.completed_twice()
    }

    /// Waits until `count` calls have arrived; `false` if they have not within `deadline`.
    pub async fn arrived(&self, count: usize, deadline: Duration) -> bool {
        tokio::time::timeout(deadline, self.state.records.arrived(count)).await.is_ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
