//! The address under a name, and how a line with a town is recognised.

use super::branch::is_branch_under;
use super::elsewhere::{self, is_part_of_address};
use super::postal_code::{ends_in_lettered_code, has_postal_code, is_town_first};
use super::province::town_with_province;
use super::{NameCandidate, NameSign, SupplierSearch, compact_name, is_next_line, tidy_name};
use crate::rules::certainty::ReadingSign;
use crate::rules::characters::{count_digits, count_letters, has_digit, is_digits};
use crate::rules::label_matches::LabelMatch;
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::{date, fold_text, printed_vat_id};

/// Lines of an address.
const MAX_LINES: usize = 6;
/// Lines with numbers of registers between name and street.
const MAX_REGISTERS_LINES: usize = 3;

/// Digits of a number in a register.
const MIN_REGISTER_DIGITS: usize = 5;

/// Parties side by side are further apart than this, in heights of a line.
pub(super) const PARTIES_APART: f32 = 12.0;

/// Marks between street, town and other details of a sender on one line.
const PARTS: [&str; 5] = [" - ", " – ", " • ", " · ", " | "];

/// Digits of the number of a house, or of house and flat.
const MAX_HOUSE_DIGITS: usize = 6;

/// Below this share of legible letters an address is faint.
const FAINT: f32 = 0.9;

/// The lines of an address.
pub(super) struct AddressLines {
    pub(super) lines: Vec<String>,
    /// One of them has a town with its postal code.
    pub(super) town: bool,
    /// The least confidence that one of them was read with.
    pub(super) least: f32,
}

impl AddressLines {
    pub(super) fn text(&self) -> String {
        self.lines.join(", ")
    }

    /// Whether a street is followed by a possible town without a postal code: `Mill Lane 12,
    /// Northtown`, or the other way round. Text behind the town does not belong to it.
    fn ends_in_town(&self) -> bool {
        let [line] = self.lines.as_slice() else { return false };
        is_street_and_named_town(line)
    }

    pub(super) fn signs(&self, found: ReadingSign) -> Vec<ReadingSign> {
        let mut signs = vec![found];
        let street = self.lines.len() > 1 && self.lines.iter().any(|line| is_street_line(line));
        // `Box 118, 597 22 Northtown`: a box replaces the street.
        let boxed = || self.town && self.lines.iter().any(|line| elsewhere::is_post_box(line));
        let full = street || self.lines.iter().any(|line| is_street_and_town(line)) || boxed();
        signs.extend(full.then_some(ReadingSign::AddressFull));
        signs.extend((self.least < FAINT).then_some(ReadingSign::AddressFaint));
        signs
    }
}

/// A number beside a word, as streets are written.
pub(super) fn is_street_line(line: &str) -> bool {
    let folded = fold_text(line);
    let words: Vec<&str> = folded.split(' ').collect();
    // `Driving since 1951`: the year that the house is as old as.
    let since = words.windows(2).any(|pair| match pair {
        [word, year] => vocabulary().since.has(word) && is_year(year),
        _ => false,
    });
    // `Camino Viejo s/n`: a street where houses have no numbers.
    let numberless = line.split([' ', ',']).any(|word| matches!(word, "s/n" | "S/N" | "s/nº"));
    let letters = count_letters(line);
    !since
        && (numberless || has_digit(line))
        && (letters >= 4 || is_short_street(line))
        && !is_town_first(line)
}

