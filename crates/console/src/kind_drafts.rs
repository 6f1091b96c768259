//! Drafts of kinds and their replays over decided documents: the pages, and the operations for
//! programs. A draft is checked here and replayed by a worker; it goes live as files that are deployed.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::{Extension, Json};
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::api_forms::{JsonBody, WholeNumber, tagged_json};
use super::companies::meant_tenant;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::read_id;
use super::layout::{foreign_name, form_secret, frame_page, moment, money, state_mark};
use super::originals::attachment;
use super::state::ConsoleState;
use docmill_gate::kinds::Kind;
use docmill_operations::kind_drafts::{
    self, DraftRefusal, KindDraft, KindReplay, KindReplayFilter, KindReplayRow, MAX_DOCUMENTS,
    find_files,
};
use docmill_operations::replay::{self, DecidedReplay, ReplayedDocument};

/// Files of the form, and their labels.
const FILES: [(&str, &str); 5] = [
    ("schema.json", "Fields (schema.json)"),
    ("rules.toml", "Rules (rules.toml)"),
    ("prompt.md", "Instructions for a model (prompt.md)"),
    ("kind.toml", "Title, signals and roles (kind.toml)"),
    ("labels.toml", "Labels beside the values (labels.toml)"),
];
/// Other fields of the form, their labels and defaults.
const TERMS: [(&str, &str, &str); 5] = [
    ("tenant", "Documents of the tenant; empty for all", ""),
    ("max_documents", "Documents at most, the newest decisions first", "1000"),
    ("max_worse", "Gate: at most so many per cent get worse", "1"),
    ("max_cost", "Spend at most on models; 0 ends it with the first call that costs", "0"),
    ("why", "Why", ""),
];
/// Replays that the page of a kind lists.
const LISTED_REPLAYS: u32 = 20;
/// Documents of a replay, unless the request says otherwise.
const DEFAULT_DOCUMENTS: u32 = 1_000;
/// Share of documents that may get worse, likewise.
const DEFAULT_WORSE: f64 = 0.01;

/// A draft of a kind, and the terms of its replay.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct KindReplayRequest {
    /// Whose documents; left out: the token's own, or those of all tenants.
    tenant: Option<String>,
    /// The files that differ from those in force, by their paths in the kind's folder.
    files: BTreeMap<String, String>,
    /// At most so many documents, the newest decisions first; 1,000 if left out, at most 10,000.
    #[schema(value_type = Option<u32>)]
    max_documents: Option<WholeNumber<u32>>,
    /// The gate: at most this share of documents gets worse, with a certainty of 95 %; 0.01 if left out.
    max_worse: Option<f64>,
    /// No further document is begun once so much is spent on models, in billionths of the currency.
    #[schema(value_type = u64)]
    max_cost_nanos: WholeNumber<u64>,
    why: String,
}

impl KindReplayRequest {
    fn into_draft(
        self,
        visitor: &ConsoleVisitor,
        kind: String,
    ) -> Result<KindDraft, ConsoleFailure> {
        let max_documents = self.max_documents.map_or(DEFAULT_DOCUMENTS, |most| most.0);
        let max_worse = self.max_worse.unwrap_or(DEFAULT_WORSE);
        if !(1..=MAX_DOCUMENTS).contains(&max_documents) {
            let text = format!("The number of documents is from 1 to {MAX_DOCUMENTS}.");
            return Err(ConsoleFailure::refused(text).about("max_documents"));
        }
        if !(0.0..1.0).contains(&max_worse) {
            let text = "The share of documents that may get worse is from 0 to below 1.";
            return Err(ConsoleFailure::refused(text).about("max_worse"));
        }
        Ok(KindDraft {
            tenant: meant_tenant(visitor, self.tenant.as_deref())?,
            kind,
            files: self.files,
            max_documents,
            max_worse,
            max_cost_nanos: self.max_cost_nanos.0,
        })
    }

