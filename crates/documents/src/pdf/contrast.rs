//! Whether a person sees a text, judged by the rendered page. Pages are rendered once, coarsely,
//! and only if the drawing leaves it open (paint near text, transparency, clips of any shape).
//!
//! A word is visible if its ink is there and stands out from its background. Searching for its own
//! ink, not for any contrast, distinguishes it from text printed over it. Not promised: that
//! visible text is easy to read; grey print on white is text.

use hayro::hayro_interpret::hayro_syntax::page::Page as PdfPage;
use hayro::kurbo::{Point, Rect, Vec2};

use crate::image::luminance::stands_out;
use crate::page::PageRaster;
use crate::pdf::glyph_collector::GlyphCollector;
use crate::pdf::page_glyph::PageGlyph;
use crate::pdf::render::{self, RenderBounds};
use crate::pdf::text_layer_check::GLANCE_DPI;
use crate::refusal::PageRefusal;

/// Thin strokes are paler than their ink: some pixels have to come so far from paper to ink.
const MIN_INK_REACH: f32 = 0.35;
/// Greys that are taken for one.
const GREY_STEP: u8 = 16;
/// Tolerance of rendered greys.
const SAME_GREY: u8 = 4;
/// More of a word's place than this is no ink, however heavy the letters.
const MAX_INK_SHARE: f32 = 0.7;
/// Share of a word's area that its background has.
const MIN_BACKGROUND_SHARE: f32 = 0.05;

/// Marks the glyphs as hidden that a person does not see, where that is doubtful.
///
/// # Errors
/// As for rendering.
pub(crate) fn hide_unseen(
    page: &PdfPage<'_>,
    surface: &mut GlyphCollector,
    bounds: &RenderBounds<'_>,
) -> Result<(), PageRefusal> {
    let doubtful: Vec<bool> =
        surface.glyphs.iter().map(|glyph| surface.is_doubtful(glyph)).collect();
    if !doubtful.contains(&true) {
        return Ok(());
    }
    let glance = render::render_page(page, &RenderBounds { dpi: GLANCE_DPI, ..*bounds })?;
    let mut start = 0;
    while start < surface.glyphs.len() {
        let rest = surface.glyphs.get(start..).unwrap_or_default();
        let length = 1 + rest.windows(2).take_while(|pair| is_one_word(pair)).count();
        let end = (start + length).min(surface.glyphs.len());
        let is_open = doubtful.get(start..end).unwrap_or_default().contains(&true);
        if let Some(word) = surface.glyphs.get_mut(start..end).filter(|_| is_open)
            && !is_seen(word, &glance)
        {
            word.iter_mut().for_each(|glyph| glyph.visible = false);
        }
        start = end;
    }
    Ok(())
}

/// Whether the second glyph goes on with the word of the first, in the same ink.
fn is_one_word(pair: &[PageGlyph]) -> bool {
    let [one, next] = pair else { return false };
    one.is_joined_by(next) && one.visible == next.visible && one.ink == next.ink
}

/// Whether the ink of a word is where it should be. Words without any shape pass.
fn is_seen(word: &[PageGlyph], glance: &PageRaster) -> bool {
    let Some(first) = word.first().filter(|glyph| glyph.visible && !glyph.is_blank()) else {
        return true;
    };
    let place = word.iter().map(glyph_box).reduce(|all, one| all.union(one)).unwrap_or(Rect::ZERO);
    let greys = GreyCounts::of_place(glance, place);
    let Some(behind) = greys.behind(first.ink) else { return false };
    stands_out(first.ink, behind) && greys.reach(first.ink, behind)
}

/// Where a glyph may have ink: from a little below its line to the height of its capitals.
fn glyph_box(glyph: &PageGlyph) -> Rect {
    let up = Vec2::new(glyph.em.y, -glyph.em.x).normalize() * glyph.size;
    let (start, end) = (glyph.origin, glyph.origin + glyph.advance);
    let corners: [Point; 4] =
        [start - up * 0.2, start + up * 0.75, end - up * 0.2, end + up * 0.75];
    let first = Rect::from_points(start, end);
    corners.into_iter().fold(first, |all, corner| all.union_pt(corner))
}

/// How often each grey is in a place.
struct GreyCounts([u32; 256]);

