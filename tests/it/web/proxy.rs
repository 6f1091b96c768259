//! Signing in by the headers of a proxy, and those who only say that they are one.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use docmill_core::config::{ProxyGroup, ProxySignIn, WebRole};
use reqwest::{Client, Method, RequestBuilder, StatusCode};

use super::desk::{WebConsole, form_fields, invoice, send};

/// Where the proxy connects from; everybody else on this machine has another address.
const PROXY: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

async fn open() -> WebConsole {
    WebConsole::open_with(|config| {
        let group = |name: &str, role: WebRole, tenant: &str| ProxyGroup {
            group: name.to_owned(),
            role,
            tenant: tenant.to_owned(),
        };
        config.web.proxy = ProxySignIn {
            networks: vec!["127.0.0.1/32".parse().unwrap()],
            groups: vec![
                group("operators", WebRole::Operator, ""),
                group("acme-people", WebRole::Operator, "acme"),
                group("readers", WebRole::Viewer, ""),
            ],
            ..ProxySignIn::default()
        };
        config.web.tokens = super::desk::tokens();
    })
    .await
}

fn request(desk: &WebConsole, from: [u8; 4], method: Method, path: &str) -> RequestBuilder {
    let client = Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .local_address(std::net::IpAddr::from(from))
        .build()
        .unwrap();
    client.request(method, desk.url(path))
}

/// As the proxy passes on what the browser of a user asks for.
fn by_proxy(desk: &WebConsole, user: &str, groups: &str, path: &str) -> RequestBuilder {
    said_by(request(desk, PROXY, Method::GET, path), user, groups)
}

