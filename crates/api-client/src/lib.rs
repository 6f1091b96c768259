//! The interface for programs as Rust calls: hand in, wait, read, retry, cancel, review.
//!
//! Refusals are [`ApiFailure`]s with the service's own code. Calls that the service had no time for
//! (429, 503) or that did not reach it are repeated within the limits of [`RetryPace`]; no
//! repetition has a second effect. Not promised: more than the service promises in
//! docs/guides/web.md; and streaming: a document is in memory while it is handed in.

mod answers;
mod client;
mod failure;
mod pace;
mod requests;

pub use answers::{
    AttemptView, ChangeListing, ChangeReceipt, DecisionReceipt, EndedResult, ExportListing,
    ExportedView, IngestionListing, IngestionState, IngestionView, OpenReview, QueuedReview,
    RejectionReceipt, ReviewListing, ReviewView, UndoReceipt, UploadReceipt,
};
pub use client::ApiClient;
pub use failure::{ApiFailure, ApiProblem};
pub use pace::RetryPace;
pub use requests::{
    DecisionTerms, DocumentUpload, IngestionQuery, IngestionSelection, ReviewChoice, ReviewQuery,
};
