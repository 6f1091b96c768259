//! `docs/reference/json.md` against what the commands print.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use docmill_testkit::models::{Answer, Script, Server};
use serde_json::{Value, json};

use crate::support::documents;
use crate::support::process::docmill;
use crate::support::redis::Redis;
use crate::support::world::World;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/json.md");

/// Field and type, by command.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut commands = BTreeMap::new();
    for section in page.split("\n## `docmill ").skip(1) {
        let (command, text) = section.split_once('`').unwrap();
        let row = |line: &str| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let field = cells[0].strip_prefix('`')?.strip_suffix('`')?;
            Some((field.to_owned(), cells[1].to_owned()))
        };
        let rows = text.lines().filter(|line| line.starts_with("| `")).filter_map(row);
        let mut fields: BTreeMap<String, String> = rows.collect();
        // The page explains the four fields of a box once.
        let boxes: Vec<String> = fields
            .iter()
            .filter(|(_, kind)| *kind == "box")
            .map(|(name, _)| name.clone())
            .collect();
        for name in boxes {
            for side in ["x", "y", "w", "h"] {
                fields.insert(format!("{name}.{side}"), "number".to_owned());
            }
        }
        commands.insert(command.to_owned(), fields);
    }
    commands
}

/// The paths of all fields, but for those inside of a document's own data.
fn paths(value: &Value, at: &str, free: &BTreeSet<&str>, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                if !free.contains(path.as_str()) {
                    paths(value, &path, free, found);
                }
                found.insert(path);
            }
        }
        Value::Array(elements) => {
            let at = if at.is_empty() { String::new() } else { format!("{at}[]") };
            elements.iter().for_each(|element| paths(element, &at, free, found));
        }
        _ => {}
    }
}

pub(crate) fn check(command: &str, printed: &Value) {
    let documented = documented();
    let fields = documented.get(command).unwrap_or_else(|| panic!("{command} is not documented"));
    let is_free = |(_, kind): &(&String, &String)| kind.starts_with("data");
    let free = fields.iter().filter(is_free).map(|(name, _)| name.as_str()).collect();
    let mut found = BTreeSet::new();
    paths(printed, "", &free, &mut found);
    for path in &found {
        assert!(
            fields.contains_key(path),
            "docs/reference/json.md, {command}: `{path}` is missing"
        );
    }
    // The content of an empty list or of null is not shown.
    let shows = |(path, kind): &(&String, &String)| !path.contains('.') && !kind.contains("absent");
    for (path, _) in fields.iter().filter(shows) {
        assert!(found.contains(path), "docs/reference/json.md, {command}: `{path}` does not exist");
    }
}

fn run(world: &World, arguments: &[&str]) -> Value {
    run_with(world, arguments, &[])
}

fn run_with(world: &World, arguments: &[&str], settings: &[(&str, &str)]) -> Value {
    printed(&mut docmill(world, &[arguments, &["--json"]].concat(), settings))
}

/// The program by itself, with its bucket in a folder.
fn alone(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DOCMILL")) {
        command.env_remove(name);
    }
    command.env("DOCMILL__BUCKET__PATH", folder.join("bucket"));
    command.env("DOCMILL__LLM__SCHEDULER__PATH", folder.join("board"));
    printed(command.args(arguments).arg("--json"))
}

fn printed(command: &mut Command) -> Value {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{command:?}: {said}"))
}

