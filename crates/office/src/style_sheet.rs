//! Style sheets of a web page: which declarations hold for an element.
//!
//! Selectors of names, classes, ids, attributes, descendants and children are matched. A selector
//! that asks for more (its place among its siblings, `:not`) is taken to match, so that what it hides
//! is not read; one that asks for a state (`:hover`) or for a part of an element (`::before`) is not.
//! Not covered: which rule is the more specific one, sheets that are fetched.

/// Rules of all sheets of a page.
const MAX_RULES: usize = 5_000;
/// Steps of one selector.
const MAX_STEPS: usize = 32;

/// Words behind a colon for states that a page does not open in, and for parts of an element.
const STATES: [&str; 14] = [
    "hover",
    "focus",
    "focus-within",
    "focus-visible",
    "active",
    "visited",
    "target",
    "checked",
    "before",
    "after",
    "first-letter",
    "first-line",
    "placeholder",
    "empty",
];

/// The names of an element in selectors: its tag, and its attributes in lower case with their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct ElementNames {
    pub(crate) tag: String,
    pub(crate) attributes: Vec<(String, String)>,
}

impl ElementNames {
    fn attribute(&self, name: &str) -> Option<&str> {
        let mut found = self.attributes.iter().filter(|(own, _)| own == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// The rules of a page, in their order.
#[derive(Debug, Default)]
pub(crate) struct CssRuleSet {
    rules: Vec<CssRule>,
    adds_text: bool,
}

#[derive(Debug)]
struct CssRule {
    /// From the outermost step to the element itself.
    steps: Vec<SelectorStep>,
    declarations: String,
}

#[derive(Debug, Default)]
struct SelectorStep {
    parts: Vec<SelectorPart>,
    /// Whether it is the parent of the next step, not any ancestor.
    is_parent: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum SelectorPart {
    Tag(String),
    Class(String),
    Id(String),
    Attribute { name: String, sign: Option<char>, value: String },
}

impl CssRuleSet {
    /// Adds the rules of a sheet; those for other media are left out.
    pub(crate) fn add_rules(&mut self, text: &str) {
        let text = without_comments(text);
        self.add_block(&text, MAX_STEPS);
    }

    fn add_block(&mut self, text: &str, depth: usize) {
        let mut rest = text;
        while let Some((head, behind)) = rest.split_once('{') {
            let (body, behind) = split_block(behind);
            rest = behind;
            // Statements such as `@import` end before the next rule begins.
            let head = head.rsplit(';').next().unwrap_or_default().trim();
            match head.strip_prefix('@') {
                // Such list markers may be digits.
                Some(rule) if is_named(rule, "counter-style") => self.adds_text = true,
                Some(rule) if depth > 0 && holds_here(rule) => self.add_block(body, depth - 1),
                Some(_) => {}
                None => self.add_rule(head, body),
            }
        }
    }

    /// Whether a rule adds digits or signs before or after an element, or changes its first
    /// letters.
    pub(crate) fn adds_text(&self) -> bool {
        self.adds_text
    }

    fn add_rule(&mut self, selectors: &str, declarations: &str) {
        // Rules within a rule name the part of the element themselves, and escapes name any.
        let is_beside = ["before", "after", "marker", "\\"]
            .iter()
            .any(|name| selectors.contains(name) || declarations.contains(name));
        let mut parts = declarations.split([';', '{', '}']);
        self.adds_text |= is_beside && parts.any(is_digit_content)
            || ["first-letter", "first-line"].iter().any(|name| selectors.contains(name));
        for selector in selectors.split(',') {
            if let Some(steps) = parse_selector(selector.trim())
                && self.rules.len() < MAX_RULES
            {
                self.rules.push(CssRule { steps, declarations: declarations.to_owned() });
            }
        }
    }

    /// The declarations for an element within others, of which the last is its parent.
    pub(crate) fn declarations_for<'a>(
        &'a self,
        around: &'a [&'a ElementNames],
        element: &'a ElementNames,
    ) -> impl Iterator<Item = &'a str> {
        let matching = self.rules.iter().filter(|rule| rule.matches(around, element));
        matching.map(|rule| rule.declarations.as_str())
    }
}

/// Whether a declaration gives a text with digits, or one of the page's own values.
fn is_digit_content(declaration: &str) -> bool {
    let Some((name, value)) = declaration.split_once(':') else { return false };
    if !name.trim().eq_ignore_ascii_case("content") && !name.contains('\\') {
        return false;
    }
    let mut parts = value.split('\\');
    let plain = parts.next().unwrap_or_default();
    let is_sign =
        matches!(value.trim().trim_matches(['"', '\'']), "-" | "\u{2212}" | "(" | "\\2212");
    // Functions write values of the page, counts and pictures.
    let is_open = value.split(['"', '\'']).step_by(2).any(|outside| outside.contains('('));
    has_digit(plain) || is_open || is_sign || parts.any(is_digit_escape)
}

/// Whether an escape, or the text behind it, is a digit. Other escapes are the numbers of letters,
/// such as those of icons.
fn is_digit_escape(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let (code, behind) = text.split_at_checked(end).unwrap_or((text, ""));
    let letter = u32::from_str_radix(code, 16).ok().and_then(char::from_u32);
    letter.is_some_and(char::is_numeric) || has_digit(behind)
}

fn has_digit(text: &str) -> bool {
    text.contains(char::is_numeric)
}

impl CssRule {
    fn matches(&self, around: &[&ElementNames], element: &ElementNames) -> bool {
        let Some((own, outer)) = self.steps.split_last() else { return false };
        if !own.matches(element) {
            return false;
        }
        let mut around = around;
        for step in outer.iter().rev() {
            let found = match step.is_parent {
                true => around
                    .len()
                    .checked_sub(1)
                    .filter(|at| around.get(*at).is_some_and(|parent| step.matches(parent))),
                false => around.iter().rposition(|ancestor| step.matches(ancestor)),
            };
            let Some(at) = found else { return false };
            around = around.get(..at).unwrap_or_default();
        }
        true
    }
}

impl SelectorStep {
    fn matches(&self, element: &ElementNames) -> bool {
        self.parts.iter().all(|part| match part {
            SelectorPart::Tag(name) => *name == element.tag,
            SelectorPart::Class(name) => {
                let classes = element.attribute("class").unwrap_or_default();
                classes.split_whitespace().any(|class| class == name)
            }
            SelectorPart::Id(name) => element.attribute("id") == Some(name),
            SelectorPart::Attribute { name, sign, value } => {
                element.attribute(name).is_some_and(|own| match sign {
                    None => own == value,
                    Some('?') => true,
                    Some('^') => own.starts_with(value.as_str()),
                    Some('$') => own.ends_with(value.as_str()),
                    Some('~') => own.split_whitespace().any(|word| word == value),
                    Some('|') => own.split('-').next() == Some(value),
                    Some(_) => own.contains(value.as_str()),
                })
            }
        })
    }
}

fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = behind.split_once("*/").map_or("", |(_, behind)| behind);
    }
    kept + rest
}

