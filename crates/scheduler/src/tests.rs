//! The waiting around the rules: tasks, permits, the folder.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use futures::FutureExt;

use super::*;
use docmill_client::throttle::RateLimitHeaders;
use docmill_core::model::{LocalModelState, ModelUsage};
use docmill_llm::{FinishReason, PromptThinking};

/// A device whose free memory tests set.
#[derive(Clone)]
struct Card {
    total_mib: u64,
    free_mib: Arc<AtomicU64>,
}

impl DeviceProbe for Card {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        let free_mib = self.free_mib.load(Ordering::SeqCst);
        Ok(vec![MemoryDevice { name: "card".to_owned(), total_mib: self.total_mib, free_mib }])
    }
}

impl<T: DeviceProbe> DeviceProbe for Arc<T> {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        self.as_ref().read_devices()
    }
}

fn card(mib: u64) -> Card {
    Card { total_mib: mib, free_mib: Arc::new(AtomicU64::new(mib)) }
}

fn config(folder: &tempfile::TempDir, budgets: &[(&str, u64)]) -> SchedulerConfig {
    SchedulerConfig {
        budgets_mib: budgets.iter().map(|(name, mib)| ((*name).to_owned(), *mib)).collect(),
        margin_mib: 0,
        path: folder.path().to_owned(),
        ..SchedulerConfig::default()
    }
}

fn scheduler(config: &SchedulerConfig, mib: u64) -> Arc<Scheduler> {
    Scheduler::with_probe(config, Box::new(card(mib))).unwrap()
}

/// A model that notes how often it is asked, and how many calls were under way.
struct Counting {
    name: &'static str,
    calls: Arc<AtomicUsize>,
}

#[async_trait]
impl Llm for Counting {
    fn provider(&self) -> &'static str {
        "test"
    }

    fn model(&self) -> &str {
        self.name
    }

    fn is_down(&self) -> bool {
        self.name == "down"
    }

    async fn ping(&self) -> Result<()> {
        match self.name {
            "down" => Err(Error::internal("it does not answer")),
            _ => Ok(()),
        }
    }

    async fn complete(&self, _: &Prompt) -> Result<ModelReply> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let (model, usage, limits) =
            (self.name.to_owned(), ModelUsage::default(), RateLimitHeaders::default());
        Ok(ModelReply { text: String::new(), stop: FinishReason::Complete, usage, model, limits })
    }
}

fn prompt() -> Prompt {
    let (system, schema) = ("".into(), serde_json::json!({}).into());
    let [user, schema_name] = [(); 2].map(|()| String::new());
    Prompt {
        system,
        user,
        schema_name,
        schema,
        schema_in_text: false,
        thinking: PromptThinking::AsConfigured,
        max_output_tokens: 1,
        pictures: Vec::new(),
    }
}

#[tokio::test]
async fn a_local_model_waits_for_its_turn_and_any_other_model_passes_by() {
    let folder = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&config(&folder, &[("local", 5)]), 10);
    let calls = Arc::new(AtomicUsize::new(0));
    let model = |name| -> Arc<dyn Llm> { Arc::new(Counting { name, calls: Arc::clone(&calls) }) };
    let held = scheduler.acquire_turn("local").await.unwrap();
    let local = scheduler.wrap_model(model("local"));
    let prompt = prompt();
    let mut asked = local.complete(&prompt);
    assert!((&mut asked).now_or_never().is_none());
    let remote = model("remote");
    assert!(Arc::ptr_eq(&remote, &scheduler.wrap_model(Arc::clone(&remote))));
    scheduler.wrap_model(remote).complete(&prompt).await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1, "the local one waits");
    drop(held);
    asked.await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_scheduled_model_is_shown_with_its_name_and_state() {
    let folder = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&config(&folder, &[("local", 5), ("down", 5)]), 10);
    for (name, is_down) in [("local", false), ("down", true)] {
        let model = scheduler.wrap_model(Arc::new(Counting { name, calls: Arc::default() }));
        assert_eq!((model.provider(), model.model(), model.is_down()), ("test", name, is_down));
        assert_eq!(model.ping().await.is_err(), is_down);
    }
}

