//! Archives as strangers pack them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::*;

const LIMITS: ArchiveLimits = ArchiveLimits { bytes: 1 << 20, entries: 20, document: 100 };

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// An entry whose name is written as it is, hostile or not.
fn entry(name: &[u8], kind: EntryType, content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn document(name: &str, content: &[u8]) -> Vec<u8> {
    entry(name.as_bytes(), EntryType::Regular, content)
}

/// The walk through a packed archive: names with their contents, and the reason for a stop.
fn walk(
    packed: &[u8],
    limits: ArchiveLimits,
) -> (Vec<(String, MemberContent)>, Option<&'static str>) {
    let mut found = Vec::new();
    let ended = list_members(packed, limits, |step| {
        let ArchiveStep::Document { member, content } = step else { panic!("{step:?}") };
        found.push((member, content));
        true
    });
    let code = ended.err().map(|step| match step {
        ArchiveStep::Broken { code, .. } => code,
        step => panic!("{step:?}"),
    });
    (found, code)
}

fn bytes(text: &'static str) -> MemberContent {
    MemberContent::Bytes(Bytes::from_static(text.as_bytes()))
}

fn named(name: &str, content: MemberContent) -> (String, MemberContent) {
    (name.to_owned(), content)
}

#[test]
fn the_pdfs_of_an_archive_are_found_by_their_names_and_nothing_else_is() {
    let long = format!("{}/é.pdf", "folder/".repeat(40));
    let mut archive = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(3);
    archive.append_data(&mut header, &long, &b"far"[..]).unwrap();
    let mut whole = archive.into_inner().unwrap();
    // Without the blocks of its end.
    whole.truncate(whole.len() - 1024);
    let posix = b"19 path=posix\xff.pdf\n11 size=9\n";
    for part in [
        document("a.PDF", b"one"),
        document("notes.txt", b"text"),
        entry(b"folder.pdf/", EntryType::Directory, b""),
        entry(b"link.pdf", EntryType::Symlink, b""),
        entry(b"hard.pdf", EntryType::Link, b""),
        entry(b"pipe.pdf", EntryType::Fifo, b""),
        entry(b"device.pdf", EntryType::Block, b""),
        entry(b"x", EntryType::XHeader, posix),
        document("short.pdf", b"two"),
        document("../../etc/cron.pdf", b"out"),
        document("/root/a.pdf", b"abs"),
        document("large.pdf", &[b'x'; 101]),
        document("last.pdf", b""),
    ] {
        whole.extend(part);
    }
    whole.resize(whole.len() + 1024, 0);
    let (found, broken) = walk(&pack(&whole), LIMITS);
    assert_eq!(broken, None);
    let expected = [
        named(&long, bytes("far")),
        named("a.PDF", bytes("one")),
        named("posix\u{fffd}.pdf", bytes("two")),
        named("../../etc/cron.pdf", bytes("out")),
        named("/root/a.pdf", bytes("abs")),
        named("large.pdf", MemberContent::TooLarge),
        named("last.pdf", bytes("")),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_bomb_a_flood_and_an_endless_name_are_left_where_their_limit_is_passed() {
    let good = document("a.pdf", b"one");
    let bomb = [good.clone(), entry(b"zeros", EntryType::Regular, &vec![0; 4 << 20])].concat();
    let hidden = [good.clone(), vec![1; 4 << 20]].concat();
    let flood = [good.clone(), entry(b"empty", EntryType::Regular, b"").repeat(20)].concat();
    let name = vec![b'n'; usize::try_from(MAX_NAME + 1).unwrap()];
    let endless = [good.clone(), entry(b"l", EntryType::GNULongName, &name)].concat();
    let padded = [good.clone(), vec![0; 512]].concat();
    for (archive, code) in [
        (bomb, Some("too_large")),
        (hidden, Some("corrupt")),
        (flood, Some("too_large")),
        (endless, Some("corrupt")),
        (padded, None),
    ] {
        let (found, broken) = walk(&pack(&archive), LIMITS);
        assert_eq!((found, broken), (vec![named("a.pdf", bytes("one"))], code));
    }
}

#[test]
fn a_torn_archive_is_reported_and_earlier_members_kept() {
    let mut archive = document("a.pdf", b"one");
    archive.extend(document("b.pdf", b"two"));
    let whole = pack(&archive);
    let one = vec![named("a.pdf", bytes("one"))];
    // In the middle of the second member, where the packed bytes are whole.
    let (found, broken) = walk(&pack(&archive[..512 * 3 + 1]), LIMITS);
    assert_eq!((&found, broken), (&one, Some("corrupt")));
    for at in 0..whole.len() {
        let (found, broken) = walk(&whole[..at], LIMITS);
        assert!(found.len() < 2 || broken == Some("corrupt"), "cut at {at}: {found:?}");
        assert_eq!(broken, Some("corrupt"), "cut at {at}");
    }
    for nonsense in [&b""[..], b"no gzip at all", &pack(b"no archive at all")] {
        assert_eq!(walk(nonsense, LIMITS), (Vec::new(), Some("corrupt")));
    }
    // Several packed parts one after the other are one archive, as gzip has it.
    let parts = [pack(&document("a.pdf", b"one")), pack(&document("b.pdf", b"two"))].concat();
    assert_eq!(walk(&parts, LIMITS).0.len(), 2);
}

#[test]
fn an_archive_with_any_bytes_changed_stays_within_its_limits() {
    let mut archive = document("a.pdf", b"one");
    archive.extend(entry(b"x", EntryType::XHeader, b"20 path=posix/b.pdf\n"));
    archive.extend(document("b.pdf", b"two"));
    archive.extend(entry(b"l", EntryType::GNULongName, b"long/c.pdf\0"));
    archive.extend(document("c.pdf", b"three"));
    archive.resize(archive.len() + 1024, 0);
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..5000 {
        let mut changed = archive.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..changed.len());
            changed[at] = random.u8(..);
        }
        // A header is valid only with the right checksum.
        for header in changed.chunks_exact_mut(512) {
            let mut sealed = Header::from_byte_slice(header).clone();
            sealed.set_cksum();
            if random.bool() {
                header.copy_from_slice(sealed.as_bytes());
            }
        }
        let (found, _) = walk(&pack(&changed), LIMITS);
        let told: u64 = found
            .iter()
            .map(|(name, content)| match content {
                MemberContent::Bytes(bytes) => (name.len() + bytes.len()) as u64,
                MemberContent::TooLarge => name.len() as u64,
            })
            .sum();
        assert!(told <= LIMITS.bytes && found.len() <= LIMITS.entries as usize, "{found:?}");
    }
}

#[test]
fn removed_targets_receive_nothing_more() {
    let mut told = 0;
    let packed = pack(&document("a.pdf", b"one").repeat(5));
    let ended = list_members(&packed, LIMITS, |_| {
        told += 1;
        told < 2
    });
    assert_eq!((ended, told), (Ok(()), 2));
}

#[test]
fn an_archive_is_recognised_by_extension_and_a_member_is_named_by_its_archive() {
    for (path, archive) in [
        ("/a/b.tar.gz", true),
        ("s3://b/x.TGZ", true),
        ("/a/b.tar", false),
        ("/a/tgz", false),
        ("/a/b.tar.gz.pdf", false),
    ] {
        assert_eq!(is_archive(path), archive, "{path}");
    }
    assert_eq!(split_member("/a.tgz::b::c.pdf"), Some(("/a.tgz", "b::c.pdf")));
    assert_eq!(split_member("/x::y/a.tgz::c.pdf"), Some(("/x::y/a.tgz", "c.pdf")));
    assert_eq!(split_member("/odd::name.pdf"), None);
}
