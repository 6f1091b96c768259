//! Marks around words that were written by hand.

use docmill_core::model::{BoundingBox, PageMark, PageMarkKind};

/// Words by hand that follow each other on a line, as marks.
#[derive(Default)]
pub(super) struct HandwrittenRuns {
    pub(super) found: Vec<PageMark>,
    is_open: bool,
}

impl HandwrittenRuns {
    /// The next word of the line.
    pub(super) fn add_word(&mut self, area: BoundingBox, by_hand: bool) {
        let has_room = self.found.len() < PageMark::MAX_PER_PAGE;
        let run = self.found.last_mut().filter(|_| self.is_open);
        self.is_open = by_hand;
        match run {
            _ if !by_hand => {}
            Some(run) => run.bounding_box = run.bounding_box.union(area),
            None if has_room => {
                self.found.push(PageMark { kind: PageMarkKind::Handwriting, bounding_box: area });
            }
            None => self.is_open = false,
        }
    }

    /// A run does not go on in the next line.
    pub(super) fn end_line(&mut self) {
        self.is_open = false;
    }
}
