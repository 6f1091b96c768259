//! Signs of a text's position and form.

use super::address::{is_registry_line, is_street_and_town, is_street_line, is_tagline};
use super::domain::domain_name;
use super::name::begins_with_title;
use super::postal_code::{ends_in_lettered_code, has_postal_code};
use super::{NameCandidate, NameSign, SupplierSearch, compact_name, is_next_area, tidy_name};
use crate::rules::FoundValue;
use crate::rules::characters::{count_digits, count_letters, has_digit};
use crate::rules::label_matches::is_side_note;
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::{FoldedWords, vocabulary};
use crate::rules::weighing::add_sign;
use docmill_formats::notation::{date, fold_text};
use docmill_gate::kinds::FieldRole;

/// Headings of one kind that are looked at.
pub(super) const MAX_HEADINGS: usize = 60;

/// A word of this length in a domain is no accident: `Bruun & Co` at `bruun-land.dk`.
const DOMAIN_WORD: usize = 5;

/// A shorter domain is within names by accident: `uxr` in `UX Research`.
const MIN_DOMAIN_LETTERS: usize = 4;

/// Names in addresses that are kept.
const MAX_DOMAINS: usize = 60;

/// Lines below a name that belong to its block.
const BLOCK: usize = 11;

/// Rows under a name in large letters that may hold its address.
const ROWS_UNDER_LARGE: usize = 3;

/// Its letters are larger than those of the address by this factor.
const LARGER: f32 = 1.25;

/// Small words of a sentence that no name has.
const SENTENCE: usize = 4;

/// Letters of the shortest title of a document that is looked for within a heading.
const MIN_TITLE_LETTERS: usize = 6;

/// Below this share of legible letters a text is faint.
const FAINT: f32 = 0.6;

/// The share of a line's height that another may cover: boxes of slanting lines overlap a little.
const TANGLED: f32 = 0.5;

/// Cells of a row in which a part of an address is looked for: for each the rows around are looked
/// through, and an enemy's may have thousands.
const MAX_BESIDE: usize = 4;

impl<'a> SupplierSearch<'a> {
    /// The names in mail and web addresses: `info@shop.example.com` gives `example`.
    pub(super) fn find_domains(&self) -> Vec<String> {
        let words = self.layout.cells.iter().flat_map(|cell| &cell.words);
        let mut found: Vec<String> = words.filter_map(|word| domain_name(word)).collect();
        found.sort();
        found.dedup();
        found.truncate(MAX_DOMAINS);
        found
    }

    /// The signs of a cell's position.
    pub(super) fn place_signs(
        &self,
        index: usize,
        cell: &TextCell,
        vat: Option<&FoundValue<String>>,
    ) -> Vec<NameSign> {
        let mut signs = Vec::new();
        let depth = self.layout.depth_on_page(cell);
        match (cell.page, depth) {
            (0, ..0.17) => signs.push(NameSign::Head),
            (0, ..0.85) if self.closes_with_company(cell) => signs.push(NameSign::Foot),
            (0, ..0.5) => signs.push(NameSign::Upper),
            (_, 0.85..) => signs.push(NameSign::Foot),
            (0, _) => {}
            _ => signs.push(NameSign::Later),
        }
        if cell.page == 0 && depth < 0.35 && cell.area.h > 1.3 * self.height {
            signs.push(NameSign::Large);
        }
        let side = self.side_of_heading(cell);
        if self.is_customer(cell) || side == Some(NameSign::Customer) {
            signs.push(NameSign::Customer);
        }
        signs.extend(side.filter(|side| *side == NameSign::Labelled));
        if self.has_attention_below(cell) || self.matches.style.letter && self.is_addressed(cell) {
            signs.push(NameSign::Attention);
        }
        if self.is_value_of_other(index, cell)
            || (self.matches.style.letter && self.names_value_below(cell))
        {
            signs.push(NameSign::OtherValue);
        }
        if self.layout.is_on_amount_row(cell) {
            signs.push(NameSign::AmountRow);
        }
        if cell.confidence < FAINT {
            signs.push(NameSign::Faint);
        }
        if cell.from_picture && self.is_tangled(cell) {
            signs.push(NameSign::Tangled);
        }
        if self.is_under_town(cell) || self.is_over_code(cell) {
            signs.push(NameSign::Place);
        }
        self.add_block_signs(cell, vat, &mut signs);
        signs
    }

