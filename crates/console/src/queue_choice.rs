//! The part, filter and order of the review queue that a reviewer works through.

use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::FieldValues;
use docmill_operations::review::{self, ReviewFilter, ReviewOrder, ReviewPart};

/// The names of a queue's choice in an address.
const CHOICE_NAMES: [&str; 5] = ["part", "kind", "tenant", "reason", "order"];

/// The names of a queue's choice that the visitor has: one of a tenant chooses none.
pub(super) fn choice_names(visitor: &ConsoleVisitor) -> impl Iterator<Item = &'static str> {
    let chooses_tenant = visitor.tenant.is_none();
    CHOICE_NAMES.into_iter().filter(move |name| *name != "tenant" || chooses_tenant)
}

/// The part, filter and order of the queue that a reviewer works through. They are in the address of
/// every review, so that what comes next is of the same choice.
#[derive(Debug, Clone)]
pub(super) struct QueueChoice {
    /// The same for the database.
    pub(super) filter: ReviewFilter,
    named: Vec<(&'static str, String)>,
}

impl QueueChoice {
    /// The choice in a query string, as far as the visitor sees it.
    ///
    /// # Errors
    /// There is no such part or order.
    pub(super) fn read(
        visitor: &ConsoleVisitor,
        wanted: &FieldValues,
    ) -> Result<Self, ConsoleFailure> {
        let who = visitor.audit_name();
        let part = match wanted.get("part") {
            None => ReviewPart::ToCheck(who),
            Some("unreadable") => ReviewPart::Unreadable(who),
            Some("later") => ReviewPart::Later(who),
            Some(_) => return Err(ConsoleFailure::wrong_request("part is unreadable or later")),
        };
        let filter = ReviewFilter { part, ..read_filter(visitor, wanted)? };
        let named = choice_names(visitor).filter_map(|name| Some((name, wanted.text(name)?)));
        Ok(Self { filter, named: named.collect() })
    }

    /// This path with the choice and more in its query.
    pub(super) fn path(&self, path: &str, more: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.named).extend_pairs(more);
        match query.finish() {
            query if query.is_empty() => path.to_owned(),
            query => format!("{path}?{query}"),
        }
    }

    /// The choice, for a form that is sent next.
    pub(super) fn hidden(&self) -> Markup {
        html! { @for (name, value) in &self.named { input type="hidden" name=(name) value=(value); } }
    }

    /// The name of its part; empty: what is to be checked.
    pub(super) fn part(&self) -> &str {
        let part = self.named.iter().find(|(name, _)| *name == "part");
        part.map_or("", |(_, part)| part)
    }

    /// The same choice of another part; an empty name: what is to be checked.
    pub(super) fn path_of_part(&self, part: &str) -> String {
        let named = self.named.iter().filter(|(name, _)| *name != "part").cloned();
        let other = Self { filter: self.filter.clone(), named: named.collect() };
        match part {
            "" => other.path("/reviews", &[]),
            part => other.path("/reviews", &[("part", part)]),
        }
    }

    /// Whether it is narrowed to a kind, tenant or reason.
    pub(super) fn is_narrowed(&self) -> bool {
        self.named.iter().any(|(name, _)| ["kind", "tenant", "reason"].contains(name))
    }
}

/// Everything that a query string asks for, in all parts, as far as the visitor sees it.
///
/// # Errors
/// There is no such order.
pub(super) fn read_filter(
    visitor: &ConsoleVisitor,
    wanted: &FieldValues,
) -> Result<ReviewFilter, ConsoleFailure> {
    Ok(ReviewFilter {
        tenant: visitor.narrow_tenant(wanted.text("tenant")),
        kind: wanted.text("kind"),
        reason: wanted.text("reason"),
        documents: None,
        part: ReviewPart::All,
        order: read_order(wanted)?,
    })
}

fn read_order(wanted: &FieldValues) -> Result<ReviewOrder, ConsoleFailure> {
    match wanted.get("order") {
        None | Some("age") => Ok(ReviewOrder::Age),
        Some("amount") => Ok(ReviewOrder::Amount),
        Some(_) => Err(ConsoleFailure::wrong_request("order is age or amount")),
    }
}

/// A count up to the number that is counted.
pub(super) fn counted(count: i64) -> String {
    if count < review::MAX_COUNTED { count.to_string() } else { format!("{count}+") }
}
