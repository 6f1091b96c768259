//! `kind.toml`: what a kind is called, and the cheap signs by which its documents are recognised.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::labels::texts_by_language;
use super::problem::{KindProblem, ProblemReport};
use super::role::{FieldRole, RoleNames};
use super::showing::{MAX_PAGES, MIN_PIXELS, PageShowing, ShowPages};
use docmill_core::config::OcrProvider;
use docmill_formats::notation::fold_text;

/// Where a sign has to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalArea {
    /// A text of its own in the upper part of the first page, and nothing else.
    Heading,
    /// At the beginning of a short text in the upper part of the first page.
    Title,
    /// On one of the first pages.
    Anywhere,
}

/// Words that speak for a kind, or with a negative weight against it.
#[derive(Debug, Clone, PartialEq)]
pub struct KindSignal {
    /// Where in the document the signal's words have to stand.
    pub place: SignalArea,
    /// The gain of the kind's score if at least one of them is present; several count as one.
    pub weight: f64,
    /// One of them is enough.
    pub phrases: Vec<SignalPhrase>,
}

/// Phrases of at least so many letters are found without their spaces, too.
const MIN_JOINED: usize = 8;

/// Folded words in a row, as they are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalPhrase {
    /// The first one may be the end of a longer word.
    pub ending: bool,
    /// At least one.
    pub words: Vec<String>,
}

impl SignalPhrase {
    /// A phrase as it is written, in several ways: some engines lose the spaces between words.
    fn spellings(text: &str) -> impl Iterator<Item = Self> {
        let (ending, folded) = (text.starts_with('*'), fold_text(text));
        let joins = folded.contains(' ') && folded.len() >= MIN_JOINED;
        let joined = joins.then(|| folded.replace(' ', ""));
        [Some(folded), joined].into_iter().flatten().map(move |words| Self::new(&words, ending))
    }

    fn new(folded: &str, ending: bool) -> Self {
        Self { ending, words: folded.split(' ').map(str::to_owned).collect() }
    }
}

/// The contents of a `kind.toml`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct KindDescription {
    pub(super) title: String,
    pub(super) signals: Vec<KindSignal>,
    pub(super) read_by: Option<Vec<OcrProvider>>,
    pub(super) showing: PageShowing,
    pub(super) roles: RoleNames,
    pub(super) not_asked: Vec<String>,
}

impl KindDescription {
    pub(super) fn parse(file: &Path, text: &str) -> Result<Self, Vec<KindProblem>> {
        let mut report = ProblemReport::new(file, text);
        let mut description = Self::default();
        match DeTable::parse(text) {
            Ok(table) => description.read_table(table.get_ref(), &mut report),
            Err(error) => report.report_toml(&error),
        }
        if report.problems.is_empty() { Ok(description) } else { Err(report.problems) }
    }

    fn read_table(&mut self, table: &DeTable<'_>, report: &mut ProblemReport<'_>) {
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("title", DeValue::String(title)) if !title.trim().is_empty() => {
                    self.title = title.trim().to_owned();
                }
                ("title", _) => report.report_at(value.span().start, "`title` is a text"),
                ("signal", DeValue::Array(list)) => {
                    for signal in list {
                        self.signals.extend(read_signal(signal, report));
                    }
                }
                ("read_by", list) => match read_provider_order(list) {
                    Ok(order) => self.read_by = Some(order),
                    Err(problem) => {
                        report.report_at(value.span().start, format!("`read_by` {problem}"))
                    }
                },
                ("show_pages" | "shown_pages" | "shown_pixels", _) => {
                    if let Err(problem) = self.read_showing(key.get_ref(), value.get_ref()) {
                        report.report_at(value.span().start, problem);
                    }
                }
                ("not_asked", list) => match read_field_names(list) {
                    Some(names) => self.not_asked = names,
                    None => {
                        report.report_at(value.span().start, "`not_asked` is a list of fields");
                    }
                },
                ("roles", DeValue::Table(table)) => self.read_roles(table, report),
                ("signal", _) => {
                    report.report_at(value.span().start, "signals are written [[signal]]")
                }
                (other, _) => {
                    report.report_at(
                        key.span().start,
                        format!(
                            "`{other}` is none of title, read_by, show_pages, shown_pages, \
                             shown_pixels, not_asked, roles, signal"
                        ),
                    );
                }
            }
        }
        if self.title.is_empty() && report.problems.is_empty() {
            report.report_file("has no `title`: what people call the kind");
        }
    }
}

