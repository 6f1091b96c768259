//! Writes an answer of every form and status into a folder, for validation by the published schemas
//! and rules: `scripts/einvoice_answers.sh`.

use std::error::Error;
use std::path::PathBuf;

use docmill_core::model::{InvoiceParty, InvoiceReference, PartyIdentifier};
use docmill_formats::einvoice_answer::{AnswerForm, AnswerStatus, InvoiceAnswer};

fn party(name: &str, siren: &str) -> InvoiceParty {
    let identifier =
        |scheme: &str| PartyIdentifier { scheme: Some(scheme.to_owned()), id: siren.to_owned() };
    InvoiceParty {
        name: Some(name.to_owned()),
        endpoint: Some(identifier("0002")),
        legal_id: Some(identifier("0002")),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder: PathBuf = std::env::args().nth(1).ok_or("the path of a folder is missing")?.into();
    let invoice = InvoiceReference {
        number: "F2026-0001".to_owned(),
        issued: "2026-09-22".to_owned(),
        type_code: "380".to_owned(),
        seller: party("Société du Moulin & Fils", "732829320"),
        buyer: party("Acheteur SA", "443061841"),
        embedded_files: Vec::new(),
    };
    let since = time::OffsetDateTime::from_unix_timestamp(1_795_860_000)?;
    for (form, name, code) in
        [(AnswerForm::InvoiceResponse, "response", "PRI"), (AnswerForm::Cdar, "cdar", "TX_TVA_ERR")]
    {
        for (status, word) in [
            (AnswerStatus::Received, "received"),
            (AnswerStatus::InProcess, "in_process"),
            (AnswerStatus::Accepted, "accepted"),
            (AnswerStatus::Rejected, "rejected"),
        ] {
            let answer = InvoiceAnswer {
                id: "0198c2a0-0000-7000-8000-000000000001-1",
                invoice: &invoice,
                status,
                since,
                reason_code: Some(code),
                reason: "Le taux est de 20 %, pas de 10 %.",
            };
            std::fs::write(folder.join(format!("{name}_{word}.xml")), answer.write(form)?)?;
        }
    }
    Ok(())
}
