//! Whether a glyph shows the characters that its font gives for it.
//!
//! A PDF maps each glyph to characters, and nothing ensures that the map is true: names, character
//! maps and `ToUnicode` all come from the author of the file. The drawing alone is shown to a
//! person. So the shape of each glyph is compared with the characters of the standard fonts, and a
//! text is proven only if its drawing looks like it. All other text is doubtful, and is read once
//! more from the drawn page (`crate::reading::second_look`). Glyphs that draw nothing print nothing.
//!
//! Letters of Cyrillic and Greek that have a Latin twin are compared with that. Not covered:
//! exchanges among other letters of other scripts, for which no shapes are known
//! (`crate::pdf::text_layer_check` detects many of them); look-alikes such as O and 0.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use compact_str::CompactString;
use hayro::hayro_interpret::font::{Glyph, GlyphRun, OutlineGlyph};
use hayro::hayro_interpret::{
    BlendMode, CacheKey as _, ClipPath, Device, DrawMode, DrawProps, FillRule, Image,
    ImageDrawProps, Paint, SoftMask,
};
use hayro::kurbo::{Affine, BezPath, PathEl, Rect};
use unicode_normalization::UnicodeNormalization as _;

use crate::pdf::contested_digits::is_contested;
use crate::pdf::font_programs::{FontPrograms, ObjectVerdicts};
use crate::pdf::glyph_shapes::{DrawnOutline, EM_UNITS, GlyphDrawing, GlyphShape};
use crate::pdf::lookalike_letters::latin_twin;
use crate::pdf::number_glyphs::fits_number;
use crate::pdf::page_glyph::PageGlyph;
use crate::pdf::paint_appearance::paint_appearance;
use crate::pdf::standard_shapes::{is_missing_in_substitute, plain_characters, shapes_of};
use crate::refusal::{PageRefusal, stop_decoder};
use docmill_core::model::OutcomeReason;

/// Characters that one glyph may stand for; ligatures have no more.
const MAX_GLYPH_CHARS: usize = 4;
/// Maximum difference of a glyph from one of the shapes of its character, ...
const MAX_DIFFERENCE: f32 = 0.33;
/// ... maximum excess over its difference from another digit, where both are digits, ...
const DIGIT_MARGIN: f32 = 0.01;
/// ... from a letter of nearly equal shape, ...
const CLOSE_MARGIN: f32 = 0.04;
const CLOSE_LETTERS: [[char; 2]; 4] = [['E', 'F'], ['E', 'L'], ['C', 'G'], ['C', 'O']];
/// ... and from any other letter or digit.
const OTHER_MARGIN: f32 = 0.08;
/// Maximum difference at which an unmapped glyph counts as a digit or letter.
const MAX_RESEMBLANCE: f32 = 0.12;
/// Ink smaller than this in both directions, in ems, is invisible.
const MIN_INK_EMS: f64 = 0.03;
/// Ink may stand out of its glyph's place by this, in ems.
const MAX_OVERHANG_EMS: f64 = 0.5;
/// Ink of a digit beyond its stated width, in ems.
const MAX_KERN_EMS: f64 = 0.15;
/// Right side bearing of a digit, in ems.
const MAX_BEARING_EMS: f64 = 0.4;
/// Operations in the procedure of one glyph, and filled shapes among them that are compared.
const MAX_TYPE3_OPERATIONS: u32 = 100_000;
const MAX_FILLED: usize = 32;
/// Texts of one drawing that are kept.
const MAX_TEXTS: usize = 32;
/// Different glyphs of one file whose shapes are compared; more are doubtful.
const MAX_GLYPHS: usize = 8_192;
/// The first letter behind those of Latin scripts.
const FIRST_OTHER_SCRIPT: char = '\u{370}';
/// Signs that must be drawn as themselves.
const AMOUNT_SIGNS: [char; 3] = ['-', '.', ','];
/// Letters that fonts join in one glyph.
const LIGATURES: [&str; 22] = [
    "ff", "fi", "fl", "ffi", "ffl", "ft", "fft", "fb", "fh", "fj", "fk", "tt", "ti", "tti", "tf",
    "st", "ct", "Th", "ij", "IJ", "rt", "ry",
];
/// Characters that are drawn alike; case does not count.
const SIMILAR_CHARACTERS: [&str; 9] = [
    "1li\u{131}\u{142}\u{3b9}\u{456}",
    "0o\u{3bf}\u{43e}",
    "3\u{437}\u{44d}",
    "6\u{431}",
    "4\u{447}",
    "d\u{111}",
    "gq",
    "8\u{432}",
    "s\u{455}",
];

