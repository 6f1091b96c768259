//! Signs and words at the beginning of a line that say what it is.

use super::frame::PlacedWord;

/// Signs that stand before an entry of a list and nowhere else.
const BULLETS: &[&str] = &[
    "•", "‣", "◦", "▪", "▫", "●", "○", "■", "·", "∙", "–", "—", "-", "*", "►", "➢", "✓", "»",
    "\u{f0b7}",
];
/// Characters that OCR reads for a bullet.
const SEEN_BULLETS: &[&str] = &[
    "e", "o", "°", "¢", "©", "®", "@", "+", "«", "»", "*", "-", "—", "–", ".", "•", "»", "=", "~",
];
const EMPTY_BOXES: &[&str] = &["☐", "□", "▢", "❏", "❑", "[ ]", "[]"];
const TICKED_BOXES: &[&str] = &["☑", "☒", "✅", "✔", "[x]", "[X]", "[✓]"];
/// Words that begin a caption, before its number, in the measured languages.
const CAPTIONS: &[&str] = &[
    "figure",
    "fig.",
    "table",
    "tab.",
    "abbildung",
    "abb.",
    "tabelle",
    "tableau",
    "figuur",
    "afb.",
    "afbeelding",
    "tabel",
    "figura",
    "tabla",
    "tabella",
    "tabela",
    "figur",
    "tabell",
    "rysunek",
    "rys.",
    "fot.",
    "foto",
    "chart",
    "diagram",
    "illustration",
    "ilustração",
    "ilustración",
    "quadro",
    "cuadro",
];
/// Words printed with a page number.
const PAGE_WORDS: &[&str] = &[
    "page", "p.", "seite", "s.", "pagina", "blz.", "página", "pág.", "pag.", "sida", "side",
    "strona", "str.", "of", "von", "sur", "de", "van", "di", "av", "af", "z", "/", "|", "-", "–",
    "—",
];

/// How a line begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineMarker {
    /// A bullet.
    Bullet,
    /// A number or letter with a full stop or bracket.
    Number,
    /// A box that may be ticked.
    Tick { checked: bool },
}

/// The marker that a line of words begins with, if anything follows it.
pub(super) fn marker_of(words: &[PlacedWord<'_>]) -> Option<LineMarker> {
    let first = words.first()?.text;
    if EMPTY_BOXES.contains(&first) {
        return Some(LineMarker::Tick { checked: false });
    }
    if TICKED_BOXES.contains(&first) {
        return Some(LineMarker::Tick { checked: true });
    }
    if words.len() < 2 {
        return None;
    }
    if is_bullet(first) {
        return Some(LineMarker::Bullet);
    }
    is_number_marker(first).then_some(LineMarker::Number)
}

/// `1.`, `2)`, `(3)`, `a)`, `b.`, `iv.`, but no heading's `1.2`.
fn is_number_marker(word: &str) -> bool {
    let (inner, closed) = match (word.strip_prefix('('), word.strip_suffix([')', '.'])) {
        (Some(_), _) => match word.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            Some(inner) => (inner, true),
            None => return false,
        },
        (None, Some(inner)) => (inner, true),
        (None, None) => (word, false),
    };
    let count = inner.chars().count();
    let number = count <= 2 && inner.chars().all(|c| c.is_ascii_digit());
    let letter = count == 1 && inner.chars().all(|c| c.is_ascii_lowercase());
    let roman = count <= 4 && inner.chars().all(|c| "ivx".contains(c));
    closed && count > 0 && (number || letter || roman)
}

/// Whether the only word is a mark before an entry, or may be what was read of one.
pub(super) fn is_lone_marker(words: &[PlacedWord<'_>]) -> bool {
    let [word] = words else { return false };
    is_bullet(word.text) || SEEN_BULLETS.contains(&word.text) || is_number_marker(word.text)
}

/// Whether a word is a sign before an entry.
pub(super) fn is_bullet(word: &str) -> bool {
    BULLETS.contains(&word)
}

/// Whether a column's line begins like an entry of a list.
pub(super) fn starts_with_bullet(words: &[PlacedWord<'_>]) -> bool {
    matches!(marker_of(words), Some(LineMarker::Bullet | LineMarker::Number))
}

/// Whether a word may be what was read of a bullet on a picture.
pub(super) fn may_be_bullet(words: &[PlacedWord<'_>]) -> bool {
    words.len() > 1 && words.first().is_some_and(|word| SEEN_BULLETS.contains(&word.text))
}

/// Whether a line begins as captions do: a word for a figure or table, and its number.
pub(super) fn starts_caption(words: &[PlacedWord<'_>]) -> bool {
    let [first, second, ..] = words else { return false };
    let number = second.text.trim_end_matches([':', '.', ',', '-', '–']);
    CAPTIONS.contains(&first.text.to_lowercase().as_str())
        && !number.is_empty()
        && number.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Whether words are the number of a page and nothing else.
pub(super) fn is_page_number(words: &[PlacedWord<'_>]) -> bool {
    let mut numbers = 0;
    let plain = words.len() <= 6
        && words.iter().all(|word| {
            let text = word.text.to_lowercase();
            let inner = text.trim_matches(['-', '–', '—', '.', '|', '[', ']', '(', ')']);
            let number = inner.split('/').all(|part| {
                !part.is_empty() && part.len() <= 4 && part.chars().all(|c| c.is_ascii_digit())
            });
            numbers += usize::from(number);
            number || inner.is_empty() || PAGE_WORDS.contains(&text.as_str())
        });
    plain && (1..=2).contains(&numbers)
}

/// Whether a line begins with the mark of a footnote: a short number or a sign.
pub(super) fn starts_footnote(words: &[PlacedWord<'_>]) -> bool {
    let Some(first) = words.first() else { return false };
    let mark: String =
        first.text.chars().take_while(|c| c.is_numeric() || "*†‡§¹²³()[]".contains(*c)).collect();
    !mark.is_empty() && mark.chars().count() <= 4 && words.len() > 2
}