impl KindDescription {
    /// `role = "field"`.
    fn read_roles(&mut self, table: &DeTable<'_>, report: &mut ProblemReport<'_>) {
        for (role, field) in table {
            let name = role.get_ref().as_ref();
            match field.get_ref().as_str() {
                _ if FieldRole::from_name(name).is_none() => {
                    let problem = format!("`{name}` is none of {}", FieldRole::all_names());
                    report.report_at(role.span().start, problem);
                }
                Some(field) => _ = self.roles.0.insert(name.to_owned(), field.to_owned()),
                None => report.report_at(field.span().start, format!("`{name}` names a field")),
            }
        }
    }

    fn read_showing(&mut self, key: &str, value: &DeValue<'_>) -> Result<(), String> {
        let number = value.as_integer().and_then(|number| number.as_str().parse::<u64>().ok());
        match key {
            "show_pages" => {
                let when = value.as_str().and_then(ShowPages::from_name);
                self.showing.when = when.ok_or("`show_pages` is never, doubtful or always")?;
            }
            "shown_pages" => {
                let most = number.and_then(|most| u32::try_from(most).ok());
                let most = most.filter(|most| (1..=MAX_PAGES).contains(most));
                self.showing.most_pages =
                    most.ok_or(format!("`shown_pages` is between 1 and {MAX_PAGES}"))?;
            }
            _ => {
                let most = number.filter(|most| *most == 0 || *most >= MIN_PIXELS);
                self.showing.most_pixels =
                    most.ok_or(format!("`shown_pixels` is 0, or at least {MIN_PIXELS}"))?;
            }
        }
        Ok(())
    }
}

/// `["field", "list.field"]`.
fn read_field_names(list: &DeValue<'_>) -> Option<Vec<String>> {
    let names = list.as_array()?.iter().map(|name| name.get_ref().as_str().map(str::to_owned));
    names.collect()
}

/// Names of those who read page images, as in `ocr.providers`.
fn read_provider_order(list: &DeValue<'_>) -> Result<Vec<OcrProvider>, Cow<'static, str>> {
    let names = list.as_array().ok_or("is a list of names")?;
    let order = names.iter().map(|name| {
        let name = name.get_ref().as_str()?;
        OcrProvider::ALL.into_iter().find(|provider| provider.name() == name)
    });
    let order: Option<Vec<OcrProvider>> = order.collect();
    let order = order
        .ok_or_else(|| format!("names {}", OcrProvider::ALL.map(OcrProvider::name).join(", ")))?;
    OcrProvider::order_problem(&order).map_or(Ok(order), |problem| Err(problem.into()))
}

fn read_signal(
    signal: &Spanned<DeValue<'_>>,
    report: &mut ProblemReport<'_>,
) -> Option<KindSignal> {
    let before = report.problems.len();
    let Some(table) = signal.get_ref().as_table() else {
        report.report_at(signal.span().start, "signals are written [[signal]]");
        return None;
    };
    let (mut place, mut weight, mut phrases) = (None, None, Vec::new());
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "place" => {
                place = value.get_ref().as_str().and_then(parse_area);
                if place.is_none() {
                    report.report_at(value.span().start, "`place` is heading, title or anywhere");
                }
            }
            "weight" => {
                weight = parse_number(value.get_ref());
                if weight.is_none() {
                    report.report_at(value.span().start, "`weight` is a number from -100 to 100");
                }
            }
            "words" => phrases = read_phrases(value, report),
            other => {
                report.report_at(
                    key.span().start,
                    format!("`{other}` is none of place, weight, words"),
                );
            }
        }
    }
    if report.problems.len() > before {
        return None;
    }
    let (Some(place), Some(weight)) = (place, weight) else {
        report.report_at(signal.span().start, "a signal needs `place`, `weight` and `words`");
        return None;
    };
    if phrases.is_empty() {
        report.report_at(signal.span().start, "a signal needs `place`, `weight` and `words`");
    }
    Some(KindSignal { place, weight, phrases })
}

