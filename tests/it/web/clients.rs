//! The clients for users, in Rust and Python, against the running service with a worker behind it, and
//! against servers that misbehave by a script.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use docmill_api_client::{
    ApiClient, ApiFailure, ChangeListing, DecisionTerms, DocumentUpload, IngestionQuery,
    IngestionSelection, IngestionState, RetryPace, ReviewChoice, ReviewQuery,
};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::client_example::read_invoice;
use super::desk::{WebConsole, invoice, token_of};
use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::SOON;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A worker for what is handed in there.
fn start_worker(desk: &WebConsole) -> Process {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_docmill"));
    command
        .arg("worker")
        .env("DOCMILL__DATABASE__URL", desk.database.url())
        .env("DOCMILL__QUEUE__BACKEND", "folder")
        .env("DOCMILL__QUEUE__PATH", desk.folder.path().join("queue"))
        .env("DOCMILL__QUEUE__WAIT", "1s")
        .env("DOCMILL__STORE__BACKEND", "folder")
        .env("DOCMILL__STORE__PATH", desk.folder.path().join("store"))
        .env("DOCMILL__WORKER__ADDRESS", "127.0.0.1:0")
        .env("DOCMILL__JANITOR__ENABLED", "false")
        .env("DOCMILL__OCR__ENGINE", "tesseract");
    Process::spawn(command, "warn,docmill=info", desk.folder.path())
}

fn client_of(desk: &WebConsole, name: &str) -> ApiClient {
    ApiClient::new(&desk.url(""), &token_of(name)).unwrap()
}

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn as_uuid(id: impl ToString) -> Uuid {
    id.to_string().parse().unwrap()
}

/// The code of a refusal.
fn refusal<T: std::fmt::Debug>(answer: Result<T, ApiFailure>) -> String {
    answer.unwrap_err().code().unwrap_or("no problem of the service's").to_owned()
}

