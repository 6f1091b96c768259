//! Every metric name and label in one file; nothing else names a metric.
//!
//! Labels take their values from closed tables (outcome codes, stages, dispositions), never from
//! ids or content, so that the number of series is bounded.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::model::ModelUsage;

const DELIVERIES: &str = "docmill_deliveries_total";
const DISPOSITIONS: &str = "docmill_dispositions_total";
const OUTCOMES: &str = "docmill_attempts_total";
const INTERNAL: &str = "docmill_internal_errors_total";
const JOB_SECONDS: &str = "docmill_job_seconds";
const STAGE_SECONDS: &str = "docmill_stage_seconds";
const QUEUE_SECONDS: &str = "docmill_queue_wait_seconds";
const SLOTS: &str = "docmill_slots";
const SLOTS_USED: &str = "docmill_slots_used";
const ENDING_JOBS: &str = "docmill_ending_jobs";
const PAUSED: &str = "docmill_intake_paused";
const LEASES_LOST: &str = "docmill_leases_lost_total";
const HEARTBEAT_FAILURES: &str = "docmill_heartbeat_failures_total";
const LET_GO: &str = "docmill_messages_let_go_total";
const QUARANTINED: &str = "docmill_quarantined_total";
const PAGES: &str = "docmill_pages_total";
const SECOND_LOOKS: &str = "docmill_second_looks_total";
const SECOND_READINGS: &str = "docmill_second_readings_total";
const PAID_PAGES: &str = "docmill_provider_pages_total";
const PROCESSES_STARTED: &str = "docmill_page_processes_started_total";
const PROCESSES_DIED: &str = "docmill_page_processes_died_total";
const PROCESSES_REPLACED: &str = "docmill_page_processes_replaced_total";
const CONFINED: &str = "docmill_page_processes_confined";
const TOKENS: &str = "docmill_model_tokens_total";
const ESCALATED: &str = "docmill_escalations_total";
const KINDS_ASKED: &str = "docmill_kind_choices_total";
const SCHEMAS_REFUSED: &str = "docmill_schemas_refused_total";
const REUSED: &str = "docmill_artefacts_reused_total";
const RATE: &str = "docmill_throttle_requests_per_second";
const CALLS: &str = "docmill_throttle_calls";
const REFUSED_CALLS: &str = "docmill_throttle_refused_total";
const BREAKER: &str = "docmill_breaker_state";
const DENIED: &str = "docmill_provider_denied";
const SCHEDULER_FREE: &str = "docmill_scheduler_free_mib";
const SCHEDULER_HELD: &str = "docmill_scheduler_held_mib";
const SCHEDULER_CALLS: &str = "docmill_scheduler_calls";
const SCHEDULER_TURN: &str = "docmill_scheduler_turn";
const SCHEDULER_WAIT: &str = "docmill_scheduler_wait_seconds";
const SCHEDULER_PUT_OFF: &str = "docmill_scheduler_put_off_total";
const SPENT: &str = "docmill_spent_nanos_total";
const BATCHED: &str = "docmill_batch_requests_total";
const BATCH_WAITING: &str = "docmill_batch_waiting";
const BATCH_OLDEST: &str = "docmill_batch_oldest_seconds";
const SPENT_TODAY: &str = "docmill_spent_today";
const BUDGET: &str = "docmill_daily_budget";
const BUDGET_SPENT: &str = "docmill_daily_budget_spent";
const RESENT: &str = "docmill_janitor_resent_total";
const MAINTAINED: &str = "docmill_maintenance_passes_total";
const GIVEN_UP: &str = "docmill_maintenance_given_up_total";
const CHORE_FAILED: &str = "docmill_maintenance_failed_total";
const DEPTH: &str = "docmill_queue_messages";
const HEARTBEAT_LAG: &str = "docmill_heartbeat_lag_seconds";
const VISIBILITY_LEFT: &str = "docmill_visibility_remaining_seconds";
const FENCED: &str = "docmill_fenced_writes_total";
const POLLS: &str = "docmill_polls";
const REQUESTS: &str = "docmill_queue_requests_total";
const DRAINING: &str = "docmill_drain_seconds";
const OLDEST: &str = "docmill_oldest_in_progress_seconds";
const REVIEWS_WAITING: &str = "docmill_reviews_waiting";
const REVIEWS_OLDEST: &str = "docmill_reviews_oldest_seconds";
const VACUUM_HELD_BACK: &str = "docmill_vacuum_held_back_seconds";
const ATTEMPTS: &str = "docmill_attempts_to_end";
const PROTECTED: &str = "docmill_scale_in_protected";
const SILENT_ERROR_LEVELS: &str = "docmill_silent_error_levels";
const SILENT_ERROR_ALARMS: &str = "docmill_silent_error_alarms_total";
const HOOKS: &str = "docmill_hook_questions_total";
const WEBHOOKS: &str = "docmill_webhook_tries_total";
const WEBHOOKS_OPEN: &str = "docmill_webhooks_open";
const WEBHOOKS_DEAD: &str = "docmill_webhooks_dead";
const WEBHOOKS_OLDEST: &str = "docmill_webhooks_oldest_seconds";
const INBOX_ITEMS: &str = "docmill_inbox_items_total";
const INBOX_FAILURES: &str = "docmill_inbox_failures_total";
const INBOX_PASSES: &str = "docmill_inbox_passes_total";
const WEB_REQUESTS: &str = "docmill_web_requests_total";
const WEB_SECONDS: &str = "docmill_web_request_seconds";
const WEB_SESSIONS: &str = "docmill_web_sessions";
const WEB_CONNECTIONS: &str = "docmill_web_database_connections";

