//! Page resources that viewers interpret differently, so that no rendering proves what a person
//! sees: default colour spaces (ISO 32000-1 §8.6.5.6), colour spaces that paint nothing, transfer
//! functions, disputed layers (`crate::pdf::layers`), and digits of a symbol font that is not
//! embedded.
//!
//! Not covered: such resources of patterns and of the glyphs of Type 3 fonts.

use std::collections::HashSet;

use hayro::hayro_interpret::hayro_syntax::content::TypedIter;
use hayro::hayro_interpret::hayro_syntax::content::ops::TypedInstruction;
use hayro::hayro_interpret::hayro_syntax::object::{
    Array, Dict, Name, Object, ObjectIdentifier, Stream,
};
use hayro::hayro_interpret::hayro_syntax::page::{Page as PdfPage, Resources};

use crate::pdf::contested_digits::DIGIT_CODES;
use crate::pdf::font_programs::{FontPrograms, ObjectVerdicts, SYMBOLIC, is_in_file};
use crate::pdf::layers::{HiddenLayers, LayerState};

/// Forms examined per page, nested ones included; a page with more or deeper forms is disputed.
const MAX_DRAWINGS: usize = 2_000;
/// Nesting depth of forms.
const MAX_DEPTH: usize = 16;
const DEFAULT_COLOURS: [&[u8]; 3] = [b"DefaultGray", b"DefaultRGB", b"DefaultCMYK"];
/// Lower-case parts of the names of fonts with symbols at the codes of digits.
const SYMBOL_FONTS: [&[u8]; 12] = [
    b"symbol",
    b"dingbat",
    b"wingding",
    b"webding",
    b"marlett",
    b"mtextra",
    b"code39",
    b"barcode",
    b"hc39",
    b"pistd",
    b"sorts",
    b"mathematicalpi",
];
/// Gamma of usual devices.
const USUAL_GAMMA: std::ops::RangeInclusive<f64> = 0.9..=3.0;

/// Whether what a page draws with these resources is disputed.
pub(crate) fn are_disputed(
    resources: &Resources<'_>,
    layers: &HiddenLayers,
    fonts: &mut FontPrograms,
    open_forms: &mut ObjectVerdicts,
) -> bool {
    let mut search = ResourceSearch { layers, fonts, open_forms, seen: HashSet::new() };
    search.is_disputed(resources, MAX_DEPTH)
}

/// Whether the page uses no embedded simple font. `false` on pages with forms, patterns or
/// annotations, which have resources of their own.
pub(crate) fn has_composite_fonts_only(page: &PdfPage<'_>) -> bool {
    let resources = page.resources();
    let has_content = !resources.patterns.is_empty()
        || page.raw().contains_key(b"Annots")
        || has_any(&resources.x_objects, is_form)
        || has_any(
            &resources.ext_g_states,
            |it| matches!(it, Object::Dict(it) if it.contains_key(b"Font")),
        );
    let is_bounded = [&resources.fonts, &resources.x_objects, &resources.ext_g_states]
        .into_iter()
        .all(|entries| entries.len() <= MAX_DRAWINGS);
    let has_simple = has_any(
        &resources.fonts,
        |it| !matches!(it, Object::Dict(it) if is_composite(it) || !is_in_file(it) && !is_drawn(it)),
    );
    is_bounded && !has_content && !has_simple
}

fn is_form(drawing: &Object<'_>) -> bool {
    let Object::Stream(drawing) = drawing else { return false };
    let kind = drawing.dict().get::<Name<'_>>(b"Subtype");
    kind.is_none_or(|kind| kind.as_ref() != b"Image")
}

fn is_composite(font: &Dict<'_>) -> bool {
    font.get::<Name<'_>>(b"Subtype").is_some_and(|kind| kind.as_ref() == b"Type0")
}

/// Whether a font is Type 3: its glyph procedures may use other fonts.
fn is_drawn(font: &Dict<'_>) -> bool {
    font.contains_key(b"CharProcs")
}

struct ResourceSearch<'l> {
    layers: &'l HiddenLayers,
    fonts: &'l mut FontPrograms,
    /// Whether a form ends within marked content.
    open_forms: &'l mut ObjectVerdicts,
    seen: HashSet<ObjectIdentifier>,
}

