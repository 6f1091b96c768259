//! Looking: what an id means, how one ingestion stands, which there are.

use serde::Serialize;
use uuid::Uuid;

use crate::db::Db;
use crate::db::reports::{self, AttemptView, Filter, IngestionView};
use crate::fault::{Error, Fault, Result};
use crate::model::IngestionId;

/// Fewer digits of a SHA-256 would name too many documents by accident.
const SHORTEST_PREFIX: usize = 6;

/// One ingestion with its history.
#[derive(Debug, Clone, Serialize)]
pub struct Story {
    /// How it stands.
    #[serde(flatten)]
    pub ingestion: IngestionView,
    /// Its attempts, oldest first.
    pub history: Vec<AttemptView>,
}

/// What an operator's id means: an ingestion id, a document id (all its ingestions, newest first)
/// or the beginning of a document's SHA-256.
///
/// # Errors
/// `Missing` if nothing has it, `Rejected` if it is none of the three; no answer from Postgres.
pub async fn find(db: &Db, id: &str) -> Result<Vec<IngestionId>> {
    let found = match Uuid::parse_str(id) {
        Ok(uuid) => reports::find_by_id(db, uuid).await?,
        Err(_) => reports::find_by_sha256(db, &sha256_prefix(id)?).await?,
    };
    if found.is_empty() {
        let text = format!("no ingestion and no document has `{id}`; `docmill list` shows them");
        return Err(Error::new(Fault::Missing, text));
    }
    Ok(found)
}

fn sha256_prefix(id: &str) -> Result<String> {
    let hex = id.bytes().all(|b| b.is_ascii_hexdigit());
    if hex && (SHORTEST_PREFIX..=64).contains(&id.len()) {
        return Ok(id.to_ascii_lowercase());
    }
    Err(Error::new(
        Fault::Rejected,
        format!(
            "`{id}` is neither the id of an ingestion or document (a UUID) nor the beginning of \
             a SHA-256 (at least {SHORTEST_PREFIX} hex digits)"
        ),
    ))
}

/// How the ingestions stand that `id` means, newest first, with their attempts.
///
/// # Errors
/// As [`find`].
pub async fn status(db: &Db, id: &str) -> Result<Vec<Story>> {
    let ids = find(db, id).await?;
    let mut stories = Vec::new();
    for ingestion in views(db, ids).await? {
        let history = reports::attempts(db, ingestion.ingestion_id).await?;
        stories.push(Story { ingestion, history });
    }
    Ok(stories)
}

/// How these ingestions stand, newest first.
///
/// # Errors
/// No answer from Postgres.
pub async fn views(db: &Db, ids: Vec<IngestionId>) -> Result<Vec<IngestionView>> {
    let limit = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    reports::list(db, &Filter { ids: Some(ids), limit, ..Filter::default() }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_id_is_refused_before_postgres_is_asked() {
        for (id, prefix) in [
            ("ABCDEF", Some("abcdef")),
            ("abc", None),
            ("invoice.pdf", None),
            ("", None),
            ("%%%%%%", None),
        ] {
            assert_eq!(sha256_prefix(id).ok().as_deref(), prefix, "{id}");
        }
    }
}