fn read_phrases(value: &Spanned<DeValue<'_>>, report: &mut ProblemReport<'_>) -> Vec<SignalPhrase> {
    let mut phrases = Vec::new();
    for (_, text) in texts_by_language("words", value, report) {
        if fold_text(text.get_ref()).is_empty() {
            let problem = format!("`{}` has no letter or digit", text.get_ref());
            report.report_at(text.span().start, problem);
        }
        phrases.extend(SignalPhrase::spellings(text.get_ref()));
    }
    phrases
}

fn parse_area(text: &str) -> Option<SignalArea> {
    match text {
        "heading" => Some(SignalArea::Heading),
        "title" => Some(SignalArea::Title),
        "anywhere" => Some(SignalArea::Anywhere),
        _ => None,
    }
}

fn parse_number(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(number) => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => return None,
    };
    text.parse().ok().filter(|number: &f64| number.abs() <= 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_read_folded_with_place_and_weight() {
        let text = "title = 'Delivery note'\n[[signal]]\nplace = 'heading'\nweight = 5\n\
                    words.en = ['Delivery Note']\nwords.de = ['*schein']";
        let description = KindDescription::parse(Path::new("kind.toml"), text).unwrap();
        let phrases =
            ["delivery note", "deliverynote"].map(|words| SignalPhrase::new(words, false));
        let phrases = [vec![SignalPhrase::new("schein", true)], phrases.to_vec()].concat();
        let expected = KindSignal { place: SignalArea::Heading, weight: 5.0, phrases };
        assert_eq!(description.signals, [expected]);
    }

    #[test]
    fn a_kind_may_be_read_by_others_than_all_are() {
        let text = "title = 'Form'\nread_by = ['textract', 'tesseract']";
        let description = KindDescription::parse(Path::new("kind.toml"), text).unwrap();
        let order = vec![OcrProvider::Textract, OcrProvider::Tesseract];
        assert_eq!(description.read_by, Some(order));
    }

    #[test]
    fn what_is_wrong_with_signals_is_said_by_line() {
        for (text, problem) in [
            ("[[signal]]\nplace='top'\nweight=1\nwords.en=['a']", "kind.toml:2: `place`"),
            ("title=''", "kind.toml:1: `title`"),
            ("", "kind.toml: has no `title`"),
            ("title='a'\ntilte='b'", "kind.toml:2: `tilte`"),
            ("title='a'\n[[signal]]\nweight=1\nwords.en=['a']", "kind.toml:2: a signal needs"),
            ("title='a'\n[[signal]]\nplace='title'\nweight=1", "kind.toml:2: a signal needs"),
            ("title='a'\n[[signal]]\nweight='1'", "kind.toml:3: `weight`"),
            ("title='a'\n[[signal]]\nwords=['a']", "kind.toml:3: what `words` holds"),
            ("title='a'\n[[signal]]\nwords.en=['!']", "kind.toml:3: `!`"),
            ("title='a'\nread_by='tesseract'", "kind.toml:2: `read_by` is a list"),
            ("title='a'\nread_by=['abbyy']", "kind.toml:2: `read_by` names"),
            ("title='a'\nread_by=[]", "kind.toml:2: `read_by` names no reader"),
            ("title='a'\nnot_asked='total'", "kind.toml:2: `not_asked` is a list"),
            ("title='a'\nnot_asked=[1]", "kind.toml:2: `not_asked` is a list"),
        ] {
            let problems = KindDescription::parse(Path::new("kind.toml"), text).unwrap_err();
            assert!(problems[0].to_string().starts_with(problem), "{text}: {problems:?}");
        }
    }
}
