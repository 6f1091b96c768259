//! The current clip paths of a page.

use hayro::hayro_interpret::ClipPath;
use hayro::kurbo::Rect;

use crate::pdf::cut_letters::is_within;
use crate::pdf::glyph_proof::closed_path;

/// With more path elements in all, every letter counts as cut, unexamined.
const MAX_CLIP_ELEMENTS: usize = 1_000;

/// Nested clips; the page is the outermost.
#[derive(Debug)]
pub(super) struct PageClips {
    page: Rect,
    /// Each clip's effective area, and its shape unless that is a box.
    nested: Vec<(Rect, Option<ClipPath>)>,
}

impl PageClips {
    pub(super) fn new(page: Rect) -> Self {
        Self { page, nested: Vec::new() }
    }

    /// The area that is painted.
    pub(super) fn area(&self) -> Rect {
        self.nested.last().map_or(self.page, |(area, _)| *area)
    }

    pub(super) fn push(&mut self, bounds: Rect, shape: Option<&ClipPath>) {
        let closed = |clip: &ClipPath| ClipPath { path: closed_path(&clip.path), fill: clip.fill };
        self.nested.push((self.area().intersect(bounds), shape.map(closed)));
    }

    pub(super) fn pop(&mut self) {
        self.nested.pop();
    }

    /// Whether any clip is not a box.
    pub(super) fn is_shaped(&self) -> bool {
        self.nested.iter().any(|(_, shape)| shape.is_some())
    }

    /// Whether no clip cuts a letter, and the number of elements examined.
    pub(super) fn leave_whole(&self, ink: Rect) -> (bool, usize) {
        let shapes = || self.nested.iter().filter_map(|(_, shape)| shape.as_ref());
        let elements = shapes().map(|clip| clip.path.elements().len()).sum::<usize>();
        let is_whole = elements <= MAX_CLIP_ELEMENTS
            && shapes().all(|clip| is_within(ink, &clip.path, clip.fill));
        (is_whole, elements.min(MAX_CLIP_ELEMENTS))
    }
}
