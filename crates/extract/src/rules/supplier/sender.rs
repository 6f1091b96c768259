//! Senders on one line: a company at the foot of a page, or a name with its address behind it.

use super::address::is_registry_line;
use super::postal_code::has_postal_code;
use super::{SupplierSearch, tidy_name};
use crate::rules::characters::count_letters;
use crate::rules::label_matches::LabelMatch;
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::fold_text;

/// Words of a line that is more than a name, and of the name that it begins with.
const LINE_OF_COMPANY: usize = 6;
const MAX_WORDS_OF_COMPANY: usize = 8;

/// Letters of a form that is no abbreviation.
const WHOLE_FORM: usize = 5;

/// Marks between name, street and town on a sender line.
const SEPARATORS: [&str; 8] = [" - ", " – ", " • ", " · ", " | ", " * ", " / ", ", "];

/// Lines of a page's end.
const LAST_LINES: usize = 3;

/// Letters of a heading are larger than those under it by this factor.
const HEADING: f32 = 1.25;

impl<'a> SupplierSearch<'a> {
    /// The company that a long line at the foot of a page begins with: `Example Ltd. Registered in
    /// Leeds. Directors: …`, its name up to the legal form.
    pub(super) fn company_of_line(&self, cell: &TextCell) -> Option<String> {
        let foot = self.layout.depth_on_page(cell) >= 0.5 || self.is_closing(cell);
        if cell.words.len() <= LINE_OF_COMPANY || !foot {
            return None;
        }
        let most = MAX_WORDS_OF_COMPANY.min(cell.words.len());
        let name = (2..=most).find_map(|end| {
            let name = tidy_name(&cell.words_in(0..end).join(" "));
            (self.ends_in_legal_form(&name) && self.is_name(&name)).then_some((name, end))
        });
        // `Example GmbH & Co. KG`: the whole form.
        let (name, end) = name?;
        // The space under the amounts of a page that ends early has sentences as well.
        let parted = |last: &String, next: &String| {
            last.ends_with(['.', ',', ';']) || !next.starts_with(char::is_alphabetic)
        };
        let ends = end.checked_sub(1).and_then(|last| cell.words.get(last..=end));
        // `ab 5 Tagen`: a lower-case text is a word.
        let apart = matches!(ends, Some([last, next]) if parted(last, next) && !is_small(last));
        if self.layout.depth_on_page(cell) < 0.5 && !apart {
            return None;
        }
        let longer = (end + 1..=most.min(end + 3)).rev().find_map(|last| {
            let rest = fold_text(&cell.words_in(end..last).join(" "));
            let rest: Vec<&str> = rest.split(' ').collect();
            let longer = tidy_name(&cell.words_in(0..last).join(" "));
            // `Kettle Ltd. Company registered in Leeds`: behind a form that is a word.
            let form = self.labels.has_label_at("legal_form", &rest) && rest != ["company"];
            (form && self.ends_in_legal_form(&longer)).then_some(longer)
        });
        let name = longer.unwrap_or(name);
        // `Kettle Limited. Registered …`: the point ends a sentence.
        let whole = name.rsplit(' ').next().is_some_and(|last| count_letters(last) >= WHOLE_FORM);
        Some(if whole { name.trim_end_matches('.').to_owned() } else { name })
    }

    /// `Sold by: Example Ltd, Mill Lane 5, Leeds LS1 4AB`: name and address behind a label.
    pub(super) fn sender_behind(
        &self,
        label_match: &LabelMatch,
    ) -> Option<(String, Option<String>, &'a TextCell)> {
        let cell = self.matches.cell_of(label_match)?;
        let last = cell.words.get(label_match.words.end.checked_sub(1)?)?;
        let text = cell.words.get(label_match.words.end..)?.join(" ");
        let parts: Vec<&str> = text.split(", ").collect();
        let (name, address) = self.sender_of(&parts, cell).filter(|_| last.ends_with(':'))?;
        self.has_legal_form(&name).then_some((name, Some(address), cell))
    }

