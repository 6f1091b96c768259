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

/// The element of the first branch of `mc:AlternateContent`; the fallback without one. Both show
/// the same, so one of them is read.
pub(crate) fn chosen_branch<'a, 'b>(node: XmlNode<'a, 'b>) -> Option<XmlNode<'a, 'b>> {
    child(node, "Choice").or_else(|| child(node, "Fallback"))
}