/// The inside of a block that is open, and the text behind its brace.
fn split_block(text: &str) -> (&str, &str) {
    let mut depth = 1_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
        }
    }
    (text, "")
}

/// Whether an at-rule has that name.
fn is_named(rule: &str, name: &str) -> bool {
    rule.split_whitespace().next().is_some_and(|own| own.eq_ignore_ascii_case(name))
}

/// Whether the rules within an at-rule hold on a usual screen.
fn holds_here(rule: &str) -> bool {
    let rule = rule.to_ascii_lowercase();
    let Some(media) = rule.strip_prefix("media") else {
        return ["supports", "layer", "container"].iter().any(|name| rule.starts_with(name));
    };
    media.split(',').any(|query| {
        let is_other = ["print", "speech", "braille", "tv"].iter().any(|name| query.contains(name));
        let is_turned = query.trim_start().starts_with("not");
        is_other == is_turned && !query.contains("max-") && !query.contains("prefers")
    })
}

/// The steps of a selector; `None` where it asks for a state, a part of an element, or siblings.
fn parse_selector(selector: &str) -> Option<Vec<SelectorStep>> {
    let mut steps = vec![SelectorStep::default()];
    let mut rest = selector;
    while let Some(first) = rest.chars().next() {
        let behind = rest.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '>' | ' ' | '\t' | '\n' | '\r' => {
                let ended = rest.trim_start_matches([' ', '\t', '\n', '\r', '>']);
                let is_parent =
                    rest.get(..rest.len() - ended.len()).unwrap_or_default().contains('>');
                rest = ended;
                if rest.starts_with(['+', '~']) || steps.len() >= MAX_STEPS {
                    return None;
                }
                if let Some(last) =
                    steps.last_mut().filter(|step| !step.parts.is_empty() || is_parent)
                {
                    last.is_parent = is_parent;
                }
                steps.push(SelectorStep::default());
                continue;
            }
            '+' | '~' => return None,
            '*' => rest = behind,
            '[' => {
                let (inside, after) = behind.split_once(']')?;
                steps.last_mut()?.parts.push(parse_attribute(inside));
                rest = after;
            }
            ':' => {
                let name = behind.trim_start_matches(':');
                let (word, after) = split_name(name);
                if STATES.contains(&word) {
                    return None;
                }
                rest = match after.strip_prefix('(') {
                    Some(inside) => inside.split_once(')').map_or("", |(_, after)| after),
                    None => after,
                };
            }
            '.' | '#' => {
                let (name, after) = split_name(behind);
                let name = name.to_owned();
                let is_class = first == '.';
                let part =
                    if is_class { SelectorPart::Class(name) } else { SelectorPart::Id(name) };
                steps.last_mut()?.parts.push(part);
                rest = after;
            }
            _ => {
                let (name, after) = split_name(rest);
                if name.is_empty() {
                    return None;
                }
                steps.last_mut()?.parts.push(SelectorPart::Tag(name.to_ascii_lowercase()));
                rest = after;
            }
        }
    }
    (!selector.is_empty()).then_some(steps)
}