fn said_by(request: RequestBuilder, user: &str, groups: &str) -> RequestBuilder {
    request.header("x-forwarded-email", user).header("x-forwarded-groups", groups)
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_the_proxy_names_comes_in_with_the_role_and_tenant_of_the_group() {
    let desk = open().await;
    let (_, own) = desk.refused("acme", &invoice(1.0)).await;
    let (_, other) = desk.refused("rival", &invoice(2.0)).await;
    let seen = async |user: &str, groups: &str| {
        let page = send(by_proxy(&desk, user, groups, "/ingestions")).await;
        let (own, other) = (own.to_string(), other.to_string());
        (page.status, page.body.contains(&own), page.body.contains(&other))
    };
    assert_eq!(seen("Ann@Example.com", "others, operators").await, (StatusCode::OK, true, true));
    assert_eq!(seen("bob@example.com", "acme-people").await, (StatusCode::OK, true, false));
    assert_eq!(seen("eve@example.com", "strangers").await.0, StatusCode::FORBIDDEN);
    assert_eq!(seen("eve@example.com", "").await.0, StatusCode::FORBIDDEN);
    let retry = format!("/ingestions/{own}/retry");
    let reader = said_by(request(&desk, PROXY, Method::POST, &retry), "r@x", "readers");
    let refused = send(reader).await;
    assert!(refused.body.contains("This is for operators"), "{refused:?}");
    // Without its header nobody is somebody, here as there.
    for from in [PROXY, ELSEWHERE] {
        let nobody = send(request(&desk, from, Method::GET, "/overview")).await;
        assert_eq!(
            (nobody.status, nobody.location()),
            (StatusCode::SEE_OTHER, "/sign-in?next=%2Foverview")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_with_a_secret_is_known_by_it_and_not_by_its_address_alone() {
    const SECRET: &str = "a secret of the proxy alone";
    let desk = WebConsole::open_with(|config| {
        config.web.proxy = ProxySignIn {
            networks: vec!["127.0.0.1/32".parse().unwrap()],
            groups: vec![ProxyGroup {
                group: "readers".to_owned(),
                role: WebRole::Viewer,
                tenant: String::new(),
            }],
            secret: SECRET.to_owned().into(),
            ..ProxySignIn::default()
        };
        config.web.tokens = super::desk::tokens();
    })
    .await;
    for (from, secrets, expected) in [
        (PROXY, vec![SECRET], StatusCode::OK),
        (PROXY, vec![], StatusCode::FORBIDDEN),
        (PROXY, vec![""], StatusCode::FORBIDDEN),
        (PROXY, vec!["a secret of the proxy alon"], StatusCode::FORBIDDEN),
        (PROXY, vec!["guess", SECRET], StatusCode::FORBIDDEN),
        (ELSEWHERE, vec![SECRET], StatusCode::FORBIDDEN),
    ] {
        let mut asked = said_by(request(&desk, from, Method::GET, "/ingestions"), "r@x", "readers");
        for secret in &secrets {
            asked = asked.header("x-docmill-proxy-secret", *secret);
        }
        assert_eq!(send(asked).await.status, expected, "{from:?} {secrets:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_of_the_proxy_does_stands_in_the_audit_and_needs_the_form_of_that_user() {
    let desk = open().await;
    let form = |page: &str| form_fields(page, "/pauses")[0].1.clone();
    let page = send(by_proxy(&desk, "Ann@Example.com", "operators", "/pauses")).await.body;
    let others = send(by_proxy(&desk, "bob@example.com", "operators", "/pauses")).await.body;
    let (secret, foreign) = (form(&page), form(&others));
    assert_ne!(secret, foreign);
    let post = |secret: &str| {
        let body = format!("form_secret={secret}&confirm=yes&scope=kind&name=invoice");
        let kind = "application/x-www-form-urlencoded";
        let post = request(&desk, PROXY, Method::POST, "/pauses").header("content-type", kind);
        said_by(post.body(body), "ann@example.com", "operators")
    };
    for wrong in ["", "00", &foreign] {
        assert_eq!(send(post(wrong)).await.status, StatusCode::FORBIDDEN, "{wrong}");
    }
    for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        let answer = send(post(&secret).header(name, value)).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{name}");
    }
    assert_eq!(desk.scalar("SELECT count(*) FROM pause").await, "0");
    assert_eq!(send(post(&secret)).await.status, StatusCode::SEE_OTHER);
    let audit = "SELECT string_agg(operator, ',') FROM operator_action";
    assert_eq!(desk.scalar(audit).await, "web:ann@example.com");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_the_proxy_and_says_who_he_is_is_refused_on_pages_and_by_programs() {
    let desk = open().await;
    let (_, ingestion) = desk.refused("acme", &invoice(1.0)).await;
    let paths = ["/overview", "/sign-in", "/api/v1/overview"];
    let single = ["/overview".to_owned(), format!("/api/v1/ingestions/{ingestion}")];
    for path in paths.map(str::to_owned).iter().chain(&single) {
        for header in ["x-forwarded-email", "x-forwarded-groups"] {
            let pretends = request(&desk, ELSEWHERE, Method::GET, path).header(header, "operators");
            // A token that is right does not make it better.
            let answer = send(pretends.bearer_auth("token of operator")).await;
            assert_eq!(answer.status, StatusCode::FORBIDDEN, "{path}");
            assert!(
                answer.body.contains("Only the proxy may name the user."),
                "{path}: {answer:?}"
            );
            assert!(!answer.body.contains(&ingestion.to_string()));
        }
    }
    // Which of two names the proxy wrote nobody knows.
    let twice = by_proxy(&desk, "ann@example.com", "operators", "/overview");
    let twice = send(twice.header("x-forwarded-email", "eve@example.com")).await;
    assert_eq!(twice.status, StatusCode::FORBIDDEN);
    // Its headers travel with whatever another site has a browser send: they open pages alone.
    let api = by_proxy(&desk, "ann@example.com", "operators", "/api/v1/overview");
    assert_eq!(send(api).await.status, StatusCode::UNAUTHORIZED);
    let token = by_proxy(&desk, "ann@example.com", "strangers", "/api/v1/overview");
    let token = send(token.bearer_auth("token of operator")).await;
    assert_eq!(token.status, StatusCode::OK, "programs come through the proxy with their tokens");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_proxy_signs_in_nobody_of_this_machine_is_let_in_without_it() {
    let desk = WebConsole::open_with(|config| {
        config.web.proxy = ProxySignIn {
            networks: vec!["10.9.9.9/32".parse().unwrap()],
            groups: vec![ProxyGroup {
                group: "operators".to_owned(),
                role: WebRole::Operator,
                tenant: String::new(),
            }],
            ..ProxySignIn::default()
        };
    })
    .await;
    let page = desk.stranger().get("/overview").await;
    assert_eq!(
        (page.status, page.location()),
        (StatusCode::SEE_OTHER, "/sign-in?next=%2Foverview")
    );
    assert_eq!(desk.stranger().get("/api/v1/overview").await.status, StatusCode::UNAUTHORIZED);
}

/// The headers that the proxies of docs/guides/web.md write, by their own documentation: user, groups, and what
/// the rows of `web.proxy.groups` are named by.
const HELPERS: [(&str, &str, [&str; 2], &str); 4] = [
    ("oauth2-proxy", "x-forwarded-email", ["x-forwarded-groups", "staff,operators"], "operators"),
    ("AWS", "x-amzn-oidc-identity", ["x-amzn-oidc-identity", "9f1C-77"], "9f1C-77"),
    (
        "IAP",
        "x-goog-authenticated-user-email",
        ["x-goog-authenticated-user-email", "accounts.google.com:Ann@example.com"],
        "accounts.google.com:Ann@example.com",
    ),
    (
        "Access",
        "cf-access-authenticated-user-email",
        ["cf-access-authenticated-user-email", "ann@example.com"],
        "ann@example.com",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_headers_of_the_helpers_that_the_docs_name_sign_people_in() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guides/web.md"))
        .unwrap();
    for (helper, user_header, [groups_header, groups], row) in HELPERS {
        assert!(
            page.contains(&format!("`{user_header}`")),
            "docs/guides/web.md lacks {user_header}"
        );
        let desk = WebConsole::open_with(|config| {
            config.web.proxy = ProxySignIn {
                networks: vec!["127.0.0.1/32".parse().unwrap()],
                user_header: user_header.to_owned(),
                groups_header: groups_header.to_owned(),
                groups: vec![ProxyGroup {
                    group: row.to_owned(),
                    role: WebRole::Operator,
                    tenant: String::new(),
                }],
                ..ProxySignIn::default()
            };
        })
        .await;
        let user = if user_header == groups_header { groups } else { "Ann@Example.com" };
        let asked = |from, said: &str| {
            let request = request(&desk, from, Method::GET, "/pauses").header(user_header, said);
            match user_header == groups_header {
                true => request,
                false => request.header(groups_header, groups),
            }
        };
        let seen = send(asked(PROXY, user)).await;
        assert_eq!(seen.status, StatusCode::OK, "{helper}: {seen:?}");
        let name = user.to_lowercase();
        assert!(seen.body.contains(&format!("<bdi>{name}</bdi>")), "{helper}: {}", seen.body);
        let elsewhere = send(asked(ELSEWHERE, user)).await;
        assert_eq!(elsewhere.status, StatusCode::FORBIDDEN, "{helper}");
        if user_header == groups_header {
            // A valid address may have commas.
            let quoted = format!("\"x,{row},y\"@evil.example");
            for other in ["somebody-else", &format!("nobody@example.com,{row}"), &quoted] {
                let other = send(asked(PROXY, other)).await;
                assert_eq!(other.status, StatusCode::FORBIDDEN, "{helper}");
            }
        }
    }
}
