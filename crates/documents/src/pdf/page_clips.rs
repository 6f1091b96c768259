//! The clips that hold while a page is drawn.

use hayro::hayro_interpret::ClipPath;
use hayro::kurbo::Rect;

use crate::pdf::cut_letters::is_within;
use crate::pdf::glyph_proof::closed_path;

/// Clips of more elements together leave no letter whole: they are not looked at.
const MAX_CLIP_ELEMENTS: usize = 1_000;

/// Nested clips, of which the page is the outermost.
#[derive(Debug)]
pub(super) struct PageClips {
    page: Rect,
    /// The area of each within those around it, and its shape if that is no box.
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

    /// Whether one of them is no box.
    pub(super) fn is_shaped(&self) -> bool {
        self.nested.iter().any(|(_, shape)| shape.is_some())
    }

    /// Whether all of them leave a letter whole, and how many elements were examined.
    pub(super) fn leave_whole(&self, ink: Rect) -> (bool, usize) {
        let shapes = || self.nested.iter().filter_map(|(_, shape)| shape.as_ref());
        let elements = shapes().map(|clip| clip.path.elements().len()).sum::<usize>();
        let is_whole = elements <= MAX_CLIP_ELEMENTS
            && shapes().all(|clip| is_within(ink, &clip.path, clip.fill));
        (is_whole, elements.min(MAX_CLIP_ELEMENTS))
    }
}