    /// `Name - Street 1 - 12345 Town`, in one cell or over a row of separated cells: the name, and
    /// the rest as an address.
    pub(super) fn sender_parts(&self, cell: &TextCell) -> Option<(String, String)> {
        let text = cell.joined_text();
        if let Some(found) = SEPARATORS.iter().find_map(|separator: &&str| {
            self.sender_of(&text.split(*separator).collect::<Vec<_>>(), cell)
        }) {
            return Some(found);
        }
        // `Example Farm - Mill Lane 5, 80333 Northtown`, in the last lines of a page.
        let mixed = || {
            let (name, rest) = text.split_once(" - ")?;
            let parts: Vec<&str> = [name].into_iter().chain(rest.split(", ")).collect();
            self.sender_of(&parts, cell)
        };
        if let Some(found) =
            Some(()).filter(|()| self.is_in_last_lines(cell)).and_then(|()| mixed())
        {
            return Some(found);
        }
        let cells = self.layout.row_cells(cell.row);
        let from = cells.iter().skip_while(|other| other.area.x < cell.area.x);
        let from: Vec<&TextCell> = from.collect();
        let close = from.windows(2).take_while(|pair| match pair {
            [a, b] => b.area.x - a.area.right() < 3.0 * a.area.h,
            _ => false,
        });
        let count = close.count() + 1;
        let texts: Vec<String> =
            from.iter().take(count.min(4)).map(|cell| cell.joined_text()).collect();
        let parts: Vec<&str> = texts.iter().map(String::as_str).collect();
        self.sender_of(&parts, cell)
    }

    /// Whether the cell is in one of the last lines of its page, under all of its amounts: pages
    /// that end early have their foot there.
    pub(super) fn is_closing(&self, cell: &TextCell) -> bool {
        let amounts = self.last_amounts.get(cell.page).copied().flatten();
        self.matches.style.letter
            && amounts.is_some_and(|row| cell.row > row)
            && self.is_in_last_lines(cell)
    }

    /// Whether the cell is in one of the last lines of its page.
    pub(super) fn is_in_last_lines(&self, cell: &TextCell) -> bool {
        let last = self.last_rows.get(cell.page).copied().flatten();
        last.is_some_and(|row| cell.row + LAST_LINES > row)
    }

    fn sender_of(&self, parts: &[&str], cell: &TextCell) -> Option<(String, String)> {
        let (name, rest) = parts.split_first().filter(|(_, rest)| rest.len() >= 2)?;
        let rest: Vec<&str> = rest
            .iter()
            .map(|part| before_registration(part.trim()))
            .take_while(|part| !is_registry_line(part) && !is_account_line(part))
            .take_while(|part| !self.is_bare_seat(part))
            .take(4)
            .collect();
        let town = rest.iter().take(3).rposition(|part| has_postal_code(part))?;
        // `Bath, BA1 5QT, England`: the code is that of the town before it.
        let bare = rest.first().is_some_and(|part| !part.split(' ').any(is_word));
        if town == 0 && bare && !self.has_legal_form(name) {
            return None;
        }
        // `Example SAS au capital de 50 000 €`, `Example Ltd. Registered office: Mill Lane`.
        let name = name.split(" au capital ").next().unwrap_or(name);
        let (name, office) = match self.split_at_registered_office(name) {
            (name, None) => self.part_behind_form(&name),
            parted => parted,
        };
        let name = tidy_name(&name);
        let company = self.has_legal_form(&name);
        // `The Old Mill, Mill Lane, Town AB1 2CD` right under the first text of the page, a name, is
        // its address alone.
        let mut cells = self.layout.rows_before(cell);
        let headed = cells.any(|above| {
            let name = tidy_name(&above.joined_text());
            let first = above.index == 0 && self.is_name(&name);
            let gap = cell.area.y - above.area.bottom();
            let near =
                (above.area.x - cell.area.x).abs() < 0.6 * cell.area.h && gap < 2.5 * cell.area.h;
            first && near
        });
        // `The Forge, Mill Lane, Ely CB7 4ZZ` further down: a house without a number.
        let house = !company
            && rest.iter().take(town).all(|part| !part.contains(char::is_numeric))
            && rest.len() > 2
            && self.is_under_large_name(cell);
        // `Mill Road, 12, 82216 Town`: a street, parted from its number.
        let street = !company && rest.first().is_some_and(|part| is_house_number(part));
        let plain = company || !(headed || house || name.contains(char::is_numeric));
        let mut parts = rest.iter().take(town + 1).copied().chain(office.as_deref());
        let numbered = parts.any(|part| part.contains(char::is_numeric));
        if !plain || street || !numbered || asks_for_payment(&name) {
            return None;
        }
        let upto = rest.get(..rest.len().min(town + 2)).unwrap_or_default();
        let kept = upto
            .iter()
            .enumerate()
            .filter(|(at, part)| *at <= town || !part.contains(char::is_numeric))
            .map(|(_, part)| *part);
        let kept: Vec<&str> = office.as_deref().into_iter().chain(kept).collect();
        Some((name, kept.join(", ")))
    }
}

