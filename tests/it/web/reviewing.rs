//! Reviewers at their pages.

use reqwest::StatusCode;
use serde_json::Value;

use super::desk::{WebConsole, invoice};

async fn carried(desk: &WebConsole, document: impl ToString) -> Value {
    let sql = format!("SELECT structured_data FROM document WHERE id = '{}'", document.to_string());
    serde_json::from_str(&desk.scalar(&sql).await).unwrap_or(Value::Null)
}

fn assert_usable_by_keyboard(page: &str) {
    for name in ["total", "invoice_date", "line_items", "why"] {
        let id = if name == "why" { name.to_owned() } else { format!("field-{name}") };
        assert!(page.contains(&format!("<label for=\"{id}\"")), "{name} has a label");
        assert!(page.contains(&format!("id=\"{id}\"")), "{name} can be focused");
    }
    for key in ["accesskey=\"c\"", "accesskey=\"a\"", "accesskey=\"r\""] {
        assert!(page.contains(key), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_finds_what_waits_corrects_a_field_and_a_line_and_is_led_to_the_next() {
    let desk = WebConsole::open().await;
    let (first, ingestion) = desk.refused("acme", &invoice(21.0)).await;
    let (second, _) = desk.refused("acme", &invoice(13.0)).await;
    let ann = desk.browser("ann").await;
    let queue = ann.get("/reviews").await.body;
    let places = [first, second].map(|id| queue.find(&id.to_string()).unwrap());
    assert!(places[0] < places[1], "the one that waits longest comes first");

    let path = format!("/reviews/{first}");
    let page = ann.get(&path).await.body;
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not on the page"));
    assert!(place("To be checked") < place("The rest"));
    assert!(
        place("name=\"field.total\"") < place("name=\"field.supplier_name\""),
        "doubtful first"
    );
    assert!(place("This has to be there and is not.") < place("The rest"));
    assert!(page.contains("The amounts do not add up to the total."), "rules in words");
    assert!(page.contains("found on page 2"));
    assert_usable_by_keyboard(&page);

    let filled = [
        ("field.total", "13"),
        ("field.due_date", "2026-12-01"),
        ("item.line_items.0.amount", "9.50"),
        ("item.line_items.2.description", "Glue"),
        ("item.line_items.2.amount", "3.5"),
        ("decision", "correct"),
        ("why", "  by the paper "),
    ];
    let done = ann.send_form(&page, &path, &filled).await;
    let next = format!("/reviews/{second}?done=corrected&undo={first}");
    assert_eq!(done.location(), next, "{done:?}");
    let data = carried(&desk, first).await;
    assert_eq!((&data["total"], &data["due_date"]), (&13.into(), &"2026-12-01".into()));
    assert_eq!(data["supplier_name"], "Acme", "what was not touched stays");
    let items = data["line_items"].as_array().unwrap();
    assert_eq!(
        (items.len(), &items[0]["amount"], &items[0]["quantity"]),
        (3, &9.5.into(), &2.into())
    );
    assert_eq!((&items[2]["description"], &items[2]["unit_price"]), (&"Glue".into(), &Value::Null));
    let revision = "SELECT reviewer || ' ' || decision || ' ' || why FROM document_revision";
    assert_eq!(desk.scalar(revision).await, "web:ann corrected by the paper");
    let kept =
        format!("SELECT data_before IS NULL FROM document_revision WHERE document_id = '{first}'");
    assert_eq!(desk.scalar(&kept).await, "true");

    let last = ann
        .submit(
            &format!("/reviews/{second}"),
            &format!("/reviews/{second}"),
            &[("decision", "accept")],
        )
        .await;
    assert_eq!(last.location(), format!("/reviews?done=accepted&undo={second}"));
    assert_eq!(carried(&desk, second).await["total"], 13.0);
    assert!(ann.get("/reviews").await.body.contains("Nothing waits for a person."));
    let again = ann.get(&path).await.body;
    assert!(again.contains("corrected by <bdi>web:ann</bdi>"), "the decision stands on the page");
    assert!(ann.get(&format!("/ingestions/{ingestion}")).await.body.contains("failed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_told_beside_what_was_typed_and_nothing_is_written() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let ann = desk.browser("ann").await;
    let path = format!("/reviews/{document}");
    for (filled, told) in [
        (vec![("field.total", "thirteen"), ("decision", "correct")], "`total` is not a number"),
        (
            vec![("item.line_items.0.amount", "ten"), ("decision", "correct")],
            "`line_items.amount` is not a number",
        ),
        (vec![("field.currency", "euros"), ("decision", "correct")], "/currency"),
        (vec![("decision", "correct")], "You have changed nothing"),
        (vec![("field.total", "13"), ("decision", "accept")], "You have changed fields"),
        (vec![("decision", "reject")], "say why it is rejected"),
    ] {
        let answer = ann.submit(&path, &path, &filled).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{told}");
        assert!(answer.body.contains(told), "{told}: {}", answer.body);
        for (name, value) in filled.iter().filter(|(name, _)| name.contains('.')) {
            let kept = super::desk::form_fields(&answer.body, &path);
            assert!(kept.contains(&((*name).to_owned(), (*value).to_owned())), "{name} is kept");
        }
    }
    let none = ann.submit(&path, &path, &[("decision", "maybe")]).await;
    assert_eq!(none.status, StatusCode::BAD_REQUEST);
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "0");
    let rejected = ann.submit(&path, &path, &[("decision", "reject"), ("why", "an advert")]).await;
    assert_eq!(rejected.location(), format!("/reviews?done=rejected&undo={document}"));
    assert_eq!(carried(&desk, document).await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_reviewers_at_once_the_second_is_told_by_whom_and_keeps_what_was_typed() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    let path = format!("/reviews/{document}");
    let (for_ann, for_bob) = (ann.get(&path).await.body, bob.get(&path).await.body);
    let corrects = |total: &'static str| [("field.total", total), ("decision", "correct")];
    let first = ann.send_form(&for_ann, &path, &corrects("13")).await;
    assert_eq!(first.status, StatusCode::SEE_OTHER);
    let second = bob.send_form(&for_bob, &path, &corrects("14")).await;
    assert_eq!(second.status, StatusCode::PRECONDITION_FAILED);
    assert!(second.body.contains("Meanwhile web:ann has decided (corrected)."), "{}", second.body);
    assert!(second.body.contains("What you had typed:") && second.body.contains("<bdi>14</bdi>"));
    assert_eq!(carried(&desk, document).await["total"], 13);
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "1");
    // Having looked again he may decide otherwise.
    let then = bob.send_form(&second.body, &path, &corrects("14")).await;
    assert_eq!(then.status, StatusCode::SEE_OTHER, "{}", then.body);
    assert_eq!(carried(&desk, document).await["total"], 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_who_decide_at_once_write_one_decision() {
    let desk = WebConsole::open().await;
    let (document, _) = desk.refused("acme", &invoice(21.0)).await;
    let ann = desk.browser("ann").await;
    let path = format!("/reviews/{document}");
    let page = ann.get(&path).await.body;
    let one = || ann.send_form(&page, &path, &[("decision", "accept")]);
    let answers = futures::future::join_all((0..30).map(|_| one())).await;
    let done = answers.iter().filter(|answer| answer.status == StatusCode::SEE_OTHER).count();
    let told = answers.iter().filter(|it| it.status == StatusCode::PRECONDITION_FAILED).count();
    assert_eq!((done, told), (1, 29));
    assert_eq!(desk.scalar("SELECT count(*) FROM document_revision").await, "1");
}
