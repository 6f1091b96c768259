//! The ingestions that a form or a program means: named ones, or all that match the filter of a list.
//!
//! A request reaches at most [`MAX_TOGETHER`] of them, and only those that the visitor sees.

use maud::{Markup, html};
use uuid::Uuid;

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::FieldValues;
use super::layout::foreign_name;
use super::list_filters::{filter_names, hidden_fields};
use super::listing::{read_cursor, read_filter};
use super::queue_choice::{QueueChoice, choice_names};
use super::state::ConsoleState;
use docmill_core::model::IngestionId;
use docmill_operations::inspect::{self, IngestionFilter};
use docmill_operations::retry::MAX_TOGETHER;
use docmill_operations::review::{self, ReviewFilter, ReviewOrder};

/// The ingestions that a request names.
#[derive(Debug, Clone)]
pub(super) enum IngestionChoice {
    /// These ingestions.
    Ingestions(Vec<Uuid>),
    /// All that match, after this one.
    Matching(IngestionFilter, Option<Uuid>),
    /// The newest ingestions of these documents.
    Documents(Vec<Uuid>),
    /// Those of the documents that wait for review longest and match.
    Waiting(Box<ReviewFilter>),
}

/// Ingestions that are meant.
pub(super) struct ChosenIngestions {
    /// At most [`MAX_TOGETHER`], newest first.
    pub(super) ids: Vec<IngestionId>,
    /// More match than one request reaches.
    pub(super) has_more: bool,
}

impl IngestionChoice {
    /// The choice of a form: `of` with `id` or with the names of a list's filter.
    ///
    /// # Errors
    /// It names no choice, no row or too many rows.
    pub(super) fn read(
        visitor: &ConsoleVisitor,
        wanted: &FieldValues,
    ) -> Result<Self, ConsoleFailure> {
        match wanted.get("of") {
            Some("selected") => Ok(Self::Ingestions(read_ids(wanted)?)),
            Some("matching") => {
                Ok(Self::Matching(read_filter(visitor, wanted)?, read_cursor(wanted)?))
            }
            Some("documents") => Ok(Self::Documents(read_ids(wanted)?)),
            Some("waiting") => {
                let filter = QueueChoice::read(visitor, wanted)?.filter;
                Ok(Self::Waiting(Box::new(ReviewFilter { order: ReviewOrder::Age, ..filter })))
            }
            _ => {
                let text = "of is selected, matching, documents or waiting";
                Err(ConsoleFailure::wrong_request(text))
            }
        }
    }

    /// Refuses a filter of ingestions without a status, which also means everything that is completed,
    /// and the queue as a whole, from which changed rows vanish.
    pub(super) fn require_changeable(&self) -> Result<(), ConsoleFailure> {
        match self {
            Self::Matching(filter, _) if filter.status.is_none() => {
                let text = "All that match are changed by status: filter by one first.";
                Err(ConsoleFailure::wrong_request(text).about("status"))
            }
            Self::Waiting(_) => {
                Err(ConsoleFailure::wrong_request("Of the queue only selected rows are changed."))
            }
            _ => Ok(()),
        }
    }

    /// The chosen ingestions, as far as the visitor sees them.
    pub(super) async fn load(
        &self,
        state: &ConsoleState,
        visitor: &ConsoleVisitor,
    ) -> Result<ChosenIngestions, ConsoleFailure> {
        let db = state.database();
        let (limit, most) = (u32::try_from(MAX_TOGETHER + 1).unwrap_or(u32::MAX), MAX_TOGETHER);
        match self {
            Self::Ingestions(ids) => {
                let ids: Vec<IngestionId> = ids.iter().copied().map(IngestionId).collect();
                keep_visible(state, visitor, &ids).await
            }
            Self::Documents(documents) => {
                let ids = inspect::find_newest_ingestions(db, documents).await?;
                keep_visible(state, visitor, &ids).await
            }
            Self::Matching(filter, after) => {
                let after = after.map(IngestionId);
                let mut ids = inspect::list_ingestion_ids(db, filter, limit, after).await?;
                let has_more = ids.len() > most;
                ids.truncate(most);
                Ok(ChosenIngestions { ids, has_more })
            }
            Self::Waiting(filter) => {
                let rows = review::list_reviews(db, filter, limit, None).await?;
                let documents = rows.iter().take(most).map(|row| row.document_id);
                let documents: Vec<Uuid> = documents.collect();
                let ids = inspect::find_newest_ingestions(db, &documents).await?;
                Ok(ChosenIngestions { ids, has_more: rows.len() > most })
            }
        }
    }
}

