//! Conditional formats of a sheet (ISO/IEC 29500-1 §18.3.1.18) that change the displayed text:
//! number format, colours, values replaced by icons.
//!
//! Comparisons with numbers, constants and non-blank cells are evaluated. Under any other condition
//! that would change its text, a cell is doubtful.

use docmill_core::model::PageNote;
use docmill_formats::xml::XmlNode;

use crate::cell_area::CellArea;
use crate::cell_format::{CellContent, CellFormats, CellLook, LookChange, ShownCell};
use crate::number_code::NumberCondition;
use crate::tags::{all, attribute, child, number, own_text};

/// Maximum areas of all rules of a sheet; with more, its cells are doubtful.
const MAX_AREAS: usize = 1_000;

/// When a rule applies.
#[derive(Debug, Clone, PartialEq)]
enum RuleCondition {
    Always,
    Never,
    /// All of these comparisons hold, or one of them.
    Compare(Vec<NumberCondition>, bool),
    Unknown,
}

/// The result of a rule.
#[derive(Debug, Clone, PartialEq)]
enum RuleEffect {
    Change(LookChange),
    /// A bar or an icon replaces the value.
    HideValue,
}

#[derive(Debug)]
struct ConditionalRule {
    areas: Vec<CellArea>,
    priority: u32,
    condition: RuleCondition,
    effect: RuleEffect,
}

/// The rules of a sheet; earlier ones take precedence.
#[derive(Debug, Default)]
pub(crate) struct ConditionalRules {
    rules: Vec<ConditionalRule>,
    is_cut: bool,
}

impl ConditionalRules {
    pub(crate) fn read(root: XmlNode<'_, '_>, formats: &CellFormats) -> Self {
        let (mut found, mut count) = (Self::default(), 0);
        for list in all(root, "conditionalFormatting") {
            let inner = child(list, "sqref").map(own_text);
            let Some(text) = attribute(list, "sqref").map(str::to_owned).or(inner) else {
                continue;
            };
            let areas: Vec<CellArea> =
                text.split_whitespace().filter_map(CellArea::parse).take(MAX_AREAS).collect();
            for rule in all(list, "cfRule") {
                let Some(effect) = read_effect(rule, formats) else { continue };
                count += areas.len();
                if count > MAX_AREAS {
                    found.is_cut = true;
                    return found;
                }
                found.rules.push(ConditionalRule {
                    areas: areas.clone(),
                    priority: number(rule, "priority").unwrap_or(u32::MAX),
                    condition: read_condition(rule),
                    effect,
                });
            }
        }
        // The first rule that holds wins: it is applied last.
        found.rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        found
    }

    /// The text that a cell shows under the rules.
    pub(crate) fn show(
        &self,
        place: (u32, u32),
        look: &CellLook,
        content: &CellContent,
        is_1904: bool,
    ) -> ShownCell {
        let rules =
            self.rules.iter().filter(|it| it.areas.iter().any(|it| it.contains(place.0, place.1)));
        let rules: Vec<&ConditionalRule> = rules.collect();
        if rules.is_empty() && !self.is_cut {
            return look.show(content, is_1904);
        }
        let (mut sure, mut doubtful, mut is_hidden) = (look.clone(), vec![], false);
        for rule in rules {
            match (rule.holds_for(content), &rule.effect) {
                (Some(true), RuleEffect::Change(change)) => sure = sure.changed(change),
                (Some(true), RuleEffect::HideValue) => is_hidden = true,
                (None, effect) => doubtful.push(effect),
                (Some(false), _) => {}
            }
        }
        let shown = sure.show(content, is_1904);
        if is_hidden && !shown.text.is_empty() {
            return ShownCell { text: String::new(), note: Some(PageNote::HiddenText) };
        }
        let is_doubtful = self.is_cut
            || doubtful.into_iter().any(|effect| match effect {
                RuleEffect::HideValue => true,
                RuleEffect::Change(change) => {
                    sure.clone().changed(change).show(content, is_1904).text != shown.text
                }
            });
        let note = is_doubtful.then_some(PageNote::DoubtfulText).or(shown.note);
        ShownCell { text: shown.text, note }
    }
}

impl ConditionalRule {
    /// Whether the rule applies to a cell; `None`: not evaluated here.
    fn holds_for(&self, content: &CellContent) -> Option<bool> {
        let value = match content {
            CellContent::Number(raw) => raw.trim().parse::<f64>().ok(),
            _ => None,
        };
        match (&self.condition, value) {
            (RuleCondition::Always, _) => Some(true),
            (RuleCondition::Never, _) => Some(false),
            (RuleCondition::Compare(all, true), Some(value)) => {
                Some(all.iter().all(|it| it.holds(value)))
            }
            (RuleCondition::Compare(any, false), Some(value)) => {
                Some(any.iter().any(|it| it.holds(value)))
            }
            _ => None,
        }
    }
}

/// The effect of a rule on the text of its cells; `None` if it has none.
fn read_effect(rule: XmlNode<'_, '_>, formats: &CellFormats) -> Option<RuleEffect> {
    let replaces = ["dataBar", "iconSet"].iter().filter_map(|name| child(rule, name));
    let mut replaces =
        replaces.filter(|it| matches!(attribute(*it, "showValue"), Some("0" | "false")));
    if replaces.next().is_some() {
        return Some(RuleEffect::HideValue);
    }
    formats.change_of(rule).map(RuleEffect::Change)
}

fn read_condition(rule: XmlNode<'_, '_>) -> RuleCondition {
    let formulas: Vec<String> = rule
        .children()
        .filter(|it| matches!(it.tag_name().name(), "formula" | "f"))
        .map(|it| own_text(it).trim().to_ascii_uppercase())
        .collect();
    match attribute(rule, "type") {
        Some("notContainsBlanks" | "dataBar" | "iconSet") => RuleCondition::Always,
        Some("containsBlanks") => RuleCondition::Never,
        Some("expression") => match formulas.first().map(String::as_str) {
            Some("TRUE" | "TRUE()" | "1") => RuleCondition::Always,
            Some("FALSE" | "FALSE()" | "0") => RuleCondition::Never,
            _ => RuleCondition::Unknown,
        },
        Some("cellIs") => read_comparison(attribute(rule, "operator"), &formulas),
        _ => RuleCondition::Unknown,
    }
}

fn read_comparison(operator: Option<&str>, formulas: &[String]) -> RuleCondition {
    let (signs, is_all): (&[&str], bool) = match operator.unwrap_or_default() {
        "lessThan" => (&["<"], true),
        "lessThanOrEqual" => (&["<="], true),
        "equal" => (&["="], true),
        "notEqual" => (&["<>"], true),
        "greaterThanOrEqual" => (&[">="], true),
        "greaterThan" => (&[">"], true),
        "between" => (&[">=", "<="], true),
        "notBetween" => (&["<", ">"], false),
        _ => return RuleCondition::Unknown,
    };
    let parts = signs.iter().zip(formulas);
    let parts: Option<Vec<NumberCondition>> =
        parts.map(|(sign, bound)| NumberCondition::parse(&format!("{sign}{bound}"))).collect();
    match parts.filter(|parts| parts.len() == signs.len()) {
        Some(parts) => RuleCondition::Compare(parts, is_all),
        None => RuleCondition::Unknown,
    }
}
