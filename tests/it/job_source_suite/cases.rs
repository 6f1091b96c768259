//! The cases.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::Duration;

use docmill_core::fault::Fault;

use super::{JobDeed, JobSourceSite, SiteTerms};
use crate::support::world::{SOON, until};

const JOBS: [&str; 8] = ["J-11", "J-12", "J-13", "J-14", "J-15", "J-16", "J-17", "J-18"];
const FIRST: &str = "J-01";

/// Adds jobs whose work does so.
async fn add_all<S: JobSourceSite>(site: &S, jobs: &[&'static str], deed: JobDeed) {
    for job in jobs {
        site.plan().set(job, deed);
        site.add(job).await;
    }
}

async fn until_all_complete<S: JobSourceSite>(site: &S, jobs: &[&'static str]) {
    for job in jobs {
        site.until_complete(job).await;
    }
}

pub(crate) async fn two_workers_share_the_jobs_and_none_is_begun_twice<S: JobSourceSite>() {
    let site = S::open().await;
    add_all(&site, &JOBS, JobDeed::Waits).await;
    let terms = SiteTerms::with_slots(3);
    let (first, second) = tokio::join!(site.start(terms), site.start(terms));
    site.plan().until_working(6).await;
    for job in JOBS {
        site.plan().set(job, JobDeed::Succeeds);
    }
    until_all_complete(&site, &JOBS).await;
    let (first, second) = (first.end().await, second.end().await);
    assert!(first.done >= 3 && second.done >= 3, "{first:?} {second:?}");
    assert_eq!(first.done + second.done, 8);
    for job in JOBS {
        assert_eq!(site.plan().begun(job), 1, "{job}");
    }
}

pub(crate) async fn a_job_that_is_held_is_begun_by_nobody_else<S: JobSourceSite>() {
    let site = S::open().await;
    add_all(&site, &[FIRST], JobDeed::Waits).await;
    let first = site.start(SiteTerms::with_slots(1)).await;
    site.plan().until_working(1).await;
    assert!(site.is_claimed(FIRST).await);
    site.offer(FIRST).await;
    add_all(&site, &JOBS, JobDeed::Succeeds).await;
    let second = site.start(SiteTerms::with_slots(2)).await;
    until_all_complete(&site, &JOBS).await;
    assert_eq!(site.plan().begun(FIRST), 1, "the other worker was offered it as well");
    site.plan().set(FIRST, JobDeed::Succeeds);
    site.until_complete(FIRST).await;
    let (first, second) = (first.end().await, second.end().await);
    assert_eq!((first.done + second.done, first.lost + second.lost), (9, 0));
    assert_eq!(site.plan().begun(FIRST), 1);
}

pub(crate) async fn a_job_that_has_ended_never_comes_back<S: JobSourceSite>() {
    let site = S::open().await;
    add_all(&site, &[FIRST], JobDeed::Succeeds).await;
    let first = site.start(SiteTerms::with_slots(2)).await;
    site.until_complete(FIRST).await;
    assert_eq!(first.end().await.done, 1);
    assert!(!site.is_claimed(FIRST).await);
    site.offer(FIRST).await;
    add_all(&site, &JOBS, JobDeed::Succeeds).await;
    let second = site.start(SiteTerms::with_slots(2)).await;
    until_all_complete(&site, &JOBS).await;
    assert_eq!(second.end().await.done, 8);
    assert_eq!(site.plan().begun(FIRST), 1);
}

pub(crate) async fn a_job_that_is_given_back_is_done_by_another_worker<S: JobSourceSite>() {
    let site = S::open().await;
    add_all(&site, &[FIRST], JobDeed::Fails(Fault::Unavailable)).await;
    let first = site.start(SiteTerms::with_slots(2)).await;
    until(SOON, || async { first.monitor.stats().given_back > 0 }).await;
    let first = first.end().await;
    assert_eq!((first.done, first.failed, first.dead), (0, 0, 0), "not the job's fault");
    assert!(!site.is_claimed(FIRST).await);
    assert!(!site.is_complete(FIRST).await);
    site.plan().set(FIRST, JobDeed::Succeeds);
    site.pass().await;
    let second = site.start(SiteTerms::with_slots(2)).await;
    site.until_complete(FIRST).await;
    assert_eq!(second.end().await.done, 1);
}

pub(crate) async fn a_drain_gives_back_what_it_holds_and_another_goes_on_at_once<
    S: JobSourceSite,
>() {
    let site = S::open().await;
    add_all(&site, &JOBS, JobDeed::Waits).await;
    let first = site.start(SiteTerms::with_slots(3)).await;
    site.plan().until_working(3).await;
    let first = first.end().await;
    assert_eq!((first.given_back, first.done, first.lost), (3, 0, 0));
    site.plan().until_working(0).await;
    for job in JOBS {
        assert!(!site.is_claimed(job).await, "{job}");
        site.plan().set(job, JobDeed::Succeeds);
    }
    // No time is let go by: what was given back is there.
    let second = site.start(SiteTerms::with_slots(3)).await;
    until_all_complete(&site, &JOBS).await;
    assert_eq!(second.end().await.done, 8);
}

pub(crate) async fn a_stop_lets_what_runs_end_and_begins_nothing_more<S: JobSourceSite>() {
    let site = S::open().await;
    add_all(&site, &JOBS, JobDeed::Waits).await;
    let first = site.start(SiteTerms { drain: SOON, ..SiteTerms::with_slots(2) }).await;
    site.plan().until_working(2).await;
    first.stop.request();
    until(SOON, || async { first.monitor.is_draining() }).await;
    for job in JOBS {
        site.plan().set(job, JobDeed::Succeeds);
    }
    let first = first.end().await;
    assert_eq!((first.done, first.given_back), (2, 0));
    let begun: u32 = JOBS.iter().map(|job| site.plan().begun(job)).sum();
    assert_eq!(begun, 2);
    let second = site.start(SiteTerms::with_slots(2)).await;
    until_all_complete(&site, &JOBS).await;
    assert_eq!(second.end().await.done, 6);
}

pub(crate) async fn a_claim_that_a_renewal_finds_lost_ends_the_job_and_nothing_is_written<
    S: JobSourceSite,
>() {
    let site = S::open().await;
    add_all(&site, &[FIRST], JobDeed::Waits).await;
    let terms = SiteTerms { quick_renewals: true, ..SiteTerms::with_slots(2) };
    let worker = site.start(terms).await;
    site.plan().until_working(1).await;
    site.take_claim(FIRST).await;
    until(SOON, || async { worker.monitor.stats().lost > 0 }).await;
    assert!(site.is_claimed(FIRST).await, "the other's claim is left alone");
    assert!(!site.is_complete(FIRST).await);
    let stats = worker.end().await;
    assert_eq!((stats.lost, stats.done, stats.failed), (1, 0, 0));
    site.plan().until_working(0).await;
}

pub(crate) async fn a_step_that_panics_ends_one_job_and_no_other<S: JobSourceSite>() {
    let site = S::open().await;
    add_all(&site, &[FIRST], JobDeed::Panics).await;
    add_all(&site, &JOBS, JobDeed::Waits).await;
    // A slot for each: in which order they are begun is the job source's affair.
    let worker = site.start(SiteTerms::with_slots(9)).await;
    until(SOON, || async { worker.monitor.stats().failed > 0 }).await;
    site.plan().until_working(8).await;
    for job in JOBS {
        site.plan().set(job, JobDeed::Succeeds);
    }
    until_all_complete(&site, &JOBS).await;
    let stats = worker.end().await;
    assert_eq!((stats.done, stats.lost), (8, 0), "{stats:?}");
    assert!(!site.is_complete(FIRST).await);
}

pub(crate) async fn no_more_jobs_run_than_there_are_slots<S: JobSourceSite>() {
    let site = S::open().await;
    add_all(&site, &JOBS, JobDeed::Waits).await;
    let terms = SiteTerms { drain: Duration::from_secs(60), ..SiteTerms::with_slots(2) };
    let worker = site.start(terms).await;
    for done in 0..JOBS.len() {
        // The next is begun only when one of those before it has ended.
        let begun = JOBS.len().min(done + 2);
        site.plan().until_all_begun(u32::try_from(begun).unwrap()).await;
        let is_running = |job: &&str| site.plan().begun(job) > 0 && site.plan().waits(job);
        let running = JOBS.into_iter().find(|job| is_running(job)).unwrap();
        site.plan().set(running, JobDeed::Succeeds);
    }
    until_all_complete(&site, &JOBS).await;
    assert_eq!(worker.end().await.done, 8);
    assert_eq!(site.plan().most_working(), 2);
}