/// Result for a glyph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlyphProof {
    /// The drawing shows the text.
    Proven,
    /// It draws nothing.
    Unseen,
    /// Its drawing does not show its text.
    Doubtful,
    /// Its font is not embedded, and no substitute exists.
    Undrawn,
    /// Other viewers may draw another glyph.
    Contested,
}

/// Texts mapped to one drawing, with their results.
#[derive(Debug, Default)]
struct JudgedDrawing {
    texts: Vec<(CompactString, GlyphProof)>,
    ink: InkReach,
}

/// How far the ink of a glyph reaches, in [`EM_UNITS`].
#[derive(Debug, Clone, Copy, Default)]
struct InkReach {
    /// Its bounding box, if that exceeds the advance.
    stray: Option<Rect>,
    /// Its right edge, if it is known.
    right: Option<f64>,
}

/// Results for the glyphs of a file.
#[derive(Debug, Default)]
pub(crate) struct GlyphProofs {
    /// The fonts that the file's glyphs are drawn by.
    pub(crate) fonts: FontPrograms,
    /// Whether each form of the file leaves marked content open.
    pub(crate) open_forms: ObjectVerdicts,
    /// Whether all embedded fonts of the page are composite.
    is_composite: bool,
    judged: HashMap<DrawingKey, JudgedDrawing, BuildHasherDefault<KeyHasher>>,
}

impl GlyphProofs {
    /// Begins a page. Results from pages with other font types are discarded.
    pub(crate) fn begin_page(&mut self, is_composite: bool) {
        if std::mem::replace(&mut self.is_composite, is_composite) != is_composite {
            self.judged.clear();
        }
    }

    /// A glyph with its text as its drawing shows it, and the box around its ink, in [`EM_UNITS`], if
    /// that goes over the places of others. One without ink is not visible.
    pub(crate) fn prove_glyph<'a>(
        &mut self,
        glyph: &Glyph<'a>,
        placed: PageGlyph,
        paint: &Paint<'a>,
    ) -> (PageGlyph, Option<Rect>) {
        let (proof, InkReach { stray, right }) = self.examine(glyph, &placed.text, paint);
        let placed = fit_advance(placed, right);
        if proof == GlyphProof::Proven {
            return (placed, stray);
        }
        let glyph = PageGlyph {
            text: readable_text(placed.text, proof),
            visible: placed.visible && proof != GlyphProof::Unseen,
            // Whether any ink is there shows on the rendered page.
            doubtful: placed.doubtful || proof == GlyphProof::Doubtful,
            unproven: true,
            contested: proof == GlyphProof::Contested,
            ..placed
        };
        (glyph, stray)
    }

    /// Examines a glyph that is read as `text` and painted with `paint`.
    fn examine<'a>(
        &mut self,
        glyph: &Glyph<'a>,
        text: &str,
        paint: &Paint<'a>,
    ) -> (GlyphProof, InkReach) {
        let key = DrawingKey::from_glyph(glyph, paint);
        let count = self.judged.len();
        let known = self.judged.entry(key).or_default();
        if let Some((_, proof)) = known.texts.iter().find(|(known, _)| known == text) {
            return (*proof, known.ink);
        }
        let is_procedure = matches!(glyph, Glyph::Type3(_));
        if count > MAX_GLYPHS || is_procedure && known.texts.len() >= MAX_TEXTS {
            return (GlyphProof::Doubtful, known.ink);
        }
        if let Glyph::Outline(outline) = glyph {
            self.fonts.note_glyph(outline, text);
        }
        let all = self.is_composite;
        let (proof, ink) = match glyph {
            Glyph::Outline(outline) => match prove_outline(outline, text) {
                (GlyphProof::Proven, ink) if is_contested(outline, text, all) => {
                    (GlyphProof::Contested, ink)
                }
                // An unmapped character is recognised by its drawing.
                (GlyphProof::Doubtful, ink)
                    if text.starts_with('\u{fffd}') && is_contested(outline, text, all) =>
                {
                    (GlyphProof::Contested, ink)
                }
                proof => proof,
            },
            Glyph::Type3(drawn) => {
                let mut drawing = Type3Drawing::new(paint);
                drawn.interpret(&mut drawing, Affine::IDENTITY, Affine::IDENTITY, paint);
                let advance = advance_units(drawn.advance_width());
                let stray = drawing.reach.filter(|reach| !has_room_for(*reach, advance));
                (drawing.prove(text, advance), InkReach { stray, right: None })
            }
        };
        // A character that is missing in a font stands for many.
        known.ink = ink;
        if known.texts.len() < MAX_TEXTS {
            known.texts.push((text.into(), proof));
        }
        (proof, ink)
    }
}

