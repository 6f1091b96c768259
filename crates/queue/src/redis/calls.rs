//! Calls to the server: scripts, once or repeated after a lost answer, and over receipts of several
//! tiers; single commands.

use std::time::Duration;

use ::redis::aio::ConnectionManager;
use ::redis::{Cmd, FromRedisValue, Pipeline, ScriptInvocation};

use super::errors::from_redis;
use super::keys::RedisKeys;
use super::message::RedisReceipt;
use super::scripts::AT_A_TIME;
use crate::ReceiptHandle;
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::Priority;
use docmill_core::retry::{RetryBackoff, retry};

/// How a transition is repeated that may be without harm.
const WAITS: RetryBackoff = RetryBackoff::linear(Duration::from_millis(100)).with_retries(2);

/// The connection, and the keys of every tier.
pub(super) struct RedisCalls {
    connection: ConnectionManager,
    tiers: Vec<(Priority, RedisKeys)>,
}

impl RedisCalls {
    pub(super) fn new(connection: ConnectionManager, tiers: Vec<(Priority, RedisKeys)>) -> Self {
        Self { connection, tiers }
    }

    /// The tiers with their keys, most urgent first.
    pub(super) fn tiers(&self) -> &[(Priority, RedisKeys)] {
        &self.tiers
    }

    /// Runs one command and reads its reply.
    pub(super) async fn run_command<T: FromRedisValue>(
        &self,
        doing: &str,
        asked: &Cmd,
    ) -> Result<T> {
        let mut connection = self.connection.clone();
        asked.query_async(&mut connection).await.map_err(|error| from_redis(doing, error))
    }

    /// Several commands in one round trip.
    pub(super) async fn run_pipeline<T: FromRedisValue>(
        &self,
        doing: &str,
        asked: &Pipeline,
    ) -> Result<T> {
        let mut connection = self.connection.clone();
        asked.query_async(&mut connection).await.map_err(|error| from_redis(doing, error))
    }

    /// One run of a script.
    pub(super) async fn run_script<T: FromRedisValue>(
        &self,
        doing: &str,
        call: &ScriptInvocation<'_>,
    ) -> Result<T> {
        let mut connection = self.connection.clone();
        call.invoke_async(&mut connection).await.map_err(|error| from_redis(doing, error))
    }

    /// The same, again if the answer was lost: for what does no harm twice.
    pub(super) async fn run_script_retried<T: FromRedisValue>(
        &self,
        doing: &str,
        call: &ScriptInvocation<'_>,
    ) -> Result<T> {
        retry(
            |_| self.run_script(doing, call),
            |error: &Error, failed| {
                WAITS.next_wait(failed).filter(|_| error.fault == Fault::Transient)
            },
        )
        .await
    }

    /// Runs a script over receipts, tier by tier, and puts its answers back into their order. A
    /// receipt of another make is answered with `None`.
    pub(super) async fn run_over_receipts<'a, F>(
        &self,
        doing: &str,
        receipts: impl Iterator<Item = &'a ReceiptHandle>,
        repeat: bool,
        start: F,
    ) -> Vec<Result<Option<u8>>>
    where
        F: Fn(&RedisKeys) -> ScriptInvocation<'static>,
    {
        let tickets: Vec<Option<RedisReceipt>> = receipts.map(RedisReceipt::parse).collect();
        let mut answers: Vec<Result<Option<u8>>> = tickets.iter().map(|_| Ok(None)).collect();
        for (tier, (_, keys)) in self.tiers.iter().enumerate() {
            let here: Vec<(usize, &RedisReceipt)> = tickets
                .iter()
                .enumerate()
                .filter_map(|(at, ticket)| Some((at, ticket.as_ref().filter(|t| t.tier == tier)?)))
                .collect();
            for part in here.chunks(AT_A_TIME) {
                let mut call = start(keys);
                for (_, ticket) in part {
                    call.arg(&ticket.id).arg(&ticket.token);
                }
                let done: Result<Vec<u8>> = match repeat {
                    true => self.run_script_retried(doing, &call).await,
                    false => self.run_script(doing, &call).await,
                };
                for (index, (at, _)) in part.iter().enumerate() {
                    let Some(answer) = answers.get_mut(*at) else { continue };
                    *answer = match &done {
                        Ok(done) => Ok(done.get(index).copied()),
                        Err(error) => Err(Error::new(error.fault, error.context.clone())),
                    };
                }
            }
        }
        answers
    }
}

/// The scripts' answers as the port's: 0 and nothing are a receipt that is no longer good.
pub(super) fn to_results(answers: Vec<Result<Option<u8>>>) -> Vec<Result<()>> {
    answers
        .into_iter()
        .map(|answer: Result<Option<u8>>| match answer? {
            Some(1 | 2) => Ok(()),
            _ => Err(Error::new(Fault::Missing, "another worker has the message now")),
        })
        .collect()
}

/// An answer per receipt where a receipt of another make is nothing to do.
pub(super) fn to_lenient_results(answers: Vec<Result<Option<u8>>>) -> Vec<Result<()>> {
    answers.into_iter().map(|answer| answer.map(drop)).collect()
}
