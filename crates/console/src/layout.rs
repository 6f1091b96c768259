//! The frame around every page, and small parts that several pages share.
//!
//! All text of documents and people goes through maud, which escapes it; names are in `bdi`, so
//! that characters that turn the direction of writing end with them.

use std::borrow::Cow;

use axum::response::Html;
use maud::{DOCTYPE, Markup, html};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::queue_choice::counted;
use super::state::ConsoleState;
use docmill_core::config::WebRole;

/// A page as it is sent.
pub(super) fn frame_page(
    state: &ConsoleState,
    visitor: Option<&ConsoleVisitor>,
    title: &str,
    body: &Markup,
) -> Html<String> {
    frame_with(state, visitor, title, body, &[])
}

/// The same with scripts of ours.
pub(super) fn frame_with(
    state: &ConsoleState,
    visitor: Option<&ConsoleVisitor>,
    title: &str,
    body: &Markup,
    scripts: &[&str],
) -> Html<String> {
    let main = html! { main id="main" { h1 { (visible_text(title)) } (body) } };
    write_page(state, visitor, title, &main, scripts)
}

/// A page that fills the window, whose body has its own heading.
pub(super) fn frame_work(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    title: &str,
    body: &Markup,
    scripts: &[&str],
) -> Html<String> {
    let main = html! { main id="main" .work { (body) } };
    write_page(state, Some(visitor), title, &main, scripts)
}

fn write_page(
    state: &ConsoleState,
    visitor: Option<&ConsoleVisitor>,
    title: &str,
    main: &Markup,
    scripts: &[&str],
) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (visible_text(title)) " · docmill" }
                link rel="icon" type="image/svg+xml" href=(state.link(state.mark_path()));
                link rel="stylesheet" href=(state.link(state.style_path()));
                @for script in scripts { script src=(state.link(script)) defer {} }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    a.brand href=(state.link("/")) { img src=(state.link(state.mark_path())) alt="" width="22" height="22"; "docmill" }
                    (visitor.map(|visitor| navigation(state, visitor, title)).unwrap_or_default())
                }
                (main)
            }
        }
    };
    Html(page.into_string())
}

/// Links that stand beside the name; more have a row of their own.
const MAX_BESIDE: usize = 8;

/// Links to all pages; the one with this title is marked.
fn navigation(state: &ConsoleState, visitor: &ConsoleVisitor, shown_title: &str) -> Markup {
    let of_all = visitor.tenant.is_none();
    // Reviewers and producers have no use for the operators' pages.
    let acts = visitor.role >= WebRole::Operator;
    let operates = acts || visitor.role == WebRole::Viewer;
    let entries = [
        ("/overview", "Overview", "Overview", of_all && operates),
        ("/reviews", "Review", "Review", visitor.role != WebRole::Producer),
        ("/ingestions", "Ingestions", "Ingestions", true),
        ("/ingestions?status=failed", "Failed", "Failed ingestions", true),
        ("/documents", "Search", "Search", true),
        ("/upload", "Upload", "Upload", visitor.role != WebRole::Viewer),
        ("/quality", "Quality", "Quality", acts),
        ("/kinds", "Kinds", "Kinds", operates),
        ("/dead-letters", "Dead letters", "Dead letters", of_all && operates),
        ("/pauses", "Pauses", "Pauses", operates),
        ("/companies", "Companies", "Own companies", operates),
        ("/webhooks", "Webhooks", "Webhooks", of_all && operates),
        ("/audit", "Audit", "Audit", of_all && acts),
        ("/people", "People", "People", of_all && visitor.role == WebRole::Administrator),
        ("/api-reference", "API", "API reference", true),
    ];
    let shown: Vec<_> = entries.iter().filter(|(.., is_for)| *is_for).collect();
    html! {
        nav.many[shown.len() > MAX_BESIDE] aria-label="Pages" {
            ul {
                @for (path, name, title, _) in &shown {
                    @let current = (*title == shown_title).then_some("page");
                    li { a href=(state.link(path)) aria-current=[current] { (name)
                        @if *path == "/reviews" { (waiting_count(state, visitor)) } } }
                }
            }
        }
        form.inline method="get" action=(state.link("/documents")) role="search" aria-label="All documents" {
            input type="hidden" name="by" value="key";
            label.unseen-label for="find" { "Id, number, supplier, amount or key" }
            input id="find" name="q" type="search" placeholder="Find a document" maxlength="200";
        }
        div.who {
            bdi { (visitor.name) } " · " (visitor.role.code())
            @if let Some(tenant) = &visitor.tenant { " · " bdi { (tenant) } }
            @if visitor.signed_in {
                form method="post" action=(state.link("/sign-out")) {
                    (form_secret(visitor))
                    button.plain { "Sign out" }
                }
            }
        }
    }
}