fn advance_units(advance: Option<f32>) -> f64 {
    f64::from(advance.filter(|width| width.is_finite()).unwrap_or(500.0))
}

/// The text of a glyph as it is read: a font that names one glyph a sentence, or a blank that it
/// draws a character for, leaves the character open.
fn readable_text(text: CompactString, proof: GlyphProof) -> CompactString {
    let is_blank = matches!(ClaimedText::from_text(&text), ClaimedText::Blank);
    let is_long = text.chars().count() > MAX_GLYPH_CHARS;
    match proof {
        GlyphProof::Doubtful if is_blank || is_long => "\u{fffd}".into(),
        _ => text,
    }
}

/// Sets the advance of a digit to its ink where the font's width differs: text elsewhere does not
/// continue it, and paint over it covers its ink.
fn fit_advance(glyph: PageGlyph, right: Option<f64>) -> PageGlyph {
    let is_digit = glyph.text.contains(|c: char| c.is_ascii_digit());
    let Some(right) = right.map(|right| right / EM_UNITS).filter(|_| is_digit) else {
        return glyph;
    };
    let stated = glyph.advance.dot(glyph.em) / glyph.em.hypot2();
    let possible = right - MAX_KERN_EMS..=right + MAX_BEARING_EMS;
    if possible.contains(&stated) {
        return glyph;
    }
    PageGlyph { advance: glyph.em * stated.max(*possible.start()).min(*possible.end()), ..glyph }
}

fn prove_outline(glyph: &OutlineGlyph, text: &str) -> (GlyphProof, InkReach) {
    let outline = DrawnOutline { path: glyph.outline(), is_even_odd: false };
    let drawing = GlyphDrawing::from_outlines(&[outline]);
    let Some(bounds) = drawing.bounds().filter(|bounds| !is_speck(*bounds)) else {
        return (prove_absence(text, is_undrawn(glyph, text)), InkReach::default());
    };
    let advance = advance_units(glyph.advance_width());
    let is_here = is_in_place(bounds, advance) && fits_number(text, bounds, advance);
    let proof = prove_shape(drawing.shape().filter(|_| is_here).as_ref(), text);
    let stray = Some(bounds).filter(|bounds| !has_room_for(*bounds, advance));
    (proof, InkReach { stray, right: Some(bounds.x1) })
}

/// A glyph without ink.
fn prove_absence(text: &str, is_undrawn: bool) -> GlyphProof {
    match ClaimedText::from_text(text) {
        ClaimedText::Blank => GlyphProof::Proven,
        _ if is_undrawn => GlyphProof::Undrawn,
        _ => GlyphProof::Unseen,
    }
}

/// Whether a glyph without ink belongs to a font that is not in the file, so that other programs
/// may draw it: one of a standard font, or of a composite font without a program of its own.
fn is_undrawn(glyph: &OutlineGlyph, text: &str) -> bool {
    let has_shape = text.chars().all(|c| !shapes_of(plain_form(c)).is_empty());
    let is_composite = glyph.char_code() > u32::from(u8::MAX);
    is_missing_in_substitute(glyph) || is_composite && !has_shape && glyph.font_data().is_none()
}

fn is_speck(bounds: Rect) -> bool {
    let least = MIN_INK_EMS * EM_UNITS;
    !bounds.is_finite() || bounds.width() < least && bounds.height() < least
}

/// Whether the ink is where its glyph stands.
fn is_in_place(bounds: Rect, advance: f64) -> bool {
    place_of(advance).contains(bounds.center())
}