/// Seconds, from a millisecond to half an hour.
const BUCKETS: [f64; 14] =
    [0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 240.0, 600.0, 1800.0];

/// Buckets of histograms that count attempts.
const COUNTS: [f64; 7] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0];

/// Installs the recorder for this process.
///
/// # Errors
/// A recorder is installed already.
pub fn install_metrics() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(ATTEMPTS.to_owned()), &COUNTS)?
        .install_recorder()?;
    describe_metrics();
    describe_providers();
    describe_spending();
    describe_webhooks();
    describe_web();
    start_counters();
    Ok(handle)
}

/// Counters whose first event is an alarm start at zero: a counter that appears as 1 has not grown
/// for Prometheus, and the alarm would be missed.
fn start_counters() {
    for answer in ["claimed", "exhausted"] {
        counter!(DELIVERIES, "answer" => answer).increment(0);
    }
    for side in ["row", "queue", "lock"] {
        counter!(HEARTBEAT_FAILURES, "side" => side).increment(0);
    }
    for reason in ["malformed", "unknown_ingestion", "unknown_object"] {
        counter!(QUARANTINED, "reason" => reason).increment(0);
    }
    for reason in ["over_time", "starved", "nonsense", "memory", "crash", "killed", "exit"] {
        counter!(PROCESSES_DIED, "reason" => reason).increment(0);
    }
    counter!(OUTCOMES, "outcome" => "gate_refused").increment(0);
    for counted in [INTERNAL, LEASES_LOST, LET_GO, RESENT, SILENT_ERROR_ALARMS] {
        counter!(counted).increment(0);
    }
}

/// The same for what maintenance counts, where there is maintenance, be it switched off.
pub fn start_maintenance_counters(chores: impl Iterator<Item = &'static str>) {
    for chore in chores {
        counter!(CHORE_FAILED, "chore" => chore).increment(0);
    }
    for counted in [MAINTAINED, GIVEN_UP] {
        counter!(counted).increment(0);
    }
}

