//! Answers to the sender of an invoice: Peppol Invoice Response 3 (a UBL `ApplicationResponse` with
//! codes of UNCL4343) and the life-cycle message of the French reform (UN/CEFACT CDAR D22B,
//! XP Z12-012). Written from the references that the invoice itself has.
//!
//! Not promised: that the network takes it. A part that the invoice lacks is an error by name.

use time::OffsetDateTime;
use time::macros::format_description;

use docmill_core::model::{InvoiceParty, InvoiceReference, PartyIdentifier};

use crate::xml_output::XmlOutput;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// Peppol BIS Invoice Response 3: UBL `ApplicationResponse`.
    InvoiceResponse,
    /// UN/CEFACT Cross Domain Acknowledgement and Response, as the French reform profiles it.
    Cdar,
}

/// The state that an answer reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerStatus {
    /// It arrived and can be read.
    Received,
    /// A person looks at it.
    InProcess,
    /// A person approved it.
    Accepted,
    /// A person rejected it.
    Rejected,
}

/// The invoice, and the answer to it.
#[derive(Debug, Clone, Copy)]
pub struct InvoiceAnswer<'a> {
    /// Identifier of the answer: letters, digits and dashes.
    pub id: &'a str,
    /// The invoice.
    pub invoice: &'a InvoiceReference,
    /// The state.
    pub status: AnswerStatus,
    /// Since when it is in that state.
    pub since: OffsetDateTime,
    /// Code of the reason for a rejection.
    pub reason_code: Option<&'a str>,
    /// The reason in words; may be empty.
    pub reason: &'a str,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerDefect {
    /// The invoice lacks a part that the form requires.
    #[error("the invoice has no {0}, which this form of answer requires")]
    Missing(&'static str),
    /// The code is none of the form's, or one is required.
    #[error("a rejection needs a reason: one of {0}")]
    Reason(String),
}

/// Peppol's codes of reasons (`OPStatusReason`), without those that are no reason to reject.
const RESPONSE_REASONS: [&str; 12] =
    ["REF", "LEG", "REC", "QUA", "DEL", "PRI", "QTY", "ITM", "PAY", "UNR", "FIN", "OTH"];
/// Reasons for the status 210 between companies, by rule `BR-FR-CDV-CL-09`.
const REFUSAL_REASONS: [&str; 13] = [
    "TX_TVA_ERR",
    "MONTANTTOTAL_ERR",
    "CALCUL_ERR",
    "NON_CONFORME",
    "DOUBLON",
    "DEST_ERR",
    "TRANSAC_INC",
    "EMMET_INC",
    "CONTRAT_TERM",
    "DOUBLE_FACT",
    "CMD_ERR",
    "ADR_ERR",
    "REF_CT_ABSENT",
];
/// Most characters of a reason.
const MAX_REASON_CHARS: usize = 1_000;
/// Scheme of the French register of companies (SIREN).
const SIREN: &str = "0002";

impl AnswerForm {
    /// By its name on the command line and in the API: `invoice-response` or `cdar`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "invoice-response" => Some(Self::InvoiceResponse),
            "cdar" => Some(Self::Cdar),
            _ => None,
        }
    }
}

impl AnswerStatus {
    /// UNCL4343 as Invoice Response 3 restricts it.
    fn response_code(self) -> &'static str {
        match self {
            Self::Received => "AB",
            Self::InProcess => "IP",
            Self::Accepted => "AP",
            Self::Rejected => "RE",
        }
    }

    /// UNTDID 1373, code and name of the status of the French reform.
    fn process_condition(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Received | Self::InProcess => ("45", "204", "Prise en charge"),
            Self::Accepted => ("1", "205", "Approuvée"),
            Self::Rejected => ("50", "210", "Refusée"),
        }
    }
}

