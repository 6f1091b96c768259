//! The program itself on a folder laid out as a bucket, with real documents.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{Read as _, Write as _};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::reading::figures::illustrated;
use crate::support::documents::{invoice, pdf};
use crate::support::process::Process;
use crate::support::world::{SOON, until};

struct Desk {
    dir: TempDir,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("papers/2026")).unwrap();
        Self { dir }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
        for (name, _) in std::env::vars() {
            if name.starts_with("DOCMILL") || name.starts_with("BLOBFORGE") {
                command.env_remove(name);
            }
        }
        command
            .arg("bucket")
            .args(arguments)
            .env("DOCMILL__BUCKET__PATH", self.dir.path().join("bucket"))
            .env("BLOBFORGE_S3_PREFIX", "odd+%/")
            .env("BLOBFORGE_WORKER_ID", "desk")
            .stdin(Stdio::null());
        command
    }

    /// A file of a document's result.
    fn packed_text(&self, hash: &str, name: &str) -> String {
        String::from_utf8(self.packed_bytes(hash, name)).unwrap()
    }

    fn packed_bytes(&self, hash: &str, name: &str) -> Vec<u8> {
        let packed = self.dir.path().join(format!("bucket/odd+%25/store/out/{hash}.zip"));
        let mut packed = zip::ZipArchive::new(std::fs::File::open(packed).unwrap()).unwrap();
        let mut bytes = Vec::new();
        packed.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {said}"))
    }
}

/// A bucket that has converted an invoice and a note and failed a broken file; the invoice's hash,
/// and the folder of the three.
fn desk_with_papers() -> (Desk, String, String) {
    let desk = Desk::new();
    let papers = desk.dir.path().join("papers");
    std::fs::write(papers.join("2026/in, voice.pdf"), invoice("4711")).unwrap();
    let note = [
        (72.0, 142.0, "Hello from a note"),
        (72.0, 192.0, "Berth"),
        (200.0, 192.0, "Fee"),
        (72.0, 208.0, "North *"),
        (200.0, 208.0, "12.50"),
        (72.0, 224.0, "South"),
        (200.0, 224.0, "9.00"),
    ];
    std::fs::write(papers.join("note.pdf"), pdf(&note)).unwrap();
    std::fs::write(papers.join("broken.pdf"), "%PDF-1.7 and nothing else").unwrap();
    let papers = papers.display().to_string();
    assert_eq!(desk.json(&["ingest", &papers]).as_array().unwrap().len(), 3);
    let counts = desk.json(&["work", "--once", "--jobs", "2"]);
    let count = |state: &str| counts.get(state).and_then(Value::as_u64);
    assert_eq!((count("done"), count("dead")), (Some(2), Some(1)), "{counts}");
    let found = desk.json(&["lookup", "--path", "2026/in, voice.pdf"]);
    assert_eq!(found.get("state").unwrap(), "done");
    let hash = found.get("hash").and_then(Value::as_str).unwrap().to_owned();
    (desk, hash, papers)
}

#[test]
fn a_folder_of_papers_is_handed_in_converted_and_found_again() {
    let (desk, hash, papers) = desk_with_papers();
    let standing = desk.json(&["status"]);
    assert_eq!((&standing["done"], &standing["dead"]), (&2.into(), &1.into()));
    assert!(desk.packed_text(&hash, "content.md").contains("4711"));
    let table = "## Hello from a note\n\n| Berth | Fee |\n| --- | --- |\n| North \\* | 12.50 |\n";
    let note = desk.json(&["lookup", "--path", "note.pdf"])["hash"].as_str().unwrap().to_owned();
    let text = desk.packed_text(&note, "content.md");
    assert!(text.starts_with(table), "{text}");
    let info: Value = serde_json::from_str(&desk.packed_text(&hash, "info.json")).unwrap();
    assert_eq!((&info["hash"], &info["worker_id"]), (&hash.as_str().into(), &"desk-0".into()));
    assert_eq!(info["tags"], serde_json::json!(["2026", "in, voice"]));
    let extraction = desk.packed_text(&hash, "assets/extraction.json");
    let extraction: Value = serde_json::from_str(&extraction).unwrap();
    assert_eq!(extraction["data"]["invoice_number"], "4711", "{extraction}");
    let again = desk.json(&["ingest", &papers]);
    assert!(again.as_array().unwrap().iter().all(|file| file["fate"] == "known"), "{again}");
    assert_eq!(desk.json(&["search", "VOICE", "2026"])[0][0], hash);
}