/// `1200 5th St`: a house's number, a street's, and its kind.
fn is_short_street(line: &str) -> bool {
    let folded = fold_text(line);
    let words: Vec<&str> = folded.split(' ').collect();
    let [house, .., last] = words.as_slice() else { return false };
    let is_house = house.len() <= MAX_HOUSE_DIGITS && is_digits(house);
    // `7705 Hwy 290 E`
    let road = words.windows(2).skip(1).any(|pair| match pair {
        [kind, number] => {
            vocabulary().highway.has(kind) && number.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    });
    let street = words.len() <= 4 && vocabulary().street_ending.has(last);
    is_house && (street || words.len() <= 5 && road)
}

/// `12 Mill Lane, Leeds LS1 4AB`: a street and its town on one line, parted by a comma.
pub(super) fn is_street_and_town(line: &str) -> bool {
    let parts: Vec<&str> = line.split(',').flat_map(|part| part.split(" - ")).collect();
    // The code may be behind its town: `Rīgas iela 44, Valmiera, LV-4201`.
    let town = (0..parts.len()).rev().find_map(|at| {
        let part = parts.get(at)?.trim();
        let before = at.checked_sub(1).and_then(|before| parts.get(before));
        if has_postal_code(part) {
            return Some(at);
        }
        has_postal_code(&format!("{} {part}", before?.trim())).then_some(at - 1)
    });
    // `Mill House, Station Road, Ely CB7 4ZZ`: houses with names.
    if town.is_some_and(|town| town > 0) && ends_in_lettered_code(line) {
        return true;
    }
    let before = town.and_then(|town| parts.get(..town)).unwrap_or_default().join(",");
    // `6720 Szeged, Kárász utca 9.`
    let first = parts.first().is_some_and(|part| is_town_first(&format!("{}, 1", part.trim())));
    let after = parts.get(1..).unwrap_or_default().join(",");
    is_street_line(before.trim()) || first && is_street_line(after.trim())
}

/// A street and a possible town, separated by a comma, either first; no postal code.
fn is_street_and_named_town(line: &str) -> bool {
    // `4. Cad. No:18 Nilüfer / Bursa`: district and province.
    let district = line.rsplit_once(" / ").is_some_and(|(street, province)| {
        let last = street.rsplit(' ').next().unwrap_or_default();
        is_capitalised_name(province) && is_capitalised_name(last) && is_street_line(street)
    });
    let parts: Vec<&str> = line.split(", ").collect();
    district
        || (1..parts.len()).any(|at| {
            let [before, after] = [parts.get(..at), parts.get(at..)].map(Option::unwrap_or_default);
            let (first, next) = (before.join(", "), after.join(", "));
            is_street_line(&first) && after.first().is_some_and(|part| is_capitalised_name(part))
                || at == 1 && is_capitalised_name(&first) && is_street_line(&next)
        })
}

fn is_capitalised_name(text: &str) -> bool {
    let letters = count_letters(text);
    // `гр. Смолян`
    letters >= 3
        && text.split(' ').any(|word| word.starts_with(char::is_uppercase))
        && !text.contains(char::is_numeric)
        && text.split(' ').count() <= 3
}

/// `Mill Lane 12 - 12345 Town - Tel. 0999 55 - VAT …`: street and town that begin a line of
/// details.
pub(super) fn parted_address(text: &str) -> Option<String> {
    PARTS.iter().chain(&[", "]).find_map(|separator| {
        let parts: Vec<&str> = text.split(separator).map(str::trim).collect();
        let [street, town, _, ..] = parts.as_slice() else { return None };
        if *separator == ", " && !has_register_details(&parts) {
            return None;
        }
        let holds = is_street_line(street) && !has_postal_code(street) && has_postal_code(town);
        let plain = !is_registry_line(street) && !is_registry_line(town);
        (holds && plain).then(|| format!("{street}, {town}"))
    })
}

/// Commas separate addresses as well: the next part has to be a number that no address has.
fn has_register_details(parts: &[&str]) -> bool {
    parts.len() > 3 && parts.iter().skip(2).any(|part| count_digits(part) > 6)
}

/// Whether a part of a line is a number in a register or with a tax office, as in footers behind
/// the issuer's name: `Amtsgericht Tannrode HRB 99911`, `Registered in England 09990001`.
pub(super) fn is_registry_line(text: &str) -> bool {
    vocabulary().registration.is_within(&fold_text(text))
}

impl SupplierSearch<'_> {
    /// The name with its second line, if that has the legal form.
    pub(super) fn full_name(&self, candidate: &NameCandidate<'_>) -> (String, usize) {
        let name = candidate.name.clone();
        if candidate.address.is_some() || self.has_legal_form(&name) {
            return (name, 0);
        }
        if let Some(form) = self.form_beside(candidate.cell) {
            return (format!("{name} {}", tidy_name(&form.joined_text())), 0);
        }
        let Some(below) = self.layout.cell_below(candidate.cell, 0.9) else {
            return (name, 0);
        };
        let more = tidy_name(&below.joined_text());
        let aligned = (below.area.x - candidate.cell.area.x).abs() < below.area.h;
        // A receipt sets a form wherever there is room.
        let form = (aligned
            || self.matches.style.one_column && self.is_continued_by(candidate.cell, below))
            && self.is_bare_form(below);
        let named =
            self.is_name(&more) && self.names_company(&more) && !more.contains(char::is_numeric);
        let belongs = aligned && named || form;
        // `ALDER WORKS` over `Alder Works Ltd`: the second line has it all.
        let again = compact_name(&more).starts_with(&compact_name(&name));
        match belongs {
            true if again => (more, 1),
            true => (format!("{name} {more}"), 1),
            false => (name, 0),
        }
    }

    /// The address that belongs to a name, and how it was found.
    pub(super) fn address_of(
        &self,
        best: &NameCandidate<'_>,
        joined: usize,
    ) -> (Option<String>, Vec<ReadingSign>) {
        let (address, signs) = self.nearest_address(best, joined);
        let boxed = address.as_ref().is_some_and(|address| elsewhere::is_post_box(address));
        match self.street_instead_of_box(best).filter(|_| boxed) {
            Some(street) => (Some(street), vec![ReadingSign::AddressOnLine]),
            None => (address, signs),
        }
    }

    fn nearest_address(
        &self,
        best: &NameCandidate<'_>,
        joined: usize,
    ) -> (Option<String>, Vec<ReadingSign>) {
        if let Some(address) = best.address.clone() {
            return (Some(address), vec![ReadingSign::AddressOnLine]);
        }
        let under = self.address_below(best.cell, joined);
        if let Some(found) = under.as_ref().filter(|found| found.town) {
            let mut signs = found.signs(ReadingSign::AddressUnder);
            // `Mill Quarter` over the town: houses without a number, in a block that is the
            // issuer's beyond doubt.
            let heads = best.has(NameSign::Letterhead);
            let told = heads || self.is_confirmed_by_block(best);
            signs.extend(told.then_some(ReadingSign::AddressWithContact));
            return (Some(found.text()), signs);
        }
        let elsewhere = self
            .address_elsewhere(best, joined)
            .or_else(|| self.labelled_address_reading(best.cell))
            .or_else(|| self.detached_address(best));
        let under = under.or_else(|| self.address_below_trade(best.cell, joined));
        let under = under.or_else(|| {
            let (address, line) =
                self.address_near(best.cell).filter(|_| !self.matches.style.one_column)?;
            Some(AddressLines { lines: vec![address], town: true, least: line.confidence })
        });
        match (elsewhere, under) {
            (None, Some(found)) if found.town => {
                (Some(found.text()), found.signs(ReadingSign::AddressUnder))
            }
            (Some((address, signs)), _) => (Some(address), signs),
            (None, Some(found)) if self.matches.style.shop_head || found.ends_in_town() => {
                let mut signs = found.signs(ReadingSign::AddressWithoutCode);
                let told = self.is_confirmed_by_block(best);
                signs.extend(told.then_some(ReadingSign::AddressWithContact));
                (Some(found.text()), signs)
            }
            (_, street) => {
                let seen = self.is_address_seen();
                // Nor is it absent where a street is under the name.
                let seen = seen || street.is_some();
                let seen = seen.then_some(ReadingSign::AddressSeen);
                (None, [ReadingSign::NoAddress].into_iter().chain(seen).collect())
            }
        }
    }

    fn labelled_address_reading(&self, name: &TextCell) -> Option<(String, Vec<ReadingSign>)> {
        let found = self.labelled_address(name)?;
        // Its label makes it an address, with or without a postal code.
        let full = is_street_and_town(&found) || is_street_and_named_town(&found);
        let full = full.then_some(ReadingSign::AddressFull);
        Some((found, [ReadingSign::AddressLabelled].into_iter().chain(full).collect()))
    }

    /// The address beside the name; but for receipts also farther from it.
    fn detached_address(&self, best: &NameCandidate<'_>) -> Option<(String, Vec<ReadingSign>)> {
        let mut found = self.address_beside(best.cell);
        if !self.matches.style.one_column {
            found = found
                .or_else(|| self.address_beside_mention(best))
                .or_else(|| self.address_down_column(best.cell))
                .or_else(|| self.address_of_footer())
                .or_else(|| self.address_of_block());
        }
        found.map(|found| (found.text(), found.signs(ReadingSign::AddressElsewhere)))
    }

    /// Whether telephone, mail, account or identifier of the issuer are under the name, or behind
    /// its label.
    fn is_confirmed_by_block(&self, best: &NameCandidate<'_>) -> bool {
        let told = [NameSign::Contact, NameSign::VatNear];
        best.has_any(&told)
            || best.has(NameSign::Labelled)
                && self.block_below(best.cell).iter().any(|line| self.is_contact(line))
    }

    /// The lines under the name, as long as they look like parts of an address.
    pub(super) fn address_below(&self, cell: &TextCell, skip: usize) -> Option<AddressLines> {
        let mut lines: Vec<String> = Vec::new();
        let mut least = 1.0_f32;
        let (mut at, mut passed) = (cell, 0);
        let mut branch: Option<String> = None;
        for line in 0..MAX_LINES + skip {
            let below = self.layout.rows_from(at).filter(|c| self.is_continued_by(at, c));
            let next = below.min_by(|a, b| a.area.y.total_cmp(&b.area.y));
            let next = next.or_else(|| self.line_after_gap(at, line == passed));
            let next = next.or_else(|| self.parted_line_below(at).first());
            let Some(next) = next else { break };
            at = next;
            if line < skip {
                continue;
            }
            let text = self.without_label(next, self.line_text(next));
            if let Some(address) = parted_address(&text).filter(|_| lines.is_empty()) {
                return Some(AddressLines { lines: vec![address], town: true, least });
            }
            let form = self.matches.style.shop_head && self.is_bare_form(next);
            if lines.is_empty()
                && passed < MAX_REGISTERS_LINES
                && (form
                    || is_branch_under(next, cell)
                    || self.is_register(next, &text)
                    || is_tagline(&text)
                    || (passed > 0 && self.matches.style.letter && self.is_detail(next, &text)))
            {
                passed += 1;
                continue;
            }
            // `Southport-2`, `Owned by Kettle Ltd`: a text over a register number is no street, if
            // a street with its town follows.
            let digits = count_digits(&text);
            // Digits alone are a telephone's.
            let register = self.matches.style.shop_head
                && digits >= MIN_REGISTER_DIGITS
                && text.contains(char::is_alphabetic)
                && self.is_register(next, &text)
                && !has_postal_code(&text);
            if register && lines.len() == 1 && passed < MAX_REGISTERS_LINES && branch.is_none() {
                passed += 1;
                branch = lines.pop();
                continue;
            }
            if self.is_no_address(next, &text) {
                // `Owner: Ida Kettle` between a shop's name and its street.
                let owner = self.matches.style.shop_head && lines.is_empty() && passed == 0;
                if owner && !text.contains(char::is_numeric) && !self.is_contact(next) {
                    passed += 1;
                    continue;
                }
                break;
            }
            lines.push(text);
            least = least.min(next.confidence);
            let last = lines.last().is_some_and(|line| !line.contains(char::is_numeric));
            if (last && find_town(&lines).is_some()) || lines.len() == MAX_LINES {
                break;
            }
        }
        if let Some(line) = branch.filter(|_| find_town(&lines).is_none()) {
            lines = vec![line];
        }
        self.address_of_lines(lines, least)
    }

    /// The address of lines that look like parts of one: up to the town, or its substitute.
    fn address_of_lines(&self, mut lines: Vec<String>, least: f32) -> Option<AddressLines> {
        if let Some(town) = town_of(&lines).or_else(|| town_with_province(&lines)) {
            let more = lines.get(town + 1).is_some_and(|line| follows_town(line, town));
            lines.truncate(town + 1 + usize::from(more));
            leave_out_trade(&mut lines);
            return Some(AddressLines { lines, town: true, least });
        }
        // A street at least; the end of the block bounds the rest.
        let one =
            lines.first().is_some_and(|line| line.contains(", ")) && !self.matches.style.one_column;
        let plain = lines.get(1).is_none_or(|line| !line.contains(char::is_numeric));
        lines.truncate(if one && plain { 1 } else { 4 });
        // `Bridge Street, Westport, Co. Mayo`: houses have no numbers.
        let named =
            self.matches.style.shop_head && lines.first().is_some_and(|line| is_named_place(line));
        if named {
            lines.truncate(1);
        }
        let street = named || lines.first().is_some_and(|line| is_street_line(line));
        street.then_some(AddressLines { lines, town: false, least })
    }

    /// The address where one line with the trade or a motto is between it and the name.
    fn address_below_trade(&self, name: &TextCell, joined: usize) -> Option<AddressLines> {
        let block = self.block_below(name);
        let trade = block.get(joined).copied().filter(|_| !self.matches.style.shop_head)?;
        let text = trade.joined_text();
        if is_street_line(&text) {
            return None;
        }
        let found = match block.is_empty() {
            true => self.address_below(trade, 0)?,
            false => self.address_below(name, joined + 1)?,
        };
        found.ends_in_town().then_some(found)
    }

    /// Street and town in the next column, beginning beside the name: logo and name left, the
    /// address right.
    pub(super) fn address_beside(&self, name: &TextCell) -> Option<AddressLines> {
        let right = self.layout.right_of(name.index).iter();
        right.filter(|cell| !self.is_customer(cell)).find_map(|cell| {
            let street = self.line_text(cell);
            let below = self.layout.rows_from(cell).find(|other| is_next_line(cell, other))?;
            let town = self.line_text(below);
            let holds = is_street_line(&street)
                && has_postal_code(&town)
                && !self.is_no_address(cell, &street)
                && !self.is_no_address(below, &town)
                && !self.layout.is_on_amount_row(cell);
            let least = cell.confidence.min(below.confidence);
            holds.then(|| AddressLines { lines: vec![street, town], town: true, least })
        })
    }

    /// Whether a line is a number in a register or a day, as between name and street.
    fn is_register(&self, line: &TextCell, text: &str) -> bool {
        let digits = count_digits(text);
        let letters = count_letters(text);
        let marked = line.folded.iter().take(3).any(|(word, _)| vocabulary().register.has(word));
        let code = text.len() <= 16 && letters <= 4 && !is_short_street(text);
        // A gap may part the number from its label.
        let dated = self.matches.style.shop_head && !date::find_dates(text).is_empty();
        // `Trade licence no. 447118`
        let mut last = line.folded.iter().rev().map(|(word, _)| word.as_str());
        let long = last.next().is_some_and(|word| word.len() >= 5 && is_digits(word));
        let numbered = long && last.next().is_some_and(|word| vocabulary().number_mark.has(word));
        dated
            || numbered
            || digits >= MIN_REGISTER_DIGITS && (marked || code)
            || marked && digits == 0 && line.words.len() <= 3
    }

    /// `Regime: general` under the number of a register: a label with its value that is no address.
    fn is_detail(&self, line: &TextCell, text: &str) -> bool {
        text.split_once(": ").is_some_and(|(label, _)| !label.contains(char::is_numeric))
            && !self.has_contact_details(line)
            && !is_street_and_town(text)
    }

    /// A line's text without a label for addresses and its colon.
    fn without_label(&self, line: &TextCell, text: String) -> String {
        let labelled = self.matches.in_cell(line.index).any(|label_match| {
            label_match.words.start == 0 && label_match.field == "party_address"
        });
        match text.split_once(": ").filter(|_| labelled && self.matches.style.letter) {
            Some((_, address)) => address.to_owned(),
            None => text,
        }
    }

    /// Whether a line under a name begins something else than an address.
    pub(super) fn is_no_address(&self, line: &TextCell, text: &str) -> bool {
        let labelled = self.matches.in_cell(line.index).any(|label_match| {
            label_match.words.start == 0
                && !is_part_of_address(label_match, text)
                && !is_within_text(label_match, line)
                // `Suite 3, 41 Regent Parade`: a word of sentences, but in no sentence.
                && (label_match.field != "prose" || !has_digit(text))
        });
        let phone = text.split_whitespace().any(|word| {
            let digits = count_digits(word);
            digits >= 9 && word.chars().all(|c| !c.is_alphabetic())
        });
        // `NO 918 442 065 MVA`
        let words: Vec<&str> = text.split(' ').collect();
        let identifier = printed_vat_id::find_at(&words).is_some();
        // `PIN: P051… Tel: +254 …`
        let contact =
            (self.matches.style.shop_head || text.contains(": ")) && self.is_contact(line);
        // `Verwaltungs-GmbH, HRB 5550`
        let court = vocabulary().court.is_within(&fold_text(text)) && !is_street_and_town(text);
        labelled
            || phone
            || court
            || identifier
            || contact
            || text.contains(['@', '€', '£', '$'])
            || text.contains("www.")
            || text.contains("://")
    }

    /// The line with the town, where an empty line parts it from the street, or the one that a
    /// wider gap parts from the name.
    fn line_after_gap<'s>(&'s self, street: &TextCell, name: bool) -> Option<&'s TextCell> {
        let mut near = self.layout.rows_from(street);
        near.find(|cell| {
            let gap = cell.area.y - street.area.bottom();
            // Under a name in large letters no wider a gap than under others.
            let height = street.area.h.min(1.2 * cell.area.h);
            cell.page == street.page
                && (0.0..1.8 * height).contains(&gap)
                && (cell.area.x - street.area.x).abs() < 0.6 * street.area.h
                && (name || has_postal_code(&cell.joined_text()))
        })
    }

    /// `Address: Street 1` with the town below, in the section of the name.
    pub(super) fn labelled_address(&self, name: &TextCell) -> Option<String> {
        let near = |label_match: &&LabelMatch| {
            let cell = self.matches.cell_of(label_match).filter(|_| label_match.words.start == 0);
            cell.is_some_and(|cell| {
                cell.page == name.page && (name.row..name.row + 6).contains(&cell.row)
            })
        };
        // Two parties side by side: the address of the name is under it.
        let aside = |label_match: &LabelMatch| {
            let x = self.matches.cell_of(label_match).map_or(0.0, |cell| cell.area.x);
            (x - name.area.x).abs() > PARTIES_APART * name.area.h
        };
        let matches = self.matches.of_field("party_address").filter(near);
        let label_match = matches.min_by_key(|label_match| aside(label_match))?;
        let beside = self.matches.value_candidates(label_match);
        let first = beside.first()?;
        let street = tidy_name(&first.value_words().join(" "));
        // `Str. Morii 14, Northtown`: a street, its number and the town.
        let whole = first.inline || !first.below;
        if whole && is_street_line(&street) && street.contains(", ") {
            return Some(street);
        }
        self.labelled_town(first.cell).map(|town| format!("{street}, {town}"))
    }
}

