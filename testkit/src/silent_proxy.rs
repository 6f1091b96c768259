//! A TCP proxy that can fall silent without closing connections, like a host that is gone, a
//! firewall that dropped its state, or a server with a stalled disk.
//!
//! The kernel still acknowledges data sent to a silent connection, so no TCP timer ever ends it.
//! Not promised: whether data in transit at that moment has arrived.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Forwards connections to one address, until it falls silent.
#[derive(Debug)]
pub struct SilentProxy {
    address: SocketAddr,
    silent: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl SilentProxy {
    /// A proxy on a free port before `target`, `host:port`.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start(target: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let silent = Arc::new(watch::Sender::new(false));
        let task = tokio::spawn(accept_all(listener, target.to_owned(), Arc::clone(&silent)));
        Ok(Self { address, silent, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on nothing is forwarded. The connections stay open, and those that are made
    /// meanwhile are taken and never answered.
    pub fn fall_silent(&self) {
        self.silent.send_replace(true);
    }

    /// From now on new connections are forwarded. Those that have fallen silent stay so.
    pub fn speak_again(&self) {
        self.silent.send_replace(false);
    }
}

impl Drop for SilentProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept_all(listener: TcpListener, target: String, silent: Arc<watch::Sender<bool>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(forward(client, target.clone(), silent.subscribe()));
    }
}

async fn forward(mut client: TcpStream, target: String, mut silent: watch::Receiver<bool>) {
    if !*silent.borrow() {
        let Ok(mut server) = TcpStream::connect(&target).await else { return };
        let copying = tokio::io::copy_bidirectional(&mut client, &mut server);
        tokio::select! {
            _ended = copying => return,
            _changed = silent.wait_for(|silent| *silent) => {}
        }
        // Both ends stay open.
        std::future::pending::<()>().await;
    }
    std::future::pending().await
}