/// How many documents wait for review, as of a moment ago.
fn waiting_count(state: &ConsoleState, visitor: &ConsoleVisitor) -> Markup {
    let count = state.known_waiting(visitor.tenant.as_deref());
    html! { @if let Some(count) = count.filter(|count| *count > 0) { " " span.count { (counted(count)) } } }
}

/// A failure as a page.
pub(super) fn failure_page(state: &ConsoleState, failure: &ConsoleFailure) -> Html<String> {
    let body = html! {
        p { (failure.detail) }
        p { a href=(state.link("/")) { "To the first page" } }
    };
    frame_page(state, None, failure.status.canonical_reason().unwrap_or("Error"), &body)
}

/// The hidden input that ties a form to this visitor.
pub(super) fn form_secret(visitor: &ConsoleVisitor) -> Markup {
    html! { input type="hidden" name="form_secret" value=(visitor.form_secret); }
}

/// A name that came from outside.
pub(super) fn foreign_name(name: &str) -> Markup {
    html! { bdi { (visible_text(name)) } }
}

/// The text with marks in the place of characters that turn the order of others, so that
/// `fdp.exe` cannot look like `exe.pdf` (Unicode Standard Annex 9, explicit formatting characters).
pub(super) fn visible_text(text: &str) -> Cow<'_, str> {
    if !text.contains(turns_order) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if turns_order(character) {
            shown.push_str(&format!("[U+{:04X}]", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn turns_order(character: char) -> bool {
    matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// A moment, in UTC.
pub(super) fn moment(at: OffsetDateTime) -> Markup {
    let form = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    html! { time datetime=(version_text(at)) { (at.format(form).unwrap_or_default()) } }
}

/// A moment as programs and hidden fields carry it.
pub(super) fn version_text(at: OffsetDateTime) -> String {
    at.format(&Rfc3339).unwrap_or_default()
}

/// How long ago, in one or two units.
pub(super) fn age_since(at: OffsetDateTime) -> String {
    let seconds = (OffsetDateTime::now_utc() - at).whole_seconds();
    age_text(u64::try_from(seconds).unwrap_or_default())
}

/// So many seconds, in one or two units.
pub(super) fn age_text(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// The same of a fraction.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shown in whole units")]
pub(super) fn age_text_of(seconds: f64) -> String {
    age_text(seconds.max(0.0) as u64)
}

/// Billionths of the currency, to the hundredth.
pub(super) fn money(nanos: i64) -> String {
    format!("{}.{:02}", nanos / 1_000_000_000, nanos.rem_euclid(1_000_000_000) / 10_000_000)
}

/// A state in a word and a colour, never in a colour alone.
pub(super) fn state_mark(state: &str) -> Markup {
    let tone = match state {
        "completed" | "healthy" => "good",
        "failed" | "orphaned" | "failing" | "disabled" | "changed" | "removed" => "bad",
        "in-progress" | "leased" | "queued" => "busy",
        _ => "quiet",
    };
    html! { span.mark data-tone=(tone) { (state) } }
}

/// Name and value, if there is a value.
pub(super) fn fact(name: &str, value: Option<&str>) -> Markup {
    html! {
        @if let Some(value) = value.filter(|value| !value.is_empty()) {
            div { dt { (name) } dd { (foreign_name(value)) } }
        }
    }
}

/// A link to the next page, if this one is full.
pub(super) fn next_link(href: Option<String>) -> Markup {
    html! {
        @if let Some(href) = href { p { a rel="next" href=(href) { "Next page" } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_outside_is_text_and_never_markup() {
        let name = foreign_name("<script>alert(1)</script>\" onload=\"x").into_string();
        assert!(!name.contains("<script") && name.contains("&lt;script&gt;"), "{name}");
        assert!(!fact("x", Some("<b>")).into_string().contains("<b>"));
    }

    #[test]
    fn a_name_cannot_turn_the_order_in_which_it_is_read() {
        for (name, shown) in [
            ("a\u{202E}fdp.exe", "a[U+202E]fdp.exe"),
            ("\u{2067}x\u{2069}", "[U+2067]x[U+2069]"),
            ("חשבונית \u{200F}7.pdf", "חשבונית \u{200F}7.pdf"),
        ] {
            assert_eq!(foreign_name(name).into_string(), format!("<bdi>{shown}</bdi>"));
        }
    }

    #[test]
    fn ages_are_told_in_units_that_people_compare() {
        for (seconds, told) in
            [(5, "5 s"), (90, "1 min"), (3_700, "1 h 1 min"), (200_000, "2 d 7 h")]
        {
            assert_eq!(age_text(seconds), told);
        }
        assert_eq!(age_text_of(-1.0), "0 s");
    }

    #[test]
    fn money_is_told_to_the_hundredth() {
        assert_eq!((money(0), money(1_239_999_999)), ("0.00".to_owned(), "1.23".to_owned()));
    }
}
