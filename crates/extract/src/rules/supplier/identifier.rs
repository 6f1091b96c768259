//! The supplier's VAT identifier, separated from the customer's.

use super::address::is_registry_line;
use super::postal_code::has_postal_code;
use super::{NameCandidate, NameSign, SupplierSearch, is_next_line};
use crate::rules::FoundValue;
use crate::rules::certainty::ReadingSign;
use crate::rules::characters::{count_digits, count_letters, has_digit, is_digits};
use crate::rules::label_matches::LabelMatch;
use crate::rules::layout::TextCell;
use crate::rules::vocabulary::vocabulary;
use docmill_formats::notation::{account, date, fold_text, printed_vat_id, vat_digits, vat_id};
use docmill_gate::kinds::FieldRole;

/// Lines under the issuer's name that may hold its identifier.
const LINES_OF_ISSUER: usize = 6;

/// Heights of a line between a number of the recipient's and the one behind it.
const CLOSE_BEHIND: f32 = 6.0;

/// Identifiers of the customer that are compared.
const MAX_CUSTOMER_IDS: usize = 8;

/// `29ABCDE1234F1Z5`: the number of India's tax on goods and services.
fn is_indian(id: &[char]) -> bool {
    let is = |from: usize, to: usize, of: fn(&char) -> bool| {
        id.get(from..to).is_some_and(|part| part.iter().all(of))
    };
    id.len() == 15
        && is(0, 2, char::is_ascii_digit)
        && is(2, 7, char::is_ascii_uppercase)
        && is(7, 11, char::is_ascii_digit)
        && is(13, 14, |c| *c == 'Z')
}

/// `APB0447715K2`: letters of the name, a day, three signs: a Mexican tax number.
fn is_mexican(id: &[char]) -> bool {
    let letters = id.iter().take_while(|c| c.is_uppercase()).count();
    let day = id.get(letters..letters + 6).is_some_and(|day| day.iter().all(char::is_ascii_digit));
    (3..=4).contains(&letters) && day && id.len() == letters + 9
}

/// `516401-0091`: the number of an organisation in Sweden, which is no VAT identifier.
fn is_organisation_number(id: &str) -> bool {
    id.split_once('-').is_some_and(|(front, back)| {
        (front.len(), back.len()) == (6, 4) && is_digits(front) && is_digits(back)
    })
}

/// `148227`: five or six digits: an Icelandic VAT number.
fn is_icelandic(id: &[char]) -> bool {
    (5..=6).contains(&id.len()) && id.iter().all(char::is_ascii_digit)
}

/// `NIF:`, `A.F.M.`, `RFC`: abbreviated labels.
fn is_abbreviation(word: &str) -> bool {
    let word = word.trim_end_matches(':');
    let letters = count_letters(word);
    (2..=5).contains(&letters) && word.chars().all(|c| c.is_uppercase() || c == '.')
}

/// `RT0001` behind a number of Canada's tax on goods and services, which is no VAT identifier.
fn is_canadian_account(word: &str) -> bool {
    let digits = word.strip_prefix("RT");
    digits.is_some_and(|digits| digits.len() == 4 && is_digits(digits))
}

/// `81244 0975 RT0001`: a Canadian GST account.
fn canadian_account(cell: &TextCell) -> Option<String> {
    (0..cell.words.len()).find_map(|at| {
        let word = cell.words.get(at)?.trim_matches(|c: char| !c.is_alphanumeric());
        let split = word.len().checked_sub(6).filter(|at| word.is_char_boundary(*at))?;
        let (front, account) = word.split_at(split);
        if !is_canadian_account(account) {
            return None;
        }
        let groups = cell
            .words
            .get(..at)?
            .iter()
            .rev()
            .take_while(|word: &&String| {
                let word = without_bracket(word);
                !word.is_empty() && is_digits(word)
            })
            .count();
        let from = (at.checked_sub(groups)?..=at).rev().find(|from| {
            let before = cell.words.get(*from..at).unwrap_or_default();
            before.iter().map(|word| without_bracket(word).len()).sum::<usize>() + front.len() == 9
        })?;
        let number = cell.words_in(from..at).join(" ");
        Some(format!("{number} {word}").trim().trim_start_matches('(').to_owned())
    })
}

