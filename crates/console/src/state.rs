//! Shared state of all pages.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;
use time::OffsetDateTime;

use super::access::{AccessControl, ConsoleVisitor};
use super::failure::ConsoleFailure;
use super::secrets::hash_secret;
use crate::fresh::SharedAnswer;
use docmill_core::config::{
    QueueDestination, ReviewConfig, SecretSource, SilentErrorsConfig, StoreConfig, WebConfig,
};
use docmill_gate::kinds::KindSet;
use docmill_operations::Db;
use docmill_operations::dashboard::{self, ServiceOverview};
use docmill_operations::inspect::{self, CostGrouping, CostSum};
use docmill_operations::page_drawing::PageDrawer;
use docmill_operations::review::{self, ReviewCounts};
use docmill_operations::tenant_shares::{TakenShare, TenantShares};
use docmill_operations::webhooks::{self, WebhookTargetState};
use docmill_queue::MessageQueue;
use docmill_storage::ObjectStore;
use docmill_worker::runner::{PROBE_TIMEOUT, probe_dependency};

/// The style sheet.
pub(super) const STYLE: &str = include_str!("console.css");
/// The mark of the product.
pub(super) const MARK: &str = include_str!("mark.svg");
/// The script of the review page.
pub(super) const REVIEW_SCRIPT: &str = include_str!("review.js");
/// The script of page pictures.
pub(super) const PICTURE_SCRIPT: &str = include_str!("page_picture.js");
/// The script of pages that follow what moves, and of uploads.
pub(super) const LIVE_SCRIPT: &str = include_str!("live.js");

/// Dependencies of the pages.
pub struct ConsoleParts {
    /// Postgres, over connections that no job needs.
    pub database: Db,
    /// Where a retry is sent to.
    pub queue: Arc<dyn MessageQueue>,
    /// Where transcripts lie.
    pub store: Arc<dyn ObjectStore>,
    /// The kinds of documents, for the forms of reviewers.
    pub kinds: KindSet,
    /// Address and access of the pages.
    pub config: WebConfig,
    /// Limits of documents handed in.
    pub limits: UploadLimits,
    /// Which places of the store documents may be handed in from.
    pub places: StoreConfig,
    /// Settings for reviewers' decisions.
    pub review: ReviewConfig,
    /// Bounds on silent errors.
    pub silent_errors: SilentErrorsConfig,
    /// Draws pages as pictures; `None` if pictures are off.
    pub drawer: Option<Arc<PageDrawer>>,
}

/// Limits of documents handed in, and the queue's name in their rows.
#[derive(Debug, Clone)]
pub struct UploadLimits {
    /// Bytes of a document.
    pub largest: u64,
    /// The queue as traces name it.
    pub destination: QueueDestination,
}

/// Documents that are handed in at the same time: each is in memory as a whole for a moment. As
/// many of the largest may lie on the disk.
const UPLOAD_PLACES: usize = 4;
/// Transcripts that are read and written in other forms at the same time: each takes a core
/// meanwhile.
const RENDERING_PLACES: usize = 4;
/// How long a request waits for one of these places.
const PLACE_TIMEOUT: Duration = Duration::from_secs(8);
/// Bytes of transcripts, and of the answers made from them, in memory until they are sent.
const MAX_TRANSCRIPT_BYTES: usize = 256 << 20;
/// Unknown tokens within [`FAILED_SIGN_IN_WINDOW`] that are answered one by one.
const MAX_FAILED_SIGN_INS: u32 = 100;
/// See [`MAX_FAILED_SIGN_INS`].
const FAILED_SIGN_IN_WINDOW: Duration = Duration::from_secs(60);

/// How old a count in the navigation may be.
const COUNT_LIFETIME: Duration = Duration::from_secs(3);
/// Tenants whose counts are remembered.
const MAX_COUNTED_TENANTS: usize = 1_000;

/// How many documents waited for review, of one tenant or of all, and when.
#[derive(Debug, Default)]
struct WaitingCounts(Mutex<HashMap<Option<String>, (Instant, i64)>>);

/// How many unknown tokens came since when.
#[derive(Debug)]
struct StrangerCount {
    since: Instant,
    count: u32,
}

