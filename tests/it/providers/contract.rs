//! Exchanges between our clients and the stand-ins, written down so that `scripts/ocr_contracts.sh`
//! can hold both sides against the vendors' own descriptions of their services.

use std::path::Path;

use docmill_core::model::PagePicture;
use docmill_documents::ocr::textract::expense::ExpensePage;
use docmill_documents::ocr::{FileReader, StoredFile};
use docmill_testkit::document_ai::{Said, Script, Server, Straightened};
use docmill_testkit::document_intelligence as azure;
use docmill_testkit::mistral_ocr as mistral;
use docmill_testkit::textract::File;
use serde_json::Value;

use super::*;

/// Where the exchanges go; without it they are only made.
const FOLDER: &str = "DOCMILL_OCR_EXCHANGES";

fn write(service: &str, operation: &str, number: usize, exchange: (&Value, &Value)) {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let file = Path::new(&folder).join(format!("{service}-{number:02}.json"));
    let (request, reply) = exchange;
    let exchange = serde_json::json!({
        "service": service, "operation": operation, "request": request, "reply": reply,
    });
    std::fs::write(file, exchange.to_string()).unwrap();
}

fn sent(pages: u32) -> Vec<PagePicture> {
    (1..=pages).map(pictures::sent).collect()
}

#[tokio::test]
async fn exchanges_of_every_sort_with_document_ai_are_made_for_the_contract_check() {
    let said = |seen: google::Seen| Said {
        defects: vec![("blurry", 0.4), ("glare", 0.2)],
        straightened: Some(Straightened {
            matrix: [1.0, 0.0, 3.0, 0.0, 1.0, 4.0],
            size: (f64::from(seen.width), f64::from(seen.height)),
        }),
        ..Said::of_size(seen)
    };
    let server = Server::start(Script::default().reading(said)).await.unwrap();
    document_ai(&server, |_| ()).read_pictures(&sent(1)).await.unwrap();
    document_ai(&server, |_| ()).read_pictures(&sent(3)).await.unwrap();
    let hints = |config: &mut DocumentAiConfig| {
        (config.imageless, config.languages) = (true, vec!["de".to_owned(), "fr".to_owned()]);
    };
    document_ai(&server, hints).read_pictures(&sent(2)).await.unwrap();
    server.set(Script::default().reading(|seen| Said { score: 0.0, ..Said::of_size(seen) }));
    document_ai(&server, |_| ()).read_pictures(&sent(1)).await.unwrap();
    let calls = server.calls();
    assert_eq!(calls.iter().map(|call| call.status).collect::<Vec<_>>(), [200; 4]);
    for (number, call) in calls.iter().enumerate() {
        write("document_ai", "process", number, (&call.request, &call.reply));
    }
}

#[tokio::test]
async fn exchanges_of_every_sort_with_textract_are_made_for_the_contract_check() {
    let job =
        File { running: 1, part: 4, status: "PARTIAL_SUCCESS", lost: vec![2], ..File::of_pages(3) };
    let server = amazon::Server::start(amazon::Script::default().with_any_file(job)).await.unwrap();
    let provider = textract(&server);
    provider.read_pictures(&sent(1)).await.unwrap();
    let file = StoredFile {
        bucket: "documents".to_owned(),
        key: "documents/a.pdf".to_owned(),
        version: Some("v1".to_owned()),
        token: "0b9d5a3e-0000-4000-8000-000000000000".to_owned(),
    };
    let sizes = (1..=3).map(|page| (page, (100, 100))).collect();
    assert_eq!(provider.read_file(&file, &sizes).await.unwrap().0.len(), 2);
    let fields = amazon::Script::default()
        .with_summary(&[("TOTAL", "441,87"), ("INVOICE_RECEIPT_ID", "RE-17")])
        .with_line(&[("ITEM", "Paper"), ("PRICE", "178,00")]);
    server.set(fields);
    let page = ExpensePage { number: 1, width: 100.0, height: 100.0 };
    expense_at(&server.endpoint()).analyze_page(&pictures::sent(1).image, page).await.unwrap();
    let calls = server.calls();
    assert!(calls.len() > 5 && calls.iter().all(|call| call.status == 200));
    for (number, call) in calls.iter().enumerate() {
        write("textract", &call.operation, number, (&call.request, &call.reply));
    }
}

#[tokio::test]
async fn exchanges_with_mistral_ocr_are_made_for_the_contract_check() {
    let server = mistral::Server::start(vision::markdown_rows).await.unwrap();
    let provider = vision::mistral_ocr(&server);
    for page in 1..=2 {
        let (readings, usage) = provider.read_pictures(&[vision::sent(page)]).await.unwrap();
        assert_eq!((readings[0].refused, usage.pages, usage.tokens.prompt_tokens()), (None, 1, 0));
    }
    for (number, exchange) in server.exchanges().iter().enumerate() {
        write("mistral_ocr", "ocr", number, (&exchange.request, &exchange.reply));
    }
}

#[tokio::test]
async fn exchanges_of_every_sort_with_document_intelligence_are_made_for_the_contract_check() {
    let server = azure::Server::start().await.unwrap();
    let client = document_intelligence::document_intelligence(&server);
    client.ping().await.unwrap();
    client.read_pictures(&sent(1)).await.unwrap();
    client.read_pictures(&sent(3)).await.unwrap();
    server.fail_analyses(["InvalidRequest"]);
    client.read_pictures(&sent(1)).await.unwrap_err();
    let refusal = azure::Refusal { status: 400, code: "InvalidRequest", retry_after: None };
    server.refuse([refusal]);
    client.read_pictures(&sent(1)).await.unwrap_err();
    let exchanges = server.exchanges();
    let count = |method: &str| exchanges.iter().filter(|one| one.method == method).count();
    assert_eq!((count("POST"), count("DELETE")), (4, 3));
    for (number, one) in exchanges.iter().enumerate() {
        let request = serde_json::json!({
            "method": one.method, "path": one.path, "query": one.query,
            "content_type": one.content_type,
        });
        let reply = serde_json::json!({
            "status": one.status, "operation_location": one.operation_location, "body": one.reply,
        });
        write("document_intelligence", "", number, (&request, &reply));
    }
}
