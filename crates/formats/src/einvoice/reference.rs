//! The invoice and its parties in UBL and CII, as an answer has to name them.

use docmill_core::model::{EmbeddedFile, InvoiceParty, InvoiceReference, PartyIdentifier};
use roxmltree::Node;
use serde_json::Value;

use super::element::{element_at, elements_at, plain_text};
use super::fields::InvoiceXmlFields;

/// Where a syntax has electronic address and legal registration of a party.
struct PartyPaths {
    parties: [&'static str; 2],
    endpoint: &'static str,
    legal_id: &'static str,
    /// The invoice's number.
    number: &'static str,
    /// References to supporting documents, and within each identifier, content and description.
    documents: &'static str,
    identifier: &'static str,
    content: &'static str,
    description: &'static str,
}

const UBL: PartyPaths = PartyPaths {
    parties: ["AccountingSupplierParty/Party", "AccountingCustomerParty/Party"],
    endpoint: "EndpointID",
    legal_id: "PartyLegalEntity/CompanyID",
    number: "ID",
    documents: "AdditionalDocumentReference",
    identifier: "ID",
    content: "Attachment/EmbeddedDocumentBinaryObject",
    description: "DocumentDescription",
};
const CII: PartyPaths = PartyPaths {
    parties: [
        "SupplyChainTradeTransaction/ApplicableHeaderTradeAgreement/SellerTradeParty",
        "SupplyChainTradeTransaction/ApplicableHeaderTradeAgreement/BuyerTradeParty",
    ],
    endpoint: "URIUniversalCommunication/URIID",
    legal_id: "SpecifiedLegalOrganization/ID",
    number: "ExchangedDocument/ID",
    documents: "SupplyChainTradeTransaction/ApplicableHeaderTradeAgreement/AdditionalReferencedDocument",
    identifier: "IssuerAssignedID",
    content: "AttachmentBinaryObject",
    description: "Name",
};

/// Descriptions by which writers name a picture of the invoice itself.
const COPY_DESCRIPTIONS: [&str; 2] = ["commercialinvoice", "primaryimage"];

/// A file within an invoice that supports it (BG-24).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupportingFile {
    /// Its file name, as stated in the invoice.
    pub name: Option<String>,
    /// Its content in base64.
    pub base64: String,
}

/// The files within an invoice in UBL or CII that support it. Pictures of the invoice itself, which
/// have its number or a description of that kind, are none.
pub(super) fn list_supporting(root: Node<'_, '_>, is_ubl: bool) -> Vec<SupportingFile> {
    let paths = if is_ubl { &UBL } else { &CII };
    let number = plain_text(element_at(root, paths.number));
    let others = elements_at(root, paths.documents).into_iter().filter(|document| {
        let [id, described] = [paths.identifier, paths.description]
            .map(|path| plain_text(element_at(*document, path)));
        let described = described.unwrap_or_default().to_lowercase();
        (id.is_none() || id != number) && !COPY_DESCRIPTIONS.contains(&described.as_str())
    });
    let files = others.filter_map(|document| {
        let content = element_at(document, paths.content)?;
        Some(SupportingFile {
            name: content.attribute("filename").and_then(display_text),
            base64: content.text()?.to_owned(),
        })
    });
    files.collect()
}

/// The reference of an invoice whose fields were read; `None`: it has no number or no date, or a
/// value is too long to be one.
pub(super) fn reference_of(
    root: Node<'_, '_>,
    is_ubl: bool,
    fields: &InvoiceXmlFields,
) -> Option<InvoiceReference> {
    let paths = if is_ubl { &UBL } else { &CII };
    let [seller, buyer] = paths.parties.map(|path| paths.read_party(element_at(root, path)));
    let type_code = text(&fields.document_type);
    let type_code = type_code.unwrap_or_else(|| {
        let code = if fields.is_credit_note { "381" } else { "380" };
        code.to_owned()
    });
    let reference = InvoiceReference {
        number: text(&fields.number)?,
        issued: text(&fields.date)?,
        type_code,
        seller: InvoiceParty { name: text(&fields.supplier_name), ..seller },
        buyer: InvoiceParty { name: text(&fields.buyer_name), ..buyer },
        embedded_files: paths.list_files(root),
    };
    Some(reference).filter(InvoiceReference::is_sound)
}

impl PartyPaths {
    fn read_party(&self, party: Option<Node<'_, '_>>) -> InvoiceParty {
        let Some(party) = party else { return InvoiceParty::default() };
        InvoiceParty {
            name: None,
            endpoint: identifier(element_at(party, self.endpoint)),
            legal_id: identifier(element_at(party, self.legal_id)),
        }
    }
}

impl PartyPaths {
    /// The files within an invoice. Their content is not decoded.
    fn list_files(&self, root: Node<'_, '_>) -> Vec<EmbeddedFile> {
        let documents = elements_at(root, self.documents).into_iter();
        let files = documents.filter_map(|document| {
            let content = element_at(document, self.content)?;
            let described = plain_text(element_at(document, self.description));
            let encoded = content.text().unwrap_or_default().bytes();
            let characters = encoded.filter(|c| c.is_ascii_alphanumeric() || b"+/".contains(c));
            Some(EmbeddedFile {
                name: content.attribute("filename").and_then(display_text),
                media_type: content.attribute("mimeCode").and_then(display_text),
                description: described.as_deref().and_then(display_text),
                bytes: u64::try_from(characters.count() * 3 / 4).unwrap_or(u64::MAX),
            })
        });
        files.take(InvoiceReference::MAX_EMBEDDED_FILES).collect()
    }
}