fn describe_metrics() {
    describe_counter!(DELIVERIES, "Received messages by the outcome of the claim");
    describe_counter!(DISPOSITIONS, "Messages by disposition");
    describe_counter!(OUTCOMES, "Attempts by how they ended");
    describe_counter!(INTERNAL, "Attempts that ended in an internal error; alarm above zero");
    describe_histogram!(JOB_SECONDS, "From claim to disposition");
    describe_histogram!(STAGE_SECONDS, "Time in each stage of a job");
    describe_histogram!(QUEUE_SECONDS, "From sending a message to its claim");
    describe_gauge!(SLOTS, "Jobs that may run at the same time");
    describe_gauge!(SLOTS_USED, "Jobs that run");
    describe_gauge!(ENDING_JOBS, "Jobs whose work is over and whose end is being written");
    describe_gauge!(PAUSED, "1 while no messages are received, by reason");
    describe_counter!(LEASES_LOST, "Claims that were lost to another worker or an operator");
    describe_counter!(HEARTBEAT_FAILURES, "Failed renewals by side (row, queue, lock)");
    describe_counter!(LET_GO, "Messages hidden no longer, their rows' leases not renewed");
    describe_counter!(QUARANTINED, "Quarantined messages by reason");
    describe_counter!(PAGES, "Pages read by source");
    describe_counter!(SECOND_LOOKS, "Text layers compared with their drawing, by result");
    describe_counter!(SECOND_READINGS, "Documents whose fields a service read too, or why not");
    describe_counter!(PAID_PAGES, "Pages that a provider was paid for, by provider");
    describe_counter!(PROCESSES_STARTED, "Child processes that were started to read documents");
    describe_counter!(PROCESSES_DIED, "Child processes that died or were killed, by reason");
    describe_counter!(
        PROCESSES_REPLACED,
        "Child processes replaced after their share of documents"
    );
    describe_gauge!(CONFINED, "1 if the child process that was started last is confined");
    describe_counter!(RESENT, "Ingestions whose lost message was sent again");
    describe_counter!(MAINTAINED, "Passes of maintenance that this worker made as the leader");
    describe_counter!(GIVEN_UP, "Dead letters whose document was failed as crashed; alarm");
    describe_counter!(CHORE_FAILED, "Chores of maintenance that failed, by chore; alarm");
    describe_gauge!(DEPTH, "Messages in the queue by state");
    describe_histogram!(HEARTBEAT_LAG, "How late a heartbeat began");
    describe_histogram!(
        VISIBILITY_LEFT,
        "What was left of a message's hiding when it was extended"
    );
    describe_counter!(FENCED, "Writes that were refused because the claim was lost, by write");
    describe_gauge!(POLLS, "Receive calls that wait for messages");
    describe_counter!(REQUESTS, "Requests to the queue's service, retries included, by operation");
    describe_gauge!(DRAINING, "Seconds since the worker began to drain; 0 otherwise");
    describe_gauge!(
        VACUUM_HELD_BACK,
        "How long one transaction has kept vacuum from its work, from the maintenance leader"
    );
    describe_gauge!(
        SILENT_ERROR_LEVELS,
        "Bounds on silent errors by state, from the maintenance leader"
    );
    describe_counter!(SILENT_ERROR_ALARMS, "Bounds on silent errors that were found broken");
    describe_gauge!(OLDEST, "Age of the oldest open ingestion, from the maintenance leader");
    describe_gauge!(
        REVIEWS_WAITING,
        "Documents that wait for review, counted up to 10001, from the maintenance leader"
    );
    describe_gauge!(
        REVIEWS_OLDEST,
        "How long the oldest of them has waited, from the maintenance leader"
    );
    describe_histogram!(ATTEMPTS, "Attempts that ended ingestions took, by outcome");
    describe_gauge!(PROTECTED, "1 while the platform is asked not to take this task away");
}

