//! The vocabulary: plain data that every layer above shares. No I/O, no policy.

pub mod artefact;
pub mod digest;
pub mod extraction;
pub mod grounded;
pub mod ids;
pub mod ingestion;
pub mod message;
pub mod outcome;
pub mod page_work;
pub mod priority;
pub mod transcript;

pub use artefact::{ArtefactRef, FileRef};
pub use extraction::{Confidence, Evidence, Extraction, Reader, Usage};
pub use grounded::{Grounded, Place};
pub use ids::{ClaimToken, DocumentId, IngestionId};
pub use ingestion::{Claimed, DocumentRef, Stage, Status};
pub use outcome::{AttemptOutcome, Reason};
pub use page_work::{
    Attachment, EinvoiceLook, EncodedImage, Encoding, ImageHeader, PagePicture, PageRead,
    PageReading, PageShown, PageUsage, PictureFacts, Recipe, Repairs, TextLayer, TextMap, View,
};
pub use priority::Priority;
pub use transcript::{
    BoundingBox, Defect, DefectKind, Line, PageText, ProviderNotes, Source, Transcript, Word,
};
