//! Pauses: the documents that workers do not claim, and the switch for it.

use axum::Extension;
use axum::extract::State;
use axum::response::{Html, Redirect};
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm};
use super::ingestion::require_confirmation;
use super::layout::{foreign_name, form_secret, frame_page, moment};
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_operations::inspect::{self, IngestionFilter};
use docmill_operations::retry::{self, PauseRow, PauseScope, PauseTarget};

const SCOPES: [PauseScope; 4] =
    [PauseScope::All, PauseScope::Kind, PauseScope::Tenant, PauseScope::Provider];

/// `/pauses`.
pub(super) async fn show_pauses(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
) -> Result<Html<String>, ConsoleFailure> {
    let mut pauses = retry::list_pauses(state.database()).await?;
    pauses.retain(|pause| is_visible(&visitor, pause));
    let operates = visitor.role >= WebRole::Operator;
    let body = html! {
        @if pauses.is_empty() { p { "Nothing is paused." } } @else {
            div.wide { table {
                thead { tr { th { "what" } th { "since" } th { "by" } th { "why" } th { "end it" } } }
                tbody { @for pause in &pauses { tr {
                    td { (pause.scope) " " (foreign_name(&pause.name)) }
                    td { (moment(pause.paused_at)) } td { (foreign_name(&pause.paused_by)) }
                    td { (foreign_name(&pause.why)) }
                    td { @if operates { (end_form(&state, &visitor, pause)) } @else { "–" } }
                } } }
            } }
        }
        @if operates { (begin_form(&state, &visitor)) }
    };
    Ok(frame_page(&state, Some(&visitor), "Pauses", &body))
}

fn is_visible(visitor: &ConsoleVisitor, pause: &PauseRow) -> bool {
    visitor.tenant.is_none()
        || (pause.scope == PauseScope::Tenant.code() && visitor.sees(Some(&pause.name)))
}

fn begin_form(state: &ConsoleState, visitor: &ConsoleVisitor) -> Markup {
    let scopes =
        SCOPES.into_iter().filter(|scope| visitor.tenant.is_none() || *scope == PauseScope::Tenant);
    html! {
        h2 { "Pause" }
        form method="post" action=(state.link("/pauses")) {
            (form_secret(visitor))
            div.field { label for="scope" { "What" }
                select id="scope" name="scope" { @for scope in scopes { option value=(scope.code()) { (scope.code()) } } } }
            div.field { label for="name" { "Name of the kind, tenant or provider; empty for everything" }
                input id="name" name="name" value=(visitor.tenant.as_deref().unwrap_or_default()); }
            div.field { label for="why" { "Why" } input id="why" name="why"; }
            p { label { input type="checkbox" name="unknown" value="yes"; " Also if no document has this kind or tenant yet" } }
            p { label { input type="checkbox" name="confirm" value="yes" required; " Hold these documents back until somebody ends the pause" } }
            button.first { "Pause" }
        }
    }
}

fn end_form(state: &ConsoleState, visitor: &ConsoleVisitor, pause: &PauseRow) -> Markup {
    html! {
        form method="post" action=(state.link("/pauses/end")) {
            (form_secret(visitor))
            input type="hidden" name="scope" value=(pause.scope);
            input type="hidden" name="name" value=(pause.name);
            label { input type="checkbox" name="confirm" value="yes" required; " Let them go on" }
            button { "Resume" }
        }
    }
}

/// `POST /pauses`.
pub(super) async fn post_pause(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let target = read_target(&visitor, &form)?;
    // A visitor of one tenant writes no other.
    let meant = form.get("unknown").is_some() || visitor.tenant.is_some();
    require_known(&state, &target, meant).await?;
    let by = visitor.audit_note(form.get("why").unwrap_or_default());
    retry::pause_target(state.database(), &target, &by).await?;
    Ok(Redirect::to(&state.link("/pauses")))
}

/// Refuses a kind or tenant that nothing has: a slip would leave the meant one running.
async fn require_known(
    state: &ConsoleState,
    target: &PauseTarget,
    also_unknown: bool,
) -> Result<(), ConsoleFailure> {
    let is_known = match target.scope {
        PauseScope::Kind => state.kinds().get(&target.name).is_some(),
        PauseScope::Tenant => {
            let tenant = Some(target.name.clone());
            let filter = IngestionFilter { tenant, ..IngestionFilter::default() };
            !inspect::list_ingestions(state.database(), &filter, 1, None).await?.is_empty()
        }
        _ => true,
    };
    if is_known || also_unknown {
        return Ok(());
    }
    let text = "No document has this kind or tenant: check the name, or tick the box for one that \
                has none yet.";
    Err(ConsoleFailure::refused(text).about("name"))
}

/// `POST /pauses/end`.
pub(super) async fn post_resume(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let target = read_target(&visitor, &form)?;
    retry::resume_target(state.database(), &target, &visitor.audit_note("")).await?;
    Ok(Redirect::to(&state.link("/pauses")))
}

/// The scope of the pause, if it is confirmed and this visitor has the right.
fn read_target(
    visitor: &ConsoleVisitor,
    form: &FieldValues,
) -> Result<PauseTarget, ConsoleFailure> {
    require_confirmation(form)?;
    let code = form.get("scope").unwrap_or_default();
    let scope = SCOPES.into_iter().find(|scope| scope.code() == code);
    let scope = scope.ok_or_else(|| ConsoleFailure::wrong_request("There is no such scope."))?;
    let name = form.text("name").unwrap_or_default();
    let own = scope == PauseScope::Tenant && visitor.sees(Some(&name));
    if visitor.tenant.is_some() && !own {
        return Err(ConsoleFailure::forbidden("Your token is for one tenant: pause that."));
    }
    Ok(PauseTarget { scope, name })
}
