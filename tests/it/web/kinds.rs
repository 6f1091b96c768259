//! Kinds in the browser: fields, rules and their counts, drafts and replays.

use docmill_ledger::db::reports::quality::{count_kind, count_kind_reasons};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::desk::{WebConsole, invoice, send};

const DRAFT: &str = "/kinds/invoice/draft";

/// A decision about a document that two rules flagged.
async fn decide(desk: &WebConsole, tenant: &str, decision: &str, after: &str, days: u32) {
    let (document, ingestion) = desk.refused(tenant, &invoice(1.0)).await;
    desk.execute(&format!(
        "INSERT INTO document_revision (document_id, ingestion_id, reviewer, decision, decided_at,
             reasons_before, data_before, data_after)
         SELECT '{document}', '{ingestion}', 'ann', '{decision}', now() - interval '{days} days',
             review_reasons, structured_data, structured_data || '{after}' FROM ingestion
         WHERE id = '{ingestion}'"
    ))
    .await;
}

/// The result of a replay that names this document.
fn report_about(document: impl ToString) -> Value {
    json!({
        "documents": 3, "changed": 1, "better": 0, "worse": 1, "worse_unflagged": 1,
        "newly_flagged": 0, "no_longer_flagged": 0, "left_out": 2, "worse_at_most": 0.5,
        "max_worse": 0.01, "taken": false, "cut_short": false, "cost_nanos": 0, "seconds": 1.5,
        "named": [{ "document_id": document.to_string(), "better": [], "worse": ["<script>"],
            "failed": true }]
    })
}

