//! Results as objects below a prefix of keys.
//!
//! Only data that holds is written: read without doubts, or decided by a person. An object's name
//! follows from the ingestion alone and its content from the data that holds now, so that a repeated
//! delivery writes the same again, or nothing. A write is conditional on the
//! object that was there before the data was read: a late holder of a delivery never puts older data
//! over newer. Not promised: one version of an object in a bucket that keeps versions, or that files
//! go with an erased document.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;

use crate::answer::standing_decision;
use crate::export::{
    CsvOptions, ExportForm, ExportLayout, ExportStyle, ExportedDocument, exported_document,
    kind_of, named, write_export,
};
use crate::inspect::find_ingestions;
use crate::review::load_case;
use docmill_client::webhook::WebhookReply;
use docmill_core::config::{DeliveredForm, WebhookTarget};
use docmill_core::fault::{Error, Fault, Result};
use docmill_core::model::IngestionStatus;
use docmill_documents::DocumentFormat;
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::Db;
use docmill_ledger::db::lanes::webhooks::ClaimedWebhookDelivery;
use docmill_ledger::db::reports::IngestionRow;
use docmill_storage::known_content::get_known_content;
use docmill_storage::{Etag, GetOptions, GetResult, ObjectStore, PutResult, keys};

/// A delivery with nothing more to do (204 of RFC 9110).
const DONE: WebhookReply = WebhookReply { status: Some(204), retry_after: None, problem: None };
/// Status of a document that a form cannot carry (422 of RFC 9110).
pub(super) const NOT_CARRIED: u16 = 422;
/// The end of the test object's name; no file of a result ends so.
const TEST_ENDING: &str = ".test";
/// How often a write is begun anew because another delivery wrote meanwhile.
const MAX_ROUNDS: u32 = 5;

/// The stores that targets in a store deliver from and to.
#[derive(Clone)]
pub struct DeliveryStore {
    /// Originals, and the places of targets.
    pub store: Arc<dyn ObjectStore>,
    /// The kinds, for their columns.
    pub kinds: KindSet,
    /// Larger originals are not delivered.
    pub largest: u64,
}

/// A prefix of keys as a target.
pub(super) struct StoreTarget {
    place: DeliveryStore,
    prefix: String,
    layout: ExportLayout,
    forms: Vec<DeliveredForm>,
    /// Documents of other kinds are not delivered; empty: all are.
    kinds: Vec<String>,
    test_key: String,
    timeout: Duration,
}

/// A document as it is to be delivered.
struct DeliveredDocument {
    row: IngestionRow,
    document: ExportedDocument,
}

impl StoreTarget {
    /// # Errors
    /// Why the settings are none.
    pub(super) fn new(
        target: &WebhookTarget,
        place: DeliveryStore,
        timeout: Duration,
    ) -> std::result::Result<Self, String> {
        let layout = ExportLayout::parse(&target.layout);
        let layout = layout.map_err(|defect| format!("its layout: {defect}"))?;
        let (_, below) = target.bucket_and_prefix().unwrap_or_default();
        if keys::is_own_artefact(below) || below.starts_with("documents/") {
            return Err("its prefix is one where docmill keeps its own objects".to_owned());
        }
        let prefix = target.key_prefix().unwrap_or_default().to_owned();
        let test_key = format!("{prefix}{}{TEST_ENDING}", target.name);
        let (forms, kinds) = (target.forms.clone(), target.kinds.clone());
        Ok(Self { place, prefix, layout, forms, kinds, test_key, timeout })
    }

    /// The prefix, for operators.
    pub(super) fn describe(&self) -> String {
        match self.prefix.starts_with("s3://") {
            true => self.prefix.clone(),
            false => format!("store:{}", self.prefix),
        }
    }

    /// Writes the files of an event's document; nothing where it is of another kind, has no data that
    /// holds, or is gone. The problem is part of the reply.
    pub(super) async fn deliver(&self, db: &Db, event: &ClaimedWebhookDelivery) -> WebhookReply {
        let kind = event.facts.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default();
        match self.kinds.is_empty() || self.kinds.iter().any(|own| own == kind) {
            true => self.reply_to(self.write_forms(db, event)).await,
            false => DONE,
        }
    }

    /// Writes the object of tests, `PREFIX TARGET .test`, by the same rights as a result.
    pub(super) async fn write_test(&self, body: String) -> WebhookReply {
        let write = async {
            let key = &self.test_key;
            let before = self.place.store.head(key).await?.map(|known| known.etag);
            // Another process's test is as good.
            self.put(key, before, Bytes::from(body)).await?;
            Ok(())
        };
        let reply = self.reply_to(write).await;
        let problem = reply.problem.map(|problem| format!("{}: {problem}", self.test_key));
        WebhookReply { problem, ..reply }
    }

    async fn reply_to(&self, write: impl Future<Output = Result<()>>) -> WebhookReply {
        match tokio::time::timeout(self.timeout, write).await {
            Ok(Ok(())) => DONE,
            Ok(Err(error)) => {
                let status = (error.fault == Fault::Rejected).then_some(NOT_CARRIED);
                WebhookReply { status, problem: Some(error.to_string()), ..DONE }
            }
            Err(_) => {
                let problem = Some("the store did not answer in time".to_owned());
                WebhookReply { status: None, problem, ..DONE }
            }
        }
    }

