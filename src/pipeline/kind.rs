//! Which kind a document is read as: the one its producer named, else the one its words tell.

use std::sync::Arc;

use crate::fault;
use crate::gate::{Finding, Verdict};
use crate::kinds::{Classified, Consequence, Doubt, Kind, Kinds};
use crate::model::{Claimed, Transcript};
use crate::pipeline::{Ports, StepError};

/// The kind that the producer named, or the configured one.
///
/// # Errors
/// There is no kind of that name.
pub(super) fn named(ports: &Ports, claimed: &Claimed) -> Result<Arc<Kind>, StepError> {
    let name = claimed.kind.as_deref().unwrap_or(&ports.config.default_kind);
    ports.kinds.get(name).cloned().ok_or_else(|| {
        // Fixed by adding the kind, so the document keeps its chances.
        let context = format!("the kind `{name}` is not among the configured kinds");
        fault::Error::internal(context).into()
    })
}

/// `named`, unless the kind is to be told from the document.
pub(super) fn told(
    kinds: &Kinds,
    named: &Arc<Kind>,
    classify: bool,
    transcript: &Transcript,
) -> Classified {
    let told = if classify { kinds.classify(transcript) } else { None };
    told.unwrap_or_else(|| Classified::certain(Arc::clone(named)))
}

/// Adds to a verdict what is doubtful about the kind: a document of no known kind is refused, one
/// that might be of two is flagged.
pub(super) fn note(doubt: Option<Doubt>, verdict: &mut Verdict) {
    verdict.findings.extend(doubt.map(|doubt| Finding {
        rule: doubt.reason().to_owned(),
        field: None,
        consequence: match doubt {
            Doubt::Unknown => Consequence::Review,
            Doubt::Tie => Consequence::Flag,
        },
    }));
}
