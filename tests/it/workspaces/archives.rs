//! Archives of documents: each PDF in one fares as a document of its own.

use std::io::Write as _;

use docmill_compat::objects::olmocr::index::WorkGroup;
use docmill_compat::workspace::{
    ArchiveLimits, DocumentSources, WorkspaceTally, load_stats, populate_workspace, reopen_groups,
};
use docmill_core::fault::Fault;
use docmill_pipeline::shutdown::Shutdown;
use std::sync::Arc;

use super::{Desk, Fake, Manner, terms};

/// A packed archive of these members, with arbitrary names.
pub(super) fn pack(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in members {
        let mut header = tar::Header::new_ustar();
        for (place, byte) in header.as_old_mut().name.iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        header.set_size(content.len() as u64);
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&archive.into_inner().unwrap()).unwrap();
    gzip.finish().unwrap()
}

/// A workspace with one archive and a paper beside it: the archive's group, and its path.
async fn archive_in(desk: &Desk, packed: &[u8]) -> (WorkGroup, String) {
    let path = desk.papers.path().join("may.tar.gz").to_str().unwrap().to_owned();
    std::fs::write(&path, packed).unwrap();
    let paths = [desk.paper(0), path.clone(), desk.paper(1)];
    populate_workspace(&desk.workspace, &paths, 10, false).await.unwrap();
    let groups = desk.workspace.load_index().await.unwrap().0.groups;
    assert_eq!(groups.len(), 2, "an archive is a group of its own, as olmOCR has it");
    (groups.into_iter().find(|group| group.paths == [path.clone()]).unwrap(), path)
}

async fn sources_of(desk: &Desk, hash: &str) -> Vec<String> {
    let lines = desk.lines(hash).await;
    let source = |line: &serde_json::Value| line.pointer("/metadata/Source-File").cloned();
    lines.iter().map(|line| source(line).unwrap().as_str().unwrap().to_owned()).collect()
}

async fn unread(desk: &Desk) -> Vec<(String, String)> {
    let mut unread = load_stats(&desk.workspace).await.unwrap().unread;
    unread.sort_by(|one, other| one.path.cmp(&other.path));
    unread.into_iter().map(|one| (one.path, one.reason)).collect()
}

#[tokio::test]
async fn each_pdf_of_an_archive_is_a_line_by_its_name_and_hostile_names_are_only_names() {
    let (desk, store) = Desk::in_memory().await;
    let members: [(&str, &[u8]); 6] = [
        ("in/a.pdf", b"paper a"),
        ("notes.txt", b"no paper"),
        ("../../out.pdf", b"paper out"),
        ("/etc/abs.pdf", b"paper abs"),
        ("in/a.pdf", b"another of the name"),
        ("z.PDF", b"paper z"),
    ];
    let (group, path) = archive_in(&desk, &pack(&members)).await;
    let before: Vec<_> = std::fs::read_dir(desk.papers.path()).unwrap().collect();
    let reader = Fake::new();
    let tally = desk.work(&reader).await;
    assert_eq!((tally.groups, tally.documents, tally.unread), (2, 6, 0));
    let expected = ["in/a.pdf", "../../out.pdf", "/etc/abs.pdf", "z.PDF"];
    let expected = expected.map(|member| format!("{path}::{member}"));
    assert_eq!(sources_of(&desk, &group.hash).await, expected, "in the archive's order");
    assert_eq!(desk.lines(&group.hash).await[0]["text"], "paper a", "the first of a name");
    assert!(store.keys("document_ledger/").is_empty(), "{:?}", store.keys("document_ledger/"));
    let after: Vec<_> = std::fs::read_dir(desk.papers.path()).unwrap().collect();
    assert_eq!(after.len(), before.len(), "nothing was unpacked there");
    assert_eq!(desk.work(&reader).await, WorkspaceTally::default());
}

