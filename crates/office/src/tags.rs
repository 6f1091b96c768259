//! Elements and attributes by their local names: producers bind the same vocabularies to different
//! prefixes and to two families of namespaces.

use docmill_formats::xml::XmlNode;

/// The value of the attribute of that local name.
pub(crate) fn attribute<'a>(node: XmlNode<'a, '_>, name: &str) -> Option<&'a str> {
    node.attributes().find(|it| it.name() == name).map(|it| it.value())
}

/// The same as a number.
pub(crate) fn number(node: XmlNode<'_, '_>, name: &str) -> Option<u32> {
    attribute(node, name)?.trim().parse().ok()
}

/// The attribute `val` of a child element.
pub(crate) fn child_value<'a>(node: XmlNode<'a, '_>, name: &str) -> Option<&'a str> {
    attribute(child(node, name)?, "val")
}

/// A size in units of DrawingML; 0 of what names none.
pub(crate) fn drawing_size(node: Option<XmlNode<'_, '_>>, name: &str) -> u64 {
    node.and_then(|it| attribute(it, name)?.parse().ok()).unwrap_or(0)
}

/// The first child element of that local name.
pub(crate) fn child<'a, 'b>(node: XmlNode<'a, 'b>, name: &str) -> Option<XmlNode<'a, 'b>> {
    node.children().find(|it| it.is_element() && it.tag_name().name() == name)
}

/// Child elements.
pub(crate) fn elements<'a, 'b>(
    node: XmlNode<'a, 'b>,
) -> impl Iterator<Item = XmlNode<'a, 'b>> + use<'a, 'b> {
    node.children().filter(XmlNode::is_element)
}

/// Elements below it of that local name.
pub(crate) fn all<'a, 'b>(
    node: XmlNode<'a, 'b>,
    name: &'static str,
) -> impl Iterator<Item = XmlNode<'a, 'b>> + use<'a, 'b> {
    node.descendants().filter(move |it| it.is_element() && it.tag_name().name() == name)
}

/// Text directly within it.
pub(crate) fn own_text(node: XmlNode<'_, '_>) -> String {
    node.children().filter_map(|it| it.is_text().then(|| it.text()).flatten()).collect()
}

/// Whether a switch of WordprocessingML is on: an element without a value is (ISO/IEC 29500-1
/// §17.17.4).
pub(crate) fn switch(node: XmlNode<'_, '_>, name: &str) -> Option<bool> {
    let found = child(node, name)?;
    Some(!matches!(attribute(found, "val"), Some("0" | "false" | "off")))
}

/// Extension namespaces that programs support.
const KNOWN_EXTENSIONS: [&str; 2] =
    ["http://schemas.microsoft.com/office/", "http://schemas.openxmlformats.org/"];

/// The first branch of `mc:AlternateContent` whose extensions are known; the fallback without one
/// (ISO/IEC 29500-3 §9.3).
pub(crate) fn chosen_branch<'a, 'b>(node: XmlNode<'a, 'b>) -> Option<XmlNode<'a, 'b>> {
    let is_known = |choice: &XmlNode<'_, '_>| {
        attribute(*choice, "Requires").unwrap_or_default().split_whitespace().all(|prefix| {
            let namespace = choice.lookup_namespace_uri(Some(prefix));
            namespace.is_some_and(|it| KNOWN_EXTENSIONS.iter().any(|known| it.starts_with(known)))
        })
    };
    let mut choices = elements(node).filter(|it| it.tag_name().name() == "Choice");
    choices.find(is_known).or_else(|| child(node, "Fallback"))
}

/// Whether the branches of an `mc:AlternateContent` print different digits: programs differ in
/// which of them they show.
pub(crate) fn has_disputed_digits(node: XmlNode<'_, '_>) -> bool {
    let digits = |branch: XmlNode<'_, '_>| -> String {
        let texts = all(branch, "t").map(own_text);
        texts.flat_map(|text| text.chars().filter(|c| c.is_numeric()).collect::<Vec<_>>()).collect()
    };
    let mut printed = elements(node).map(digits).filter(|digits| !digits.is_empty());
    let first = printed.next();
    printed.any(|other| Some(other) != first)
}