/// The state of the service, and today's cost.
#[derive(Debug, Clone)]
pub(super) struct OverviewAnswer {
    /// Everything but money.
    pub(super) service: ServiceOverview,
    /// Today's spending (UTC); `None` without any.
    pub(super) cost: Option<CostSum>,
    /// Documents that wait for a person.
    pub(super) reviews: ReviewCounts,
    /// The webhook targets and what waits for them.
    pub(super) webhooks: Vec<WebhookTargetState>,
}

/// Shared by all requests.
#[derive(Clone)]
pub(super) struct ConsoleState {
    shared: Arc<ConsoleStateInner>,
}

struct ConsoleStateInner {
    parts: ConsoleParts,
    access: AccessControl,
    proxy_secret: SecretSource,
    style_path: String,
    mark_path: String,
    review_script_path: String,
    picture_script_path: String,
    live_script_path: String,
    waiting: WaitingCounts,
    overview: Arc<SharedAnswer<Result<Arc<OverviewAnswer>, ConsoleFailure>>>,
    database: Arc<SharedAnswer<bool>>,
    uploads: TenantShares,
    arriving: TenantShares,
    renderings: TenantShares,
    transcripts: TenantShares,
    strangers: Mutex<StrangerCount>,
}

impl ConsoleState {
    /// # Errors
    /// The system gives no random numbers.
    pub(super) fn new(parts: ConsoleParts) -> Result<Self, getrandom::Error> {
        let access = AccessControl::new(&parts.config, parts.database.clone())?;
        let proxy_secret = parts.config.proxy.secret_source();
        let style_path = asset_path(STYLE, "css");
        let review_script_path = asset_path(REVIEW_SCRIPT, "js");
        let picture_script_path = asset_path(PICTURE_SCRIPT, "js");
        let overview = SharedAnswer::new();
        let largest = usize::try_from(parts.limits.largest).unwrap_or(usize::MAX);
        let strangers = Mutex::new(StrangerCount { since: Instant::now(), count: 0 });
        let shared = ConsoleStateInner {
            parts,
            access,
            proxy_secret,
            style_path,
            mark_path: asset_path(MARK, "svg"),
            waiting: WaitingCounts::default(),
            review_script_path,
            picture_script_path,
            live_script_path: asset_path(LIVE_SCRIPT, "js"),
            overview,
            database: SharedAnswer::new(),
            uploads: TenantShares::new(UPLOAD_PLACES),
            arriving: TenantShares::new(largest.saturating_mul(UPLOAD_PLACES)),
            renderings: TenantShares::new(RENDERING_PLACES),
            transcripts: TenantShares::new(MAX_TRANSCRIPT_BYTES),
            strangers,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(super) fn database(&self) -> &Db {
        &self.shared.parts.database
    }

    pub(super) fn queue(&self) -> &dyn MessageQueue {
        self.shared.parts.queue.as_ref()
    }

    /// The queue, for work that continues after the client has gone.
    pub(super) fn queue_handle(&self) -> Arc<dyn MessageQueue> {
        Arc::clone(&self.shared.parts.queue)
    }

    pub(super) fn store(&self) -> &dyn ObjectStore {
        self.shared.parts.store.as_ref()
    }

    pub(super) fn kinds(&self) -> &KindSet {
        &self.shared.parts.kinds
    }

    pub(super) fn config(&self) -> &WebConfig {
        &self.shared.parts.config
    }

    pub(super) fn silent_errors(&self) -> &SilentErrorsConfig {
        &self.shared.parts.silent_errors
    }

    pub(super) fn review(&self) -> &ReviewConfig {
        &self.shared.parts.review
    }

    pub(super) fn places(&self) -> &StoreConfig {
        &self.shared.parts.places
    }

    pub(super) fn limits(&self) -> &UploadLimits {
        &self.shared.parts.limits
    }

    /// Waits for a place to hand documents in.
    ///
    /// # Errors
    /// No place became free in time.
    pub(super) async fn upload_place(
        &self,
        visitor: &ConsoleVisitor,
    ) -> Result<TakenShare, ConsoleFailure> {
        let place = self.shared.uploads.wait_for_one(visitor.tenant.as_deref(), PLACE_TIMEOUT);
        place.await.ok_or_else(ConsoleFailure::busy)
    }

    /// Room for so many bytes of an arriving document.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn arrival_room(
        &self,
        visitor: &ConsoleVisitor,
        bytes: usize,
    ) -> Result<TakenShare, ConsoleFailure> {
        take_bytes(&self.shared.arriving, visitor, bytes)
    }

    /// Waits for a place to read transcripts.
    ///
    /// # Errors
    /// No place became free in time.
    pub(super) async fn rendering_place(
        &self,
        visitor: &ConsoleVisitor,
    ) -> Result<TakenShare, ConsoleFailure> {
        let place = self.shared.renderings.wait_for_one(visitor.tenant.as_deref(), PLACE_TIMEOUT);
        place.await.ok_or_else(ConsoleFailure::busy)
    }

    /// Room in memory for so many bytes of a transcript.
    ///
    /// # Errors
    /// There is no room.
    pub(super) fn transcript_room(
        &self,
        visitor: &ConsoleVisitor,
        bytes: usize,
    ) -> Result<TakenShare, ConsoleFailure> {
        take_bytes(&self.shared.transcripts, visitor, bytes)
    }

    /// Whether `sent` is the secret that the proxy shares; compared in constant time. No
    /// value matches a secret that cannot be read or is empty, as a file is while it is replaced.
    pub(super) fn is_proxy_secret(&self, sent: &[u8]) -> bool {
        let known = self.shared.proxy_secret.current_secret();
        known.is_ok_and(|known| is_same_secret(known.reveal(), sent))
    }

    /// Logs a proxy header of another sender than the proxy. The log has the address and not the
    /// header, and of a flood only its beginning.
    pub(super) fn note_pretender(&self, peer: Option<IpAddr>) -> ConsoleFailure {
        if self.count_stranger() <= MAX_FAILED_SIGN_INS {
            let peer = peer.map_or_else(|| "nowhere".to_owned(), |peer| peer.to_string());
            tracing::warn!(
                peer,
                "a request from {peer}, which is not in web.proxy.networks or lacks \
                 web.proxy.secret, has a header of the proxy"
            );
        }
        ConsoleFailure::forbidden("Only the proxy may name the user.")
    }

    fn count_stranger(&self) -> u32 {
        let mut strangers = self.shared.strangers.lock();
        if strangers.since.elapsed() >= FAILED_SIGN_IN_WINDOW {
            *strangers = StrangerCount { since: Instant::now(), count: 0 };
        }
        strangers.count = strangers.count.saturating_add(1);
        strangers.count
    }

    /// Counts a failed sign-in, `told`: with a token, which is never logged. Known tokens are not
    /// counted: a flood of unknown ones locks no visitor out.
    pub(super) fn note_stranger(&self, told: bool) -> ConsoleFailure {
        if !told {
            return ConsoleFailure::unknown_visitor();
        }
        match self.count_stranger() {
            count @ ..=MAX_FAILED_SIGN_INS => {
                tracing::warn!(within_a_minute = count, "an unknown token was sent");
                ConsoleFailure::unknown_visitor()
            }
            _ => ConsoleFailure::too_many_unknown(),
        }
    }

    pub(super) fn access(&self) -> &AccessControl {
        &self.shared.access
    }

    /// A path of ours as browsers have to ask for it.
    pub(super) fn link(&self, path: &str) -> String {
        format!("{}{path}", self.shared.parts.config.base_path)
    }

    /// The path of the style sheet; another one for every version of it.
    pub(super) fn style_path(&self) -> &str {
        &self.shared.style_path
    }

    /// The path of the mark.
    pub(super) fn mark_path(&self) -> &str {
        &self.shared.mark_path
    }

    /// How many documents of a tenant, or of all, wait for review; `None` if it was never counted.
    pub(super) fn known_waiting(&self, tenant: Option<&str>) -> Option<i64> {
        let known = self.shared.waiting.0.lock();
        known.get(&tenant.map(str::to_owned)).map(|(_, count)| *count)
    }

    /// Counts anew what waits for review, if that is not of a moment ago. A count that fails is left
    /// out: no page waits for it twice.
    pub(super) async fn refresh_waiting(&self, tenant: Option<&str>) {
        let key = tenant.map(str::to_owned);
        let is_fresh = |(at, _): &(Instant, i64)| at.elapsed() < COUNT_LIFETIME;
        if self.shared.waiting.0.lock().get(&key).is_some_and(is_fresh) {
            return;
        }
        if let Ok(counts) = review::count_reviews(self.database(), tenant, "").await {
            let count = counts.to_check + counts.unreadable;
            let mut known = self.shared.waiting.0.lock();
            if known.len() >= MAX_COUNTED_TENANTS {
                known.clear();
            }
            known.insert(key, (Instant::now(), count));
        }
    }

    /// The path of the script of a review; another one for every version of it.
    pub(super) fn review_script_path(&self) -> &str {
        &self.shared.review_script_path
    }

    /// The same of the script of pictures.
    pub(super) fn picture_script_path(&self) -> &str {
        &self.shared.picture_script_path
    }

    /// The same of the script of pages that follow what moves.
    pub(super) fn live_script_path(&self) -> &str {
        &self.shared.live_script_path
    }

    /// Draws pages; `None` if pictures are off.
    pub(super) fn drawer(&self) -> Option<&Arc<PageDrawer>> {
        self.shared.parts.drawer.as_ref()
    }

    /// Whether Postgres answered, at most two seconds ago.
    pub(super) async fn has_database(&self) -> bool {
        let database = self.database().clone();
        let asked = async move { probe_dependency(database.ping(PROBE_TIMEOUT)).await.is_some() };
        self.shared.database.find(asked).await.unwrap_or_default()
    }

    /// The state of the service, at most two seconds old, loaded once for all visitors.
    pub(super) async fn load_overview(&self) -> Result<Arc<OverviewAnswer>, ConsoleFailure> {
        let (state, shared) = (self.clone(), Arc::clone(&self.shared.overview));
        let found = shared.find(async move {
            let service = dashboard::load_overview(state.database(), state.queue()).await?;
            let today = OffsetDateTime::now_utc().replace_time(time::Time::MIDNIGHT);
            let costs = inspect::sum_costs(state.database(), CostGrouping::Day, today, 1).await?;
            let reviews = review::count_reviews(state.database(), None, "").await?;
            let webhooks = webhooks::list_targets(state.database()).await?;
            let cost = costs.into_iter().next();
            Ok(Arc::new(OverviewAnswer { service, cost, reviews, webhooks }))
        });
        found.await.unwrap_or_else(|| Err(ConsoleFailure::from_status(http_500())))
    }
}

/// The path of an asset, named after its content.
fn asset_path(content: &str, ending: &str) -> String {
    format!("/assets/{:.12}.{ending}", hash_secret(content))
}

fn take_bytes(
    shares: &TenantShares,
    visitor: &ConsoleVisitor,
    bytes: usize,
) -> Result<TakenShare, ConsoleFailure> {
    let amount = u32::try_from(bytes).ok();
    let taken = amount.and_then(|amount| shares.take(visitor.tenant.as_deref(), amount));
    taken.ok_or_else(ConsoleFailure::busy)
}

fn http_500() -> axum::http::StatusCode {
    axum::http::StatusCode::INTERNAL_SERVER_ERROR
}

/// Whether two secrets are the same, in constant time; an empty one is none.
fn is_same_secret(known: &str, sent: &[u8]) -> bool {
    !known.is_empty() && bool::from(known.as_bytes().ct_eq(sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_secret_file_lets_nobody_speak_for_the_proxy() {
        #[rustfmt::skip]
        let table = [
            ("right", "right", true),
            ("right", "wrong", false),
            ("right", "",      false),
            ("",      "",      false),
        ];
        for (known, sent, is_same) in table {
            assert_eq!(is_same_secret(known, sent.as_bytes()), is_same, "{known:?} {sent:?}");
        }
    }

    #[test]
    fn style_scripts_and_mark_of_all_pages_have_at_most_forty_kilobytes_without_comments() {
        let all = [STYLE, REVIEW_SCRIPT, PICTURE_SCRIPT, LIVE_SCRIPT, MARK];
        let lines = all.iter().flat_map(|text| text.lines());
        let code = lines.filter(|line| !line.trim_start().starts_with("//"));
        let bytes: usize = code.map(|line| line.len() + 1).sum();
        assert!(bytes <= 40_000, "{bytes} bytes");
    }
}