impl ResourceSearch<'_> {
    fn is_disputed(&mut self, resources: &Resources<'_>, depth: usize) -> bool {
        let drawings = &resources.x_objects;
        if DEFAULT_COLOURS.iter().any(|key| !is_usual_colour(&resources.color_spaces, key))
            || has_any(
                &resources.color_spaces,
                |it| matches!(it, Object::Array(it) if is_odd_space(it)),
            )
            || has_any(
                &resources.ext_g_states,
                |it| matches!(it, Object::Dict(it) if turns_inks(it)),
            )
            || has_any(&resources.properties, |it| self.is_layer_left_out(it))
            || has_any(&resources.fonts, |it| self.is_font_disputed(it))
        {
            return true;
        }
        let names: Vec<Name<'_>> = drawings.keys().take(MAX_DRAWINGS + 1).collect();
        let Some(depth) = depth.checked_sub(1) else { return !names.is_empty() };
        if names.len() > MAX_DRAWINGS {
            return true;
        }
        names.iter().any(|name| {
            let drawing = drawings.get::<Stream<'_>>(name);
            drawing.is_some_and(|drawing| self.is_drawing_disputed(&drawing, depth))
        })
    }

    fn is_font_disputed(&mut self, font: &Object<'_>) -> bool {
        let Object::Dict(font) = font else { return false };
        has_symbols(font) || self.fonts.is_disputed(font)
    }

    fn is_layer_left_out(&self, layer: &Object<'_>) -> bool {
        let Object::Dict(layer) = layer else { return false };
        let kind = layer.get::<Name<'_>>(b"Type");
        let is_layer = kind.is_some_and(|kind| matches!(kind.as_ref(), b"OCG" | b"OCMD"));
        is_layer && self.layers.leaves_out(layer)
    }

    fn is_drawing_disputed(&mut self, content: &Stream<'_>, depth: usize) -> bool {
        let drawing = content.dict();
        let is_new = drawing.obj_id().is_none_or(|id| self.seen.insert(id));
        if !is_new {
            return false;
        }
        if self.seen.len() > MAX_DRAWINGS {
            return true;
        }
        let kind = drawing.get::<Name<'_>>(b"Subtype");
        let is_form = kind.is_some_and(|kind| kind.as_ref() == b"Form");
        // Some viewers draw a form without `BBox`, the interpreter does not. Some end the layers
        // that a form opened where the form ends.
        let is_open = is_form
            && (!drawing.contains_key(b"BBox")
                || self.layers.hide_any()
                    && self.open_forms.holds(drawing, || is_left_open(content)));
        if is_open {
            return true;
        }
        let layer = drawing.get::<Dict<'_>>(b"OC");
        if layer.is_some_and(|layer| !self.is_drawn_as_stated(&layer)) {
            return true;
        }
        let own = drawing.get::<Dict<'_>>(b"Resources");
        own.is_some_and(|own| self.is_disputed(&Resources::new(own), depth))
    }

    /// Whether the interpreter, which ignores visibility expressions, shows a form as viewers do.
    fn is_drawn_as_stated(&self, layer: &Dict<'_>) -> bool {
        match self.layers.state_of(layer) {
            LayerState::Shown => !self.layers.change_on_opening(),
            LayerState::Hidden => !layer.contains_key(b"VE") && !self.layers.leaves_out(layer),
            LayerState::Disputed => false,
        }
    }
}

/// Whether marked content begins in a form that does not end in it, or the other way round.
fn is_left_open(form: &Stream<'_>) -> bool {
    let Ok(content) = form.decoded() else { return true };
    let (mut open, mut instructions) = (0_u32, TypedIter::new(&content));
    while let Some(instruction) = instructions.next() {
        match instruction {
            TypedInstruction::BeginMarkedContent(_)
            | TypedInstruction::BeginMarkedContentWithProperties(_) => open += 1,
            TypedInstruction::EndMarkedContent(_) if open == 0 => return true,
            TypedInstruction::EndMarkedContent(_) => open -= 1,
            _ => {}
        }
    }
    open > 0
}

