//! Lines that suggest what to leave as a tip: `18% = $7.43   Total $52.34`. Nobody paid that, and it is larger than the
//! total. A tip that was left stands in a line of its own and is no business of this.

use docmill_core::model::PageText;
use docmill_formats::notation::fold_text;

use super::vocabulary::vocabulary;

/// Which lines of a page only suggest a tip: those with a percentage under words that say so, or beside them.
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