    /// The form of the page, whose share is in per cent and whose cost is an amount.
    fn of_form(form: &FieldValues) -> Result<Self, ConsoleFailure> {
        let files =
            FILES.iter().filter_map(|(file, _)| Some(((*file).to_owned(), form.raw(file)?)));
        let max_worse: Option<f64> = read_number(form, "max_worse", |text| text.parse().ok())?;
        Ok(Self {
            tenant: form.text("tenant"),
            files: files.collect(),
            max_documents: read_number(form, "max_documents", |text| {
                text.parse().ok().map(WholeNumber)
            })?,
            max_worse: max_worse.map(|per_cent| per_cent / 100.0),
            max_cost_nanos: WholeNumber(
                read_number(form, "max_cost", replay::parse_nanos)?.unwrap_or_default(),
            ),
            why: form.text("why").unwrap_or_default(),
        })
    }
}

fn read_number<T>(
    form: &FieldValues,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, ConsoleFailure> {
    let Some(text) = form.get(name) else { return Ok(None) };
    let number = parse(text).ok_or_else(|| {
        ConsoleFailure::refused(format!("{name}: `{text}` is not such a number.")).about(name)
    })?;
    Ok(Some(number))
}

fn failure_of(refusal: DraftRefusal) -> ConsoleFailure {
    match refusal {
        DraftRefusal::UnknownKind => ConsoleFailure::missing(),
        DraftRefusal::Unsound(_) => ConsoleFailure::refused(refusal.to_string()).about("files"),
        DraftRefusal::TooMany => ConsoleFailure::conflict(refusal.to_string()),
        DraftRefusal::Fault(error) => error.into(),
    }
}

async fn ask_for(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    kind: &str,
    request: KindReplayRequest,
) -> Result<Uuid, ConsoleFailure> {
    let by = visitor.audit_note(&request.why);
    let draft = request.into_draft(visitor, kind.to_owned())?;
    // Checking a draft takes a core for a moment.
    let _place = state.rendering_place(visitor).await?;
    let asked = kind_drafts::ask_replay(state.database(), state.kinds(), draft, &by).await;
    asked.map_err(failure_of)
}

/// Asks for the replay of a draft of a kind over decided documents; of the kind in force without
/// `files`. A worker runs it: its result is that of `docmill replay`.
#[utoipa::path(
    post,
    path = "/kinds/{kind}/replays",
    operation_id = "replayKind",
    params(("kind" = String, Path)),
    request_body = KindReplayRequest,
    responses((status = 200, description = "Done.", body = KindReplay))
)]
pub(super) async fn post_replay(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(kind): Path<String>,
    JsonBody(request): JsonBody<KindReplayRequest>,
) -> Result<Response, ConsoleFailure> {
    let id = ask_for(&state, &visitor, &kind, request).await?;
    Ok(Json(find_visible_replay(&state, &visitor, id).await?).into_response())
}

/// A replay of a draft of a kind: its state, and the result once it is done.
#[utoipa::path(
    get,
    path = "/replays/{id}",
    operation_id = "getKindReplay",
    params(("id" = Uuid, Path)),
    responses((status = 200, description = "Done.", body = KindReplay))
)]
pub(super) async fn get_replay(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    tagged_json(&headers, &find_visible_replay(&state, &visitor, read_id(&id)?).await?)
}

/// A share of later decisions that a draft reads too.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ShadowRequest {
    /// Share of the documents, 0 to 1; 0 ends the shadow run.
    #[schema(minimum = 0, maximum = 1)]
    share: f64,
    why: String,
}

/// Starts a shadow run: the draft reads a share of the documents that people decide from now on,
/// and the results are compared. It replaces another shadow run of the kind. 409 if the draft did
/// not pass its gate.
#[utoipa::path(
    put,
    path = "/replays/{id}/shadow",
    operation_id = "shadowKindReplay",
    params(("id" = Uuid, Path)),
    request_body = ShadowRequest,
    responses((status = 200, description = "Done.", body = KindReplay))
)]
pub(super) async fn put_shadow(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<ShadowRequest>,
) -> Result<Response, ConsoleFailure> {
    let id = read_id(&id)?;
    change_shadow(&state, &visitor, id, &request).await?;
    Ok(Json(find_visible_replay(&state, &visitor, id).await?).into_response())
}