fn describe_providers() {
    describe_counter!(
        TOKENS,
        "Model tokens by class (input uncached, cache_read, cache_write, output)"
    );
    describe_counter!(
        ESCALATED,
        "Documents that a stronger model was asked about, by the vendor of the weaker"
    );
    describe_counter!(KINDS_ASKED, "Documents whose kind a model was asked for, by answer");
    describe_counter!(
        SCHEMAS_REFUSED,
        "Schemas that a model refused: its replies are asked for by the prompt alone"
    );
    describe_counter!(REUSED, "Stored artefacts that were used instead of being made again");
    describe_gauge!(
        RATE,
        "Requests per second that a provider is estimated to accept; none: no limit"
    );
    describe_gauge!(CALLS, "Calls to a provider by state (in_flight, waiting)");
    describe_counter!(
        REFUSED_CALLS,
        "Calls that a provider throttled, with 429 or a similar answer"
    );
    describe_gauge!(BREAKER, "Circuit breaker of a provider: 0 closed, 1 half open, 2 open");
    describe_gauge!(DENIED, "1 while a provider denies every call (credentials, money); alarm");
    describe_gauge!(SCHEDULER_FREE, "Free memory of a device for local models, in MiB");
    describe_gauge!(
        SCHEDULER_HELD,
        "Memory of a device held by local models, in MiB, over all processes"
    );
    describe_gauge!(SCHEDULER_CALLS, "Calls to a local model by state (running, waiting)");
    describe_gauge!(SCHEDULER_TURN, "1 while a local model has memory in this process");
    describe_histogram!(SCHEDULER_WAIT, "Wait of calls for a local model's turn");
    describe_counter!(SCHEDULER_PUT_OFF, "Deferred calls to a local model, by reason");
}

fn describe_spending() {
    describe_counter!(SPENT, "Billionths of the currency that this worker has paid to providers");
    describe_counter!(BATCHED, "Questions to models in batches, by provider and how they ended");
    describe_gauge!(BATCH_WAITING, "Questions that wait for a batch, or for a batch's answer");
    describe_gauge!(BATCH_OLDEST, "How long the oldest of them has waited");
    describe_gauge!(SPENT_TODAY, "Units of the currency that all workers have spent today (UTC)");
    describe_gauge!(BUDGET, "What may be spent in a day; 0: no bound");
    describe_gauge!(BUDGET_SPENT, "1 while work waits for the next day's budget; alarm");
}

fn describe_webhooks() {
    describe_counter!(HOOKS, "Questions to a hook by outcome (continue, stop, add, failed)");
    describe_counter!(WEBHOOKS, "Tries to tell a target by outcome (delivered, refused, not_sent)");
    describe_gauge!(WEBHOOKS_OPEN, "Events not yet delivered to a target, counted up to 10001");
    describe_gauge!(WEBHOOKS_DEAD, "Deliveries to a target that were given up; alarm");
    describe_gauge!(WEBHOOKS_OLDEST, "Age of the oldest event not delivered to a target");
}

/// The counters of a mailbox or folder, from zero.
pub fn start_inbox_counters(inbox: &str) {
    describe_counter!(INBOX_ITEMS, "Mails and files by end (submitted, known, failed, deferred)");
    describe_counter!(INBOX_FAILURES, "Passes over a mailbox or folder that failed");
    describe_counter!(INBOX_PASSES, "Passes over a mailbox or folder to its end; alarm without");
    for end in ["submitted", "known", "failed", "deferred"] {
        counter!(INBOX_ITEMS, "inbox" => inbox.to_owned(), "end" => end).increment(0);
    }
    for counted in [INBOX_FAILURES, INBOX_PASSES] {
        counter!(counted, "inbox" => inbox.to_owned()).increment(0);
    }
}

fn describe_web() {
    describe_counter!(WEB_REQUESTS, "Requests of pages and API by route, method and status");
    describe_histogram!(WEB_SECONDS, "Time of these requests up to the head of the answer");
    describe_gauge!(WEB_SESSIONS, "Sessions of browsers that are not over, of all processes");
    describe_gauge!(WEB_CONNECTIONS, "Connections of the pages to Postgres (used, idle)");
}

