//! The root element of an XML, by which its format is recognised. It is found in the first bytes,
//! before anything is parsed, and in damaged files too.

use roxmltree::Document;

use super::{cii, ebinterface, facturae, fatturapa, fatturapa_simplified, ksef, ubl};

/// How far into a file the root element is searched for.
const WINDOW_BYTES: usize = 64 << 10;

/// Names of a refusal are cut to these lengths, so that it fits one line.
const MAX_NAME_CHARS: usize = 80;
const MAX_NAMESPACE_CHARS: usize = 200;

/// An envelope of UN/CEFACT around a document: a header, then the document itself (SBDH 1.3).
pub(super) const STANDARD_BUSINESS_DOCUMENT: &str =
    "http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader";

/// The format of an e-invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EinvoiceSyntax {
    Cii,
    Ubl,
    Ksef,
    FatturaPa,
    /// Italy's simplified invoice.
    FatturaSemplificata,
    Facturae,
    EbInterface,
    /// A document of another syntax within an envelope.
    BusinessDocument,
}

impl EinvoiceSyntax {
    /// The syntax whose root has this namespace and local name.
    pub(super) fn from_root(namespace: &str, name: &str) -> Option<Self> {
        match (namespace, name) {
            (cii::NAMESPACE, "CrossIndustryInvoice")
            | (cii::ZUGFERD_1, "CrossIndustryDocument") => Some(Self::Cii),
            (ubl::INVOICE, "Invoice") | (ubl::CREDIT_NOTE, "CreditNote") => Some(Self::Ubl),
            (space, "Faktura") if ksef::NAMESPACES.contains(&space) => Some(Self::Ksef),
            (space, "FatturaElettronica") if fatturapa::NAMESPACES.contains(&space) => {
                Some(Self::FatturaPa)
            }
            (fatturapa_simplified::NAMESPACE, "FatturaElettronicaSemplificata") => {
                Some(Self::FatturaSemplificata)
            }
            (space, "Facturae") if facturae::NAMESPACES.contains(&space) => Some(Self::Facturae),
            (space, "Invoice") if ebinterface::NAMESPACES.contains(&space) => {
                Some(Self::EbInterface)
            }
            (STANDARD_BUSINESS_DOCUMENT, "StandardBusinessDocument") => {
                Some(Self::BusinessDocument)
            }
            _ => None,
        }
    }
}

/// XML messages about invoices that are none, by the local name of their root.
const MESSAGES: [(&str, &str, &str); 3] = [
    (
        "urn:oasis:names:specification:ubl:schema:xsd:ApplicationResponse-2",
        "ApplicationResponse",
        "a UBL ApplicationResponse: a reply to a document, not an invoice",
    ),
    (
        "urn:un:unece:uncefact:data:standard:CrossDomainAcknowledgementAndResponse:100",
        "CrossDomainAcknowledgementAndResponse",
        "a life-cycle message (CDAR): a reply to a document, not an invoice",
    ),
    (
        "urn:un:unece:uncefact:data:SCRDMCCBDACIOMessageStructure:100",
        "SCRDMCCBDACIOMessageStructure",
        "an Order-X order, not an invoice",
    ),
];

/// Namespace and local name of the root element of an XML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XmlRootName {
    /// The namespace; empty if there is none.
    pub namespace: String,
    /// The local name.
    pub name: String,
}

impl XmlRootName {
    /// The root of a parsed XML; in an envelope, of the document behind its header.
    pub fn from_tree(tree: &Document<'_>) -> Self {
        let root = tree.root_element();
        let envelope = (STANDARD_BUSINESS_DOCUMENT, "StandardBusinessDocument");
        let is_envelope = root.has_tag_name(envelope);
        let inner = root.last_element_child().filter(|_| is_envelope);
        let tag = inner.unwrap_or(root).tag_name();
        let namespace = tag.namespace().unwrap_or_default();
        Self { namespace: namespace.to_owned(), name: tag.name().to_owned() }
    }

    /// The root of an XML, from its first bytes; `None` if they contain none. The encoding is not
    /// needed: names of formats are ASCII in all that are read.
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        let window = bytes.get(..WINDOW_BYTES).unwrap_or(bytes);
        let marks = [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"];
        let text = marks.iter().find_map(|mark| window.strip_prefix(*mark)).unwrap_or(window);
        // Every other byte of UTF-16 is zero there.
        let text: Vec<u8> = text.iter().copied().filter(|byte| *byte != 0).collect();
        Self::from_tag(find_root_tag(&String::from_utf8_lossy(&text))?)
    }