async fn change_shadow(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: Uuid,
    request: &ShadowRequest,
) -> Result<(), ConsoleFailure> {
    if !(0.0..=1.0).contains(&request.share) {
        return Err(ConsoleFailure::refused("The share is from 0 to 1.").about("share"));
    }
    find_visible_replay(state, visitor, id).await?;
    let share = Some(request.share).filter(|share| *share > 0.0);
    let by = visitor.audit_note(&request.why);
    match kind_drafts::set_shadow(state.database(), id, share, &by).await? {
        true => Ok(()),
        false => Err(ConsoleFailure::conflict("This draft did not pass its gate.")),
    }
}

/// `POST /replays/{id}/shadow`, whose share is in per cent.
pub(super) async fn post_shadow(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let per_cent: Option<f64> = read_number(&form, "share", |text| text.parse().ok())?;
    let share = per_cent.unwrap_or_default() / 100.0;
    let request = ShadowRequest { share, why: form.text("why").unwrap_or_default() };
    let id = read_id(&id)?;
    change_shadow(&state, &visitor, id, &request).await?;
    Ok(Redirect::to(&state.link(&format!("/replays/{id}"))))
}

async fn find_visible_replay(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: Uuid,
) -> Result<KindReplay, ConsoleFailure> {
    let tenant = visitor.narrow_tenant(None);
    let wanted = KindReplayFilter { id: Some(id), tenant, ..KindReplayFilter::default() };
    let found = kind_drafts::list_replays(state.database(), &wanted, 1).await?.pop();
    found.ok_or_else(ConsoleFailure::missing)
}

/// The newest replays of a kind that the visitor may see.
pub(super) async fn load_replays(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    kind: &str,
) -> Result<Vec<KindReplay>, ConsoleFailure> {
    let (tenant, kind) = (visitor.narrow_tenant(None), Some(kind.to_owned()));
    let wanted = KindReplayFilter { tenant, kind, ..KindReplayFilter::default() };
    Ok(kind_drafts::list_replays(state.database(), &wanted, LISTED_REPLAYS).await?)
}

/// The first digits of a version.
pub(super) fn short_version(version: &str) -> &str {
    version.get(..12).unwrap_or(version)
}

/// The drafts of a kind and what came of them.
pub(super) fn replays_table(state: &ConsoleState, kind: &Kind, replays: &[KindReplay]) -> Markup {
    html! {
        h2 { "Drafts" }
        p { a href=(state.link(&format!("/kinds/{}/draft", kind.name))) { "Try a change of this kind" }
            " over documents that people decided about." }
        @if !replays.is_empty() {
            div.wide tabindex="0" { table {
                thead { tr { th { "asked" } th { "by" } th { "tenant" } th { "version" } th { "state" } th { "gate" } } }
                tbody { @for KindReplay { run, report, .. } in replays { tr {
                    td { a href=(state.link(&format!("/replays/{}", run.id))) { (moment(run.asked_at)) } }
                    td { (foreign_name(&run.asked_by)) } td { (foreign_name(&run.tenant)) }
                    td { (short_version(&run.version)) } td { (state_mark(&run.state)) }
                    td { (report.as_ref().map_or("–", |it| if it.taken { "passed" } else { "not passed" }))
                        @if let Some(share) = run.shadow_share { ", in the shadow of " (per_cent(share)) } }
                } } }
            } }
        }
    }
}

/// `/kinds/{kind}/draft`.
pub(super) async fn show_draft(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(name): Path<String>,
    QueryFields(wanted): QueryFields,
) -> Result<Html<String>, ConsoleFailure> {
    let kind = state.kinds().get(&name).ok_or_else(ConsoleFailure::missing)?;
    let files = match wanted.get("from") {
        Some(id) => draft_files(&state, &visitor, read_id(id)?).await?,
        None => state.kinds().files_of(&name).cloned().unwrap_or_default(),
    };
    let body = draft_form(&state, &visitor, kind, &files, None);
    Ok(frame_page(&state, Some(&visitor), &draft_title(kind), &body))
}

fn draft_title(kind: &Kind) -> String {
    format!("Draft of {}", kind.title)
}