/// A request of the pages or the API that was answered.
#[derive(Debug, Clone, Copy)]
pub struct WebRequest<'a> {
    /// The template of its route.
    pub route: &'a str,
    /// Its method, from a closed table.
    pub method: &'static str,
    /// The status of its answer.
    pub status: u16,
}

/// A request was answered, so long after its head had arrived.
pub fn count_web_request(request: WebRequest<'_>, time: Duration) {
    let WebRequest { route, method, status } = request;
    let labels = [("route", route.to_owned()), ("method", method.to_owned())];
    histogram!(WEB_SECONDS, &labels).record(time.as_secs_f64());
    let [route, method] = labels;
    counter!(WEB_REQUESTS, &[route, method, ("status", status.to_string())]).increment(1);
}

/// Sessions of browsers; the used and the idle connections of the pages to Postgres.
pub fn set_web_state(sessions: i64, used: usize, idle: usize) {
    gauge!(WEB_SESSIONS).set(gauge_count(sessions));
    for (state, count) in [("used", used), ("idle", idle)] {
        gauge!(WEB_CONNECTIONS, "state" => state).set(count as f64);
    }
}

/// A mail or a file was dealt with; `end` is `submitted`, `known`, `failed` or `deferred`.
pub fn count_inbox_item(inbox: &str, end: &'static str) {
    counter!(INBOX_ITEMS, "inbox" => inbox.to_owned(), "end" => end).increment(1);
}

/// A pass over a mailbox or folder came to its end.
pub fn count_inbox_pass(inbox: &str) {
    counter!(INBOX_PASSES, "inbox" => inbox.to_owned()).increment(1);
}

/// A pass over a mailbox or folder ended before its last item.
pub fn count_inbox_failure(inbox: &str) {
    counter!(INBOX_FAILURES, "inbox" => inbox.to_owned()).increment(1);
}

/// A message was received; `answer` is the claim's.
pub fn count_delivery(answer: &'static str) {
    counter!(DELIVERIES, "answer" => answer).increment(1);
}

/// Something was done with a message.
pub fn count_disposition(what: &'static str) {
    counter!(DISPOSITIONS, "disposition" => what).increment(1);
}

/// Counts an attempt that ended, and its duration in seconds.
pub fn record_attempt(outcome: &'static str, took: Duration) {
    counter!(OUTCOMES, "outcome" => outcome).increment(1);
    histogram!(JOB_SECONDS, "outcome" => outcome).record(took);
    if outcome == "internal" {
        counter!(INTERNAL).increment(1);
    }
}

/// A stage of a job is over.
pub fn record_stage(stage: &'static str, took: Duration) {
    histogram!(STAGE_SECONDS, "stage" => stage).record(took);
}

/// A message waited this long for its claim.
pub fn queue_wait(waited: Duration) {
    histogram!(QUEUE_SECONDS).record(waited);
}

/// How many slots there are and how many are used.
pub fn set_slots(total: usize, used: usize) {
    #[expect(clippy::cast_precision_loss, reason = "slots are at most 20000")]
    {
        gauge!(SLOTS).set(total as f64);
        gauge!(SLOTS_USED).set(used as f64);
    }
}

/// How many jobs only wait for their end to be written.
pub fn set_ending_jobs(count: usize) {
    #[expect(clippy::cast_precision_loss, reason = "at most twice the slots")]
    gauge!(ENDING_JOBS).set(count as f64);
}

/// Whether intake is paused for this reason.
pub fn set_paused(reason: &'static str, is: bool) {
    gauge!(PAUSED, "reason" => reason).set(if is { 1.0 } else { 0.0 });
}

/// A claim was lost.
pub fn lease_lost() {
    counter!(LEASES_LOST).increment(1);
}

/// A renewal failed on one side: `row`, `queue` or `lock`.
pub fn heartbeat_failure(side: &'static str) {
    counter!(HEARTBEAT_FAILURES, "side" => side).increment(1);
}

/// Messages are hidden no longer: the leases of their rows could not be renewed.
pub fn messages_let_go(messages: usize) {
    counter!(LET_GO).increment(u64::try_from(messages).unwrap_or(u64::MAX));
}

