//! Which pages with a text layer are read from their drawing as well.
//!
//! They are drawn by lot, so that a kind of forgery that the comparison of shapes does not find
//! shows in a metric. The key of the lot stays in this process: no document can choose to be left
//! out. The same page of the same document is drawn by a process each time or never.

use std::hash::{BuildHasher as _, RandomState};

/// The lot.
#[derive(Debug, Default)]
pub struct SecondLooks {
    share: f64,
    key: RandomState,
}

impl SecondLooks {
    /// Draws this share of pages, 0..1.
    pub fn of_share(share: f32) -> Self {
        Self { share: f64::from(share), key: RandomState::new() }
    }

    /// Whether a page is drawn; `sha256` is that of its document.
    #[expect(clippy::cast_precision_loss, reason = "a lot of 2^53 tickets is enough")]
    pub(crate) fn is_drawn(&self, sha256: &str, page: u32) -> bool {
        let ticket = self.key.hash_one((sha256, page)) >> 11;
        (ticket as f64) < self.share * (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_drawn_each_time_or_never_by_a_key_that_no_document_has() {
        let documents: Vec<String> = (0..4_000).map(|n| format!("{n:064x}")).collect();
        for (share, least, most) in [(0.0, 0, 0), (0.25, 800, 1_200), (1.0, 4_000, 4_000)] {
            let (one, other) = (SecondLooks::of_share(share), SecondLooks::of_share(share));
            let [drawn, again, elsewhere] = [&one, &one, &other].map(|lot| -> Vec<&String> {
                documents.iter().filter(|sha256| lot.is_drawn(sha256, 1)).collect()
            });
            assert!((least..=most).contains(&drawn.len()), "{share}: {}", drawn.len());
            assert_eq!(drawn, again);
            assert!(drawn != elsewhere || share.fract() == 0.0, "{share}");
        }
    }
}
