//! Whether a model's reply is usable, and its usable part: by its stop reason, its form, the ink of
//! the page, and the local reader's reading of the same picture.
//!
//! The shares are starting values, not fitted. A reading that passes is no truth: see `align`.

use super::align::{AlignedPage, ReadingAgreement, align_page};
use super::loops::ends_in_loop;
use super::recipe::{ModelPage, PageRecipe};
use crate::reading::show_page::uncovered_cells;
use docmill_core::config::{LlmServer, VisionConfig};
use docmill_core::model::{PageText, ProviderReading, ReadingRefusal, TextMap};
use docmill_llm::{FinishReason, ModelReply, Prompt, count_words};

/// Below this many sure words of the local reader, recall is not judged.
const FEW_WORDS: usize = 8;
/// A page of at least this quality was read here well.
const READ_WELL: f32 = 0.8;
/// On a well-read page, any honest reading has one in this many of the local reader's sure words, and
/// one in this many of its own words is the local reader's.
const ONE_IN_GOOD: usize = 2;
/// The same of a bad page.
const ONE_IN_BAD: usize = 5;
/// Of the cells that look like text and carry words of the local reader, one in this many may be left
/// out.
const LEFT_OUT: usize = 4;
/// Letters that fit into a cell, a tenth of an inch each way, of the smallest print; and those that
/// need no ink.
const LETTERS_PER_CELL: usize = 6;
const FREE_LETTERS: usize = 10;
/// Letters of usual print in a cell.
const USUAL_LETTERS: usize = 2;
/// No model has fewer tokens for a picture; what is counted beside it is the text.
const MIN_PICTURE_TOKENS: u64 = 16;

/// Everything by which a reply is judged.
pub(super) struct ReplyJudge {
    pub(super) recipe: PageRecipe,
    /// See [`counted_share`].
    pub(super) counted_share: f64,
    /// Where on the picture there seems to be text.
    pub(super) map: TextMap,
    /// The local reading.
    pub(super) local: PageText,
}

/// The least share of the tokens of a picture, counted by its vendor's rule, that a server counts; 0
/// where it is not known.
pub(super) fn counted_share(config: &VisionConfig) -> f64 {
    match config.server {
        _ if config.model_config().asks_claude() => 0.5,
        // Older models count tiles, which makes less of a page.
        LlmServer::Openai | LlmServer::Azure => 0.25,
        _ => 0.0,
    }
}

impl ReplyJudge {
    /// The reading that comes of a reply, or why it is refused.
    pub(super) fn judge_reply(&self, asked: &Prompt, reply: &ModelReply) -> ProviderReading {
        let version = Some(reply.model.clone());
        match self.align_reply(asked, reply) {
            Ok(page) => {
                ProviderReading { lines: page.lines, version, ..ProviderReading::default() }
            }
            Err((refused, turn)) => {
                let refused = Some(refused);
                ProviderReading { refused, turn, version, ..ProviderReading::default() }
            }
        }
    }

    fn align_reply(
        &self,
        asked: &Prompt,
        reply: &ModelReply,
    ) -> Result<AlignedPage, (ReadingRefusal, Option<u8>)> {
        check_end(reply)
            .and_then(|()| self.check_tokens(asked, reply))
            .map_err(|refusal| (refusal, None))?;
        let page = self.recipe.parse_reply(&reply.text);
        let page = page.ok_or((ReadingRefusal::BrokenForm, None))?;
        if page.lines.iter().any(|line| ends_in_loop(&line.join(" "))) || self.loops(&page) {
            return Err((ReadingRefusal::Loop, None));
        }
        let aligned = align_page(&page, &self.local.lines);
        self.check_upright(&page, aligned.agreement)?;
        self.check_agreement(aligned.agreement)
            .and_then(|()| self.check_ink(&aligned))
            .map_err(|refusal| (refusal, None))?;
        Ok(aligned)
    }

    fn loops(&self, page: &ModelPage) -> bool {
        let text: Vec<String> = page.lines.iter().map(|line| line.join(" ")).collect();
        // A page may repeat itself: then the local reader has it as well.
        ends_in_loop(&text.join("\n")) && !ends_in_loop(&self.local.text())
    }

    /// Whether the picture can have been among what was counted: some servers leave it out, and the
    /// model makes a page up.
    fn check_tokens(&self, asked: &Prompt, reply: &ModelReply) -> Result<(), ReadingRefusal> {
        let counted = reply.usage.prompt_tokens();
        let picture = asked.picture_tokens();
        let text = count_words(&asked.system) + count_words(&asked.user);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "some thousand tokens"
        )]
        let share = (picture as f64 * self.counted_share) as u64;
        if counted > 0 && counted < text + share.max(MIN_PICTURE_TOKENS) {
            return Err(ReadingRefusal::NoPicture);
        }
        Ok(())
    }

    /// A model's claim that the page is not upright counts only without any word in common with the
    /// local reading, which is upright.
    fn check_upright(
        &self,
        page: &ModelPage,
        agreement: ReadingAgreement,
    ) -> Result<(), (ReadingRefusal, Option<u8>)> {
        let known = agreement.sure >= FEW_WORDS
            && has_share(agreement.sure_found, agreement.sure, ONE_IN_GOOD);
        if page.turn == 0 || known {
            return Ok(());
        }
        Err((ReadingRefusal::Turned, Some(page.turn)))
    }

    fn check_agreement(&self, agreement: ReadingAgreement) -> Result<(), ReadingRefusal> {
        let ReadingAgreement { sure, sure_found, said, said_found, .. } = agreement;
        let read_well = self.local.quality >= READ_WELL;
        let one_in = if read_well { ONE_IN_GOOD } else { ONE_IN_BAD };
        let strange = said >= FEW_WORDS && !has_share(said_found, said, one_in);
        if sure >= FEW_WORDS && !has_share(sure_found, sure, one_in) {
            return Err(match strange {
                true => ReadingRefusal::AnotherPage,
                false => ReadingRefusal::Incomplete,
            });
        }
        if read_well && sure >= FEW_WORDS && strange {
            return Err(ReadingRefusal::Invented);
        }
        Ok(())
    }

    /// Words of the model alone need ink of their own, and omissions must be few.
    fn check_ink(&self, page: &AlignedPage) -> Result<(), ReadingRefusal> {
        let free = uncovered_cells(&self.map, &page.confirmed);
        if page.agreement.letters_alone > FREE_LETTERS + LETTERS_PER_CELL * free {
            return Err(ReadingRefusal::Invented);
        }
        let left_out = free.saturating_sub(uncovered_cells(&self.map, &self.local.lines));
        let left_out = left_out.saturating_sub(page.agreement.letters_alone / USUAL_LETTERS);
        if left_out * LEFT_OUT > self.map.text.len() {
            return Err(ReadingRefusal::Incomplete);
        }
        Ok(())
    }
}

/// Only what came to its end is a reading.
fn check_end(reply: &ModelReply) -> Result<(), ReadingRefusal> {
    match reply.stop {
        FinishReason::Complete => Ok(()),
        FinishReason::Cut if ends_in_loop(&reply.text) => Err(ReadingRefusal::Loop),
        FinishReason::Cut | FinishReason::Stopped => Err(ReadingRefusal::Cut),
        FinishReason::Refused => Err(ReadingRefusal::Declined),
        FinishReason::TooLong => Err(ReadingRefusal::TooLong),
        FinishReason::Garbled => Err(ReadingRefusal::Loop),
    }
}

fn has_share(part: usize, whole: usize, one_in: usize) -> bool {
    part * one_in >= whole
}