async fn draft_files(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    id: Uuid,
) -> Result<BTreeMap<String, String>, ConsoleFailure> {
    find_visible_replay(state, visitor, id).await?;
    find_files(state.database(), id).await?.ok_or_else(ConsoleFailure::missing)
}

/// A form that was not taken, and why.
struct RefusedDraft<'a> {
    form: &'a FieldValues,
    failure: &'a ConsoleFailure,
}

fn draft_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    kind: &Kind,
    files: &BTreeMap<String, String>,
    refused: Option<&RefusedDraft<'_>>,
) -> Markup {
    html! {
        @if let Some(refused) = refused {
            div.notice.bad role="alert" { p { "Not taken:" }
                ul { @for line in refused.failure.detail.lines() { li { (foreign_name(line)) } } } }
        }
        p.hint { "Stored transcripts are used: no page is read again. Models are asked again only where \
            instructions, fields or examples change. Nothing goes live." }
        form method="post" action=(state.link(&format!("/kinds/{}/draft", kind.name))) {
            (form_secret(visitor))
            @for (file, label) in FILES {
                div.field { label for=(file) { (label) }
                    textarea id=(file) name=(file) rows="12" spellcheck="false" {
                        // A browser leaves out the first line end.
                        "\n" (files.get(file).map(String::as_str).unwrap_or_default())
                    } }
            }
            @for (name, label, value) in TERMS {
                @if name != "tenant" || visitor.tenant.is_none() {
                    div.field { label for=(name) { (label) }
                        input id=(name) name=(name) value=(refused.map_or(value, |it| it.form.value(name))); }
                }
            }
            button.first { "Check and replay" }
        }
    }
}

/// `POST /kinds/{kind}/draft`.
pub(super) async fn post_draft(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(name): Path<String>,
    PostedForm(form): PostedForm,
) -> Result<Response, ConsoleFailure> {
    let kind = state.kinds().get(&name).ok_or_else(ConsoleFailure::missing)?;
    let asked = match KindReplayRequest::of_form(&form) {
        Ok(request) => ask_for(&state, &visitor, &name, request).await,
        Err(failure) => Err(failure),
    };
    match asked {
        Ok(id) => Ok(Redirect::to(&state.link(&format!("/replays/{id}"))).into_response()),
        // The text stays, with its problems by file and line.
        Err(failure) if failure.status == StatusCode::UNPROCESSABLE_ENTITY => {
            let typed =
                FILES.map(|(file, _)| (file.to_owned(), form.raw(file).unwrap_or_default()));
            let refused = RefusedDraft { form: &form, failure: &failure };
            let body = draft_form(&state, &visitor, kind, &typed.into(), Some(&refused));
            let page = frame_page(&state, Some(&visitor), &draft_title(kind), &body);
            Ok((failure.status, page).into_response())
        }
        Err(failure) => Err(failure),
    }
}

/// `/replays/{id}`.
pub(super) async fn show_replay(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
) -> Result<Html<String>, ConsoleFailure> {
    let KindReplay { run, report, shadow } =
        find_visible_replay(&state, &visitor, read_id(&id)?).await?;
    let files = draft_files(&state, &visitor, run.id).await?;
    let in_force = state.kinds().files_of(&run.kind);
    let is_changed = |file: &String| in_force.and_then(|own| own.get(file)) != files.get(file);
    let again = format!("/kinds/{}/draft?from={}", run.kind, run.id);
    let body = html! {
        p { "Kind " a href=(state.link(&format!("/kinds/{}", run.kind))) { (run.kind) } ", version "
            code { (short_version(&run.version)) } ", asked for " (moment(run.asked_at)) " by "
            (foreign_name(&run.asked_by)) @if !run.tenant.is_empty() { ", documents of " (foreign_name(&run.tenant)) }
            ". " (state_mark(&run.state)) }
        @match (run.state.as_str(), &report) {
            (_, Some(report)) => (report_part(&state, report)),
            ("waiting", _) => p { "A worker takes it within seconds. Load the page again." },
            ("running", _) => p { "A worker runs it. Load the page again." },
            _ => p.notice.bad { @for line in run.problem.iter().flat_map(|text| text.lines()) { (foreign_name(line)) br; } },
        }
        @if report.is_some_and(|it| it.taken) { (shadow_part(&state, &visitor, &run, shadow.as_ref())) }
        h2 { "Files of the draft" }
        ul { @for file in files.keys() { li {
            a href=(state.link(&format!("/replays/{}/file?name={file}", run.id))) { (file) }
            @if is_changed(file) { " (differs from the kind in force)" }
        } } }
        p { "To go live, put them into the folder of the kind in " code { "kinds.path" } " and restart the workers. "
            a href=(state.link(&again)) { "Change this draft" } }
    };
    Ok(frame_page(&state, Some(&visitor), "Replay of a kind", &body))
}

