//! Master data for programs: suppliers and orders of the ERP.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::access::ConsoleVisitor;
use super::api_forms::{JsonBody, tagged_json};
use super::companies::meant_tenant;
use super::failure::ConsoleFailure;
use super::fields::QueryFields;
use super::state::ConsoleState;
use docmill_operations::master_data::{
    self, MasterChangeError, MasterOrder, MasterSupplier, count_master_data,
};

/// Bytes of a body.
pub(super) const MAX_BODY_BYTES: usize = master_data::MAX_FILE_BYTES;

/// A supplier of the ERP.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SupplierEntry {
    /// Its number in the ERP.
    number: String,
    name: String,
    #[serde(default)]
    vat_ids: Vec<String>,
    #[serde(default)]
    accounts: Vec<String>,
}

/// A purchase order of the ERP.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderEntry {
    number: String,
    /// The number of its supplier in the ERP.
    #[serde(default)]
    supplier: Option<String>,
    /// A decimal number.
    #[serde(default)]
    amount: Option<String>,
    /// ISO 4217.
    #[serde(default)]
    currency: Option<String>,
}

/// The suppliers that replace all of a tenant's.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SuppliersRequest {
    /// Whose; left out: the token's own, or documents without a tenant.
    tenant: Option<String>,
    suppliers: Vec<SupplierEntry>,
    why: String,
}

/// The orders that replace all of a tenant's.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct OrdersRequest {
    /// Whose; left out: the token's own, or documents without a tenant.
    tenant: Option<String>,
    orders: Vec<OrderEntry>,
    why: String,
}

/// How many rows a tenant has.
#[derive(Serialize, ToSchema)]
pub(super) struct MasterDataCounts {
    /// Whose; null: those of documents without a tenant.
    tenant: Option<String>,
    suppliers: i64,
    orders: i64,
}

fn failure_of(error: MasterChangeError) -> ConsoleFailure {
    match error {
        MasterChangeError::Refused(refused) => ConsoleFailure::refused(refused.to_string()),
        MasterChangeError::Fault(fault) => fault.into(),
    }
}

async fn counts_of(
    state: &ConsoleState,
    tenant: Option<String>,
) -> Result<MasterDataCounts, ConsoleFailure> {
    let counts = count_master_data(state.database(), tenant.as_deref()).await?;
    Ok(MasterDataCounts { tenant, suppliers: counts.suppliers, orders: counts.orders })
}

/// How many suppliers and orders of the ERP are known.
#[utoipa::path(
    get,
    path = "/master-data",
    operation_id = "countMasterData",
    params((
        "tenant" = Option<String>, Query, pattern = "\\S", description = "left out: the token's own",
    )),
    responses((status = 200, description = "Done.", body = MasterDataCounts))
)]
pub(super) async fn get_counts(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    QueryFields(wanted): QueryFields,
    headers: HeaderMap,
) -> Result<Response, ConsoleFailure> {
    let tenant = meant_tenant(&visitor, wanted.get("tenant"))?;
    tagged_json(&headers, &counts_of(&state, tenant).await?)
}

/// Replaces all suppliers of a tenant's ERP.
#[utoipa::path(
    put,
    path = "/master-data/suppliers",
    operation_id = "replaceSuppliers",
    request_body = SuppliersRequest,
    responses((status = 200, description = "Done.", body = MasterDataCounts))
)]
pub(super) async fn put_suppliers(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    JsonBody(request): JsonBody<SuppliersRequest>,
) -> Result<Response, ConsoleFailure> {
    let tenant = meant_tenant(&visitor, request.tenant.as_deref())?;
    let rows = request.suppliers.into_iter().map(|entry| {
        let SupplierEntry { number, name, vat_ids, accounts } = entry;
        MasterSupplier { number, name, vat_ids, accounts }
    });
    let rows = master_data::place_rows(rows.collect());
    let by = visitor.audit_note(&request.why);
    let replaced = master_data::replace_suppliers(state.database(), tenant.as_deref(), rows, &by);
    replaced.await.map_err(failure_of)?;
    Ok(Json(counts_of(&state, tenant).await?).into_response())
}

/// Replaces all purchase orders of a tenant's ERP.
#[utoipa::path(
    put,
    path = "/master-data/orders",
    operation_id = "replaceOrders",
    request_body = OrdersRequest,
    responses((status = 200, description = "Done.", body = MasterDataCounts))
)]
pub(super) async fn put_orders(
    State(state): State<ConsoleState>,
    Extension(visitor): Extension<ConsoleVisitor>,
    JsonBody(request): JsonBody<OrdersRequest>,
) -> Result<Response, ConsoleFailure> {
    let tenant = meant_tenant(&visitor, request.tenant.as_deref())?;
    let rows = request.orders.into_iter().map(|entry| {
        let OrderEntry { number, supplier, amount, currency } = entry;
        MasterOrder { number, supplier, amount, currency }
    });
    let rows = master_data::place_rows(rows.collect());
    let by = visitor.audit_note(&request.why);
    let replaced = master_data::replace_orders(state.database(), tenant.as_deref(), rows, &by);
    replaced.await.map_err(failure_of)?;
    Ok(Json(counts_of(&state, tenant).await?).into_response())
}