#[test]
fn figures_of_a_document_are_published_beside_its_markdown_and_it_leads_to_them() {
    let desk = Desk::new();
    let papers = desk.dir.path().join("papers");
    std::fs::write(papers.join("tide.pdf"), illustrated()).unwrap();
    desk.json(&["ingest", &papers.display().to_string()]);
    assert_eq!(desk.json(&["work", "--once"])["done"], 1);
    let hash = desk.json(&["lookup", "--path", "tide.pdf"])["hash"].as_str().unwrap().to_owned();
    let text = desk.packed_text(&hash, "content.md");
    assert!(text.contains("![Figure 1 of page 1](assets/_page_0_Figure_1.jpeg)\n"), "{text}");
    let picture = desk.packed_bytes(&hash, "assets/_page_0_Figure_1.jpeg");
    let picture = image::load_from_memory(&picture).unwrap();
    assert!(picture.width() > picture.height() && picture.height() > 400, "{picture:?}");
}

#[test]
fn the_earlier_programs_commands_fetch_show_and_move_documents() {
    let (desk, hash, _papers) = desk_with_papers();
    let hash = hash.as_str();
    let out = desk.dir.path().display().to_string();
    assert!(desk.run(&["download", hash, "-o", &out]).status.success());
    let saved = std::fs::read(desk.dir.path().join(format!("{hash}.zip"))).unwrap();
    assert!(zip::ZipArchive::new(std::io::Cursor::new(saved)).is_ok());
    assert!(!desk.run(&["download", hash, "-o", &out]).status.success(), "it is there already");
    assert!(desk.json(&["preview", hash]).to_string().contains("4711"));
    assert_eq!(desk.json(&["status", hash.get(..12).unwrap()])["state"], "done");
    assert_eq!(desk.json(&["workers"])[0][0]["status"], "stopped");
    let dead = desk.json(&["list", "--state", "dead"]);
    let dead = dead[0]["hash"].as_str().unwrap();
    let retried =
        desk.json(&["retry", dead.get(..10).unwrap(), "--priority", "high", "--reset-retries"]);
    assert_eq!(retried[0]["change"], "queued");
    assert_eq!(desk.json(&["status"])["todo"]["2_high"], 1);
    assert_eq!(desk.json(&["reprioritize", dead, "--to", "1_critical"])[0]["change"], "moved");
    assert_eq!(desk.json(&["reprioritize", dead, "4_low"])[0]["change"], "moved");
    assert!(!desk.run(&["reprioritize", dead]).status.success(), "no priority is named");
    assert_eq!(desk.json(&["search-queue", "broken"])[0][0], dead);
    assert!(!desk.run(&["search-queue", "VOICE"]).status.success(), "that one has ended");
    assert_eq!(desk.json(&["cancel", dead])[0]["change"], "cancelled");
    assert!(desk.json(&["logs", dead]).to_string().contains("now: "));
    assert_eq!(desk.json(&["clear-dead"])[0], dead);
    assert_eq!(desk.json(&["status"])["dead"], 1, "it was only named");
    assert_eq!(desk.json(&["clear-dead", "--yes"])[0]["change"], "removed");
    assert_eq!(desk.json(&["status"])["dead"], 0);
    assert_eq!(desk.json(&["manifest"])["entries"].as_object().unwrap().len(), 2);
    assert!(desk.json(&["janitor", "--dry-run"])["acts"].as_array().unwrap().is_empty());
}

#[test]
fn a_list_on_standard_input_is_submitted_despite_single_bad_paths() {
    let desk = Desk::new();
    let papers = desk.dir.path().join("papers");
    let odd = papers.join("we, \"ird\"\nname.pdf");
    for path in [&odd, &papers.join("2026/a.pdf"), &papers.join("2026/b.pdf")] {
        std::fs::write(path, invoice(&path.display().to_string())).unwrap();
    }
    let list = [odd.clone(), papers.join("nowhere.pdf"), papers.join("2026")];
    let list: Vec<u8> = list
        .iter()
        .flat_map(|path| [path.as_os_str().as_encoded_bytes(), b"\0"].concat())
        .collect();
    let mut child = desk
        .command(&["ingest", "-", "-0", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&list).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "one was refused");
    let files: Value = serde_json::from_slice(&output.stdout).unwrap();
    let fates: Vec<_> = files.as_array().unwrap().iter().map(|file| &file["fate"]).collect();
    assert_eq!(fates, ["refused", "queued", "queued", "queued"], "{files}");
    assert_eq!(desk.json(&["status"])["todo"]["3_normal"], 3);
    let found = desk.json(&["lookup", "--path", "we, \"ird\"\nname.pdf"]);
    assert_eq!(found["state"], "todo", "{found}");
    assert_eq!(desk.run(&["ingest", "-0", "papers"]).status.code(), Some(2), "no list is named");
}

