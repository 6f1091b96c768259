//! Why a page was not read: the document is to blame, or something else is.

use crate::image::opencv_mat::OpenCvError;
use crate::refusal::PageRefusal;
use docmill_core::fault::{self, Fault};
use docmill_core::model::OutcomeReason;

/// Why a page was not read.
#[derive(Debug)]
pub enum PageError {
    /// Because of the document.
    Refused(PageRefusal),
    /// Because of something else.
    Failed(fault::Error),
}

impl From<PageRefusal> for PageError {
    fn from(refusal: PageRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<fault::Error> for PageError {
    /// A page that the recogniser gives up on is the input's fault.
    fn from(error: fault::Error) -> Self {
        match error.fault {
            Fault::Rejected => {
                Self::Refused(PageRefusal::new(OutcomeReason::Timeout, error.context))
            }
            _ => Self::Failed(error),
        }
    }
}

impl From<OpenCvError> for PageError {
    fn from(error: OpenCvError) -> Self {
        Self::Failed(fault::Error::internal("OpenCV failed on a page image").with_source(error))
    }
}
