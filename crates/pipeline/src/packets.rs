//! Files of several documents: cut at separator sheets or by what the pages say, or left to a person.
//!
//! A part is a document of its own: the same original, some of its pages. Its transcript is stored
//! before its row is written, so that no page is read twice. A file without a certain answer is read
//! as one document, and a person is asked.

use std::sync::Arc;

use crate::context::AttemptContext;
use crate::step_error::StepError;
use crate::text_work::run_on_text;
use crate::transcribe::{self, TranscribedDocument};
use docmill_core::config::PacketMode;
use docmill_core::model::{PageRange, Transcript};
use docmill_gate::kinds::RuleConsequence;
use docmill_gate::{GateFinding, Verdict};
use docmill_ledger::NewChild;
use docmill_packets::{
    PacketJudgement, PageSigns, SeparatorCodes, find_separators, judge_packet, lacks_pages,
};

/// The reason for review of a file that seems to be several documents.
const REASON: &str = "several_documents";

/// The reason where its pages count more than there are.
const MISSING_PAGES: &str = "pages_missing";

/// Verdict on the pages of a file.
pub(super) enum PacketVerdict {
    /// One document; perhaps a person has to say whether it is.
    One(Option<PacketDoubt>),
    /// Several documents, with certainty.
    Several(Vec<PageRange>),
    /// To be cut, but with boundaries that are neither a certain cut nor a certain join.
    Open(PacketJudgement),
}

/// A file that may be several documents.
#[derive(Debug, Clone)]
pub(super) struct PacketDoubt {
    consequence: RuleConsequence,
    /// Where the documents would begin: the pages before which the file would be cut.
    cuts: Vec<u32>,
}

impl PacketDoubt {
    /// Adds the doubt to a verdict.
    pub(super) fn note(&self, verdict: &mut Verdict) {
        let (rule, field) = (REASON.to_owned(), None);
        verdict.findings.push(GateFinding { rule, field, consequence: self.consequence });
    }

    /// For operators: numbers of pages are no content.
    pub(super) fn describe(&self) -> String {
        let cuts: Vec<String> = self.cuts.iter().map(u32::to_string).collect();
        format!("seems to be several documents, which begin on page {}", cuts.join(", "))
    }
}

/// Flags pages that are missing by their own numbers, but where XML has the data.
pub(super) fn note_missing_pages(transcript: &Transcript, is_exact: bool, verdict: &mut Verdict) {
    if !is_exact && lacks_pages(&transcript.pages) {
        let (rule, field) = (MISSING_PAGES.to_owned(), None);
        verdict.findings.push(GateFinding { rule, field, consequence: RuleConsequence::Flag });
    }
}

/// Judges the pages of a file. A part of a file, and a page alone, are one document.
///
/// # Errors
/// Rejected if a page's text takes too long to look through.
pub(super) async fn judge_pages(
    attempt: AttemptContext<'_>,
    transcript: &Arc<Transcript>,
) -> Result<PacketVerdict, StepError> {
    let AttemptContext { context, claimed, .. } = attempt;
    if transcript.pages.len() < 2 || claimed.document.pages.is_some() {
        return Ok(PacketVerdict::One(None));
    }
    let packets = &attempt.config().packets;
    let mode = match context.ledger.takes_children() {
        true => packets.mode_for(claimed.tenant.as_deref()),
        false => PacketMode::Never,
    };
    if mode != PacketMode::Never {
        let codes = SeparatorCodes { texts: packets.separators.clone() };
        let parts = find_separators(&transcript.pages, &codes).filter(|parts| !parts.is_empty());
        if let Some(parts) = parts {
            return Ok(PacketVerdict::Several(parts));
        }
    }
    let judged = weigh_pages(attempt, transcript).await?;
    Ok(match judged.is_doubtful() && mode == PacketMode::Content {
        true => PacketVerdict::Open(judged),
        false => verdict_of(mode, &judged),
    })
}

/// Reads the signs of each page, as a piece of work of its own.
async fn weigh_pages(
    attempt: AttemptContext<'_>,
    transcript: &Arc<Transcript>,
) -> Result<PacketJudgement, StepError> {
    let mut signs = Vec::with_capacity(transcript.pages.len());
    for at in 0..transcript.pages.len() {
        let (pages, kinds) = (Arc::clone(transcript), Arc::clone(&attempt.services().kinds));
        let read = run_on_text(attempt.services(), move || {
            pages.pages.get(at).map(|page| PageSigns::read(page, &kinds)).unwrap_or_default()
        });
        signs.push(read.await?);
    }
    run_on_text(attempt.services(), move || judge_packet(&signs)).await
}

