//! Users, tokens and sessions that Postgres keeps, and the page of the audit; as the documented login.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use reqwest::{Method, StatusCode};
use sha2::Digest as _;

use super::desk::{Browser, PageAnswer, WebConsole, form_fields, invoice, send, tokens};

const USED: &str = "SELECT count(*) FROM console_token WHERE last_used_at IS NOT NULL";

async fn open() -> WebConsole {
    WebConsole::open_with(|config| {
        config.web.tokens = tokens();
        config.web.users = true;
    })
    .await
}

/// Adds a user on the page of an administrator.
async fn add_user(admin: &Browser<'_>, name: &str, role: &str, tenant: &str) -> PageAnswer {
    let filled = [
        ("name", name),
        ("role", role),
        ("tenant", tenant),
        ("highest_priority", "normal"),
        ("why", "new"),
    ];
    admin.submit("/people", "/people", &filled).await
}

/// Makes a token on the page of a user. Its text.
async fn make_token(admin: &Browser<'_>, user: &str) -> String {
    let page = format!("/people?user={user}");
    let made = admin.submit(&page, "/people/tokens", &[("label", "desk")]).await;
    assert_eq!(made.status, StatusCode::OK, "{made:?}");
    let (_, token) = made.body.split_once("<code>").unwrap();
    token.split('<').next().unwrap().to_owned()
}

async fn revoke(admin: &Browser<'_>, user: &str) -> PageAnswer {
    let page = format!("/people?user={user}");
    admin.submit(&page, "/people/tokens/revoke", &[("confirm", "yes")]).await
}

async fn call_with(desk: &WebConsole, token: &str) -> StatusCode {
    let request = desk.stranger().request(Method::GET, "/api/v1/reviews").bearer_auth(token);
    send(request).await.status
}