    /// # Errors
    /// `Rejected`: a form cannot carry the data; the others are written. The store's and Postgres's
    /// own.
    async fn write_forms(&self, db: &Db, event: &ClaimedWebhookDelivery) -> Result<()> {
        let mut refused = Ok(());
        for form in &self.forms {
            let written = match form {
                DeliveredForm::Original => self.deliver_original(db, event).await,
                form => self.deliver_form(db, event, *form).await,
            };
            match written {
                Err(error) if error.fault == Fault::Rejected => refused = Err(error),
                written => written?,
            }
        }
        refused
    }

    async fn deliver_form(
        &self,
        db: &Db,
        event: &ClaimedWebhookDelivery,
        form: DeliveredForm,
    ) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            let Some(first) = self.load(db, event).await? else { return Ok(()) };
            let key = self.key_of(&first, ending_of(form));
            let before = self.place.store.head(&key).await?.map(|known| known.etag);
            // Read after the object was checked: a write since then is noticed.
            let Some(now) = self.load(db, event).await? else { return Ok(()) };
            let bytes = self.content_of(db, &now, form).await?;
            if self.put(&key, before, bytes).await? {
                return Ok(());
            }
        }
        Err(Error::transient("other deliveries of the document keep writing to the same place"))
    }

    /// Writes over the object that was there before; `false`: it is another one now.
    async fn put(&self, key: &str, before: Option<Etag>, bytes: Bytes) -> Result<bool> {
        let store = self.place.store.as_ref();
        let Some(etag) = before else {
            return Ok(store.put_if_absent(key, bytes).await? != PutResult::Refused);
        };
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let known = GetOptions { at_most: size, if_match: Some(etag.clone()) };
        if matches!(store.get(key, known).await?, GetResult::Found(same) if same.bytes == bytes) {
            return Ok(true);
        }
        Ok(store.put_if_match(key, &etag, bytes).await? != PutResult::Refused)
    }

    async fn deliver_original(&self, db: &Db, event: &ClaimedWebhookDelivery) -> Result<()> {
        let Some(found) = self.load(db, event).await? else { return Ok(()) };
        let Some(sha256) = &found.row.sha256 else {
            return Err(Error::new(Fault::Rejected, "no digest of the original is recorded"));
        };
        let (path, largest) = (&found.row.file_path, self.place.largest);
        let store = self.place.store.as_ref();
        let GetResult::Found(original) = get_known_content(store, path, sha256, largest).await?
        else {
            let text = "the original is gone, is another one now, or is too large";
            return Err(Error::new(Fault::Rejected, text));
        };
        let ending = DocumentFormat::sniff(&original.bytes).map_or("bin", DocumentFormat::code);
        let key = self.key_of(&found, &format!("-original.{ending}"));
        // One ingestion has one original: an object of this name is it.
        store.put_if_absent(&key, original.bytes).await?;
        Ok(())
    }

    fn key_of(&self, of: &DeliveredDocument, ending: &str) -> String {
        let kind = of.row.kind.as_deref().unwrap_or_default();
        format!("{}{}{ending}", self.prefix, self.layout.path_of(&named(&of.document, kind)))
    }

    async fn load(
        &self,
        db: &Db,
        event: &ClaimedWebhookDelivery,
    ) -> Result<Option<DeliveredDocument>> {
        let Some(ingestion) = event.ingestion_id else { return Ok(None) };
        let id = ingestion.to_string();
        let found = match find_ingestions(db, &id).await {
            Err(error) if error.fault == Fault::Missing => return Ok(None),
            found => found?,
        };
        let Some(row) = found.into_iter().next() else { return Ok(None) };
        let case = load_case(db, &id).await?;
        let holds = match standing_decision(&row, &case) {
            // A decision has an event of its own, once it can no longer be undone.
            Some(decision) => event.revision_id.is_some() && decision.decision != "rejected",
            None => row.status == IngestionStatus::Completed.code() && !row.needs_human_review,
        };
        // Without data there is nothing to deliver.
        let document = exported_document(&row, &case).ok().filter(|_| holds);
        Ok(document.map(|document| DeliveredDocument { row, document }))
    }

    async fn content_of(
        &self,
        db: &Db,
        of: &DeliveredDocument,
        form: DeliveredForm,
    ) -> Result<Bytes> {
        let form = match form {
            DeliveredForm::Csv => ExportForm::Csv,
            DeliveredForm::CsvLines => ExportForm::CsvLines,
            DeliveredForm::Ubl => ExportForm::Ubl,
            DeliveredForm::Json | DeliveredForm::Original => return Ok(json_of(of)),
        };
        let kind = kind_of(&self.place.kinds, &of.row)?;
        let style = ExportStyle { form, csv: CsvOptions::default(), layout: &self.layout };
        let file = write_export(db, kind, &of.document, style).await?;
        Ok(file.bytes.into())
    }
}

fn ending_of(form: DeliveredForm) -> &'static str {
    match form {
        DeliveredForm::Json | DeliveredForm::Original => ".json",
        DeliveredForm::Csv => ExportForm::Csv.ending(),
        DeliveredForm::CsvLines => ExportForm::CsvLines.ending(),
        DeliveredForm::Ubl => ExportForm::Ubl.ending(),
    }
}

/// Ids and data: the same bytes at every try.
fn json_of(of: &DeliveredDocument) -> Bytes {
    let row = &of.row;
    let content = json!({
        "document_id": row.document_id,
        "ingestion_id": row.id,
        "tenant": row.tenant,
        "kind": row.kind,
        "name": row.original_name,
        "data": of.document.data,
    });
    Bytes::from(format!("{content:#}\n"))
}
