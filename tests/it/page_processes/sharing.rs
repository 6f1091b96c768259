//! Documents that share a page process.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;

use docmill_core::config::{ConfinementMode, CpuConfig, ProcessSharing};
use docmill_documents::sandbox::{DocumentOpening, OpenDocument, ProcessPool};

use super::{of, pid};
use crate::support::page_processes::{Driven, lives, until_gone};

fn driven(shared: ProcessSharing, threads: usize) -> (Arc<ProcessPool>, tempfile::TempDir) {
    let cpu = CpuConfig { confine: ConfinementMode::Off, shared, ..Default::default() };
    Driven { cpu, threads, ..Default::default() }.start()
}

async fn open(cells: &Arc<ProcessPool>, tenant: Option<&str>) -> OpenDocument {
    let how = DocumentOpening { tenant, ..DocumentOpening::default() };
    cells.open_tenant_document(of(&["pid"]), how).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_two_tenants_never_share_a_process_where_tenants_are_kept_apart() {
    let (cells, _folder) = driven(ProcessSharing::Tenant, 3);
    let (a, b) = (open(&cells, Some("a")).await, open(&cells, Some("b")).await);
    let (again, nobody) = (open(&cells, Some("a")).await, open(&cells, None).await);
    let (of_a, of_b, of_nobody) = (pid(&a).await, pid(&b).await, pid(&nobody).await);
    assert!(of_a != of_b && of_a != of_nobody && of_b != of_nobody);
    assert_eq!(pid(&again).await, of_a, "those of one tenant do");
    drop(a);
    assert_eq!(pid(&again).await, of_a);
    drop(again);
    until_gone(&of_a).await;
    assert!(lives(&of_b));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_waits_for_a_process_has_its_turn_before_a_busy_one_goes_on() {
    let (cells, _folder) = driven(ProcessSharing::Tenant, 1);
    let first = open(&cells, Some("busy")).await;
    let taken = pid(&first).await;
    let start = |tenant: &'static str| {
        let cells = Arc::clone(&cells);
        tokio::spawn(async move {
            let document = open(&cells, Some(tenant)).await;
            let process = pid(&document).await;
            (document, process)
        })
    };
    let waiting = start("other");
    while cells.waiting_tenant_documents() < 1 {
        tokio::task::yield_now().await;
    }
    let late = start("busy");
    while cells.waiting_tenant_documents() < 2 {
        tokio::task::yield_now().await;
    }
    drop(first);
    let (document, of_other) = waiting.await.unwrap();
    assert_ne!(of_other, taken);
    assert!(!late.is_finished(), "the only process is the other tenant's now");
    drop(document);
    let (_document, of_late) = late.await.unwrap();
    assert!(of_late != taken && of_late != of_other);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_document_has_a_process_of_its_own_where_none_is_shared() {
    let (cells, _folder) = driven(ProcessSharing::None, 2);
    let (one, two) = (open(&cells, Some("a")).await, open(&cells, Some("a")).await);
    let (first, second) = (pid(&one).await, pid(&two).await);
    assert_ne!(first, second);
    drop(one);
    until_gone(&first).await;
}