/// A message was put aside.
pub fn count_quarantined(reason: &'static str) {
    counter!(QUARANTINED, "reason" => reason).increment(1);
}

/// Counts pages that were read, by the source of their text.
pub fn count_pages(source: &'static str, count: u64) {
    counter!(PAGES, "source" => source).increment(count);
}

/// Counts a text layer that was compared with its drawing.
pub fn count_second_look(result: &'static str) {
    counter!(SECOND_LOOKS, "result" => result).increment(1);
}

/// Counts a document by the end of its second reading: done, or the reason it was not.
pub fn count_second_reading(result: &'static str) {
    counter!(SECOND_READINGS, "result" => result).increment(1);
}

/// A provider was paid for pages.
pub fn count_paid_pages(provider: &'static str, count: u32) {
    counter!(PAID_PAGES, "provider" => provider).increment(u64::from(count));
}

/// A child process was started to read documents.
pub fn process_started() {
    counter!(PROCESSES_STARTED).increment(1);
}

/// A child process that read documents died, or had to be killed.
pub fn process_died(reason: &'static str) {
    counter!(PROCESSES_DIED, "reason" => reason).increment(1);
}

/// A child process has done enough and is replaced.
pub fn process_replaced() {
    counter!(PROCESSES_REPLACED).increment(1);
}

/// Whether the child process that was started last is confined.
pub fn set_process_confined(is: bool) {
    gauge!(CONFINED).set(if is { 1.0 } else { 0.0 });
}

/// Counts the tokens that calls to models used.
pub fn count_tokens(usage: &ModelUsage) {
    let ModelUsage { input, cache_read, cache_write, output } = *usage;
    for (direction, tokens) in [
        ("input", input),
        ("cache_read", cache_read),
        ("cache_write", cache_write),
        ("output", output),
    ] {
        counter!(TOKENS, "direction" => direction).increment(tokens);
    }
}

/// The next model of the chain is asked after one of this vendor.
pub fn count_escalation(provider: &str) {
    counter!(ESCALATED, "provider" => provider.to_owned()).increment(1);
}

/// A model was asked for the kind of a document that might be of several; `answer` is `settled` or
/// `open`.
pub fn kind_asked(answer: &'static str) {
    counter!(KINDS_ASKED, "answer" => answer).increment(1);
}

/// A model of this vendor refused a schema for the first time in this process.
pub fn count_refused_schema(provider: &'static str) {
    counter!(SCHEMAS_REFUSED, "provider" => provider).increment(1);
}

/// A stored artefact was used again.
pub fn count_reuse(artefact: &'static str) {
    counter!(REUSED, "artefact" => artefact).increment(1);
}

/// The janitor sent ingestions again.
pub fn count_resent(count: u64) {
    counter!(RESENT).increment(count);
}

/// A pass of maintenance was made.
pub fn count_maintenance_pass() {
    counter!(MAINTAINED).increment(1);
}

/// A document was failed as `crashed` because its message is a dead letter.
pub fn count_given_up() {
    counter!(GIVEN_UP).increment(1);
}

/// A chore of maintenance failed.
pub fn count_maintenance_failure(chore: &'static str) {
    counter!(CHORE_FAILED, "chore" => chore).increment(1);
}

/// Messages that wait in the queue, by state.
pub fn set_depth(state: &'static str, count: u64) {
    #[expect(clippy::cast_precision_loss, reason = "a gauge; exact below 2^52")]
    gauge!(DEPTH, "state" => state).set(count as f64);
}

/// A heartbeat began so late.
pub fn heartbeat_lag(late: Duration) {
    histogram!(HEARTBEAT_LAG).record(late);
}

/// So much was left of a message's hiding when it was extended.
pub fn visibility_remaining(left: Duration) {
    histogram!(VISIBILITY_LEFT).record(left);
}

