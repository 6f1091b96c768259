//! Redis together with the Rust client of redis-work-queue 0.3.0, and the races that its format has
//! when its transitions take several steps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use docmill_core::config::QueueConfig;
use docmill_core::fault::Fault;
use docmill_queue::redis::{Cleaning, RedisQueue};
use docmill_queue::{Delivery, MessageQueue as _, OutgoingMessage};
use redis::AsyncCommands as _;
use redis_work_queue::{Item, KeyPrefix, WorkQueue};

use super::{acknowledge, all_done, faults, look, take};
use crate::support::redis::Redis;

/// The queue of both, and a connection of the other client's kind.
struct Both {
    server: Redis,
    ours: Arc<RedisQueue>,
    theirs: WorkQueue,
}

type TheirConnection = redis_of_peer::aio::MultiplexedConnection;

impl Both {
    async fn start() -> Self {
        let server = Redis::start().await;
        let config = QueueConfig {
            visibility: Duration::from_secs(2),
            max_receives: 0,
            ..server.config("shared")
        };
        let ours = Arc::new(RedisQueue::connect(&config).await.unwrap());
        Self { server, ours, theirs: WorkQueue::new(KeyPrefix::from("shared")) }
    }

    async fn connection(&self) -> TheirConnection {
        let client = redis_of_peer::Client::open(self.server.url()).unwrap();
        client.get_multiplexed_async_std_connection().await.unwrap()
    }

    async fn lease(&self, db: &mut TheirConnection) -> Option<Item> {
        self.theirs.lease(db, Some(Duration::ZERO), Duration::from_secs(30)).await.unwrap()
    }

