//! The streams of an open file, one by one, with the filters and the decrypted bytes that hayro
//! uses: for files whose bytes alone do not show them.

use std::collections::HashSet;

use hayro::hayro_interpret::hayro_syntax::object::dict::keys;
use hayro::hayro_interpret::hayro_syntax::object::{
    Array, Dict, MaybeRef, Name, Object, ObjectIdentifier, Stream,
};
use hayro::hayro_interpret::hayro_syntax::{Filter, Pdf};

use super::filters::{StreamFilter, expanded_bytes, too_large_refusal};
use crate::refusal::PageRefusal;
use docmill_core::config::LimitsConfig;

/// Refuses an open file whose streams expand to `limits.decompressed_bytes` or more: each image by
/// itself, all others together. Only streams that are declared images and are used as images or
/// masks, and as nothing else, count as images.
///
/// # Errors
/// `too_large`.
pub(crate) fn check_objects(pdf: &Pdf, limits: &LimitsConfig) -> Result<(), PageRefusal> {
    let limit = limits.decompressed_bytes.0;
    let uses = StreamUses::of_file(pdf);
    let mut others: u64 = 0;
    for object in pdf.objects() {
        let Object::Stream(stream) = object else { continue };
        let is_image = uses.is_image(&stream);
        let allowed = if is_image { limit } else { limit.saturating_sub(others) };
        let expanded = stream_bytes(&stream, allowed);
        if expanded >= allowed {
            return Err(too_large_refusal(limit));
        }
        if !is_image {
            others = others.saturating_add(expanded);
        }
    }
    Ok(())
}

/// Bytes that a stream expands to, or at least `allowed` if that or more. An image's own encodings
/// do not count: its dimensions bound what they make.
pub(crate) fn stream_bytes(stream: &Stream<'_>, allowed: u64) -> u64 {
    let filters: Vec<StreamFilter> = stream.filters().iter().filter_map(known_filter).collect();
    if filters.is_empty() {
        return 0;
    }
    expanded_bytes(&stream.raw_data(), &filters, allowed)
}

fn known_filter(filter: &Filter) -> Option<StreamFilter> {
    match filter {
        Filter::FlateDecode => Some(StreamFilter::Flate),
        Filter::LzwDecode => Some(StreamFilter::Lzw),
        Filter::RunLengthDecode => Some(StreamFilter::RunLength),
        Filter::Ascii85Decode => Some(StreamFilter::Ascii85),
        Filter::AsciiHexDecode => Some(StreamFilter::AsciiHex),
        _ => None,
    }
}

/// Uses of streams.
#[derive(Default)]
struct StreamUses {
    /// Dictionaries of things to draw that are objects of their own.
    drawn: HashSet<ObjectIdentifier>,
    /// Objects that are referred to as something other than an image.
    elsewhere: HashSet<ObjectIdentifier>,
}

impl StreamUses {
    fn of_file(pdf: &Pdf) -> Self {
        let mut uses = Self::default();
        for object in pdf.objects() {
            each_dictionary(object, |dictionary, _| {
                if let Some(drawn) = dictionary.get_ref(b"XObject".as_slice()) {
                    uses.drawn.insert(drawn.into());
                }
            });
        }
        for object in pdf.objects() {
            if let Object::Array(items) = &object {
                uses.add_items(items);
            }
            each_dictionary(object, |dictionary, place| uses.add_references(dictionary, place));
        }
        uses
    }

    fn add_references(&mut self, dictionary: &Dict<'_>, place: DictionaryContext) {
        let is_own = dictionary.obj_id().is_some_and(|id| self.drawn.contains(&id));
        let is_drawn =
            place == DictionaryContext::Drawn || place == DictionaryContext::Own && is_own;
        for (key, value) in dictionary.entries() {
            let key: &[u8] = key.as_ref();
            let masks = key == b"SMask" || key == b"Mask";
            match value {
                MaybeRef::Ref(to) if !is_drawn && !masks && key != b"XObject" => {
                    self.elsewhere.insert(to.into());
                }
                MaybeRef::NotRef(Object::Array(items)) => self.add_items(&items),
                _ => {}
            }
        }
    }

    /// Nothing in a list is drawn: lists hold programs, functions, parts of colours.
    fn add_items(&mut self, items: &Array<'_>) {
        for item in items.raw_iter() {
            match item {
                MaybeRef::Ref(to) => {
                    self.elsewhere.insert(to.into());
                }
                MaybeRef::NotRef(Object::Array(inner)) => self.add_items(&inner),
                MaybeRef::NotRef(_) => {}
            }
        }
    }

    fn is_image(&self, stream: &Stream<'_>) -> bool {
        let kind = stream.dict().get::<Name<'_>>(keys::SUBTYPE);
        let is_called = kind.is_some_and(|kind| kind.as_ref() == b"Image");
        is_called && !self.elsewhere.contains(&stream.obj_id())
    }
}

/// Context of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DictionaryContext {
    /// It is an object of its own, or a stream's.
    Own,
    /// It holds the things to draw.
    Drawn,
    /// Anywhere else.
    Within,
}

/// Every dictionary in an object; references lead to objects of their own.
fn each_dictionary<'a>(object: Object<'a>, mut visit: impl FnMut(&Dict<'a>, DictionaryContext)) {
    let mut open = vec![(object, DictionaryContext::Own)];
    while let Some((object, place)) = open.pop() {
        let dictionary = match object {
            Object::Dict(dictionary) => dictionary,
            Object::Stream(stream) => stream.dict().clone(),
            Object::Array(items) => {
                for item in items.raw_iter() {
                    if let MaybeRef::NotRef(inner) = item {
                        open.push((inner, DictionaryContext::Within));
                    }
                }
                continue;
            }
            _ => continue,
        };
        visit(&dictionary, place);
        for (key, value) in dictionary.entries() {
            let place = if key.as_ref() == b"XObject".as_slice() {
                DictionaryContext::Drawn
            } else {
                DictionaryContext::Within
            };
            if let MaybeRef::NotRef(inner @ (Object::Dict(_) | Object::Array(_))) = value {
                open.push((inner, place));
            }
        }
    }
}