impl SupplierSearch<'_> {
    /// `Sitz Northtown`: a registered seat without a street, followed by its register.
    fn is_bare_seat(&self, part: &str) -> bool {
        let folded = fold_text(part);
        let words: Vec<&str> = folded.split(' ').collect();
        self.labels.has_label_at("registered_office", &words) && !part.contains(char::is_numeric)
    }

    /// `Example Ltd. Unit 3`: a sentence ends behind the legal form, and the address begins.
    fn part_behind_form(&self, text: &str) -> (String, Option<String>) {
        let mut ends = text.match_indices(". ");
        let parted = ends.find_map(|(at, _)| {
            let (name, rest) = (text.get(..at)?, text.get(at + 2..)?);
            // `Example Co. Ltd`, `J. B. Example`: the name goes on.
            let whole = self.ends_in_legal_form(name) && !self.has_legal_form(&format!("x {rest}"));
            // `Example S.r.l. Unit 3`: the point is the form's as well.
            let pointed = name.rsplit(' ').next().is_some_and(|last| last.contains('.'));
            let name = text.get(..at + usize::from(pointed))?;
            whole.then(|| (name.to_owned(), Some(rest.to_owned())))
        });
        parted.unwrap_or_else(|| (text.to_owned(), None))
    }

    /// Whether a name in larger letters heads the page in one of the lines above.
    fn is_under_large_name(&self, cell: &TextCell) -> bool {
        let mut above = self.layout.cells.iter().take_while(|above| above.row < cell.row);
        above.any(|above| {
            above.page == cell.page
                && cell.row - above.row <= LAST_LINES
                && above.area.h > HEADING * cell.area.h
                && above.overlap_x(cell) > 0.0
                && self.is_name(&tidy_name(&above.joined_text()))
        })
    }
}

/// Whether a part of a line is an account: `sort code 20-44-91`, `Kontonr. 4418820917`.
fn is_account_line(part: &str) -> bool {
    vocabulary().account.is_within(&fold_text(part))
}

/// Whether a text is a sentence that asks for money: `Please pay by BACS to Alder Ltd`. A company
/// may have such a name with a capital letter.
fn asks_for_payment(text: &str) -> bool {
    let small = text.split(' ').filter(|word| word.starts_with(char::is_lowercase));
    let mut words = small.map(fold_text);
    words.any(|word| vocabulary().paying.iter().any(|front| word.starts_with(front)))
}

/// The text before details of a register, a tax or a telephone: `Limerick V94 X2Y3. Registered in
/// Ireland`, `12100 Millau - TVA FR12…`, `Ely CB7 4ZZ. Tel 555 0118`.
fn before_registration(part: &str) -> &str {
    let ends = [". ", " - ", " – ", " · ", " | "];
    let mut ends = ends.iter().flat_map(|end| part.match_indices(*end));
    let at = ends.find(|(at, end)| {
        let tail = part.get(at + end.len()..).unwrap_or_default();
        let first = tail.split(' ').next().unwrap_or_default();
        is_registry_line(first) || vocabulary().reach.has(&fold_text(first))
    });
    at.and_then(|(at, _)| part.get(..at)).unwrap_or(part)
}

/// Whether a word has small letters alone.
fn is_small(word: &str) -> bool {
    word.chars().all(char::is_lowercase)
}

/// Whether a word is one of letters, no code.
fn is_word(word: &str) -> bool {
    count_letters(word) >= 3 && !word.contains(char::is_numeric)
}

/// Whether a part of an address is a house's number: `12`, `31 a`, `77, 3º B`.
fn is_house_number(part: &str) -> bool {
    let digits = part.chars().take_while(char::is_ascii_digit).count();
    let letters = count_letters(part);
    (1..=4).contains(&digits) && letters <= 2
}
