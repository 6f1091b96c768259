//! `docmill inbox` as a real process, beside an IMAP server, Microsoft Graph and a folder: each mail and file
//! becomes one document, whenever the process dies and however many run.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use docmill_testkit::graph::{self, GraphFault};
use docmill_testkit::identity;
use docmill_testkit::imap::{Encryption, Extensions, ImapFault, LOGIN, Server, acceptor};
use docmill_testkit::sqs::{Action, Failure};
use serde_json::Value;

use crate::support::process::{Process, docmill};
use crate::support::redis::make_certificates;
use crate::support::world::{SOON, World, until};

const DONE: &str = "docmill";
const FAILED: &str = "docmill-failed";
/// Rows, and documents among them.
const ROWS: &str = "SELECT count(*) || ' ' || count(DISTINCT document_id) FROM docmill.ingestion";

fn mail(number: usize) -> Vec<u8> {
    format!(
        "From: SECRETMARK@example.com\r\nSubject: SECRETMARK {number}\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain\r\n\r\nInvoice {number}\r\n"
    )
    .into_bytes()
}

/// A world with a file of settings for its sources.
struct Inboxes {
    world: World,
    settings: tempfile::TempDir,
}

impl Inboxes {
    async fn new(sources: &str) -> Self {
        let settings = tempfile::tempdir().unwrap();
        std::fs::write(settings.path().join("password"), LOGIN.1).unwrap();
        std::fs::write(settings.path().join("secret"), "secret-1").unwrap();
        let file = settings.path().join("docmill.toml");
        let folder = settings.path().display().to_string();
        let text = format!(
            "[inbox]\npoll = \"200ms\"\ntimeout = \"20s\"\n{}",
            sources.replace("FOLDER", &folder)
        );
        std::fs::write(file, text).unwrap();
        Self { world: World::new().await, settings }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let file = self.settings.path().join("docmill.toml");
        let bound = [("LIMITS__DOCUMENT_BYTES", "100KiB")];
        let mut command = docmill(&self.world, &[&["inbox"], arguments].concat(), &bound);
        command.arg("--config").arg(file);
        command
    }

    fn start(&self) -> Process {
        Process::spawn(self.command(&[]), "warn,docmill=info", self.world.logs.path())
    }

    /// Takes what is there; the report of the one source.
    fn take(&self) -> Value {
        let mut command = self.command(&["--once", "--json"]);
        let output = tokio::task::block_in_place(|| command.stdin(Stdio::null()).output().unwrap());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("SECRETMARK"), "content in the log: {said}");
        let all: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        all.get(0).cloned().unwrap()
    }

    /// So many documents, each with a message.
    async fn assert_handed_in_once(&self, count: usize) {
        assert_eq!(self.world.scalar(ROWS).await, format!("{count} {count}"));
        let mut sent = BTreeSet::new();
        loop {
            let messages = self.world.queue.receive(10, Duration::ZERO).await.unwrap();
            if messages.is_empty() {
                break;
            }
            sent.extend(messages.into_iter().map(|message| message.body));
        }
        assert_eq!(sent.len(), count, "each has a message");
    }
}