impl InvoiceAnswer<'_> {
    /// The answer as XML.
    ///
    /// # Errors
    /// The invoice lacks a required part; a rejection without a valid code.
    pub fn write(&self, form: AnswerForm) -> Result<String, AnswerDefect> {
        match form {
            AnswerForm::InvoiceResponse => self.write_response(),
            AnswerForm::Cdar => self.write_cdar(),
        }
    }

    fn write_response(&self) -> Result<String, AnswerDefect> {
        let code = self.rejection_code(&RESPONSE_REASONS, Some("OTH"))?;
        let (day, time) = (self.since_as(DAY), self.since_as(TIME));
        let mut xml = XmlOutput::start(
            "ApplicationResponse",
            &[
                ("xmlns", "urn:oasis:names:specification:ubl:schema:xsd:ApplicationResponse-2"),
                (
                    "xmlns:cac",
                    "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
                ),
                (
                    "xmlns:cbc",
                    "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2",
                ),
            ],
        );
        xml.value("cbc:CustomizationID", "urn:fdc:peppol.eu:poacc:trns:invoice_response:3");
        xml.value("cbc:ProfileID", "urn:fdc:peppol.eu:poacc:bis:invoice_response:3");
        xml.value("cbc:ID", self.id);
        xml.value("cbc:IssueDate", &day);
        xml.value("cbc:IssueTime", &time);
        xml.response_party("cac:SenderParty", &self.invoice.buyer, &BUYER_PARTS)?;
        xml.response_party("cac:ReceiverParty", &self.invoice.seller, &SELLER_PARTS)?;
        xml.open("cac:DocumentResponse");
        xml.open("cac:Response");
        xml.value("cbc:ResponseCode", self.status.response_code());
        xml.value("cbc:EffectiveDate", &day);
        if let Some(code) = code {
            xml.open("cac:Status");
            xml.leaf("cbc:StatusReasonCode", &[("listID", "OPStatusReason")], code);
            xml.value_unless_empty("cbc:StatusReason", self.reason);
            xml.close();
        }
        xml.close();
        xml.open("cac:DocumentReference");
        xml.value("cbc:ID", &self.invoice.number);
        xml.value("cbc:IssueDate", &self.invoice.issued);
        xml.value("cbc:DocumentTypeCode", &self.invoice.type_code);
        Ok(xml.finish())
    }

    fn write_cdar(&self) -> Result<String, AnswerDefect> {
        let code = self.rejection_code(&REFUSAL_REASONS, None)?;
        let moment = self.since_as(MOMENT);
        let mut xml = XmlOutput::start(
            "rsm:CrossDomainAcknowledgementAndResponse",
            &[
                (
                    "xmlns:rsm",
                    "urn:un:unece:uncefact:data:standard:CrossDomainAcknowledgementAndResponse:100",
                ),
                (
                    "xmlns:ram",
                    "urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100",
                ),
                ("xmlns:qdt", "urn:un:unece:uncefact:data:standard:QualifiedDataType:100"),
                ("xmlns:udt", "urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100"),
            ],
        );
        xml.open("rsm:ExchangedDocumentContext");
        xml.within("ram:BusinessProcessSpecifiedDocumentContextParameter", "ram:ID", "REGULATED");
        let profile = "urn.cpro.gouv.fr:1p0:CDV:invoice";
        xml.within("ram:GuidelineSpecifiedDocumentContextParameter", "ram:ID", profile);
        xml.close();
        xml.open("rsm:ExchangedDocument");
        xml.value("ram:ID", self.id);
        xml.moment("ram:IssueDateTime", &moment);
        // Without an identifier: rule 210B2G takes one for that of the public portal.
        xml.open("ram:SenderTradeParty");
        xml.value_unless_empty("ram:Name", self.invoice.buyer.name.as_deref().unwrap_or_default());
        xml.value("ram:RoleCode", "BY");
        xml.close();
        xml.open("ram:IssuerTradeParty");
        xml.trade_party(&self.invoice.buyer, "BY", BUYER_PARTS.legal_id)?;
        xml.close();
        xml.open("ram:RecipientTradeParty");
        xml.trade_party(&self.invoice.seller, "SE", SELLER_PARTS.legal_id)?;
        xml.open("ram:URIUniversalCommunication");
        let endpoint = self.invoice.seller.endpoint.as_ref();
        let endpoint = endpoint.ok_or(AnswerDefect::Missing(SELLER_PARTS.endpoint))?;
        xml.identifier("ram:URIID", endpoint);
        xml.close();
        xml.close();
        xml.close();
        xml.open("rsm:AcknowledgementDocument");
        xml.within("ram:MultipleReferencesIndicator", "udt:Indicator", "false");
        xml.value("ram:TypeCode", "23");
        xml.moment("ram:IssueDateTime", &moment);
        self.write_reference(&mut xml, code)?;
        Ok(xml.finish())
    }

    /// The invoice and its status.
    fn write_reference(&self, xml: &mut XmlOutput, code: Option<&str>) -> Result<(), AnswerDefect> {
        let (status, condition, name) = self.status.process_condition();
        xml.open("ram:ReferenceReferencedDocument");
        xml.value("ram:IssuerAssignedID", &self.invoice.number);
        xml.value("ram:StatusCode", status);
        xml.value("ram:TypeCode", &self.invoice.type_code);
        xml.open("ram:FormattedIssueDateTime");
        let issued = self.invoice.issued.replace('-', "");
        xml.leaf("qdt:DateTimeString", &[("format", "102")], &issued);
        xml.close();
        xml.value("ram:ProcessConditionCode", condition);
        xml.value("ram:ProcessCondition", name);
        xml.open("ram:IssuerTradeParty");
        xml.trade_party(&self.invoice.seller, "SE", SELLER_PARTS.legal_id)?;
        xml.close();
        if let Some(code) = code {
            xml.open("ram:SpecifiedDocumentStatus");
            xml.value("ram:ReasonCode", code);
            xml.value_unless_empty("ram:Reason", self.reason);
            xml.value("ram:SequenceNumeric", "1");
        }
        Ok(())
    }

    /// The code of the reason, which a rejection needs and nothing else has.
    fn rejection_code(
        &self,
        codes: &'static [&'static str],
        default: Option<&'static str>,
    ) -> Result<Option<&'static str>, AnswerDefect> {
        if self.status != AnswerStatus::Rejected {
            return Ok(None);
        }
        let asked = match self.reason_code {
            None => default,
            Some(code) => codes.iter().find(|known| **known == code).copied(),
        };
        asked.map(Some).ok_or_else(|| AnswerDefect::Reason(codes.join(", ")))
    }

    /// Since when, in UTC.
    fn since_as(&self, form: &[time::format_description::BorrowedFormatItem<'_>]) -> String {
        self.since.to_offset(time::UtcOffset::UTC).format(form).unwrap_or_default()
    }
}