/// Whether all ink is within the glyph's advance.
fn has_room_for(bounds: Rect, advance: f64) -> bool {
    place_of(advance).contains_rect(bounds)
}

fn place_of(advance: f64) -> Rect {
    let around = MAX_OVERHANG_EMS * EM_UNITS;
    Rect::new(-around, -around, advance.max(0.0) + around, EM_UNITS + around)
}

/// Whether a shape shows the text; `None`: it is too involved, or somewhere else.
fn prove_shape(shape: Option<&GlyphShape>, text: &str) -> GlyphProof {
    let is_shown = match ClaimedText::from_text(text) {
        ClaimedText::Blank => false,
        ClaimedText::Exact(character) => shape.is_some_and(|shape| is_nearest_to(shape, character)),
        ClaimedText::Letter(base) => shape.is_some_and(|shape| {
            resembled(shape, MAX_RESEMBLANCE).is_none_or(|seen| may_be_drawn_as(base, seen))
        }),
        ClaimedText::Symbol(sign) => shape.is_none_or(|shape| {
            let own = least_difference(shape, sign);
            let seen = resembled(shape, MAX_RESEMBLANCE / 2.0);
            let passes_for = |other: char| own > least_difference(shape, other) + OTHER_MARGIN;
            !seen.is_some_and(passes_for)
                && !AMOUNT_SIGNS.into_iter().any(|other| {
                    least_difference(shape, other) < MAX_RESEMBLANCE && passes_for(other)
                })
        }),
        // As long as it can be no character, an unknown sign is one.
        ClaimedText::Unknown => {
            shape.is_none_or(|shape| resembled(shape, MAX_DIFFERENCE).is_none())
        }
        ClaimedText::Impossible => false,
    };
    if is_shown { GlyphProof::Proven } else { GlyphProof::Doubtful }
}

/// How a text can be compared with a shape.
enum ClaimedText {
    Blank,
    /// Its shapes are known, and it must look like one.
    Exact(char),
    /// A letter, or letters joined in one, of unknown shape: it must not look like another than
    /// the one that it is made from.
    Letter(char),
    /// A sign that is no part of a value: it must not look like a digit or letter.
    Symbol(char),
    /// The font gives no character.
    Unknown,
    /// No glyph stands for it.
    Impossible,
}

impl ClaimedText {
    fn from_text(text: &str) -> Self {
        if text.chars().all(|c| c.is_whitespace() || c.is_control() || is_formless(c)) {
            return Self::Blank;
        }
        let composed: CompactString = text.nfc().collect();
        let mut characters = composed.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => Self::from_character(character),
            _ if composed.chars().count() > MAX_GLYPH_CHARS => Self::Impossible,
            _ if LIGATURES.contains(&composed.as_str()) => Self::Letter('\0'),
            (Some(first), _) if composed.chars().all(|c| c.is_alphabetic() && !c.is_ascii()) => {
                Self::Letter(first)
            }
            _ if composed.chars().all(is_symbol) => Self::Symbol('\0'),
            _ => Self::Impossible,
        }
    }

    fn from_character(character: char) -> Self {
        let character = plain_form(character);
        if is_unreadable(character) {
            return Self::Unknown;
        }
        let is_known = !shapes_of(character).is_empty();
        if is_known && (character.is_alphanumeric() || is_part_of_amounts(character)) {
            return Self::Exact(character);
        }
        if character.is_alphabetic() {
            return Self::Letter(character.nfd().next().unwrap_or(character));
        }
        if character.is_numeric() { Self::Impossible } else { Self::Symbol(character) }
    }
}

/// Characters that a font's missing or false map to Unicode leaves behind.
pub(crate) fn is_unreadable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{fffd}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
}

fn is_formless(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
}

fn is_symbol(c: char) -> bool {
    !c.is_alphanumeric() && !is_unreadable(c)
}

/// Signs that change the value of the digits beside them.
fn is_part_of_amounts(c: char) -> bool {
    matches!(c, '.' | ',' | '-' | '$' | '\u{20ac}' | '\u{a3}')
}