#[test]
fn all_processes_share_one_clock_whatever_the_time_of_day_and_operators_see_seconds() {
    let clock = SchedulerClock::start();
    // The machine's own, in seconds, as other processes read it.
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    if let Some(up_s) = uptime.split('.').next().and_then(|up| up.parse::<u64>().ok()) {
        let slept_s = docmill_core::suspension::suspended_time().as_secs();
        let now_s = clock.now_ms() / 1000;
        assert!(now_s.abs_diff(up_s - slept_s) < 60, "{now_s} s, up for {up_s} s");
    }
    let (counted_ms, read_ms) = (clock.now_ms(), machine_ms());
    assert!(read_ms.abs_diff(counted_ms) < 60_000, "{counted_ms} {read_ms}");
    for (since_ms, now_ms, expected) in [(1_000, 3_500, 2.5), (3_500, 1_000, 0.0)] {
        assert_eq!(seconds_between(since_ms, now_ms), expected);
    }
}

#[tokio::test]
async fn a_call_that_panics_gives_its_memory_back_and_the_next_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&config(&folder, &[("a", 5), ("b", 6)]), 10);
    let shared = Arc::clone(&scheduler);
    let died = tokio::spawn(async move {
        let _permit = shared.acquire_turn("a").await.unwrap();
        panic!("as a step might");
    });
    assert!(died.await.unwrap_err().is_panic());
    drop(scheduler.acquire_turn("b").await.unwrap());
    let posts = scheduler.lock_state().queues.model_demands();
    assert!(posts.iter().all(|post| post.running == 0), "{posts:?}");
}