/// Which of the lines has the town: the last with a postal code. A number in front of the first
/// line is a house's.
fn town_of(lines: &[String]) -> Option<usize> {
    let town = lines.iter().rposition(|line| has_postal_code(line))?;
    let house = town == 0
        && lines.first().is_some_and(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        && lines.first().is_some_and(|line| {
            let rest = line.split_once(' ').map_or("", |(_, rest)| rest);
            // `6500 Baja` over `Szent László utca 33.`
            let over = lines.get(1).is_some_and(|next| is_town_first(&format!("{line}, {next}")));
            !has_postal_code(rest) && !is_town_first(line) && !over
        });
    (!house).then_some(town)
}

/// Street, town and county without numbers: three names or more with commas between.
fn is_named_place(line: &str) -> bool {
    let parts: Vec<&str> = line.split(", ").collect();
    parts.len() > 2
        && parts.iter().all(|part: &&str| {
            part.starts_with(char::is_uppercase)
                && part.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '.' | '-' | '\''))
        })
}

fn find_town(lines: &[String]) -> Option<usize> {
    town_of(lines).or_else(|| town_with_province(lines))
}

/// Whether the line under that of the town, which is the `town`th, is its country; or its street:
/// `6500 Baja` over `Szent László utca 33.`
fn follows_town(line: &str, town: usize) -> bool {
    let country = !line.contains(char::is_numeric) && line.len() <= 25;
    let street = town == 0
        && is_street_line(line)
        && !has_postal_code(line)
        && !is_registry_line(line)
        && count_digits(line) <= MAX_HOUSE_DIGITS;
    country || street
}