/// Whether the default colour spaces look like the device spaces that they replace.
fn is_usual_colour(colours: &Dict<'_>, key: &[u8]) -> bool {
    match colours.get::<Object<'_>>(key) {
        None => true,
        Some(Object::Array(space)) => is_usual_space(&space),
        Some(_) => false,
    }
}

fn is_usual_space(space: &Array<'_>) -> bool {
    let mut parts = space.iter::<Object<'_>>();
    match (parts.next(), parts.next()) {
        (Some(Object::Name(family)), _) if family.as_ref() == b"ICCBased" => true,
        (Some(Object::Name(family)), Some(Object::Dict(entries))) => match family.as_ref() {
            b"CalGray" => entries.get::<f64>(b"Gamma").is_none_or(|it| USUAL_GAMMA.contains(&it)),
            b"CalRGB" => {
                let gamma = entries.get::<Array<'_>>(b"Gamma");
                gamma.is_none_or(|all| all.iter::<f64>().all(|it| USUAL_GAMMA.contains(&it)))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether any entry passes the check. Only [`MAX_DRAWINGS`] entries are examined.
fn has_any(entries: &Dict<'_>, mut passes: impl FnMut(&Object<'_>) -> bool) -> bool {
    let mut keys = entries.keys().take(MAX_DRAWINGS);
    keys.any(|key| entries.get::<Object<'_>>(&key).is_some_and(|entry| passes(&entry)))
}

/// Whether viewers render a colour space differently: one without ink, or far from usual devices.
fn is_odd_space(space: &Array<'_>) -> bool {
    let mut parts = space.iter::<Object<'_>>();
    match (parts.next(), parts.next()) {
        (Some(Object::Name(family)), Some(Object::Name(ink))) => {
            family.as_ref() == b"Separation" && ink.as_ref() == b"None"
        }
        (Some(Object::Name(family)), Some(Object::Array(inks))) => {
            family.as_ref() == b"DeviceN"
                && inks.iter::<Name<'_>>().all(|ink| ink.as_ref() == b"None")
        }
        (Some(Object::Name(family)), Some(Object::Dict(_))) => {
            matches!(family.as_ref(), b"CalGray" | b"CalRGB") && !is_usual_space(space)
        }
        _ => false,
    }
}

/// Whether a graphics state has a transfer function, which only some viewers apply.
fn turns_inks(state: &Dict<'_>) -> bool {
    let turns = |key: &[u8]| match state.get::<Object<'_>>(key) {
        None => false,
        Some(Object::Name(name)) => !matches!(name.as_ref(), b"Identity" | b"Default"),
        Some(_) => true,
    };
    // `TR2` takes precedence over `TR`.
    if state.contains_key(b"TR2") { turns(b"TR2") } else { turns(b"TR") }
}

/// Whether a simple symbol font that is not embedded has digits: their drawing depends on the fonts
/// installed.
fn has_symbols(font: &Dict<'_>) -> bool {
    let kind = font.get::<Name<'_>>(b"Subtype");
    let is_simple = kind.is_some_and(|kind| matches!(kind.as_ref(), b"Type1" | b"TrueType"));
    let descriptor = font.get::<Dict<'_>>(b"FontDescriptor").unwrap_or_default();
    if !is_simple || is_in_file(font) {
        return false;
    }
    let name = font.get::<Name<'_>>(b"BaseFont");
    let name = name.map(|name| name.as_ref().to_ascii_lowercase()).unwrap_or_default();
    let is_named = SYMBOL_FONTS.iter().any(|part| name.windows(part.len()).any(|it| it == *part));
    let is_symbolic = descriptor.get::<u32>(b"Flags").is_some_and(|flags| flags & SYMBOLIC != 0)
        && !font.contains_key(b"Encoding");
    let code = |key: &[u8], missing: u32| font.get::<u32>(key).unwrap_or(missing);
    let codes = code(b"FirstChar", 0)..=code(b"LastChar", 255);
    (is_named || is_symbolic) && DIGIT_CODES.into_iter().any(|digit| codes.contains(&digit))
}