#[tokio::test]
async fn the_report_lists_holders_waiters_and_the_memory_of_two_processes() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder, &[("a", 3), ("b", 6)]);
    let [ours, theirs] = [(); 2].map(|()| scheduler(&config, 8));
    let before = ours.report();
    assert_eq!(before.devices[0].held_mib, 0);
    assert!(before.models.iter().all(|model| model.state == LocalModelState::Absent), "{before:?}");

    let held = theirs.acquire_turn("b").await.unwrap();
    let mut refused = Box::pin(ours.acquire_turn("a"));
    assert!(refused.as_mut().now_or_never().is_none());
    let told = async {
        loop {
            let report = ours.report();
            if report.devices[0].held_mib == 6 {
                return report;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let report = tokio::time::timeout(Duration::from_secs(60), told).await.unwrap();
    let [a, b] = report.models.as_slice() else { panic!("{report:?}") };
    assert_eq!((a.model.as_str(), a.state, a.waiting), ("a", LocalModelState::Waiting, 1));
    assert_eq!((a.needs_mib, a.running, a.device.as_deref()), (Some(3), 0, None));
    assert!(a.oldest_s.is_some_and(|age| age < 60.0), "{a:?}");
    assert_eq!((b.state, b.running), (LocalModelState::Absent, 0), "the other process has it");
    let b = &theirs.report().models[1];
    assert_eq!(
        (b.state, b.device.as_deref(), b.running),
        (LocalModelState::Loading, Some("card"), 1)
    );
    assert_eq!(report.machine, theirs.report().machine);
    drop(held);
    drop(refused.await.unwrap());
}

#[tokio::test]
async fn a_full_line_defers_the_job_at_once_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let config = SchedulerConfig { max_queue_depth: 2, ..config(&folder, &[("a", 5)]) };
    let scheduler = scheduler(&config, 10);
    let held = scheduler.acquire_turn("a").await.unwrap();
    let mut waiting = [(); 2].map(|()| Box::pin(scheduler.acquire_turn("a")));
    for turn in &mut waiting {
        assert!(turn.as_mut().now_or_never().is_none());
    }
    let refused = scheduler.acquire_turn("a").await.err().unwrap();
    assert!(matches!(refused.fault, Fault::Throttled(None)), "{refused}");
    assert!(refused.to_string().contains("model a"), "{refused}");
    drop(held);
    for turn in waiting {
        turn.await.unwrap().note_end(true);
    }
    let _held = scheduler.acquire_turn("a").await.unwrap();
    let mut waiting = [(); 2].map(|()| Box::pin(scheduler.acquire_turn("a")));
    for turn in &mut waiting {
        assert!(turn.as_mut().now_or_never().is_none());
    }
    let in_line = scheduler.acquire_turn("a").await.err().unwrap();
    assert!(matches!(in_line.fault, Fault::InLine(_)), "it serves others: {in_line}");
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_model_gets_no_memory_for_long_is_put_off() {
    let folder = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&config(&folder, &[("a", 6), ("b", 6)]), 10);
    let held = scheduler.acquire_turn("a").await.unwrap();
    let since = Instant::now();
    let refused = scheduler.acquire_turn("b").await.err().unwrap();
    assert!(matches!(refused.fault, Fault::Throttled(None)), "{refused}");
    assert_eq!(since.elapsed().as_secs(), 300);
    let posts = scheduler.lock_state().queues.model_demands();
    assert!(posts.iter().all(|post| post.waiting == 0), "{posts:?}");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn devices_are_read_again_for_as_long_as_a_call_waits() {
    let folder = tempfile::tempdir().unwrap();
    let full = Card { total_mib: 10, free_mib: Arc::new(AtomicU64::new(2)) };
    let config = config(&folder, &[("a", 6), ("small", 2)]);
    let scheduler = Scheduler::with_probe(&config, Box::new(full.clone())).unwrap();
    // Beside a turn nothing is tried that does not fit.
    let held = scheduler.acquire_turn("small").await.unwrap();
    let freed = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        full.free_mib.store(10, Ordering::SeqCst);
    };
    let since = Instant::now();
    let let_in = async {
        drop(scheduler.acquire_turn("a").await.unwrap());
        since.elapsed().as_secs()
    };
    let (waited_s, ()) = tokio::join!(let_in, freed);
    assert!((30..40).contains(&waited_s), "{waited_s} s");
    drop(held);
}

/// Devices that stop answering after the start.
struct Hanging(Mutex<Option<std::sync::mpsc::Receiver<()>>>);

impl DeviceProbe for Hanging {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        let answers = self.0.lock().take();
        let _over = answers.map(|answers| answers.recv());
        card(10).read_devices()
    }
}

#[tokio::test]
async fn turns_that_end_while_the_devices_do_not_answer_are_free_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder, &[("a", 6), ("b", 6)]);
    let (hangs, answers) = std::sync::mpsc::channel();
    let hanging = Arc::new(Hanging(Mutex::new(None)));
    let ours = Scheduler::with_probe(&config, Box::new(Arc::clone(&hanging))).unwrap();
    *hanging.0.lock() = Some(answers);
    let held = ours.acquire_turn("a").await.unwrap();
    let has_begun = async || hanging.0.lock().is_none();
    wait_until(has_begun).await;
    drop(held);
    let theirs = scheduler(&config, 10);
    let let_in = tokio::time::timeout(Duration::from_secs(60), theirs.acquire_turn("b")).await;
    drop(let_in.unwrap().unwrap());
    drop(hangs);
}

#[tokio::test]
async fn an_idle_process_reports_its_model_gone_once_another_has_taken_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder, &[("a", 7), ("b", 6)]);
    let ours = scheduler(&config, 10);
    let model = Arc::new(Counting { name: "a", calls: Arc::default() });
    ours.wrap_model(model).complete(&prompt()).await.unwrap();
    let is_idle = async || {
        let posts = read_states(folder.path()).unwrap().into_iter().flat_map(|it| it.posts);
        posts.filter_map(|post| post.idle).count() == 1
    };
    wait_until(is_idle).await;
    // A reading that shows its memory as missing.
    let loaded_ms = ours.clock.now_ms();
    wait_until(async || ours.clock.now_ms() > loaded_ms).await;
    let full = Card { free_mib: Arc::new(AtomicU64::new(3)), ..card(10) };
    let theirs = Scheduler::with_probe(&config, Box::new(full)).unwrap();
    let held = theirs.acquire_turn("b").await.unwrap();
    let is_gone = async || !is_idle().await;
    wait_until(is_gone).await;
    drop(held);
}

