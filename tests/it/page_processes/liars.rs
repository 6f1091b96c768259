//! A compromised page process answers in its own interest: its answers are validated.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, mpsc};
use std::time::Duration;

use docmill_core::config::{ConfinementMode, CpuConfig, LimitsConfig, OcrConfig};
use docmill_core::model::{OutcomeReason, PageViewMode};
use docmill_documents::sandbox::wire::{read_frame, write_frame};
use docmill_documents::sandbox::{
    DocumentOpening, DocumentReadError, ProcessPool, ProcessProgram, ProcessSetup, ServeFunction,
};
use serde_json::{Value, json};

use crate::support::page_processes::recipe;

/// Its answer to the request to open a document, and to any other.
#[derive(Clone)]
struct Lies {
    opened: Value,
    answer: Value,
    body: Vec<u8>,
}

impl Default for Lies {
    fn default() -> Self {
        let opened = json!({ "Opened": { "members": [], "pages": 1, "einvoice": null } });
        Self { opened, answer: json!("Unaltered"), body: Vec::new() }
    }
}

/// Page processes that answer like this.
fn processes(lies: Lies) -> Arc<ProcessPool> {
    let serve: Arc<ServeFunction> = Arc::new(move |mut input, mut output| {
        let ready = json!({ "confinement": { "files": true, "calls": true } });
        let _setup: Option<(Value, _)> = read_frame(&mut input, 0).unwrap();
        write_frame(&mut output, &ready, &[]).unwrap();
        // Ends when the other side does, whichever way.
        while let Ok(Some((ask, _))) = read_frame::<Value>(&mut input, 1 << 20) {
            let (id, request) = (ask.get("id").unwrap(), ask.get("request").unwrap());
            let is_open = request.get("Open").is_some();
            let answer = if is_open { &lies.opened } else { &lies.answer };
            let body = if is_open { &[] } else { lies.body.as_slice() };
            let reply = json!({ "id": id, "answer": answer });
            if request.get("Close").is_none() && write_frame(&mut output, &reply, body).is_err() {
                return;
            }
        }
    });
    processes_of(serve)
}

fn processes_of(serve: Arc<ServeFunction>) -> Arc<ProcessPool> {
    let cpu = CpuConfig { confine: ConfinementMode::Off, ..Default::default() };
    let (limits, ocr) = (LimitsConfig::default(), OcrConfig::default());
    let setup = ProcessSetup::new(&cpu, &limits, &ocr, recipe(), 1);
    ProcessPool::new(ProcessProgram::Thread(serve), setup, 1000)
}

enum Question {
    Read,
    Show,
    Look,
    Print,
}

async fn ask(lies: Lies, question: &Question) -> Result<(), DocumentReadError> {
    let scan_einvoice = matches!(question, Question::Look);
    let how = DocumentOpening { scan_einvoice, ..DocumentOpening::default() };
    let mut document = processes(lies).open_tenant_document("%PDF-1.7".into(), how).await?;
    match question {
        Question::Read => document.read_page(0).await.map(drop),
        Question::Show => document.show_page(0, PageViewMode::AsItIs).await.map(drop),
        Question::Look => {
            drop(document.take_einvoice());
            Ok(())
        }
        Question::Print => document.printed_page(0).await.map(drop),
    }
}

fn page(change: impl FnOnce(&mut Value)) -> Value {
    let mut page = json!({
        "number": 1, "source": "native", "width": 595, "height": 842, "quality": 1, "lines": [],
    });
    change(&mut page);
    page
}

fn read_answer(page: &Value) -> Lies {
    let answer = json!({ "Read": { "page": page, "image": null } });
    Lies { answer, ..Lies::default() }
}

fn shown(text: &Value, body: &[u8]) -> Lies {
    let facts = json!({
        "number": 1, "repaired": false, "score": 0.5, "defects": [], "text": text, "layer": null,
        "cut": false,
    });
    let image = json!({ "width": 2, "height": 1, "dpi": 300, "encoding": "png" });
    let answer = json!({ "Shown": { "facts": facts, "image": image } });
    Lies { answer, body: body.to_vec(), ..Lies::default() }
}

fn opened(pages: u32) -> Lies {
    let opened = json!({ "Opened": { "members": [], "pages": pages, "einvoice": null } });
    Lies { opened, ..read_answer(&page(|_| ())) }
}

