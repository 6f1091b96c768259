//! Delivers the outbox: a task for each target, so that none waits for another.
//!
//! Any number of processes may do so at once: each claims free deliveries. Deliveries of a crashed
//! process are due again when its lease ends, with the same id. A target receives the events of one
//! document in order, because only the oldest open delivery becomes due. Not promised: exactly one
//! delivery, or order between documents.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use uuid::Uuid;

use super::payload::{TEST_EVENT, write_payload, write_test};
use super::store_target::{DeliveryStore, NOT_CARRIED, StoreTarget};
use super::{DestinationPolicy, NameResolver, lease_token};
use docmill_client::webhook::{
    AwsMessage, AwsTarget, SharedCredentialsProvider, SignedTarget, WebhookReply, WebhookSender,
};
use docmill_core::config::{Config, WebhookEvent, WebhookTarget, WebhooksConfig};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::metrics;
use docmill_core::model::digest::encode_hex;
use docmill_core::retry::{Jitter, RetryBackoff};
use docmill_ledger::db::Db;
use docmill_ledger::db::lanes::webhooks::{
    self as rows, ClaimedWebhookDelivery, DeliveryEnd, TargetAnswer, WebhookRegistration,
    WebhookTargetState,
};
use docmill_pipeline::shutdown::Shutdown;

/// The lease of a delivery beyond the time of its request: for the data before, the row afterwards.
const LEASE_MARGIN: Duration = Duration::from_secs(30);
/// How often targets are marked as configured, and counted.
const REGISTER_INTERVAL: Duration = Duration::from_secs(60);
/// After Postgres did not answer.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);
/// Time for running deliveries to end at the stop; then their lease runs out.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// So many failures in a row make a target be asked with one message at a time.
const SUSPECT_FAILURES: u32 = 5;
/// The longest rest of a target that fails and fails, between two messages of one process, in looks
/// (`webhooks.poll`).
const MAX_PAUSE_FACTOR: u32 = 60;

/// How deliveries are tried.
#[derive(Debug, Clone)]
pub struct WebhookTerms {
    config: WebhooksConfig,
    /// Where the pages are; empty: not known.
    pages: String,
}

impl WebhookTerms {
    /// By the settings of the service.
    pub fn new(config: &Config) -> Self {
        let origin = &config.web.origin;
        let pages = match origin.is_empty() {
            true => String::new(),
            false => format!("{origin}{}", config.web.base_path),
        };
        Self { config: config.webhooks.clone(), pages }
    }

    fn backoff(&self) -> RetryBackoff {
        RetryBackoff::doubling(self.config.first_retry)
            .up_to(self.config.longest_retry)
            .with_jitter(Jitter::Quarter)
    }

    fn lease(&self) -> Duration {
        self.config.timeout + LEASE_MARGIN
    }
}

/// Everything that delivers.
pub struct WebhookDelivery {
    db: Db,
    routes: Vec<Arc<TargetRoute>>,
    terms: Arc<WebhookTerms>,
    sender: Arc<WebhookSender>,
}

/// A target of the settings, its address read.
struct TargetRoute {
    target: WebhookTarget,
    place: TargetPlace,
}

/// A message for a target.
struct TargetMessage {
    id: String,
    event: String,
    /// Messages of one group are kept in order.
    group: String,
    body: String,
}

/// The address of a target.
enum TargetPlace {
    /// By a signed message of the specification.
    Web(SignedTarget),
    /// By a request that AWS's credentials sign.
    Aws(AwsTarget),
    /// As objects of a store.
    Store(StoreTarget),
}

impl TargetRoute {
    fn new(
        target: &WebhookTarget,
        policy: &DestinationPolicy,
        store: &DeliveryStore,
        timeout: Duration,
    ) -> Result<Self> {
        let refuse = |why: String| {
            let text = format!("webhook target `{}`: {why}", target.name);
            Error::new(Fault::Misconfigured, text)
        };
        if target.key_prefix().is_some() {
            let place = StoreTarget::new(target, store.clone(), timeout).map_err(refuse)?;
            return Ok(Self { target: target.clone(), place: TargetPlace::Store(place) });
        }
        if AwsTarget::is_arn(target.url.reveal()) {
            let place = AwsTarget::parse(target.url.reveal(), &target.endpoint).map_err(refuse)?;
            policy.check_url(place.endpoint()).map_err(|why| refuse(why.to_string()))?;
            return Ok(Self { target: target.clone(), place: TargetPlace::Aws(place) });
        }
        let place = SignedTarget::open(target.url.reveal(), target.secret_source(), policy);
        let place = TargetPlace::Web(place.map_err(refuse)?);
        Ok(Self { target: target.clone(), place })
    }