/// Those of named ingestions that the visitor sees.
///
/// # Errors
/// None of them; no answer from Postgres.
async fn keep_visible(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    ids: &[IngestionId],
) -> Result<ChosenIngestions, ConsoleFailure> {
    let mut rows = inspect::ingestions_by_id(state.database(), ids).await?;
    rows.retain(|row| visitor.sees(row.tenant.as_deref()));
    if rows.is_empty() {
        return Err(ConsoleFailure::missing());
    }
    let ids = rows.iter().map(|row| IngestionId(row.id)).collect();
    Ok(ChosenIngestions { ids, has_more: false })
}

/// The rows that are ticked in a list.
///
/// # Errors
/// None, too many, or one that is no id.
pub(super) fn read_ids(wanted: &FieldValues) -> Result<Vec<Uuid>, ConsoleFailure> {
    let ids: Result<Vec<Uuid>, _> = wanted.all("id").map(Uuid::parse_str).collect();
    let ids = ids.map_err(|_| ConsoleFailure::wrong_request("id is the id of a row"))?;
    if ids.is_empty() {
        return Err(ConsoleFailure::wrong_request("No row is selected: go back and tick some."));
    }
    check_count(ids.len())?;
    Ok(ids)
}

/// Refuses more than one request reaches.
pub(super) fn check_count(count: usize) -> Result<(), ConsoleFailure> {
    if count <= MAX_TOGETHER {
        return Ok(());
    }
    let text = format!("At most {MAX_TOGETHER} ingestions are chosen together.");
    Err(ConsoleFailure::wrong_request(text))
}

/// Whether the choice was made in the review queue.
fn is_of_queue(wanted: &FieldValues) -> bool {
    matches!(wanted.get("of"), Some("documents" | "waiting"))
}

/// The names of the filter of the list in which the choice was made.
fn names_of_filter(visitor: &ConsoleVisitor, wanted: &FieldValues) -> Vec<&'static str> {
    match is_of_queue(wanted) {
        true => choice_names(visitor).collect(),
        false => filter_names(visitor).to_vec(),
    }
}

/// The choice, for a form that is sent next; without the rows and the place if `goes_on`.
pub(super) fn hidden_choice(
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    goes_on: bool,
) -> Markup {
    let mut names = names_of_filter(visitor, wanted);
    names.push("of");
    if !goes_on {
        names.extend(["id", "cursor"]);
    }
    hidden_fields(wanted, &names)
}

/// How many are meant and by which filter.
pub(super) fn choice_words(
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
    chosen: &ChosenIngestions,
) -> Markup {
    let names = names_of_filter(visitor, wanted);
    let named = names.iter().filter_map(|name| Some((*name, wanted.get(name)?)));
    html! {
        @if chosen.has_more { "More than " }
        (counted_ingestions(chosen.ids.len()))
        @if matches!(wanted.get("of"), Some("matching" | "waiting")) {
            " match: "
            @for (place, (name, value)) in named.enumerate() {
                @if place > 0 { ", " } (name) " " (foreign_name(value)) }
            "."
        } @else { " selected." }
    }
}

/// A number of ingestions in words.
pub(super) fn counted_ingestions(count: usize) -> String {
    if count == 1 { "1 ingestion".to_owned() } else { format!("{count} ingestions") }
}

/// Leads back to the list in which the choice was made, with its filter.
pub(super) fn back_to_list(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
) -> Markup {
    let (mut query, names) =
        (form_urlencoded::Serializer::new(String::new()), names_of_filter(visitor, wanted));
    query.extend_pairs(wanted.pairs().filter(|(name, _)| names.contains(name)));
    let list = if is_of_queue(wanted) { "/reviews" } else { "/ingestions" };
    html! { p { a href=(state.link(&format!("{list}?{}", query.finish()))) { "Back to the list" } } }
}
