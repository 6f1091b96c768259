//! The rights of a login, compared with those that the migrations grant to the roles of workers and
//! of operators.
//!
//! The tables are not read from the catalogue, where the role itself may have lost a right: after a
//! restore without privileges, for instance.

use sqlx::FromRow;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Privileges, and the relations on which a role has each.
pub type RoleRights = &'static [(&'static str, &'static [&'static str])];

/// Rights of `docmill_worker`.
pub const WORKER_RIGHTS: RoleRights = &[
    (
        "SELECT",
        &[
            "_sqlx_migrations",
            "attempt",
            "batch",
            "batch_request",
            "blocked_content",
            "certainty_level",
            "document",
            "document_password",
            "document_revision",
            "doomed_document",
            "draw_key",
            "drawn_document",
            "ended_hour",
            "erased_ingestion",
            "idempotency_key",
            "ingestion",
            "kind_replay",
            "maintenance_lease",
            "master_order",
            "master_supplier",
            "master_supplier_mark",
            "operator_action",
            "ops_failures",
            "ops_in_flight",
            "ops_review",
            "ops_throughput",
            "own_company",
            "pause",
            "quarantined_message",
            "spending",
            "spending_day",
            "supplier_memory",
            "tenant_retention",
            "webhook_delivery",
            "webhook_target",
            "worker",
        ],
    ),
    (
        "INSERT",
        &[
            "attempt",
            "batch",
            "batch_request",
            "certainty_level",
            "document",
            "drawn_document",
            "ended_hour",
            "ingestion",
            "maintenance_lease",
            "quarantined_message",
            "spending",
            "spending_day",
            "supplier_memory",
            "webhook_target",
            "worker",
        ],
    ),
    (
        "UPDATE",
        &[
            "attempt",
            "batch",
            "batch_request",
            "certainty_level",
            "document",
            "ingestion",
            "kind_replay",
            "maintenance_lease",
            "quarantined_message",
            "spending",
            "spending_day",
            "supplier_memory",
            "webhook_delivery",
            "webhook_target",
            "worker",
        ],
    ),
    (
        "DELETE",
        &[
            "attempt",
            "batch",
            "batch_request",
            "erased_ingestion",
            "idempotency_key",
            "maintenance_lease",
            "quarantined_message",
            "supplier_memory",
            "webhook_delivery",
            "webhook_target",
            "worker",
        ],
    ),
];

/// Rights of `docmill_operator`.
pub const OPERATOR_RIGHTS: RoleRights = &[
    (
        "SELECT",
        &[
            "_sqlx_migrations",
            "attempt",
            "audit_link",
            "batch",
            "batch_request",
            "blocked_content",
            "certainty_level",
            "console_session",
            "console_token",
            "console_user",
            "document",
            "document_as_before",
            "document_revision",
            "doomed_document",
            "drawn_document",
            "ended_hour",
            "erased_ingestion",
            "idempotency_key",
            "ingestion",
            "ingestion_as_before",
            "kind_replay",
            "maintenance_lease",
            "master_order",
            "master_supplier",
            "master_supplier_mark",
            "operator_action",
            "ops_failures",
            "ops_in_flight",
            "ops_review",
            "ops_throughput",
            "own_company",
            "pause",
            "quarantined_message",
            "review_draft",
            "review_later",
            "review_lease",
            "saved_view",
            "spending",
            "spending_day",
            "supplier_memory",
            "tenant_retention",
            "webhook_delivery",
            "webhook_target",
            "worker",
        ],
    ),
    (
        "INSERT",
        &[
            "attempt",
            "blocked_content",
            "console_session",
            "console_token",
            "console_user",
            "document",
            "document_password",
            "document_revision",
            "idempotency_key",
            "ingestion",
            "kind_replay",
            "master_order",
            "master_supplier",
            "master_supplier_mark",
            "operator_action",
            "own_company",
            "pause",
            "review_draft",
            "review_later",
            "review_lease",
            "saved_view",
            "supplier_memory",
            "webhook_target",
        ],
    ),
    (
        "UPDATE",
        &[
            "blocked_content",
            "console_session",
            "console_token",
            "console_user",
            "document",
            "idempotency_key",
            "ingestion",
            "kind_replay",
            "own_company",
            "pause",
            "review_draft",
            "review_later",
            "review_lease",
            "saved_view",
            "supplier_memory",
            "webhook_delivery",
            "webhook_target",
        ],
    ),
    (
        "DELETE",
        &[
            "blocked_content",
            "console_session",
            "document_password",
            "kind_replay",
            "master_order",
            "master_supplier",
            "master_supplier_mark",
            "own_company",
            "pause",
            "review_draft",
            "review_later",
            "review_lease",
            "saved_view",
            "supplier_memory",
        ],
    ),
];

/// A login and its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginRights {
    /// The roles of docmill that the login has.
    pub roles: Vec<String>,
    /// Rights of [`WORKER_RIGHTS`] that the login lacks, as `UPDATE ON ingestion`.
    pub lacking_as_worker: Vec<String>,
    /// The same of [`OPERATOR_RIGHTS`].
    pub lacking_as_operator: Vec<String>,
}

impl LoginRights {
    /// Whether the login has the role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|own| own == role)
    }
}

#[derive(FromRow)]
struct RightRow {
    roles: Vec<String>,
    lacking: Vec<String>,
}

/// A right to some columns counts: the migrations grant no more on some relations.
const ASK: &str = "
SELECT ARRAY(SELECT r.rolname::text FROM pg_roles r
        WHERE r.rolname IN ('docmill_worker', 'docmill_reader', 'docmill_migrator',
            'docmill_producer', 'docmill_operator')
          AND pg_has_role(current_user, r.oid, 'USAGE') ORDER BY r.rolname) AS roles,
    ARRAY(SELECT wanted.privilege || ' ON ' || wanted.relation
        FROM unnest($2::text[], $3::text[]) AS wanted (relation, privilege)
        LEFT JOIN pg_namespace n ON n.nspname = $1
        LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.relation
        WHERE NOT COALESCE(CASE WHEN wanted.privilege = 'DELETE'
            THEN has_table_privilege(c.oid, 'DELETE')
            ELSE has_any_column_privilege(c.oid, wanted.privilege) END, false)
        ORDER BY 1) AS lacking";

/// Compares the rights of our login with those of both roles.
///
/// # Errors
/// No answer from Postgres.
pub async fn inspect_rights(db: &Db) -> Result<LoginRights> {
    let worker = ask(db, WORKER_RIGHTS).await?;
    let operator = ask(db, OPERATOR_RIGHTS).await?;
    Ok(LoginRights {
        roles: worker.roles,
        lacking_as_worker: worker.lacking,
        lacking_as_operator: operator.lacking,
    })
}

async fn ask(db: &Db, rights: RoleRights) -> Result<RightRow> {
    let (mut relations, mut privileges) = (Vec::new(), Vec::new());
    for (privilege, of) in rights {
        relations.extend(of.iter().map(|relation| (*relation).to_owned()));
        privileges.extend(of.iter().map(|_| (*privilege).to_owned()));
    }
    sqlx::query_as(ASK)
        .bind(db.schema())
        .bind(relations)
        .bind(privileges)
        .fetch_one(db.pool())
        .await
        .context("looking at our rights")
}