/// A replay of this id that is done.
pub(super) async fn store_replay(desk: &WebConsole, id: impl ToString) {
    let (id, report) = (id.to_string(), report_about(id.to_string()));
    desk.execute(&format!(
        "INSERT INTO kind_replay (id, kind, version, files, max_documents, max_worse, max_cost_nanos,
             asked_by, state, started_at, ended_at, report)
         VALUES ('{id}', 'generic', repeat('0', 64), '{{\"prompt.md\": \"Read.\"}}', 9, 0.01, 0,
             'ann', 'done', now(), now(), '{report}')"
    ))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_counts_what_it_flagged_and_how_often_its_own_value_was_changed() {
    let desk = WebConsole::open().await;
    decide(&desk, "acme", "corrected", r#"{"due_date": "2024-01-01"}"#, 1).await;
    decide(&desk, "acme", "corrected", r#"{"total": 2}"#, 1).await;
    decide(&desk, "rival", "accepted", "{}", 1).await;
    decide(&desk, "rival", "corrected", r#"{"due_date": "2024-01-01"}"#, 31).await;
    desk.execute(
        "UPDATE ingestion SET reader = 'rules';
         UPDATE ingestion SET completed_at = now() - interval '31 days'
         WHERE document_id = (SELECT max(document_id::text)::uuid FROM document_revision
             WHERE decided_at < now() - interval '30 days')",
    )
    .await;
    let db = desk.database.db();
    for (tenant, ended, reasons) in [
        (None, 3, [("net_and_vat_are_not_total", 3, 2), ("required", 3, 1)]),
        (Some("acme"), 2, [("net_and_vat_are_not_total", 2, 2), ("required", 2, 1)]),
    ] {
        let counts = count_kind(&db, "invoice", tenant).await.unwrap();
        let counts: Vec<(&str, i64)> =
            counts.iter().map(|it| (it.name.as_str(), it.documents)).collect();
        let flagged = [("rules", ended), ("net_and_vat_are_not_total", ended), ("required", ended)];
        assert_eq!(counts, flagged, "{tenant:?}");
        let mut found = count_kind_reasons(&db, "invoice", tenant).await.unwrap();
        found.sort_by(|a, b| a.reason.cmp(&b.reason));
        let found: Vec<(&str, i64, i64)> =
            found.iter().map(|it| (it.reason.as_str(), it.decided, it.changed)).collect();
        assert_eq!(found, reasons, "{tenant:?}");
    }
    assert!(count_kind(&db, "receipt", None).await.unwrap().is_empty());
    let list = desk.browser("viewer").await.get("/kinds").await.body;
    assert!(list.contains("href=\"/kinds/invoice\"") && list.contains("built in"), "{list}");
    let page = desk.browser("operator").await.get("/kinds/invoice").await.body;
    for text in ["next model, then refused", "The amounts do not add up", "line_items.amount"] {
        assert!(page.contains(text), "{text}");
    }
    // A count that grows by a decision would show that its document was drawn.
    for (name, counted) in [("operator", true), ("acme", true), ("ann", false), ("viewer", false)] {
        let page = desk.browser(name).await.get("/kinds/invoice").await.body;
        assert_eq!(page.contains("<th>decided</th>"), counted, "{name}");
    }
    assert_eq!(desk.browser("ann").await.get("/kinds/nothing").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draft_with_a_fault_is_refused_by_file_and_line_and_a_sound_one_waits_for_a_worker() {
    let desk = WebConsole::open().await;
    let acme = desk.browser("acme").await;
    let page = acme.get(DRAFT).await.body;
    let faulty = "[[rule]]\nname = \"r\"\ncheck = \"requird\"\nconsequence = \"flag\"\n";
    for (name, value, said) in [
        (
            "rules.toml",
            faulty,
            "<ul><li><bdi>invoice/rules.toml:1: rule `r`: there is no check `requird`",
        ),
        ("schema.json", "{\n]", "invoice/schema.json:2: "),
        ("max_documents", "0", "from 1 to 10000"),
        ("max_worse", "many", "max_worse: "),
        ("tenant", "rival", ""),
    ] {
        let answer = acme.send_form(&page, DRAFT, &[(name, value), ("why", "a & b")]).await;
        let status = match said {
            "" => StatusCode::FORBIDDEN,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        assert_eq!(answer.status, status, "{name}: {}", answer.body);
        assert!(answer.body.contains(said), "{name}: {}", answer.body);
        // Nothing that was typed is lost.
        assert!(said.is_empty() || answer.body.contains("a &amp; b"), "{name}");
        let kept = answer.body.matches("name=\"labels.toml\"").count();
        assert_eq!(kept, usize::from(!said.is_empty()), "{name}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM kind_replay").await, "0");
    let label = "[total]\nstrong.en = [\"grand sum\"]\n";
    let taken = acme.send_form(&page, DRAFT, &[("labels.toml", label)]).await;
    assert_eq!(taken.status, StatusCode::SEE_OTHER, "{}", taken.body);
    let place = taken.location().to_owned();
    let kept = "SELECT tenant || ' ' || state || ' ' || (files ->> 'labels.toml') FROM kind_replay";
    assert_eq!(desk.scalar(kept).await, format!("acme waiting {label}"));
    let shown = acme.get(&place).await.body;
    assert_eq!(shown.matches("(differs from the kind in force)").count(), 1, "{shown}");
    let file = acme.get(&format!("{place}/file?name=labels.toml")).await;
    assert_eq!(file.body, label);
    assert!(file.header("content-disposition").starts_with("attachment"));
    for path in [place.clone(), format!("{place}/file?name=labels.toml")] {
        assert_eq!(desk.browser("rival").await.get(&path).await.status, StatusCode::NOT_FOUND);
        assert_eq!(desk.browser("ann").await.get(&path).await.status, StatusCode::FORBIDDEN);
    }
    let audit =
        "SELECT operator || ' ' || target FROM operator_action WHERE action = 'replay_kind'";
    assert_eq!(desk.scalar(audit).await, "web:acme kind:invoice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_asks_for_a_replay_and_gets_its_result_as_the_command_prints_it() {
    let desk = WebConsole::open().await;
    let path = "/kinds/invoice/replays";
    let ask = async |name: &str, path: &str, body: Value| {
        send(desk.call(Method::POST, path, name).json(&body)).await
    };
    for (name, path, body, status) in [
        ("viewer", path, json!({}), 403),
        ("acme", "/kinds/nothing/replays", json!({}), 404),
        ("acme", path, json!({ "tenant": "rival" }), 403),
        ("acme", path, json!({ "files": { "../x": "" } }), 422),
        ("acme", path, json!({ "files": { "prompt.md": "x".repeat(600_000) } }), 422),
        ("acme", path, json!({ "max_worse": 1 }), 422),
        ("acme", path, json!({ "most": 1 }), 400),
    ] {
        let answer = ask(name, path, body).await;
        assert_eq!(answer.status.as_u16(), status, "{name} {path}: {answer:?}");
    }
    let asked = ask("acme", path, json!({ "why": "a release" })).await;
    assert_eq!((asked.status, &asked.json()["state"]), (StatusCode::OK, &json!("waiting")));
    let replay = format!("/replays/{}", asked.json()["id"].as_str().unwrap());
    assert_eq!(desk.get(&replay, "rival").await.status, StatusCode::NOT_FOUND);
    for status in [200, 200, 409] {
        assert_eq!(ask("acme", path, json!({})).await.status.as_u16(), status);
    }
    let document = uuid::Uuid::nil();
    let report = report_about(document);
    desk.execute(&format!(
        "UPDATE kind_replay SET state = 'done', started_at = now(), ended_at = now(),
             report = '{report}'"
    ))
    .await;
    assert_eq!(desk.get(&replay, "acme").await.json()["report"], report);
    let page = desk.browser("acme").await.get(&replay).await.body;
    for text in [
        "Does not pass the gate: at most 50.00 % of documents get worse",
        "3 documents: 1 change, 0 better, 1 worse (1 of them unflagged)",
        &format!("href=\"/reviews/{document}\""),
        "&lt;script&gt; fails now",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let refused = desk.call(Method::PUT, &format!("{replay}/shadow"), "acme");
    assert_eq!(send(refused.json(&json!({ "share": 0.5 }))).await.status, StatusCode::CONFLICT);
    let kind = desk.browser("acme").await.get("/kinds/invoice").await.body;
    assert_eq!(kind.matches("not passed").count(), 3);
    assert!(!desk.browser("rival").await.get("/kinds/invoice").await.body.contains("not passed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_the_drafts_of_a_kind_that_passed_one_is_in_the_shadow_and_its_tenant_alone_changes_that()
 {
    let desk = WebConsole::open().await;
    let mut replays = Vec::new();
    for _ in 0..2 {
        let ask = desk.call(Method::POST, "/kinds/invoice/replays", "acme");
        let asked = send(ask.json(&json!({}))).await.json();
        replays.push(format!("/replays/{}", asked["id"].as_str().unwrap()));
    }
    desk.execute(&format!(
        "UPDATE kind_replay SET state = 'done', started_at = now(), ended_at = now(),
             report = '{}'::jsonb || '{{\"taken\": true}}'",
        report_about(uuid::Uuid::nil())
    ))
    .await;
    let [first, second] = [&replays[0], &replays[1]];
    for (name, replay, share, status) in [
        ("viewer", first, 0.5, 403),
        ("rival", first, 0.5, 404),
        ("acme", first, 1.5, 422),
        ("acme", first, 0.5, 200),
        ("acme", second, 0.25, 200),
        ("acme", second, 0.0, 200),
    ] {
        let path = format!("{replay}/shadow");
        let put = desk.call(Method::PUT, &path, name).json(&json!({ "share": share }));
        let answer = send(put).await;
        assert_eq!(answer.status.as_u16(), status, "{name} {share}: {answer:?}");
        if status == 200 {
            let shares = "SELECT count(*) || ':' || COALESCE(sum(shadow_share), 0) FROM kind_replay \
                          WHERE shadow_share IS NOT NULL";
            let one = if share > 0.0 { format!("1:{share}") } else { "0:0".to_owned() };
            assert_eq!(desk.scalar(shares).await, one);
        }
    }
    let acme = desk.browser("acme").await;
    let page = acme.get(first).await.body;
    let form = [("share", "12.5"), ("why", "a month")];
    let sent = acme.send_form(&page, &format!("{first}/shadow"), &form).await;
    assert_eq!(sent.status, StatusCode::SEE_OTHER, "{}", sent.body);
    let page = acme.get(first).await.body;
    assert!(page.contains("In the shadow") && page.contains("value=\"12.5\""), "{page}");
    let list = acme.get("/kinds/invoice").await.body;
    assert_eq!(list.matches("in the shadow of 12.50 %").count(), 1, "{list}");
    let audit =
        "SELECT string_agg(COALESCE(before #>> '{set,shadow_share}', 'none'), ' ' ORDER BY id)
                 FROM operator_action WHERE before -> 'set' ? 'shadow_share'";
    assert_eq!(desk.scalar(audit).await, "0.5 0.25 none 0.125");
}