/// Python with our client, on this program.
fn python(arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command
        .args(arguments)
        .env("PYTHONPATH", format!("{ROOT}/clients/python/src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .kill_on_drop(true);
    command
}

async fn succeed(mut command: Command) -> String {
    let ran = tokio::time::timeout(SOON, command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    String::from_utf8(ran.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_clients_hand_in_wait_and_read_what_a_worker_made_of_it() {
    let desk = WebConsole::open().await;
    let _worker = start_worker(&desk);
    let token = token_of("producer");
    let bytes = documents::invoice("L-1");
    let read = read_invoice(&desk.url(""), &token, bytes.clone()).await.unwrap();
    assert_eq!((read.status, read.reason.as_deref()), (IngestionState::Completed, None));
    assert_eq!((&read.data["invoice_number"], &read.data["total"]), (&"L-1".into(), &120.into()));
    assert_eq!(read.document_data, read.data);
    let again = read_invoice(&desk.url(""), &token, bytes).await.unwrap();
    assert_eq!(again, read, "after a crash of the caller the same answer under the same key");

    let client = client_of(&desk, "producer");
    let seen = client.find_ingestion(read.ingestion_id).await.unwrap();
    assert_eq!((seen.kind.as_deref(), seen.attempts.len()), (Some("invoice"), 1));
    assert_eq!(seen.original_name.as_deref(), Some("invoice.pdf"));
    assert!(seen.completed_at.unwrap() >= seen.created_at, "{seen:?}");
    assert_eq!(seen.more["reader"], "rules");
    let transcript = client.load_transcript(read.ingestion_id).await.unwrap();
    assert!(transcript.to_string().contains("Northwind"), "{transcript}");

    let page = std::fs::read_to_string(format!("{ROOT}/docs/guides/clients.md")).unwrap();
    let example = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let file = desk.folder.path().join("april.pdf");
    std::fs::write(&file, documents::invoice("P-1")).unwrap();
    let mut ran = python(&["-c", example]);
    ran.env("DOCMILL_URL", desk.url("")).env("DOCMILL_TOKEN", token).env("FILE", &file);
    let printed = succeed(ran).await;
    assert_eq!(printed.trim(), "IngestionState.COMPLETED P-1 120");
}

#[test]
fn the_page_of_the_clients_shows_the_example_that_is_run_and_every_code_there_is() {
    let read = |path: &str| std::fs::read_to_string(format!("{ROOT}/{path}")).unwrap();
    let page = read("docs/guides/clients.md");
    let shown = page.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let file = read("tests/it/web/client_example.rs");
    let (_, run) = file.split_once("// The example begins here.\n").unwrap();
    assert_eq!(shown, run.replace("pub(super) ", ""));
    let failures = read("crates/console/src/failure.rs");
    let codes: Vec<&str> = failures
        .split("Self::new(")
        .skip(1)
        .filter_map(|call| call.split(')').next()?.split('"').nth(1))
        .filter(|word| word.chars().all(|sign| sign.is_ascii_lowercase() || sign == '_'))
        .collect();
    assert!(codes.len() > 15, "the codes are read from failure.rs: {codes:?}");
    for code in codes {
        assert!(
            page.contains(&format!("| `{code}` |")),
            "docs/guides/clients.md does not explain {code}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_lists_retries_cancels_and_decides_by_the_rust_client() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let (rejected, _) = desk.refused("rival", &invoice(22.0)).await;
    let (_, open) = desk.waiting("acme", "b.pdf").await;
    let client = client_of(&desk, "operator");
    let terms = DecisionTerms { why: "by the paper".to_owned(), take_over: false };

    let mut query = IngestionQuery { limit: Some(2), ..IngestionQuery::default() };
    let first = client.list_ingestions(&query).await.unwrap();
    query.cursor = first.next_cursor;
    let second = client.list_ingestions(&query).await.unwrap();
    assert_eq!((first.items.len(), second.items.len(), second.next_cursor), (2, 1, None));
    let failed = IngestionQuery { status: Some(IngestionState::Failed), ..Default::default() };
    assert_eq!(client.list_ingestions(&failed).await.unwrap().items.len(), 2);

    let open = as_uuid(open);
    let waited = client.wait_for_end(open, Duration::from_millis(10)).await;
    assert!(matches!(waited, Err(ApiFailure::StillOpen { id, .. }) if id == open), "{waited:?}");
    assert_eq!(client.cancel_ingestion(open, "not ours").await.unwrap().change, "cancelled");
    let ended = client.wait_for_end(open, SOON).await.unwrap();
    assert_eq!(ended.status, IngestionState::Cancelled);
    assert_eq!(client.retry_ingestion(open, "").await.unwrap().change, "reopened");
    assert_eq!(refusal(client.load_result(open).await), "conflict");

    let queue = ReviewQuery { tenant: Some("acme".to_owned()), ..ReviewQuery::default() };
    let queue = client.list_reviews(&queue).await.unwrap();
    assert_eq!(queue.items[0].document_id, as_uuid(document));
    let seen = client.open_review(as_uuid(document)).await.unwrap();
    assert_eq!(seen.view.ingestion_data["total"], 21.0);
    let right = ReviewChoice::CorrectFields(fields(json!({ "total": 13.0 })));
    let done = client.decide_review(&seen, &right, &terms).await.unwrap();
    assert_eq!((done.decision.as_str(), &done.data["total"]), ("corrected", &13.0.into()));
    let late = client.decide_review(&seen, &ReviewChoice::Accept, &terms).await;
    assert_eq!(refusal(late), "version_changed");
    assert_eq!(client.undo_decision(as_uuid(document)).await.unwrap().decision, "undone");
    let seen = client.open_review(as_uuid(document)).await.unwrap();
    let newest = client.decide_review(&seen, &ReviewChoice::AcceptNewest, &terms).await.unwrap();
    assert_eq!(newest.data["total"], 21.0);
    let seen = client.open_review(as_uuid(rejected)).await.unwrap();
    let done = client.decide_review(&seen, &ReviewChoice::Reject, &terms).await.unwrap();
    assert_eq!(done.decision, "rejected");
    change_together(&client, open, as_uuid(rejected)).await;

    assert_eq!(
        refusal(client_of(&desk, "nobody").list_reviews(&Default::default()).await),
        "unauthorized"
    );
    assert_eq!(refusal(client_of(&desk, "viewer").retry_ingestion(open, "").await), "forbidden");
    assert_eq!(refusal(client.find_ingestion(Uuid::new_v4()).await), "not_found");
    let nothing = DocumentUpload::new("a.pdf", &b"no document\0"[..]);
    assert_eq!(refusal(client.submit_document(&nothing).await), "refused");
    let mut keyed = DocumentUpload::new("a.pdf", documents::invoice("L-1"));
    keyed.idempotency_key = Some("k".to_owned());
    client.submit_document(&keyed).await.unwrap();
    keyed.name = "b.pdf".to_owned();
    assert_eq!(refusal(client.submit_document(&keyed).await), "idempotency_key_reused");
}

fn changes_of(done: &ChangeListing) -> Vec<&str> {
    done.items.iter().map(|one| one.change.as_str()).collect()
}

/// Several at once: an open ingestion of acme, and a document of rival that was rejected by mistake.
async fn change_together(client: &ApiClient, open: Uuid, rejected: Uuid) {
    let named = IngestionSelection::Named(vec![open]);
    let done = client.change_ingestions(&named, "cancel", "not ours").await.unwrap();
    assert_eq!((changes_of(&done), done.next_cursor), (vec!["cancelled"], None));
    let query = IngestionQuery {
        status: Some(IngestionState::Cancelled),
        tenant: Some("acme".to_owned()),
        ..IngestionQuery::default()
    };
    let all = IngestionSelection::Matching(query);
    let done = client.change_ingestions(&all, "retry", "").await.unwrap();
    assert_eq!(changes_of(&done), ["reopened"]);
    let any = IngestionSelection::Matching(IngestionQuery::default());
    assert_eq!(refusal(client.change_ingestions(&any, "retry", "").await), "bad_request");

    client.undo_decision(rejected).await.unwrap();
    let queue = ReviewQuery { tenant: Some("rival".to_owned()), ..ReviewQuery::default() };
    let listed = client.list_reviews(&queue).await.unwrap().items;
    assert_eq!(refusal(client.reject_reviews(&listed, " ").await), "refused");
    for end in ["rejected", "changed"] {
        let done = client.reject_reviews(&listed, "a letter").await.unwrap();
        assert_eq!(done.iter().map(|one| one.end.as_str()).collect::<Vec<_>>(), [end]);
        assert!(done.iter().all(|one| one.undo_until.is_some() == (end == "rejected")));
    }
    for end in ["undone", "nothing"] {
        let done = client.undo_decisions(&[rejected], "no letter").await.unwrap();
        assert_eq!(done.iter().map(|one| one.end.as_str()).collect::<Vec<_>>(), [end]);
    }
    let listed = client.list_reviews(&queue).await.unwrap().items;
    client.reject_reviews(&listed, "a letter").await.unwrap();
    let query = IngestionQuery { kind: Some("invoice".to_owned()), ..IngestionQuery::default() };
    let data = client.export_ingestions(&query).await.unwrap();
    let totals: Vec<_> = data.items.iter().map(|one| one.data.get("total")).collect();
    assert_eq!(totals, [Some(&21.0.into())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_lists_retries_cancels_and_decides_by_the_python_client() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let (rejected, _) = desk.refused("rival", &invoice(22.0)).await;
    let (_, open) = desk.waiting("acme", "b.pdf").await;
    let file = desk.folder.path().join("a.pdf");
    std::fs::write(&file, documents::invoice("L-1")).unwrap();
    let mut ran = python(&[&format!("{ROOT}/clients/python/tests/against_service.py")]);
    ran.env("DOCMILL_URL", desk.url(""))
        .env("OPERATOR", token_of("operator"))
        .env("VIEWER", token_of("viewer"))
        .env("DOCUMENT", document.to_string())
        .env("REJECTED", rejected.to_string())
        .env("OPEN", open.to_string())
        .env("FILE", file);
    succeed(ran).await;
    let decisions = "SELECT string_agg(decision, ' ' ORDER BY decided_at) FROM document_revision";
    assert_eq!(desk.scalar(decisions).await, "corrected undone accepted rejected undone rejected");
}

/// A server that gives these answers one after the other, one to a connection, and none once they are
/// used up; an empty one is a connection that breaks.
struct ScriptedServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl ScriptedServer {
    async fn start(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, answers) = (Arc::clone(&asked), answers.join("\0"));
        let serving = tokio::spawn(async move {
            for answer in answers.split('\0') {
                let (mut connection, _) = listener.accept().await.unwrap();
                let request = read_request(&mut connection).await;
                kept.lock().unwrap().push(request);
                connection.write_all(answer.as_bytes()).await.unwrap();
                connection.shutdown().await.unwrap();
            }
        });
        Self { address, asked, serving }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The first lines of what was asked.
    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|request| request.lines().next().unwrap().to_owned()).collect()
    }

    /// This header of each request.
    fn headers(&self, name: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let line = |request: &String| {
            let lines = request.lines().map(str::to_ascii_lowercase);
            lines.filter_map(|line| Some(line.strip_prefix(name)?.to_owned())).next().unwrap()
        };
        asked.iter().map(line).collect()
    }
}

/// A request with its whole body.
async fn read_request(connection: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1);
            let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
            if body.len() >= length {
                return String::from_utf8(request).unwrap();
            }
        }
        assert!(connection.read_buf(&mut request).await.unwrap() > 0, "a request that breaks off");
    }
}

fn answer(status: &str, headers: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    )
}

/// A service that is busy and says for how long.
fn busy(status: &str, after: &str) -> String {
    let code: u16 = status.split(' ').next().unwrap().parse().unwrap();
    let problem = json!({ "status": code, "code": "busy", "detail": "again soon" });
    answer(status, &format!("retry-after: {after}\r\n"), &problem)
}

/// How both clients fare with these answers to one submission and nothing else: the words for it.
async fn submit_by_both(answers: &[&str]) -> Vec<(String, ScriptedServer)> {
    let mut fared = Vec::new();
    let server = ScriptedServer::start(answers).await;
    let client = ApiClient::new(&server.url(), "t").unwrap();
    let client = client.with_pace(RetryPace { tries: 3, ..RetryPace::default() });
    let done = client.submit_document(&DocumentUpload::new("a b.pdf", &b"%PDF"[..])).await;
    let words = match done {
        Ok(receipt) => receipt.fate,
        Err(ApiFailure::Problem(problem)) => problem.code,
        Err(ApiFailure::Unreachable(_)) => "Unreachable".to_owned(),
        Err(ApiFailure::Unreadable(_)) => "UnreadableAnswer".to_owned(),
        Err(other) => panic!("{other}"),
    };
    fared.push((words, server));
    let server = ScriptedServer::start(answers).await;
    let script = format!("{ROOT}/clients/python/tests/submit_once.py");
    let words = succeed(python(&[&script, &server.url()])).await.trim().to_owned();
    fared.push((words, server));
    fared
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_has_no_time_for_is_repeated_and_what_it_refuses_is_not() {
    let id = Uuid::nil();
    let receipt = json!({ "document_id": id, "ingestion_id": id, "fate": "submitted",
        "status": "in-progress", "problem": null, "of_a_later_version": 1 });
    let (done, soon, slow) =
        (answer("200 OK", "", &receipt), busy("503 X", "0"), busy("429 X", "0"));
    let late = busy("503 X", "61");
    let refused = json!({ "status": 422, "code": "refused", "detail": "no" });
    let refused = answer("422 X", "retry-after: 0\r\n", &refused);
    let led = answer("307 X", "location: http://127.0.0.1:9/\r\n", &json!({}));
    let other = answer("200 OK", "", &json!(["another", "program"]));
    for (answers, words, calls) in [
        (vec![soon.as_str(), &slow, &done], "submitted", 3),
        (vec!["", &done], "submitted", 2),
        (vec![&soon, &soon, &soon, &done], "busy", 3),
        (vec!["", "", "", &done], "Unreachable", 3),
        (vec![&late, &done], "busy", 1),
        (vec![&refused, &done], "refused", 1),
        (vec![&led, &done], "UnreadableAnswer", 1),
        (vec![&other, &done], "UnreadableAnswer", 1),
    ] {
        for (fared, server) in submit_by_both(&answers).await {
            assert_eq!(fared, words, "{answers:?}");
            let line = "POST /api/v1/documents?name=a+b.pdf HTTP/1.1";
            assert_eq!(server.asked(), vec![line; calls], "{answers:?}");
            let mut keys = server.headers("idempotency-key: ");
            keys.dedup();
            assert_eq!(
                (keys.len(), keys[0].len()),
                (1, 36),
                "each repetition under the first's key"
            );
            assert!(server.headers("authorization: ").iter().all(|one| one == "bearer t"));
        }
    }
}