/// `(81244 0975 RT0001)`, behind the rate of the tax.
fn without_bracket(word: &str) -> &str {
    word.trim_start_matches('(')
}

/// How many words are digits in groups, up to a mark that ends a sentence: `418 2209 36. Director:
/// …`.
fn count_groups(words: &[&str]) -> usize {
    let mut count = 0;
    for word in words {
        let bare = word.trim_end_matches(['.', ',', ';', ')']);
        let group = (1..=4).contains(&bare.len()) && is_digits(bare);
        if !group {
            break;
        }
        count += 1;
        if bare.len() < word.len() {
            break;
        }
    }
    count
}

/// As many letters and digits as numbers of taxpayers have, digits most of them.
fn is_id_long(word: &str) -> bool {
    let compact = compact_id(word);
    let digits = count_digits(&compact);
    (8..=15).contains(&compact.chars().count())
        && digits + 3 >= compact.chars().count()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
}

/// `12345678-2-42` of Hungary, `B12345674` and `12345678Z` of Spain, Mexico's, India's.
fn is_taxpayer_form(word: &str) -> bool {
    let groups: Vec<usize> = word.split('-').map(str::len).collect();
    let letter = word.starts_with(|c: char| c.is_ascii_uppercase())
        || word.ends_with(|c: char| c.is_ascii_uppercase());
    let digits = count_digits(word);
    let compact: Vec<char> = word.chars().collect();
    groups == [8, 1, 2] && digits == 11
        || letter
            && digits >= 7
            && word.len() == 9
            && vat_id::has_valid_form(&format!("ES{word}")) == Some(true)
        || is_mexican(&compact)
        || is_indian(&compact)
}

/// Whether words are one number of a taxpayer in groups, which no amount is written in:
/// `118-447-118`.
fn is_grouped_number(words: &[&str]) -> bool {
    let [word] = words else { return false };
    let groups: Vec<&str> = word.split('-').collect();
    let digits: usize = groups.iter().map(|group| group.len()).sum();
    groups.len() > 2
        && (8..=12).contains(&digits)
        && groups.iter().all(|group: &&str| (2..=5).contains(&group.len()) && is_digits(group))
}

/// Whether a word is a number as long as taxpayers have: digits, and points or dashes.
fn is_taxpayer_number(word: &str) -> bool {
    let digits = count_digits(word);
    (8..=12).contains(&digits)
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
        && date::find_dates(word).is_empty()
}