#[test]
fn missing_or_contradictory_settings_are_wrong_use_and_named() {
    let desk = Desk::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    command.args(["bucket", "status"]).env_remove("BLOBFORGE_S3_BUCKET");
    command.env_remove("DOCMILL__BUCKET__PATH").env_remove("DOCMILL__BUCKET__NAME");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bucket.name"));
    assert_eq!(desk.run(&["retry"]).status.code(), Some(2));
    assert_eq!(desk.run(&["lookup"]).status.code(), Some(2));
    let unknown = desk.run(&["lookup", "--path", "nowhere.pdf"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("docmill bucket search"));
}

/// The body of a worker's page, and its status.
async fn page(worker: &Process, path: &str) -> (u16, String) {
    let answer = reqwest::get(format!("http://{}{path}", worker.pages())).await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workers_pages_show_liveness_and_outcomes() {
    let desk = Desk::new();
    let papers = desk.dir.path().join("papers");
    std::fs::write(papers.join("good.pdf"), invoice("4712")).unwrap();
    std::fs::write(papers.join("broken.pdf"), "%PDF-1.7 and nothing else").unwrap();
    desk.json(&["ingest", &papers.display().to_string()]);
    let mut command = desk.command(&["work", "--jobs", "2"]);
    command.env("DOCMILL__WORKER__ADDRESS", "127.0.0.1:0");
    let mut worker = Process::spawn(command, "warn,docmill=info", desk.dir.path());
    until(SOON, || async { worker.log().contains("health pages on ") }).await;
    let counts = |text: &str, outcome: &str| {
        text.contains(&format!("docmill_attempts_total{{outcome=\"{outcome}\"}} 1"))
    };
    until(SOON, || async {
        let (_, text) = page(&worker, "/metrics").await;
        counts(&text, "completed") && counts(&text, "corrupt")
    })
    .await;
    // Gauges are written every other second.
    until(SOON, || async {
        let (_, text) = page(&worker, "/metrics").await;
        text.contains("docmill_slots 2") && text.contains("docmill_slots_used 0")
    })
    .await;
    let (status, alive) = page(&worker, "/livez").await;
    assert_eq!((status, alive.contains("\"alive\":true")), (200, true), "{alive}");
    let (status, ready) = page(&worker, "/readyz").await;
    assert_eq!((status, ready.contains("\"store\":true")), (200, true), "{ready}");

    // A second worker on the machine works without pages.
    let address = worker.pages();
    let mut second = desk.command(&["work", "--once"]);
    let second = second.env("DOCMILL__WORKER__ADDRESS", address).output().unwrap();
    assert!(second.status.success());
    assert!(String::from_utf8_lossy(&second.stderr).contains("health pages disabled"));

    worker.terminate();
    assert!(worker.ended(SOON).await.success());
    assert_eq!(desk.json(&["workers"])[0][0]["status"], "stopped");
}

#[test]
fn a_variable_that_contradicts_the_buckets_settings_is_refused_with_its_replacement() {
    let desk = Desk::new();
    for (variable, setting, own, other) in [
        ("BLOBFORGE_MAX_RETRIES", "max_retries", "3", "9"),
        ("BLOBFORGE_HEARTBEAT_INTERVAL", "heartbeat_interval", "60", "30"),
        ("BLOBFORGE_STALE_TIMEOUT_MINUTES", "stale_timeout_minutes", "15", "20"),
        ("BLOBFORGE_CONVERSION_TIMEOUT", "conversion_timeout", "3600", "fast"),
    ] {
        for command in [&["status"][..], &["work", "--once"]] {
            let refused = desk.command(command).env(variable, other).output().unwrap();
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success(), "{variable}: {said}");
            assert!(said.contains(&format!("config --set {setting}=")), "{said}");
        }
        let same = desk.command(&["status"]).env(variable, own).output().unwrap();
        assert!(same.status.success(), "{variable} says what the bucket says");
        let config = desk.command(&["config"]).env(variable, other).output().unwrap();
        assert!(config.status.success(), "the command that mends it");
    }
}

#[test]
fn commands_that_are_called_otherwise_here_say_how() {
    let desk = Desk::new();
    for (old, new) in [
        (&["convert", "a.pdf", "--force"][..], "docmill process"),
        (&["hydrate", "--dry-run"], "bucket download"),
        (&["repair-metadata"], "manifest --rebuild"),
        (&["retry-all"], "retry --failed --dead"),
    ] {
        let output = desk.run(old);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(new), "{old:?}: {said}");
    }
}
