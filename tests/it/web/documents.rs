//! The page of one document: its data, history, processing, downloads and duplicates.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_ledger::duplicate_key::DuplicateKeys;
use reqwest::StatusCode;

use super::api::{given_up, store_transcript};
use super::desk::{WebConsole, invoice};

/// The text of each row of the page's tables, cells divided by bars.
fn rows(page: &str) -> Vec<String> {
    let rows = page.split("<tr>").skip(1).map(|row| row.split("</tr>").next().unwrap());
    let cells = |row: &str| -> Vec<String> {
        let cells = row.split("</td>").map(|cell| {
            let parts = cell.split('<').map(|part| part.split_once('>').map_or(part, |it| it.1));
            parts.collect::<String>().trim().to_owned()
        });
        cells.collect()
    };
    rows.map(|row| cells(row).join(" | ")).collect()
}

/// Everything of a page but the times of its changes.
fn changes(page: &str) -> Vec<String> {
    let changes = rows(page).into_iter().filter(|row| {
        [", read", ", corrected", ", undone"].iter().any(|cause| row.contains(cause))
    });
    changes.map(|row| row.rsplitn(3, " | ").last().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_document_tells_each_change_of_each_value_and_who_made_it() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    desk.execute("UPDATE ingestion SET reader = 'llm', extraction_model = 'large'").await;
    let ann = desk.browser("ann").await;
    let (path, review) = (format!("/ingestions/{ingestion}"), format!("/reviews/{document}"));
    let page = ann.get(&path).await.body;
    assert!(page.contains("Read by <bdi>llm</bdi> (<bdi>large</bdi>) at "), "{page}");
    assert_eq!(changes(&page), [""; 0]);
    let typed = [
        ("field.total", "13"),
        ("item.line_items.1.amount", "3.5"),
        ("field.due_date", "2026-03-05"),
        ("decision", "correct"),
    ];
    assert_eq!(ann.submit(&review, &review, &typed).await.status, StatusCode::SEE_OTHER);
    let corrected = [
        "Due date | – | 5 Mar 2026 | web:ann, corrected",
        "Line items 2: Amount | 3.00 | 3.50 | web:ann, corrected",
        "Total | 21.00 | 13.00 | web:ann, corrected",
    ];
    let page = ann.get(&path).await.body;
    assert_eq!(changes(&page), corrected);
    assert!(page.contains("13.00 <bdi>EUR</bdi>"), "the data is that of the decision: {page}");
    let undo = format!("{review}/undo");
    assert_eq!(ann.submit(&review, &undo, &[]).await.status, StatusCode::SEE_OTHER);
    desk.execute(&format!(
        "INSERT INTO ingestion (document_id, tenant, kind, status, valid_structured_data, reader,
             started_at, completed_at, structured_data)
         SELECT document_id, tenant, kind, 'completed', true, 'rules', docmill_now(), docmill_now(),
             jsonb_set(structured_data, '{{total}}', '14') FROM ingestion WHERE id = '{ingestion}'"
    ))
    .await;
    let of_totals = changes(&ann.get(&path).await.body);
    let of_totals: Vec<&str> =
        of_totals.iter().map(String::as_str).filter(|row| row.starts_with("Total")).collect();
    let expected = [
        "Total | 21.00 | 13.00 | web:ann, corrected",
        "Total | 13.00 | 21.00 | web:ann, undone",
        "Total | 21.00 | 14.00 | rules, read",
    ];
    assert_eq!(of_totals, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_document_are_saved_by_its_tenants_visitors_and_are_not_there_for_others() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let (ann, rival) = (desk.browser("ann").await, desk.browser("rival").await);
    let (path, review) = (format!("/ingestions/{ingestion}"), format!("/reviews/{document}"));
    let page = ann.get(&path).await.body;
    assert!(!page.contains("format=text"), "it has no transcript yet: {page}");
    store_transcript(&desk, ingestion).await;
    assert!(!ann.get(&path).await.body.contains("Searchable PDF"), "there is no copy");
    let copy = desk.folder.path().join(format!("store/ingestions/{ingestion}/searchable.pdf"));
    std::fs::write(copy, "%PDF-1.7").unwrap();
    ann.submit(&review, &review, &[("field.total", "13.5"), ("decision", "correct")]).await;
    let page = ann.get(&path).await.body;
    for (file, ending, content) in [
        ("/data", ".json", "\"total\": 13.5"),
        ("/export?form=csv", ".csv", "13.5"),
        ("/transcript?format=text", ".txt", "ZIMMER"),
        ("/transcript?format=markdown", ".md", "ZIMMER"),
    ] {
        let file = format!("{path}{file}");
        assert!(page.contains(&format!("href=\"{file}\"")), "{file}: {page}");
        let saved = ann.get(&file).await;
        assert!(saved.status == StatusCode::OK && saved.body.contains(content), "{saved:?}");
        let how = saved.header("content-disposition");
        assert!(how.starts_with("attachment; ") && how.ends_with(ending), "{how}");
        assert_eq!(rival.get(&file).await.status, StatusCode::NOT_FOUND, "{file}");
        assert_eq!(desk.stranger().get(&file).await.status, StatusCode::SEE_OTHER, "{file}");
    }
    assert!(page.contains(&format!("href=\"{path}/transcript?format=pdf\"")), "{page}");
    assert_eq!(
        ann.submit(&review, &review, &[("decision", "reject"), ("why", "x")]).await.status,
        303
    );
    let gone = ann.get(&format!("{path}/data")).await;
    assert_eq!(gone.status, StatusCode::UNPROCESSABLE_ENTITY, "a rejected document has no data");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_leads_to_its_duplicates_and_to_nothing_of_another_tenant() {
    let desk = WebConsole::open().await;
    let (_, own) = desk.refused("acme", &invoice(21.0)).await;
    let key = DuplicateKeys::new("Acme", "7").unwrap().of_issue(None, "invoice").current;
    let mut others = Vec::new();
    for (tenant, name) in
        [("acme", "same"), ("acme", "again"), ("rival", "their-same"), ("rival", "their-again")]
    {
        let (document, ingestion) = desk.waiting(tenant, &format!("{name}.pdf")).await;
        desk.execute(&format!(
            "UPDATE ingestion SET status = 'completed', completed_at = docmill_now(),
                 started_at = docmill_now(), valid_structured_data = true,
                 duplicate_key = CASE WHEN '{name}' LIKE '%again' THEN '{key}' END
             WHERE id = '{ingestion}';
             UPDATE document SET sha256 = repeat('ab', 32)
             WHERE id = '{document}' AND '{name}' LIKE '%same'"
        ))
        .await;
        others.push((name, document.to_string(), ingestion.to_string()));
    }
    desk.execute(&format!("UPDATE ingestion SET sha256 = repeat('ab', 32) WHERE id = '{own}'"))
        .await;
    let page = desk.browser("acme").await.get(&format!("/ingestions/{own}")).await.body;
    for (name, document, ingestion) in &others {
        let leads = [document, ingestion]
            .iter()
            .any(|id| page.contains(&format!("href=\"/ingestions/{id}\"")));
        assert_eq!(leads, !name.starts_with("their"), "{name}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhooks_of_a_document_are_shown_to_those_who_see_all_tenants() {
    let desk = WebConsole::open().await;
    let (document, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    given_up(&desk, document).await;
    for (name, shown) in [("viewer", true), ("operator", true), ("acme", false)] {
        let page = desk.browser(name).await.get(&format!("/ingestions/{ingestion}")).await.body;
        let told = rows(&page).iter().any(|row| row.starts_with("erp | document.failed"));
        assert_eq!(told, shown, "{name}: {page}");
    }
}