/// Over a line with street and town, a text without a number is a trade or a motto: `Avocats à la
/// Cour`.
fn leave_out_trade(lines: &mut Vec<String>) {
    let whole = lines.get(1).is_some_and(|line| is_street_and_town(line));
    let plain = lines.first().is_some_and(|line| !line.contains(char::is_numeric));
    if whole && plain {
        lines.remove(0);
    }
}

/// `Médecin expert agréé`, `Caterers since 1968`: a trade or a slogan under the name.
pub(super) fn is_tagline(text: &str) -> bool {
    let folded = fold_text(text);
    let words: Vec<&str> = folded.split(' ').collect();
    let since = match words.as_slice() {
        [.., word, year] => vocabulary().since.has(word) && is_year(year),
        _ => false,
    };
    since || !text.contains(char::is_numeric) && vocabulary().profession.is_within(&folded)
}

/// `Seller Street 5` is no seller: a party's heading is alone or ends in a colon.
fn is_within_text(label_match: &LabelMatch, cell: &TextCell) -> bool {
    let party =
        matches!(label_match.field.as_str(), "supplier" | "customer" | "party_name" | "payee");
    let last = cell.words.get(label_match.words.end.saturating_sub(1));
    let closed = last.is_some_and(|word| word.ends_with(':'))
        || cell.words.get(label_match.words.end).is_some_and(|word| word == ":");
    party && !closed && label_match.words.end < cell.words.len()
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && is_digits(word)
}