    /// `From:` and `To:` in one row, and nothing else: which party the name right under one of them
    /// is.
    fn side_of_heading(&self, cell: &TextCell) -> Option<NameSign> {
        let mut before = self.layout.rows_before(cell);
        let heading = before.find(|above| {
            above.page == cell.page
                && is_next_area(above.area, cell.area)
                && (above.area.x - cell.area.x).abs() < 0.6 * cell.area.h
        })?;
        let [left, right] = self.layout.row_cells(heading.row) else { return None };
        let pair = left.words.len() <= 2
            && right.words.len() <= 2
            && vocabulary().party_from.has(fold_text(&left.joined_text()).trim())
            && vocabulary().party_to.has(fold_text(&right.joined_text()).trim());
        let first = std::ptr::eq(left, heading);
        pair.then_some(if first { NameSign::Labelled } else { NameSign::Customer })
    }

    /// `From: Kettle Works` and `To: Birch Club` in one row: the sender.
    pub(super) fn named_as_sides(&self) -> impl Iterator<Item = (String, &'a TextCell)> {
        let value = |cell: &TextCell, words: &FoldedWords| {
            let (front, rest) = cell.words.split_first()?;
            let named = front.ends_with(':') && words.has(&fold_text(front));
            let name = tidy_name(&rest.join(" "));
            (named && self.is_name(&name)).then_some(name)
        };
        let layout = self.layout;
        layout.rows.iter().filter_map(move |row| {
            let cells = layout.cells.get(row.clone())?;
            cells.iter().find(|cell| value(cell, &vocabulary().party_to).is_some())?;
            cells.iter().find_map(|cell| Some((value(cell, &vocabulary().party_from)?, cell)))
        })
    }

    /// Whether the cell is the front of a closing line, and names a company: senders sign there,
    /// too.
    fn closes_with_company(&self, cell: &TextCell) -> bool {
        let first = self.layout.row_cells(cell.row).first();
        self.is_closing(cell)
            && first.is_some_and(|first| std::ptr::eq(first, cell))
            && self.has_legal_form(&cell.joined_text())
    }

    /// Whether the cell is one word right under the line with the town of a block: its country.
    fn is_under_town(&self, cell: &TextCell) -> bool {
        let mut before = self.layout.rows_before(cell);
        let is_word = cell.words.len() == 1 && cell.words.iter().all(|word| is_lettered(word));
        is_word
            && self.matches.style.letter
            && before.any(|above| {
                is_next_area(above.area, cell.area)
                    && above.page == cell.page
                    && above.area.h > 0.9 * cell.area.h
                    && has_postal_code(&above.joined_text())
            })
    }

    /// `Main Street, Northtown, Co. Clare` right over `H91 V4K7`: the code alone goes on with an
    /// address.
    fn is_over_code(&self, cell: &TextCell) -> bool {
        let mut below =
            self.layout.rows_from(cell).filter(|below| self.is_continued_by(cell, below));
        cell.joined_text().contains(", ")
            && below.next().is_some_and(|code| {
                code.words.len() == 2 && ends_in_lettered_code(&code.joined_text())
            })
    }

    /// `UPPER TERRACE,` between `5 MILL ROAD,` and the line with the town: a part of it.
    pub(super) fn is_within_address(&self, cell: &TextCell) -> bool {
        let mut above =
            self.layout.rows_before(cell).filter(|above| self.is_continued_by(above, cell));
        let mut below =
            self.layout.rows_from(cell).filter(|below| self.is_continued_by(cell, below));
        cell.ends_in_comma()
            && self.layout.row_cells(cell.row).len() <= MAX_BESIDE
            && !self.has_legal_form(&cell.joined_text())
            && above.next().is_some_and(|line: &TextCell| {
                line.ends_in_comma() && is_street_line(&line.joined_text())
            })
            && below.next().is_some_and(|town| has_postal_code(&town.joined_text()))
    }