/// The character that looks the same and whose shape is known: dashes, full-width forms, twins in
/// Latin.
fn plain_form(character: char) -> char {
    if let Some(latin) = latin_twin(character) {
        return latin;
    }
    match character {
        '\u{ad}' | '\u{2010}' | '\u{2011}' | '\u{2212}' => return '-',
        _ => {}
    }
    let mut forms = std::iter::once(character).nfkc();
    match (forms.next(), forms.next()) {
        // Superscripts are drawn as such.
        (Some(plain), None) if !character.is_numeric() || plain.is_ascii() => {
            if shapes_of(character).is_empty() { plain } else { character }
        }
        _ => character,
    }
}

/// Whether a shape looks like a character, and clearly more like no other one.
fn is_nearest_to(shape: &GlyphShape, character: char) -> bool {
    let own = least_difference(shape, character);
    if own > MAX_DIFFERENCE {
        return false;
    }
    let base = if character.is_ascii() { Some(character) } else { character.nfd().next() };
    let base = base.unwrap_or(character);
    !plain_characters().any(|(other, known)| {
        let clearly_less = own - margin_between(base, other);
        clearly_less > 0.0
            && known.iter().any(|known| shape.is_within(known, clearly_less))
            && !look_alike(other, base)
    })
}

/// How much more a drawing may differ from a character than from another one.
fn margin_between(base: char, other: char) -> f32 {
    let is_close = CLOSE_LETTERS.iter().any(|pair| pair.contains(&base) && pair.contains(&other));
    match base.is_ascii_digit() && other.is_ascii_digit() {
        true => DIGIT_MARGIN,
        false if is_close => CLOSE_MARGIN,
        false => OTHER_MARGIN,
    }
}

/// How much a shape differs from a character at least; infinitely from one of unknown shape.
fn least_difference(shape: &GlyphShape, character: char) -> f32 {
    let known = shapes_of(character).iter().map(|known| shape.difference(known));
    known.fold(f32::INFINITY, f32::min)
}

/// The digit or letter that a shape looks like: it differs by less than `most` from it.
fn resembled(shape: &GlyphShape, most: f32) -> Option<char> {
    let (mut nearest, mut least) = (None, most);
    for (character, known) in plain_characters() {
        for known in known {
            if shape.is_within(known, least) {
                (nearest, least) = (Some(character), shape.difference(known));
            }
        }
    }
    nearest
}

/// Whether a letter of unknown shape may look like a known character. Other scripts have letters
/// that are drawn as Latin ones, and few that are drawn as digits.
fn may_be_drawn_as(base: char, seen: char) -> bool {
    look_alike(base, seen) || base >= FIRST_OTHER_SCRIPT && seen.is_alphabetic()
}

/// Whether two characters may be drawn alike.
fn look_alike(one: char, other: char) -> bool {
    let [one, other] =
        [one, other].map(|c| std::iter::once(c).flat_map(char::to_lowercase).next().unwrap_or(c));
    one == other
        || SIMILAR_CHARACTERS.iter().any(|group| group.contains(one) && group.contains(other))
}

/// Takes what the procedure of a Type 3 glyph draws.
struct Type3Drawing {
    operations: u32,
    /// Its ink, if it draws in the colour of the text.
    on_white: u8,
    filled: Vec<DrawnOutline>,
    /// The bounding box of all ink.
    reach: Option<Rect>,
    /// Whether it draws in another way than filling shapes in the colour of the text.
    is_involved: bool,
}

impl Type3Drawing {
    fn new(paint: &Paint<'_>) -> Self {
        let on_white = paint_appearance(paint).on_white;
        Self { operations: 0, on_white, filled: Vec::new(), reach: None, is_involved: false }
    }

    fn note_reach(&mut self, area: Rect) {
        self.reach = Some(self.reach.map_or(area, |all| all.union(area)));
    }

    /// Stops at a procedure that draws without end.
    fn count_operation(&mut self) {
        self.operations += 1;
        if self.operations > MAX_TYPE3_OPERATIONS {
            let detail = format!("more than {MAX_TYPE3_OPERATIONS} operations draw one glyph");
            stop_decoder(PageRefusal::new(OutcomeReason::TooLarge, detail));
        }
    }