/// A text on one line, cut to the bounds of a reference.
fn display_text(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().filter(|c| !c.is_control()).take(250).collect();
    Some(line).filter(|line| !line.is_empty())
}

fn identifier(node: Option<Node<'_, '_>>) -> Option<PartyIdentifier> {
    let scheme = node?.attribute("schemeID").map(str::trim).filter(|scheme| !scheme.is_empty());
    Some(PartyIdentifier { scheme: scheme.map(str::to_owned), id: plain_text(node)? })
}

fn text(value: &Value) -> Option<String> {
    let words: Vec<&str> = value.as_str()?.split_whitespace().collect();
    Some(words.join(" ")).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::einvoice::parse_einvoice;

    const UBL: &str = "<Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2' \
        xmlns:c='urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2' \
        xmlns:b='urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2'>\
        <b:ID>R 1</b:ID><b:IssueDate>2026-03-05</b:IssueDate><c:AdditionalDocumentReference>\
        <b:DocumentDescription>Time sheet</b:DocumentDescription><c:Attachment>\
        <b:EmbeddedDocumentBinaryObject mimeCode='text/csv' filename='a.csv'>QUI=</b:EmbeddedDocumentBinaryObject>\
        </c:Attachment></c:AdditionalDocumentReference><c:AccountingSupplierParty><c:Party>\
        <b:EndpointID schemeID='0088'>1</b:EndpointID><c:PartyLegalEntity>\
        <b:RegistrationName>Seller</b:RegistrationName><b:CompanyID schemeID='0002'>2</b:CompanyID>\
        </c:PartyLegalEntity></c:Party></c:AccountingSupplierParty></Invoice>";
    const CII: &str = "<r:CrossIndustryInvoice \
        xmlns:r='urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100' \
        xmlns:a='urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100' \
        xmlns:u='urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100'><r:ExchangedDocument>\
        <a:ID>R 1</a:ID><a:IssueDateTime><u:DateTimeString format='102'>20260305</u:DateTimeString>\
        </a:IssueDateTime></r:ExchangedDocument><r:SupplyChainTradeTransaction>\
        <a:ApplicableHeaderTradeAgreement><a:SellerTradeParty><a:Name>Seller</a:Name>\
        <a:SpecifiedLegalOrganization><a:ID schemeID='0002'>2</a:ID></a:SpecifiedLegalOrganization>\
        <a:URIUniversalCommunication><a:URIID schemeID='0088'>1</a:URIID></a:URIUniversalCommunication>\
        </a:SellerTradeParty><a:AdditionalReferencedDocument><a:Name>Time sheet</a:Name>\
        <a:AttachmentBinaryObject mimeCode='text/csv' filename='a.csv'>QUI=</a:AttachmentBinaryObject>\
        </a:AdditionalReferencedDocument></a:ApplicableHeaderTradeAgreement>\
        </r:SupplyChainTradeTransaction></r:CrossIndustryInvoice>";

    #[test]
    fn an_invoice_names_itself_its_parties_and_its_files_alike_in_both_syntaxes() {
        for text in [UBL, CII] {
            let invoice = parse_einvoice(text.as_bytes()).unwrap();
            let found = serde_json::to_value(invoice.reference().unwrap()).unwrap();
            let expected = serde_json::json!({
                "number": "R 1", "issued": "2026-03-05", "type_code": "380",
                "seller": {
                    "name": "Seller",
                    "endpoint": {"scheme": "0088", "id": "1"},
                    "legal_id": {"scheme": "0002", "id": "2"},
                },
                "buyer": {},
                "embedded_files": [
                    {"name": "a.csv", "media_type": "text/csv", "description": "Time sheet", "bytes": 2},
                ],
            });
            assert_eq!(found, expected, "{text}");
        }
        let unnamed = UBL.replace("<b:ID>R 1</b:ID>", "");
        assert_eq!(parse_einvoice(unnamed.as_bytes()).unwrap().reference(), None);
    }

    #[test]
    #[rustfmt::skip]
    fn files_within_an_invoice_support_it_unless_they_show_the_invoice_itself() {
        let with_id = |text: &str, id: &str| {
            text.replace("<c:AdditionalDocumentReference>", &format!("<c:AdditionalDocumentReference><b:ID>{id}</b:ID>"))
            .replace("<a:AdditionalReferencedDocument>", &format!("<a:AdditionalReferencedDocument><a:IssuerAssignedID>{id}</a:IssuerAssignedID>"))
        };
        for text in [UBL, CII] {
            for (changed, expected) in [
                (text.to_owned(), 1),
                (with_id(text, "TS-1"), 1),
                (with_id(text, "R 1"), 0),
                (text.replace("Time sheet", "CommercialInvoice"), 0),
                (text.replace("Time sheet", "PrimaryImage"), 0),
            ] {
                let tree = roxmltree::Document::parse(&changed).unwrap();
                let files = crate::einvoice::list_supporting_files(&tree);
                assert_eq!(files.len(), expected, "{changed}");
                for file in files {
                    assert_eq!((file.name.as_deref(), file.base64.as_str()), (Some("a.csv"), "QUI="));
                }
            }
        }
    }
}
