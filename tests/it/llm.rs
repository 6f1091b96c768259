//! The model client and the reading of replies against the scripted model server.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod client;
pub(crate) mod vendors;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use docmill_core::config::{KindsConfig, LlmConfig, LlmProvider, LlmServer, ReplyNumbers};
use docmill_core::fault::{self, Fault};
use docmill_core::model::{
    BoundingBox, Extraction, OutcomeReason, PageSource, PageText, StatedConfidence, TextLine,
    TextWord, Transcript,
};
use docmill_extract::reply::ReplyDefect;
use docmill_extract::{
    self, CallLimits, ExtractError, IncompleteReason, RecordedReplies, ReplyJournal,
};
use docmill_gate::kinds::{Kind, KindSet};
use docmill_llm::openai::OpenAiClient;
use docmill_llm::{FinishReason, Llm, Prompt, PromptThinking};
use docmill_testkit::openai::{Answer, LimitNames, Request, Script, Server, document_lines};
use serde_json::{Value, json};

use crate::support::model_reading::extract_by_model;

const DEADLINE: Duration = Duration::from_secs(60);

fn config(server: &Server) -> LlmConfig {
    LlmConfig {
        provider: LlmProvider::Openai,
        base_url: server.base_url(),
        model: "model-1".to_owned(),
        timeout: Duration::from_secs(10),
        ..LlmConfig::default()
    }
}

fn client(server: &Server) -> OpenAiClient {
    OpenAiClient::new(&config(server)).unwrap()
}

fn kind() -> Kind {
    Kind::clone(KindSet::load(&KindsConfig::default()).unwrap().for_name(None).unwrap())
}

pub(crate) fn prompt() -> Prompt {
    Prompt {
        system: "system".into(),
        user: "user".to_owned(),
        schema_name: "invoice".to_owned(),
        schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}).into(),
        schema_in_text: true,
        thinking: PromptThinking::AsConfigured,
        max_output_tokens: 100,
        pictures: Vec::new(),
    }
}

fn transcript(pages: &[&[&str]]) -> Transcript {
    let word = |text: &str| TextWord {
        text: text.into(),
        bounding_box: BoundingBox::default(),
        confidence: 1.0,
        unwitnessed: false,
    };
    let line = |text: &&str| TextLine { words: text.split(' ').map(word).collect() };
    let page = |(index, lines): (usize, &&[&str])| PageText {
        number: u32::try_from(index).unwrap() + 1,
        source: PageSource::Native,
        width: 595.0,
        height: 842.0,
        quality: 1.0,
        defects: Vec::new(),
        languages: Vec::new(),
        repaired: false,
        provider: None,
        codes: Vec::new(),
        marks: Vec::new(),
        notes: Vec::new(),
        lines: lines.iter().map(line).collect(),
    };
    Transcript {
        format: Transcript::FORMAT,
        sha256: "00".repeat(32),
        provider: "native".to_owned(),
        pages: pages.iter().enumerate().map(page).collect(),
        quality: 1.0,
    }
}

fn invoice() -> Transcript {
    transcript(&[&[
        "ACME Ltd",
        "Invoice number: A-17",
        "Invoice date: 2026-03-01",
        "Widgets 2 5.00 10.00",
        "Subtotal EUR 10.00",
        "VAT 2.00",
        "Total 12.00",
    ]])
}

/// A journal in memory that several runs share.
#[derive(Clone, Default)]
struct Memory {
    kept: Arc<Mutex<Option<RecordedReplies>>>,
    broken: bool,
}

#[async_trait]
impl ReplyJournal for Memory {
    async fn load_replies(&mut self) -> fault::Result<Option<RecordedReplies>> {
        Ok(self.kept.lock().unwrap().clone())
    }

    async fn save_replies(&mut self, replies: &RecordedReplies) -> fault::Result<()> {
        if self.broken {
            return Err(fault::Error::transient("the store is gone"));
        }
        *self.kept.lock().unwrap() = Some(replies.clone());
        Ok(())
    }
}

fn terms() -> CallLimits {
    CallLimits {
        identity: "identity".to_owned(),
        prompt_tokens: 100_000,
        max_output_tokens: 8_192,
        parts_at_once: 2,
        has_next: false,
        faults: Default::default(),
        examples: "".into(),
        companies: "".into(),
    }
}

