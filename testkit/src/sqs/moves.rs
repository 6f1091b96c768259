//! Move tasks: from a dead-letter queue back to where its messages came from, or elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::broker::{Broker, QueueCell};
use super::clock::Millis;
use super::message::Message;
use super::refusal::{Answer, Kind, refuse};

/// The most a task moves in a second (API reference, `StartMessageMoveTask`).
const FASTEST: u32 = 500;
const TICK: Duration = Duration::from_millis(20);

#[derive(Debug, Clone)]
struct Task {
    handle: String,
    source: String,
    destination: Option<String>,
    rate: Option<u32>,
    started_at: Millis,
    to_move: usize,
    moved: usize,
    failure: Option<&'static str>,
    running: bool,
}

/// Every task that was started, oldest first.
#[derive(Debug, Default)]
pub(super) struct Moves {
    tasks: Mutex<Vec<Task>>,
}

/// A request for a move task.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) source: String,
    pub(super) destination: Option<String>,
    pub(super) rate: Option<u32>,
}

impl Moves {
    fn tasks(&self) -> MutexGuard<'_, Vec<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, handle: &str, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.tasks().iter_mut().find(|task| task.handle == handle) {
            change(task);
        }
    }

    /// The newest tasks of a source, as `ListMessageMoveTasks` shows them.
    pub(super) fn shown(&self, source: &str, most: usize) -> Vec<Value> {
        let tasks = self.tasks();
        tasks.iter().rev().filter(|task| task.source == source).take(most).map(shown).collect()
    }
}

fn shown(task: &Task) -> Value {
    let status = match (task.running, task.failure) {
        (true, _) => "RUNNING",
        (false, Some(_)) => "FAILED",
        (false, None) => "COMPLETED",
    };
    let mut shown = json!({
        "Status": status,
        "SourceArn": task.source,
        "ApproximateNumberOfMessagesMoved": task.moved,
        "ApproximateNumberOfMessagesToMove": task.to_move,
        "StartedTimestamp": task.started_at,
    });
    if let Some(object) = shown.as_object_mut() {
        if task.running {
            object.insert("TaskHandle".to_owned(), json!(task.handle));
        }
        if let Some(destination) = &task.destination {
            object.insert("DestinationArn".to_owned(), json!(destination));
        }
        if let Some(rate) = task.rate {
            object.insert("MaxNumberOfMessagesPerSecond".to_owned(), json!(rate));
        }
        if let Some(reason) = task.failure {
            object.insert("FailureReason".to_owned(), json!(reason));
        }
    }
    shown
}

/// Starts a task and answers its handle. It runs by itself.
pub(super) fn start(broker: &Arc<Broker>, order: Order) -> Answer<String> {
    let Some(source) = broker.by_arn(&order.source) else { return refuse_missing("SourceArn") };
    if order.destination.as_ref().is_some_and(|arn| broker.by_arn(arn).is_none()) {
        return refuse_missing("DestinationArn");
    }
    if !broker.is_dead_letter_queue(&order.source) {
        return refuse(
            Kind::InvalidParameterValue,
            "Source queue must be configured as a Dead Letter Queue.",
        );
    }
    if order.rate.is_some_and(|rate| rate == 0 || rate > FASTEST) {
        return refuse(
            Kind::InvalidParameterValue,
            "Value for parameter MaxNumberOfMessagesPerSecond is invalid. Must be between 1 and 500.",
        );
    }
    let to_move = broker.depth(&source).ready;
    let task = Task {
        handle: uuid::Uuid::new_v4().to_string(),
        source: order.source,
        destination: order.destination,
        rate: order.rate,
        started_at: broker.clock.now(),
        to_move,
        moved: 0,
        failure: None,
        running: true,
    };
    {
        let mut tasks = broker.moves.tasks();
        if tasks.iter().any(|other| other.running && other.source == task.source) {
            return refuse(
                Kind::UnsupportedOperation,
                "There is already a task running. Only one active task is allowed for a source \
                 queue arn at a given time.",
            );
        }
        tasks.push(task.clone());
    }
    let handle = task.handle.clone();
    tokio::spawn(run(Arc::clone(broker), source, task));
    Ok(handle)
}

fn refuse_missing(arn: &str) -> Answer<String> {
    refuse(
        Kind::ResourceNotFound,
        format!("The resource that you specified for the {arn} parameter doesn't exist."),
    )
}

/// Moves what is visible until nothing is left.
async fn run(broker: Arc<Broker>, source: Arc<QueueCell>, task: Task) {
    let rate = f64::from(task.rate.unwrap_or(FASTEST));
    let mut allowance = 1.0_f64;
    let mut failed = false;
    loop {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the rate of at most 500"
        )]
        let most = allowance.floor() as usize;
        let messages = broker.drain(&source, most);
        if messages.is_empty() && most > 0 {
            break;
        }
        #[expect(clippy::cast_precision_loss, reason = "at most 500")]
        let count = messages.len() as f64;
        allowance -= count;
        for message in messages {
            let moved = revive(&broker, &source, &task, message);
            failed |= moved.is_err();
            broker.moves.update(&task.handle, |task| match moved {
                Ok(()) => task.moved += 1,
                Err(reason) => task.failure = Some(reason),
            });
        }
        if failed {
            break;
        }
        tokio::time::sleep(TICK).await;
        allowance = (allowance + rate * TICK.as_secs_f64()).min(rate);
    }
    broker.moves.update(&task.handle, |task| task.running = false);
}

/// Sends a message on as a new one: new id, new age, no receives.
fn revive(
    broker: &Broker,
    source: &QueueCell,
    task: &Task,
    message: Message,
) -> Result<(), &'static str> {
    let target = task.destination.as_ref().or(message.dead_from.as_ref());
    let Some(target) = target.and_then(|arn| broker.by_arn(arn)) else {
        broker.put(source, message, 0);
        return Err("CouldNotDetermineMessageSource");
    };
    broker.put(&target, Message::new(message.content, broker.clock.now()), 0);
    Ok(())
}
