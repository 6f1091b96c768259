//! A scripted OpenAI-compatible chat completions server.
//!
//! It speaks HTTP/1.1 over plain sockets, so that it can do what a web framework forbids: reset a
//! connection, cut a body, stay silent. Requests are checked as strictly as the contract
//! (`openai/openai-openapi` 2.3.0) allows, replies carry every field that it requires, and every
//! call is recorded, so that a test can say that no completed call was made twice.
//!
//! Not there: streaming, tools, images, pipelined requests.

mod check;
mod connection;
mod read;
mod record;
mod script;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

pub use read::{document_lines, read_document};
pub use record::{Call, Records};
pub use script::{Answer, Function, LimitNames, Request, Script};

/// A running server; it stops when this is dropped.
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

pub(crate) struct State {
    pub(crate) script: Mutex<Script>,
    pub(crate) records: Records,
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
    /// The address is taken or not ours.
    pub async fn listen(address: SocketAddr, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(State { script: Mutex::new(script), records: Records::default() });
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value for `llm.base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Replaces the script; calls that are being answered keep their answer.
    pub fn set(&self, script: Script) {
        *self.state.script.lock().unwrap_or_else(PoisonError::into_inner) = script;
    }

    /// Every call so far, in the order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.state.records.all()
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