impl GreyCounts {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the page's pixels"
    )]
    fn of_place(page: &PageRaster, place: Rect) -> Self {
        let scale = f64::from(page.dpi) / 72.0;
        let [left, right] = [(place.x0 * scale).floor(), (place.x1 * scale).ceil()]
            .map(|x| x.clamp(0.0, f64::from(page.width)) as usize);
        let [top, bottom] = [(place.y0 * scale).floor(), (place.y1 * scale).ceil()]
            .map(|y| y.clamp(0.0, f64::from(page.height)) as usize);
        let mut counts = [0_u32; 256];
        for row in page.pixels.chunks_exact((page.width as usize).max(1)).take(bottom).skip(top) {
            for pixel in row.get(left..right).unwrap_or_default() {
                if let Some(count) = counts.get_mut(usize::from(*pixel)) {
                    *count += 1;
                }
            }
        }
        Self(counts)
    }

    fn total(&self) -> u32 {
        self.0.iter().sum()
    }

    /// The grey behind the ink: the most frequent, unless that is the ink itself (heavy letters);
    /// `None`: there is nothing else, as under a cover of the same colour.
    fn behind(&self, ink: u8) -> Option<u8> {
        let counted = self.0.iter().zip(0..=u8::MAX);
        let commonest = counted.clone().max_by_key(|(count, _)| **count).map(|(_, grey)| grey)?;
        if commonest.abs_diff(ink) > SAME_GREY {
            return Some(commonest);
        }
        let of_ink = counted.filter(|(_, grey)| grey.abs_diff(ink) <= SAME_GREY);
        if of_ink.map(|(count, _)| *count).sum::<u32>() > share_of(self.total(), MAX_INK_SHARE) {
            return None;
        }
        let least = share_of(self.total(), MIN_BACKGROUND_SHARE).max(1);
        let steps = (0..=u8::MAX / GREY_STEP).map(|step| {
            let from = step * GREY_STEP;
            let greys = usize::from(from)..=usize::from(from) + usize::from(GREY_STEP - 1);
            let counts = self.0.get(greys).unwrap_or_default();
            let most = counts.iter().zip(from..=u8::MAX).max_by_key(|(count, _)| **count);
            (counts.iter().sum::<u32>(), most.map_or(from, |(_, grey)| grey))
        });
        let other =
            steps.filter(|(count, grey)| *count >= least && grey.abs_diff(ink) >= GREY_STEP);
        other.max_by_key(|(count, _)| *count).map(|(_, grey)| grey)
    }

    /// Whether some pixels come near the ink, on the way from the background.
    fn reach(&self, ink: u8, behind: u8) -> bool {
        let way = f32::from(ink) - f32::from(behind);
        let near = self
            .0
            .iter()
            .zip(0..=u8::MAX)
            .filter(|(_, grey)| (f32::from(*grey) - f32::from(behind)) / way >= MIN_INK_REACH);
        near.map(|(count, _)| *count).sum::<u32>() >= share_of(self.total(), 0.005).max(2)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of some thousand pixels"
)]
fn share_of(count: u32, share: f32) -> u32 {
    (count as f32 * share) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_is_searched_by_its_own_grey_before_its_background() {
        let counts = |greys: &[(u8, u32)]| {
            let mut counts = GreyCounts([0; 256]);
            greys.iter().for_each(|(grey, count)| counts.0[usize::from(*grey)] = *count);
            counts
        };
        #[rustfmt::skip]
        let table = [
            ("black on white",                counts(&[(255, 800), (0, 150), (120, 50)]), 0,   true),
            ("thin black, never quite black", counts(&[(255, 900), (120, 60)]),           0,   true),
            ("white on a dark bar",           counts(&[(20, 800), (255, 150)]),           255, true),
            ("a heavy letter",                counts(&[(0, 600), (255, 400)]),            0,   true),
            ("under a white cover",           counts(&[(255, 1000)]),                     0,   false),
            ("under a black cover",           counts(&[(0, 1000)]),                       0,   false),
            ("pale on white",                 counts(&[(255, 800), (244, 200)]),          244, false),
            ("of the paper's own grey, under black print", counts(&[(240, 850), (0, 150)]), 240, false),
            ("pale under black print",        counts(&[(255, 800), (244, 50), (0, 150)]), 244, false),
        ];
        for (name, greys, ink, seen) in table {
            let behind = greys.behind(ink);
            let found =
                behind.is_some_and(|behind| stands_out(ink, behind) && greys.reach(ink, behind));
            assert_eq!(found, seen, "{name}: {behind:?}");
        }
    }
}