async fn wait_until(is_so: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so().await {
        assert!(Instant::now() < deadline, "it did not happen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_model_over_every_device_is_refused_at_start_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let budgets = [("fits", 9_500), ("huge", 9_501)];
    let config = SchedulerConfig { margin_mib: 500, ..config(&folder, &budgets) };
    let error = Scheduler::with_probe(&config, Box::new(card(10_000))).err().unwrap().to_string();
    assert!(error.contains("huge (9501 MiB)") && error.contains("9500 MiB"), "{error}");
    assert!(!error.contains("fits (") && error.contains("budgets_mib"), "{error}");
}

#[tokio::test]
async fn without_local_models_there_is_no_scheduler() {
    assert!(Scheduler::start(&SchedulerConfig::default()).unwrap().is_none());
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn with_a_local_model_there_is_one_over_the_devices_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let devices = docmill_core::config::DeviceSource::Memory;
    let config = SchedulerConfig { devices, ..config(&folder, &[("local", 1)]) };
    let report = Scheduler::start(&config).unwrap().unwrap().report();
    assert_eq!(report.devices.len(), 1);
    assert!(report.devices[0].total_mib >= report.devices[0].free_mib, "{report:?}");
}

#[tokio::test]
async fn a_cancelled_job_leaves_the_queue_and_gives_back_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&config(&folder, &[("a", 5)]), 10);
    let held = scheduler.acquire_turn("a").await.unwrap();
    let mut gone = Box::pin(scheduler.acquire_turn("a"));
    assert!(gone.as_mut().now_or_never().is_none());
    drop(gone);
    drop(held);
    drop(scheduler.acquire_turn("a").await.unwrap());
    assert!(scheduler.lock_state().waiting.is_empty());
}

#[tokio::test]
async fn an_unused_scheduler_leaves_no_task_and_no_state_file() {
    let folder = tempfile::tempdir().unwrap();
    let scheduler = scheduler(&config(&folder, &[("a", 5)]), 10);
    drop(scheduler.acquire_turn("a").await.unwrap());
    assert_eq!(read_states(folder.path()).unwrap().len(), 1);
    let gone = Arc::downgrade(&scheduler);
    drop(scheduler);
    let deadline = Instant::now() + Duration::from_secs(60);
    while gone.strong_count() > 0 || !read_states(folder.path()).unwrap().is_empty() {
        assert!(Instant::now() < deadline, "it still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_schedulers_over_one_device_are_never_over_it_and_both_get_on() {
    let folder = tempfile::tempdir().unwrap();
    let quick = SchedulerConfig {
        quantum: Duration::from_millis(50),
        overdue_after: Duration::from_millis(200),
        ..config(&folder, &[("a", 6), ("b", 6)])
    };
    let under_way: Arc<[AtomicUsize; 2]> = Arc::default();
    let mut tasks = Vec::new();
    for (at, model) in [(0, "a"), (1, "b")] {
        let scheduler = scheduler(&quick, 10);
        for _ in 0..10 {
            let (scheduler, under_way) = (Arc::clone(&scheduler), Arc::clone(&under_way));
            tasks.push(tokio::spawn(async move {
                let permit = scheduler.acquire_turn(model).await.unwrap();
                under_way[at].fetch_add(1, Ordering::SeqCst);
                assert_eq!(under_way[1 - at].load(Ordering::SeqCst), 0, "both at once");
                tokio::time::sleep(Duration::from_millis(20)).await;
                under_way[at].fetch_sub(1, Ordering::SeqCst);
                drop(permit);
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
}