    fn prove(&self, text: &str, advance: f64) -> GlyphProof {
        if self.is_involved {
            return GlyphProof::Doubtful;
        }
        let drawing = GlyphDrawing::from_outlines(&self.filled);
        let Some(bounds) = drawing.bounds().filter(|bounds| !is_speck(*bounds)) else {
            return prove_absence(text, false);
        };
        let is_here = is_in_place(bounds, advance) && fits_number(text, bounds, advance);
        prove_shape(drawing.shape().filter(|_| is_here).as_ref(), text)
    }
}

impl<'a> Device<'a> for Type3Drawing {
    fn draw_path(&mut self, path: &BezPath, props: DrawProps<'a>, mode: &DrawMode) {
        self.count_operation();
        self.note_reach(props.transform.transform_rect_bbox(path.control_box()));
        let ink = paint_appearance(&props.paint);
        let is_plain = ink.solid && ink.alpha >= 1.0 && ink.on_white == self.on_white;
        let DrawMode::Fill(rule) = mode else {
            self.is_involved = true;
            return;
        };
        self.is_involved |= !is_plain || props.soft_mask.is_some();
        if self.filled.len() < MAX_FILLED {
            let is_even_odd = matches!(rule, FillRule::EvenOdd);
            self.filled
                .push(DrawnOutline { path: props.transform * closed_path(path), is_even_odd });
        } else {
            self.is_involved = true;
        }
    }

    fn push_clip_path(&mut self, _: &ClipPath) {
        self.count_operation();
        self.is_involved = true;
    }

    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {
        self.count_operation();
        self.is_involved = true;
    }

    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        self.count_operation();
        for glyph in run.glyphs() {
            // Bounded: a letter reaches no further than a few ems.
            let around = Rect::new(-EM_UNITS, -EM_UNITS, 2.0 * EM_UNITS, 2.0 * EM_UNITS);
            let to_procedure = props.transform * glyph.transform();
            self.note_reach(to_procedure.transform_rect_bbox(around));
        }
        self.is_involved = true;
    }

    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        self.count_operation();
        let whole = Rect::new(0.0, 0.0, f64::from(image.width()), f64::from(image.height()));
        self.note_reach(props.transform.transform_rect_bbox(whole));
        self.is_involved = true;
    }

    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

/// A path as it is filled: a part that does not end where it began is closed.
pub(crate) fn closed_path(path: &BezPath) -> BezPath {
    let mut closed = BezPath::new();
    for element in path.elements() {
        if matches!(element, PathEl::MoveTo(_)) && !closed.is_empty() {
            closed.close_path();
        }
        closed.push(*element);
    }
    if !closed.is_empty() {
        closed.close_path();
    }
    closed
}

/// Names a drawing: by the hash of its font program and the number of its glyph, or by a procedure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DrawingKey {
    program: u128,
    glyph: u128,
}

impl DrawingKey {
    fn from_glyph(glyph: &Glyph<'_>, paint: &Paint<'_>) -> Self {
        match glyph {
            Glyph::Outline(outline) => {
                let mut parts = KeyParts::default();
                outline.identifier().hash(&mut parts);
                // The maps that selected it depend on its code.
                parts.0.glyph |= u128::from(outline.char_code()) << 64;
                parts.0
            }
            // A procedure may choose its own colours: what it shows depends on those around.
            Glyph::Type3(drawn) => Self {
                program: drawn.cache_key(),
                glyph: u128::MAX - u128::from(paint_appearance(paint).on_white),
            },
        }
    }
}

impl Hash for DrawingKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.program);
        state.write_u128(self.glyph);
    }
}

/// Takes the parts of an outline's identifier as they are: they are a hash and a small number, and
/// hashing them once more costs as much as all else that is done for a glyph.
#[derive(Default)]
struct KeyParts(DrawingKey);

impl Hasher for KeyParts {
    fn finish(&self) -> u64 {
        0
    }

    fn write_u128(&mut self, program: u128) {
        self.0.program = program;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0.glyph = self.0.glyph << 8 | u128::from(*byte);
        }
    }
}

/// Keys are hashes already, but for the number of a glyph.
#[derive(Debug, Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    #[expect(clippy::cast_possible_truncation, reason = "enough of a hash")]
    fn write_u128(&mut self, part: u128) {
        // An odd factor: numbers that follow each other are spread.
        self.0 = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (part ^ part >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }
}

#[cfg(test)]
mod tests;
