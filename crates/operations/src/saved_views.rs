//! Saved views of lists, for the pages.

pub use docmill_ledger::db::operators::saved_views::{
    MAX_VIEW_BYTES, MAX_VIEW_NAME_CHARS, MAX_VIEWS, SavedView, ViewedList, list_views, remove_view,
    save_view,
};
