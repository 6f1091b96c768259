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

    /// The pages after undecided boundaries.
    pub fn open_boundaries(&self) -> Vec<u32> {
        let open = self.boundaries.iter().filter(|it| it.verdict != BoundaryVerdict::Cut);
        open.map(|it| it.page).collect()
    }

    /// Makes the verdict on the boundary before `page` certain if a second source agrees: the page
    /// `begins` a document or continues one.
    pub fn confirm(&mut self, page: u32, begins: bool) {
        for boundary in self.boundaries.iter_mut().filter(|it| it.page == page) {
            boundary.verdict = match (boundary.verdict, begins) {
                (BoundaryVerdict::MaybeCut, true) => BoundaryVerdict::Cut,
                (BoundaryVerdict::MaybeJoin, false) => BoundaryVerdict::Join,
                (verdict, _) => verdict,
            };
        }
        self.boundaries.retain(|it| it.verdict != BoundaryVerdict::Join);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_source_that_contradicts_the_evidence_decides_nothing() {
        use BoundaryVerdict::{Cut, MaybeCut, MaybeJoin};
        for (verdict, begins, then) in [
            (MaybeCut, true, Some(Cut)),
            (MaybeCut, false, Some(MaybeCut)),
            (MaybeJoin, false, None),
            (MaybeJoin, true, Some(MaybeJoin)),
            (Cut, false, Some(Cut)),
        ] {
            let boundary = |page| Boundary { page, verdict, signs: Vec::new() };
            let mut judged =
                PacketJudgement { boundaries: vec![boundary(2), boundary(3)], pages: 3 };
            judged.confirm(2, begins);
            let now =
                |page| judged.boundaries.iter().find(|it| it.page == page).map(|it| it.verdict);
            assert_eq!((now(2), now(3)), (then, Some(verdict)), "{verdict:?} {begins}");
        }
    }
}
