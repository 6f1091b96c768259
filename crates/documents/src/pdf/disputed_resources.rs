//! Resources of a page that programs which show PDFs understand differently, so that no drawing of it
//! is the one that a person sees: colours that stand in for the plain ones (PDF 32000-1 §8.6.5.6), and
//! drawings on layers whose state is disputed (`crate::pdf::layers`).
//!
//! Not covered: such resources of patterns and of the glyphs of Type 3 fonts.

use std::collections::HashSet;

use hayro::hayro_interpret::hayro_syntax::object::{
    Array, Dict, Name, Object, ObjectIdentifier, Stream,
};
use hayro::hayro_interpret::hayro_syntax::page::Resources;

use crate::pdf::layers::{HiddenLayers, LayerState};

/// Drawings of a page that are looked at, those within others included; with more, or deeper ones, it is
/// disputed.
const MAX_DRAWINGS: usize = 2_000;
/// Drawings within a drawing.
const MAX_DEPTH: usize = 16;
const DEFAULT_COLOURS: [&[u8]; 3] = [b"DefaultGray", b"DefaultRGB", b"DefaultCMYK"];
/// Bend of the colours of usual devices.
const USUAL_GAMMA: std::ops::RangeInclusive<f64> = 0.9..=3.0;

/// Whether what a page draws with these resources is disputed.
pub(crate) fn are_disputed(resources: &Resources<'_>, layers: &HiddenLayers) -> bool {
    let mut search = ResourceSearch { layers, seen: HashSet::new() };
    search.is_disputed(&resources.color_spaces, &resources.x_objects, MAX_DEPTH)
}

struct ResourceSearch<'l> {
    layers: &'l HiddenLayers,
    seen: HashSet<ObjectIdentifier>,
}

impl ResourceSearch<'_> {
    fn is_disputed(&mut self, colours: &Dict<'_>, drawings: &Dict<'_>, depth: usize) -> bool {
        if DEFAULT_COLOURS.iter().any(|key| !is_usual_colour(colours, key)) {
            return true;
        }
        let names: Vec<Name<'_>> = drawings.keys().take(MAX_DRAWINGS + 1).collect();
        let Some(depth) = depth.checked_sub(1) else { return !names.is_empty() };
        if names.len() > MAX_DRAWINGS {
            return true;
        }
        names.iter().any(|name| {
            let drawing = drawings.get::<Stream<'_>>(name);
            drawing.is_some_and(|drawing| self.is_drawing_disputed(drawing.dict(), depth))
        })
    }

    fn is_drawing_disputed(&mut self, drawing: &Dict<'_>, depth: usize) -> bool {
        let is_new = drawing.obj_id().is_none_or(|id| self.seen.insert(id));
        if !is_new {
            return false;
        }
        if self.seen.len() > MAX_DRAWINGS {
            return true;
        }
        let layer = drawing.get::<Dict<'_>>(b"OC");
        if layer.is_some_and(|layer| !self.is_drawn_as_stated(&layer)) {
            return true;
        }
        let own = drawing.get::<Dict<'_>>(b"Resources");
        own.is_some_and(|own| {
            let part = |key: &[u8]| own.get::<Dict<'_>>(key).unwrap_or_default();
            self.is_disputed(&part(b"ColorSpace"), &part(b"XObject"), depth)
        })
    }

    /// Whether the interpreter, which reads no expressions, shows a drawing as viewers do.
    fn is_drawn_as_stated(&self, layer: &Dict<'_>) -> bool {
        match self.layers.state_of(layer) {
            LayerState::Shown => true,
            LayerState::Hidden => !layer.contains_key(b"VE"),
            LayerState::Disputed => false,
        }
    }
}

/// Whether the colours in place of plain ones look like them.
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