/// A write arrived after its claim was lost, and changed nothing.
pub fn fenced_write(write: &'static str) {
    counter!(FENCED, "write" => write).increment(1);
}

/// So many receive calls are out.
pub fn set_polls(count: usize) {
    gauge!(POLLS).set(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
}

/// A request was sent to the queue's service.
pub fn queue_request(operation: &'static str) {
    counter!(REQUESTS, "operation" => operation).increment(1);
}

/// The worker has been draining for so long; zero: it is not.
pub fn set_draining(since: Duration) {
    gauge!(DRAINING).set(since.as_secs_f64());
}

/// The age of the oldest open ingestion; zero: there is none, or another worker reports it.
pub fn oldest_in_progress(age: Duration) {
    gauge!(OLDEST).set(age.as_secs_f64());
}

/// So many documents wait for review, the oldest for so long; zero: none does, or another worker
/// reports it.
pub fn set_reviews(waiting: i64, oldest: Duration) {
    gauge!(REVIEWS_WAITING).set(gauge_count(waiting));
    gauge!(REVIEWS_OLDEST).set(oldest.as_secs_f64());
}

/// How long the same transaction has held vacuum back; zero: none does, or another worker reports it.
pub fn vacuum_held_back(time: Duration) {
    gauge!(VACUUM_HELD_BACK).set(time.as_secs_f64());
}

/// So many bounds on silent errors are in this state.
pub fn silent_error_levels(state: &'static str, count: i64) {
    gauge!(SILENT_ERROR_LEVELS, "state" => state).set(count as f64);
}

/// A bound on silent errors was found broken.
pub fn count_silent_error_alarm() {
    counter!(SILENT_ERROR_ALARMS).increment(1);
}

/// An ingestion ended with this outcome after so many attempts.
pub fn attempts_to_end(outcome: &'static str, attempts: u32) {
    histogram!(ATTEMPTS, "outcome" => outcome).record(f64::from(attempts));
}

/// A hook was asked; `outcome` is `continue`, `stop`, `add` or `failed`.
pub fn count_hook(hook: &str, outcome: &'static str) {
    counter!(HOOKS, "hook" => hook.to_owned(), "outcome" => outcome).increment(1);
}

/// A target was tried; `outcome` is `delivered`, `refused` or `not_sent`.
pub fn count_webhook(target: &str, outcome: &'static str) {
    counter!(WEBHOOKS, "target" => target.to_owned(), "outcome" => outcome).increment(1);
}

/// Events not delivered to a target: open and given up, each counted up to 10,001, and the age of
/// the oldest in seconds.
pub fn set_webhooks(target: &str, open: i64, dead: i64, oldest_s: f64) {
    gauge!(WEBHOOKS_OPEN, "target" => target.to_owned()).set(gauge_count(open));
    gauge!(WEBHOOKS_DEAD, "target" => target.to_owned()).set(gauge_count(dead));
    gauge!(WEBHOOKS_OLDEST, "target" => target.to_owned()).set(oldest_s);
}

/// A count as the value of a gauge.
fn gauge_count(count: i64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or_default())
}

/// Whether the platform is asked not to take this task away.
pub fn scale_in_protected(is: bool) {
    gauge!(PROTECTED).set(if is { 1.0 } else { 0.0 });
}

/// A provider and model as labels: as many series as are configured.
#[derive(Debug, Clone, Copy)]
pub struct LimiterLabels<'a> {
    /// Name of the provider, e.g. `openai`.
    pub provider: &'a str,
    /// Name of the model as configured.
    pub model: &'a str,
}

impl LimiterLabels<'_> {
    fn labels(self) -> [(&'static str, String); 2] {
        [("provider", self.provider.to_owned()), ("model", self.model.to_owned())]
    }
}