async fn extract(
    server: &Server,
    transcript: &Transcript,
    journal: &mut Memory,
) -> Result<Extraction, ExtractError> {
    let (client, kind, terms) = (client(server), kind(), terms());
    let run = extract_by_model(&client, &kind, transcript, &terms, journal);
    tokio::time::timeout(DEADLINE, run).await.unwrap()
}

fn ending(result: Result<Extraction, ExtractError>) -> (IncompleteReason, Option<Box<Extraction>>) {
    match result {
        Err(ExtractError::Ended { ending, partial, .. }) => (ending, partial),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_plain_invoice_is_read_with_its_evidence() {
    let server = Server::start(Script::default()).await.unwrap();
    let read = extract(&server, &invoice(), &mut Memory::default()).await.unwrap();
    assert_eq!(read.data["invoice_number"], "A-17");
    assert_eq!(read.data["total"], 12.0);
    assert_eq!(read.data["line_items"][0]["amount"], 10.0);
    assert_eq!((read.successful, read.confidence), (true, StatedConfidence::High));
    assert_eq!(read.model.as_deref(), Some("model-1"));
    assert!(read.usage.input > 0 && read.usage.output > 0);
    let total = read.evidence.iter().find(|it| it.field == "total").unwrap();
    assert_eq!((total.page, total.lines.clone()), (1, vec![6]));
    assert_eq!(server.calls().len(), 1);
}

#[tokio::test]
async fn every_reply_that_is_no_whole_object_is_sent_back_once_and_then_given_up() {
    let text = |content: &str| Answer::Text { content: content.to_owned() };
    #[rustfmt::skip]
    let table = [
        (text("Sure! Here is the data."),                 "prose"),
        (text("```json\n{}"),                             "fenced"),
        (text(r#"{"fields": {"total": NaN}}"#),           "invalid_json"),
        (text(r#"{"fields": {"total": 1, "total": 2}}"#), "duplicate_key"),
        (text(" "),                                       "empty"),
        (Answer::Ok { content: json!({"total": 1}) },     "schema"),
    ];
    for (answer, code) in table {
        let server = Server::start(Script::always(answer)).await.unwrap();
        let (ending, _) = ending(extract(&server, &invoice(), &mut Memory::default()).await);
        let IncompleteReason::Unreadable(problem) = &ending else { panic!("{ending:?}") };
        assert_eq!((problem.code(), ending.outcome_reason()), (code, OutcomeReason::GateRefused));
        assert_eq!(server.calls().len(), 2, "{code}");
    }
}

#[tokio::test]
async fn a_repaired_reply_is_used_and_both_calls_are_counted() {
    let server =
        Server::start(Script::of([Answer::Text { content: "prose".to_owned() }])).await.unwrap();
    let mut journal = Memory::default();
    let read = extract(&server, &invoice(), &mut journal).await.unwrap();
    assert_eq!(read.data["total"], 12.0);
    let kept = journal.kept.lock().unwrap().clone().unwrap();
    assert_eq!((kept.calls.len(), kept.total_usage()), (2, read.usage));
}

/// The reply that a question for its repair shows.
fn shown_reply(user: &str) -> Option<Value> {
    let (_, rest) = user.split_once("\n<reply-")?;
    let (_, rest) = rest.split_once(">\n")?;
    serde_json::from_str(rest.split_once("\n</reply-")?.0).ok()
}

#[tokio::test]
async fn a_reply_of_the_wrong_form_alone_is_repaired_without_the_document() {
    let script = Script::function(|request: &Request| {
        let mut content = shown_reply(&request.message("user"))
            .unwrap_or_else(|| docmill_testkit::openai::read_document(&request.body));
        let is_repair = request.message("user").contains("could not be used");
        let currency = if is_repair { "EUR" } else { "euros" };
        content["fields"]["currency"] = json!(currency);
        Answer::Ok { content }
    });
    let server = Server::start(Script { record: true, ..script }).await.unwrap();
    let read = extract(&server, &invoice(), &mut Memory::default()).await.unwrap();
    assert_eq!((&read.data["total"], &read.data["currency"]), (&json!(12.0), &json!("EUR")));
    let lines: Vec<usize> =
        server.exchanges().iter().map(|call| document_lines(&call.request).len()).collect();
    assert!(lines[0] > 0 && lines[1..] == [0], "{lines:?}");
}

#[tokio::test]
async fn sound_fields_of_a_reply_that_was_never_whole_are_kept_as_partial_data() {
    let server = Server::start(Script::function(|request: &Request| {
        let repeated = shown_reply(&request.message("user"));
        let mut content =
            repeated.unwrap_or_else(|| docmill_testkit::openai::read_document(&request.body));
        content["fields"]["currency"] = json!("euros");
        Answer::Ok { content }
    }))
    .await
    .unwrap();
    let (ending, partial) = ending(extract(&server, &invoice(), &mut Memory::default()).await);
    assert!(matches!(ending, IncompleteReason::Unreadable(ReplyDefect::Schema(_))), "{ending:?}");
    let partial = partial.unwrap();
    assert_eq!((&partial.data["total"], &partial.data["currency"]), (&json!(12.0), &Value::Null));
    assert!(!partial.successful);
}

#[tokio::test]
async fn a_refusal_ends_as_one_and_is_not_argued_with() {
    for answer in [Answer::Refusal, Answer::ContentFilter] {
        let server = Server::start(Script::always(answer)).await.unwrap();
        let (ending, partial) = ending(extract(&server, &invoice(), &mut Memory::default()).await);
        assert_eq!(
            (ending.outcome_reason(), partial.is_none()),
            (OutcomeReason::ModelRefused, true)
        );
        assert_eq!(server.calls().len(), 1);
    }
}

fn long_invoice() -> Transcript {
    let item = |number: usize| format!("Part{number} 1 1.00 1.00");
    let items: Vec<String> = (0..20).map(item).collect();
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    let (first, rest) = items.split_at(5);
    let (second, third) = rest.split_at(5);
    let first: Vec<&str> = ["ACME Ltd"].into_iter().chain(first.iter().copied()).collect();
    let third: Vec<&str> = third.iter().copied().chain(["Total 20.00"]).collect();
    transcript(&[&first, second, &third])
}

#[tokio::test]
async fn a_cut_reply_is_asked_for_in_parts_that_lose_nothing() {
    let server = Server::start(Script::always(Answer::CutAbove { lines: 12 })).await.unwrap();
    let read = extract(&server, &long_invoice(), &mut Memory::default()).await.unwrap();
    let items = read.data["line_items"].as_array().unwrap();
    let names: Vec<String> =
        items.iter().map(|it| it["description"].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, (0..20).map(|number| format!("Part{number}")).collect::<Vec<_>>());
    assert_eq!(read.data["supplier_name"], "ACME Ltd");
    assert_eq!(read.data["total"], 20.0);
    let last = read.evidence.iter().find(|it| it.field == "line_items[19]").unwrap();
    assert_eq!((last.page, last.lines.clone()), (3, vec![9]));
}

#[tokio::test]
async fn single_lines_that_are_cut_end_as_truncated_with_the_rest_kept() {
    let server = Server::start(Script::always(Answer::CutAbove { lines: 6 })).await.unwrap();
    let (ending, partial) = ending(extract(&server, &long_invoice(), &mut Memory::default()).await);
    assert_eq!(ending.outcome_reason(), OutcomeReason::Cut);
    assert_eq!(partial.unwrap().data["line_items"].as_array().unwrap().len(), 15);
}

#[tokio::test]
async fn a_reply_without_end_ends_its_models_reading_at_the_first_call() {
    let circles = r#"{"description":"Part 1","amount":1.00},"#.repeat(200);
    let rambling: String = (0..3_000).map(|at| format!("{:x} ", at * 7_919)).collect();
    for entries in [circles, rambling] {
        let content = format!("{{\"fields\":{{\"line_items\":[{entries}");
        let server = Server::start(Script::always(Answer::Cut { content })).await.unwrap();
        let mut journal = Memory::default();
        for _ in ["asked", "asked again"] {
            let (ending, _) = ending(extract(&server, &long_invoice(), &mut journal).await);
            assert_eq!(ending, IncompleteReason::Endless);
            assert_eq!(ending.outcome_reason(), OutcomeReason::GateRefused);
            assert_eq!(server.calls().len(), 1, "the same from the stored reply");
        }
    }
}

#[tokio::test]
async fn numbers_that_a_servers_grammar_may_spoil_are_asked_for_and_read_as_printed() {
    use ReplyNumbers::{Auto, Json, Printed};
    let rows =
        ["ACME GmbH", "Rechnungsnummer A-17", "Brett 1.000 12,50 12.500,00", "Total 15.387,08"];
    let text = json!(["string", "null"]);
    for (own, numbers, is_text) in [
        (LlmServer::LlamaCpp, Auto, true),
        (LlmServer::Vllm, Auto, true),
        (LlmServer::Ollama, Auto, true),
        (LlmServer::LlamaCpp, Json, false),
        (LlmServer::Other, Auto, false),
        (LlmServer::Other, Printed, true),
    ] {
        let script = Script { record: true, ..Script::default() };
        let server = Server::start(script).await.unwrap();
        let config = LlmConfig { server: own, numbers, ..config(&server) };
        let (client, kind, terms) = (OpenAiClient::new(&config).unwrap(), kind(), terms());
        let (pages, mut journal) = (transcript(&[&rows]), Memory::default());
        let read = extract_by_model(&client, &kind, &pages, &terms, &mut journal).await.unwrap();
        assert_eq!(read.data["total"], 15_387.08, "{own:?} {numbers:?}");
        assert_eq!(read.data["line_items"][0]["quantity"], 1_000.0, "{own:?} {numbers:?}");
        let asked = &server.exchanges()[0].request;
        let total = "/response_format/json_schema/schema/properties/fields/properties/total/type";
        assert_eq!(asked.pointer(total) == Some(&text), is_text, "{own:?} {numbers:?}");
    }
}

/// As llama.cpp answers where it cannot read for itself what its model wrote.
fn unread_reply() -> Answer {
    Answer::Status {
        status: 500,
        retry_after: None,
        retry_after_ms: None,
        should_retry: None,
        code: None,
        message: Some("Failed to parse input at pos 13: {\"fields\": {".to_owned()),
    }
}

#[tokio::test]
async fn a_reply_that_its_server_could_not_read_is_asked_for_once_more_and_then_in_parts() {
    let once = Server::start(Script::of([unread_reply()])).await.unwrap();
    extract(&once, &long_invoice(), &mut Memory::default()).await.unwrap();
    assert_eq!(once.calls().len(), 2, "in other words, and not the same again");

    // Longer replies are cut, with the server's reason for it.
    let server = Server::start(Script::function(|request: &Request| {
        if document_lines(&request.body).len() > 12 { unread_reply() } else { Answer::Read }
    }));
    let server = server.await.unwrap();
    let read = extract(&server, &long_invoice(), &mut Memory::default()).await.unwrap();
    assert_eq!(read.data["line_items"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_split_like_a_cut_reply() {
    let server = Server::start(Script::function(|request: &Request| {
        let lines = document_lines(&request.body);
        if lines.len() > 12 {
            return Answer::error(400, "context_length_exceeded");
        }
        Answer::Read
    }))
    .await
    .unwrap();
    let read = extract(&server, &long_invoice(), &mut Memory::default()).await.unwrap();
    assert_eq!(read.data["line_items"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn an_endless_reply_is_not_read_to_the_end() {
    let server = Server::start(Script::always(Answer::Huge { bytes: 11 << 20 })).await.unwrap();
    let (ending, _) = ending(extract(&server, &invoice(), &mut Memory::default()).await);
    assert_eq!(ending.outcome_reason(), OutcomeReason::Cut);
}

#[tokio::test]
async fn a_prompt_over_its_limit_is_split_before_anything_is_sent() {
    let server = Server::start(Script::default()).await.unwrap();
    let pages: Vec<Vec<String>> =
        (0..6).map(|page| (0..200).map(|line| format!("words {page}-{line}")).collect()).collect();
    let pages: Vec<Vec<&str>> =
        pages.iter().map(|page| page.iter().map(String::as_str).collect()).collect();
    let pages: Vec<&[&str]> = pages.iter().map(Vec::as_slice).collect();
    let terms = CallLimits { prompt_tokens: 6_000, ..terms() };
    let (client, pages) = (client(&server), transcript(&pages));
    extract_by_model(&client, &kind(), &pages, &terms, &mut Memory::default()).await.unwrap();
    let calls = server.calls().len();
    assert!((2..=6).contains(&calls), "{calls}");
}

#[tokio::test]
async fn a_document_of_more_parts_than_may_be_asked_about_is_refused_before_the_first_call() {
    let server = Server::start(Script::default()).await.unwrap();
    let words = "words ".repeat(600);
    let pages = vec![[words.trim_end(); 3]; 420];
    let pages: Vec<&[&str]> = pages.iter().map(<[&str; 3]>::as_slice).collect();
    let terms = CallLimits { prompt_tokens: 6_000, ..terms() };
    let (client, pages) = (client(&server), transcript(&pages));
    let asked = extract_by_model(&client, &kind(), &pages, &terms, &mut Memory::default()).await;
    assert_eq!(ending(asked).0, IncompleteReason::TooCostly);
    assert_eq!(server.calls().len(), 0, "nothing is paid for what cannot be finished");
}

#[tokio::test]
async fn invariant_8_a_stored_reply_is_used_again_and_never_paid_for_twice() {
    let server = Server::start(Script::of([
        Answer::Text { content: "prose".to_owned() },
        Answer::status(400),
    ]))
    .await
    .unwrap();
    let mut journal = Memory::default();
    // The first reply is kept, the repair call fails, as if the worker had died there.
    let first = extract(&server, &invoice(), &mut journal).await;
    assert!(matches!(first, Err(ExtractError::Fault(_))), "{first:?}");
    let second = extract(&server, &invoice(), &mut journal).await.unwrap();
    let third = extract(&server, &invoice(), &mut journal).await.unwrap();
    assert_eq!(second, third);
    assert_eq!(server.calls().iter().filter(|call| call.status == 200).count(), 2);
    assert_eq!(server.completed_twice(), Vec::<String>::new());
}

#[tokio::test]
async fn invariant_8_a_reply_that_could_not_be_kept_is_not_used() {
    let server = Server::start(Script::default()).await.unwrap();
    let mut journal = Memory { broken: true, ..Memory::default() };
    let result = extract(&server, &invoice(), &mut journal).await;
    assert!(matches!(result, Err(ExtractError::Fault(error)) if error.fault == Fault::Transient));
}

#[tokio::test]
async fn replies_of_another_identity_are_not_used() {
    let server = Server::start(Script::default()).await.unwrap();
    let mut journal = Memory::default();
    extract(&server, &invoice(), &mut journal).await.unwrap();
    journal.kept.lock().unwrap().as_mut().unwrap().identity = "another".to_owned();
    extract(&server, &invoice(), &mut journal).await.unwrap();
    assert_eq!(server.calls().len(), 2);
}

#[tokio::test]
async fn every_input_of_an_extraction_changes_its_identity() {
    let server = Server::start(Script::default()).await.unwrap();
    let (one, kind) = (client(&server), kind());
    let other_model = LlmConfig { model: "model-2".to_owned(), ..config(&server) };
    let other_model = OpenAiClient::new(&other_model).unwrap();
    let mut other_kind = kind.clone();
    other_kind.asked_version = "changed".to_owned();
    let base = docmill_extract::extraction_identity("transcript", &one, &kind);
    assert_eq!(base, docmill_extract::extraction_identity("transcript", &client(&server), &kind));
    assert_ne!(base, docmill_extract::extraction_identity("other transcript", &one, &kind));
    assert_ne!(base, docmill_extract::extraction_identity("transcript", &other_model, &kind));
    assert_ne!(base, docmill_extract::extraction_identity("transcript", &one, &other_kind));
}

#[tokio::test]
async fn dropping_a_call_ends_it_at_the_server_without_completing_it() {
    let late = Answer::Late { millis: 60_000, then: Box::new(Answer::Read) };
    let server = Server::start(Script::always(late)).await.unwrap();
    let client = client(&server);
    let call = tokio::spawn(async move { client.complete(&prompt()).await });
    assert!(server.arrived(1, DEADLINE).await);
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert!(!server.calls()[0].completed);
}

#[tokio::test]
async fn invariant_11_a_reply_that_was_cut_is_not_complete_even_if_it_is_valid() {
    let server = Server::start(Script::function(|request: &Request| Answer::Cut {
        content: docmill_testkit::openai::read_document(&request.body).to_string(),
    }))
    .await
    .unwrap();
    let (ending, _) = ending(extract(&server, &invoice(), &mut Memory::default()).await);
    assert_eq!(ending, IncompleteReason::Cut);
}
