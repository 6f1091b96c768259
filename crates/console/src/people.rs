//! Users and their tokens, for administrators of all tenants.
//!
//! A new token is in the answer to its form and nowhere else. There is no operation of `/api/v1` for it:
//! a token makes no token.

use axum::Extension;
use axum::extract::State;
use axum::response::{Html, Redirect};
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::require_confirmation;
use super::layout::{foreign_name, form_secret, frame_page, moment, next_link, state_mark};
use super::overview::require_all_tenants;
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_core::model::Priority;
use docmill_operations::people::{self, TokenDraft, TokenRow, UserDraft, UserRow};

/// Users of a page.
const PAGE_USERS: u32 = 100;
/// Tokens of a user that are shown, the newest.
const MAX_SHOWN_TOKENS: u32 = 100;

/// `/people`: users, and of one of them (`?user=`) rights and tokens.
pub(super) async fn show_people(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(asked): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    match asked.get("user") {
        Some(name) => user_page(&state, &visitor, name, None).await,
        None => list_page(&state, &visitor, asked.value("cursor")).await,
    }
}

async fn list_page(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    after: &str,
) -> Result<Html<String>, ConsoleFailure> {
    let users = people::list_users(state.database(), after, PAGE_USERS).await?;
    let full = users.len() == usize::try_from(PAGE_USERS).unwrap_or(usize::MAX);
    let next = users.last().filter(|_| full).map(|last| people_link(state, "cursor", &last.name));
    let body = html! {
        @if !state.config().users {
            p.notice { "These users cannot sign in: web.users is off in the settings." }
        }
        p.hint { "Tokens of the settings (web.tokens) and users of a proxy are not in this list." }
        @if users.is_empty() { p { "There is no user." } } @else {
            div.wide tabindex="0" { table {
                thead { tr { th { "User" } th { "Role" } th { "Tenant" } th { "Highest priority" }
                    th.number { "Tokens" } th { "Last used" } th { "State" } } }
                tbody { @for user in &users { tr {
                    td { a href=(people_link(state, "user", &user.name)) { (user.name) } }
                    td { (user.role) }
                    td { @if user.tenant.is_empty() { "all" } @else { (foreign_name(&user.tenant)) } }
                    td { (user.highest_priority) } td.number { (user.tokens) }
                    td { @match user.last_used_at { Some(at) => (moment(at)), None => "never" } }
                    td { (state_mark(if user.ended_at.is_some() { "ended" } else { "active" })) }
                } } }
            } }
        }
        (next_link(next))
        h2 { "Add a user" }
        form method="post" action=(state.link("/people")) {
            (form_secret(visitor))
            div.field { label for="name" { "Name, in lower case; it stands in the audit" }
                input id="name" name="name" required maxlength="100"; }
            (rights_fields("viewer", "", "critical"))
            div.field { label for="why" { "Why" } input id="why" name="why"; }
            button.first { "Add" }
        }
    };
    Ok(frame_page(state, Some(visitor), "People", &body))
}

fn people_link(state: &ConsoleState, name: &str, value: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    state.link(&format!("/people?{}", query.append_pair(name, value).finish()))
}

fn rights_fields(role: &str, tenant: &str, priority: &str) -> Markup {
    html! {
        div.field { label for="role" { "Role" }
            select id="role" name="role" { @for known in WebRole::ALL {
                option value=(known.code()) selected[known.code() == role] { (known.code()) } } } }
        div.field { label for="tenant" { "The only tenant; empty for all" }
            input id="tenant" name="tenant" value=(tenant) maxlength="200"; }
        div.field { label for="highest_priority" { "Most urgent priority of documents handed in" }
            select id="highest_priority" name="highest_priority" { @for known in Priority::ALL {
                option value=(known.code()) selected[known.code() == priority] { (known.code()) } } } }
    }
}

/// The page of one user; `made`: a token that is shown this once.
async fn user_page(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    name: &str,
    made: Option<&str>,
) -> Result<Html<String>, ConsoleFailure> {
    let user = people::find_user(state.database(), name).await?;
    let user = user.ok_or_else(ConsoleFailure::missing)?;
    let tokens = people::list_tokens(state.database(), name, MAX_SHOWN_TOKENS).await?;
    let body = html! {
        p { a href=(state.link("/people")) { "All users" } }
        @if let Some(token) = made {
            p.notice role="status" { "The token, shown this once: hand it over now." br; code { (token) } }
        }
        p { (state_mark(if user.ended_at.is_some() { "ended" } else { "active" }))
            " since " (moment(user.ended_at.unwrap_or(user.made_at))) ", made by " (foreign_name(&user.made_by)) }
        h2 { "Tokens" }
        @if tokens.is_empty() { p { "There is no token." } } @else { (tokens_table(state, visitor, &tokens)) }
        @if user.ended_at.is_none() { (token_form(state, visitor, &user)) }
        h2 { "Rights" }
        form method="post" action=(state.link("/people/rights")) {
            (form_secret(visitor)) (user_input(&user.name))
            (rights_fields(&user.role, &user.tenant, &user.highest_priority))
            div.field { label for="why" { "Why" } input id="why" name="why"; }
            button { "Change" }
        }
        (end_form(state, visitor, &user))
    };
    Ok(frame_page(state, Some(visitor), &user.name, &body))
}

fn user_input(name: &str) -> Markup {
    html! { input type="hidden" name="user" value=(name); }
}

