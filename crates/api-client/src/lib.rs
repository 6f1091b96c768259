//! The interface for programs as Rust calls: hand in, wait, read, retry, cancel, review.
//!
//! What is refused comes as an [`ApiFailure`] with the service's own code. Calls that the service had
//! no time for (429, 503) or that did not reach it are repeated, as often and as long as
//! [`RetryPace`] says; no repetition does a thing twice. Not promised: more than the service
//! promises, which docs/guides/web.md says; and streams, a document is in memory while it is handed in.

mod answers;
mod client;
mod failure;
mod pace;
mod requests;

pub use answers::{
    AttemptView, ChangeReceipt, DecisionReceipt, EndedResult, IngestionListing, IngestionState,
    IngestionView, OpenReview, QueuedReview, ReviewListing, ReviewView, UploadReceipt,
};
pub use client::ApiClient;
pub use failure::{ApiFailure, ApiProblem};
pub use pace::RetryPace;
pub use requests::{DecisionTerms, DocumentUpload, IngestionQuery, ReviewChoice, ReviewQuery};