    /// How many items are left anywhere, and entries of lists.
    async fn left(&self) -> (usize, usize) {
        let mut db = self.server.look().await;
        let items: Vec<String> = db.keys("shared:item:*").await.unwrap();
        let queued: usize = db.llen("shared:queue").await.unwrap();
        let processing: usize = db.llen("shared:processing").await.unwrap();
        (items.len(), queued + processing)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn items_added_by_one_client_are_leased_and_completed_by_the_other() {
    let both = Both::start().await;
    let db = &mut both.connection().await;
    let item = Item::from_string_data("from them".to_owned());
    assert!(both.theirs.add_item(db, &item).await.unwrap());
    let delivery = take(&*both.ours).await;
    assert_eq!((delivery.body.as_str(), &delivery.message_id), ("from them", &item.id));
    assert!(both.lease(db).await.is_none(), "hidden from them");
    acknowledge(&*both.ours, &delivery.receipt).await;
    assert!(!both.theirs.complete(db, &item).await.unwrap(), "completed exactly once");

    all_done(both.ours.send(&[OutgoingMessage::from_body("from us")]).await);
    let leased = both.lease(db).await.unwrap();
    assert_eq!(&*leased.data, b"from us");
    assert!(look(&*both.ours).await.is_none(), "hidden from us");
    assert!(both.theirs.complete(db, &leased).await.unwrap());
    assert_eq!(both.left().await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_there_is_not_added_again_by_either() {
    let both = Both::start().await;
    let db = &mut both.connection().await;
    assert!(both.ours.add_item("7", "first").await.unwrap());
    assert!(!both.ours.add_item("7", "second").await.unwrap());
    let theirs = Item { id: "7".to_owned(), data: b"third".to_vec().into() };
    assert!(!both.theirs.add_item(db, &theirs).await.unwrap());
    let delivery = take(&*both.ours).await;
    assert_eq!((delivery.body.as_str(), delivery.message_id.as_str()), ("first", "7"));
    acknowledge(&*both.ours, &delivery.receipt).await;
    assert!(both.ours.add_item("7", "again").await.unwrap(), "free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_and_a_delayed_message_look_leased_to_the_other_client() {
    let both = Both::start().await;
    let db = &mut both.connection().await;
    let late =
        OutgoingMessage { delay: Duration::from_secs(60), ..OutgoingMessage::from_body("late") };
    all_done(both.ours.send(&[late, OutgoingMessage::from_body("hidden")]).await);
    let delivery = take(&*both.ours).await;
    all_done(both.ours.hide(&[(delivery.receipt, Duration::from_secs(60))]).await);
    assert_eq!(both.theirs.processing(db).await.unwrap(), 2);
    assert_eq!(both.ours.clean(Cleaning::Deep).await.unwrap(), 0, "nothing to put back");
    assert!(both.lease(db).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_re_queued_item_goes_to_the_end_of_the_line() {
    let both = Both::start().await;
    let bodies = ["a", "b", "c"].map(OutgoingMessage::from_body);
    for body in bodies {
        all_done(both.ours.send(&[body]).await);
    }
    let first = take(&*both.ours).await;
    all_done(both.ours.hide(&[(first.receipt, Duration::ZERO)]).await);
    for expected in ["b", "c", "a"] {
        assert_eq!(take(&*both.ours).await.body, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_complete_one_item_exactly_one_has_done_it() {
    let both = Both::start().await;
    for round in 0..20 {
        all_done(both.ours.send(&[OutgoingMessage::from_body(format!("round {round}"))]).await);
        let receipt = take(&*both.ours).await.receipt;
        let tries = (0..8).map(|_| both.ours.try_acknowledge(std::slice::from_ref(&receipt)));
        let answers = futures::future::join_all(tries).await;
        let won = answers.iter().flatten().filter(|answer| matches!(answer, Ok(true))).count();
        assert_eq!(won, 1, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zombie_neither_completes_nor_renews_nor_releases_anothers_claim() {
    let both = Both::start().await;
    all_done(both.ours.send(&[OutgoingMessage::from_body("taken over")]).await);
    let zombie = take(&*both.ours).await.receipt;
    // Waits for the lease to run out.
    let live = take(&*both.ours).await.receipt;
    let one = std::slice::from_ref(&zombie);
    assert_eq!(faults(&both.ours.acknowledge(one).await), [Some(Fault::Missing)]);
    assert_eq!(
        faults(&both.ours.extend_visibility(one, Duration::from_secs(9)).await),
        [Some(Fault::Missing)]
    );
    all_done(both.ours.hide(&[(zombie, Duration::ZERO)]).await);
    assert!(look(&*both.ours).await.is_none(), "still the other's");
    acknowledge(&*both.ours, &live).await;
    assert_eq!(both.left().await, (0, 0), "no ghost is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn completing_a_requeued_item_leaves_no_ghost() {
    let both = Both::start().await;
    all_done(both.ours.send(&["late", "next"].map(OutgoingMessage::from_body)).await);
    let late = take(&*both.ours).await;
    let next = take(&*both.ours).await;
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(both.ours.clean(Cleaning::Light).await.unwrap(), 2);
    acknowledge(&*both.ours, &late.receipt).await;
    assert_eq!(both.left().await, (1, 1), "no entry of what is done");
    let db = &mut both.connection().await;
    let found = both.lease(db).await.expect("the ghost of the other is not in front of it");
    assert_eq!(found.id, next.message_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_taken_over_by_another_client_is_neither_duplicated_nor_taken_back() {
    let both = Both::start().await;
    all_done(both.ours.send(&[OutgoingMessage::from_body("taken over")]).await);
    let id = take(&*both.ours).await.message_id;
    tokio::time::sleep(Duration::from_millis(2100)).await;
    // Their cleaner, faster than ours.
    let look_db = &mut both.server.look().await;
    let _: u32 = look_db.lrem("shared:processing", 0, &id).await.unwrap();
    let _: u32 = look_db.lpush("shared:queue", &id).await.unwrap();
    let db = &mut both.connection().await;
    let theirs = both.lease(db).await.unwrap();
    assert!(look(&*both.ours).await.is_none(), "ours is over, theirs is not");
    assert_eq!(both.left().await, (1, 1));
    assert!(both.theirs.complete(db, &theirs).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_listed_twice_is_handed_out_once() {
    let both = Both::start().await;
    all_done(both.ours.send(&[OutgoingMessage::from_body("twice")]).await);
    let id = take(&*both.ours).await.message_id;
    tokio::time::sleep(Duration::from_millis(2100)).await;
    // Put back by their cleaner, which died before it removed the other entry.
    let look_db = &mut both.server.look().await;
    for _ in 0..2 {
        let _: u32 = look_db.lpush("shared:queue", &id).await.unwrap();
    }
    let delivery = take(&*both.ours).await;
    assert_eq!(delivery.receive_count, 2);
    assert!(look(&*both.ours).await.is_none(), "it is leased, however often it is listed");
    assert_eq!(both.left().await, (1, 1), "and listed once now");
    acknowledge(&*both.ours, &delivery.receipt).await;
    assert_eq!(both.left().await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_completed_by_another_client_leaves_nothing_behind() {
    let both = Both::start().await;
    all_done(both.ours.send(&[OutgoingMessage::from_body("theirs to end")]).await);
    let delivery = take(&*both.ours).await;
    let item = Item { id: delivery.message_id, data: Vec::new().into() };
    assert!(both.theirs.complete(&mut both.connection().await, &item).await.unwrap());
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert!(look(&*both.ours).await.is_none());
    let left: Vec<String> = both.server.look().await.keys("shared:*").await.unwrap();
    assert_eq!(left, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_of_a_released_message_is_invalid() {
    let both = Both::start().await;
    all_done(both.ours.send(&[OutgoingMessage::from_body("given back")]).await);
    let receipt = take(&*both.ours).await.receipt;
    all_done(both.ours.hide(&[(receipt.clone(), Duration::from_secs(60))]).await);
    let extended = both.ours.extend_visibility(&[receipt], Duration::from_secs(1)).await;
    assert_eq!(faults(&extended), [Some(Fault::Missing)], "it would come back too early");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_costs_no_transition() {
    let both = Both::start().await;
    all_done(both.ours.send(&[OutgoingMessage::from_body("once")]).await);
    let receipt = take(&*both.ours).await.receipt;
    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes");
    let look_db = &mut both.server.look().await;
    for step in ["renewed", "completed", "sent"] {
        let killed: u32 = kill.query_async(look_db).await.unwrap();
        assert!(killed > 0, "{step}");
        match step {
            "renewed" => {
                let one = std::slice::from_ref(&receipt);
                all_done(both.ours.extend_visibility(one, Duration::from_secs(60)).await);
            }
            "completed" => acknowledge(&*both.ours, &receipt).await,
            _ => all_done(both.ours.send(&[OutgoingMessage::from_body("again")]).await),
        }
    }
    assert_eq!(both.left().await, (1, 1), "sent once, however often it was tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn cleaners_repair_crashes_between_two_steps_without_duplicates() {
    let both = Both::start().await;
    let db = &mut both.server.look().await;
    // Added and in no list: a crash between SETNX and LPUSH.
    let _: () = db.set("shared:item:unlisted", "unlisted").await.unwrap();
    // Moved and not leased: a crash between RPOPLPUSH and SETEX.
    let _: () = db.set("shared:item:unleased", "unleased").await.unwrap();
    let _: () = db.lpush("shared:processing", "unleased").await.unwrap();
    // An entry without an item.
    let _: () = db.lpush("shared:processing", "ghost").await.unwrap();
    let clean = || async {
        let two = [both.ours.clean(Cleaning::Deep), both.ours.clean(Cleaning::Deep)];
        futures::future::join_all(two).await.into_iter().map(Result::unwrap).sum::<u64>()
    };
    assert_eq!(clean().await, 0, "another client may be between its two steps");
    tokio::time::sleep(Duration::from_millis(2200)).await;
    assert_eq!(clean().await, 2, "two cleaners at once put each back once");
    let queued: Vec<String> = db.lrange("shared:queue", 0, -1).await.unwrap();
    assert_eq!(queued.len(), 2, "{queued:?}");
    let processing: Vec<String> = db.lrange("shared:processing", 0, -1).await.unwrap();
    assert_eq!(processing, [""; 0]);
}

/// Leases short enough to run out, workers of both makes that die, cleaners all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_thousand_transitions_with_cleaners_lose_nothing_double_nothing_and_leave_no_ghost() {
    const ITEMS: usize = 3400;
    let both = Arc::new(Both::start().await);
    let done: Arc<Mutex<BTreeMap<String, u32>>> = Arc::default();
    let transitions = Arc::new(AtomicUsize::new(0));
    let messages: Vec<OutgoingMessage> =
        (0..ITEMS / 2).map(|n| OutgoingMessage::from_body(format!("ours {n}"))).collect();
    all_done(both.ours.send(&messages).await);
    let db = &mut both.connection().await;
    for n in 0..ITEMS / 2 {
        let item = Item::from_string_data(format!("theirs {n}"));
        both.theirs.add_unique_item(db, &item).await.unwrap();
    }
    let cleaning = {
        let both = Arc::clone(&both);
        tokio::spawn(async move {
            loop {
                both.ours.clean(Cleaning::Light).await.unwrap();
                both.ours.clean(Cleaning::Deep).await.unwrap();
            }
        })
    };
    let mut workers = Vec::new();
    for worker in 0..4_u32 {
        let (both, done) = (Arc::clone(&both), Arc::clone(&done));
        let transitions = Arc::clone(&transitions);
        workers.push(tokio::spawn(async move {
            let mut db = both.connection().await;
            let count = |body: String| *done.lock().unwrap().entry(body).or_default() += 1;
            let deadline = Instant::now() + Duration::from_secs(90);
            while done.lock().unwrap().len() < ITEMS {
                assert!(Instant::now() < deadline, "some are missing");
                if worker % 2 == 0 {
                    for delivery in both.ours.receive(5, Duration::ZERO).await.unwrap() {
                        transitions.fetch_add(2, Ordering::Relaxed);
                        ours(&both, delivery, count).await;
                    }
                } else if let Some(item) = both.lease(&mut db).await {
                    transitions.fetch_add(2, Ordering::Relaxed);
                    if both.theirs.complete(&mut db, &item).await.unwrap() {
                        count(String::from_utf8(item.data.to_vec()).unwrap());
                    }
                }
            }
        }));
    }
    for worker in workers {
        worker.await.unwrap();
    }
    cleaning.abort();
    assert_eq!(both.left().await, (0, 0), "no ghost");
    let done = done.lock().unwrap();
    assert_eq!(done.len(), ITEMS, "none lost");
    assert!(done.values().all(|count| *count == 1), "none completed twice");
    let transitions = transitions.load(Ordering::Relaxed) + ITEMS;
    assert!(transitions >= 10_000, "{transitions}");
}

/// One in twelve dies, one in six gives back, the others complete.
async fn ours(both: &Both, delivery: Delivery, count: impl Fn(String)) {
    match fastrand::u8(..12) {
        0 => {}
        1 | 2 => all_done(both.ours.hide(&[(delivery.receipt, Duration::ZERO)]).await),
        _ => {
            let won = both.ours.try_acknowledge(std::slice::from_ref(&delivery.receipt)).await;
            if matches!(won.as_slice(), [Ok(true)]) {
                count(delivery.body);
            }
        }
    }
}

/// How a worker of redis-work-queue 0.1 takes an item: two steps, and its own key of a lease.
async fn lease_as_0_1(db: &mut redis::aio::MultiplexedConnection, seconds: u64) -> Option<String> {
    let id: Option<String> = db.rpoplpush("shared:queue", "shared:processing").await.unwrap();
    let key = format!("shared:leased_by_session:{}", id.as_ref()?);
    let _: () = db.set_ex(key, "their session", seconds).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_of_a_0_1_client_is_heeded_and_ours_is_one_to_it() {
    let both = Both::start().await;
    let db = &mut both.server.look().await;
    let _: () = db.set("shared:item:a", "theirs").await.unwrap();
    let _: () = db.lpush("shared:queue", "a").await.unwrap();
    assert_eq!(lease_as_0_1(db, 30).await.as_deref(), Some("a"));
    for depth in [Cleaning::Light, Cleaning::Deep] {
        assert_eq!(both.ours.clean(depth).await.unwrap(), 0, "{depth:?}");
    }
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(both.ours.clean(Cleaning::Deep).await.unwrap(), 0, "longer than the grace");
    assert!(look(&*both.ours).await.is_none());
    let _: () = db.del(&["shared:item:a", "shared:leased_by_session:a"]).await.unwrap();
    let _: () = db.del("shared:processing").await.unwrap();

    all_done(both.ours.send(&[OutgoingMessage::from_body("ours")]).await);
    let delivery = take(&*both.ours).await;
    let theirs = format!("shared:leased_by_session:{}", delivery.message_id);
    let held: bool = db.exists(&theirs).await.unwrap();
    assert!(held, "its cleaner would put the item back");
    // We were too late, and it has the item now: what it holds is not ours to end.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let _: () = db.lrem("shared:processing", 0, &delivery.message_id).await.unwrap();
    let _: () = db.lpush("shared:queue", &delivery.message_id).await.unwrap();
    assert_eq!(lease_as_0_1(db, 30).await.as_ref(), Some(&delivery.message_id));
    let ended = both.ours.try_acknowledge(std::slice::from_ref(&delivery.receipt)).await;
    assert!(matches!(ended[..], [Ok(false)]), "{ended:?}");
    assert_eq!(both.left().await, (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_or_completed_item_leaves_no_lease_of_either_version() {
    let both = Both::start().await;
    all_done(both.ours.send(&[OutgoingMessage::from_body("twice")]).await);
    let delivery = take(&*both.ours).await;
    all_done(both.ours.hide(&[(delivery.receipt, Duration::ZERO)]).await);
    let db = &mut both.server.look().await;
    let leases: Vec<String> = db.keys("shared:lease*").await.unwrap();
    assert_eq!(leases, [""; 0]);
    let again = take(&*both.ours).await;
    acknowledge(&*both.ours, &again.receipt).await;
    let left: Vec<String> = db.keys("shared:*").await.unwrap();
    assert_eq!(left, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_items_stay_at_the_front_and_own_ones_are_taken_past_them() {
    let both = Both::start().await;
    let db = &mut both.server.look().await;
    let _: () = db.set("shared:item:resize", b"\xff\x00 picture").await.unwrap();
    let _: () = db.lpush("shared:queue", "resize").await.unwrap();
    let foreign = take(&*both.ours).await;
    all_done(both.ours.leave_to_others(&[foreign.receipt]).await);
    all_done(both.ours.send(&[OutgoingMessage::from_body("ours")]).await);
    let queued: Vec<String> = db.lrange("shared:queue", 0, -1).await.unwrap();
    assert_eq!(queued.last().map(String::as_str), Some("resize"), "next for the others");
    assert_eq!(both.ours.depth().await.unwrap().ready, 1, "it is not waiting for us");
    let ours = take(&*both.ours).await;
    assert_eq!(ours.body, "ours");
    acknowledge(&*both.ours, &ours.receipt).await;
    // None are for this consumer, and polling does not busy-loop.
    let calls = || async {
        let info: String = redis::cmd("INFO")
            .arg("commandstats")
            .query_async(&mut both.server.look().await)
            .await
            .unwrap();
        info.lines()
            .filter(|line| line.starts_with("cmdstat_evalsha:calls="))
            .map(str::to_owned)
            .collect::<String>()
            .split(['=', ','])
            .nth(1)
            .unwrap_or("0")
            .parse::<u32>()
            .unwrap()
    };
    let before = calls().await;
    assert!(both.ours.receive(1, Duration::from_secs(1)).await.unwrap().is_empty());
    assert!(calls().await - before < 12, "it asks again and again");
    // Theirs finds it, whole.
    let theirs = both.lease(&mut both.connection().await).await.unwrap();
    assert_eq!((theirs.id.as_str(), &*theirs.data), ("resize", &b"\xff\x00 picture"[..]));
    assert!(both.theirs.complete(&mut both.connection().await, &theirs).await.unwrap());
    // The same id for something else is looked at again.
    assert!(both.ours.add_item("resize", "ours now").await.unwrap());
    assert_eq!(take(&*both.ours).await.body, "ours now");
}

#[tokio::test(flavor = "multi_thread")]
async fn own_items_behind_thousands_of_foreign_ones_are_taken_within_seconds() {
    const FOREIGN: usize = 3_500;
    let both = Both::start().await;
    let db = &mut both.server.look().await;
    let mut theirs = redis::pipe();
    for n in 0..FOREIGN {
        theirs.set(format!("shared:item:{n}"), b"\xff picture").ignore();
        theirs.lpush("shared:queue", n).ignore();
    }
    let _: () = theirs.query_async(db).await.unwrap();
    let foreign = both.ours.receive(FOREIGN, Duration::from_secs(5)).await.unwrap();
    assert_eq!(foreign.len(), FOREIGN);
    let receipts: Vec<_> = foreign.into_iter().map(|delivery| delivery.receipt).collect();
    all_done(both.ours.leave_to_others(&receipts).await);
    let names = ["first", "second", "third"];
    all_done(both.ours.send(&names.map(OutgoingMessage::from_body)).await);
    let mut bodies = Vec::new();
    while bodies.len() < names.len() {
        let taken = both.ours.receive(1, Duration::from_secs(10)).await.unwrap();
        assert!(!taken.is_empty(), "{bodies:?} of {names:?}");
        bodies.extend(taken.into_iter().map(|delivery| delivery.body));
    }
    assert_eq!(bodies, names);
    let queued: usize = db.llen("shared:queue").await.unwrap();
    assert_eq!(queued, FOREIGN, "all of theirs are still there");
}
