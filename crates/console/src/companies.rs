//! Own companies: the page, and the operations for programs.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::{Extension, Json};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::ConsoleVisitor;
use super::api_forms::{JsonBody, tagged_json};
use super::failure::ConsoleFailure;
use super::fields::{FieldValues, PostedForm, QueryFields};
use super::ingestion::require_confirmation;
use super::layout::{foreign_name, form_secret, frame_page};
use super::state::ConsoleState;
use docmill_core::config::WebRole;
use docmill_operations::companies::{self, CompanyChangeError, OwnCompany};

/// Fields of a company that hold several values, with their labels.
const LISTS: [(&str, &str); 4] = [
    ("other_names", "Other names, one a line"),
    ("vat_ids", "VAT identifiers, one a line"),
    ("accounts", "Accounts (IBAN), one a line"),
    ("addresses", "Addresses, one a line, with a comma before the town"),
];

/// A company of a tenant.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CompanyEntry {
    /// Full name, with the legal form.
    name: String,
    other_names: Vec<String>,
    vat_ids: Vec<String>,
    /// IBANs.
    accounts: Vec<String>,
    addresses: Vec<String>,
}

impl CompanyEntry {
    fn into_company(self, tenant: Option<String>) -> OwnCompany {
        let Self { name, other_names, vat_ids, accounts, addresses } = self;
        OwnCompany { tenant, name, other_names, vat_ids, accounts, addresses }
    }

    fn of_company(company: OwnCompany) -> Self {
        let OwnCompany { tenant: _, name, other_names, vat_ids, accounts, addresses } = company;
        Self { name, other_names, vat_ids, accounts, addresses }
    }
}

/// All companies of a tenant.
#[derive(Serialize, ToSchema)]
pub(super) struct CompanyList {
    /// Whose; null: those of documents without a tenant.
    tenant: Option<String>,
    items: Vec<CompanyEntry>,
}

/// The companies that replace all of a tenant's.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CompaniesRequest {
    /// Whose; left out: the token's own, or documents without a tenant.
    tenant: Option<String>,
    companies: Vec<CompanyEntry>,
    why: String,
}

/// The tenant that is meant: a visitor of one tenant means no other.
pub(super) fn meant_tenant(
    visitor: &ConsoleVisitor,
    named: Option<&str>,
) -> Result<Option<String>, ConsoleFailure> {
    let named = named.filter(|name| !name.is_empty());
    match (&visitor.tenant, named) {
        (None, named) => Ok(named.map(str::to_owned)),
        (Some(own), None) => Ok(Some(own.clone())),
        (Some(own), Some(named)) if own == named => Ok(Some(own.clone())),
        (Some(_), Some(_)) => Err(ConsoleFailure::forbidden("Your token is for one tenant.")),
    }
}

fn failure_of(error: CompanyChangeError) -> ConsoleFailure {
    match error {
        CompanyChangeError::Refused(refused) => ConsoleFailure::refused(refused.to_string()),
        CompanyChangeError::Fault(fault) => fault.into(),
    }
}

/// The own companies of a tenant.
#[utoipa::path(
    get,
    path = "/own-companies",
    operation_id = "listOwnCompanies",
    params((
        "tenant" = Option<String>, Query, pattern = "\\S", description = "left out: the token's own",
    )),
    responses((status = 200, description = "Done.", body = CompanyList))
)]
pub(super) async fn get_companies(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let tenant = meant_tenant(&visitor, wanted.get("tenant"))?;
    tagged_json(&headers, &read_list(&state, tenant).await?)
}

async fn read_list(
    state: &ConsoleState,
    tenant: Option<String>,
) -> Result<CompanyList, ConsoleFailure> {
    let own = companies::list_companies(state.database(), tenant.as_deref()).await?;
    Ok(CompanyList { tenant, items: own.into_iter().map(CompanyEntry::of_company).collect() })
}

/// Replaces all own companies of a tenant.
#[utoipa::path(
    put,
    path = "/own-companies",
    operation_id = "replaceOwnCompanies",
    request_body = CompaniesRequest,
    responses((status = 200, description = "Done.", body = CompanyList))
)]
pub(super) async fn put_companies(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    JsonBody(request): JsonBody<CompaniesRequest>,
) -> Result<Response, ConsoleFailure> {
    let tenant = meant_tenant(&visitor, request.tenant.as_deref())?;
    let own = request.companies.into_iter().map(|entry| entry.into_company(tenant.clone()));
    let own: Vec<OwnCompany> = own.collect();
    let by = visitor.audit_note(&request.why);
    let changed = companies::replace_companies(state.database(), tenant.as_deref(), &own, &by);
    changed.await.map_err(failure_of)?;
    Ok(Json(read_list(&state, tenant).await?).into_response())
}