type DateForm = &'static [time::format_description::BorrowedFormatItem<'static>];
const DAY: DateForm = format_description!("[year]-[month]-[day]");
const TIME: DateForm = format_description!("[hour]:[minute]:[second]Z");
/// UNTDID 2379, code 204.
const MOMENT: DateForm = format_description!("[year][month][day][hour][minute][second]");

/// Names of the parts of a party, for messages about missing ones.
struct PartyParts {
    name: &'static str,
    endpoint: &'static str,
    legal_id: &'static str,
}

const SELLER_PARTS: PartyParts = PartyParts {
    name: "name of the seller (BT-27)",
    endpoint: "electronic address of the seller (BT-34)",
    legal_id: "SIREN of the seller (BT-30, scheme 0002)",
};
const BUYER_PARTS: PartyParts = PartyParts {
    name: "name of the buyer (BT-44)",
    endpoint: "electronic address of the buyer (BT-49)",
    legal_id: "SIREN of the buyer (BT-47, scheme 0002)",
};

impl XmlOutput {
    fn value_unless_empty(&mut self, name: &str, value: &str) {
        let words: Vec<&str> = value.split_whitespace().collect();
        let text: String = words.join(" ").chars().take(MAX_REASON_CHARS).collect();
        if !text.is_empty() {
            self.value(name, &text);
        }
    }

    fn moment(&mut self, name: &str, moment: &str) {
        self.open(name);
        self.leaf("udt:DateTimeString", &[("format", "204")], moment);
        self.close();
    }

    fn identifier(&mut self, name: &str, identifier: &PartyIdentifier) {
        let scheme = identifier.scheme.as_deref().map(|scheme| ("schemeID", scheme));
        self.leaf(name, scheme.as_slice(), &identifier.id);
    }

    fn response_party(
        &mut self,
        name: &str,
        party: &InvoiceParty,
        parts: &PartyParts,
    ) -> Result<(), AnswerDefect> {
        let endpoint = party.endpoint.as_ref().filter(|endpoint| endpoint.scheme.is_some());
        let endpoint = endpoint.ok_or(AnswerDefect::Missing(parts.endpoint))?;
        let registered = party.name.as_deref().ok_or(AnswerDefect::Missing(parts.name))?;
        self.open(name);
        self.identifier("cbc:EndpointID", endpoint);
        self.within("cac:PartyLegalEntity", "cbc:RegistrationName", registered);
        self.close();
        Ok(())
    }

