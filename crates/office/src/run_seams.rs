//! Detects numbers with digits in different styles: a style may hide, raise, shrink or move part of
//! a number in ways that are not checked here.
//!
//! Readers insert a seam between runs of different style. A seam within a number makes the page
//! doubtful, since documents print numbers in one style. So does a drawing adjacent to a number,
//! which may be a sign or a digit of it.

use docmill_formats::xml::XmlNode;

/// Seam between runs of different style, removed when the block is added. Not a Unicode character.
const SEAM_MARK: char = '\u{fdd0}';
/// Marks an inline drawing, removed likewise.
const DRAWING_MARK: char = '\u{fdd1}';
/// Characters within a number, besides digits.
const NUMBER_SIGNS: &str = ".,-'\u{2212}\u{2013}()";

/// The style of the last run.
#[derive(Debug)]
pub(crate) struct LastLook<T>(Option<T>);

impl<T> Default for LastLook<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> LastLook<T> {
    /// Adds a seam if the style changes.
    pub(crate) fn begin(&mut self, look: T, text: &mut String) {
        let is_same = self.0.as_ref() == Some(&look);
        if !is_same && !text.is_empty() && !text.ends_with(char::is_whitespace) {
            text.push(SEAM_MARK);
        }
        self.0 = Some(look);
    }
}

/// Adds the mark of an inline drawing after `text`.
pub(crate) fn mark_drawing(text: &mut String) {
    text.push(DRAWING_MARK);
}

/// Whether a text with marks shows no letter.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_mark(c))
}

/// The last letter or space of a text with marks.
pub(crate) fn last_letter(text: &str) -> Option<char> {
    text.trim_end_matches(is_mark).chars().next_back()
}

/// Whether the last character of a text with marks is a space.
pub(crate) fn ends_with_space(text: &str) -> bool {
    text.trim_end_matches(is_mark).ends_with(char::is_whitespace)
}

fn is_mark(c: char) -> bool {
    matches!(c, SEAM_MARK | DRAWING_MARK)
}

/// Whether a character may be within a number.
pub(crate) fn is_number_part(c: char) -> bool {
    c.is_numeric() || NUMBER_SIGNS.contains(c)
}

/// The properties of a run as text, but for those named in `even`.
pub(crate) fn look_of(properties: XmlNode<'_, '_>, even: &[&str]) -> String {
    let mut look = String::new();
    let parts = properties.children().filter(|it| !even.contains(&it.tag_name().name()));
    let nodes = std::iter::once(properties).chain(parts.flat_map(|part| part.descendants()));
    for node in nodes.filter(|it| it.is_element()) {
        let attributes = node.attributes().filter(|it| !even.contains(&it.name()));
        look.push_str(if node == properties { "" } else { node.tag_name().name() });
        attributes.for_each(|it| look.extend([" ", it.name(), "=", it.value(), ";"]));
    }
    look
}

/// Removes the marks of a text. Returns whether a seam was within a number or a drawing adjacent to
/// one.
pub(crate) fn close_seams(text: &mut String) -> bool {
    if !text.contains(is_mark) {
        return false;
    }
    let is_uneven = text.match_indices(is_mark).any(|(at, mark)| {
        let (before, behind) = text.split_at(at);
        let before = before.trim_end_matches(is_mark).chars().next_back();
        let behind = behind.trim_start_matches(is_mark).chars().next();
        let is_at_number = [before, behind].into_iter().flatten().any(char::is_numeric);
        let are_parts = before
            .zip(behind)
            .is_some_and(|(one, other)| is_number_part(one) && is_number_part(other));
        is_at_number && (are_parts || mark.contains(DRAWING_MARK))
    });
    text.retain(|c| !is_mark(c));
    is_uneven
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_several_looks_is_uneven() {
        #[rustfmt::skip]
        let table = [
            ("a digit before it",    &[("9", 1), ("1,100.00", 2)][..],              true),
            ("a sign before it",     &[("-", 1), ("1,100.00", 2)],                  true),
            ("decimals of its own",  &[("1,100", 1), (".00", 2)],                   true),
            ("of one look",          &[("1,1", 1), ("00.00", 1)],                   false),
            ("behind a currency",    &[("EUR", 1), ("1,100.00", 2)],                false),
            ("behind a space",       &[("9 ", 1), ("1,100.00", 2)],                 false),
            ("before a letter",      &[("1,100.00", 1), ("a", 2)],                  false),
            ("a word",               &[("To", 1), ("tal", 2)],                      false),
        ];
        for (name, parts, expected) in table {
            let (mut text, mut last) = (String::new(), LastLook::default());
            for (part, look) in parts {
                last.begin(look, &mut text);
                text.push_str(part);
            }
            assert_eq!(close_seams(&mut text), expected, "{name}");
            let plain: String = parts.iter().map(|(part, _)| *part).collect();
            assert_eq!(text, plain, "{name}");
        }
    }

    #[test]
    fn a_drawing_at_a_number_makes_it_uneven() {
        for (before, behind, expected) in [
            ("GBP ", "1,100.00", true),
            ("GBP 1,100.00", "", true),
            ("GBP 1,", "100.00", true),
            ("GBP ", " 1,100.00", false),
            ("Total", " 1,100.00", false),
        ] {
            let mut text = before.to_owned();
            mark_drawing(&mut text);
            assert_eq!(ends_with_space(&text), before.ends_with(' '));
            text.push_str(behind);
            assert_eq!(close_seams(&mut text), expected, "{before}|{behind}");
            assert_eq!(text, [before, behind].concat());
        }
    }
}
