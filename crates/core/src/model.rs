//! The vocabulary: plain data that every layer above shares. No I/O, no policy.

pub mod artefact;
pub mod digest;
pub mod extraction;
pub mod grounded;
pub mod ids;
pub mod ingestion;
pub mod invoice_reference;
pub mod lane;
pub mod local_models;
pub mod master_data;
mod member;
pub mod message;
pub mod outcome;
pub mod own_company;
pub mod page_code;
pub mod page_crop;
pub mod page_mark;
pub mod page_note;
pub mod page_work;
pub mod picture_rule;
pub mod priority;
pub mod rule_report;
pub mod text_size;
pub mod transcript;

pub use artefact::{ArtefactRef, FileRef};
pub use extraction::{
    Extraction, ExtractionMethod, FieldCertainty, FieldEvidence, ModelUsage, PriceClass,
    ReaderStatement, StatedConfidence,
};
pub use grounded::{GroundedField, PageRegion, value_at};
pub use ids::{ClaimToken, DocumentId, IngestionId};
pub use ingestion::{ClaimedIngestion, DocumentRef, IngestionStage, IngestionStatus, PageRange};
pub use invoice_reference::{EmbeddedFile, InvoiceParty, InvoiceReference, PartyIdentifier};
pub use lane::{HOOK_PROVIDER, LaneBreaker, ProviderLane};
pub use local_models::{LocalDevice, LocalModelCalls, LocalModelReport, LocalModelState};
pub use master_data::{
    MasterHit, MasterHits, MasterMarkSort, MasterMatch, MasterOrder, MasterQuery, MasterSupplier,
    OrderMatch, SupplierMatch,
};
pub use member::MemberFacts;
pub use outcome::{AttemptOutcome, OutcomeReason};
pub use own_company::OwnCompany;
pub use page_code::{CodeSymbology, PageCode};
pub use page_crop::PageCrop;
pub use page_mark::{PageMark, PageMarkKind};
pub use page_note::PageNote;
pub use page_work::{
    EncodedImage, ImageEncoding, ImageHeader, PagePicture, PageReadResult, PageUsage, PageViewMode,
    PageViewResult, PictureFacts, PictureFit, PrintedPage, ProviderReading, ReadRecipe,
    ReadingRefusal, RepairSwitches, SecondLook, SecondLookResult, TextLayer, TextMap,
};
pub use picture_rule::PictureRule;
pub use priority::Priority;
pub use rule_report::{RuleFinding, RuleReport, RuleSeverity};
pub use text_size::{TextAmount, TextLimits, TextMeter, TextOverflow};
pub use transcript::{
    BoundingBox, PageDefect, PageDefectKind, PageSource, PageText, ProviderNotes, TextLine,
    TextWord, Transcript,
};
