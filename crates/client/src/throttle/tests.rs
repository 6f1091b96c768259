//! The waiting around the state, in paused time.

use futures::FutureExt;

use super::*;

const OK: CallOutcome = CallOutcome::Answered {
    limits: RateLimitHeaders { requests: None, tokens: None, exhausted_for: None },
    tokens: None,
};

fn key() -> LimiterKey {
    LimiterKey { provider: "p".into(), account: "a".into(), model: "m".into() }
}

fn governor(concurrency: u32) -> Governor {
    Governor::new(ThrottleConfig { concurrency, ..ThrottleConfig::default() })
}

fn settle(permit: LimiterPermit, outcome: &CallOutcome) {
    let _down: bool = permit.report_outcome(outcome);
}

#[tokio::test(start_paused = true)]
async fn a_short_pause_is_shared_by_every_call_of_the_key_and_waited_here() {
    let governor = governor(10);
    let began = Instant::now();
    let told = Duration::from_secs(20);
    settle(
        governor.admit(&key(), TokenEstimate::default()).await.unwrap(),
        &CallOutcome::Throttled(Some(told)),
    );
    let other = LimiterKey { model: "another".into(), ..key() };
    drop(governor.admit(&other, TokenEstimate::default()).await.unwrap());
    assert_eq!(began.elapsed(), Duration::ZERO, "another key is not held");
    drop(governor.admit(&key(), TokenEstimate::default()).await.unwrap());
    assert!(began.elapsed() >= told, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_long_pause_comes_back_at_once_with_its_length() {
    let governor = governor(10);
    let told = Duration::from_secs(300);
    settle(
        governor.admit(&key(), TokenEstimate::default()).await.unwrap(),
        &CallOutcome::Throttled(Some(told)),
    );
    let began = Instant::now();
    let error = governor.admit(&key(), TokenEstimate::default()).await.err().unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    let Fault::Throttled(Some(wait)) = error.fault else { panic!("{error:?}") };
    assert!(wait >= told && wait < told * 2, "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_ends_when_the_time_to_wait_is_over_is_not_waited_for_in_vain() {
    let governor = governor(10);
    let told = ThrottleConfig::default().longest_wait;
    settle(
        governor.admit(&key(), TokenEstimate::default()).await.unwrap(),
        &CallOutcome::Throttled(Some(told)),
    );
    let began = Instant::now();
    let error = governor.admit(&key(), TokenEstimate::default()).await.err().unwrap();
    assert!(matches!(error.fault, Fault::Throttled(Some(wait)) if wait >= told), "{error:?}");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_pause_without_end_is_one_of_a_day() {
    let governor = governor(10);
    let (day, told) = (Duration::from_secs(86_400), Duration::MAX);
    settle(
        governor.admit(&key(), TokenEstimate::default()).await.unwrap(),
        &CallOutcome::Throttled(Some(told)),
    );
    let error = governor.admit(&key(), TokenEstimate::default()).await.err().unwrap();
    let Fault::Throttled(Some(wait)) = error.fault else { panic!("{error:?}") };
    assert!(wait >= day && wait <= (day + Duration::from_secs(10)).mul_f64(1.25), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_young_job_that_waits_for_a_guessed_pace_is_put_off_for_seconds_however_long_the_line() {
    let governor = governor(10);
    let wait = |error: Error| {
        let Fault::Throttled(Some(wait)) = error.fault else { panic!("{error:?}") };
        wait
    };
    let refuse = |told| {
        let limiter = governor.limiter(&key());
        let admit = limiter.state().admit(Instant::now(), TokenEstimate::default());
        let Admission::Go(sent) = admit else { panic!("{admit:?}") };
        limiter.state().record_outcome(Instant::now(), sent, &CallOutcome::Throttled(told));
    };
    refuse(None);
    let mut calls = [(); 200].map(|()| governor.enqueue_call(&key(), TokenEstimate::default()));
    let (last, line) = calls.split_last_mut().unwrap();
    let mut line: Vec<_> = line.iter_mut().map(|call| Box::pin(call.admit())).collect();
    for turn in &mut line {
        // Those at the back are put off at once, those in front wait.
        let _put_off = turn.as_mut().now_or_never();
    }
    let forecast = governor.limiter(&key()).state().forecast_wait(Instant::now(), 199).paced;
    let short = Duration::from_secs(10);
    assert!(forecast > short * 3, "{forecast:?}");
    let began = Instant::now();
    let guessed = wait(last.admit().await.err().unwrap());
    assert_eq!(began.elapsed(), Duration::ZERO, "nobody waits for a turn that is too far off");
    let again = (0..30).map(|_| wait(last.deferral_error("why")));
    for guessed in again.chain([guessed]) {
        assert!(guessed >= short && guessed <= short.mul_f64(1.25), "{guessed:?}");
    }
    drop(line);
    tokio::time::advance(Duration::from_secs(10)).await;
    let told = Duration::from_secs(300);
    refuse(Some(told));
    assert!(wait(last.deferral_error("why")) >= told, "what a server asks for is kept to");
}

#[tokio::test(start_paused = true)]
async fn a_job_stands_in_line_only_while_the_provider_has_served_anybody_lately() {
    let governor = governor(10);
    let put_off = |governor: &Governor| {
        let call = governor.enqueue_call(&key(), TokenEstimate::default());
        call.deferral_error("why").fault
    };
    assert!(matches!(put_off(&governor), Fault::Throttled(Some(_))), "it has served nobody");
    settle(governor.admit(&key(), TokenEstimate::default()).await.unwrap(), &OK);
    let minute = Duration::from_secs(60);
    for (minutes, in_line) in [(0, true), (14, true), (2, false)] {
        tokio::time::advance(minute * minutes).await;
        assert_eq!(matches!(put_off(&governor), Fault::InLine(_)), in_line, "{minutes} min later");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_go_in_the_order_they_came_and_a_refused_one_keeps_its_place() {
    let governor = governor(1);
    let mut first = governor.enqueue_call(&key(), TokenEstimate::default());
    let permit = first.admit().await.unwrap();
    let mut second = governor.enqueue_call(&key(), TokenEstimate::default());
    let mut third = governor.enqueue_call(&key(), TokenEstimate::default());
    let mut waits_third = Box::pin(third.admit());
    assert!(waits_third.as_mut().now_or_never().is_none());
    let mut waits_second = Box::pin(second.admit());
    assert!(waits_second.as_mut().now_or_never().is_none());
    settle(permit, &CallOutcome::Throttled(None));
    let mut again = Box::pin(first.admit());
    let permit = tokio::select! {
        biased;
        _ = &mut waits_third => panic!("the third overtook"),
        _ = &mut waits_second => panic!("the second overtook the refused first"),
        permit = &mut again => permit.unwrap(),
    };
    drop(again);
    settle(permit, &OK);
    let permit = tokio::select! {
        biased;
        _ = &mut waits_third => panic!("the third overtook"),
        permit = &mut waits_second => permit.unwrap(),
    };
    settle(permit, &OK);
    drop(waits_third.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_or_permit_that_is_dropped_leaves_its_place_to_the_next() {
    let governor = governor(1);
    let permit = governor.admit(&key(), TokenEstimate::default()).await.unwrap();
    let limiter = governor.limiter(&key());
    let mut gone = governor.enqueue_call(&key(), TokenEstimate::default());
    let mut waits = governor.enqueue_call(&key(), TokenEstimate::default());
    {
        let mut abandoned = Box::pin(gone.admit());
        assert!(abandoned.as_mut().now_or_never().is_none());
        let mut next = Box::pin(waits.admit());
        assert!(next.as_mut().now_or_never().is_none());
        drop(abandoned);
        drop(permit);
        drop(next.await.unwrap());
    }
    assert_eq!(limiter.lines().count_waiting(), 0);
    assert_eq!(limiter.state().snapshot(Instant::now()).in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn two_denied_calls_in_a_row_stop_all_until_a_trial_succeeds() {
    let governor = governor(10);
    let lone = governor.admit(&key(), TokenEstimate::default()).await.unwrap();
    assert!(lone.report_outcome(&CallOutcome::Denied));
    assert!(
        !governor.limiter(&key()).state().snapshot(Instant::now()).denied,
        "one may be about its document"
    );
    let permit = governor.admit(&key(), TokenEstimate::default()).await.unwrap();
    assert!(permit.report_outcome(&CallOutcome::Denied));
    let refused = governor.admit(&key(), TokenEstimate::default()).await.err().unwrap();
    assert_eq!(refused.fault, Fault::Denied);
    assert!(refused.to_string().contains("check credentials"), "{refused}");
    assert!(governor.limiter(&key()).state().snapshot(Instant::now()).denied);
    assert!(governor.is_down(&key()), "known without a call");
    tokio::time::advance(Duration::from_secs(13)).await;
    let trial = governor.admit(&key(), TokenEstimate::default()).await.unwrap();
    let beside = governor.admit(&key(), TokenEstimate::default()).await.err().unwrap();
    assert_eq!(beside.fault, Fault::Denied, "one trial at a time");
    assert_eq!(governor.list_lanes().first().map(|lane| lane.breaker), Some(LaneBreaker::HalfOpen));
    drop(trial);
    let trial = governor.admit(&key(), TokenEstimate::default()).await.unwrap();
    settle(trial, &OK);
    drop(governor.admit(&key(), TokenEstimate::default()).await.unwrap());
    assert!(!governor.limiter(&key()).state().snapshot(Instant::now()).denied);
    assert!(!governor.is_down(&key()));
}

#[tokio::test(start_paused = true)]
async fn limits_from_headers_are_kept_before_anything_was_refused() {
    let governor = governor(100);
    let told = |limit, remaining, reset| LimitWindow {
        limit,
        remaining,
        reset: Duration::from_secs(reset),
    };
    // 2 requests and 100 tokens a second; no request and 500 tokens are left.
    let limits = RateLimitHeaders {
        requests: Some(told(120.0, 0.0, 60)),
        tokens: Some(told(6_500.0, 500.0, 60)),
        exhausted_for: None,
    };
    let permit = governor.admit(&key(), TokenEstimate::default()).await.unwrap();
    settle(permit, &CallOutcome::Answered { limits, tokens: None });
    let began = Instant::now();
    drop(governor.admit(&key(), TokenEstimate { input: 500, output: 0 }).await.unwrap());
    let half = Duration::from_millis(500);
    assert!(began.elapsed() >= half && began.elapsed() < half * 2, "{:?}", began.elapsed());
    let began = Instant::now();
    drop(governor.admit(&key(), TokenEstimate { input: 900, output: 100 }).await.unwrap());
    assert!(began.elapsed() >= Duration::from_secs(9), "tokens: {:?}", began.elapsed());
}

#[test]
fn a_failed_call_counts_for_or_against_its_provider() {
    let (some, answered) = (Some(Duration::from_secs(7)), || OK);
    #[rustfmt::skip]
    let table = [
        (Fault::Throttled(some),                     CallOutcome::Throttled(some)),
        (Fault::Throttled(None),                     CallOutcome::Throttled(None)),
        (Fault::Transient,                           CallOutcome::Failed),
        (Fault::Unavailable,                         CallOutcome::Failed),
        (Fault::Denied,                              CallOutcome::Denied),
        (Fault::Misconfigured,                       CallOutcome::Denied),
        // Our own doing.
        (Fault::Interrupted,                         CallOutcome::Abandoned),
        (Fault::ClaimLost,                           CallOutcome::Abandoned),
        (Fault::OverBudget(Duration::from_secs(1)),  CallOutcome::DaySpent(Duration::from_secs(1))),
        (Fault::Batched(Duration::from_secs(1)),     CallOutcome::Abandoned),
        (Fault::InLine(Duration::from_secs(1)),      CallOutcome::Abandoned),
        (Fault::Paused,                              CallOutcome::Abandoned),
        // It answered, be it with a refusal.
        (Fault::Missing,                             answered()),
        (Fault::Rejected,                            CallOutcome::Declined(None)),
        (Fault::Internal,                            CallOutcome::Declined(None)),
    ];
    for (fault, expected) in table {
        assert_eq!(CallOutcome::from_fault(fault), expected, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_not_used_any_more_are_forgotten() {
    let governor = governor(1);
    let named = |number: usize| LimiterKey { model: number.to_string(), ..key() };
    let kept = governor.admit(&named(0), TokenEstimate::default()).await.unwrap();
    for number in 1..MAX_KEYS * 3 {
        drop(governor.admit(&named(number), TokenEstimate::default()).await.unwrap());
    }
    let limiters = governor.limiters.lock();
    assert!(limiters.len() <= MAX_KEYS && limiters.contains_key(&named(0)), "{}", limiters.len());
    drop(kept);
}

#[tokio::test(start_paused = true)]
async fn a_lane_reports_its_last_answer_and_since_when_calls_fail() {
    let governor = governor(8);
    for (takes, waits, outcome, expected) in [
        (250, 4, OK, (Some(4.0), Some(250), None)),
        (0, 3, CallOutcome::Failed, (Some(7.0), Some(250), Some(3.0))),
        (0, 2, CallOutcome::Declined(None), (Some(9.0), Some(250), Some(5.0))),
        (0, 1, CallOutcome::Throttled(None), (Some(10.0), Some(250), Some(6.0))),
        (20, 0, OK, (Some(0.0), Some(20), None)),
    ] {
        let permit = governor.admit(&key(), TokenEstimate::default()).await.unwrap();
        tokio::time::advance(Duration::from_millis(takes)).await;
        settle(permit, &outcome);
        tokio::time::advance(Duration::from_secs(waits)).await;
        let lane = governor.list_lanes().remove(0);
        let told = (lane.answered_s, lane.answer_ms, lane.failing_s);
        assert_eq!(told, expected, "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_lane_reports_its_calls_its_queue_and_its_breaker() {
    let governor = governor(1);
    let other = LimiterKey { model: "another".into(), ..key() };
    assert_eq!(governor.list_lanes(), Vec::<ProviderLane>::new(), "nobody was called");
    let permit = governor.admit(&key(), TokenEstimate::default()).await.unwrap();
    let mut second = governor.enqueue_call(&key(), TokenEstimate::default());
    let mut waits = Box::pin(second.admit());
    assert!(waits.as_mut().now_or_never().is_none(), "one call at a time");
    for _ in 0..2 {
        let denied = governor.admit(&other, TokenEstimate::default()).await.unwrap();
        settle(denied, &CallOutcome::Denied);
    }
    let told: Vec<_> = governor
        .list_lanes()
        .into_iter()
        .map(|it| (it.model, it.in_flight, it.waiting, it.breaker, it.denied))
        .collect();
    let expected = [
        ("another".to_owned(), 0, 0, LaneBreaker::Open, true),
        ("m".to_owned(), 1, 1, LaneBreaker::Closed, false),
    ];
    assert_eq!(told, expected);
    drop((waits, permit));
}
