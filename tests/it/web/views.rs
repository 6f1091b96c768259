//! Saved views of lists.

use reqwest::StatusCode;

use super::desk::{WebConsole, form_fields};

const LIST: &str = "/ingestions?status=failed&kind=invoice";

#[tokio::test(flavor = "multi_thread")]
async fn a_view_is_saved_shown_replaced_and_deleted_by_its_owner_alone_and_the_audit_has_it() {
    let desk = WebConsole::open().await;
    let (ann, bob) = (desk.browser("ann").await, desk.browser("bob").await);
    assert!(!ann.get("/ingestions").await.body.contains("action=\"/views"), "nothing to save yet");
    let saved = ann.submit(LIST, "/views", &[("name", "Failed <b>")]).await;
    assert_eq!(saved.location(), LIST, "{saved:?}");
    let link = "href=\"/ingestions?status=failed&amp;kind=invoice\" aria-current=\"page\"";
    let page = ann.get(LIST).await.body;
    assert!(page.contains(link) && page.contains("<bdi>Failed &lt;b&gt;</bdi>"), "{page}");
    for other in [bob.get(LIST).await.body, ann.get("/reviews").await.body] {
        assert!(!other.contains("Failed &lt;b&gt;"), "{other}");
    }
    // The queue has views of its own, with its part.
    let queue = "/reviews?part=unreadable&order=amount";
    let saved = ann.submit(queue, "/views", &[("name", "Failed <b>")]).await;
    assert_eq!(saved.location(), queue, "{saved:?}");
    let again = "/ingestions?status=failed&since=2h";
    assert_eq!(ann.submit(again, "/views", &[("name", "Failed <b>")]).await.location(), again);
    let mine = "SELECT string_agg(owner || ' ' || list || ' ' || query, ', ' ORDER BY list) FROM saved_view";
    let expected =
        "web:ann ingestions status=failed&since=2h, web:ann reviews part=unreadable&order=amount";
    assert_eq!(desk.scalar(mine).await, expected);
    let gone = ("name", "Failed <b>");
    let secret = form_fields(&bob.get("/ingestions").await.body, "/sign-out").remove(0).1;
    let form = format!("form_secret={secret}&list=ingestions&name=Failed+%3Cb%3E");
    assert_eq!(bob.post_raw("/views/remove", &form).await.status, StatusCode::NOT_FOUND);
    let done = ann.submit("/ingestions", "/views/remove", &[gone]).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, "/ingestions"));
    assert_eq!(desk.scalar("SELECT string_agg(list, ',') FROM saved_view").await, "reviews");
    let audit = "SELECT string_agg(target || ' ' || (before ? 'set')::text, ', ' ORDER BY id)
        FROM operator_action WHERE operator = 'web:ann' AND action = 'views'";
    let expected = "view:ingestions:Failed <b> true, view:reviews:Failed <b> true, \
                    view:ingestions:Failed <b> true, view:ingestions:Failed <b> false";
    assert_eq!(desk.scalar(audit).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_has_filters_that_its_owner_may_use_a_name_and_a_place_among_twenty() {
    let desk = WebConsole::open().await;
    let acme = desk.browser("acme").await;
    let secret = form_fields(&acme.get("/ingestions").await.body, "/sign-out").remove(0).1;
    let long = "x".repeat(61);
    let wide = "x".repeat(2_001);
    for (form, status) in [
        ("list=ingestions&name=a".to_owned(), 422),
        ("list=ingestions&name=a&tenant=rival&cursor=1&order=age".to_owned(), 422),
        ("list=ingestions&name=+&status=failed".to_owned(), 422),
        (format!("list=ingestions&name={long}&status=failed"), 422),
        (format!("list=ingestions&name=a&reason={wide}"), 422),
        ("list=people&name=a&status=failed".to_owned(), 400),
        ("list=reviews&name=a&tenant=rival&kind=invoice".to_owned(), 303),
    ] {
        let done = acme.post_raw("/views", &format!("form_secret={secret}&{form}")).await;
        assert_eq!(done.status.as_u16(), status, "{form:.60}: {done:?}");
    }
    assert_eq!(desk.scalar("SELECT string_agg(query, ',') FROM saved_view").await, "kind=invoice");
    desk.execute(
        "INSERT INTO saved_view (owner, list, name, query)
         SELECT 'web:acme', 'reviews', 'v' || n, 'kind=receipt' FROM generate_series(1, 19) n",
    )
    .await;
    for (name, status) in [("one-more", 422), ("v7", 303)] {
        let form = format!("form_secret={secret}&list=reviews&name={name}&kind=contract");
        assert_eq!(acme.post_raw("/views", &form).await.status.as_u16(), status, "{name}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM saved_view").await, "20");
}