/// The answer to the sign-in form, and the cookie that it sets.
async fn sign_in(browser: &Browser<'_>, token: &str) -> (PageAnswer, String) {
    let answer = browser.post_raw("/sign-in", &format!("token={token}")).await;
    let cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
    (answer, cookie)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_shown_once_kept_as_its_hash_and_worth_nothing_once_it_is_revoked() {
    let desk = open().await;
    let admin = desk.browser("admin").await;
    assert_eq!(add_user(&admin, "carl", "reviewer", "").await.status, StatusCode::SEE_OTHER);
    let token = make_token(&admin, "carl").await;
    assert!(!admin.get("/people?user=carl").await.body.contains(&token));
    let kept = "SELECT count(*) FROM console_token t WHERE t.sha256 = sha256('TOKEN')
        AND strpos(t::text, 'TOKEN') = 0";
    assert_eq!(desk.scalar(&kept.replace("TOKEN", &token)).await, "1");
    assert_eq!(desk.scalar(USED).await, "0");
    assert_eq!(call_with(&desk, &token).await, StatusCode::OK);
    assert_eq!(desk.scalar(USED).await, "1");
    let (_, cookie) = sign_in(&desk.stranger(), &token).await;
    let carl = desk.browser_with(&cookie);
    assert_eq!(carl.get("/reviews").await.status, StatusCode::OK);
    assert_eq!(carl.get("/people").await.status, StatusCode::FORBIDDEN);

    assert_eq!(revoke(&admin, "carl").await.status, StatusCode::SEE_OTHER);
    assert_eq!(desk.scalar("SELECT revoked_by FROM console_token").await, "web:admin");
    assert_eq!(call_with(&desk, &token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(carl.get("/reviews").await.status, StatusCode::SEE_OTHER);
    assert_eq!(sign_in(&desk.stranger(), &token).await.0.status, StatusCode::UNAUTHORIZED);
    let audit = desk.scalar(
        "SELECT string_agg(action || ' ' || target || ' ' || operator, ', ' ORDER BY id)
         FROM operator_action",
    );
    assert_eq!(
        audit.await,
        "users user:carl web:admin, tokens user:carl web:admin, tokens user:carl web:admin"
    );
    let leaked =
        format!("SELECT count(*) FROM operator_action a WHERE strpos(a::text, '{token}') > 0");
    assert_eq!(desk.scalar(&leaked).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_hold_from_the_next_request_on_and_end_with_the_user_or_the_token() {
    let desk = open().await;
    let admin = desk.browser("admin").await;
    add_user(&admin, "carl", "operator", "").await;
    let token = make_token(&admin, "carl").await;
    let (_, cookie) = sign_in(&desk.stranger(), &token).await;
    let carl = desk.browser_with(&cookie);
    assert_eq!(carl.get("/audit").await.status, StatusCode::OK);
    let less = [("role", "viewer"), ("tenant", "acme"), ("highest_priority", "low")];
    admin.submit("/people?user=carl", "/people/rights", &less).await;
    assert_eq!(carl.get("/audit").await.status, StatusCode::FORBIDDEN);
    assert_eq!(carl.get("/overview").await.status, StatusCode::FORBIDDEN, "it is of all tenants");
    for (ended, status) in [("yes", StatusCode::UNAUTHORIZED), ("no", StatusCode::OK)] {
        let confirmed = [("confirm", "yes")];
        let done = admin.submit("/people?user=carl", "/people/end", &confirmed).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER);
        assert_eq!(call_with(&desk, &token).await, status, "{ended}");
        assert_eq!(carl.get("/reviews").await.status, StatusCode::SEE_OTHER, "the session is over");
    }
    let (_, cookie) = sign_in(&desk.stranger(), &token).await;
    let carl = desk.browser_with(&cookie);
    assert_eq!(carl.get("/reviews").await.status, StatusCode::OK);
    desk.execute("UPDATE console_token SET expires_at = docmill_now()").await;
    assert_eq!(call_with(&desk, &token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(carl.get("/reviews").await.status, StatusCode::SEE_OTHER);
    assert_eq!(
        desk.scalar("SELECT count(*) FROM console_session").await,
        "2",
        "hers and the dead one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_a_deploy_and_not_its_token() {
    let mut desk = open().await;
    let cookie = desk.browser("ann").await.cookie().to_owned();
    let secret = {
        let page = desk.browser_with(&cookie).get("/reviews").await;
        form_fields(&page.body, "/sign-out").remove(0).1
    };
    desk.restart(|_| {}).await;
    {
        let ann = desk.browser_with(&cookie);
        assert_eq!(ann.get("/reviews").await.status, StatusCode::OK);
        let stale = ann.post_raw("/reviews/next", &format!("form_secret={secret}")).await;
        assert_ne!(stale.status, StatusCode::FORBIDDEN, "a form outlives it too: {stale:?}");
    }
    desk.restart(|config| config.web.tokens.retain(|token| token.name != "ann")).await;
    let ann = desk.browser_with(&cookie);
    assert_eq!(ann.get("/reviews").await.status, StatusCode::SEE_OTHER);
    let kept = desk.scalar("SELECT count(*) FROM console_session").await;
    assert_eq!(kept, "1", "it is there, and is worth nothing");
    let (_, id) = cookie.split_once('=').unwrap();
    let shown = format!("SELECT count(*) FROM console_session s WHERE strpos(s::text, '{id}') > 0");
    assert_eq!(desk.scalar(&shown).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_was_planted_before_the_sign_in_is_nobodys_after_it() {
    let desk = open().await;
    let mallory = desk.browser("viewer").await;
    let planted = mallory.cookie().to_owned();
    for planted in [planted.as_str(), "docmill_session=00"] {
        let (answer, cookie) = sign_in(&desk.browser_with(planted), "token+of+operator").await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert_ne!(cookie, planted);
        assert_eq!(desk.browser_with(&cookie).get("/quality").await.status, StatusCode::OK);
        // The attack arrives: the planted one was a session, and is none now.
        assert_eq!(desk.browser_with(planted).get("/quality").await.status, StatusCode::SEE_OTHER);
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM console_session").await, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_whose_hash_begins_like_a_known_one_opens_nothing() {
    let desk = open().await;
    let admin = desk.browser("admin").await;
    add_user(&admin, "carl", "operator", "").await;
    let token = make_token(&admin, "carl").await;
    let known = sha2::Sha256::digest(&token);
    let begins = |guess: &String| sha2::Sha256::digest(guess)[..2] == known[..2];
    let near = (0_u32..).map(|number| format!("dm_{number:064x}")).find(begins).unwrap();
    let hash = docmill_core::model::digest::encode_hex(known);
    let mut cut = token.clone();
    cut.pop();
    for wrong in [near.as_str(), hash.as_str(), cut.as_str(), "%25", "dm_"] {
        assert_eq!(call_with(&desk, wrong).await, StatusCode::UNAUTHORIZED, "{wrong}");
        assert_eq!(sign_in(&desk.stranger(), wrong).await.0.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(desk.scalar(USED).await, "0");
    assert_eq!(call_with(&desk, &token).await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_one_tenant_stays_in_it_and_no_administrator_of_one_gives_access() {
    let desk = open().await;
    let admin = desk.browser("admin").await;
    let (other, _) = desk.refused("rival", &invoice(2.0)).await;
    add_user(&admin, "carl", "administrator", "acme").await;
    let token = make_token(&admin, "carl").await;
    let (_, cookie) = sign_in(&desk.stranger(), &token).await;
    let carl = desk.browser_with(&cookie);
    assert_eq!(carl.get(&format!("/reviews/{other}")).await.status, StatusCode::NOT_FOUND);
    assert!(!carl.get("/reviews").await.body.contains(&other.to_string()));
    assert_eq!(carl.get("/reviews").await.status, StatusCode::OK);
    let secret = form_fields(&carl.get("/pauses").await.body, "/pauses").remove(0).1;
    let rights =
        "role=administrator&tenant=&highest_priority=critical&confirm=yes&ended=no&token=1";
    for path in
        ["/people", "/people/rights", "/people/end", "/people/tokens", "/people/tokens/revoke"]
    {
        let form = format!("form_secret={secret}&user=carl&name=eve&{rights}");
        assert_eq!(carl.post_raw(path, &form).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    for path in ["/people", "/people?user=carl", "/audit"] {
        assert_eq!(carl.get(path).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    let state = "SELECT string_agg(name || ' ' || tenant, ',') FROM console_user";
    assert_eq!(desk.scalar(state).await, "carl acme");
    assert_eq!(
        desk.scalar("SELECT count(*) FROM console_token WHERE revoked_at IS NULL").await,
        "1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_the_name_of_another_in_any_spelling() {
    let desk = open().await;
    let admin = desk.browser("admin").await;
    for name in ["ann", "Ann", "web:ann", "ann ", "", "a b", "<b>"] {
        let answer = add_user(&admin, name, "reviewer", "").await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{name:?}");
    }
    assert_eq!(add_user(&admin, "carl", "reviewer", "").await.status, StatusCode::SEE_OTHER);
    admin.submit("/people?user=carl", "/people/end", &[("confirm", "yes")]).await;
    let again = add_user(&admin, "carl", "operator", "").await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY, "an ended user keeps the name");
    assert_eq!(desk.scalar("SELECT string_agg(role, ',') FROM console_user").await, "reviewer");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_login_may_not_keep_sessions_they_are_those_of_the_process() {
    let mut desk = WebConsole::open_in_role("docmill_reader").await;
    let cookie = desk.browser("viewer").await.cookie().to_owned();
    assert_eq!(desk.browser_with(&cookie).get("/overview").await.status, StatusCode::OK);
    assert_eq!(desk.scalar("SELECT count(*) FROM console_session").await, "0");
    desk.restart(|_| {}).await;
    let after = desk.browser_with(&cookie).get("/overview").await;
    assert_eq!(after.status, StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_shows_who_did_what_and_which_row_is_not_as_it_was_written() {
    let desk = open().await;
    let (document, _) = desk.refused("acme", &invoice(1.0)).await;
    let operator = desk.browser("operator").await;
    let paused = [("scope", "tenant"), ("name", "acme"), ("confirm", "yes"), ("why", "<b>audit")];
    operator.submit("/pauses", "/pauses", &paused).await;
    operator.submit("/pauses", "/pauses/end", &[("confirm", "yes")]).await;
    desk.execute(&format!(
        "INSERT INTO document_revision (document_id, reviewer, decision, why, reasons_before)
         VALUES ('{document}', 'web:ann', 'rejected', 'unreadable', '{{}}')"
    ))
    .await;
    let all = operator.get("/audit").await.body;
    for shown in ["tenant:acme", "&lt;b&gt;audit", "web:ann", "unreadable", "as written"] {
        assert!(all.contains(shown), "{shown}: {all}");
    }
    let newest_first = all.find("unreadable").unwrap() < all.find("&lt;b&gt;audit").unwrap();
    assert!(newest_first && !all.contains(">changed<"));
    for (filter, rows) in [
        ("who=web:ann", 1),
        ("who=web:operator", 2),
        ("action=resume", 1),
        ("target=tenant:acme", 2),
        ("since=1h", 3),
        ("who=web:operator&action=pause", 1),
        ("who=nobody", 0),
    ] {
        let page = operator.get(&format!("/audit?{filter}")).await;
        let found = page.body.matches("as written").count();
        assert_eq!((page.status, found), (StatusCode::OK, rows), "{filter}");
    }
    desk.execute("UPDATE operator_action SET why = 'nothing' WHERE action = 'pause'").await;
    desk.execute("DELETE FROM document_revision").await;
    let after = operator.get("/audit").await.body;
    for (state, rows) in [("as written", 1), (">changed<", 1), (">erased</span>", 1)] {
        assert_eq!(after.matches(state).count(), rows, "{state}: {after}");
    }
    assert_eq!(desk.browser("ann").await.get("/audit").await.status, StatusCode::FORBIDDEN);
}