fn report_part(state: &ConsoleState, report: &DecidedReplay) -> Markup {
    let tone = if report.taken { "notice" } else { "notice bad" };
    html! {
        p class=(tone) {
            @if report.taken { "Passes the gate" } @else { "Does not pass the gate" }
            (format!(": at most {:.2} % of documents get worse, with a certainty of 95 %; {:.2} % are allowed.",
                report.worse_at_most * 100.0, report.max_worse * 100.0))
            @if report.cut_short { " It ended early: the amount for models is spent." }
        }
        (counts_part(state, report))
    }
}

/// The readings of later decisions, and the form that changes their share.
fn shadow_part(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    run: &KindReplayRow,
    shadow: Option<&DecidedReplay>,
) -> Markup {
    let share = run.shadow_share.unwrap_or_default();
    html! {
        h2 { "In the shadow" }
        @if let Some(shadow) = shadow {
            (counts_part(state, shadow))
            @if shadow.cut_short { p.notice.bad { "It ended early: the amount for models is spent, or the \
                kinds that this one includes have changed." } }
        }
        p.hint { "Workers read a share of the documents that people decide from now on with this draft too, \
            and compare. Nothing else changes." }
        form method="post" action=(state.link(&format!("/replays/{}/shadow", run.id))) {
            (form_secret(visitor))
            div.field { label for="share" { "Share in per cent; 0 ends it" }
                input id="share" name="share" inputmode="decimal" value=(share * 100.0); }
            div.field { label for="shadow-why" { "Why" } input id="shadow-why" name="why"; }
            button { "Change the share" }
        }
    }
}

/// A share in per cent.
fn per_cent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Counts of a replay, and the documents that change.
fn counts_part(state: &ConsoleState, report: &DecidedReplay) -> Markup {
    html! {
        p { (report.documents) " documents: " (report.changed) " change, " (report.better) " better, "
            (report.worse) " worse (" (report.worse_unflagged) " of them unflagged). "
            (report.newly_flagged) " newly flagged, " (report.no_longer_flagged) " no longer flagged, "
            (report.left_out) " without a transcript. Models cost "
            (money(i64::try_from(report.cost_nanos).unwrap_or(i64::MAX))) "; "
            (format!("{:.0}", report.seconds)) " s." }
        @if !report.named.is_empty() {
            h2 { "Documents that change" }
            div.wide tabindex="0" { table {
                thead { tr { th { "document" } th { "worse" } th { "better" } } }
                tbody { @for named in &report.named { (named_row(state, named)) } }
            } }
        }
    }
}

fn named_row(state: &ConsoleState, named: &ReplayedDocument) -> Markup {
    let [worse, better] = [&named.worse, &named.better]
        .map(|fields| fields.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    html! {
        tr {
            td { a href=(state.link(&format!("/reviews/{}", named.document_id))) { (named.document_id) } }
            td { (worse) @if named.failed { " fails now" } } td { (better) }
        }
    }
}

/// `/replays/{id}/file?name=`.
pub(super) async fn get_file(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    Path(id): Path<String>,
    QueryFields(wanted): QueryFields,
) -> Result<Response, ConsoleFailure> {
    let mut files = draft_files(&state, &visitor, read_id(&id)?).await?;
    let name = wanted.value("name");
    let text = files.remove(name).ok_or_else(ConsoleFailure::missing)?;
    let base = name.rsplit('/').next().unwrap_or(name);
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CONTENT_DISPOSITION, attachment(base)),
    ];
    Ok((headers, text).into_response())
}