    /// Whether the cell lies across another one: no page is printed so.
    fn is_tangled(&self, cell: &TextCell) -> bool {
        let near = self.layout.rows_before(cell).chain(self.layout.rows_from(cell));
        let near = near.chain(self.layout.row_cells(cell.row));
        near.filter(|other| other.page == cell.page && !std::ptr::eq(*other, cell)).any(|other| {
            let down = cell.area.bottom().min(other.area.bottom()) - cell.area.y.max(other.area.y);
            down > TANGLED * cell.area.h.min(other.area.h)
                && cell.overlap_x(other) > cell.area.h.min(other.area.h)
        })
    }

    /// Adds the signs of the lines under a name.
    fn add_block_signs(
        &self,
        cell: &TextCell,
        vat: Option<&FoundValue<String>>,
        signs: &mut Vec<NameSign>,
    ) {
        let block = self.block_below(cell);
        let town = block.iter().take(5).any(|line| has_postal_code(&self.line_text(line)));
        let heads = signs.contains(&NameSign::Large) || cell.index == 0;
        let town = town || heads && self.heads_address(cell);
        if town {
            signs.push(NameSign::AddressBelow);
        }
        // A customer's identifier is no sign for the issuer.
        let contact =
            block.iter().any(|line| self.is_contact(line) && !self.is_customer_id_line(line));
        if !signs.contains(&NameSign::Customer)
            && block.iter().take(5).any(|line| self.is_customer_id_line(line))
        {
            signs.push(NameSign::Customer);
        }
        if contact {
            signs.push(NameSign::Contact);
        }
        let sender_above = self.line_above(cell).is_some_and(|above| {
            above.area.h < 1.1 * cell.area.h && self.sender_parts(above).is_some()
        });
        if sender_above {
            signs.push(NameSign::Window);
        } else if town && !contact && signs.contains(&NameSign::Upper) {
            signs.push(NameSign::PlainAddress);
        }
        let identifier = vat.and_then(|vat| self.layout.cells.get(vat.cell));
        let near = identifier.is_some_and(|own| {
            std::ptr::eq(own, cell)
                || block.iter().any(|line| std::ptr::eq(*line, own))
                || (own.page == cell.page && own.row == cell.row)
        });
        if near {
            signs.push(NameSign::VatNear);
        }
    }

    /// `Customer VAT No: …` in the block needs no heading.
    fn is_customer_id_line(&self, line: &TextCell) -> bool {
        self.matches.in_cell(line.index).any(|label_match| {
            label_match.field == "customer_vat_id" && label_match.words.start == 0
        })
    }

    /// Whether an address is near under a name in large letters, and no other name right over it.
    fn heads_address(&self, name: &TextCell) -> bool {
        self.address_near(name).is_some_and(|(_, line)| {
            let mut before = self.layout.rows_before(line);
            let above = before.find(|above| self.is_continued_by(above, line));
            above.is_none_or(|above| {
                let text = tidy_name(&above.joined_text());
                std::ptr::eq(above, name) || !self.is_name(&text) || is_tagline(&text)
            })
        })
    }

    /// Street and town on one line close under a name that is large or heads the page, with its
    /// trade between.
    pub(super) fn address_near(&self, name: &TextCell) -> Option<(String, &TextCell)> {
        let first = name.index == 0;
        let rows = (name.row + 1..).take(ROWS_UNDER_LARGE);
        let cells = rows.flat_map(|row| self.layout.row_cells(row));
        let mut near = cells.filter(|cell| {
            cell.page == name.page
                && (name.area.h > LARGER * cell.area.h || first && self.heads_page(cell))
                && ((cell.area.x - name.area.x).abs() < name.area.h || cell.overlap_x(name) > 0.0)
        });
        near.find_map(|cell| {
            let text = self.line_text(cell);
            // `Mill Lane 5, 82216 Northtown · by appointment`, `Mill Lane 5 · 82216 Northtown ·
            // Tel. 555`
            let front = text.split(" · ").next().unwrap_or_default();
            let address = is_street_and_town(front).then(|| tidy_name(front))?;
            let first = address.split(',').next().unwrap_or_default();
            (!self.is_customer(cell) && is_street_or_house(first)).then_some((address, cell))
        })
    }

