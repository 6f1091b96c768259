//! Invariant 12: no word of a document, a prompt, a reply or a field value leaves a worker by its
//! log, its metrics or its notes for operators. A real process, at the most verbose level.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use docmill_core::model::IngestionId;
use docmill_testkit::openai::{Answer, Request, Script, document_lines, read_document};
use serde_json::json;

use crate::support::documents;
use crate::support::process::Process;
use crate::support::world::{SOON, World, until};

/// Words of the documents (supplier, address, tax id, item, amounts, the numbers' first letters),
/// of broken files, of message bodies, of a program's output, and of the replies.
const MARKS: [&str; 31] = [
    "quibblewick",
    "papyrus",
    "zwuggle",
    "thrumptonville",
    "gb907214553",
    "vellumine",
    "2079.36",
    "8317.44",
    "1663.49",
    "9980.93",
    "qx-",
    "corruptmark",
    "plainmark",
    "bodymark",
    "stderrmark",
    "prosemark",
    "brokenmark",
    "fencemark",
    "cutmark",
    "currencymark",
    "totalmark",
    "datemark",
    "keymark",
    "evidencemark",
    "linemark",
    "missingmark",
    "nulmark",
    "longmark",
    "echomark",
    "codemark",
    "i cannot help with that request",
];

/// An invoice without words that could appear in a log by chance.
fn invoice(number: &str) -> Vec<u8> {
    documents::pdf(&[
        (60.0, 60.0, "Quibblewick Papyrus Ltd"),
        (60.0, 76.0, "12 Zwuggle Row, Thrumptonville LS1 4AB"),
        (60.0, 92.0, "Tax ID: GB907214553"),
        (60.0, 140.0, "INVOICE"),
        (60.0, 164.0, &format!("Invoice number: {number}")),
        (60.0, 180.0, "Invoice date: 2026-03-14"),
        (60.0, 196.0, "Due date: 2026-04-13"),
        (60.0, 240.0, "Description"),
        (300.0, 240.0, "Quantity"),
        (380.0, 240.0, "Unit price"),
        (480.0, 240.0, "Amount"),
        (60.0, 258.0, "Vellumine sheets"),
        (300.0, 258.0, "4"),
        (380.0, 258.0, "2079.36"),
        (480.0, 258.0, "8317.44"),
        (380.0, 300.0, "Subtotal"),
        (480.0, 300.0, "GBP 8317.44"),
        (380.0, 316.0, "VAT 20%"),
        (480.0, 316.0, "GBP 1663.49"),
        (380.0, 332.0, "Total"),
        (480.0, 332.0, "GBP 9980.93"),
    ])
}

/// The roads that a model's answer opens: the invoice's number, and how the attempt ends.
const ROADS: [(&str, &str); 16] = [
    ("QX-GOOD", "completed"),
    ("QX-CHECK", "internal"),
    ("QX-SUMS", "gate_refused"),
    ("QX-PROSE", "gate_refused"),
    ("QX-BROKEN", "gate_refused"),
    ("QX-FENCED", "gate_refused"),
    ("QX-VALUES", "gate_refused"),
    ("QX-KEYS", "gate_refused"),
    ("QX-NUL", "gate_refused"),
    ("QX-LONG", "gate_refused"),
    ("QX-STRANGE", "completed"),
    ("QX-CUT", "cut"),
    ("QX-REFUSED", "model_refused"),
    ("QX-FILTERED", "model_refused"),
    ("QX-ECHO", "internal"),
    ("QX-HALF", "transient"),
];

