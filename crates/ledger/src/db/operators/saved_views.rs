//! Filters of lists that people save under names, each for its owner alone.

use crate::db::operators::AuditNote;
use crate::db::{Db, SqlErrorContext};
use docmill_core::fault::Result;

/// Views that one person keeps of one list. Two that are saved at the same moment may be one more.
pub const MAX_VIEWS: i64 = 20;
/// Characters of a view's name.
pub const MAX_VIEW_NAME_CHARS: usize = 60;
/// Bytes of a view's filters.
pub const MAX_VIEW_BYTES: usize = 2_000;

/// A list whose filters can be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewedList {
    /// Ingestions.
    Ingestions,
    /// Documents that need review.
    Reviews,
}

impl ViewedList {
    /// The word in the row and in addresses.
    pub fn code(self) -> &'static str {
        match self {
            Self::Ingestions => "ingestions",
            Self::Reviews => "reviews",
        }
    }

    /// The inverse of [`ViewedList::code`].
    pub fn from_code(code: &str) -> Option<Self> {
        [Self::Ingestions, Self::Reviews].into_iter().find(|list| list.code() == code)
    }
}

/// A saved view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedView {
    /// Its name.
    pub name: String,
    /// The filters, as the address of the list has them.
    pub query: String,
}

/// The views of a list that a person saved, by name.
///
/// # Errors
/// No answer from Postgres.
pub async fn list_views(db: &Db, owner: &str, list: ViewedList) -> Result<Vec<SavedView>> {
    sqlx::query_as!(
        SavedView,
        "SELECT name, query FROM saved_view WHERE owner = $1 AND list = $2 ORDER BY name",
        owner,
        list.code(),
    )
    .fetch_all(db.pool())
    .await
    .context("reading saved views")
}

/// Saves a view of the person in the note, or replaces the one of the same name; `false` if the person
/// has [`MAX_VIEWS`] others.
///
/// # Errors
/// No answer from Postgres, or a name or query of another length than the schema allows.
pub async fn save_view(
    db: &Db,
    list: ViewedList,
    view: &SavedView,
    by: &AuditNote,
) -> Result<bool> {
    let done = sqlx::query!(
        "WITH saved AS (
             INSERT INTO saved_view (owner, list, name, query)
             SELECT $1, $2, $3, $4
             WHERE (SELECT count(*) FROM saved_view v
                 WHERE v.owner = $1 AND v.list = $2 AND v.name <> $3) < $5
             ON CONFLICT (owner, list, name) DO UPDATE SET
                 query = excluded.query, saved_at = docmill_now()
             RETURNING list, name, query)
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $1, 'views', 'view:' || s.list || ':' || s.name, $6,
             jsonb_build_object('set', jsonb_build_object('query', s.query)) FROM saved s",
        by.operator,
        list.code(),
        view.name,
        view.query,
        MAX_VIEWS,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("saving a view")?;
    Ok(done.rows_affected() > 0)
}

/// Removes a view of the person in the note; `false` if there is none.
///
/// # Errors
/// No answer from Postgres.
pub async fn remove_view(db: &Db, list: ViewedList, name: &str, by: &AuditNote) -> Result<bool> {
    let done = sqlx::query!(
        "WITH gone AS (
             DELETE FROM saved_view WHERE owner = $1 AND list = $2 AND name = $3
             RETURNING list, name, query)
         INSERT INTO operator_action (operator, action, target, why, before)
         SELECT $1, 'views', 'view:' || g.list || ':' || g.name, $4,
             jsonb_build_object('query', g.query) FROM gone g",
        by.operator,
        list.code(),
        name,
        by.why,
    )
    .execute(db.pool())
    .await
    .context("removing a view")?;
    Ok(done.rows_affected() > 0)
}