fn split_name(text: &str) -> (&str, &str) {
    let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\\');
    let end = text.find(|c| !is_letter(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// `name`, `name=value`, and with a sign before the equals.
fn parse_attribute(inside: &str) -> SelectorPart {
    let Some((name, value)) = inside.split_once('=') else {
        let name = inside.trim().to_ascii_lowercase();
        return SelectorPart::Attribute { name, sign: Some('?'), value: String::new() };
    };
    let sign = name.trim_end().chars().last().filter(|c| "^$*~|".contains(*c));
    let name = name.trim().trim_end_matches(['^', '$', '*', '~', '|']).trim().to_ascii_lowercase();
    let value = value.trim().trim_matches(['"', '\'']).to_owned();
    SelectorPart::Attribute { name, sign, value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: &str, attributes: &[(&str, &str)]) -> ElementNames {
        let attributes =
            attributes.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        ElementNames { tag: tag.to_owned(), attributes: attributes.collect() }
    }

    #[test]
    fn a_rule_holds_for_the_elements_that_its_selector_names() {
        let outer = element("table", &[("id", "sum"), ("class", "wide totals")]);
        let row = element("tr", &[]);
        let cell = element("td", &[("class", "old price"), ("data-x", "a-b")]);
        #[rustfmt::skip]
        let table = [
            (".old", true), ("td.old.price", true), ("th.old", false), ("*", true), ("TD", true),
            ("#sum td", true), ("#sum .price", true), ("#other td", false), ("table > td", false),
            ("tr > td", true), ("tr>td", true), ("#sum tr td", true), ("td tr", false),
            ("[data-x]", true), ("td[data-x='a-b']", true), ("[data-x^=a]", true), ("[data-x$=a]", false),
            ("[class~=old]", true), ("[data-x|=a]", true), ("[data-x*='-']", true), ("[data-y]", false),
            ("td:nth-child(2)", true), ("td:hover", false), ("td::before", false), ("p ~ td", false),
            ("p, .old", true), ("", false), ("td:not(.x)", true),
        ];
        for (selector, expected) in table {
            let mut sheet = CssRuleSet::default();
            sheet.add_rules(&format!("{selector} {{ display: none }}"));
            let around = [&outer, &row];
            let found = sheet.declarations_for(&around, &cell).next().is_some();
            assert_eq!(found, expected, "{selector}");
        }
    }

    #[test]
    fn digits_that_a_rule_writes_beside_an_element_are_seen() {
        for (rule, expected) in [
            ("b::before{content:'9'}", true),
            ("b:after{color:red;content:\"\\39\"}", true),
            ("b::before{content:attr(data-x)}", true),
            ("b::before{content:'\\f101'}", false),
            (".clearfix::after{content:'';clear:both}", false),
            ("b{content:'9'}", false),
            ("b::before{content:counters(x, '.')}", true),
            ("b::before{content:url(9.svg)}", true),
            ("b::before{content:'(net)'}", false),
            ("b::before{content:'\u{ff19}'}", true),
            ("b::bef\\6fre{content:'9'}", true),
            ("b::before{c\\6fntent:'9'}", true),
            ("td{&::before{content:'9'}}", true),
            ("td{page-break-before:always;width:9px}", false),
            ("@counter-style q{symbols:'9';suffix:''}", true),
            ("@media screen{@counter-style q{symbols:'9'}}", true),
        ] {
            let mut sheet = CssRuleSet::default();
            sheet.add_rules(rule);
            assert_eq!(sheet.adds_text(), expected, "{rule}");
        }
    }

    #[test]
    fn rules_for_other_media_and_narrow_screens_do_not_hold() {
        let cell = element("td", &[]);
        #[rustfmt::skip]
        let table = [
            ("td{a:b}", true),
            ("/* x */ td{a:b}", true),
            ("/* td{a:b} */", false),
            ("@import url(x.css); td{a:b}", true),
            ("@media print { td{a:b} }", false),
            ("@media screen { td{a:b} }", true),
            ("@media all { td{a:b} }", true),
            ("@media not print { td{a:b} }", true),
            ("@media print, screen { td{a:b} }", true),
            ("@media only screen and (max-width:600px) { td{a:b} }", false),
            ("@supports (x:y) { td{a:b} }", true),
            ("@font-face { a:b }", false),
            ("@media screen { @media print { td{a:b} } }", false),
            ("@media print { p{} } td{a:b}", true),
            ("td{a:b", true),
        ];
        for (text, expected) in table {
            let mut sheet = CssRuleSet::default();
            sheet.add_rules(text);
            assert_eq!(sheet.declarations_for(&[], &cell).next().is_some(), expected, "{text}");
        }
    }
}
