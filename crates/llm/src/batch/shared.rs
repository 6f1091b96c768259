//! Common parts of the vendors' batches: timeouts, the form of a question, the search in a list of
//! batches, and the reading of a line of answers.

use std::time::Duration;

use async_trait::async_trait;

use super::{BatchOutcome, BatchQuestion, FoundBatch, SoughtBatch, plain_word};
use crate::ModelReply;
use docmill_core::fault::{Error, Fault, Result};

/// Longest a file of questions may take on its way.
pub(crate) const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest another request may take.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Batches on a page of a vendor's list.
pub(crate) const PAGE: usize = 100;
/// Pages of a list that are read.
const PAGES: usize = 50;
/// Our clock and a vendor's differ by so much at most.
pub(crate) const CLOCK_SKEW: Duration = Duration::from_secs(600);

/// A file of questions, a line each.
pub(crate) fn join_lines(
    questions: &[BatchQuestion],
    write_line: impl Fn(&BatchQuestion) -> String,
) -> String {
    let mut file = String::new();
    for question in questions {
        file.push_str(&write_line(question));
        file.push('\n');
    }
    file
}

/// The end of a removal: for a missing file vendors answer 404 or 403, which are [`Fault::Denied`]
/// here. A key that may not remove a file may not use it either.
///
/// # Errors
/// It may be there still.
pub(crate) fn ignore_missing(removed: Result<()>) -> Result<()> {
    removed.or_else(|error| match error.fault {
        Fault::Denied | Fault::Missing => Ok(()),
        _ => Err(error),
    })
}

/// A page of a vendor's list, searched for one batch.
#[derive(Debug, Default)]
pub(crate) struct BatchListPage {
    /// Its handle, if it is on this page.
    pub(crate) found: Option<String>,
    /// A batch on it may be the one; only its end shows.
    pub(crate) is_undecided: bool,
    /// By what the next page is asked for; `None`: what follows is older than the batch, or nothing.
    pub(crate) next: Option<String>,
}

/// A vendor's list of batches, newest first, in pages.
#[async_trait]
pub(crate) trait PagedBatchList: Sync {
    /// Reads a page; the first one if `after` is `None`.
    ///
    /// # Errors
    /// The vendor does not answer, or refuses.
    async fn read_page(
        &self,
        sought: SoughtBatch<'_>,
        after: Option<&str>,
    ) -> Result<BatchListPage>;
}

/// Searches a vendor's list page by page.
///
/// # Errors
/// A page cannot be read, or the list has no end.
pub(crate) async fn search_pages(
    list: &impl PagedBatchList,
    sought: SoughtBatch<'_>,
) -> Result<FoundBatch> {
    let mut after: Option<String> = None;
    let mut is_undecided = false;
    for _page in 0..PAGES {
        let page = list.read_page(sought, after.as_deref()).await?;
        if let Some(handle) = page.found {
            return Ok(FoundBatch::Here(handle));
        }
        is_undecided |= page.is_undecided;
        match page.next {
            Some(next) => after = Some(next),
            None if is_undecided => return Ok(FoundBatch::Undecided),
            None => return Ok(FoundBatch::Nowhere),
        }
    }
    Err(Error::transient("the vendor's list of batches has no end"))
}

/// The end of a question: its reply, or the vendor's word for why there is none.
pub(crate) fn settle_line(
    reply: Option<ModelReply>,
    told: Option<&str>,
    otherwise: &str,
) -> BatchOutcome {
    match reply {
        Some(reply) => BatchOutcome::Answered(reply.into()),
        None => BatchOutcome::Unanswered(plain_word(told, otherwise)),
    }
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::*;

    /// Pages of which this one has the batch, if one has, and that may go on for ever.
    struct Pages {
        here: Option<usize>,
        undecided: bool,
        count: usize,
    }

    #[async_trait]
    impl PagedBatchList for Pages {
        async fn read_page(
            &self,
            _sought: SoughtBatch<'_>,
            after: Option<&str>,
        ) -> Result<BatchListPage> {
            let page = after.map_or(0, |after| after.parse().unwrap());
            Ok(BatchListPage {
                found: (self.here == Some(page)).then(|| "handle".to_owned()),
                is_undecided: self.undecided && page == 0,
                next: (page + 1 < self.count).then(|| (page + 1).to_string()),
            })
        }
    }

    #[tokio::test]
    async fn a_list_is_searched_to_its_end_and_one_without_an_end_is_an_error() {
        let since = OffsetDateTime::UNIX_EPOCH;
        let sought = SoughtBatch { name: "a", requests: 1, since, others: &[] };
        let here = FoundBatch::Here("handle".to_owned());
        #[rustfmt::skip]
        let table = [
            (Pages { here: Some(1), undecided: false, count: 3 }, Some(here.clone())),
            (Pages { here: Some(2), undecided: true,  count: 3 }, Some(here)),
            (Pages { here: None,    undecided: true,  count: 3 }, Some(FoundBatch::Undecided)),
            (Pages { here: None,    undecided: false, count: 3 }, Some(FoundBatch::Nowhere)),
            (Pages { here: None,    undecided: false, count: usize::MAX }, None),
        ];
        for (pages, expected) in table {
            assert_eq!(search_pages(&pages, sought).await.ok(), expected);
        }
    }
}
