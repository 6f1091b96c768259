//! The issuer's address away from the name: in a block with telephone, register or account, further
//! down the column of a letterhead, or in the street of a footer where the head has a post box.

use super::address::{AddressLines, is_registry_line, is_street_and_town, is_street_line};
use super::postal_code::has_postal_code;
use super::{NameCandidate, NameSign, SupplierSearch, compact_name, is_next_line, tidy_name};
use crate::rules::certainty::ReadingSign;
use crate::rules::characters::is_digits;
use crate::rules::label_matches::{LabelMatch, is_side_note};
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::{FoldedWords, vocabulary};
use docmill_formats::notation::fold_text;
use docmill_gate::kinds::FieldRole;

/// Lines above and below street and town that belong to their block.
const BLOCK: usize = 5;

/// The foot of a page, as a share of its height.
const FOOT: f32 = 0.75;

/// Letters of the shortest name that is looked for within other lines.
const MIN_WITNESSED_LETTERS: usize = 8;

/// Rows under a street that may hold its town and code.
const FIELDS_BELOW: usize = 3;

/// Whether an address has a post box where others have their street.
pub(super) fn is_post_box(address: &str) -> bool {
    fold_text(address).split(' ').any(|word| vocabulary().post_box.has(word))
}

/// Whether a label that begins a line is one that addresses have as well: `PO Box 12`, `Net Lane
/// 3`.
pub(super) fn is_part_of_address(label_match: &LabelMatch, text: &str) -> bool {
    match (label_match.field.as_str(), label_match.role) {
        ("party_address" | "legal_form", _)
        | (_, Some(FieldRole::IssueDate | FieldRole::NetAmount)) => true,
        (field, _) => field.starts_with("column_") || is_side_note(field) || is_post_box(text),
    }
}

/// The words behind a label with a colon, up to the next one.
fn value_behind(cell: &TextCell, labels: &FoldedWords) -> Option<String> {
    let at = cell.words.iter().position(|word: &String| {
        word.strip_suffix(':').is_some_and(|label| labels.has(&fold_text(label)))
    })?;
    let rest = cell.words.iter().skip(at + 1).take_while(|word| !word.ends_with(':'));
    let value: Vec<&str> = rest.map(String::as_str).collect();
    (!value.is_empty()).then(|| value.join(" "))
}

