//! The verdict on a whole file: one document, several, or a question for a person.

use serde::{Deserialize, Serialize};

use crate::boundary::{Boundary, BoundaryVerdict, OpenPart};
use crate::signs::PageSigns;
use docmill_core::model::PageRange;

/// The verdict on a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketJudgement {
    /// The boundaries that are not joined with certainty, in the order of their pages.
    pub boundaries: Vec<Boundary>,
    /// Pages of the file.
    pub pages: u32,
}

impl PacketJudgement {
    /// Whether a boundary is neither a certain cut nor a certain join.
    pub fn is_doubtful(&self) -> bool {
        self.boundaries.iter().any(|it| it.verdict != BoundaryVerdict::Cut)
    }

    /// Whether at least one cut is certain.
    pub fn has_certain_cut(&self) -> bool {
        self.boundaries.iter().any(|it| it.verdict == BoundaryVerdict::Cut)
    }

    /// The documents, as far as they are certain or likely.
    pub fn parts(&self) -> Vec<PageRange> {
        let cuts = self.boundaries.iter().filter(|it| it.verdict != BoundaryVerdict::MaybeJoin);
        let cuts: Vec<u32> = cuts.map(|it| it.page).collect();
        PageRange { first: 1, last: self.pages }.cut_before(&cuts)
    }
}

/// Weighs the pages of a file, in their order. A blank page goes with the page before it.
pub fn judge_packet(pages: &[PageSigns]) -> PacketJudgement {
    let count = u32::try_from(pages.len()).unwrap_or(u32::MAX);
    let mut judgement = PacketJudgement { boundaries: Vec::new(), pages: count };
    let mut numbered = (1_u32..).zip(pages).skip_while(|(_, page)| page.blank);
    let Some((_, first)) = numbered.next() else { return judgement };
    let mut part = OpenPart::new(first);
    for (number, page) in numbered {
        if page.blank {
            part.add(page);
            continue;
        }
        let boundary = part.weigh(page, number);
        match boundary.verdict {
            BoundaryVerdict::Cut | BoundaryVerdict::MaybeCut => part = OpenPart::new(page),
            BoundaryVerdict::Join | BoundaryVerdict::MaybeJoin => part.add(page),
        }
        if boundary.verdict != BoundaryVerdict::Join {
            judgement.boundaries.push(boundary);
        }
    }
    judgement
}
