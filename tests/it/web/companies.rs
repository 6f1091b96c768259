//! Own companies on the page and for programs.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::desk::{WebConsole, filled_form, send};

const PATH: &str = "/own-companies";

fn company(name: &str) -> Value {
    json!({ "name": name, "other_names": [], "vat_ids": ["DE129273398"],
        "accounts": ["DE89370400440532013000"], "addresses": ["Lindenweg 4, 19217 Rehna"] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_tenant_sets_and_sees_its_own_companies_alone() {
    let desk = WebConsole::open().await;
    let put =
        async |name: &str, body: Value| send(desk.call(Method::PUT, PATH, name).json(&body)).await;
    let own = put("acme", json!({ "companies": [company("Acme GmbH")], "why": "new" })).await;
    assert_eq!(own.status, StatusCode::OK, "{own:?}");
    assert_eq!(own.json()["items"], json!([company("Acme GmbH")]));
    let other = put("rival", json!({ "tenant": "acme", "companies": [] })).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    put("rival", json!({ "companies": [company("Rival AG"), company("Acme GmbH")] })).await;
    put("operator", json!({ "companies": [company("Of nobody AG")] })).await;
    for (name, query, expected) in [
        ("acme", "", json!(["Acme GmbH"])),
        ("rival", "", json!(["Acme GmbH", "Rival AG"])),
        ("operator", "", json!(["Of nobody AG"])),
        ("operator", "?tenant=acme", json!(["Acme GmbH"])),
    ] {
        let list = desk.get(&format!("{PATH}{query}"), name).await.json();
        let names: Vec<&Value> =
            list["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
        assert_eq!(json!(names), expected, "{name} {query}");
    }
    let foreign = desk.get(&format!("{PATH}?tenant=rival"), "acme").await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    let page = desk.browser("acme").await.get("/companies").await.body;
    assert!(
        page.contains("Acme GmbH") && !page.contains("Rival AG") && !page.contains("Of nobody")
    );
    let audit = desk
        .scalar(
            "SELECT string_agg(operator || ' ' || target, ', ' ORDER BY id)
        FROM operator_action WHERE action = 'companies'",
        )
        .await;
    assert_eq!(audit, "web:acme tenant:acme, web:rival tenant:rival, web:operator tenant:");
}

#[tokio::test(flavor = "multi_thread")]
async fn companies_that_are_unsound_or_too_many_are_refused_whole() {
    let desk = WebConsole::open().await;
    let many: Vec<Value> = (0..501).map(|at| company(&format!("Company {at}"))).collect();
    let mut wrong_account = company("Acme GmbH");
    wrong_account["accounts"] = json!(["DE89370400440532013001"]);
    for (companies, expected) in [
        (json!([company("Acme GmbH"), company("Acme GmbH")]), StatusCode::UNPROCESSABLE_ENTITY),
        (json!([company("Acme GmbH"), company("\n")]), StatusCode::UNPROCESSABLE_ENTITY),
        (json!([company("Sound AG"), wrong_account]), StatusCode::UNPROCESSABLE_ENTITY),
        (json!(many), StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let call = desk.call(Method::PUT, PATH, "acme").json(&json!({ "companies": companies }));
        assert_eq!(send(call).await.status, expected);
    }
    // Refused before it is read: its sender sees the answer or the end of the connection.
    let large = json!({ "companies": [company(&"x".repeat(5 << 20))] });
    let answer = desk.call(Method::PUT, PATH, "acme").json(&large).send().await;
    assert!(answer.is_err() || answer.unwrap().status() == StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(desk.scalar("SELECT count(*) FROM own_company").await, "0");
    assert_eq!(desk.scalar("SELECT count(*) FROM operator_action").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_company_is_added_and_removed_on_the_page_and_a_hostile_name_stays_text() {
    let desk = WebConsole::open().await;
    let browser = desk.browser("acme").await;
    let name = "<script>alert(1)</script> & Co. KG";
    let page = browser.get("/companies").await.body;
    let form = filled_form(&page, "/companies", &[("name", name), ("vat_ids", "DE129273398\n\n")]);
    assert_eq!(browser.post_raw("/companies", &form).await.status, StatusCode::SEE_OTHER);
    let page = browser.get("/companies").await.body;
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"));
    assert_eq!(
        desk.scalar("SELECT array_to_string(vat_ids, ',') FROM own_company").await,
        "DE129273398"
    );
    let rival = desk.browser("rival").await;
    let own = rival.get("/companies").await.body;
    let secret = super::desk::form_fields(&own, "/companies")[0].1.clone();
    let theirs = format!("form_secret={secret}&confirm=yes&tenant=acme&name=x");
    assert_eq!(rival.post_raw("/companies/remove", &theirs).await.status, StatusCode::FORBIDDEN);
    let form = filled_form(&page, "/companies/remove", &[("confirm", "yes")]);
    assert_eq!(browser.post_raw("/companies/remove", &form).await.status, StatusCode::SEE_OTHER);
    assert_eq!(desk.scalar("SELECT count(*) FROM own_company").await, "0");
    let audited = "SELECT count(*) FROM operator_action WHERE action = 'companies'";
    assert_eq!(desk.scalar(audited).await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_one_tenant_sets_and_counts_its_own_master_data_alone() {
    let desk = WebConsole::open().await;
    let put = async |name: &str, what: &str, body: Value| {
        send(desk.call(Method::PUT, &format!("/master-data/{what}"), name).json(&body)).await
    };
    let suppliers = json!([{ "number": "1", "name": "A" }, { "number": "2", "name": "B" }]);
    let done = put("acme", "suppliers", json!({ "suppliers": suppliers })).await;
    assert_eq!(done.json(), json!({ "tenant": "acme", "suppliers": 2, "orders": 0 }));
    for (name, what, body, status) in [
        ("rival", "suppliers", json!({ "tenant": "acme", "suppliers": [] }), StatusCode::FORBIDDEN),
        ("ann", "suppliers", json!({ "suppliers": [] }), StatusCode::FORBIDDEN),
        (
            "acme",
            "orders",
            json!({ "orders": [{ "number": "1", "amount": "x" }] }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            "acme",
            "orders",
            json!({ "orders": [{ "number": "1", "amount": 1 }] }),
            StatusCode::BAD_REQUEST,
        ),
        (
            "acme",
            "suppliers",
            json!({ "suppliers": [{ "number": "9", "name": "\u{0}" }] }),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            "rival",
            "orders",
            json!({ "orders": [{ "number": "9", "amount": "5" }] }),
            StatusCode::OK,
        ),
    ] {
        let answer = put(name, what, body).await;
        assert_eq!(answer.status, status, "{name} {what}: {answer:?}");
    }
    let counts = desk.get("/master-data", "rival").await.json();
    assert_eq!(counts, json!({ "tenant": "rival", "suppliers": 0, "orders": 1 }));
    assert_eq!(desk.get("/master-data?tenant=acme", "rival").await.status, StatusCode::FORBIDDEN);
}