    /// The names in the first tag of `tag`, which begins behind its `<`.
    fn from_tag(tag: &str) -> Option<Self> {
        let end = tag.find(|c: char| c.is_whitespace() || matches!(c, '/' | '>'))?;
        let (qualified, mut rest) = tag.split_at_checked(end)?;
        let (prefix, name) = qualified.split_once(':').unwrap_or(("", qualified));
        if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return None;
        }
        let declared =
            if prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{prefix}") };
        let mut namespace = String::new();
        while let Some((attribute, value, after)) = next_attribute(rest) {
            if attribute == declared {
                value.clone_into(&mut namespace);
            }
            rest = after;
        }
        Some(Self { namespace, name: name.to_owned() })
    }

    /// Whether it is the root of an e-invoice that is read, or of an envelope of one.
    pub fn is_read(&self) -> bool {
        EinvoiceSyntax::from_root(&self.namespace, &self.name).is_some()
    }

    /// Why an XML with this root is not read, in one line without control characters.
    pub fn describe_refusal(&self) -> String {
        let message = MESSAGES
            .iter()
            .find(|(namespace, name, _)| *namespace == self.namespace && *name == self.name);
        if let Some((_, _, text)) = message {
            return (*text).to_owned();
        }
        let name = printable(&self.name, MAX_NAME_CHARS);
        let namespace = printable(&self.namespace, MAX_NAMESPACE_CHARS);
        let space = if namespace.is_empty() {
            "in no namespace".to_owned()
        } else {
            format!("of {namespace}")
        };
        format!("XML with the root {name} {space}, which is not an e-invoice that is read")
    }
}

/// The text behind the `<` of the first element.
fn find_root_tag(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let tag = rest.trim_start().strip_prefix('<')?;
        rest = if tag.starts_with('?') {
            tag.split_once("?>")?.1
        } else if tag.starts_with("!--") {
            tag.split_once("-->")?.1
        } else if let Some(kind) = tag.strip_prefix('!') {
            let end = kind.find('>')?;
            let has_subset = kind.get(..end)?.contains('[');
            kind.split_once(if has_subset { "]>" } else { ">" })?.1
        } else {
            return Some(tag);
        };
    }
}

/// The first attribute in the rest of a tag: its name, its value and what follows it.
fn next_attribute(tag: &str) -> Option<(&str, &str, &str)> {
    let tag = tag.trim_start();
    if tag.starts_with(['>', '/']) {
        return None;
    }
    let (name, rest) = tag.split_once('=')?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (value, rest) = rest.strip_prefix(quote)?.split_once(quote)?;
    Some((name.trim_end(), value, rest))
}

fn printable(text: &str, most: usize) -> String {
    let chars = text.chars().take(most);
    chars.map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_behind_all_that_may_stand_before_it() {
        let ubl = ubl::INVOICE;
        let wide: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(format!("<Invoice xmlns='{ubl}'>").encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        type Root<'a> = Option<(&'a str, &'a str)>;
        let table: [(&str, Vec<u8>, Root<'_>); 11] = [
            ("alone", format!("<Invoice xmlns=\"{ubl}\"/>").into(), Some((ubl, "Invoice"))),
            ("a prefix", format!("<n:Invoice a='>' xmlns='u:x' xmlns:n = '{ubl}'>").into(), Some((ubl, "Invoice"))),
            ("a mark", format!("\u{feff}<Invoice xmlns='{ubl}'>").into(), Some((ubl, "Invoice"))),
            ("UTF-16", wide, Some((ubl, "Invoice"))),
            ("all of it", format!("<?xml version='1.0'?> <!-- <a> -->\n<!DOCTYPE a [<!ENTITY e '>'>]><?p ?><Invoice xmlns='{ubl}'").into(), Some((ubl, "Invoice"))),
            ("no namespace", b"<?xml version='1.0'?><Invoice>".to_vec(), Some(("", "Invoice"))),
            ("an unknown prefix", b"<n:Invoice>".to_vec(), Some(("", "Invoice"))),
            ("an end tag", b"</a>".to_vec(), None),
            ("an endless comment", b"<!-- ".to_vec(), None),
            ("words", b"Invoice <a>".to_vec(), None),
            ("behind the window", format!("<!--{}--><a>", "x".repeat(WINDOW_BYTES)).into(), None),
        ];
        for (name, bytes, expected) in table {
            let found = XmlRootName::sniff(&bytes);
            let found = found.as_ref().map(|root| (root.namespace.as_str(), root.name.as_str()));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn an_xml_that_is_not_read_is_named_by_its_root_and_a_reply_by_what_it_is() {
        let describe = |namespace: &str, name: &str| {
            let root = XmlRootName { namespace: namespace.to_owned(), name: name.to_owned() };
            assert!(!root.is_read(), "{name}");
            root.describe_refusal()
        };
        assert_eq!(
            describe("urn:x", "Order"),
            "XML with the root Order of urn:x, which is not an e-invoice that is read"
        );
        assert!(describe("", "Invoice").contains("root Invoice in no namespace"));
        let [(response, name, _), (cdar, message, _), _] = MESSAGES;
        assert!(describe(response, name).contains("not an invoice"));
        assert!(describe(cdar, message).contains("CDAR"));
        let head =
            format!("<s:StandardBusinessDocument xmlns:s='{STANDARD_BUSINESS_DOCUMENT}'><s:h/>");
        let text =
            format!("{head}<ApplicationResponse xmlns='{response}'/></s:StandardBusinessDocument>");
        let tree = Document::parse(&text).unwrap();
        assert!(!super::super::has_known_root(&tree), "a reply in an envelope");
        assert!(XmlRootName::from_tree(&tree).describe_refusal().contains("not an invoice"));
        let long = describe(&"u\u{7}".repeat(1000), &"n\n".repeat(1000));
        assert!(long.len() < 400 && !long.contains(char::is_control), "{long}");
    }
}