impl SupplierSearch<'_> {
    /// Whether a cell is at the foot of its page, or where a page ends early.
    pub(super) fn is_at_foot(&self, cell: &TextCell) -> bool {
        self.layout.depth_on_page(cell) > FOOT || self.is_closing(cell)
    }

    /// Adds the sign of the line with name, street and town of a sender. It is over the recipient
    /// in the window, and is no recipient.
    pub(super) fn mark_sender_line(&self, cell: &TextCell, signs: &mut Vec<NameSign>) {
        if self.has_attention_below(cell) && !self.is_addressed(cell) {
            signs.retain(|sign| !matches!(sign, NameSign::Customer | NameSign::Attention));
        }
        signs.push(NameSign::SenderLine);
    }

    /// Marks names in the upper half that are repeated in a line about an account to pay to, an
    /// identifier or a register, or with an address at the foot. The owner of a debited account is
    /// no issuer.
    pub(super) fn mark_witnessed(&self, candidates: &mut [NameCandidate<'_>]) {
        let telling = |index: usize| {
            let mut paid = false;
            for label_match in self.matches.in_cell(index) {
                match (label_match.field.as_str(), label_match.role) {
                    ("payee", _)
                    | (_, Some(FieldRole::Iban | FieldRole::Bic | FieldRole::SupplierVatId)) => {
                        paid = true;
                    }
                    ("debit" | "customer", _) => return false,
                    _ => {}
                }
            }
            let line = self.layout.cells.get(index);
            paid || line.is_some_and(|line| is_registry_line(&line.joined_text()))
        };
        let lines: Vec<(&TextCell, String)> = (0..self.layout.cells.len())
            .filter(|index| telling(*index))
            .filter_map(|index| self.layout.cells.get(index))
            .filter(|line| !self.is_customer(line))
            .map(|line| (line, compact_name(&line.joined_text())))
            .collect();
        for one in candidates {
            let compact = compact_name(&one.name);
            let plain = !one.has(NameSign::Customer);
            let again = plain
                && compact.chars().count() >= MIN_WITNESSED_LETTERS
                && one.name.contains(' ')
                && lines.iter().any(|(line, text)| {
                    text.len() > compact.len() + 2
                        && text.contains(&compact)
                        && !std::ptr::eq(*line, one.cell)
                });
            if again {
                // A repeated heading is no heading if accounts and registers name it.
                one.signs.retain(|sign| *sign != NameSign::Repeated);
                one.signs.push(NameSign::Witnessed);
            }
        }
    }

    /// Street and town in a block with telephone, mail, register or account: recipients have none
    /// of them.
    pub(super) fn address_of_block(&self) -> Option<AddressLines> {
        self.layout.cells.iter().filter(|cell| !self.is_customer(cell)).find_map(|street| {
            let found = self.street_and_town(street)?;
            let block = self.block_around(street);
            block
                .iter()
                .any(|line: &&TextCell| {
                    self.is_contact(line) || is_registry_line(&line.joined_text())
                })
                .then_some(found)
        })
    }

    /// The same name over an address further down, or at the front of a sender line, and how it was
    /// found.
    pub(super) fn address_elsewhere(
        &self,
        best: &NameCandidate<'_>,
        joined: usize,
    ) -> Option<(String, Vec<ReadingSign>)> {
        let own = [compact_name(&best.name), compact_name(&self.full_name(best).0)];
        let mut same = self.layout.cells.iter().zip(&self.folded);
        // `Reed Coaches` heads the page, and `Reed Coaches of Northtown Ltd` is over the address.
        let telling = own[0].chars().count() >= MIN_WITNESSED_LETTERS;
        let longer = |text: &str, name: &str| {
            telling && text.contains(own[0].as_str()) && self.has_legal_form(name)
        };
        same.find_map(|(cell, text)| {
            // The same name over an address further down, or at the front of a sender line.
            let sender = || {
                self.sender_parts(cell).filter(|(name, _)| {
                    let compact = compact_name(name);
                    let part =
                        name.contains(' ') && compact.chars().count() >= MIN_WITNESSED_LETTERS;
                    own.contains(&compact)
                        || telling && compact.contains(own[0].as_str())
                        // `Kettle Brook · Mill Lane 5 · 82216 Northtown` of `Solicitors Kettle
                        // Brook LLP`.
                        || part && own.iter().any(|own| own.contains(&compact))
                })
            };
            let compact = text.replace(' ', "");
            // `Kettle & Birch` heads the paper of `Kettle & Birch Northtown Ltd`.
            let brand = self.matches.style.shop_head
                && compact.chars().count() >= MIN_WITNESSED_LETTERS
                && own[0].starts_with(compact.as_str());
            match brand
                || own.contains(&compact)
                || self.is_seat_of(text, &best.name) && !self.is_customer(cell)
                || longer(&compact, text) && !self.is_customer(cell)
            {
                true => self
                    .address_below(cell, if text.replace(' ', "") == own[0] { joined } else { 0 })
                    .filter(|it| it.town)
                    .map(|it| (it.text(), it.signs(ReadingSign::AddressElsewhere))),
                false => {
                    sender().map(|(_, address)| (address, vec![ReadingSign::AddressElsewhere]))
                }
            }
        })
    }

    /// `Alder Works Headquarters` of `Alder Works Ltd`: the name with or without its form, and a
    /// word for a company's seat. All folded but the name.
    fn is_seat_of(&self, text: &str, name: &str) -> bool {
        let (words, name) = (text.split(' ').collect::<Vec<_>>(), fold_text(name));
        let name: Vec<&str> = name.split(' ').collect();
        (1..words.len()).any(|at| {
            let (front, seat) = words.split_at(at);
            self.labels.is_label("registered_office", seat)
                && name
                    .strip_prefix(front)
                    .is_some_and(|form| form.is_empty() || self.labels.is_label("legal_form", form))
        })
    }

    /// Whether an address is right under another company, or under the recipient.
    pub(super) fn is_address_of_other(
        &self,
        address: &str,
        best: &NameCandidate<'_>,
        candidates: &[NameCandidate<'_>],
    ) -> bool {
        let named = [NameSign::LegalForm, NameSign::Customer];
        let others = candidates.iter().filter(|one| {
            named.iter().any(|sign| one.signs.contains(sign)) && !self.is_same_firm(best, one)
        });
        let mut found = others.filter_map(|one| self.address_below(one.cell, 0));
        found.any(|found| found.text() == address)
    }

    /// Whether a postal code is printed that is not the recipient's.
    pub(super) fn is_address_seen(&self) -> bool {
        self.layout.cells.iter().any(|cell| {
            has_postal_code(&cell.joined_text())
                && !self.is_customer(cell)
                && !self.layout.is_on_amount_row(cell)
        })
    }

    /// `Comune: Northtown   Provincia: NT` and `Cap: 80333` under a street: town and code by their
    /// labels.
    pub(super) fn labelled_town(&self, street: &TextCell) -> Option<String> {
        let mut near = self.layout.rows_from(street).filter(|cell| {
            cell.page == street.page
                && cell.row <= street.row + FIELDS_BELOW
                && (cell.area.x - street.area.x).abs() < 0.6 * street.area.h
        });
        let (mut town, mut code) = (None, None);
        near.by_ref().for_each(|cell| {
            town = town.take().or_else(|| value_behind(cell, &vocabulary().town_label));
            code = code.take().or_else(|| value_behind(cell, &vocabulary().code_label));
        });
        let line = format!("{} {}", code?, town?);
        has_postal_code(&line).then_some(line)
    }

    /// The address behind a company's name at the foot of a page.
    pub(super) fn address_of_footer(&self) -> Option<AddressLines> {
        let plain = || self.layout.cells.iter().filter(|cell| !self.is_customer(cell));
        plain()
            .find_map(|cell| self.office_of_line(cell))
            .or_else(|| plain().find_map(|cell| self.labelled_office(cell)))
            .or_else(|| self.headed_office())
            .or_else(|| self.wrapped_office())
            .or_else(|| self.office_before_details())
            .or_else(|| self.office_in_columns())
    }

    /// Street and town under the heading `Address` in the columns of a footer.
    fn headed_office(&self) -> Option<AddressLines> {
        self.matches.of_field("party_address").find_map(|label_match| {
            let heading = self.matches.cell_of(label_match)?;
            let whole = label_match.words == (0..heading.words.len()) && self.is_at_foot(heading);
            let street = self.layout.cell_below(heading, 1.2).filter(|_| whole)?;
            self.street_and_town(street).filter(|_| !self.is_customer(street))
        })
    }

    /// `Registered office: Mill Lane 5, Leeds LS1 4AB`, or `Address: …` in a line at the foot of a
    /// page: never a recipient's.
    fn labelled_office(&self, cell: &TextCell) -> Option<AddressLines> {
        let mut labels = self.matches.in_cell(cell.index).filter(|label_match| {
            label_match.field == "registered_office"
                || label_match.field == "party_address" && self.is_at_foot(cell)
        });
        labels.find_map(|label_match| {
            let text = cell.words.get(label_match.words.end..)?.join(" ");
            let closed = cell.words.get(label_match.words.end.checked_sub(1)?)?.ends_with(':');
            let front = text.split(" · ").next().and_then(|text| text.split(". ").next())?;
            let lines = vec![tidy_name(front)];
            (closed && is_street_and_town(front) && !is_registry_line(front))
                .then_some(AddressLines { lines, town: true, least: cell.confidence })
        })
    }

    /// `Example Ltd. Registered in Leeds No. 12. Registered office: Mill Lane 5, Leeds LS1 4AB. VAT
    /// …`: the company's address up to the town.
    fn office_of_line(&self, cell: &TextCell) -> Option<AddressLines> {
        let (_, office) = self.split_at_registered_office(&cell.joined_text());
        let office = office?;
        let sentences: Vec<&str> = office.split(". ").collect();
        let town = sentences.iter().position(|part| has_postal_code(part))?;
        let address = sentences.get(..=town)?.join(". ");
        let plain = is_street_line(&address) && !is_registry_line(&address);
        let company = self.has_legal_form(&cell.joined_text());
        let lines = vec![tidy_name(&address)];
        (plain && company).then_some(AddressLines { lines, town: true, least: cell.confidence })
    }

    /// Street and town that begin a block of their own under the name, behind a trade or a
    /// slogan. A recipient's block begins with a name.
    pub(super) fn address_down_column(&self, name: &TextCell) -> Option<AddressLines> {
        let mut column = self.layout.rows_from(name).filter(|cell| {
            cell.page == name.page
                && ((cell.area.x - name.area.x).abs() < name.area.h
                    || ((cell.area.x + cell.area.w / 2.0) - (name.area.x + name.area.w / 2.0))
                        .abs()
                        < name.area.h)
        });
        column.find_map(|street| {
            let mut before = self.layout.rows_before(street);
            let begins = !before.any(|above| is_next_line(above, street));
            let found = self.street_and_town(street)?;
            (begins && !self.is_customer(street)).then_some(found)
        })
    }

    /// Street and town under, behind or beside the name elsewhere, which have no post box.
    pub(super) fn street_instead_of_box(&self, name: &NameCandidate<'_>) -> Option<String> {
        let compact = compact_name(&name.name);
        self.layout.cells.iter().zip(&self.folded).find_map(|(cell, text)| {
            let behind = self.sender_parts(cell).filter(|(own, _)| compact_name(own) == compact);
            let address = behind.map(|(_, address)| address).or_else(|| {
                let same = text.replace(' ', "") == compact;
                let found = Some(cell).filter(|_| same)?;
                let below = self.address_below(found, 0).filter(|found| found.town);
                Some(below.or_else(|| self.address_beside(found))?.text())
            })?;
            (!is_post_box(&address)).then_some(address)
        })
    }

    /// A line with a street, and the town in it or in the next one.
    fn street_and_town(&self, street: &TextCell) -> Option<AddressLines> {
        let text = self.line_text(street);
        let plain = !self.is_no_address(street, &text) && !self.layout.is_on_amount_row(street);
        if !plain || !is_street_line(&text) || is_registry_line(&text) {
            return None;
        }
        // `1407 Sycamore St., Apt 3B`: a house's number, no town's.
        let house = text
            .split_once(' ')
            .is_some_and(|(number, rest)| is_digits(number) && !has_postal_code(rest));
        if has_postal_code(&text) && !house {
            let whole = is_street_and_town(&text);
            let lines = vec![text];
            return whole.then_some(AddressLines { lines, town: true, least: street.confidence });
        }
        let below = self.layout.rows_from(street).find(|other| is_next_line(street, other))?;
        let town = self.line_text(below);
        let holds = has_postal_code(&town)
            && !self.is_no_address(below, &town)
            && !self.layout.is_on_amount_row(below)
            && !is_registry_line(&town);
        let least = street.confidence.min(below.confidence);
        holds.then(|| AddressLines { lines: vec![text, town], town: true, least })
    }

    /// The lines above and below a cell without a gap, in its column, itself included.
    fn block_around<'s>(&'s self, cell: &'s TextCell) -> Vec<&'s TextCell> {
        let mut lines: Vec<&TextCell> = self.block_below(cell).into_iter().take(BLOCK).collect();
        let mut at = cell;
        for _ in 0..BLOCK {
            lines.push(at);
            let mut above = self.layout.rows_before(at).filter(|other| is_next_line(other, at));
            let Some(next) = above.next() else { break };
            at = next;
        }
        lines.extend(self.layout.row_cells(cell.row).iter().filter(|other| {
            let gap = other.area.x - cell.area.right();
            (0.0..3.0 * cell.area.h).contains(&gap)
        }));
        lines
    }
}