fn picture() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::GrayImage::new(2, 1).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Each is accepted, or refused with its error.
async fn assert_believed(table: impl IntoIterator<Item = (&'static str, Question, Lies, bool)>) {
    for (name, question, lies, is_believed) in table {
        let asked = tokio::time::timeout(Duration::from_secs(60), ask(lies, &question)).await;
        match asked.unwrap_or_else(|_| panic!("{name}: no end")) {
            Ok(()) => assert!(is_believed, "{name}"),
            Err(DocumentReadError::Refused { reason, detail }) => {
                assert_eq!(reason, OutcomeReason::Corrupt, "{name}");
                assert!(!is_believed && detail.contains("astray"), "{name}: {detail}");
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_is_refused_with_its_document_and_nothing_is_made_of_it() {
    let map = json!({ "across": 1, "cells": 1, "cell": 16, "text": [0] });
    let endless = json!({ "across": 1, "cells": usize::MAX, "cell": 16, "text": [] });
    let refused = |reason: &str, detail: &str| Lies {
        answer: json!({ "Refused": { "reason": reason, "detail": detail } }),
        ..Lies::default()
    };
    let pictured = |body: &[u8]| {
        let image = json!({ "width": 2, "height": 1, "dpi": 300, "encoding": "png" });
        let answer = json!({ "Read": { "page": page(|_| ()), "image": image } });
        Lies { answer, body: body.to_vec(), ..Lies::default() }
    };
    let printed = |change: fn(&mut Value)| Lies {
        answer: json!({ "Printed": { "page": { "text": page(change), "shows_more": false } } }),
        ..Lies::default()
    };
    let html = b"<html><script>alert(1)</script></html>";
    let languages = |page: &mut Value| page["languages"] = json!(vec![""; 100_000]);
    let word = |x: f64, confidence: f64| {
        let word = json!({
            "text": "a", "box": { "x": x, "y": 1, "w": 1, "h": 1 }, "confidence": confidence,
        });
        read_answer(&page(|page| page["lines"] = json!([{ "words": [word] }])))
    };
    let provider = |page: &mut Value| page["provider"] = json!({ "name": "document_ai" });
    #[rustfmt::skip]
    let table = [
        ("an honest page",               Question::Read, read_answer(&page(|_| ())), true),
        ("an honest picture",            Question::Show, shown(&map, &picture()), true),
        ("an honest repair",             Question::Read, pictured(&picture()), true),
        ("an honest print",              Question::Print, printed(|_| ()), true),
        ("4294967295 pages",             Question::Read, opened(u32::MAX), false),
        ("one page more than allowed",   Question::Read, opened(1001), false),
        ("no page",                      Question::Read, opened(0), false),
        ("languages without names",      Question::Read, read_answer(&page(languages)), false),
        ("a provider that was not asked", Question::Read, read_answer(&page(provider)), false),
        ("another page",                 Question::Read, read_answer(&page(|page| page["number"] = json!(2))), false),
        ("better than right",            Question::Read, read_answer(&page(|page| page["quality"] = json!(7))), false),
        ("an endless page",              Question::Read, read_answer(&page(|page| page["width"] = json!(1e300))), false),
        ("a word on it",                 Question::Read, word(1.0, 0.5), true),
        ("a word beyond every page",     Question::Read, word(1e10, 0.5), false),
        ("a word surer than sure",       Question::Read, word(1.0, 1.5), false),
        ("HTML as a repaired page",      Question::Read, pictured(html), false),
        ("HTML behind a repaired page",  Question::Read, pictured(&[picture().as_slice(), html].concat()), false),
        ("HTML as a picture",            Question::Show, shown(&map, html), false),
        ("a grid without end",           Question::Show, shown(&endless, &picture()), false),
        ("another printed page",         Question::Print, printed(|page| page["number"] = json!(2)), false),
        ("a printed page without a size", Question::Print, printed(|page| page["height"] = json!(-1)), false),
        ("an operator's word",           Question::Read, refused("cancelled", ""), false),
        ("a letter to the terminal",     Question::Read, refused("corrupt", "\u{1b}]52;c;ZXZpbA==\u{7}"), false),
    ];
    assert_believed(table).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_that_no_parser_of_ours_can_have_made_is_refused_with_its_document() {
    let found = |invoice: Value, is_document: bool| {
        let found = json!({ "invoice": invoice, "is_document": is_document });
        let opened = json!({ "Opened": { "members": [], "pages": 1, "einvoice": found } });
        Lies { opened, ..read_answer(&page(|_| ())) }
    };
    let invoice = |change: &dyn Fn(&mut Value)| {
        let mut fields = json!({
            "supplier_name": "A", "invoice_number": "1", "invoice_date": "2026-01-31",
            "currency": "EUR", "total": 1, "subtotal": null,
            "line_items": [{ "description": "B", "quantity": 1, "unit_price": 1, "amount": 1 }],
        });
        change(&mut fields);
        json!({ "Ok": { "is_credit_note": false, "fields": fields, "doubts": [] } })
    };
    let says = |name: &'static str, value: Value| {
        found(invoice(&|fields| fields[name] = value.clone()), false)
    };
    let line = json!({ "description": null });
    #[rustfmt::skip]
    let table = [
        ("an honest look",               Question::Look, found(invoice(&|_| ()), false), true),
        ("an honest look at nothing",    Question::Look, found(json!({ "Ok": null }), false), true),
        ("an honest flaw",               Question::Look, found(json!({ "Err": "Incomplete" }), true), true),
        ("an invoice without a number",  Question::Look, says("invoice_number", Value::Null), false),
        ("a number as a name",           Question::Look, says("supplier_name", json!(1)), false),
        ("no day of the calendar",       Question::Look, says("invoice_date", json!("2026-02-31")), false),
        ("a text as a total",            Question::Look, says("total", json!("1")), false),
        ("a field that no invoice has",  Question::Look, says("approved", json!(true)), false),
        ("a field within a field",       Question::Look, says("subtotal", json!({ "a": 1 })), false),
        ("lines that are none",          Question::Look, says("line_items", json!([1])), false),
        ("a line in a line",             Question::Look, says("line_items", json!([{ "amount": [1] }])), false),
        ("more lines than are read",     Question::Look, says("line_items", json!(vec![line; 20_001])), false),
        ("more text than is read",       Question::Look, says("currency", json!("E".repeat(1 << 21))), false),
        ("an invoice that is not there", Question::Look, found(json!({ "Ok": null }), true), false),
        ("no word of what was asked",    Question::Look, opened(1), false),
        ("a word that nobody asked for", Question::Read, found(json!({ "Ok": null }), false), false),
    ];
    assert_believed(table).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_opened_again_is_not_looked_through_again() {
    let (tell, told) = mpsc::channel();
    // Ends the first time that it is asked for a page.
    let serve: Arc<ServeFunction> = Arc::new(move |mut input, mut output| {
        let ready = json!({ "confinement": { "files": true, "calls": true } });
        let _setup: Option<(Value, _)> = read_frame(&mut input, 0).unwrap();
        write_frame(&mut output, &ready, &[]).unwrap();
        while let Ok(Some((ask, _))) = read_frame::<Value>(&mut input, 1 << 20) {
            let answer = match ask["request"].get("Open") {
                Some(open) => {
                    let looks = open["scan_einvoice"].as_bool().unwrap();
                    let found =
                        looks.then(|| json!({ "invoice": { "Ok": null }, "is_document": false }));
                    tell.send(looks).unwrap();
                    json!({ "Opened": { "members": [], "pages": 1, "einvoice": found } })
                }
                None => return,
            };
            let reply = json!({ "id": ask["id"], "answer": answer });
            write_frame(&mut output, &reply, &[]).unwrap();
        }
    });
    let how = DocumentOpening { scan_einvoice: true, ..DocumentOpening::default() };
    let cells = processes_of(serve);
    let document = cells.open_tenant_document("%PDF-1.7".into(), how).await.unwrap();
    assert!(document.read_page(0).await.is_err(), "each process ends");
    let looked: Vec<bool> = told.try_iter().collect();
    assert!(looked.len() > 1, "{looked:?}");
    assert_eq!(looked.iter().position(|looks| *looks), Some(0));
    assert!(!looked[1..].contains(&true), "{looked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_processs_verdict_about_its_document_is_accepted() {
    let answer = json!({ "Refused": { "reason": "too_large", "detail": "1001 pages, limits.pages is 1000" } });
    let asked = ask(Lies { answer, ..Lies::default() }, &Question::Read).await;
    assert!(matches!(
        asked,
        Err(DocumentReadError::Refused { reason: OutcomeReason::TooLarge, .. })
    ));
}