fn tokens_table(state: &ConsoleState, visitor: &ConsoleVisitor, tokens: &[TokenRow]) -> Markup {
    html! {
        div.wide tabindex="0" { table {
            thead { tr { th.number { "No." } th { "Purpose" } th { "Made" } th { "By" } th { "Expires" }
                th { "Last used" } th { "State" } th { "Revoke" } } }
            tbody { @for token in tokens { tr {
                td.number { (token.id) } td { (foreign_name(&token.label)) }
                td { (moment(token.made_at)) } td { (foreign_name(&token.made_by)) }
                td { @match token.expires_at { Some(at) => (moment(at)), None => "never" } }
                td { @match token.last_used_at { Some(at) => (moment(at)), None => "never" } }
                td { (token_state(token)) }
                td { @if token.revoked_at.is_none() { (revoke_form(state, visitor, token)) } @else { "–" } }
            } } }
        } }
    }
}

fn token_state(token: &TokenRow) -> Markup {
    html! {
        @match (token.revoked_at, token.is_valid) {
            (Some(at), _) => { (state_mark("revoked")) " " (moment(at)) " by "
                (foreign_name(token.revoked_by.as_deref().unwrap_or("–"))) },
            (None, true) => (state_mark("valid")),
            (None, false) => (state_mark("not taken")),
        }
    }
}

fn revoke_form(state: &ConsoleState, visitor: &ConsoleVisitor, token: &TokenRow) -> Markup {
    html! {
        form method="post" action=(state.link("/people/tokens/revoke")) {
            (form_secret(visitor)) (user_input(&token.user_name))
            input type="hidden" name="token" value=(token.id);
            label { input type="checkbox" name="confirm" value="yes" required; " Refuse it from now on" }
            button { "Revoke" }
        }
    }
}

fn token_form(state: &ConsoleState, visitor: &ConsoleVisitor, user: &UserRow) -> Markup {
    html! {
        form method="post" action=(state.link("/people/tokens")) {
            (form_secret(visitor)) (user_input(&user.name))
            div.field { label for="label" { "Purpose" } input id="label" name="label" maxlength="200"; }
            div.field { label for="days" { "Valid for days; empty for no end" }
                input id="days" name="days" type="number" min="1" max=(people::MAX_TOKEN_DAYS); }
            button.first { "Make a token" }
        }
    }
}

fn end_form(state: &ConsoleState, visitor: &ConsoleVisitor, user: &UserRow) -> Markup {
    let (ended, word, says) = match user.ended_at {
        None => ("yes", "End", "Refuse all tokens of this user"),
        Some(_) => ("no", "Take up again", "Accept this user again"),
    };
    html! {
        h2 { (word) " the user" }
        form method="post" action=(state.link("/people/end")) {
            (form_secret(visitor)) (user_input(&user.name))
            input type="hidden" name="ended" value=(ended);
            label { input type="checkbox" name="confirm" value="yes" required; " " (says) }
            button { (word) }
        }
    }
}

fn read_draft(form: &FieldValues, name: &str) -> Result<UserDraft, ConsoleFailure> {
    let role = WebRole::from_code(form.value("role"))
        .ok_or_else(|| ConsoleFailure::wrong_request("There is no such role.").about("role"))?;
    let priority = Priority::from_code(form.value("highest_priority")).ok_or_else(|| {
        ConsoleFailure::wrong_request("There is no such priority.").about("highest_priority")
    })?;
    Ok(UserDraft {
        name: name.to_owned(),
        role,
        tenant: form.value("tenant").to_owned(),
        highest_priority: priority,
    })
}

/// `POST /people`.
pub(super) async fn post_user(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let draft = read_draft(&form, form.value("name"))?;
    let by = visitor.audit_note(form.value("why"));
    people::add_user(state.database(), &draft, &state.config().tokens, &by).await?;
    Ok(Redirect::to(&people_link(&state, "user", &draft.name)))
}

/// `POST /people/rights`.
pub(super) async fn post_rights(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let draft = read_draft(&form, form.value("user"))?;
    people::change_user(state.database(), &draft, &visitor.audit_note(form.value("why"))).await?;
    Ok(Redirect::to(&people_link(&state, "user", &draft.name)))
}

/// `POST /people/end`.
pub(super) async fn post_end(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    require_confirmation(&form)?;
    let (user, ended) = (form.value("user"), form.value("ended") == "yes");
    if !people::end_user(state.database(), user, ended, &visitor.audit_note("")).await? {
        return Err(ConsoleFailure::conflict("There is no such user, or it is done already."));
    }
    Ok(Redirect::to(&people_link(&state, "user", user)))
}

/// `POST /people/tokens`.
pub(super) async fn post_token(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Html<String>, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    let days = form.get("days").map(str::parse).transpose();
    let days = days.map_err(|_| ConsoleFailure::wrong_request("days is a number").about("days"))?;
    let (user, label) = (form.value("user").to_owned(), form.value("label").to_owned());
    let draft = TokenDraft { user, label, days };
    let made = people::make_token(state.database(), &draft, &visitor.audit_note("")).await?;
    user_page(&state, &visitor, &draft.user, Some(&made.token)).await
}

/// `POST /people/tokens/revoke`.
pub(super) async fn post_revocation(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_all_tenants(&visitor)?;
    require_confirmation(&form)?;
    let id = form.get("token").and_then(|text| text.parse().ok());
    let id: i64 = id.ok_or_else(|| ConsoleFailure::wrong_request("There is no such token."))?;
    if !people::revoke_token(state.database(), id, &visitor.audit_note("")).await? {
        return Err(ConsoleFailure::conflict("There is no such token, or it is revoked already."));
    }
    Ok(Redirect::to(&people_link(&state, "user", form.value("user"))))
}