/// `/companies`.
pub(super) async fn show_companies(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
) -> Result<Html<String>, ConsoleFailure> {
    let own = match &visitor.tenant {
        Some(tenant) => companies::list_companies(state.database(), Some(tenant)).await?,
        None => companies::list_all_companies(state.database()).await?,
    };
    let operates = visitor.role >= WebRole::Operator;
    let body = html! {
        p { "An own company is never the supplier of a document, and always a sign of the buyer." }
        @if own.is_empty() { p { "No company is known." } } @else {
            div.wide { table {
                thead { tr { th { "tenant" } th { "name" } th { "other names" } th { "VAT identifiers" }
                    th { "accounts" } th { "addresses" } th { "remove" } } }
                tbody { @for company in &own { tr {
                    td { (foreign_name(company.tenant.as_deref().unwrap_or("–"))) }
                    td { (foreign_name(&company.name)) }
                    @for values in [&company.other_names, &company.vat_ids, &company.accounts, &company.addresses] {
                        td { @for value in values { (foreign_name(value)) br; } }
                    }
                    td { @if operates { (remove_form(&state, &visitor, company)) } @else { "–" } }
                } } }
            } }
        }
        @if operates { (company_form(&state, &visitor)) }
    };
    Ok(frame_page(&state, Some(&visitor), "Own companies", &body))
}

fn company_form(state: &ConsoleState, visitor: &ConsoleVisitor) -> Markup {
    html! {
        h2 { "Add a company, or replace the one of its name" }
        form method="post" action=(state.link("/companies")) {
            (form_secret(visitor))
            @if visitor.tenant.is_none() {
                div.field { label for="tenant" { "Tenant; empty for documents without one" } input id="tenant" name="tenant"; }
            }
            div.field { label for="name" { "Full name, with the legal form" } input id="name" name="name" required; }
            @for (field, label) in LISTS {
                div.field { label for=(field) { (label) } textarea id=(field) name=(field) rows="2" {} }
            }
            div.field { label for="why" { "Why" } input id="why" name="why"; }
            button.first { "Save" }
        }
    }
}

fn remove_form(state: &ConsoleState, visitor: &ConsoleVisitor, company: &OwnCompany) -> Markup {
    html! {
        form method="post" action=(state.link("/companies/remove")) {
            (form_secret(visitor))
            input type="hidden" name="tenant" value=(company.tenant.as_deref().unwrap_or_default());
            input type="hidden" name="name" value=(company.name);
            label { input type="checkbox" name="confirm" value="yes" required; " Remove it" }
            button { "Remove" }
        }
    }
}

/// The lines of a field that are not blank.
fn read_lines(form: &FieldValues, field: &str) -> Vec<String> {
    let lines = form.get(field).unwrap_or_default().lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// `POST /companies`.
pub(super) async fn post_company(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    let company = OwnCompany {
        tenant: meant_tenant(&visitor, form.get("tenant"))?,
        name: form.get("name").unwrap_or_default().trim().to_owned(),
        other_names: read_lines(&form, "other_names"),
        vat_ids: read_lines(&form, "vat_ids"),
        accounts: read_lines(&form, "accounts"),
        addresses: read_lines(&form, "addresses"),
    };
    let by = visitor.audit_note(form.get("why").unwrap_or_default());
    companies::put_company(state.database(), &company, &by).await.map_err(failure_of)?;
    Ok(Redirect::to(&state.link("/companies")))
}

/// `POST /companies/remove`.
pub(super) async fn post_removal(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    PostedForm(form): PostedForm,
) -> Result<Redirect, ConsoleFailure> {
    require_confirmation(&form)?;
    let tenant = meant_tenant(&visitor, form.get("tenant"))?;
    let name = form.get("name").unwrap_or_default();
    let by = visitor.audit_note("");
    if !companies::remove_company(state.database(), tenant.as_deref(), name, &by).await? {
        return Err(ConsoleFailure::missing());
    }
    Ok(Redirect::to(&state.link("/companies")))
}