fn answer(request: &Request) -> Answer {
    let user = request.message("user");
    let road = ROADS.iter().map(|(road, _)| *road).find(|road| user.contains(road));
    let mut content = read_document(&request.body);
    let text = |content: &str| Answer::Text { content: content.to_owned() };
    match road.unwrap_or_default() {
        "QX-SUMS" => return Answer::WrongSums,
        "QX-PROSE" => return text("Certainly! Prosemark owes Quibblewick 9980.93."),
        "QX-BROKEN" => return text(r#"{"fields": {"supplier_name": "Brokenmark"#),
        "QX-FENCED" => return text("```json\n{\"total\": \"Fencemark\"}\n```"),
        "QX-VALUES" => {
            content["fields"]["currency"] = json!("Currencymark");
            content["fields"]["total"] = json!("Totalmark 9980.93");
            content["fields"]["invoice_date"] = json!("31.Datemark");
        }
        "QX-KEYS" => content["fields"]["Keymark"] = json!({"Keymark": ["Keymark"]}),
        "QX-NUL" => content["fields"]["supplier_name"] = json!("Nulmark\u{0}"),
        "QX-LONG" => content["fields"]["invoice_date"] = json!("Longmark ".repeat(20_000)),
        "QX-STRANGE" => {
            content["evidence"] = json!([{"field": "Evidencemark", "lines": ["Linemark"]}]);
        }
        "QX-CUT" => return Answer::Cut { content: r#"{"fields": {"total": "Cutmark"#.to_owned() },
        "QX-REFUSED" => return Answer::Refusal,
        "QX-FILTERED" => return Answer::ContentFilter,
        "QX-HALF" => return Answer::CutBody,
        "QX-ECHO" => {
            return Answer::Status {
                status: 400,
                retry_after: None,
                retry_after_ms: None,
                should_retry: None,
                code: Some("Codemark 9980.93".to_owned()),
                message: Some("invalid prompt: Echomark of Quibblewick Papyrus Ltd".to_owned()),
            };
        }
        _ => {}
    }
    Answer::Ok { content }
}

/// A model that keeps what it was asked.
fn model(prompts: &Arc<Mutex<Vec<String>>>) -> Script {
    let prompts = Arc::clone(prompts);
    Script::function(move |request| {
        // Of the user's part the document's lines alone: a repair quotes the schema, which the
        // details of a refused reply may do as well.
        let lines = document_lines(&request.body).into_iter().map(|(_, text)| text);
        let system = request.message("system").to_owned();
        prompts.lock().unwrap().extend(lines.chain([system]));
        answer(request)
    })
}

/// Tesseract with a loud voice, which fails at its first page.
#[cfg(unix)]
fn loud_tesseract(folder: &std::path::Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let (program, seen) = (folder.join("tesseract"), folder.join("seen"));
    let text = format!(
        "#!/bin/sh\n\
         case \"$*\" in *--version*|*--list-langs*) exec tesseract \"$@\";; esac\n\
         echo 'Stderrmark: Quibblewick Papyrus' >&2\n\
         [ -e '{seen}' ] || {{ touch '{seen}'; exit 1; }}\n\
         exec tesseract \"$@\"\n",
        seen = seen.display(),
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program.to_str().unwrap().to_owned()
}

fn log_of(world: &World) -> String {
    let files = std::fs::read_dir(world.logs.path()).unwrap();
    files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

/// The worker's metrics page.
async fn metrics_of(world: &World) -> String {
    let log = log_of(world);
    let (_, address) = log.split_once("health pages on ").unwrap();
    let end = address.find(|c: char| !c.is_ascii_alphanumeric() && !":/.".contains(c));
    let url = format!("{}/metrics", address.get(..end.unwrap_or(address.len())).unwrap());
    reqwest::get(&url).await.unwrap().text().await.unwrap()
}

/// Everything that the worker has written for operators into Postgres.
async fn said_in_postgres(world: &World) -> String {
    let ingestions =
        "SELECT string_agg(concat_ws(' ', status, reason, detail, review_reasons), E'\\n')
        FROM docmill.ingestion";
    let attempts = "SELECT string_agg(concat_ws(' ', outcome, stage, detail), E'\\n')
        FROM docmill.attempt";
    format!("{}\n{}", world.scalar(ingestions).await, world.scalar(attempts).await)
}

/// The files that no model gets to see, and how the attempt ends.
async fn submit_files(world: &World) -> Vec<(IngestionId, &'static str)> {
    let mut cut = invoice("QX-HALF-A-FILE");
    cut.truncate(cut.len() / 2);
    let mut unsound = invoice("QX-UNSOUND");
    let at = unsound.windows(5).position(|five| five == b"/Font").unwrap();
    unsound[at + 1..at + 5].copy_from_slice(b"Zwug");
    let corrupt = b"%PDF-1.4\n1 0 obj << /Corruptmark (Quibblewick) /Kids 7 0 R".to_vec();
    let plain = b"\0Plainmark: Quibblewick Papyrus Ltd, total 9980.93".to_vec();
    let files = [
        ("corrupt.pdf", corrupt, "corrupt"),
        ("cut.pdf", cut, ""),
        ("unsound.pdf", unsound, ""),
        ("plain.pdf", plain, "unsupported_type"),
        ("scan.png", documents::scan(invoice("QX-SCAN-1"), 150.0), ""),
    ];
    let mut ids = Vec::new();
    for (name, bytes, outcome) in files {
        ids.push((world.submit(name, bytes).await, outcome));
    }
    ids
}

async fn ended(world: &World, id: IngestionId, name: &str, outcome: &str) {
    let deadline = Instant::now() + SOON;
    let mut attempts = world.attempts(id).await;
    while attempts.is_empty() {
        assert!(Instant::now() < deadline, "{name} has not ended an attempt");
        tokio::time::sleep(Duration::from_millis(50)).await;
        attempts = world.attempts(id).await;
    }
    if !outcome.is_empty() {
        assert_eq!(attempts.first().unwrap(), outcome, "{name}");
    }
}

/// Panics with the line that contains a mark.
fn assert_silent(place: &str, text: &str, prompts: &[String]) {
    let lower = text.to_lowercase();
    for mark in MARKS {
        let line = lower.lines().find(|line| line.contains(mark));
        assert!(line.is_none(), "`{mark}` stands in {place}: {line:?}");
    }
    // Of the prompts every line that is long enough to be nothing else.
    for line in prompts.iter().flat_map(|prompt| prompt.lines()).map(str::trim) {
        assert!(line.len() < 20 || !text.contains(line), "{line:?} stands in {place}");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn invariant_12_no_word_of_a_document_or_a_reply_is_in_log_metrics_or_details() {
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let world = World::with_model(model(&prompts)).await;
    let programs = tempfile::tempdir().unwrap();
    let tesseract = loud_tesseract(programs.path());
    // Postgres refuses this one's outcome, and its own words then quote the whole row.
    world
        .execute(
            "ALTER TABLE docmill.ingestion ADD CONSTRAINT picky CHECK
             (structured_data->>'invoice_number' IS DISTINCT FROM 'QX-CHECK-1') NOT VALID",
        )
        .await;
    let settings = [("OCR__TESSERACT", tesseract.as_str()), ("CPU__CONFINE", "false")];
    let mut worker = Process::worker_at("warn,docmill=trace", &world, &settings);
    for body in ["Bodymark?", r#"{"ingestion_id": "Bodymark"}"#, r#"{"Records": ["Bodymark"]}"#] {
        world.send(body).await;
    }
    world.send(IngestionId::random().to_string()).await;
    let files = submit_files(&world).await;
    let (scan, _) = *files.last().unwrap();
    let mut roads = Vec::new();
    for (number, outcome) in ROADS {
        roads.push((world.submit("a.pdf", invoice(&format!("{number}-1"))).await, number, outcome));
    }
    until(SOON, || async { log_of(&world).contains("writing the outcome of") }).await;
    for (id, outcome) in files {
        ended(&world, id, outcome, outcome).await;
    }
    for (id, number, outcome) in roads {
        ended(&world, id, number, outcome).await;
    }
    // The scan's second attempt reads it.
    world.pass(Duration::from_secs(60)).await;
    until(SOON, || async { !world.column(scan, "pages").await.unwrap_or_default().is_empty() })
        .await;
    let kept = "SELECT count(*)::text FROM docmill.quarantined_message";
    until(SOON, || async { world.scalar(kept).await == "3" }).await;
    let metrics = metrics_of(&world).await;
    worker.terminate();
    assert!(worker.ended(Duration::from_secs(60)).await.success());
    let (log, said) = (log_of(&world), said_in_postgres(&world).await);
    let prompts = prompts.lock().unwrap();

    assert!(prompts.iter().any(|prompt| prompt.contains("Quibblewick")), "the model was asked");
    assert!(log.contains("sent back for repair"), "the level is high enough");
    assert!(log.contains("quarantined") && log.contains("not in the database yet"));
    assert!(metrics.contains("docmill_attempts_total") && metrics.contains("gate_refused"));
    assert!(said.contains("model_refused") && said.contains("gate_refused"), "{said}");
    assert_silent("the log", &log, &prompts);
    assert_silent("the metrics", &metrics, &prompts);
    assert_silent("what operators read", &said, &prompts);
}
