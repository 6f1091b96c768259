//! Waiting for work without asking all the time.
//!
//! `BLMOVE` from a list to the same end of the same list changes nothing, and blocks while the list
//! is empty: it reports a new item without taking it, so that a worker that dies while it waits
//! takes nothing with it. The item is then leased by the script like any other.

use std::time::Duration;

use ::redis::Client;
use ::redis::aio::MultiplexedConnection;
use parking_lot::Mutex;

use super::keys::RedisKeys;
use super::{connect, errors};
use docmill_core::fault::Result;
use docmill_core::model::Priority;

/// The longest one command blocks: what became due by another worker's hand is seen this soon.
const MAX_BLOCK: Duration = Duration::from_secs(1);
/// The same with several tiers: only one of them can be waited for.
const MAX_BLOCK_PER_TIER: Duration = Duration::from_millis(100);

/// Waits for one process, over connections of its own.
pub(super) struct WorkWaiter {
    client: Client,
    /// Connections that are not waiting at the moment.
    idle: Mutex<Vec<MultiplexedConnection>>,
}

impl WorkWaiter {
    pub(super) fn new(client: Client) -> Self {
        Self { client, idle: Mutex::default() }
    }

    /// Returns when there may be work: an item was pushed to the first of `tiers`, something of
    /// ours is due, or a moment has passed; in any case within `left`.
    pub(super) async fn wait_for_work(
        &self,
        tiers: &[(Priority, RedisKeys)],
        left: Duration,
        next_due: Option<Duration>,
    ) -> Result<()> {
        let longest = if tiers.len() > 1 { MAX_BLOCK_PER_TIER } else { MAX_BLOCK };
        let pause = next_due.unwrap_or(longest).min(longest).min(left);
        let Some((_, keys)) = tiers.first() else { return Ok(()) };
        // Zero would block for ever.
        let pause = pause.max(Duration::from_millis(1));
        let mut connection = match self.take_connection() {
            Some(connection) => connection,
            None => connect::connect_separately(&self.client, MAX_BLOCK).await?,
        };
        let mut command = ::redis::cmd("BLMOVE");
        command.arg(keys.queue_key()).arg(keys.queue_key()).arg("RIGHT").arg("RIGHT");
        command.arg(pause.as_secs_f64());
        let woken = command.query_async::<Option<Vec<u8>>>(&mut connection).await;
        woken.map_err(|error| errors::from_redis("waiting for work in Redis", error))?;
        // Not given back after a failure: a broken connection is not used again.
        self.return_connection(connection);
        Ok(())
    }

    fn take_connection(&self) -> Option<MultiplexedConnection> {
        self.idle.lock().pop()
    }

    fn return_connection(&self, connection: MultiplexedConnection) {
        self.idle.lock().push(connection);
    }
}
