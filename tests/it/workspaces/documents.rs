//! Outcomes of single documents of a group.

use std::time::Duration;

use docmill_compat::objects::olmocr::{flag_key, result_key};
use docmill_compat::workspace::{
    ArchiveLimits, DocumentSources, load_stats, reopen_groups, sample_group_size,
};
use docmill_core::fault::Fault;
use docmill_pipeline::shutdown::Shutdown;

use super::{Desk, Fake, Manner, terms};

#[tokio::test]
async fn a_document_that_fails_twice_is_read_at_last_and_those_beside_it_once() {
    let (desk, _) = Desk::in_memory().await;
    let group = desk.populate(3, 3).await.remove(0);
    let reader = Fake::new();
    reader.does(&group.paths[1], Manner::Fails(Fault::Internal));
    let worker = desk.worker(&reader, terms()).run(Shutdown::default());
    let path = group.paths[1].clone();
    let mend = async {
        while reader.calls(&path) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        reader.does(&path, Manner::Well);
    };
    let (tally, ()) = tokio::join!(worker, mend);
    let tally = tally.unwrap();
    assert_eq!((tally.documents, tally.unread, tally.groups), (3, 0, 1));
    assert_eq!(tally.partial, 2);
    assert_eq!([0, 1, 2].map(|at| reader.calls(&group.paths[at])), [1, 3, 1]);
    assert_eq!(desk.lines(&group.hash).await.len(), 3);
}

#[tokio::test]
async fn a_document_that_always_fails_is_named_and_can_be_tried_again_with_its_group_kept() {
    let (desk, store) = Desk::in_memory().await;
    let group = desk.populate(4, 4).await.remove(0);
    let (failing, refused, empty) = (&group.paths[0], &group.paths[1], &group.paths[2]);
    let reader = Fake::new();
    reader.does(failing, Manner::Fails(Fault::Missing));
    reader.does(refused, Manner::Refuses);
    reader.does(empty, Manner::Empty);
    let tally = desk.work(&reader).await;
    assert_eq!((tally.documents, tally.empty, tally.unread), (1, 1, 2));
    assert_eq!((reader.calls(failing), reader.calls(refused)), (3, 1), "a refusal is final");
    let mut unread = load_stats(&desk.workspace).await.unwrap().unread;
    unread.sort_by(|a, b| a.path.cmp(&b.path));
    let named: Vec<_> = unread.iter().map(|one| (&one.path, one.reason.as_str())).collect();
    assert_eq!(named, [(failing, "missing"), (refused, "encrypted")]);
    assert!(unread.iter().all(|one| !one.waits));
    let would = reopen_groups(&desk.workspace, true).await.unwrap();
    assert_eq!(would.len(), 2);
    assert!(desk.text(&flag_key(&group.hash)).await.is_some(), "nothing was changed");
    let kept = desk.lines(&group.hash).await;
    assert_eq!(reopen_groups(&desk.workspace, false).await.unwrap().len(), 2);
    assert!(store.keys("done_flags/").is_empty() && store.keys("results/").is_empty());
    reader.does(failing, Manner::Well);
    reader.does(refused, Manner::Well);
    let tally = desk.work(&reader).await;
    assert_eq!((tally.documents, tally.unread), (3, 0));
    assert_eq!(reader.calls(&group.paths[3]), 1, "its line was kept");
    assert!(desk.lines(&group.hash).await.contains(&kept[0]));
    assert!(load_stats(&desk.workspace).await.unwrap().unread.is_empty());
}

#[tokio::test]
async fn a_document_that_loses_too_many_pages_is_left_out() {
    let (desk, _) = Desk::in_memory().await;
    let group = desk.populate(2, 2).await.remove(0);
    let reader = Fake::new();
    reader.does(&group.paths[0], Manner::LosesPages(1));
    assert_eq!(desk.work(&reader).await.unread, 1);
    assert_eq!(desk.lines(&group.hash).await.len(), 1);
    assert_eq!(load_stats(&desk.workspace).await.unwrap().unread[0].reason, "page_errors");
}

#[tokio::test]
async fn a_stop_releases_the_group_keeps_its_texts_and_counts_no_try() {
    let (desk, store) = Desk::in_memory().await;
    let group = desk.populate(2, 2).await.remove(0);
    let reader = Fake::new();
    for _ in 0..4 {
        reader.does(&group.paths[1], Manner::Hangs);
        let before = reader.calls(&group.paths[1]);
        let stop = Shutdown::default();
        let ask = async {
            while reader.calls(&group.paths[1]) == before {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stop.request();
        };
        let (ended, ()) = tokio::join!(desk.worker(&reader, terms()).run(stop.clone()), ask);
        ended.unwrap();
        assert!(store.keys("worker_locks/").is_empty(), "free for others at once");
    }
    reader.does(&group.paths[1], Manner::Well);
    assert_eq!(desk.work(&reader).await.documents, 2, "four stops used up no try");
    assert_eq!(reader.calls(&group.paths[0]), 1);
}

#[tokio::test]
async fn a_document_over_which_its_workers_die_is_begun_three_times() {
    let (desk, store) = Desk::in_memory().await;
    let group = desk.populate(1, 1).await.remove(0);
    let reader = Fake::new();
    reader.does(&group.paths[0], Manner::Hangs);
    for run in 1..=3 {
        let work = tokio::spawn(desk.worker(&reader, terms()).run(Shutdown::default()));
        while reader.calls(&group.paths[0]) < run {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // As good as killed: nothing is written any more.
        work.abort();
        assert!(work.await.unwrap_err().is_cancelled());
        for key in store.keys("worker_locks/") {
            store.age(&key, super::TIMEOUT + Duration::from_secs(1));
        }
    }
    assert_eq!(desk.work(&reader).await.unread, 1);
    assert_eq!(reader.calls(&group.paths[0]), 3);
    assert_eq!(load_stats(&desk.workspace).await.unwrap().unread[0].reason, "crashed");
    assert_eq!(
        desk.text(&result_key(&group.hash)).await.as_deref(),
        Some(""),
        "a result of nothing"
    );
}

#[tokio::test]
async fn groups_have_the_sampled_size() {
    let (desk, _) = Desk::in_memory().await;
    let paths: Vec<String> = (0..5).map(|number| desk.paper(number)).collect();
    let sources = DocumentSources {
        s3: None,
        largest: 1 << 20,
        local: true,
        archives: ArchiveLimits::default(),
    };
    let gone = vec!["/nowhere/a.pdf".to_owned()];
    let reader = Fake::new();
    let share = |paths: Vec<String>| {
        let (sources, reader) = (&sources, reader.as_ref());
        async move { sample_group_size(500, &paths, sources, reader).await.unwrap() }
    };
    assert_eq!(share(paths.clone()).await, 125, "four pages each");
    assert_eq!(share([paths, gone.clone()].concat()).await, 125, "what is gone does not count");
    assert_eq!(share(gone).await, 50, "ten pages each if nothing can be opened");
}
