//! Optional content (ISO 32000-1 §8.11): layers that are off by state or usage, and membership by
//! policy or visibility expression.
//!
//! The interpreter supports single layers only. Viewers differ in whether usage and intent count:
//! where that decides, the state is disputed.

use std::collections::HashSet;

use hayro::hayro_interpret::hayro_syntax::object::{
    Array, Dict, MaybeRef, Name, Object, ObjectIdentifier,
};
use hayro::hayro_interpret::hayro_syntax::xref::XRef;

/// Expressions within an expression.
const MAX_DEPTH: usize = 32;
/// Layers read of a file.
const MAX_LAYERS: usize = 10_000;
/// Actions that change no page content.
const HARMLESS: [&[u8]; 3] = [b"GoTo", b"Named", b"URI"];

/// The layers of a file that viewers do not show.
#[derive(Debug, Default)]
pub(crate) struct HiddenLayers {
    /// By the default configuration (`D`).
    configured: LayerSet,
    /// The same with usage and intent applied.
    by_usage: LayerSet,
    /// Layers that are off, and shown in print.
    printed: LayerSet,
    /// Whether the file runs a script or changes what is shown when it is opened.
    change_on_opening: bool,
}

/// Whether content is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayerState {
    Shown,
    Hidden,
    /// Viewers differ.
    Disputed,
}

#[derive(Debug, Clone, Default)]
struct LayerSet(HashSet<ObjectIdentifier>);

