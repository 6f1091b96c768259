//! Lines that suggest a tip: `18% = $7.43   Total $52.34`. The amount was not paid, and is larger
//! than the total. A tip that was left has a line of its own.

use docmill_core::model::PageText;
use docmill_formats::notation::fold_text;

use super::vocabulary::vocabulary;

/// The lines of a page that only suggest a tip: a percentage under such words, or beside them.
pub(super) fn suggested_lines(page: &PageText) -> Vec<bool> {
    let mut under = false;
    let told = page.lines.iter().map(|line| {
        let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        let text = words.join(" ");
        let names = vocabulary().suggested_tip.is_within(&fold_text(&text));
        under = names || under && text.contains('%');
        under && text.contains('%')
    });
    told.collect()
}