fn sample(name: &str) -> String {
    format!("{}/samples/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_answer_ends_process_with_json_that_names_the_fault() {
    let silent = Server::start(Script::always(Answer::Hang)).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sample = sample("invoice_en.pdf");
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    let url = silent.base_url();
    let settings = [
        ("PROVIDER", "openai"),
        ("SERVER", "llama_cpp"),
        ("MODEL", "m"),
        ("BASE_URL", &url),
        ("TIMEOUT", "1s"),
    ];
    command.envs(settings.map(|(name, value)| (format!("DOCMILL__LLM__{name}"), value)));
    command.env("DOCMILL__BUCKET__PATH", folder.path().join("bucket"));
    let printed =
        tokio::task::block_in_place(|| printed(command.args(["process", &sample, "--json"])));
    let documented = &documented()["process"];
    for field in ["file", "error", "error.fault", "error.message"] {
        assert!(documented.contains_key(field), "{field} is not documented");
    }
    assert_eq!(printed["error"]["fault"], "transient", "{printed}");
    assert_eq!(printed["file"], sample.as_str());
    assert_eq!(printed.as_object().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_the_commands_matches_its_page() {
    let world = World::new().await;
    let sample = sample("invoice_en.pdf");
    check("process", &run(&world, &["process", &sample]));
    let submitted = run(&world, &["submit", &sample, "--tenant", "t", "--kind", "invoice"]);
    check("submit", &submitted);
    check("search", &run(&world, &["search", "invoice_en"]));
    check("search", &run(&world, &["lookup", "--path", "invoice_en.pdf"]));
    check("search", &run(&world, &["manifest"]));
    let id = submitted[0]["ingestion_id"].as_str().unwrap();
    check("retry", &run(&world, &["reprioritize", id, "--to", "high"]));
    let worker = world.worker().await;
    world.until(id.parse().unwrap(), "status", "completed").await;
    world.until_empty().await;
    check("status", &run(&world, &["status", id]));
    let listed = run(&world, &["list"]);
    let (status, printed) = (&documented()["status"], listed[0].as_object().unwrap());
    assert!(printed.len() > 20 && printed.keys().all(|field| status.contains_key(field)));
    check("retry", &run(&world, &["retry", id]));
    world.until(id.parse().unwrap(), "status", "completed").await;
    worker.stop().await;
    check("retry", &run(&world, &["cancel", id]));
    check("pause", &run(&world, &["pause", "--kind", "receipt"]));
    world
        .execute(
            "UPDATE docmill.ingestion SET status = 'failed', reason = 'no_text',
        valid_structured_data = false, needs_human_review = true",
        )
        .await;
    check("review list", &run(&world, &["review", "list"]));
    check("review accept", &run(&world, &["review", "accept", id]));
    let correct = ["review", "correct", id, "--set", "total=12.00", "--why", "misread"];
    check("review accept", &run(&world, &correct));
    check("review accept", &run(&world, &["review", "undo", id]));
    check("review accept", &run(&world, &correct));
    let shown = run(&world, &["review", "show", id]);
    check("review show", &shown);
    let decisions = shown["revisions"].as_array().unwrap();
    let changed: Vec<&Value> = decisions.iter().map(|it| &it["changed_fields"]).collect();
    assert_eq!(changed[1..], [&json!(["total"]), &json!(["total"]), &json!(["total"])]);
    check("memory list", &run(&world, &["memory", "list", "--tenant", "t"]));
    check("memory forget", &run(&world, &["memory", "forget", "--all"]));
    check("dashboard", &run(&world, &["dashboard"]));
    check("doctor", &run(&world, &["doctor"]));
    check("janitor", &run(&world, &["janitor", "--dry-run"]));
    for command in ["block", "unblock"] {
        check("block", &run(&world, &[command, &"ab".repeat(32)]));
    }
    for change in [vec!["set", "--tenant", "t", "--days", "30"], vec!["list"]] {
        check("retention set", &run(&world, &[vec!["retention"], change].concat()));
    }
    check("erase", &run(&world, &["erase", "--tenant", "t", "--dry-run"]));
    let files = tempfile::tempdir().unwrap();
    let folder = files.path().to_str().unwrap();
    check("export", &run(&world, &["export", "--format", "ubl", "--output", folder]));
    check("migrate", &run(&world, &["migrate"]));
    check("config check", &run(&world, &["config", "check"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_inboxes_matches_its_page() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("docmill.toml").display().to_string();
    let path = folder.path().display();
    let source = format!("[[inbox.sources]]\nname='a'\nsource='folder'\npath='{path}/in'\n");
    std::fs::create_dir(folder.path().join("in")).unwrap();
    std::fs::write(&file, source).unwrap();
    check("inbox", &run(&world, &["inbox", "--once", "--config", &file]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_users_tokens_and_webhooks_matches_its_page() {
    let world = World::new().await;
    let users = |arguments: &[&str]| run(&world, &[&["users"], arguments].concat());
    let added = users(&["add", "carl", "--role", "administrator", "--tenant", "acme"]);
    check("users list", &added);
    // The rights that a change leaves out stay: nobody gets all tenants by it.
    let changed = &users(&["change", "carl", "--highest-priority", "low"])[0];
    let rights = ["role", "tenant", "highest_priority"].map(|field| changed[field].clone());
    assert_eq!(rights, ["administrator", "acme", "low"].map(Value::from));
    let changed = &users(&["change", "carl", "--all-tenants", "--role", "viewer"])[0];
    assert_eq!((&changed["tenant"], &changed["role"]), (&json!(""), &json!("viewer")));
    for wrong in [vec!["add", "eve", "--role", "viewer", "--tenant", ""], vec!["end", "nobody"]] {
        let arguments = [vec!["users"], wrong].concat();
        let output = docmill(&world, &arguments, &[]).stdin(Stdio::null()).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
    }
    assert!(users(&["end", "carl"])[0]["ended_at"].is_string());
    assert!(users(&["restore", "carl"])[0]["ended_at"].is_null());
    let made = run(&world, &["tokens", "create", "carl", "--label", "desk", "--days", "30"]);
    check("tokens create", &made);
    check("tokens list", &run(&world, &["tokens", "list", "carl"]));
    let id = made["id"].to_string();
    assert_eq!(run(&world, &["tokens", "revoke", &id]), json!({ "revoked": true }));
    assert_eq!(run(&world, &["tokens", "revoke", &id]), json!({ "revoked": false }));
    world
        .execute(
            "INSERT INTO docmill.webhook_target (name, place, url_hash)
                 VALUES ('erp', 'https://erp.example.com', 'x')",
        )
        .await;
    assert_eq!(run(&world, &["webhooks", "test", "erp"]), json!({ "asked": true }));
    assert_eq!(run(&world, &["webhooks", "test", "nobody"]), json!({ "asked": false }));
    check("webhooks targets", &run(&world, &["webhooks", "targets"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_dead_letters_matches_its_page() {
    let world = World::with_redrive(2).await;
    world.submit("a.pdf", documents::invoice("D-1")).await;
    world.receive_to_death().await;
    let letters = run(&world, &["dead", "list"]);
    check("dead list", &letters);
    check("dead list", &run(&world, &["dead", "redrive", "--dry-run"]));
    let id = letters[0]["message_id"].as_str().unwrap();
    check("dead show", &run(&world, &["dead", "show", id]));
    check("dead redrive", &run(&world, &["dead", "redrive"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_whose_history_cannot_be_read_is_not_shown_as_one_that_has_none() {
    let world = World::with_redrive(2).await;
    world.submit("a.pdf", documents::invoice("D-1")).await;
    world.receive_to_death().await;
    let id = run(&world, &["dead", "list"])[0]["message_id"].as_str().unwrap().to_owned();
    world.execute("ALTER TABLE docmill.attempt RENAME TO attempt_elsewhere").await;
    let shown = docmill(&world, &["dead", "show", &id], &[]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&shown.stderr);
    assert!(!shown.status.success() && said.contains("reading attempts"), "{said}");
    world.execute("DELETE FROM docmill.ingestion").await;
    let shown = run(&world, &["dead", "show", &id]);
    assert!(shown["ingestion"].is_null() && !shown["letter"].is_null(), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_json_of_costs_and_redis_matches_its_page() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    let id = world.submit("a.pdf", documents::invoice("C-1")).await;
    let worker = world.worker().await;
    world.until(id, "status", "completed").await;
    worker.stop().await;
    check("audit", &run(&world, &["audit"]));
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), "[[company]]\nname = \"Acme GmbH\"\n").unwrap();
    let path = file.path().to_str().unwrap();
    check("companies list", &run(&world, &["companies", "load", path]));
    check("suppliers count", &run(&world, &["suppliers", "count"]));
    check("costs", &run(&world, &["costs", "--by", "model"]));
    check("quality", &run(&world, &["quality"]));
    check("replay", &run(&world, &["replay"]));
    let redis = Redis::start().await;
    let url = redis.url();
    let settings = [("QUEUE__BACKEND", "redis"), ("QUEUE__REDIS_URL", url.as_str())];
    check("redis clean", &run_with(&world, &["redis", "clean", "--deep"], &settings));
    let peer = redis::Client::open(url.as_str()).unwrap();
    let mut peer = peer.get_multiplexed_async_connection().await.unwrap();
    let push = redis::cmd("LPUSH").arg("docmill:queue").arg("x").arg("y").to_owned();
    let _: i64 = push.query_async(&mut peer).await.unwrap();
    let length = run_with(&world, &["redis", "length"], &settings);
    check("redis length", &length);
    assert_eq!((length["ready"].as_u64(), length["dead"].as_u64()), (Some(2), Some(0)), "{length}");
}

#[test]
fn the_json_of_commands_without_a_database_matches_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    check("transcribe", &alone(folder.path(), &["transcribe", &sample("invoice_en.pdf")]));
    check("kinds list", &alone(folder.path(), &["kinds", "list"]));
    check("kinds check", &alone(folder.path(), &["kinds", "check"]));
    std::fs::create_dir_all(at("eval/truth")).unwrap();
    std::fs::copy(sample("invoice_en.pdf"), at("eval/a.pdf")).unwrap();
    std::fs::write(at("eval/truth/a.json"), json!({"total": 4388.04}).to_string()).unwrap();
    check("eval", &alone(folder.path(), &["eval", &at("eval")]));
    let truth = json!({"supplier_name": "Au gros chêne", "invoice_number": "1",
        "invoice_date": "2024-01-02", "total": 4388.04});
    std::fs::write(at("eval/truth/a.json"), truth.to_string()).unwrap();
    let injected = |part: &str| {
        let arguments = ["eval", "--inject", "--split", part, &at("eval")];
        alone(folder.path(), &arguments)["documents"].clone()
    };
    assert_eq!((injected("tune"), injected("check")), (json!(1), json!(0)));
    let device = json!({"name": "gpu", "total_mib": 2, "free_mib": 1});
    let post = json!({"model": "m", "need": {"mib": 1}, "waiting": 0, "oldest_ms": null,
        "running": 0, "turn": null, "idle": null});
    let sheet = json!({"process": std::process::id(), "posts": [post],
        "reading": {"devices": [device], "at_ms": 1}});
    std::fs::create_dir(at("board")).unwrap();
    // As long as its process lives, its sheet is locked.
    let mut board = std::fs::File::create(at("board/1.sheet")).unwrap();
    board.lock().unwrap();
    board.write_all(sheet.to_string().as_bytes()).unwrap();
    let seen = alone(folder.path(), &["scheduler"]);
    assert_eq!(seen["processes"][0]["posts"][0]["model"], "m");
    check("scheduler", &seen);
}

#[test]
fn the_json_of_bucket_commands_matches_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let bucket = |arguments: &[&str]| alone(folder.path(), &[&["bucket"][..], arguments].concat());
    let broken = folder.path().join("broken.pdf");
    std::fs::write(&broken, "%PDF-1.7 and nothing else").unwrap();
    let handed = bucket(&["ingest", broken.to_str().unwrap()]);
    check("bucket ingest", &handed);
    let hash = handed[0]["hash"].as_str().unwrap();
    check("bucket list", &bucket(&["list"]));
    check("bucket retry", &bucket(&["reprioritize", "--to", "high", hash]));
    check("bucket work", &bucket(&["work", "--once"]));
    check("bucket status", &bucket(&["status"]));
    check("bucket janitor", &bucket(&["janitor", "--dry-run"]));
    check("bucket dashboard", &bucket(&["dashboard"]));
    check("bucket search", &bucket(&["search", "broken"]));
    let found = bucket(&["lookup", "--hash", hash]);
    assert!(found["history"].as_array().is_some_and(|past| !past.is_empty()), "{found}");
    check("bucket lookup", &found);
    check("bucket manifest", &bucket(&["manifest"]));
    check("bucket workers", &bucket(&["workers"]));
    check("bucket config", &bucket(&["config"]));
    check("bucket retry", &bucket(&["retry", hash]));
    check("bucket retry", &bucket(&["cancel", hash]));
    check("bucket retry", &bucket(&["remove", hash]));
}

#[test]
fn the_json_of_workspace_commands_matches_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("workspace").display().to_string();
    let broken = folder.path().join("broken.pdf");
    std::fs::write(&broken, "%PDF-1.7 and nothing else").unwrap();
    let missing = folder.path().join("missing.pdf").display().to_string();
    let of = |arguments: &[&str]| alone(folder.path(), &[&["workspace"][..], arguments].concat());
    let broken = broken.to_str().unwrap();
    let added = of(&["populate", &place, broken, &missing, "--items-per-group", "1"]);
    assert!(added["refused"].as_array().is_some_and(|refused| refused.len() == 1), "{added}");
    check("workspace populate", &added);
    check("workspace work", &of(&["work", &place]));
    let stats = of(&["stats", &place]);
    assert!(stats["unread"].as_array().is_some_and(|unread| unread.len() == 1), "{stats}");
    check("workspace stats", &stats);
}

/// `docmill-dead-list.1` is the page of `docmill dead list`.
#[test]
fn every_command_is_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = alone(folder.path(), &["man", folder.path().join("man").to_str().unwrap()]);
    let pages = pages.as_array().unwrap();
    let commands: BTreeSet<String> = pages
        .iter()
        .filter_map(|page| page.as_str()?.strip_suffix(".1"))
        .map(|name| name.replace('-', " "))
        .collect();
    // A command with subcommands prints nothing itself.
    let groups = |name: &&String| !commands.iter().any(|all| all.starts_with(&format!("{name} ")));
    let page = std::fs::read_to_string(PAGE).unwrap().replace('-', " ");
    let missing: Vec<&String> = commands
        .iter()
        .filter(groups)
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(commands.len() > 50 && missing.is_empty(), "docs/reference/json.md lacks {missing:?}");
}

#[test]
fn every_command_has_a_man_page_and_every_shell_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    let program = env!("CARGO_BIN_EXE_docmill");
    let made = Command::new(program).arg("man").arg(&pages).output().unwrap();
    assert!(made.status.success());
    for page in ["docmill.1", "docmill-submit.1", "docmill-dead-redrive.1"] {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(".SH"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let made = Command::new(program).args(["completions", shell]).output();
        let script = String::from_utf8(made.unwrap().stdout).unwrap();
        assert!(script.contains("dashboard"), "{shell}");
    }
}