/// A provider's calls in flight and waiting, and its estimated limit.
pub fn set_throttle(
    lane: LimiterLabels<'_>,
    in_flight: u32,
    waiting: usize,
    per_second: Option<f64>,
) {
    let waiting = f64::from(u32::try_from(waiting).unwrap_or(u32::MAX));
    for (state, count) in [("in_flight", f64::from(in_flight)), ("waiting", waiting)] {
        let [provider, model] = lane.labels();
        gauge!(CALLS, &[provider, model, ("state", state.to_owned())]).set(count);
    }
    if let Some(per_second) = per_second {
        gauge!(RATE, &lane.labels()).set(per_second);
    }
}

/// A device for local models: its free memory, and the memory that models hold.
pub fn scheduler_memory(device: &str, free_mib: u64, held_mib: u64) {
    #[expect(clippy::cast_precision_loss, reason = "MiB are far below 2^52")]
    let (free, held) = (free_mib as f64, held_mib as f64);
    gauge!(SCHEDULER_FREE, "device" => device.to_owned()).set(free);
    gauge!(SCHEDULER_HELD, "device" => device.to_owned()).set(held);
}

/// A local model: calls that wait and run, and whether it has memory.
pub fn scheduler_calls(model: &str, waiting: usize, running: u32, has_turn: bool) {
    let waiting = f64::from(u32::try_from(waiting).unwrap_or(u32::MAX));
    for (state, count) in [("waiting", waiting), ("running", f64::from(running))] {
        gauge!(SCHEDULER_CALLS, "model" => model.to_owned(), "state" => state).set(count);
    }
    gauge!(SCHEDULER_TURN, "model" => model.to_owned()).set(if has_turn { 1.0 } else { 0.0 });
}

/// A call to a local model was let in after this time.
pub fn scheduler_wait(model: &str, waited: Duration) {
    histogram!(SCHEDULER_WAIT, "model" => model.to_owned()).record(waited);
}

/// A call to a local model was put off: `full` or `wait`.
pub fn scheduler_put_off(model: &str, reason: &'static str) {
    counter!(SCHEDULER_PUT_OFF, "model" => model.to_owned(), "reason" => reason).increment(1);
}

/// Something was paid, in billionths of the currency.
pub fn count_spending(provider: &str, model: &str, nanos: u64) {
    let labels = [("provider", provider.to_owned()), ("model", model.to_owned())];
    counter!(SPENT, &labels).increment(nanos);
}

/// Questions of batches ended: `answered`, `late` (paid for twice), or why a direct call takes their
/// place: `errored`, `ended`, `deadline`.
pub fn count_batched(provider: &str, outcome: &'static str, count: u64) {
    let labels = [("provider", provider.to_owned()), ("outcome", outcome.to_owned())];
    counter!(BATCHED, &labels).increment(count);
}

/// Questions that wait in the batch lane, as its leading worker counts them; other workers report
/// none.
#[expect(clippy::cast_precision_loss, reason = "for gauges")]
pub fn batch_lane(queued: i64, sent: i64, oldest_seconds: f64) {
    gauge!(BATCH_WAITING, "state" => "queued").set(queued as f64);
    gauge!(BATCH_WAITING, "state" => "sent").set(sent as f64);
    gauge!(BATCH_OLDEST).set(oldest_seconds);
}

/// Spending of all workers today, and whether the budget is used up.
pub fn spent_today(units: f64, is_all: bool) {
    gauge!(SPENT_TODAY).set(units);
    gauge!(BUDGET_SPENT).set(if is_all { 1.0 } else { 0.0 });
}

/// The daily budget.
pub fn daily_budget(units: f64) {
    gauge!(BUDGET).set(units);
}

/// A provider refused a call.
pub fn refused_calls(lane: LimiterLabels<'_>) {
    counter!(REFUSED_CALLS, &lane.labels()).increment(1);
}

/// The state of a provider's breaker: 0 closed, 1 half open, 2 open; whether a person has to act.
pub fn set_breaker(lane: LimiterLabels<'_>, state: u8, denied: bool) {
    gauge!(BREAKER, &lane.labels()).set(f64::from(state));
    gauge!(DENIED, &lane.labels()).set(if denied { 1.0 } else { 0.0 });
}
