//! Content controls bound to custom XML (ISO/IEC 29500-1 §17.5.2.6): Word replaces their stored
//! text by the bound value when it opens a document.

use docmill_formats::xml::{XmlNode, XmlText};

use crate::error::OfficeError;
use crate::package::OfficePackage;
use crate::tags::{all, attribute, child, elements, own_text};

/// Content controls that display a value in another form.
const OTHER_FORMS: [&str; 3] = ["picture", "checkbox", "repeatingSection"];
/// Custom XML parts read.
const MAX_PARTS: usize = 20;

/// The custom XML parts of a document.
#[derive(Default)]
pub(crate) struct BoundData(Vec<XmlText>);

impl BoundData {
    /// Reads the parts with those names, and the document properties.
    pub(crate) fn read(
        package: &mut OfficePackage<'_>,
        parts: impl Iterator<Item = String>,
    ) -> Result<Self, OfficeError> {
        let own = ["docProps/core.xml", "docProps/app.xml"].map(str::to_owned);
        let mut found = Vec::new();
        for part in own.into_iter().chain(parts).take(MAX_PARTS) {
            found.extend(package.read_xml(&part)?);
        }
        Ok(Self(found))
    }

    /// Whether the text of a `w:sdt` differs in digits from its bound value.
    pub(crate) fn contradicts(&self, node: XmlNode<'_, '_>) -> bool {
        let Some(form) = child(node, "sdtPr") else { return false };
        let Some(path) = child(form, "dataBinding").and_then(|it| attribute(it, "xpath")) else {
            return false;
        };
        if OTHER_FORMS.iter().any(|name| child(form, name).is_some()) {
            return false;
        }
        let shown: String = all(node, "t").map(own_text).collect();
        if is_open_path(path) {
            return shown.contains(char::is_numeric);
        }
        let trees = self.0.iter().filter_map(|xml| xml.parse_tree().ok());
        let mut values = trees.filter_map(|tree| value_at(tree.root(), path));
        values.any(|value| !is_shown(&value, &shown, form))
    }
}

/// Whether an XPath has more than element names and positions.
fn is_open_path(path: &str) -> bool {
    let mut counts = path.split('[').skip(1).map(|it| it.split(']').next().unwrap_or_default());
    path.contains("//")
        || path.contains('(')
        || counts.any(|it| it.trim().parse::<usize>().is_err())
}

/// The text at a path below a node.
fn value_at(root: XmlNode<'_, '_>, path: &str) -> Option<String> {
    let mut node = root;
    for step in path.split('/').filter(|step| !step.is_empty()) {
        let (name, count) = step.split_once('[').unwrap_or((step, "1"));
        let name = name.rsplit(':').next().unwrap_or_default().trim();
        if step.starts_with('@') {
            return attribute(node, name.trim_start_matches('@')).map(str::to_owned);
        }
        let count: usize = count.trim_end_matches(']').trim().parse().ok()?;
        let mut named = elements(node).filter(|it| it.tag_name().name() == name);
        node = named.nth(count.checked_sub(1)?)?;
    }
    let texts = node.descendants().filter(|it| it.is_text()).filter_map(|it| it.text());
    Some(texts.collect())
}

/// Whether a value is shown as a text: by its digits, its day, or an entry of a choice.
fn is_shown(value: &str, shown: &str, form: XmlNode<'_, '_>) -> bool {
    let has_name = |it: &XmlNode<'_, '_>| attribute(*it, "value") == Some(value);
    if all(form, "listItem").filter(has_name).any(|it| attribute(it, "displayText") == Some(shown))
    {
        return true;
    }
    let [value, shown] = [value, shown].map(numbers_of);
    match value.as_slice() {
        [year, month, day, ..] if child(form, "date").is_some() => {
            let is_year = |it: &u64| it == year || *it == year % 100;
            let has_month = shown.len() < 3 || shown.contains(month);
            shown.iter().any(is_year) && shown.contains(day) && has_month
        }
        value => value == shown,
    }
}

/// The runs of digits of a text as numbers.
fn numbers_of(text: &str) -> Vec<u64> {
    let runs = text.split(|c: char| !c.is_numeric()).filter(|run| !run.is_empty());
    runs.map(|run| run.parse().unwrap_or(u64::MAX)).collect()
}