    /// The content of a French company's element.
    fn trade_party(
        &mut self,
        party: &InvoiceParty,
        role: &str,
        missing: &'static str,
    ) -> Result<(), AnswerDefect> {
        let siren = party.legal_id.as_ref().filter(|id| id.scheme.as_deref() == Some(SIREN));
        self.identifier("ram:GlobalID", siren.ok_or(AnswerDefect::Missing(missing))?);
        self.value_unless_empty("ram:Name", party.name.as_deref().unwrap_or_default());
        self.value("ram:RoleCode", role);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifier(scheme: &str, id: &str) -> Option<PartyIdentifier> {
        Some(PartyIdentifier { scheme: Some(scheme.to_owned()), id: id.to_owned() })
    }

    fn invoice() -> InvoiceReference {
        InvoiceReference {
            number: "F<1>".to_owned(),
            issued: "2026-09-22".to_owned(),
            type_code: "380".to_owned(),
            seller: InvoiceParty {
                name: Some("Sel & Fils".to_owned()),
                endpoint: identifier("0225", "732829320"),
                legal_id: identifier("0002", "732829320"),
            },
            buyer: InvoiceParty {
                name: Some("Buyer".to_owned()),
                endpoint: identifier("0225", "443061841"),
                legal_id: identifier("0002", "443061841"),
            },
            embedded_files: Vec::new(),
        }
    }

    fn answer(
        invoice: &InvoiceReference,
        status: AnswerStatus,
        reason_code: Option<&str>,
        form: AnswerForm,
    ) -> Result<String, AnswerDefect> {
        let since = time::macros::datetime!(2026-11-28 12:30:05 +01:00);
        let reason = "wrong\n rate\u{1}";
        InvoiceAnswer { id: "a-1", invoice, status, since, reason_code, reason }.write(form)
    }

    #[test]
    fn an_answer_has_the_codes_of_its_form_and_the_references_of_the_invoice() {
        use AnswerForm::{Cdar, InvoiceResponse};
        use AnswerStatus::{Accepted, InProcess, Received, Rejected};
        #[rustfmt::skip]
        let table: [(AnswerForm, AnswerStatus, Option<&str>, &[&str]); 8] = [
            (InvoiceResponse, Received,  None, &["ResponseCode>AB<", "ID>F&lt;1&gt;<", "IssueTime>11:30:05Z<"]),
            (InvoiceResponse, InProcess, None, &["ResponseCode>IP<", "schemeID=\"0225\">443061841<"]),
            (InvoiceResponse, Accepted,  None, &["ResponseCode>AP<", "Name>Sel &amp; Fils<"]),
            (InvoiceResponse, Rejected,  None, &["ResponseCode>RE<", "ReasonCode listID=\"OPStatusReason\">OTH<", "Reason>wrong rate<"]),
            (InvoiceResponse, Rejected,  Some("PRI"), &[">PRI<"]),
            (Cdar,            Received,  None, &["ConditionCode>204<", "StatusCode>45<", "format=\"102\">20260922<"]),
            (Cdar,            Accepted,  None, &["ConditionCode>205<", "format=\"204\">20261128113005<"]),
            (Cdar,            Rejected,  Some("TX_TVA_ERR"), &["ConditionCode>210<", "ReasonCode>TX_TVA_ERR<", "SequenceNumeric>1<"]),
        ];
        for (form, status, code, parts) in table {
            let xml = answer(&invoice(), status, code, form).unwrap();
            let text = crate::xml::XmlText::decode(xml.as_bytes()).unwrap();
            assert!(text.parse_tree().is_ok(), "{xml}");
            for part in parts {
                assert!(xml.contains(part), "{form:?} {status:?} {part}\n{xml}");
            }
            assert_eq!(xml.contains("ReasonCode"), status == Rejected, "{form:?} {status:?}");
        }
    }

    #[test]
    fn a_part_that_the_invoice_lacks_and_a_code_that_the_form_has_not_are_named() {
        use AnswerForm::{Cdar, InvoiceResponse};
        use AnswerStatus::{Accepted, Rejected};
        let without = |change: fn(&mut InvoiceReference)| {
            let mut invoice = invoice();
            change(&mut invoice);
            invoice
        };
        let no_address = without(|it| it.buyer.endpoint = None);
        let no_scheme = without(|it| it.seller.endpoint.as_mut().unwrap().scheme = None);
        let no_name = without(|it| it.seller.name = None);
        let no_siren = without(|it| it.buyer.legal_id = identifier("0088", "1"));
        for (invoice, status, code, form, word) in [
            (&no_address, Accepted, None, InvoiceResponse, "BT-49"),
            (&no_scheme, Accepted, None, InvoiceResponse, "BT-34"),
            (&no_name, Accepted, None, InvoiceResponse, "BT-27"),
            (&no_siren, Accepted, None, Cdar, "BT-47"),
            (&invoice(), Rejected, None, Cdar, "NON_CONFORME"),
            (&invoice(), Rejected, Some("PRI"), Cdar, "NON_CONFORME"),
            (&invoice(), Rejected, Some("DOUBLON"), InvoiceResponse, "OTH"),
        ] {
            let defect = answer(invoice, status, code, form).unwrap_err().to_string();
            assert!(defect.contains(word), "{defect}");
        }
    }
}
