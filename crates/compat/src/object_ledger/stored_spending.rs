//! Total spending over a store without a database, of all days and processes.

use futures::{StreamExt as _, TryStreamExt as _};

use super::{AT_ONCE, DailySpending, OWN_FOLDER, PAGE, read_record};
use docmill_core::fault::Result;
use docmill_storage::{ObjectStore, keys};

/// The booked spending of all processes over a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredSpending {
    /// Billionths of the currency.
    pub cost_nanos: u64,
    /// Calls, or readings of pages, whose price was not configured: not in the amount.
    pub unpriced_calls: u64,
}

/// Sums up the books of all days; `store` is the bucket or workspace.
///
/// # Errors
/// Store errors.
pub(crate) async fn sum_stored_spending(store: &dyn ObjectStore) -> Result<StoredSpending> {
    let start = format!("{OWN_FOLDER}{}", keys::SPENDING);
    let (mut books, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
    loop {
        let page = store.list(&start, after.as_deref(), PAGE).await?;
        after = page.last().map(|entry| entry.key.clone());
        let is_last = page.len() < PAGE;
        books.extend(page.into_iter().map(|entry| entry.key));
        if is_last {
            break;
        }
    }
    let reads =
        books.into_iter().map(|key| async move { read_record::<DailySpending>(store, &key).await });
    let mut reads = futures::stream::iter(reads).buffer_unordered(AT_ONCE);
    let mut sum = StoredSpending::default();
    while let Some(book) = reads.try_next().await? {
        let Some((book, _)) = book else { continue };
        sum.cost_nanos = sum.cost_nanos.saturating_add(book.cost_nanos);
        sum.unpriced_calls = sum.unpriced_calls.saturating_add(book.unpriced_calls);
    }
    Ok(sum)
}
