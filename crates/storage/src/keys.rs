//! Where documents and artefacts lie. Pure: names only, nothing is read from the store.
//!
//! The layout is the earlier system's, so that its operators find what they know:
//! `documents/{document-id}.{ext}` for what we upload ourselves (what a producer uploaded stays
//! where it is), `ingestions/{ingestion-id}/…` for everything that is made of it.

use docmill_core::model::{DocumentId, IngestionId};

/// Longest extension that is kept; a longer one is not an extension but part of a name.
const MAX_EXTENSION_CHARS: usize = 8;

/// The original of a document that we uploaded. `name` is what the file was called by its sender;
/// only its extension is used, and only if it is short and plain.
pub fn document_key(id: DocumentId, name: &str) -> String {
    match safe_extension(name) {
        Some(extension) => format!("documents/{id}.{extension}"),
        None => format!("documents/{id}"),
    }
}

/// The metadata that `submit` gives to what it uploads: the id of the document. A producer's ids may
/// be of version 5 as well.
pub const SUBMITTED_AS: &str = "docmill-document";

/// The document that `submit` would put at this key: its ids are made of the content (UUID version
/// 5). Whether it did, [`SUBMITTED_AS`] says.
pub fn submitted_document(key: &str) -> Option<DocumentId> {
    let name = key.strip_prefix("documents/")?;
    let id: DocumentId = name.split('.').next()?.parse().ok()?;
    (id.0.get_version_num() == 5 && key == document_key(id, name)).then_some(id)
}

/// Everything that is made of an ingestion lies below.
pub fn ingestion_prefix(id: IngestionId) -> String {
    format!("ingestions/{id}/")
}

/// All that is made of ingestions lies below.
pub const INGESTIONS: &str = "ingestions/";

/// The record of attempts at a document where there is no database.
pub fn attempt_record_key(id: IngestionId) -> String {
    format!("ingestions/{id}/attempt.json")
}

/// Every artefact that an ingestion may have, finished pages aside.
pub fn artefact_keys(id: IngestionId) -> [String; 11] {
    let [pdf, png, jpg] = ["pdf", "png", "jpg"].map(|extension| preprocessed_key(id, extension));
    let (edn, copy) = (edn_transcription_key(id), searchable_key(id));
    let (choice, expense) = (kind_choice_key(id), expense_key(id));
    let (hooks, cuts, read) =
        (hook_answers_key(id), packet_question_key(id), transcription_key(id));
    [read, edn, extraction_key(id), choice, cuts, expense, hooks, pdf, png, jpg, copy]
}

/// Where there is no database, what was spent lies below, by days.
pub const SPENDING: &str = "spending/";

/// Where there is no database, what was spent on a day (UTC) lies below.
pub fn spending_prefix(day: time::Date) -> String {
    format!("{SPENDING}{day}/")
}

/// One process's spending of a day.
pub fn spending_key(day: time::Date, writer: &str) -> String {
    format!("{}{writer}.json", spending_prefix(day))
}

/// The transcript of an ingestion.
pub fn transcription_key(id: IngestionId) -> String {
    format!("ingestions/{id}/transcription-output.json")
}

/// The transcript of an ingestion as the earlier worker stored it.
pub fn edn_transcription_key(id: IngestionId) -> String {
    format!("ingestions/{id}/transcription-output.edn")
}

/// The reader's reply, stored before it is used.
pub fn extraction_key(id: IngestionId) -> String {
    format!("ingestions/{id}/extraction-output.json")
}

/// A model's choice of kind for a document that might be of several.
pub fn kind_choice_key(id: IngestionId) -> String {
    format!("ingestions/{id}/kind-output.json")
}

/// A model's answers about the boundaries between the documents of a file.
pub fn packet_question_key(id: IngestionId) -> String {
    format!("ingestions/{id}/packet-output.json")
}

/// The second reading of a document's fields, page by page.
pub fn expense_key(id: IngestionId) -> String {
    format!("ingestions/{id}/expense-output.json")
}

/// The answers of hooks about an ingestion.
pub fn hook_answers_key(id: IngestionId) -> String {
    format!("ingestions/{id}/hooks-output.json")
}

/// A question that waits for a batch, as it is sent.
pub fn batch_question_key(id: IngestionId, request: &str) -> String {
    format!("ingestions/{id}/batch/{request}-question.json")
}

/// A batch's answer to it, until it is among the document's replies.
pub fn batch_answer_key(id: IngestionId, request: &str) -> String {
    format!("ingestions/{id}/batch/{request}-answer.json")
}

/// The repaired pages of an ingestion.
pub fn preprocessed_key(id: IngestionId, extension: &str) -> String {
    format!("ingestions/{id}/preprocessed.{extension}")
}

/// The copy of an ingestion's document in which its text is found.
pub fn searchable_key(id: IngestionId) -> String {
    format!("ingestions/{id}/searchable.pdf")
}