    fn registration(&self) -> WebhookRegistration {
        let events = self.wanted_events();
        let events = events.iter().map(|event: &WebhookEvent| event.code().to_owned()).collect();
        let place = match &self.place {
            TargetPlace::Web(place) => place.url().origin().ascii_serialization(),
            TargetPlace::Aws(place) => place.endpoint().origin().ascii_serialization(),
            TargetPlace::Store(place) => place.describe(),
        };
        let whole = match &self.place {
            TargetPlace::Web(place) => place.url().as_str(),
            _ => self.target.url.reveal(),
        };
        WebhookRegistration {
            name: self.target.name.clone(),
            place,
            url_hash: encode_hex(Sha256::digest(whole)),
            events,
            tenant: self.target.tenant.clone(),
        }
    }

    /// A store gets data that holds, unless other events are named.
    fn wanted_events(&self) -> &[WebhookEvent] {
        match (&self.place, self.target.events.as_slice()) {
            (TargetPlace::Store(_), []) => {
                &[WebhookEvent::Completed, WebhookEvent::Accepted, WebhookEvent::Corrected]
            }
            (_, events) => events,
        }
    }
}

impl TargetRoute {
    /// Sends a message, signed as the target's kind asks for; to a store, as the object of tests.
    ///
    /// # Errors
    /// `Misconfigured` if the secret is invalid.
    async fn send(&self, sender: &WebhookSender, message: TargetMessage) -> Result<WebhookReply> {
        let TargetMessage { id, event, group, body } = message;
        match &self.place {
            TargetPlace::Web(place) => {
                let message = place.sign(&id, body)?;
                Ok(sender.send_message(place.url(), message).await)
            }
            TargetPlace::Aws(place) => {
                let message = AwsMessage { id, event, group, body };
                Ok(sender.send_to_aws(place, &message).await)
            }
            TargetPlace::Store(place) => Ok(place.write_test(body).await),
        }
    }
}

impl WebhookDelivery {
    /// Delivery to the targets of the settings; `None` without targets.
    ///
    /// # Errors
    /// `Misconfigured` if an address is not allowed or a secret is invalid; no TLS on this machine.
    pub fn new(
        db: Db,
        terms: WebhookTerms,
        names: Arc<dyn NameResolver>,
        store: &DeliveryStore,
    ) -> Result<Option<Self>> {
        let config = &terms.config;
        if config.targets.is_empty() {
            return Ok(None);
        }
        let policy = DestinationPolicy::of(config);
        let mut routes = Vec::new();
        for target in &config.targets {
            routes.push(Arc::new(TargetRoute::new(target, &policy, store, config.timeout)?));
        }
        let sender = Arc::new(WebhookSender::new(policy, names, config.timeout)?);
        Ok(Some(Self { db, routes, terms: Arc::new(terms), sender }))
    }

    /// The same, with these credentials for AWS in the place of its usual chain.
    pub fn with_credentials(mut self, provider: SharedCredentialsProvider) -> Self {
        self.sender = Arc::new(self.sender.with_credentials(provider));
        self
    }

    /// Registers the targets: from now on what happens is written down for them.
    ///
    /// # Errors
    /// No answer from Postgres, or no right to.
    pub async fn register_targets(&self) -> Result<()> {
        for route in &self.routes {
            rows::register_target(&self.db, &route.registration()).await?;
        }
        Ok(())
    }

    /// Delivers until it is asked to stop.
    pub async fn run(self, stop: Shutdown) {
        let mut tasks = JoinSet::new();
        for route in &self.routes {
            let lane = TargetLane {
                db: self.db.clone(),
                route: Arc::clone(route),
                terms: Arc::clone(&self.terms),
                sender: Arc::clone(&self.sender),
                failures: 0,
                rests_until: Instant::now(),
            };
            tasks.spawn(lane.run(stop.clone()));
        }
        let tests = TestLane {
            db: self.db.clone(),
            routes: self.routes.clone(),
            poll: self.terms.config.poll,
            sender: Arc::clone(&self.sender),
        };
        tasks.spawn(tests.run(stop.clone()));
        loop {
            let pause = match self.look_after_targets().await {
                Ok(()) => REGISTER_INTERVAL,
                Err(error) => {
                    tracing::warn!(error = %error, "webhook targets: {error}");
                    FAILURE_PAUSE
                }
            };
            tokio::select! {
                () = stop.wait_until_requested() => break,
                // A target without its task would receive nothing more, unnoticed.
                Some(ended) = tasks.join_next() => pass_on_panic(ended),
                () = tokio::time::sleep(pause) => {}
            }
        }
        while let Some(ended) = tasks.join_next().await {
            pass_on_panic(ended);
        }
    }