impl HiddenLayers {
    /// Reads the configuration that a file opens with.
    pub(crate) fn read(xref: &XRef) -> Self {
        let catalog = xref.get::<Dict<'_>>(xref.root_id());
        let change_on_opening = catalog.as_ref().is_some_and(acts_on_opening);
        let properties = catalog.and_then(|catalog| catalog.get::<Dict<'_>>(b"OCProperties"));
        let Some(properties) = properties else {
            return Self { change_on_opening, ..Self::default() };
        };
        let config = properties.get::<Dict<'_>>(b"D");
        let base = config.as_ref().and_then(|config| config.get::<Name<'_>>(b"BaseState"));
        let mut hidden = HashSet::new();
        if base.is_some_and(|base| base.as_ref() == b"OFF") {
            hidden.extend(layers_of(&properties, b"OCGs"));
        }
        if let Some(config) = &config {
            layers_of(config, b"ON").for_each(|layer| {
                hidden.remove(&layer);
            });
            hidden.extend(layers_of(config, b"OFF"));
        }
        let configured = LayerSet(hidden);
        let listed: HashSet<ObjectIdentifier> = layers_of(&properties, b"OCGs").collect();
        let mut by_usage = configured.clone();
        // Some viewers ignore a layer that `OCGs` does not list.
        by_usage.0.retain(|layer| listed.contains(layer));
        let mut printed = LayerSet::default();
        for layer in listed {
            let entries = xref.get::<Dict<'_>>(layer);
            if entries.as_ref().is_some_and(is_printed) {
                printed.0.insert(layer);
            }
            match entries.and_then(|layer| is_on_by_usage(&layer)) {
                Some(true) => by_usage.0.remove(&layer),
                Some(false) => by_usage.0.insert(layer),
                None => false,
            };
        }
        Self { configured, by_usage, printed, change_on_opening }
    }

    /// Whether any viewer hides a layer.
    pub(crate) fn hide_any(&self) -> bool {
        !self.configured.0.is_empty() || !self.by_usage.0.is_empty()
    }

    /// Whether opening the file runs a script or an action on layers: viewers differ in the actions
    /// that they run.
    pub(crate) fn change_on_opening(&self) -> bool {
        self.change_on_opening
    }

    /// Whether viewers that evaluate visibility expressions show content that the interpreter
    /// omits.
    pub(crate) fn leaves_out(&self, condition: &Dict<'_>) -> bool {
        let is_printed = condition.obj_id().is_some_and(|layer| self.printed.0.contains(&layer));
        let is_shown = self.configured.shows(condition);
        self.change_on_opening
            || is_shown && !self.configured.shows_listed(condition)
            || !is_shown && (is_printed || self.state_of(condition) == LayerState::Disputed)
    }

    /// Whether content under this condition, a layer or a dictionary of layers, is shown.
    pub(crate) fn state_of(&self, condition: &Dict<'_>) -> LayerState {
        match [&self.configured, &self.by_usage].map(|layers| layers.shows(condition)) {
            [true, true] => LayerState::Shown,
            [false, false] => LayerState::Hidden,
            _ => LayerState::Disputed,
        }
    }
}

impl LayerSet {
    fn shows(&self, condition: &Dict<'_>) -> bool {
        if let Some(expression) = condition.get::<Array<'_>>(b"VE") {
            return self.holds(&expression, MAX_DEPTH);
        }
        self.shows_listed(condition)
    }

    /// The same by `OCGs` and the policy `P` alone.
    fn shows_listed(&self, condition: &Dict<'_>) -> bool {
        let is_membership =
            condition.get::<Name<'_>>(b"Type").is_some_and(|name| name.as_ref() == b"OCMD");
        if !is_membership {
            let layer = condition.obj_id();
            return layer.is_none_or(|layer| !self.0.contains(&layer));
        }
        let single = condition.get_ref(b"OCGs").map(ObjectIdentifier::from);
        let mut layers: Vec<ObjectIdentifier> = layers_of(condition, b"OCGs").collect();
        if layers.is_empty() {
            layers.extend(single);
        }
        let policy = condition.get::<Name<'_>>(b"P");
        let mut are_hidden = layers.iter().map(|layer| self.0.contains(layer));
        layers.is_empty()
            || match policy.as_ref().map(|policy| policy.as_ref()) {
                Some(b"AllOn") => !are_hidden.any(|hidden| hidden),
                Some(b"AnyOff") => are_hidden.any(|hidden| hidden),
                Some(b"AllOff") => are_hidden.all(|hidden| hidden),
                _ => are_hidden.any(|hidden| !hidden),
            }
    }

    /// The value of a visibility expression. One that is too deep shows nothing.
    fn holds(&self, expression: &Array<'_>, depth: usize) -> bool {
        let mut parts = expression.raw_iter();
        let Some(MaybeRef::NotRef(Object::Name(operator))) = parts.next() else { return false };
        let Some(depth) = depth.checked_sub(1) else { return false };
        let rest = expression.iter::<Object<'_>>().skip(1);
        let mut values = parts.zip(rest).map(|(part, object)| match (part, object) {
            (_, Object::Array(inner)) => self.holds(&inner, depth),
            (MaybeRef::Ref(layer), _) => !self.0.contains(&ObjectIdentifier::from(layer)),
            _ => false,
        });
        match operator.as_ref() {
            b"And" => values.all(|value| value),
            b"Or" => values.any(|value| value),
            b"Not" => values.next() == Some(false),
            _ => false,
        }
    }
}

fn is_printed(layer: &Dict<'_>) -> bool {
    let print = layer.get::<Dict<'_>>(b"Usage").and_then(|usage| usage.get::<Dict<'_>>(b"Print"));
    let state = print.and_then(|print| print.get::<Name<'_>>(b"PrintState"));
    state.is_some_and(|state| state.as_ref() == b"ON")
}

/// Whether the catalog has an opening action other than navigation.
fn acts_on_opening(catalog: &Dict<'_>) -> bool {
    let names = catalog.get::<Dict<'_>>(b"Names");
    let action = catalog.get::<Dict<'_>>(b"OpenAction");
    let does_more = action.is_some_and(|action| {
        let kind = action.get::<Name<'_>>(b"S");
        action.contains_key(b"Next") || kind.is_some_and(|kind| !HARMLESS.contains(&kind.as_ref()))
    });
    does_more || names.is_some_and(|names| names.contains_key(b"JavaScript"))
}

/// Whether a layer's usage or intent shows it on a screen, whatever the configuration says (§8.11.4.4);
/// `None`: they say nothing.
fn is_on_by_usage(layer: &Dict<'_>) -> Option<bool> {
    let intent = layer.get::<Name<'_>>(b"Intent");
    if intent.is_some_and(|intent| !matches!(intent.as_ref(), b"View" | b"All")) {
        return Some(true);
    }
    let view = layer.get::<Dict<'_>>(b"Usage").and_then(|usage| usage.get::<Dict<'_>>(b"View"));
    let state = view.and_then(|view| view.get::<Name<'_>>(b"ViewState"))?;
    Some(state.as_ref() != b"OFF")
}

/// The layers that an array of references names.
fn layers_of(dictionary: &Dict<'_>, key: &[u8]) -> impl Iterator<Item = ObjectIdentifier> {
    let layers = dictionary.get::<Array<'_>>(key);
    let mut found: Vec<ObjectIdentifier> = Vec::new();
    if let Some(layers) = layers {
        for layer in layers.raw_iter().take(MAX_LAYERS) {
            if let MaybeRef::Ref(layer) = layer {
                found.push(ObjectIdentifier::from(layer));
            }
        }
    }
    found.into_iter()
}
