//! The program itself: real processes, their output and exit codes.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::postgres::TestDatabase;

/// The program without anything of the surrounding environment that it would read.
fn docmill(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    command.args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOCMILL")) {
        if name != "DOCMILL_TEST_DATABASE_URL" {
            command.env_remove(name);
        }
    }
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

fn samples(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// A folder as store and queue, a database of the test's own, and the program set up for both.
struct Desk {
    database: TestDatabase,
    folder: tempfile::TempDir,
}

impl Desk {
    async fn new() -> Self {
        Self { database: TestDatabase::create().await, folder: tempfile::tempdir().unwrap() }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        run(&mut self.command(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let at = |name: &str| self.folder.path().join(name);
        let mut command = docmill(arguments);
        command
            .env("DOCMILL__DATABASE__URL", self.database.url())
            .env("DOCMILL__STORE__BACKEND", "folder")
            .env("DOCMILL__STORE__PATH", at("store"))
            .env("DOCMILL__QUEUE__BACKEND", "folder")
            .env("DOCMILL__QUEUE__PATH", at("queue"))
            .env("DOCMILL_OPERATOR", "ada");
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
        json(&output)
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("invoice.pdf");
    #[rustfmt::skip]
    let table = [
        (missing.as_path(), "No such file or directory"),
        (folder.path(),     "Is a directory"),
    ];
    for (path, reason) in table {
        let path = path.to_str().unwrap();
        for command in ["process", "transcribe"] {
            let output = run(&mut docmill(&[command, path]));
            let text = said(&output);
            assert!(text.contains(&format!("cannot read {path}: {reason}")), "{command}: {text}");
            assert_eq!(output.status.code(), Some(1));
        }
    }
}

#[test]
fn all_configuration_errors_are_reported_together_before_connecting() {
    let output = run(docmill(&["worker"]).env("DOCMILL__OCR__DPI", "7"));
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    for key in ["database.url", "queue.url", "store.bucket", "ocr.dpi"] {
        assert!(said.contains(key), "{key} is missing in:\n{said}");
    }
    let misspelt = run(docmill(&["worker"]).env("DOCMILL__QUEUE__VISIBILTY", "3s"));
    assert_eq!(misspelt.status.code(), Some(2));
    let said = String::from_utf8_lossy(&misspelt.stderr).into_owned();
    for part in ["visibilty", "database.url is missing", "store.bucket is missing"] {
        assert!(said.contains(part), "{part} is missing in:\n{said}");
    }
    assert!(!said.contains("queue.url"), "a section that could not be read lacks nothing");
    let gone = run(&mut docmill(&["config", "show", "--config", "/no/such/file.toml"]));
    assert_eq!(gone.status.code(), Some(2));
}

#[test]
fn settings_are_shown_without_their_secrets() {
    let secret = "postgres://u:hunter2@db/x";
    for format in [&["config", "show"][..], &["config", "show", "--json"]] {
        let output = run(docmill(format).env("DOCMILL__DATABASE__URL", secret));
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("***") && !text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_database_that_does_not_answer_is_named_with_what_to_check() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = run(docmill(&["list"])
        .env("DOCMILL__DATABASE__URL", format!("postgres://u:hunter2@127.0.0.1:{free}/x"))
        .env("DOCMILL__DATABASE__CONNECT_TIMEOUT", "1s"));
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(said.contains(&free.to_string()) && said.contains("database.url"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn a_reader_that_goes_away_does_not_make_the_program_panic() {
    let mut child = docmill(&["config", "show"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_handed_in_looked_at_cancelled_and_retried_by_command() {
    let desk = Desk::new().await;
    let file = desk.file("we ird näme $(id);&#.pdf", "%PDF-1.7 x");
    let submitted = desk.json(&["submit", &file, "--kind", "invoice", "--tag", "a=b"]);
    assert_eq!(submitted[0]["fate"], "submitted");
    let id = submitted[0]["ingestion_id"].as_str().unwrap().to_owned();
    let again = desk.json(&["submit", &file]);
    assert_eq!(
        (&again[0]["fate"], &again[0]["ingestion_id"]),
        (&"known".into(), &id.clone().into())
    );

    let story = desk.json(&["status", &id]);
    assert_eq!(
        (&story[0]["status"], &story[0]["state"]),
        (&"in-progress".into(), &"queued".into())
    );
    let listed = desk.json(&["list", "--status", "in-progress", "--kind", "invoice"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(desk.json(&["list", "--status", "failed"]), Value::Array(Vec::new()));

    assert_eq!(desk.json(&["cancel", &id, "--dry-run"])[0]["status"], "in-progress");
    assert_eq!(desk.json(&["cancel", &id, "--why", "test"])[0]["change"], "cancelled");
    assert_eq!(desk.json(&["cancel", &id])[0]["change"], "already_ended");
    assert_eq!(desk.json(&["retry", &id])[0]["change"], "reopened");
    // The same for all that match; never for all and some.
    for wrong in [&["cancel"][..], &["cancel", &id, "--kind", "invoice"]] {
        assert!(!desk.run(wrong).status.success(), "{wrong:?}");
    }
    let to_normal = ["reprioritize", "--to", "normal", "--kind", "invoice", "--since", "1h"];
    assert_eq!(desk.json(&to_normal)[0]["change"], "moved");
    assert_eq!(desk.json(&["cancel", "--tenant", "nobody"]), Value::Array(Vec::new()));
    assert_eq!(desk.json(&["cancel", "--kind", "invoice"])[0]["change"], "cancelled");
    assert_eq!(desk.json(&["cancel", "--kind", "invoice"]), Value::Array(Vec::new()));
    assert_eq!(desk.json(&["retry", &id])[0]["change"], "reopened");
    let story = desk.json(&["status", &id]);
    assert_eq!(story[0]["status"], "in-progress");

    assert_eq!(desk.json(&["pause", "--kind", "invoice"])[0]["name"], "invoice");
    assert_eq!(desk.json(&["status", &id])[0]["state"], "parked");
    assert_eq!(desk.json(&["resume", "--kind", "invoice"]), Value::Array(Vec::new()));
    assert_eq!(desk.json(&["dead", "list"]), Value::Array(Vec::new()));
    assert_eq!(desk.json(&["janitor", "--dry-run"])["resent"], Value::Array(Vec::new()));

    for people in [&["list"][..], &["status", &id], &["dead", "list"], &["janitor"]] {
        let output = desk.run(people);
        assert_eq!(output.status.code(), Some(0), "{people:?}: {}", said(&output));
    }
    let unknown = desk.run(&["status", "00000000-0000-0000-0000-000000000000"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(said(&unknown).contains("docmill list"), "{}", said(&unknown));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_no_documents_are_reported_and_the_rest_goes_on() {
    let desk = Desk::new().await;
    let (good, bad) = (desk.file("good.pdf", "%PDF-1.7"), desk.file("bad.txt", "hello\0"));
    let output = desk.run(&["submit", &bad, "/no/such.pdf", &good, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    let fates: Vec<_> = report.as_array().unwrap().iter().map(|line| &line["fate"]).collect();
    assert_eq!(fates, ["refused", "submitted"]);
    assert!(said(&output).contains("/no/such.pdf"));
    let empty = desk.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let output = desk.run(&["submit", empty.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no documents in this folder"), "{}", said(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_on_standard_input_are_handed_in_and_found_again_by_word_label_path_and_hash() {
    use std::io::Write as _;
    let desk = Desk::new().await;
    let odd = desk.file("100%_of\nthe \"bill\".pdf", "%PDF-one");
    let plain = desk.file("other.pdf", "%PDF-two");
    let arguments = ["submit", "-", "--null", "--tag", "from=mail", "--tenant", "t", "--json"];
    let mut child = desk
        .command(&arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    write!(child.stdin.take().unwrap(), "{odd}\0{plain}\0").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(json(&output).as_array().unwrap().len(), 2);

    let hash = "sha256 of nothing we have";
    for (asked, found) in [
        (&["search", "100%_of"][..], 1),
        (&["search", "100%_of", "other"], 0),
        (&["search", "PDF", "mail"], 2),
        (&["search", "--tag", "from"], 2),
        (&["search", "--tag", "from=post"], 0),
        (&["search", "pdf", "--tenant", "u"], 0),
        (&["lookup", "--path", "other.pdf"], 1),
        (&["lookup", "--hash", hash], 0),
    ] {
        let output = desk.run(&[asked, &["--json"]].concat());
        let rows = json(&output).as_array().unwrap().len();
        let code = i32::from(found == 0);
        assert_eq!((rows, output.status.code()), (found, Some(code)), "{asked:?}");
    }
    let rows = desk.json(&["search", "other"]);
    let hash = rows[0]["sha256"].as_str().unwrap();
    let by_hash = desk.json(&["lookup", "--hash", hash.get(..12).unwrap()]);
    assert_eq!(by_hash[0]["original_name"], "other.pdf");
    let manifest = desk.run(&["manifest"]);
    let lines = String::from_utf8(manifest.stdout).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    let wrong = desk.run(&["submit", &plain, "--null"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn one_document_is_processed_without_database_or_queue() {
    let file = samples("blank.pdf");
    let output = run(&mut docmill(&["process", file.to_str().unwrap(), "--json"]));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let processed = json(&output);
    assert_eq!(processed["reason"], "no_text", "{processed}");
    assert_eq!(processed["format"], "pdf");
    let file = samples("invoice_en.pdf");
    let output = run(&mut docmill(&["transcribe", file.to_str().unwrap(), "--format", "markdown"]));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("| Invoice number | HF-2026-0418 |"), "{text}");
}

#[test]
fn a_document_is_printed_as_lines_blocks_and_pieces_with_every_word_in_each() {
    let file = samples("invoice_en.pdf");
    let print = |format: &str| {
        let arguments =
            ["transcribe", file.to_str().unwrap(), "--format", format, "--chunk-tokens", "40"];
        let output = run(&mut docmill(&arguments));
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let words = |text: &str| -> Vec<String> {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words
    };
    let lines = print("lines");
    let usual = run(&mut docmill(&["transcribe", file.to_str().unwrap()]));
    assert_eq!(lines, String::from_utf8(usual.stdout).unwrap(), "lines are what is printed");
    let text = print("text");
    assert!(text.contains("Stacking chair, beech\t24\t58.50\t20%\t1,404.00"), "{text}");
    assert_eq!(words(&text), words(&lines));
    let chunks: Value = serde_json::from_str(&print("chunks")).unwrap();
    let chunks = chunks["chunks"].as_array().unwrap();
    let joined: Vec<&str> = chunks.iter().map(|chunk| chunk["text"].as_str().unwrap()).collect();
    assert_eq!(words(&joined.join(" ")), words(&lines));
    assert!(chunks.iter().all(|chunk| chunk["tokens"].as_u64().unwrap() <= 40), "{chunks:?}");
    assert!(chunks.iter().all(|chunk| chunk["spots"][0]["page"] == 1), "{chunks:?}");
}

#[test]
fn the_embedded_mode_reads_documents_and_shows_them_again_on_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    // Postgres may run as another user, who must get into the folder.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let data = folder.path().join("data");
    let files = ["truncated.pdf", "invoice_en.pdf"].map(samples);
    let arguments = [
        "dev",
        "--json",
        "--data",
        data.to_str().unwrap(),
        files[0].to_str().unwrap(),
        files[1].to_str().unwrap(),
    ];
    let first = run(&mut docmill(&arguments));
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let ends = json(&first);
    assert_eq!(ends[0]["reason"], "corrupt", "{ends}");
    assert_eq!(
        (&ends[1]["status"], &ends[1]["number"]),
        (&"completed".into(), &"HF-2026-0418".into())
    );
    let second = run(&mut docmill(&arguments));
    assert_eq!(second.status.code(), Some(0), "{}", said(&second));
    assert_eq!(json(&second), ends, "nothing was read twice");
}