/// The verdict of a mode on judged pages; open boundaries are left to a person.
pub(super) fn verdict_of(mode: PacketMode, judged: &PacketJudgement) -> PacketVerdict {
    let parts = judged.parts();
    let cuts = parts.iter().skip(1).map(|part| part.first).collect();
    let doubt = |consequence| PacketVerdict::One(Some(PacketDoubt { consequence, cuts }));
    match mode {
        PacketMode::Content if judged.is_doubtful() => doubt(RuleConsequence::Review),
        PacketMode::Content if parts.len() > 1 => PacketVerdict::Several(parts),
        PacketMode::Never | PacketMode::Separator if judged.has_certain_cut() => {
            doubt(RuleConsequence::Flag)
        }
        _ => PacketVerdict::One(None),
    }
}

/// Stores the transcripts of the parts of a file, and returns the parts, each with its position among the
/// documents found in it, as documents of their own.
///
/// # Errors
/// A lost claim; store errors.
pub(super) async fn store_parts(
    attempt: AttemptContext<'_>,
    whole: &TranscribedDocument,
    parts: impl Iterator<Item = (u32, PageRange)>,
) -> Result<Vec<NewChild>, StepError> {
    let claimed = attempt.claimed;
    let (original, sha256) = (&claimed.document, &whole.transcript.sha256);
    let mut children = Vec::new();
    for (position, pages) in parts {
        let child = NewChild {
            name: original.original_name.clone(),
            kind: attempt.kind_name().map(str::to_owned),
            ..NewChild::of_pages(claimed.id, sha256, position, pages, &original.file_path)
        };
        transcribe::store_part(attempt, whole, child.ingestion, pages).await?;
        children.push(child);
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_packets::{Boundary, BoundaryVerdict};

    fn outcome(mode: PacketMode, boundaries: &[(u32, BoundaryVerdict)]) -> String {
        let boundary = |(page, verdict): &(u32, BoundaryVerdict)| Boundary {
            page: *page,
            verdict: *verdict,
            signs: Vec::new(),
        };
        let judged =
            PacketJudgement { boundaries: boundaries.iter().map(boundary).collect(), pages: 6 };
        match verdict_of(mode, &judged) {
            PacketVerdict::One(None) => "one".to_owned(),
            PacketVerdict::One(Some(doubt)) => {
                let mut verdict = Verdict::default();
                doubt.note(&mut verdict);
                assert_eq!(verdict.review_reasons(), [REASON]);
                let word = if verdict.is_refused() { "asked" } else { "flagged" };
                format!("{word} {:?}", doubt.cuts)
            }
            PacketVerdict::Several(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|part| format!("{}-{}", part.first, part.last)).collect();
                parts.join(" ")
            }
            PacketVerdict::Open(_) => "open".to_owned(),
        }
    }

    #[test]
    fn only_what_is_certain_is_cut_and_only_where_the_settings_allow_it() {
        use BoundaryVerdict::{Cut, MaybeCut, MaybeJoin};
        let certain: &[(u32, BoundaryVerdict)] = &[(3, Cut), (4, Cut)];
        let doubtful: &[(u32, BoundaryVerdict)] = &[(3, Cut), (4, MaybeCut), (5, MaybeJoin)];
        #[rustfmt::skip]
        let table = [
            (PacketMode::Content, &[][..], "one"),
            (PacketMode::Content, certain, "1-2 3-3 4-6"),
            (PacketMode::Content, doubtful, "asked [3, 4]"),
            (PacketMode::Content, &[(2, MaybeJoin)], "asked []"),
            (PacketMode::Never, certain, "flagged [3, 4]"),
            (PacketMode::Separator, doubtful, "flagged [3, 4]"),
            (PacketMode::Never, &[(4, MaybeCut)], "one"),
        ];
        for (mode, boundaries, expected) in table {
            assert_eq!(outcome(mode, boundaries), expected, "{mode:?} {boundaries:?}");
        }
    }
}