/// Letters and digits alone.
fn compact_id(id: &str) -> String {
    id.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The weight of a mail address or an account in an identifier's row: more than a label, which the
/// customer's has as well.
const BESIDE_CONTACT: f32 = 2.5;

/// Characters of an identifier that are misread at most.
const MAX_MISREAD_CHARS: usize = 2;

/// Whether two identifiers are one but for a misread character or two.
fn is_misreading_of(read: &str, id: &str) -> bool {
    let (read, id) = (compact_id(read), compact_id(id));
    let country = read.chars().zip(id.chars()).take(2).all(|(a, b)| a == b);
    let differ = read.chars().zip(id.chars()).filter(|(a, b)| a != b).count();
    country && read.len() == id.len() && differ <= MAX_MISREAD_CHARS
}

impl SupplierSearch<'_> {
    /// The identifier that is least likely the customer's.
    pub(super) fn find_vat_id(&self) -> Option<FoundValue<String>> {
        let mut best: Option<(f32, FoundValue<String>)> = None;
        let customers = self.customer_ids();
        for (index, cell) in self.layout.cells.iter().enumerate() {
            for start in 0..cell.words.len() {
                let before = cell.folded.iter().rev().filter(|(_, word)| *word < start);
                if before.take(2).any(|(text, _)| text == "iban") {
                    continue;
                }
                let words = cell.words_in(start..cell.words.len());
                let found = printed_vat_id::find_at(&words);
                let Some((id, _)) = found else { continue };
                // The front of an account has an identifier's form in some countries.
                if self.is_reference(index, &id) || account::find_iban_at(&words).is_some() {
                    continue;
                }
                if customers.contains(&compact_id(&id)) {
                    break;
                }
                let mut score = self.vat_score(cell, index, start);
                score -= index as f32 / (self.layout.cells.len() * 4).max(1) as f32;
                if score > 0.0 && best.as_ref().is_none_or(|(other, _)| score > *other) {
                    best = Some((score, FoundValue::at_word(id, score >= 3.0, cell, index)));
                }
                break;
            }
        }
        best.map(|(_, found)| found).or_else(|| self.find_national_id())
    }

    /// Whether the identifier is in the block of another company, and in none of the issuer's: the only
    /// one of the page may be the customer's.
    pub(super) fn is_of_other_party(
        &self,
        id: &FoundValue<String>,
        best: &NameCandidate<'_>,
        candidates: &[NameCandidate<'_>],
    ) -> bool {
        let Some(own) = self.layout.cells.get(id.cell) else { return false };
        let mut holders = candidates.iter().filter(|one| {
            one.has(NameSign::LegalForm)
                && self.block_below(one.cell).iter().any(|line| std::ptr::eq(*line, own))
        });
        let is_issuer =
            |one: &NameCandidate<'_>| self.is_same_firm(best, one) || self.is_same_firm(one, best);
        let block = self.block_below(best.cell);
        let within = best.has(NameSign::VatNear)
            || std::ptr::eq(best.cell, own)
            // The small print of a foot, too, begins with a legal form.
            || !self.is_under_address(own)
            || block.iter().any(|line| std::ptr::eq(*line, own));
        let first = holders.next();
        !within && first.is_some_and(|one| !is_issuer(one)) && !holders.any(is_issuer)
    }

    /// Whether a text in an identifier's form has another label, and its check digits do not hold:
    /// `Poziv na broj: HR00 20771-2024`.
    fn is_reference(&self, index: usize, id: &str) -> bool {
        let mut labels = self.matches.in_cell(index);
        let named = labels
            .any(|label_match| label_match.field == "other" && label_match.words.start == 0)
            && !self.matches.in_cell(index).any(is_of_tax);
        named && vat_digits::check_digits_hold(id) == Some(false)
    }

    /// How the identifier was found; `name`: the signs of the issuer's name, `block`: the lines
    /// under it.
    pub(super) fn id_reading(
        &self,
        vat: Option<&FoundValue<String>>,
        name: &[NameSign],
        block: &[&TextCell],
    ) -> Vec<ReadingSign> {
        let Some(vat) = vat else {
            let seen = self.matches.of_role(FieldRole::SupplierVatId).next();
            let seen = seen.map(|_| ReadingSign::LabelSeen);
            let open = self.has_open_id()
                || block.iter().take(LINES_OF_ISSUER).any(|line| self.ends_in_open_id(line))
                || self.has_open_tax_number();
            let open = open.then_some(ReadingSign::IdOpen);
            return [ReadingSign::NoId].into_iter().chain(seen).chain(open).collect();
        };
        // Spain's and Mexico's begin with a letter, and with no country's.
        let words: Vec<&str> = vat.value.split(' ').collect();
        let national = printed_vat_id::find_at(&words).is_none();
        let mut signs = vec![match (national, vat.certain) {
            (true, _) => ReadingSign::IdNational,
            (false, true) => ReadingSign::IdLabelled,
            (false, false) => ReadingSign::IdBare,
        }];
        let (own, customers) = (compact_id(&vat.value), self.customer_ids());
        // An identifier under another address is that party's, where the issuer's is near its name
        // or beside its mail or account.
        let sure = name.contains(&NameSign::VatNear)
            || self.layout.cells.get(vat.cell).is_some_and(|cell| self.is_beside_contact(cell));
        let theirs = |cell: &TextCell| sure && self.is_under_address(cell);
        // The customer's identifier is no rival.
        let others = self.layout.cells.iter().enumerate().any(|(index, cell)| {
            (0..cell.words.len()).any(|start| {
                let words = cell.words_in(start..cell.words.len());
                let account = account::find_iban_at(&words).is_some();
                let rival =
                    printed_vat_id::find_at(&words).filter(|_| !account).is_some_and(|(id, _)| {
                        let id = compact_id(&id);
                        let misread = vat_digits::check_digits_hold(&id) == Some(false)
                            && is_misreading_of(&id, &own);
                        // A meter's number may have an identifier's form, and no label.
                        let chance = vat_digits::check_digits_hold(&id) == Some(false)
                            && self.vat_score(cell, index, start) < 3.0;
                        let known = id == own || customers.contains(&id);
                        !(known || chance || cell.from_picture && misread)
                    });
                rival
                    && self.vat_score(cell, index, start) > 0.0
                    && !theirs(cell)
                    && !self.is_in_customers_row(index)
            })
        });
        // Two with labels, and neither is with the recipient.
        let labelled = national
            && self.national_ids().any(|(_, found)| {
                let id = compact_id(&found.value);
                let cell = self.layout.cells.get(found.cell);
                id != own
                    && !customers.contains(&id)
                    && !cell.is_some_and(theirs)
                    && !self.is_in_customers_row(found.cell)
            });
        signs.extend((others || labelled).then_some(ReadingSign::IdRivals));
        let sound = vat_digits::check_digits_hold(&vat.value) == Some(true);
        signs.extend(sound.then_some(ReadingSign::IdSound));
        signs.extend(name.contains(&NameSign::VatNear).then_some(ReadingSign::IdNearName));
        signs
    }

    /// Whether a number looks like an identifier and has no known label: behind an abbreviation, or
    /// in a form that hardly any other number has.
    fn has_open_id(&self) -> bool {
        let cells = self.layout.cells.iter().enumerate();
        let mut plain = cells.filter(|(_, cell)| !self.layout.is_on_amount_row(cell));
        plain.any(|(index, cell)| {
            let open = (0..cell.words.len()).any(|at| {
                let Some(word) = cell.words.get(at) else { return false };
                let word = word.trim_matches(|c: char| !c.is_alphanumeric());
                // `P.I. e C.F.`: a label behind unknown words names the number only in part.
                let whole = |from: usize| {
                    let before = from.checked_sub(1).and_then(|before| cell.words.get(before));
                    before.is_none_or(|word| has_digit(word))
                };
                let named = self.matches.in_cell(index).any(|label_match| {
                    label_match.words.end == at
                        && whole(label_match.words.start)
                        && !label_match.has_role(FieldRole::TaxAmount)
                        && label_match.field != "legal_form"
                        && !label_match.field.starts_with("column_")
                });
                let before = at.checked_sub(1).and_then(|at| cell.words.get(at));
                let canadian = cell.words.get(at + 1).is_some_and(|next| is_canadian_account(next));
                let short = before.is_some_and(|word| is_abbreviation(word)) && is_id_long(word);
                // `TERM: JD1174402`
                let terminal =
                    before.is_some_and(|word| vocabulary().terminal.has(&fold_text(word)));
                let short = short && !canadian && !terminal;
                !named && (short || is_taxpayer_form(word))
            });
            open && !self.is_customer(cell)
        })
    }

    /// `Contribuinte 550409432` in the issuer's block: a long number behind unknown words.
    fn ends_in_open_id(&self, line: &TextCell) -> bool {
        let [words @ .., number] = line.words.as_slice() else { return false };
        let text = line.joined_text();
        let mut known = self.matches.in_cell(line.index);
        (1..=3).contains(&words.len())
            && is_taxpayer_number(number)
            && words.first().is_some_and(|word: &String| count_letters(word) >= 3)
            && !known.any(|label_match| label_match.field != "legal_form")
            && !self.is_customer(line)
            && !self.has_contact_details(line)
            && !is_registry_line(&text)
            && !has_postal_code(&text)
    }

    /// The name of a tax without an amount, and under it a long number alone.
    fn has_open_tax_number(&self) -> bool {
        self.matches.of_role(FieldRole::TaxAmount).any(|label_match| {
            let label = self
                .matches
                .cell_of(label_match)
                .filter(|cell| !self.is_customer(cell) && !self.layout.is_on_amount_row(cell));
            let below = label.and_then(|label| self.layout.cell_below(label, 1.2));
            below.is_some_and(
                |cell| matches!(cell.words.as_slice(), [number] if is_taxpayer_number(number)),
            )
        })
    }

    /// The identifiers in the recipient's block, wherever else they are printed: payment providers
    /// repeat the customer's at the head of the page.
    fn customer_ids(&self) -> Vec<String> {
        let addressed = self.addressed_cells();
        let cells = self.recipient.iter().chain(&addressed);
        let cells = cells.filter_map(|index| self.layout.cells.get(*index));
        // `IČO: 12345678      DIČ: CZ12345678`: text close behind a line of the block belongs to
        // it.
        let cells = cells.flat_map(|cell| {
            let labelled = self.layout.next_in_row(cell).filter(|next| {
                let mut matches = self.matches.in_cell(next.index);
                next.area.x - cell.area.right() < CLOSE_BEHIND * cell.area.h
                    && matches.any(|label_match| {
                        label_match.words.start == 0
                            && label_match.has_role(FieldRole::SupplierVatId)
                    })
            });
            [Some(cell), labelled].into_iter().flatten()
        });
        let ids = cells.flat_map(|cell| {
            (0..cell.words.len()).filter_map(|start| {
                let words = cell.words_in(start..cell.words.len());
                printed_vat_id::find_at(&words).map(|(id, _)| compact_id(&id))
            })
        });
        ids.take(MAX_CUSTOMER_IDS).collect()
    }

    /// An identifier without a country's prefix needs a label.
    pub(super) fn find_national_id(&self) -> Option<FoundValue<String>> {
        let found: Vec<(bool, FoundValue<String>)> = self.national_ids().collect();
        let own = found.iter().find(|(own, _)| *own).or(found
            .iter()
            .find(|(_, id): &&(bool, FoundValue<String>)| !self.is_in_customers_row(id.cell)));
        let own = own.or(found.first());
        let canadian = || {
            let cells = self.layout.cells.iter().enumerate();
            let mut own = cells.filter(|(_, cell)| !self.is_customer(cell));
            own.find_map(|(at, cell)| {
                Some(FoundValue::at_word(canadian_account(cell)?, false, cell, at))
            })
        };
        canadian().or_else(|| own.map(|(_, id)| id.clone()))
    }

    /// Such identifiers, and whether telephone, mail or account are beside them.
    fn national_ids(&self) -> impl Iterator<Item = (bool, FoundValue<String>)> {
        let addressed = self.addressed_cells();
        let taxes =
            self.matches.of_role(FieldRole::TaxAmount).map(|label_match| (label_match, true));
        let labels = self
            .matches
            .of_role(FieldRole::SupplierVatId)
            .map(|label_match| (label_match, false))
            .chain(taxes);
        labels.filter_map(move |(label_match, of_tax)| {
            let cell = self.matches.cell_of(label_match).filter(|cell| !self.is_customer(cell))?;
            if addressed.contains(&label_match.cell) {
                return None;
            }
            let beside = self.matches.value_candidates(label_match);
            // Under a label that is alone.
            let alone = label_match.words == (0..cell.words.len());
            let first = beside.iter().find(|beside| !beside.below || alone && !of_tax)?;
            let words = first.value_words();
            // `GST   118-447-118`: the name of the tax alone, beside a number that no amount is
            // written as.
            if of_tax && !(label_match.words.start == 0 && is_grouped_number(&words)) {
                return None;
            }
            let at = words.iter().position(|word| has_digit(word))?;
            let rest = words.get(at..).unwrap_or_default();
            let id = words.get(at..at + count_groups(rest).max(1))?.join(" ");
            let id = id.trim_matches([':', ',', ';', '.', '(', ')', '#']);
            let compact: Vec<char> = id.chars().filter(|c| c.is_alphanumeric()).collect();
            let digits = compact.iter().filter(|c| c.is_ascii_digit()).count();
            let national = (7..=15).contains(&compact.len()) && digits + 3 >= compact.len();
            let label = fold_text(&cell.words_in(label_match.words.clone()).join(" "));
            let icelandic = label.starts_with("vsk ") && is_icelandic(&compact);
            let fits = national || icelandic || is_indian(&compact) || is_mexican(&compact);
            let fits = fits && !is_organisation_number(id);
            (fits && !id.contains([',', '€', '%'])).then(|| {
                let found = FoundValue::at_word(id.to_owned(), false, cell, label_match.cell);
                (self.is_contact(cell), found)
            })
        })
    }

    pub(super) fn vat_score(&self, cell: &TextCell, index: usize, start: usize) -> f32 {
        let before = |label_match: &LabelMatch| {
            let same = label_match.cell == index && label_match.words.start <= start || {
                let label = self
                    .matches
                    .cell_of(label_match)
                    .filter(|_| label_match.words.start == 0 && start == 0);
                let below = label.and_then(|label| self.layout.cell_below(label, 1.2));
                below.is_some_and(|below| below.index == index)
            };
            // `USt-ID des Kunden: DK29447711     USt-ID: …`: a label with its value names nothing
            // beside it.
            let open = |label: &TextCell| {
                let rest = label.words.get(label_match.words.end..).unwrap_or_default();
                !rest.iter().any(|word| has_digit(word))
            };
            let left = label_match.cell + 1 == index
                && self
                    .matches
                    .cell_of(label_match)
                    .is_some_and(|label| label.row == cell.row && open(label));
            same || left
        };
        let mut score = 2.0;
        if self.matches.of_role(FieldRole::SupplierVatId).any(before) {
            score += 2.0;
        }
        if self.matches.of_field("customer_vat_id").any(before) {
            score -= 9.0;
        }
        if self.is_beside_contact(cell) {
            score += BESIDE_CONTACT;
        }
        score
    }

    /// Whether a mail address, an account or a register is in a cell's row: an identifier beside an
    /// account or a mail address is the payee's.
    fn is_beside_contact(&self, cell: &TextCell) -> bool {
        let row = self.layout.row_cells(cell.row).iter();
        let mut close = row.filter(|other| other.page == cell.page);
        close.any(|other| {
            let text = other.joined_text();
            let register =
                !std::ptr::eq(other, cell) && vocabulary().court.is_within(&fold_text(&text));
            text.contains('@') || text.contains("www.") || text.contains("IBAN") || register
        })
    }

    /// Whether the lines right over a cell are an address.
    fn is_under_address(&self, cell: &TextCell) -> bool {
        let (mut at, mut town) = (cell, false);
        for _ in 0..LINES_OF_ISSUER {
            let mut above = self.layout.rows_before(at).filter(|other| is_next_line(other, at));
            let Some(next) = above.next() else { break };
            town |= has_postal_code(&next.joined_text());
            at = next;
        }
        town
    }
}

/// `Gst-nummer`: the number of a tax is no other one.
fn is_of_tax(label_match: &LabelMatch) -> bool {
    label_match.has_role(FieldRole::SupplierVatId) || label_match.has_role(FieldRole::TaxAmount)
}

#[cfg(test)]
mod tests {
    use super::super::super::label_matches::LabelMatches;
    use super::super::super::layout::CellLayout;
    use super::super::super::layout::tests::transcript;
    use super::super::find_supplier;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn identifiers_of_other_continents_are_read_beside_their_labels() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        for (label, id) in [
            ("RFC:", "APB044771KX2"),
            ("TRN:", "100447718200003"),
            ("CUIT:", "30-70447718-1"),
            ("GSTIN", "29AAJCM9944Q1Z3"),
            ("GST", "118-447-118"),
            ("GST 5%", "(81244 0975 RT0001)"),
        ] {
            let drawing = format!(
                "Reed & Quarry Ltd\nMill Road 4\n82216 Northtown\n{label} {id}\n\nInvoice 12"
            );
            let page = transcript(&[&drawing]);
            let layout = CellLayout::new(&page);
            let found = find_supplier(&LabelMatches::new(&layout, kind));
            let id = id.trim_matches(['(', ')']);
            assert_eq!(found.vat_id.map(|id| id.value).as_deref(), Some(id), "{label}");
        }
    }
}
