//! Mails and archives through the whole service: a document for each attachment, once, whenever a worker
//! dies, and one message for each mail when all of it has ended.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use docmill_core::model::IngestionId;
use futures::StreamExt as _;
use lopdf::dictionary;
use serde_json::Value;

use crate::failpoints::worker_that_fails;
use crate::json;
use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

/// Worlds at the same time.
const AT_ONCE: usize = 4;
const TENDED: [(&str, &str); 2] = [("JANITOR__ENABLED", "true"), ("JANITOR__INTERVAL", "1s")];

/// A part of a mail.
#[derive(Clone)]
struct Part {
    media: &'static str,
    name: String,
    content: Vec<u8>,
}

fn file(name: &str, content: &[u8]) -> Part {
    Part { media: "application/octet-stream", name: name.to_owned(), content: content.to_vec() }
}

/// The name of a part in its header: any letters as RFC 2231 has them.
fn name_parameter(name: &str) -> String {
    if name.is_ascii() {
        return format!("filename=\"{name}\"");
    }
    let mut letters = String::new();
    for byte in name.bytes() {
        write!(letters, "%{byte:02X}").unwrap();
    }
    format!("filename*=UTF-8''{letters}")
}

/// A short text and these parts, as the body of a mail or what is signed of one.
fn body(number: usize, parts: &[Part]) -> String {
    let line = format!("cut{number}");
    let mut body = format!(
        "Content-Type: multipart/mixed; boundary=\"{line}\"\r\n\r\n\
         --{line}\r\nContent-Type: text/plain\r\n\r\nSee below.\r\n"
    );
    for Part { media, name, content } in parts {
        write!(
            body,
            "--{line}\r\nContent-Type: {media}\r\nContent-Transfer-Encoding: base64\r\n\
             Content-Disposition: attachment; {}\r\n\r\n{}\r\n",
            name_parameter(name),
            BASE64_STANDARD.encode(content)
        )
        .unwrap();
    }
    write!(body, "--{line}--\r\n").unwrap();
    body
}

/// A mail around this body; `number` makes it one of its own.
fn mail_around(number: usize, body: &str) -> Vec<u8> {
    let head = format!(
        "From: Seller <s@example.com>\r\nTo: b@example.com\r\nSubject: Mail {number}\r\n\
         Message-ID: <{number}@example.com>\r\nMIME-Version: 1.0\r\n"
    );
    [head, body.to_owned()].concat().into_bytes()
}

/// A mail with a short text and these parts.
fn mail(number: usize, parts: &[Part]) -> Vec<u8> {
    mail_around(number, &body(number, parts))
}

/// The same, its signature beside it (RFC 8551 §3.5.3).
fn mail_signed_in_clear(number: usize, parts: &[Part]) -> Vec<u8> {
    let signed = body(number, parts);
    let whole = format!(
        "Content-Type: multipart/signed; protocol=\"application/pkcs7-signature\"; \
         micalg=sha-256; boundary=\"signed\"\r\n\r\n--signed\r\n{signed}\r\n--signed\r\n\
         Content-Type: application/pkcs7-signature; name=\"smime.p7s\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\nMIIB\r\n--signed--\r\n"
    );
    mail_around(number, &whole)
}

/// The same, within its signature (RFC 8551 §3.5.2).
fn mail_signed_whole(number: usize, parts: &[Part]) -> Vec<u8> {
    let signed = signed_data(body(number, parts).as_bytes());
    let whole = format!(
        "Content-Type: application/pkcs7-mime; smime-type=signed-data; name=\"smime.p7m\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{}\r\n",
        BASE64_STANDARD.encode(signed)
    );
    mail_around(number, &whole)
}

/// CMS signed data (RFC 5652 §5.1) around these bytes, without a signer.
fn signed_data(content: &[u8]) -> Vec<u8> {
    let octets = der(0xa0, &der(0x04, content));
    let parts = [der(2, &[1]), der(0x31, &[]), der(0x30, &[pkcs7(1), octets].concat())].concat();
    let parts = der(0x30, &[parts, der(0x31, &[])].concat());
    der(0x30, &[pkcs7(2), der(0xa0, &parts)].concat())
}

/// The identifier of a content type of PKCS 7.
fn pkcs7(number: u8) -> Vec<u8> {
    der(0x06, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, number])
}

/// An element in DER.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x84], &length[..], content].concat()
}