/// Where finished pages are kept while a document is being read; everything below goes once its
/// transcript is stored.
pub fn page_parts_prefix(id: IngestionId) -> String {
    format!("ingestions/{id}/pages/")
}

/// Some finished pages: the `part`th written under the claim of this number, so that no two claims
/// write to one key.
pub fn page_part_key(id: IngestionId, claims: i64, part: u32) -> String {
    format!("{}{claims:06}-{part:04}", page_parts_prefix(id))
}

/// Prefix of documents uploaded by signed addresses, until they are handed in.
pub const UPLOADS: &str = "uploads/";

/// Where the bytes of one upload arrive. `owner` keeps uploads of different programs apart.
pub fn upload_key(owner: &str, upload: uuid::Uuid) -> String {
    format!("{UPLOADS}{owner}/{upload}")
}

/// Whether the key is one that we write while working: an event about it must not start work,
/// or every transcript would become a document of its own. `documents/` is not among them: that
/// is where producers upload.
pub fn is_own_artefact(key: &str) -> bool {
    const OWN: [&str; 9] = [
        UPLOADS,
        "ingestions/",
        "docmill/ingestions/",
        "docmill/spending/",
        "queue/todo/",
        "queue/processing/",
        "queue/failed/",
        "queue/dead/",
        "registry/",
    ];
    OWN.iter().any(|prefix| key.starts_with(prefix))
}

/// The extension in lower case, if the name has one that is safe to put into a key.
fn safe_extension(name: &str) -> Option<String> {
    let (stem, extension) = name.rsplit_once('.')?;
    let plain = extension.bytes().all(|b| b.is_ascii_alphanumeric());
    let short = (1..=MAX_EXTENSION_CHARS).contains(&extension.len());
    (plain && short && !stem.is_empty()).then(|| extension.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::ImageEncoding;

    #[test]
    fn only_a_plain_short_extension_gets_into_a_key() {
        let id = DocumentId::random();
        for (name, expected) in [
            ("Invoice 7.PDF", format!("documents/{id}.pdf")),
            ("we ird näme $(id);&#.pdf", format!("documents/{id}.pdf")),
            ("scan.tar.gz", format!("documents/{id}.gz")),
            ("noextension", format!("documents/{id}")),
            (".pdf", format!("documents/{id}")),
            ("a.p/../df", format!("documents/{id}")),
            ("a.pdf ", format!("documents/{id}")),
            ("a.", format!("documents/{id}")),
            ("ends.with a sentence", format!("documents/{id}")),
        ] {
            assert_eq!(document_key(id, name), expected, "{name}");
        }
    }

    #[test]
    fn uploads_of_submit_are_recognised_by_their_key() {
        let ours = DocumentId::from_content("ab", "");
        let theirs = DocumentId::random();
        for (key, expected) in [
            (document_key(ours, "a.PDF"), Some(ours)),
            (document_key(ours, "a"), Some(ours)),
            (document_key(theirs, "a.pdf"), None),
            (format!("inbox/{ours}.pdf"), None),
            (format!("documents/a/{ours}.pdf"), None),
            (format!("documents/{ours}.tar.gz"), None),
        ] {
            assert_eq!(submitted_document(&key), expected, "{key}");
        }
    }

    #[test]
    fn every_artefact_of_an_ingestion_is_among_those_that_are_removed_with_its_record() {
        let id = IngestionId::random();
        let removed = artefact_keys(id);
        let edn = edn_transcription_key(id);
        let answers = [kind_choice_key(id), packet_question_key(id)];
        for key in [transcription_key(id), edn, extraction_key(id)].into_iter().chain(answers) {
            assert!(removed.contains(&key), "{key}");
        }
        for encoding in [ImageEncoding::Png, ImageEncoding::Jpeg] {
            assert!(removed.contains(&preprocessed_key(id, encoding.extension())), "{encoding:?}");
        }
        assert!(removed.contains(&preprocessed_key(id, "pdf")));
        assert!(removed.contains(&searchable_key(id)));
    }

    #[test]
    fn artefacts_of_the_work_are_own_keys_and_uploads_of_producers_are_not() {
        let id = IngestionId::random();
        let written = [
            transcription_key(id),
            extraction_key(id),
            kind_choice_key(id),
            preprocessed_key(id, "pdf"),
            page_part_key(id, 1, 1),
            upload_key("ab", uuid::Uuid::nil()),
            format!("docmill/{}", transcription_key(id)),
            format!("docmill/{}", spending_key(time::macros::date!(2026 - 01 - 31), "w")),
            "queue/todo/3_normal/ab".to_owned(),
        ];
        for key in written {
            assert!(is_own_artefact(&key), "{key}");
        }
        let uploaded = document_key(DocumentId::random(), "a.pdf");
        for key in [uploaded.as_str(), "ingestions.pdf", "inbox/ingestions/a.pdf", "queue/a.pdf"] {
            assert!(!is_own_artefact(key), "{key}");
        }
    }
}