    async fn look_after_targets(&self) -> Result<()> {
        self.register_targets().await?;
        for state in rows::list_targets(&self.db).await? {
            let WebhookTargetState { name, open, dead, oldest_s, .. } = state;
            metrics::set_webhooks(&name, open, dead, oldest_s.unwrap_or_default());
        }
        Ok(())
    }
}

/// Passes the death of a task on to the process that runs the delivery.
fn pass_on_panic(ended: std::result::Result<(), JoinError>) {
    if let Err(died) = ended
        && let Ok(panic) = died.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Deliveries of this process to one target.
struct TargetLane {
    db: Db,
    route: Arc<TargetRoute>,
    terms: Arc<WebhookTerms>,
    sender: Arc<WebhookSender>,
    /// Failures in a row of the target as such: it cannot be reached, or is not well.
    failures: u32,
    /// Nothing is sent before.
    rests_until: Instant,
}

impl TargetLane {
    async fn run(mut self, stop: Shutdown) {
        let mut sending = JoinSet::new();
        loop {
            let pause = self.fill(&mut sending).await;
            tokio::select! {
                () = stop.wait_until_requested() => break,
                Some(ended) = sending.join_next(), if !sending.is_empty() => {
                    self.note_end(ended.unwrap_or(LaneNews::Failed)).await;
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
        let ends = async { while sending.join_next().await.is_some() {} };
        if tokio::time::timeout(STOP_GRACE, ends).await.is_err() {
            tracing::debug!("webhooks under way at the stop are sent again when their leases end");
        }
    }

    /// Begins to send what is due, as far as there is room; how long to wait before the next look.
    async fn fill(&self, sending: &mut JoinSet<LaneNews>) -> Duration {
        let rest = self.rests_until.saturating_duration_since(Instant::now());
        if !rest.is_zero() {
            return rest;
        }
        let most = if self.failures < SUSPECT_FAILURES { self.route.target.concurrency } else { 1 };
        let under_way = u32::try_from(sending.len()).unwrap_or(u32::MAX);
        let room = most.saturating_sub(under_way);
        if room == 0 {
            return self.terms.lease();
        }
        let (token, lease) = (lease_token(), self.terms.lease());
        let name = &self.route.target.name;
        let due = match rows::claim_deliveries(&self.db, name, token, room, lease).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(webhook = name, error = %error, "webhooks: {error}");
                return FAILURE_PAUSE;
            }
        };
        let is_full = due.len() >= usize::try_from(room).unwrap_or(usize::MAX);
        for delivery in due {
            let courier = WebhookCourier {
                db: self.db.clone(),
                route: Arc::clone(&self.route),
                terms: Arc::clone(&self.terms),
                sender: Arc::clone(&self.sender),
                token,
            };
            sending.spawn(courier.deliver(delivery));
        }
        if is_full { self.terms.lease() } else { self.terms.config.poll }
    }

    /// A recovered target gets its waiting deliveries at once.
    async fn note_end(&mut self, news: LaneNews) {
        if news == LaneNews::Reached && self.failures >= SUSPECT_FAILURES {
            let name = &self.route.target.name;
            if let Err(error) = rows::hasten_deliveries(&self.db, name).await {
                tracing::warn!(webhook = name, error = %error, "webhooks wait longer: {error}");
            }
            self.rests_until = Instant::now();
        }
        self.failures = match news {
            LaneNews::Reached => 0,
            LaneNews::Failed => self.failures.saturating_add(1),
        };
        let poll = self.terms.config.poll;
        let Some(more) = self.failures.checked_sub(SUSPECT_FAILURES) else { return };
        let rest = RetryBackoff::doubling(poll).up_to(poll * MAX_PAUSE_FACTOR);
        self.rests_until = Instant::now() + rest.with_jitter(Jitter::Quarter).wait_after(more);
    }
}

/// Tests that operators ask for, past the outbox: a target that rests or is disabled is tested too.
struct TestLane {
    db: Db,
    routes: Vec<Arc<TargetRoute>>,
    poll: Duration,
    sender: Arc<WebhookSender>,
}

impl TestLane {
    async fn run(self, stop: Shutdown) {
        let names: Vec<String> = self.routes.iter().map(|it| it.target.name.clone()).collect();
        loop {
            let pause = match self.send_tests(&names).await {
                Ok(()) => self.poll,
                Err(error) => {
                    tracing::warn!(error = %error, "tests of webhook targets: {error}");
                    FAILURE_PAUSE
                }
            };
            tokio::select! {
                () = stop.wait_until_requested() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn send_tests(&self, names: &[String]) -> Result<()> {
        for (name, id) in rows::take_tests(&self.db, names).await? {
            let Some(route) = self.routes.iter().find(|route| route.target.name == name) else {
                continue;
            };
            let message = TargetMessage {
                id: id.to_string(),
                event: TEST_EVENT.to_owned(),
                group: name.clone(),
                body: write_test(&name, OffsetDateTime::now_utc()),
            };
            let begun = Instant::now();
            let reply = reply_or_problem(&name, route.send(&self.sender, message).await);
            let answer = answer_of(&reply, begun.elapsed());
            rows::end_test(&self.db, &name, &answer).await?;
        }
        Ok(())
    }
}

/// The result of a try for the target itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LaneNews {
    /// It answered, be it that it did not take this message.
    Reached,
    /// It is not there, or not well.
    Failed,
}

impl LaneNews {
    fn of(reply: &WebhookReply) -> Self {
        match reply.status {
            None | Some(429 | 502..=504) => Self::Failed,
            Some(_) => Self::Reached,
        }
    }
}

/// Takes one delivery to its target.
struct WebhookCourier {
    db: Db,
    route: Arc<TargetRoute>,
    terms: Arc<WebhookTerms>,
    sender: Arc<WebhookSender>,
    token: Uuid,
}

impl WebhookCourier {
    async fn deliver(self, delivery: ClaimedWebhookDelivery) -> LaneNews {
        let name = &self.route.target.name;
        let begun = Instant::now();
        let reply = reply_or_problem(name, self.send(&delivery).await);
        let answer = answer_of(&reply, begun.elapsed());
        if let Err(error) = rows::note_answer(&self.db, name, &answer).await {
            tracing::warn!(webhook = name, error = %error, "an answer was not recorded: {error}");
        }
        let (news, outcome) = (LaneNews::of(&reply), describe_outcome(&reply));
        metrics::count_webhook(name, outcome);
        if reply.is_gone() {
            self.disable(name).await;
        }
        match rows::settle_delivery(&self.db, delivery.id, self.token, &self.end(&delivery, reply))
            .await
        {
            Ok(Some(state)) if state == "dead" => {
                tracing::warn!(webhook = name, delivery = delivery.id, "a webhook was given up");
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(webhook = name, error = %error, "a webhook will be sent again: {error}");
            }
        }
        news
    }

    async fn send(&self, delivery: &ClaimedWebhookDelivery) -> Result<WebhookReply> {
        if let TargetPlace::Store(place) = &self.route.place {
            return Ok(place.deliver(&self.db, delivery).await);
        }
        let data = match self.route.target.include_data {
            true => rows::load_event_data(&self.db, delivery).await?,
            false => None,
        };
        let message = TargetMessage {
            id: delivery.event_id.to_string(),
            event: delivery.event.clone(),
            group: document_of(delivery).to_owned(),
            body: write_payload(delivery, &self.terms.pages, data),
        };
        self.route.send(&self.sender, message).await
    }

    async fn disable(&self, name: &str) {
        tracing::warn!(webhook = name, "the webhook target says 410 Gone: nothing is sent to it");
        if let Err(error) = rows::disable_target(&self.db, name, "it answered 410 Gone").await {
            tracing::warn!(webhook = name, error = %error, "it was not disabled: {error}");
        }
    }

    fn end(&self, delivery: &ClaimedWebhookDelivery, reply: WebhookReply) -> DeliveryEnd {
        let failed = u32::try_from(delivery.tries - 1).unwrap_or_default();
        let wait = self.terms.backoff().wait_after(failed);
        let is_store = matches!(self.route.place, TargetPlace::Store(_));
        // The same data is no better the next time; a decision is an event of its own.
        let is_final = is_store && reply.status == Some(NOT_CARRIED);
        let most = if is_final { Duration::ZERO } else { self.terms.config.give_up_after };
        DeliveryEnd {
            delivered: reply.is_taken(),
            wait: wait.max(reply.retry_after.unwrap_or_default()),
            give_up_after: most,
            status: reply.status,
            problem: reply.problem,
        }
    }
}

/// The reply; of a message that was not sent, why.
fn reply_or_problem(target: &str, sent: Result<WebhookReply>) -> WebhookReply {
    sent.unwrap_or_else(|error| {
        // It is not the target's fault.
        tracing::warn!(webhook = target, error = %error, "a webhook was not sent: {error}");
        WebhookReply { status: None, retry_after: None, problem: Some(error.to_string()) }
    })
}

fn answer_of(reply: &WebhookReply, latency: Duration) -> TargetAnswer {
    TargetAnswer { status: reply.status, problem: reply.problem.clone(), latency }
}

/// The document, whose messages are kept in order.
fn document_of(delivery: &ClaimedWebhookDelivery) -> &str {
    delivery.facts.get("document_id").and_then(|id| id.as_str()).unwrap_or_default()
}

/// The word in metrics.
fn describe_outcome(reply: &WebhookReply) -> &'static str {
    match reply {
        reply if reply.is_taken() => "delivered",
        reply if reply.status.is_some() => "refused",
        _ => "not_sent",
    }
}