#[tokio::test]
async fn a_document_that_fails_in_an_archive_is_tried_again_alone_and_its_group_opened_for_it() {
    let (desk, _) = Desk::in_memory().await;
    let (group, path) = archive_in(
        &desk,
        &pack(&[("a.pdf", b"paper a"), ("b.pdf", b"paper b"), ("c.pdf", b"paper c")]),
    )
    .await;
    let member = |name: &str| format!("{path}::{name}.pdf");
    let reader = Fake::new();
    reader.does(&member("b"), Manner::Fails(Fault::Internal));
    reader.does(&member("c"), Manner::Refuses);
    assert_eq!(desk.work(&reader).await.unread, 2);
    assert_eq!(["a", "b", "c"].map(|name| reader.calls(&member(name))), [1, 3, 1]);
    let codes = [(member("b"), "internal".to_owned()), (member("c"), "encrypted".to_owned())];
    assert_eq!(unread(&desk).await, codes);
    reader.does(&member("b"), Manner::Well);
    reader.does(&member("c"), Manner::Well);
    assert_eq!(reopen_groups(&desk.workspace, false).await.unwrap().len(), 2);
    let tally = desk.work(&reader).await;
    assert_eq!((tally.documents, tally.unread), (3, 0));
    assert_eq!(reader.calls(&member("a")), 1, "its line was kept");
    assert_eq!(sources_of(&desk, &group.hash).await, ["a", "b", "c"].map(member));
}

#[tokio::test]
async fn members_before_the_tear_of_an_archive_are_kept_and_the_archive_is_reported() {
    let (desk, _) = Desk::in_memory().await;
    let whole = pack(&[("a.pdf", b"paper a"), ("b.pdf", &vec![b'b'; 100_000])]);
    let (group, path) = archive_in(&desk, &whole[..whole.len() - 60]).await;
    let reader = Fake::new();
    let tally = desk.work(&reader).await;
    assert_eq!((tally.documents, tally.unread), (3, 1));
    assert_eq!(unread(&desk).await, [(path.clone(), "corrupt".to_owned())]);
    assert_eq!(sources_of(&desk, &group.hash).await, [format!("{path}::a.pdf")]);
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(reopen_groups(&desk.workspace, false).await.unwrap(), std::slice::from_ref(&path));
    assert_eq!(desk.work(&reader).await.documents, 2);
    let both = ["a", "b"].map(|name| format!("{path}::{name}.pdf"));
    assert_eq!(sources_of(&desk, &group.hash).await, both);
    assert_eq!(reader.calls(&both[0]), 1, "what was read of it is not read again");
    assert_eq!(unread(&desk).await, []);
}

#[tokio::test]
async fn an_archive_that_is_too_large_missing_or_empty_is_reported_as_such() {
    let (desk, _) = Desk::in_memory().await;
    let bomb = pack(&[("a.pdf", b"paper a"), ("zeros", &vec![0; 1 << 20])]);
    assert!(bomb.len() < 50_000, "{} packed bytes", bomb.len());
    let (group, path) = archive_in(&desk, &bomb).await;
    let gone = desk.papers.path().join("gone.tgz").to_str().unwrap().to_owned();
    let empty = desk.papers.path().join("empty.tgz").to_str().unwrap().to_owned();
    let large = desk.papers.path().join("large.tgz").to_str().unwrap().to_owned();
    std::fs::write(&empty, pack(&[("notes.txt", b"no paper")])).unwrap();
    std::fs::write(&large, vec![0; 100_001]).unwrap();
    let more = [gone.clone(), empty, large.clone()];
    populate_workspace(&desk.workspace, &more, 10, false).await.unwrap();
    let reader = Fake::new();
    let mut setup = desk.worker(&reader, terms());
    let archives = ArchiveLimits { bytes: 100_000, ..ArchiveLimits::default() };
    setup.sources = Arc::new(DocumentSources { s3: None, largest: 1 << 20, local: true, archives });
    let tally = setup.run(Shutdown::default()).await.unwrap();
    assert_eq!((tally.documents, tally.empty, tally.unread), (3, 1, 3));
    let mut expected = [
        (path.clone(), "too_large".to_owned()),
        (gone, "missing".to_owned()),
        (large, "too_large".to_owned()),
    ];
    expected.sort();
    assert_eq!(unread(&desk).await, expected);
    assert_eq!(sources_of(&desk, &group.hash).await, [format!("{path}::a.pdf")]);
}