fn imap_source(server: &Server, more: &str) -> String {
    format!(
        "[[inbox.sources]]\nname = \"mails\"\nhost = \"localhost\"\nport = {}\nuser = \"{}\"\n\
         password_file = \"FOLDER/password\"\ntenant = \"t\"\n{more}\n",
        server.port(),
        LOGIN.0
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_mails_become_a_hundred_documents_and_one_beyond_the_limit_stops_none() {
    let server = Server::start(Extensions::ALL).await.unwrap();
    let inboxes = Inboxes::new(&imap_source(&server, "tls = \"none\"")).await;
    for number in 0..50 {
        server.deliver(mail(number));
    }
    let large = server.deliver([mail(100), vec![b'x'; 200 << 10]].concat());
    let mut process = inboxes.start();
    until(SOON, || async { server.mails(DONE).len() == 50 }).await;
    // The rest comes while the server is watched.
    for number in 50..100 {
        server.deliver(mail(number));
    }
    until(SOON, || async { server.mails(DONE).len() == 100 }).await;
    assert_eq!((server.mails("INBOX").len(), server.mails(FAILED).len()), (0, 1));
    process.terminate();
    assert!(process.ended(SOON).await.success());
    let log = process.log();
    assert!(log.contains(&format!("7-{large} is marked as failed: larger than limits")), "{log}");
    assert!(!log.contains("SECRETMARK") && !log.contains(LOGIN.0), "{log}");
    inboxes.assert_handed_in_once(100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imap_inbox_killed_at_every_command_neither_loses_nor_doubles_a_mail() {
    let commands = ["SELECT", "SEARCH", "RFC822.SIZE", "BODY.PEEK"];
    for (extensions, mark, marks) in [
        (Extensions::ALL, "move", &["UID MOVE"][..]),
        (Extensions::ALL, "seen", &["UID STORE"][..]),
        (
            Extensions { uid_plus: true, ..Extensions::NONE },
            "move",
            &["UID COPY", "UID STORE", "UID EXPUNGE"][..],
        ),
    ] {
        let server = Server::start(extensions).await.unwrap();
        let source = imap_source(&server, &format!("tls = \"none\"\nmark = \"{mark}\""));
        let inboxes = Inboxes::new(&source).await;
        let mut count = 0;
        for command in commands.iter().chain(marks) {
            for fault in [ImapFault::Silence, ImapFault::SilenceAfter] {
                server.deliver(mail(count));
                count += 1;
                let before = server.commands().iter().filter(|it| it.contains(command)).count();
                server.fail(command, fault, 1);
                let mut process = inboxes.start();
                assert!(server.received(command, before + 1, SOON).await, "{command}");
                process.kill();
            }
        }
        let report = inboxes.take();
        assert!(report["problem"].is_null() && report["failed"] == 0, "{report}");
        let unseen = server.mails("INBOX").into_iter().filter(|mail| mail.flags.is_empty());
        assert_eq!(unseen.count(), 0, "{mark}");
        inboxes.assert_handed_in_once(count).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_inbox_killed_at_every_request_neither_loses_nor_doubles_a_mail() {
    let (server, entra) =
        (graph::Server::start().await.unwrap(), identity::Server::start().await.unwrap());
    let source = format!(
        "[[inbox.sources]]\nname = \"mails\"\nsource = \"graph\"\nuser = \"{}\"\nendpoint = \"{}\"\n\
         authority = \"{}\"\ndirectory_id = \"tenant-1\"\nclient_id = \"client-1\"\n\
         client_secret_file = \"FOLDER/secret\"\n",
        graph::USER,
        server.endpoint(),
        entra.endpoint()
    );
    let inboxes = Inboxes::new(&source).await;
    // As Exchange does; so the bytes do not tell one mail from another.
    server.rewrite_content();
    let mut count = 0;
    for request in ["/mailFolders?", "/messages?", "value", "/move"] {
        for fault in [GraphFault::Silence, GraphFault::SilenceAfter] {
            server.deliver(mail(count));
            count += 1;
            let before = server.calls().iter().filter(|it| it.contains(request)).count();
            server.fail(request, fault, 1);
            let mut process = inboxes.start();
            assert!(server.received(request, before + 1, SOON).await, "{request}");
            process.kill();
        }
    }
    let report = inboxes.take();
    assert!(report["problem"].is_null() && report["failed"] == 0, "{report}");
    assert_eq!((server.count_in(DONE), server.count_in("Inbox")), (count, 0));
    inboxes.assert_handed_in_once(count).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_mailbox_is_asked_again_when_it_said_and_the_other_one_goes_on() {
    let (server, entra) =
        (graph::Server::start().await.unwrap(), identity::Server::start().await.unwrap());
    let imap = Server::start(Extensions::ALL).await.unwrap();
    let graph_source = format!(
        "[[inbox.sources]]\nname = \"graph\"\nsource = \"graph\"\nuser = \"{}\"\nendpoint = \"{}\"\n\
         authority = \"{}\"\ndirectory_id = \"tenant-1\"\nclient_id = \"client-1\"\n\
         client_secret_file = \"FOLDER/secret\"\nmark = \"seen\"\n",
        graph::USER,
        server.endpoint(),
        entra.endpoint()
    );
    let inboxes =
        Inboxes::new(&format!("{graph_source}{}", imap_source(&imap, "tls = \"none\""))).await;
    server.deliver(mail(1));
    server.fail("value", GraphFault::Throttled(5), 1);
    imap.deliver(mail(2));
    let mut process = inboxes.start();
    until(SOON, || async { imap.mails(DONE).len() == 1 }).await;
    until(SOON, || async { server.messages().iter().all(|mail| mail.is_read) }).await;
    let log = process.log();
    assert!(log.contains("inbox graph") && log.contains("\"wait_s\":5"), "{log}");
    let metrics = format!("http://{}/metrics", process.pages());
    let counted = [
        "docmill_inbox_failures_total{inbox=\"graph\"} 1",
        "docmill_inbox_passes_total{inbox=\"graph\"} ",
        "docmill_inbox_items_total{inbox=\"graph\",end=\"submitted\"} 1",
        "docmill_inbox_items_total{inbox=\"mails\",end=\"failed\"} 0",
    ];
    until(SOON, || async {
        let page = reqwest::get(&metrics).await.unwrap().text().await.unwrap();
        counted.iter().all(|line| page.contains(line))
    })
    .await;
    process.terminate();
    assert!(process.ended(SOON).await.success());
    inboxes.assert_handed_in_once(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_inboxes_at_once_on_one_mailbox_make_one_document_of_each_mail() {
    let server = Server::start(Extensions::ALL).await.unwrap();
    let inboxes = Inboxes::new(&imap_source(&server, "tls = \"none\"")).await;
    for number in 0..60 {
        server.deliver(mail(number));
    }
    let mut both = [inboxes.start(), inboxes.start()];
    until(SOON, || async { server.mails("INBOX").is_empty() }).await;
    for process in &mut both {
        process.terminate();
        assert!(process.ended(SOON).await.success());
    }
    assert_eq!(server.mails(FAILED), []);
    inboxes.assert_handed_in_once(60).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_goes_only_to_a_server_whose_certificate_is_trusted() {
    let certificates = tempfile::tempdir().unwrap();
    make_certificates(certificates.path());
    let read = |name: &str| std::fs::read(certificates.path().join(name)).unwrap();
    let tls = acceptor(&read("server.pem"), &read("server.key")).unwrap();
    for (word, encryption) in
        [("tls", Encryption::Tls(tls.clone())), ("starttls", Encryption::Starttls(tls.clone()))]
    {
        let server = Server::start_encrypted(Extensions::ALL, encryption).await.unwrap();
        server.deliver(mail(1));
        let inboxes = Inboxes::new(&imap_source(&server, &format!("tls = \"{word}\""))).await;
        let report = inboxes.take();
        let problem = report["problem"].as_str().unwrap_or_default().to_owned();
        assert!(problem.contains("no TLS with the IMAP server"), "{word}: {report}");
        assert!(!server.commands().iter().any(|it| it.contains("AUTH")), "{word}");
        let mut command = inboxes.command(&["--once"]);
        command.env("SSL_CERT_FILE", certificates.path().join("authority.pem"));
        let output = tokio::task::block_in_place(|| command.output().unwrap());
        assert!(output.status.success(), "{word}: {}", String::from_utf8_lossy(&output.stderr));
        inboxes.assert_handed_in_once(1).await;
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_inbox_killed_between_store_rows_and_message_makes_one_document_of_each_file() {
    let folder = tempfile::tempdir().unwrap();
    let (watched, outside) = (folder.path().join("in"), folder.path().join("outside.pdf"));
    std::fs::create_dir(&watched).unwrap();
    let mut source = "[[inbox.sources]]\nname = \"scans\"\nsource = \"folder\"\n".to_owned();
    writeln!(source, "path = \"{}\"", watched.display()).unwrap();
    let inboxes = Inboxes::new(&source).await;
    let world = &inboxes.world;
    std::fs::write(&outside, "%PDF-outside").unwrap();
    std::os::unix::fs::symlink(&outside, watched.join("link.pdf")).unwrap();
    std::fs::write(watched.join(".hidden.pdf"), "%PDF-hidden").unwrap();
    let put = |name: &str| {
        std::fs::write(folder.path().join("new"), format!("%PDF-{name}")).unwrap();
        std::fs::rename(folder.path().join("new"), watched.join(name)).unwrap();
    };

    // The bytes are in the store, the rows are not.
    put("a.pdf");
    let mut lock = world.pool.begin().await.unwrap();
    let exclusive = "LOCK TABLE docmill.document IN SHARE ROW EXCLUSIVE MODE";
    sqlx::query(exclusive).execute(&mut *lock).await.unwrap();
    let mut process = inboxes.start();
    until(SOON, || async { world.store.list("documents/", None, 9).await.unwrap().len() == 1 })
        .await;
    process.kill();
    lock.rollback().await.unwrap();

    // The rows are written, the message is not sent.
    put("b.pdf");
    world.sqs.faults().fail(Action::SendMessageBatch, 1, Failure::Hang);
    let mut process = inboxes.start();
    until(SOON, || async { world.sqs.counts().open(Action::SendMessageBatch) == 1 }).await;
    process.kill();

    let report = inboxes.take();
    assert!(report["problem"].is_null() && report["failed"] == 0, "{report}");
    assert_eq!(names(&watched), [".hidden.pdf", "done", "failed", "link.pdf"]);
    assert_eq!(names(&watched.join("done")), ["a.pdf", "b.pdf"]);
    inboxes.assert_handed_in_once(2).await;
}
