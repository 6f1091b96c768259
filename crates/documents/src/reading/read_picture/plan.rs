//! Which readings a page gets, as a table that is chosen once, from its assessment:
//!
//! | readers | first | then, while the best reading falls short |
//! |---|---|---|
//! | main alone | main, repaired | main, the other picture; main, sharpened |
//! | both | robust, preferred | main, repaired (if in doubt); robust, other; whole photograph |
//! | robust alone | robust, preferred | robust, other; whole photograph |
//!
//! The robust reader prefers the picture of the file, or the flat sheet in its photograph: the
//! network needs no preprocessing, and binarising repairs remove the anti-aliased edges it relies
//! on. Of a fax, whose letters are dots, and of a page full of specks it prefers the repaired
//! picture.

use crate::quality::PageAssessment;

/// The readers that can read the page's languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EngineSet {
    MainOnly,
    MainAndRobust,
    RobustOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassEngine {
    Main,
    Robust,
}

/// Picture of a page that a pass reads. Of some there may be none; their pass is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassPicture {
    /// Repaired as its defects call for; the file's picture if they call for nothing.
    RepairedOrOriginal,
    /// Repaired as its defects call for.
    Repaired,
    /// The sheet in its photograph, cut out and made flat; the file's picture if there is no sheet.
    SheetOrOriginal,
    /// The same, if a repaired picture was read before.
    Unrepaired,
    /// The file's picture, if the best reading is of a sheet that was cut out of it: print at the
    /// edge of the sheet may have been taken for the table.
    WholePhotograph,
    /// The file's picture if a repaired one was read, because a repair may do harm. Otherwise the
    /// picture repaired for its suspected defects too.
    Opposite,
    /// The enlarged picture of an earlier pass, sharpened.
    Sharpened,
}

/// When a further pass is worth its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PassCondition {
    /// The best reading falls short of a good one.
    FallsShort,
    /// The best reading is doubtful. For the main reader, whose mistakes differ from the robust
    /// one's.
    InDoubt,
}

/// One reading of one picture of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadingPass {
    pub engine: PassEngine,
    pub picture: PassPicture,
    pub condition: PassCondition,
}

impl ReadingPass {
    const fn new(engine: PassEngine, picture: PassPicture) -> Self {
        Self { engine, picture, condition: PassCondition::FallsShort }
    }

    const fn in_doubt(self) -> Self {
        Self { condition: PassCondition::InDoubt, ..self }
    }
}

/// The passes over one page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadingPlan {
    /// Is run in any case.
    pub first: ReadingPass,
    /// Each is run if its condition holds by then.
    pub then: Vec<ReadingPass>,
}

impl ReadingPlan {
    /// For a page of which `found` is known.
    pub(super) fn choose(found: &PageAssessment, engines: EngineSet) -> Self {
        use PassEngine::{Main, Robust};
        let prefers_repaired = found.bilevel || found.is_speckled();
        let (preferred, other) = match prefers_repaired {
            true => (PassPicture::RepairedOrOriginal, PassPicture::Unrepaired),
            false => (PassPicture::SheetOrOriginal, PassPicture::Repaired),
        };
        let main = ReadingPass::new(Main, PassPicture::RepairedOrOriginal);
        let robust = ReadingPass::new(Robust, preferred);
        let other = ReadingPass::new(Robust, other);
        let whole = ReadingPass::new(Robust, PassPicture::WholePhotograph);
        let (first, then) = match engines {
            EngineSet::MainOnly => {
                let opposite = ReadingPass::new(Main, PassPicture::Opposite);
                (main, vec![opposite, ReadingPass::new(Main, PassPicture::Sharpened)])
            }
            EngineSet::MainAndRobust => (robust, vec![main.in_doubt(), other, whole]),
            EngineSet::RobustOnly => (robust, vec![other, whole]),
        };
        Self { first, then }
    }

    /// Whether one of the passes reads a sharpened picture.
    pub(super) fn sharpens(&self) -> bool {
        self.then.iter().any(|pass| pass.picture == PassPicture::Sharpened)
    }
}

#[cfg(test)]
mod tests;