/// A `winmail.dat` with one attachment.
fn winmail(content: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x78\x9f\x3e\x22\x01\x00".to_vec();
    for (id, value) in [
        (0x0006_9002_u32, vec![0; 14]),
        (0x0001_8010, b"note.txt\0".to_vec()),
        (0x0006_800f, content.to_vec()),
    ] {
        bytes.push(2);
        bytes.extend(id.to_le_bytes());
        bytes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
        bytes.extend(value);
        bytes.extend([0, 0]);
    }
    bytes
}

/// The events about documents, and the number of documents by how they ended.
async fn told(world: &World) -> String {
    let sql = "SELECT count(*) FILTER (WHERE event = 'document.completed')::text || ' of ' ||
        count(DISTINCT document_id)::text FROM docmill.webhook_delivery
        WHERE event <> 'document.review_needed'";
    world.scalar(sql).await
}

async fn listen(world: &World) {
    let sql = "INSERT INTO docmill.webhook_target (name, place, url_hash) VALUES ('erp', 'x', 'y')";
    world.execute(sql).await;
}

const OPEN: &str = "SELECT count(*)::text FROM docmill.ingestion WHERE status = 'in-progress'";

async fn run_to_a_kill(point: &'static str) {
    let world = World::new().await;
    listen(&world).await;
    let parts = [
        file("a.pdf", &documents::invoice("A-1")),
        file("inner.eml", &mail(2, &[file("b.pdf", &documents::invoice("B-1"))])),
    ];
    let id = world.submit("mail.eml", mail(1, &parts)).await;
    let (place, pass) = point.split_once('@').unwrap_or((point, "1"));
    let plan = format!("{place}=kill@{pass}");
    worker_that_fails(&world, &[], &plan).await;
    let mut second = Process::worker(&world, &TENDED);
    world.pass_until(|| async { world.scalar(OPEN).await == "0" }).await;
    until(SOON, || async { told(&world).await == "1 of 1" }).await;
    let rows =
        "SELECT count(*)::text || ' ' || count(DISTINCT (parent_id, position))::text || ' ' ||
        count(*) FILTER (WHERE status = 'completed')::text FROM docmill.ingestion";
    assert_eq!(world.scalar(rows).await, "4 4 4", "{point}: the mail, two in it, one in that");
    let ends = "SELECT count(*)::text || ' of ' || count(DISTINCT ingestion_id)::text
        FROM docmill.attempt WHERE final";
    assert_eq!(world.scalar(ends).await, "4 of 4", "{point}: each ended once");
    let children = "SELECT children::text FROM docmill.ingestion WHERE parent_id IS NULL";
    assert_eq!(world.scalar(children).await, "2", "{point}");
    assert_eq!(world.column(id, "reader").await.as_deref(), Some("container"));
    let objects = world.store.list("documents/", None, 100).await.unwrap();
    assert_eq!(objects.len(), 4, "{point}: the mail and three found in it");
    world
        .pass_until(|| async {
            let depth = world.queue.depth().await.unwrap();
            depth.ready + depth.in_flight + depth.delayed == 0
        })
        .await;
    second.terminate();
    assert_eq!(second.ended(SOON).await.signal(), None, "{point}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_at_any_step_of_a_mail_loses_no_attachment_and_doubles_none() {
    let points = [
        "claim.before",
        "claim.after",
        "child.before",
        "child.after",
        "child.before@2",
        "child.after@2",
        "child.before@3",
        "child.after@3",
        "result.before",
        "result.after",
        "children.before",
        "children.after",
        "children.before@2",
        "children.after@2",
        "delete.before",
        "delete.after",
    ];
    let runs = points.into_iter().map(run_to_a_kill);
    futures::stream::iter(runs).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

/// The mail of this number, and the documents in it at every depth: each with its place and name below
/// those of its parent.
fn drawn(number: usize) -> (Vec<u8>, Vec<String>) {
    let (note, inner) = (file("note.txt", b"no document"), number + 1000);
    let signature = Part { media: "application/pkcs7-signature", ..file("smime.p7s", b"x") };
    let numbered = (0..30).map(|at| file(&format!("{at}.txt"), b"no document"));
    let (parts, found): (Vec<Part>, Vec<&str>) = match number % 11 {
        0 => (vec![file("r.pdf", &documents::invoice(&format!("M-{number}")))], vec!["/0 r.pdf"]),
        1 => (
            vec![file("inner.eml", &mail(inner, &[note.clone(), note]))],
            vec!["/0 inner.eml", "/0 inner.eml/0 note.txt", "/0 inner.eml/1 note.txt"],
        ),
        2 => (
            vec![file("winmail.dat", &winmail(b"no document"))],
            vec!["/0 winmail.dat", "/0 winmail.dat/0 note.txt"],
        ),
        3 => (vec![note, signature], vec!["/0 note.txt"]),
        4 => (
            vec![file("\u{202e}fdp.exe", b"x"), file("../../etc/passwd", b"x")],
            vec!["/0 fdp.exe", "/1 passwd"],
        ),
        5 if number == 5 => {
            let names = (0..30).map(|at| format!("/{at} {at}.txt")).collect();
            return (mail(number, &numbered.collect::<Vec<_>>()), names);
        }
        6 => (
            vec![file("a.eml", &mail(inner, &[file("b.eml", &mail(inner + 1000, &[note]))]))],
            vec!["/0 a.eml", "/0 a.eml/0 b.eml", "/0 a.eml/0 b.eml/0 note.txt"],
        ),
        7 => (
            vec![file("\u{5d7}\u{5e9}\u{5d1}.txt", b"x"), file("\u{641}\u{627}.txt", b"x")],
            vec!["/0 \u{5d7}\u{5e9}\u{5d1}.txt", "/1 \u{641}\u{627}.txt"],
        ),
        8 => {
            let found = ["/0 a.txt", "/1 note.txt"].map(str::to_owned);
            return (mail_signed_in_clear(number, &[file("a.txt", b"x"), note]), found.into());
        }
        9 => {
            let found = ["/0 a.txt", "/1 note.txt"].map(str::to_owned);
            return (mail_signed_whole(number, &[file("a.txt", b"x"), note]), found.into());
        }
        _ => (vec![note, file("data.bin", &[0, 1, 2])], vec!["/0 note.txt", "/1 data.bin"]),
    };
    (mail(number, &parts), found.into_iter().map(str::to_owned).collect())
}

/// The documents below an ingestion's, as [`drawn`] has them.
async fn found_in(world: &World, id: IngestionId) -> Vec<String> {
    let sql = format!(
        "WITH RECURSIVE found AS (
            SELECT id, ''::text AS path FROM docmill.ingestion WHERE id = '{id}'
            UNION ALL
            SELECT i.id, f.path || '/' || i.position || ' ' || d.original_name
            FROM found f JOIN docmill.ingestion i ON i.parent_id = f.id
            JOIN docmill.document d ON d.id = i.document_id)
        SELECT string_agg(path, E'\n') FROM found WHERE path <> ''"
    );
    let mut paths: Vec<String> = world.scalar(&sql).await.lines().map(str::to_owned).collect();
    paths.sort();
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_mails_become_their_documents_and_each_is_told_of_once() {
    let world = World::new().await;
    listen(&world).await;
    let mut expected = Vec::new();
    for number in 0..100 {
        let (bytes, mut found) = drawn(number);
        found.sort();
        let id: IngestionId = world.insert("mail.eml", bytes).await;
        expected.push((id, found));
    }
    let ids: Vec<IngestionId> = expected.iter().map(|(id, _)| *id).collect();
    world.send_all(&ids).await;
    let worker = world.worker().await;
    until(Duration::from_secs(300), || async {
        world.scalar(OPEN).await == "0" && told(&world).await == "100 of 100"
    })
    .await;
    for (number, (id, found)) in expected.iter().enumerate() {
        assert_eq!(&found_in(&world, *id).await, found, "mail {number}");
        assert_eq!(world.column(*id, "status").await.as_deref(), Some("completed"));
    }
    world.until_empty().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_of_mails_ends_at_its_depth_and_names_the_limit() {
    let world = World::new().await;
    let mut inner = mail(0, &[file("note.txt", b"x")]);
    for number in 1..6 {
        inner = mail(number, &[file("inner.eml", &inner)]);
    }
    world.submit("mail.eml", inner).await;
    let worker = world.worker().await;
    let last = "SELECT COALESCE(max(i.reason || ' ' || i.detail), '') FROM docmill.ingestion i
        JOIN docmill.document d ON d.id = i.document_id WHERE d.depth = 3 AND i.status = 'failed'";
    until(SOON, || async {
        world.scalar(OPEN).await == "0" && !world.scalar(last).await.is_empty()
    })
    .await;
    let said = world.scalar(last).await;
    assert!(
        said.starts_with("unsupported_type") && said.contains("limits.container_depth is 3"),
        "{said}"
    );
    assert_eq!(world.all_ids().await.len(), 4);
    worker.stop().await;
}

/// `docmill process` on a file, under these settings: exit code and standard output.
fn process(path: &std::path::Path, more: &[&str], settings: &[(&str, &str)]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOCMILL__")) {
        command.env_remove(name);
    }
    command.envs(settings.iter().map(|(name, value)| (format!("DOCMILL__{name}"), *value)));
    let done = command.arg("process").arg(path).args(more).output().unwrap();
    (done.status.code().unwrap(), String::from_utf8(done.stdout).unwrap())
}

/// Name, status and reason of a document and of those in it, as `docs/reference/json.md` has them.
fn ends(of: &Value, ended: &mut Vec<String>) {
    let mut alone = of.clone();
    let children = alone.as_object_mut().unwrap().remove("children");
    json::check("process", &alone);
    let name = alone["file"].as_str().unwrap().rsplit('/').next().unwrap();
    let how = alone["reason"].as_str().or(alone["reader"].as_str()).unwrap();
    ended.push(format!("{name} {how}"));
    let children = children.iter().flat_map(|all| all.as_array().unwrap());
    children.for_each(|child| ends(child, ended));
}

#[test]
fn process_reads_every_document_in_a_mail_within_the_workers_limits_and_fails_with_the_worst() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mail.eml");
    let sound = || {
        vec![
            file("a.pdf", &documents::invoice("A-1")),
            file("inner.eml", &mail(2, &[file("b.pdf", &documents::invoice("B-1"))])),
        ]
    };
    let broken = [sound(), vec![file("c.pdf", b"%PDF-1.7 and no more")]].concat();
    let (a, b) = ("a.pdf rules", "b.pdf rules");
    let (outer, inner) = ("mail.eml container", "inner.eml container");
    for (parts, settings, code, expected) in [
        (sound(), &[][..], 0, vec![outer, a, inner, b]),
        (broken, &[], 1, vec![outer, a, inner, b, "c.pdf corrupt"]),
        (
            sound(),
            &[("LIMITS__CONTAINER_DEPTH", "1")],
            1,
            vec![outer, a, "inner.eml unsupported_type"],
        ),
        (sound(), &[("LIMITS__FAMILY_DOCUMENTS", "2")], 1, vec![outer, a, "inner.eml too_large"]),
        (sound(), &[("LIMITS__CONTAINER_MEMBERS", "1")], 1, vec!["mail.eml too_large"]),
    ] {
        std::fs::write(&path, mail(1, &parts)).unwrap();
        let (ended, text) = process(&path, &["--json"], settings);
        let mut found = Vec::new();
        ends(&serde_json::from_str(&text).unwrap(), &mut found);
        assert_eq!((ended, found), (code, expected.into_iter().map(str::to_owned).collect()));
    }
    std::fs::write(&path, mail(1, &sound())).unwrap();
    let (_, text) = process(&path, &[], &[]);
    for line in ["\n  a.pdf: completed by rules\n", "\n    b.pdf: completed by rules\n", "A-1"] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
}

#[test]
fn a_pdf_to_which_more_is_attached_than_is_taken_is_read_and_flagged() {
    let mut pdf = lopdf::Document::load_mem(&documents::invoice("A-1")).unwrap();
    for number in ["B-1", "B-2"] {
        let content = documents::invoice(number);
        let stream = lopdf::Stream::new(dictionary! { "Type" => "EmbeddedFile" }, content);
        let stream = pdf.add_object(stream);
        pdf.add_object(dictionary! {
            "Type" => "Filespec", "UF" => lopdf::Object::string_literal(format!("{number}.pdf")),
            "EF" => dictionary! { "F" => stream },
        });
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pdf");
    pdf.save(&path).unwrap();
    for (most, children, flags) in [("2", 2, 0), ("1", 0, 1)] {
        for limit in ["LIMITS__CONTAINER_MEMBERS", "LIMITS__FAMILY_DOCUMENTS"] {
            let (_, text) = process(&path, &["--json"], &[(limit, most)]);
            let answer: Value = serde_json::from_str(&text).unwrap();
            let found = answer["children"].as_array().map_or(0, Vec::len);
            let reasons = answer["review_reasons"].as_array().unwrap();
            let flagged = reasons.iter().filter(|reason| **reason == "attachments_left_out");
            assert_eq!((found, flagged.count()), (children, flags), "{limit} {most}: {text}");
        }
    }
}
