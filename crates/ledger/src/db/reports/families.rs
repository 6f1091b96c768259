//! Documents found in others: what an ingestion was found in, and what was found in its document.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;
use docmill_core::model::IngestionId;

/// A document found in another, or the one that it was found in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FamilyMember {
    /// Id of its ingestion.
    pub ingestion_id: Uuid,
    /// Id of the document.
    pub document_id: Uuid,
    /// Its place among its parent's children, from 0; `None`: it was handed in itself.
    pub position: Option<i32>,
    /// Its name in its parent, or with its sender.
    pub name: Option<String>,
    /// Current status of its ingestion.
    pub status: String,
    /// Why it ended other than completed.
    pub reason: Option<String>,
    /// Kind of document, if it is known.
    pub kind: Option<String>,
    /// Whether the document waits for a reviewer.
    pub needs_human_review: bool,
    /// Of a child cut out of its parent: its first page there, from 1.
    pub first_page: Option<i32>,
    /// Of a child cut out of its parent: its last page there.
    pub last_page: Option<i32>,
    /// How many documents were found in it.
    pub children: Option<i32>,
}

/// The relatives of an ingestion's document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentFamily {
    /// The document that it was found in.
    pub parent: Option<FamilyMember>,
    /// The documents found in it, in their order.
    pub children: Vec<FamilyMember>,
    /// How many ingestions below it, at any depth, have not ended.
    pub open: i64,
}

/// The parent of an ingestion, and its children.
///
/// # Errors
/// No answer from Postgres.
pub async fn load_family(db: &Db, id: IngestionId) -> Result<DocumentFamily> {
    let mut members = list_members(db, id).await?;
    let parent = members.iter().position(|(is_parent, _)| *is_parent);
    let parent = parent.map(|at| members.remove(at).1);
    let children: Vec<FamilyMember> = members.into_iter().map(|(_, child)| child).collect();
    let open = if children.is_empty() { 0 } else { count_open(db, id).await? };
    Ok(DocumentFamily { parent, children, open })
}

/// Each with whether it is the parent.
async fn list_members(db: &Db, id: IngestionId) -> Result<Vec<(bool, FamilyMember)>> {
    let rows = sqlx::query!(
        r#"SELECT m.is_parent AS "is_parent!", i.id, i.document_id, i.position, d.original_name,
            i.status, i.reason, i.kind, d.needs_human_review, d.first_page, d.last_page, i.children
        FROM (
            SELECT c.id, false AS is_parent FROM ingestion c WHERE c.parent_id = $1
            UNION ALL
            SELECT p.parent_id, true FROM ingestion p WHERE p.id = $1 AND p.parent_id IS NOT NULL
        ) AS m
        JOIN ingestion i ON i.id = m.id JOIN document d ON d.id = i.document_id
        ORDER BY i.position"#,
        id.0,
    )
    .fetch_all(db.pool())
    .await
    .context("reading a family of documents")?;
    let members = rows.into_iter().map(|row| {
        let member = FamilyMember {
            ingestion_id: row.id,
            document_id: row.document_id,
            position: row.position,
            name: row.original_name,
            status: row.status,
            reason: row.reason,
            kind: row.kind,
            needs_human_review: row.needs_human_review,
            first_page: row.first_page,
            last_page: row.last_page,
            children: row.children,
        };
        (row.is_parent, member)
    });
    Ok(members.collect())
}

async fn count_open(db: &Db, id: IngestionId) -> Result<i64> {
    sqlx::query_scalar!(
        r#"WITH RECURSIVE below AS (
            SELECT c.id, c.status, c.children FROM ingestion c WHERE c.parent_id = $1
            UNION ALL
            SELECT c.id, c.status, c.children
            FROM below b JOIN ingestion c ON c.parent_id = b.id WHERE b.children > 0
        )
        SELECT count(*) AS "open!" FROM below WHERE status = 'in-progress'"#,
        id.0,
    )
    .fetch_one(db.pool())
    .await
    .context("counting what of a family has not ended")
}