    /// The lines under a cell without a gap, in its column.
    pub(super) fn block_below<'s>(&'s self, cell: &'s TextCell) -> Vec<&'s TextCell> {
        let mut lines = Vec::new();
        let mut at = cell;
        for _ in 0..BLOCK {
            let below = self.layout.rows_from(at).filter(|other| self.is_continued_by(at, other));
            let Some(next) = below.min_by(|a, b| a.area.y.total_cmp(&b.area.y)) else {
                lines.extend(self.parted_line_below(at));
                break;
            };
            lines.push(next);
            at = next;
        }
        lines
    }

    /// Whether the text is the label of the number or day right under it, as in the boxes of a
    /// form.
    fn names_value_below(&self, cell: &TextCell) -> bool {
        let below = self.layout.cell_below(cell, 1.2);
        below.filter(|below| (below.area.x - cell.area.x).abs() < below.area.h).is_some_and(
            |value| {
                let text = value.joined_text();
                let digits = count_digits(&text);
                let letters = count_letters(&text);
                let number = value.words.len() == 1 && digits < 9 && letters <= 3;
                digits > 0
                    && (number
                        || date::find_dates(&text)
                            .first()
                            .is_some_and(|one| one.range.len() == text.len()))
            },
        )
    }

    /// The line above, up to two lines' height away.
    fn line_above<'s>(&'s self, cell: &TextCell) -> Option<&'s TextCell> {
        let from = self.layout.rows.get(cell.row.saturating_sub(3))?.start;
        let to = self.layout.rows.get(cell.row)?.start;
        let above = self.layout.cells.get(from..to)?.iter().rev();
        above.into_iter().find(|other| {
            other.page == cell.page
                && cell.area.y - other.area.bottom() < 2.5 * cell.area.h
                && (other.area.x - cell.area.x).abs() < 4.0 * cell.area.h
        })
    }

    /// Whether a line has contact details, or a number with an office or a bank.
    pub(super) fn is_contact(&self, line: &TextCell) -> bool {
        self.has_contact_details(line)
            || line.folded.iter().any(|(word, _)| vocabulary().office.has(word))
    }

    /// Whether a line has a telephone, a mail or web address.
    pub(super) fn has_contact_details(&self, line: &TextCell) -> bool {
        let text = line.joined_text();
        // `Kettle Mobil GmbH`
        text.contains('@')
            || is_phone_alone(&text)
            || line.folded.iter().any(|(word, _)| vocabulary().reach.has(word))
                && (text.contains(char::is_numeric) || !self.has_legal_form(&text))
    }

    /// The cells in the blocks under headings of the recipient, by index.
    pub(super) fn find_recipient_cells(&self) -> Vec<usize> {
        let headings = self.matches.of_field("customer").filter(|label_match| {
            let cell = self.matches.cell_of(label_match);
            // `Client: Somebody Ltd` over the rest of the block.
            let closed = |cell: &TextCell| {
                let last =
                    label_match.words.end.checked_sub(1).and_then(|last| cell.words.get(last));
                last.is_some_and(|word| word.ends_with(':'))
            };
            label_match.words.start == 0
                && cell.is_some_and(|cell| {
                    cell.words.len() <= label_match.words.len() + 2 || closed(cell)
                })
        });
        let mut found: Vec<usize> = Vec::new();
        for heading in headings.take(MAX_HEADINGS) {
            let Some(cell) = self.matches.cell_of(heading) else { continue };
            let mut block = self.block_below(cell);
            // `Bill to   Somebody`, with the rest of the block under the name.
            let beside = self.layout.right_of(heading.cell).first().filter(|_| block.is_empty());
            if let Some(name) = beside {
                block = self.block_below(name);
                block.push(name);
            }
            found.extend(block.into_iter().map(|line| line.index));
            found.extend(self.cells_of_column(heading));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether the cell is the value of another label.
    fn is_value_of_other(&self, index: usize, cell: &TextCell) -> bool {
        let row = self.layout.rows.get(cell.row).map_or(index, |row| row.start);
        let before = index.checked_sub(1).filter(|left| *left >= row);
        let left = before.and_then(|at| Some((at, self.layout.cells.get(at)?)));
        let beside = left.is_some_and(|(at, left)| {
            let close = cell.overlap_x(left) > -14.0 * cell.area.h;
            let colon = left.words.last().is_some_and(|word| word.ends_with(':'));
            close
                && (colon || self.ends_with_other_label(at) && !self.names_value_below(left))
                && !self.heads_recipient(at, left)
        });
        beside
            || self.is_within_registers(index, cell)
            || self.is_under_reference(cell)
            || self
                .matches
                .in_cell(index)
                .any(|label_match| label_match.words.start == 0 && is_other(&label_match.field))
    }

    /// Whether the cell is at the foot of a page behind other details of a register, a tax or an
    /// account: their court, their bank. A name begins such a line, or has a legal form.
    fn is_within_registers(&self, index: usize, cell: &TextCell) -> bool {
        let row = self.layout.rows.get(cell.row);
        let behind = row.is_some_and(|row| row.start < index);
        let tells = |other: &TextCell| {
            let text = other.joined_text();
            is_registry_line(&text) || vocabulary().court.is_within(&fold_text(&text))
        };
        behind
            && self.matches.style.letter
            && self.is_at_foot(cell)
            && !self.has_legal_form(&cell.joined_text())
            && self.layout.row_cells(cell.row).iter().any(tells)
    }

    /// Whether the line right above is only the label of another number or reference.
    fn is_under_reference(&self, cell: &TextCell) -> bool {
        let mut before = self.layout.rows_before(cell);
        let above =
            before.find(|above| above.page == cell.page && is_next_area(above.area, cell.area));
        let label = above.filter(|above| (above.area.x - cell.area.x).abs() < above.area.h);
        label.is_some_and(|label| {
            self.matches.in_cell(label.index).any(|label_match| {
                label_match.words == (0..label.words.len())
                    && (label_match.field == "other"
                        || label_match.has_role(FieldRole::OrderNumber))
            })
        })
    }

    /// Whether the cell is a heading of the recipient with name and address right below it: the
    /// text beside it is no part of that.
    pub(super) fn heads_recipient(&self, index: usize, cell: &TextCell) -> bool {
        let is_heading = self
            .matches
            .in_cell(index)
            .any(|label_match| label_match.words.start == 0 && label_match.field == "customer");
        is_heading && self.block_below(cell).iter().any(|line| has_postal_code(&line.joined_text()))
    }

    fn ends_with_other_label(&self, index: usize) -> bool {
        let count = self.layout.cells.get(index).map_or(0, |cell| cell.words.len());
        self.matches.in_cell(index).any(|label_match| {
            label_match.words.start == 0
                && label_match.words.end + 1 >= count
                && is_other(&label_match.field)
        })
    }

    /// The signs of a text's words.
    pub(super) fn text_signs(&self, name: &str) -> Vec<NameSign> {
        let folded = fold_text(name);
        let words: Vec<&str> = folded.split(' ').collect();
        let mut signs = Vec::new();
        let legal = self.has_legal_form(name) && !self.is_form_of_place(name);
        add_sign(&mut signs, NameSign::LegalForm, legal);
        // `Kettle Stop #0417`: which of its shops it is.
        let named = self.matches.style.shop_of_branch(name);
        let numbered = self.is_numbered_company(name);
        add_sign(&mut signs, NameSign::Digits, !numbered && has_digit(named));
        // `dott. Ida Kettle`
        let titled = || begins_with_title(name);
        add_sign(&mut signs, NameSign::Small, name.starts_with(char::is_lowercase) && !titled());
        add_sign(&mut signs, NameSign::OneWord, words.len() == 1);
        add_sign(&mut signs, NameSign::ManyWords, words.len() > 5);
        // `Main Street, Kilmacow, Co. Kilkenny, X91 PK22`: a county is no company.
        let company = legal && (self.ends_in_legal_form(name) || !name.contains(", "));
        add_sign(
            &mut signs,
            NameSign::Place,
            !company && (has_postal_code(named) || self.is_street(named)),
        );
        let prose = (0..words.len())
            .any(|at| self.labels.has_label_at("prose", words.get(at..).unwrap_or_default()));
        // `Server: Somebody`, `Inh. Somebody`
        let owner = words.first().is_some_and(|first| vocabulary().owner.has(first));
        // `PRINTABLE INVOICE SHEET`
        let number = self.matches.kind.field_of(FieldRole::DocumentNumber);
        let titled = (1..words.len().min(4)).any(|at| {
            let found = self.labels.labels_at(words.get(at..).unwrap_or_default()).into_iter();
            let title = words.get(at).is_some_and(|word| word.len() >= MIN_TITLE_LETTERS);
            title && found.into_iter().any(|one| one.field == number)
        });
        // `Find more at kettle.example`: a sentence with a host, unlike a company's name.
        let other = name.contains(": ") || owner && words.len() > 1 || titled && !legal;
        add_sign(&mut signs, NameSign::OtherValue, other);
        // Some such words are parts of names elsewhere: a text that ends as companies do is no
        // sentence.
        let company = self.ends_in_legal_form(name);
        // `We do not levy a service charge. E. & O.E.`: a sentence ends before a supposed legal
        // form.
        let sentence = name.split_once(". ").is_some_and(|(front, _)| {
            let small = front.split(' ').filter(|word| word.starts_with(char::is_lowercase));
            small.count() >= SENTENCE
        });
        add_sign(&mut signs, NameSign::Prose, sentence);
        add_sign(
            &mut signs,
            NameSign::Prose,
            !company && (prose || name.ends_with('.') && words.len() > 4),
        );
        let compact = compact_name(name);
        let named = self.domains.iter().any(|domain| {
            domain.len() >= MIN_DOMAIN_LETTERS && compact.contains(domain.as_str())
                || words.iter().any(|word| word.len() >= DOMAIN_WORD && domain.contains(word))
        });
        // A host in the text itself does not confirm it.
        add_sign(&mut signs, NameSign::Domain, named);
        signs
    }

    /// A word and a number, as streets are written.
    fn is_street(&self, text: &str) -> bool {
        let folded = fold_text(text);
        let words: Vec<&str> = folded.split(' ').collect();
        let ends = [words.first(), words.last()];
        words.len() >= 2 && ends.into_iter().flatten().any(|word| begins_with_digit(word))
    }

    /// Of texts that are larger than usual the largest.
    pub(super) fn mark_largest(&self, found: &mut [NameCandidate<'_>]) {
        let large = found.iter().filter(|one| one.has(NameSign::Large));
        let most = large.map(|one| one.cell.area.h).fold(0.0, f32::max);
        for one in found.iter_mut().filter(|one| one.has(NameSign::Large)) {
            if one.cell.area.h >= most {
                one.signs.push(NameSign::Largest);
            }
        }
    }
}

fn begins_with_digit(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// `Mill Lane 5`, `The Forge`: no name of a company or person in front of an address.
fn is_street_or_house(part: &str) -> bool {
    has_digit(part) || part.split(' ').count() <= 2
}

fn is_lettered(word: &str) -> bool {
    word.chars().all(char::is_alphabetic)
}

/// `608-555-0112`, `+41 79 555 01 47`: nothing but a telephone number.
fn is_phone_alone(text: &str) -> bool {
    let digits = count_digits(text);
    let groups = text.split([' ', '-', '.', '/', ')']).filter(|group| !group.is_empty()).count();
    (9..=13).contains(&digits)
        && (3..=6).contains(&groups)
        && text.starts_with(['0', '+', '(', '2', '3', '4', '5', '6', '7', '8', '9'])
        && text
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, ' ' | '-' | '.' | '/' | '(' | ')' | '+'))
}

/// Whether a label names neither a party nor a part of one.
fn is_other(field: &str) -> bool {
    !is_side_note(field)
        && !matches!(
            field,
            "supplier" | "party_name" | "payee" | "legal_form" | "prose" | "registered_office"
        )
}
