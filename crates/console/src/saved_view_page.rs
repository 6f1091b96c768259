//! Saved views: filters of a list that a person keeps under a name, as links over the list.

use axum::Extension;
use axum::extract::State;
use axum::response::Redirect;
use maud::{Markup, html};

use super::access::ConsoleVisitor;
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm};
use super::layout::{foreign_name, form_secret, visible_text};
use super::list_filters::{filter_names, hidden_fields};
use super::queue_choice::choice_names;
use super::state::ConsoleState;
use docmill_operations::saved_views::{
    self, MAX_VIEW_BYTES, MAX_VIEW_NAME_CHARS, MAX_VIEWS, SavedView, ViewedList,
};

/// The names of the filters of a list that the visitor has.
fn names_of(list: ViewedList, visitor: &ConsoleVisitor) -> Vec<&'static str> {
    match list {
        ViewedList::Ingestions => filter_names(visitor).to_vec(),
        ViewedList::Reviews => choice_names(visitor).collect(),
    }
}

/// The filters among these values, as the address of the list has them.
fn filters_of(values: &FieldValues, names: &[&str]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(names.iter().filter_map(|name| Some((*name, values.get(name)?))));
    query.finish()
}

/// The visitor's views of a list as links, with forms to save and delete one.
///
/// # Errors
/// No answer from Postgres.
pub(super) async fn view_links(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    list: ViewedList,
    wanted: &FieldValues,
) -> Result<Markup, ConsoleFailure> {
    let views = saved_views::list_views(state.database(), &visitor.audit_name(), list).await?;
    let names = names_of(list, visitor);
    let (shown, path) = (filters_of(wanted, &names), state.link(&format!("/{}", list.code())));
    Ok(html! {
        @if !views.is_empty() {
            nav.tabs aria-label="Saved views" { ul { @for view in &views {
                li { a href={ (path) "?" (view.query) } aria-current=[(view.query == shown).then_some("page")] {
                    (foreign_name(&view.name)) } }
            } } }
        }
        @if !views.is_empty() || !shown.is_empty() {
            details { summary { "Saved views" }
                @if !shown.is_empty() { (save_form(state, visitor, list, &hidden_fields(wanted, &names))) }
                @if !views.is_empty() { (removal_form(state, visitor, list, &views)) }
            }
        }
    })
}

fn save_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    list: ViewedList,
    filters: &Markup,
) -> Markup {
    html! {
        form.filters method="post" action=(state.link("/views")) {
            (form_secret(visitor))
            input type="hidden" name="list" value=(list.code());
            (filters)
            div { label for="view-name" { "Name of these filters" }
                input id="view-name" name="name" required maxlength=(MAX_VIEW_NAME_CHARS); }
            button { "Save" }
        }
    }
}

fn removal_form(
    state: &ConsoleState,
    visitor: &ConsoleVisitor,
    list: ViewedList,
    views: &[SavedView],
) -> Markup {
    html! {
        form.filters method="post" action=(state.link("/views/remove")) {
            (form_secret(visitor))
            input type="hidden" name="list" value=(list.code());
            div { label for="view-removed" { "View" }
                select id="view-removed" name="name" {
                    @for view in views { option value=(view.name) { (visible_text(&view.name)) } } } }
            button { "Delete" }
        }
    }
}

fn read_list(form: &FieldValues) -> Result<ViewedList, ConsoleFailure> {
    let list = form.get("list").and_then(ViewedList::from_code);
    list.ok_or_else(|| ConsoleFailure::wrong_request("list is ingestions or reviews"))
}

/// `POST /views`: keeps the filters of a list; other values of the form are left out.
pub(super) async fn post_view(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let list = read_list(&form)?;
    let query = filters_of(&form, &names_of(list, &visitor));
    let name = form.text("name").filter(|name| name.chars().count() <= MAX_VIEW_NAME_CHARS);
    let name = name.ok_or_else(|| {
        ConsoleFailure::refused(format!("The name has 1 to {MAX_VIEW_NAME_CHARS} characters."))
    })?;
    if query.is_empty() || query.len() > MAX_VIEW_BYTES {
        let text = format!("A view has filters, of {MAX_VIEW_BYTES} bytes at most.");
        return Err(ConsoleFailure::refused(text));
    }
    let (path, view) = (format!("/{}?{query}", list.code()), SavedView { name, query });
    match saved_views::save_view(state.database(), list, &view, &visitor.audit_note("")).await? {
        true => Ok(Redirect::to(&state.link(&path))),
        false => {
            let text = format!("There are {MAX_VIEWS} views already: delete one first.");
            Err(ConsoleFailure::refused(text))
        }
    }
}

/// `POST /views/remove`.
pub(super) async fn post_view_removal(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let (list, by) = (read_list(&form)?, visitor.audit_note(""));
    match saved_views::remove_view(state.database(), list, form.value("name"), &by).await? {
        true => Ok(Redirect::to(&state.link(&format!("/{}", list.code())))),
        false => Err(ConsoleFailure::missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_keeps_the_filters_of_its_list_and_nothing_else() {
        let form =
            "form_secret=s&name=x&list=reviews&status=failed&kind=&cursor=1&since=2h&tenant=a+b";
        let values = FieldValues::parse(form.as_bytes());
        let names = ["status", "kind", "since", "tenant"];
        assert_eq!(filters_of(&values, &names), "status=failed&since=2h&tenant=a+b");
    }
}
