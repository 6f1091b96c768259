//! UN/EDIFACT (ISO 9735, syntax 1 to 4): an interchange as segments of elements of components.
//!
//! Bounds: [`MAX_BYTES`] of a file, [`MAX_SEGMENTS`], and [`MAX_COMPONENTS`] of a segment. Texts are
//! UTF-8, or else ISO 8859-1, which level A to C (UNOA, UNOB, UNOC) are written in; other sets of
//! characters beyond ASCII are refused.

use docmill_core::model::{OutcomeReason, TextLine};
use serde::{Deserialize, Serialize};

use crate::xml::{MAX_BYTES, value_lines};

/// Most segments of a file.
const MAX_SEGMENTS: usize = 200_000;
/// Most components of a segment.
const MAX_COMPONENTS: usize = 500;

/// Why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum EdifactError {
    /// Characters beyond ASCII of a set that is not read.
    #[error("EDIFACT in a set of characters that is not read")]
    Characters,
    /// The last segment has no end.
    #[error("EDIFACT that is damaged or cut off")]
    CutOff,
    /// Over one of the bounds.
    #[error("EDIFACT that is larger or fuller than is read")]
    TooLarge,
}

impl EdifactError {
    /// The stable word for it, as for XML.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Characters => "encoding",
            Self::CutOff => "malformed",
            Self::TooLarge => "too_large",
        }
    }

    /// The outcome of a document that is this file.
    pub(super) fn outcome_reason(self) -> OutcomeReason {
        match self {
            Self::TooLarge => OutcomeReason::TooLarge,
            Self::Characters | Self::CutOff => OutcomeReason::Corrupt,
        }
    }
}

/// The characters with a meaning (UNA, ISO 9735-1 §7).
#[derive(Debug, Clone, Copy)]
struct ServiceCharacters {
    component: char,
    element: char,
    decimal: char,
    release: char,
    terminator: char,
}

/// Those of a file without UNA.
const DEFAULTS: ServiceCharacters = ServiceCharacters {
    component: ':',
    element: '+',
    decimal: '.',
    release: '?',
    terminator: '\'',
};

/// A segment: its tag, and its elements with their components.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EdifactSegment {
    pub(super) tag: String,
    elements: Vec<Vec<String>>,
}

impl EdifactSegment {
    /// A component; the elements are counted from 0 behind the tag. Empty if it is left out.
    pub(super) fn get(&self, element: usize, component: usize) -> &str {
        self.elements
            .get(element)
            .and_then(|components| components.get(component))
            .map_or("", |text| text.trim())
    }

    /// The components of an element that are not empty.
    pub(super) fn components(&self, element: usize) -> impl Iterator<Item = &str> {
        let components = self.elements.get(element).into_iter().flatten();
        components.map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    /// The segment's values on one line.
    pub(super) fn values(&self) -> String {
        let values: Vec<&str> =
            (0..self.elements.len()).flat_map(|element| self.components(element)).collect();
        values.join(" ")
    }
}

/// The segments of a file, and the mark of its decimals.
#[derive(Debug)]
pub(super) struct EdifactFile {
    pub(super) segments: Vec<EdifactSegment>,
    pub(super) decimal: char,
}

/// Whether it begins as an interchange: `UNA`, six characters and `UNB`, or `UNB` alone.
pub fn is_edifact(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    match text.strip_prefix(b"UNA").and_then(|rest| rest.split_at_checked(6)) {
        Some((_, rest)) => rest.trim_ascii_start().starts_with(b"UNB"),
        None => text.starts_with(b"UNB+UNO"),
    }
}

impl EdifactFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Every [`EdifactError`].
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, EdifactError> {
        if bytes.len() > MAX_BYTES {
            return Err(EdifactError::TooLarge);
        }
        let text = decode_text(bytes)?;
        let text = text.trim_start_matches('\u{feff}').trim();
        let (marks, body) = match text.strip_prefix("UNA").and_then(|rest| rest.split_at_checked(6))
        {
            Some((marks, body)) => (service_characters(marks).ok_or(EdifactError::CutOff)?, body),
            None => (DEFAULTS, text),
        };
        Ok(Self { segments: split_segments(body, marks)?, decimal: marks.decimal })
    }

    /// The segments as the lines of a page, up to `most_words` words.
    pub(super) fn lines(&self, most_words: usize) -> Vec<TextLine> {
        let values = self.segments.iter().map(|segment| (segment.tag.as_str(), segment.values()));
        let values: Vec<(&str, String)> = values.collect();
        value_lines(values.iter().map(|(tag, values)| (*tag, values.as_str())), most_words)
    }
}

fn service_characters(marks: &str) -> Option<ServiceCharacters> {
    let marks: Vec<char> = marks.chars().collect();
    let [component, element, decimal, release, _, terminator] = marks.as_slice() else {
        return None;
    };
    Some(ServiceCharacters {
        component: *component,
        element: *element,
        decimal: *decimal,
        release: *release,
        terminator: *terminator,
    })
}

fn decode_text(bytes: &[u8]) -> Result<String, EdifactError> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.to_owned());
    }
    let has_latin = [&b"UNOA"[..], b"UNOB", b"UNOC"]
        .iter()
        .any(|level| memchr::memmem::find(bytes.get(..64).unwrap_or(bytes), level).is_some());
    if has_latin {
        Ok(bytes.iter().copied().map(char::from).collect())
    } else {
        Err(EdifactError::Characters)
    }
}

fn split_segments(
    text: &str,
    marks: ServiceCharacters,
) -> Result<Vec<EdifactSegment>, EdifactError> {
    let mut segments = Vec::new();
    let mut open = OpenSegment::default();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        // A blank as the release character stands for none.
        if c == marks.release && c != ' ' {
            open.component.push(chars.next().ok_or(EdifactError::CutOff)?);
        } else if c == marks.terminator {
            segments.push(std::mem::take(&mut open).close());
            if segments.len() > MAX_SEGMENTS {
                return Err(EdifactError::TooLarge);
            }
        } else if c == marks.element {
            open.end_element();
        } else if c == marks.component {
            open.end_component();
        } else if !matches!(c, '\r' | '\n') {
            open.component.push(c);
        }
        if open.count > MAX_COMPONENTS {
            return Err(EdifactError::TooLarge);
        }
    }
    // The last segment ends with its mark, or the file is cut off.
    let is_whole = open.elements.is_empty() && open.component.trim().is_empty();
    if is_whole && !segments.is_empty() { Ok(segments) } else { Err(EdifactError::CutOff) }
}

/// A segment while it is read.
#[derive(Default)]
struct OpenSegment {
    elements: Vec<Vec<String>>,
    element: Vec<String>,
    component: String,
    count: usize,
}

impl OpenSegment {
    fn end_component(&mut self) {
        self.count += 1;
        self.element.push(std::mem::take(&mut self.component));
    }

    fn end_element(&mut self) {
        self.end_component();
        self.elements.push(std::mem::take(&mut self.element));
    }

    fn close(mut self) -> EdifactSegment {
        self.end_element();
        let mut elements = self.elements.into_iter();
        let tag = elements.next().and_then(|tag| tag.into_iter().next()).unwrap_or_default();
        EdifactSegment { tag: tag.trim().to_owned(), elements: elements.collect() }
    }
}
