//! Validation of answers. A page process parses untrusted input: assume it is compromised and
//! validate every field. Every number, length and word is checked against the limits and the
//! request. An answer that fails is treated as a malformed frame.
//!
//! Words of a page and bytes of a frame are counted elsewhere. Not promised: that a valid answer is
//! true.

use super::picture_check::{is_sound_colour_picture, is_sound_picture};
use super::wire::DocumentAnswer;
use crate::container::is_clean_name;
use docmill_core::config::LimitsConfig;
use docmill_core::model::{
    BoundingBox, EncodedImage, MemberFacts, OutcomeReason, PageCode, PageDefect, PageMark,
    PageNote, PageReadResult, PageText, PageViewMode, PageViewResult, PictureFacts, PictureFit,
    RuleReport, TextLayer, TextLine, TextMap, TextWord,
};
use docmill_formats::einvoice::EinvoiceFinding;

/// Languages of a page, more than any installation has; below, bytes of one's name.
const MAX_LANGUAGES: usize = 256;
const MAX_LANGUAGE_BYTES: usize = 64;
/// Each defect is listed once at most.
const MAX_DEFECTS: usize = 16;
/// Bytes of a refusal's detail: counts, limits, names of formats.
const MAX_DETAIL_BYTES: usize = 400;
/// Pixels allowed for any picture: repairs enlarge small ones to about this size.
const MAX_ENLARGED_PIXELS: u64 = 40_000_000;
/// Positions on a page, in points or pixels, are smaller.
const MAX_POSITION: f32 = 1e9;

/// Whether the answer and its body pass the check of their own kind, as a reply about the first
/// page of a document.
pub fn believes_answer(answer: DocumentAnswer, body: Vec<u8>, limits: &LimitsConfig) -> bool {
    let check = AnswerCheck::new(limits);
    let fit = PictureFit { quarter_turns: 0, longest_side: 4096, pixels: check.most_pixels() };
    match answer {
        DocumentAnswer::Opened { pages, members, einvoice, .. } => {
            check.are_members(&members)
                && check.is_page_count(pages, None, !members.is_empty())
                && einvoice.is_none_or(|found| check.is_finding(&found))
        }
        DocumentAnswer::Read { .. } => {
            answer.into_page(body).is_some_and(|read| check.is_page_read(&read, 0))
        }
        DocumentAnswer::LocalRead { .. } => answer
            .into_shown_page(body)
            .is_some_and(|shown| check.has_local_reading(&shown, fit, 0)),
        DocumentAnswer::Known { .. } | DocumentAnswer::Shown { .. } | DocumentAnswer::Unaltered => {
            answer
                .into_shown_page(body)
                .is_some_and(|shown| check.is_shown_page(&shown, PageViewMode::Repaired, 0))
        }
        DocumentAnswer::LookedAgain(look) => check.is_printed_page(&look.page, 0),
        DocumentAnswer::Printed { page } => check.is_printed_page(&page.text, 0),
        DocumentAnswer::Drawn { .. } => {
            answer.into_drawn(body).is_some_and(|drawn| check.is_drawn_page(drawn.as_ref(), fit))
        }
        DocumentAnswer::Reread { lines } => is_reread(&lines),
        // Either is as good as the other; bytes of a member are compared with its size.
        DocumentAnswer::Fields { .. } | DocumentAnswer::Member => true,
        DocumentAnswer::Refused { reason, detail } => is_refusal(reason, &detail),
        DocumentAnswer::Failed { context, .. } => is_remark(&context),
    }
}

/// The limits that answers are checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerCheck<'a> {
    limits: &'a LimitsConfig,
}

impl<'a> AnswerCheck<'a> {
    pub(super) fn new(limits: &'a LimitsConfig) -> Self {
        Self { limits }
    }

    /// A document has a page and not more than are allowed, a container may have none; opened again, as
    /// many as before.
    pub(super) fn is_page_count(
        self,
        pages: u32,
        before: Option<u32>,
        may_be_container: bool,
    ) -> bool {
        let least = u32::from(!may_be_container);
        (least..=self.limits.pages).contains(&pages) && before.is_none_or(|before| before == pages)
    }

    /// Documents found in another: their number, their sizes, their names.
    pub(super) fn are_members(self, members: &[MemberFacts]) -> bool {
        let most = usize::try_from(self.limits.container_members).unwrap_or(usize::MAX);
        let sizes = members.iter().map(|member| member.bytes);
        let all = sizes.clone().fold(0, u64::saturating_add);
        members.len() <= most
            && all <= self.limits.container_bytes.0
            && sizes.into_iter().all(|bytes| bytes <= self.limits.document_bytes.0)
            && members.iter().all(|member| member.name.as_deref().is_none_or(is_clean_name))
    }

    /// Page `index`, which starts at 0, as it was read.
    pub(super) fn is_page_read(self, read: &PageReadResult, index: u32) -> bool {
        let most = self.most_pixels();
        read.page.number == index + 1
            && is_page(&read.page)
            && read.repaired.as_ref().is_none_or(|image| is_sound_picture(image, most))
    }

    /// Page `index`, which starts at 0, as it was to be shown.
    pub(super) fn is_shown_page(
        self,
        shown: &PageViewResult,
        view: PageViewMode,
        index: u32,
    ) -> bool {
        match shown {
            PageViewResult::Text(page) => page.number == index + 1 && is_page(page),
            PageViewResult::Unaltered => view == PageViewMode::Repaired,
            PageViewResult::Picture(picture) => {
                let is_picture = match view {
                    PageViewMode::Facts => picture.image.bytes.is_empty(),
                    PageViewMode::AsItIs | PageViewMode::Repaired => {
                        is_sound_picture(&picture.image, self.most_pixels())
                    }
                };
                picture.facts.number == index + 1
                    && is_picture
                    && picture.local_reading.is_none()
                    && self.are_facts(&picture.facts)
            }
        }
    }

    /// Page `index`, which starts at 0, as it was read, with a picture that fits another reader.
    pub(super) fn has_local_reading(
        self,
        shown: &PageViewResult,
        fit: PictureFit,
        index: u32,
    ) -> bool {
        match shown {
            PageViewResult::Text(page) => page.number == index + 1 && is_page(page),
            PageViewResult::Unaltered => false,
            PageViewResult::Picture(picture) => {
                let header = picture.image.header;
                picture.facts.number == index + 1
                    && header.width.max(header.height) <= fit.longest_side
                    && is_sound_picture(&picture.image, self.most_pixels().min(fit.pixels))
                    && self.are_facts(&picture.facts)
                    && picture
                        .local_reading
                        .as_ref()
                        .is_some_and(|read| self.is_page_read(read, index))
            }
        }
    }

    /// A page as it was drawn for a model.
    pub(super) fn is_drawn_page(self, drawn: Option<&EncodedImage>, fit: PictureFit) -> bool {
        drawn.is_none_or(|image| {
            image.header.width.max(image.header.height) <= fit.longest_side
                && is_sound_picture(image, self.most_pixels().min(fit.pixels))
        })
    }

    /// A page as it was painted for people, in colour or grey.
    pub(super) fn is_painted_page(self, painted: Option<&EncodedImage>, fit: PictureFit) -> bool {
        painted.is_none_or(|image| {
            let most = self.most_pixels().min(fit.pixels);
            image.header.width.max(image.header.height) <= fit.longest_side
                && (is_sound_picture(image, most) || is_sound_colour_picture(image, most))
        })
    }

    /// A page as it was drawn for a copy.
    pub(super) fn is_copied_page(self, drawn: Option<&EncodedImage>) -> bool {
        drawn.is_none_or(|image| is_sound_picture(image, self.most_pixels()))
    }

    /// Page `index`, which starts at 0, with the text that the file has for it.
    pub(super) fn is_printed_page(self, page: &PageText, index: u32) -> bool {
        page.number == index + 1 && is_page(page)
    }

    /// Content of the e-invoices of a document: it must have the form and the bounds of one that
    /// was read.
    pub(super) fn is_finding(self, found: &EinvoiceFinding) -> bool {
        let are_rules_sound = found.rules.as_ref().is_none_or(RuleReport::is_sound);
        let is_sound = match &found.invoice {
            Ok(Some(invoice)) => invoice.is_sound() && (found.is_document || invoice.is_complete()),
            // A document that is one is never without.
            Ok(None) => !found.is_document && found.rules.is_none(),
            Err(_) => true,
        };
        is_sound && are_rules_sound
    }

    fn are_facts(self, facts: &PictureFacts) -> bool {
        is_share(facts.score)
            && are_defects(&facts.defects)
            && self.is_map(&facts.text)
            && are_codes(&facts.codes)
            && facts.layer.as_ref().is_none_or(is_layer)
    }

    /// The grid is rebuilt here, so its numbers determine how much memory it takes.
    fn is_map(self, map: &TextMap) -> bool {
        let cells = u64::try_from(map.cells).unwrap_or(u64::MAX);
        cells <= self.most_pixels()
            // Of a picture lower than a cell there are columns and no cells.
            && (map.cells == 0 || map.across <= map.cells)
            && map.across <= 1 << 20
            && map.cell <= 1 << 16
            && map.text.len() <= map.cells
            && map.text.iter().all(|cell| *cell < map.cells)
    }

    fn most_pixels(self) -> u64 {
        self.limits.page_pixels.max(MAX_ENLARGED_PIXELS)
    }
}

/// Whether a page process may refuse a document like this: for a reason that documents themselves
/// can cause, with a detail that fits a log line.
pub(super) fn is_refusal(reason: OutcomeReason, detail: &str) -> bool {
    let is_input = matches!(
        reason,
        OutcomeReason::Corrupt
            | OutcomeReason::Encrypted
            | OutcomeReason::Empty
            | OutcomeReason::UnsupportedType
            | OutcomeReason::TooLarge
            | OutcomeReason::Timeout
            | OutcomeReason::NoText
    );
    is_input && is_remark(detail)
}

/// Whether this is a line for a log or a row.
pub(super) fn is_remark(text: &str) -> bool {
    text.len() <= MAX_DETAIL_BYTES && !text.chars().any(char::is_control)
}

/// Whether these may be lines of a piece of a page, with boxes in shares of it.
pub(super) fn is_reread(lines: &[TextLine]) -> bool {
    let mut boxes = lines.iter().flat_map(|line| &line.words).map(|word| word.bounding_box);
    lines.iter().all(is_line) && boxes.all(|it| [it.x, it.y, it.w, it.h].into_iter().all(is_share))
}

fn is_page(page: &PageText) -> bool {
    is_length(page.width)
        && is_length(page.height)
        && is_share(page.quality)
        && are_defects(&page.defects)
        && are_languages(&page.languages)
        // Only the worker talks to providers.
        && page.provider.is_none()
        && are_codes(&page.codes)
        && are_marks(&page.marks)
        && page.notes.len() <= PageNote::MAX_PER_PAGE
        && page.lines.iter().all(is_line)
}

fn is_layer(layer: &TextLayer) -> bool {
    is_length(layer.width)
        && is_length(layer.height)
        && are_marks(&layer.marks)
        && layer.lines.iter().all(is_line)
}

fn is_line(line: &TextLine) -> bool {
    line.words.iter().all(|word: &TextWord| is_box(word.bounding_box) && is_share(word.confidence))
}

fn are_codes(codes: &[PageCode]) -> bool {
    let is_code =
        |code: &PageCode| code.payload.len() <= PageCode::MAX_BYTES && is_box(code.bounding_box);
    codes.len() <= PageCode::MAX_PER_PAGE && codes.iter().all(is_code)
}

fn are_marks(marks: &[PageMark]) -> bool {
    marks.len() <= PageMark::MAX_PER_PAGE && marks.iter().all(|mark| is_box(mark.bounding_box))
}

fn is_box(BoundingBox { x, y, w, h }: BoundingBox) -> bool {
    [x, y, w, h].iter().all(|number| number.abs() <= MAX_POSITION)
}

/// NaN fails all of these comparisons.
fn is_length(number: f32) -> bool {
    (0.0..=MAX_POSITION).contains(&number)
}

fn is_share(number: f32) -> bool {
    (0.0..=1.0).contains(&number)
}

fn are_defects(defects: &[PageDefect]) -> bool {
    defects.len() <= MAX_DEFECTS && defects.iter().all(|defect| is_share(defect.confidence))
}

fn are_languages(languages: &[String]) -> bool {
    languages.len() <= MAX_LANGUAGES
        && languages.iter().all(|name| {
            (1..=MAX_LANGUAGE_BYTES).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_graphic())
        })
}

#[cfg(test)]
mod tests {
    use docmill_formats::einvoice::EinvoiceDefect;

    use docmill_core::model::{
        CodeSymbology, ImageEncoding, ImageHeader, PageMarkKind, PagePicture, PageSource,
    };

    use super::*;

    fn page() -> PageText {
        let word = TextWord {
            text: "Total".into(),
            bounding_box: BoundingBox { x: 1.0, y: 2.0, w: 30.0, h: 9.0 },
            confidence: 0.9,
            unwitnessed: false,
        };
        PageText {
            source: PageSource::Ocr,
            languages: vec!["eng".to_owned(), "script/Latin".to_owned()],
            ..PageText::from_native(1, (595.0, 842.0), 0.8, vec![TextLine { words: vec![word] }])
        }
    }

    fn read(change: impl FnOnce(&mut PageText)) -> bool {
        let mut page = page();
        change(&mut page);
        let read = PageReadResult { page, repaired: None };
        AnswerCheck::new(&LimitsConfig::default()).is_page_read(&read, 0)
    }

    fn facts() -> PictureFacts {
        PictureFacts {
            number: 1,
            repaired: false,
            score: 0.5,
            defects: Vec::new(),
            text: TextMap::default(),
            layer: None,
            cut: false,
            codes: Vec::new(),
        }
    }

    fn picture() -> EncodedImage {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image::GrayImage::new(2, 1).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        let header = ImageHeader { width: 2, height: 1, dpi: 300, encoding: ImageEncoding::Png };
        EncodedImage { header, bytes: bytes.into_inner() }
    }

    fn code(bytes: usize) -> PageCode {
        let (symbology, area) = (CodeSymbology::Qr, BoundingBox::default());
        let payload = "1".repeat(bytes);
        PageCode { symbology, payload, bytes: false, bounding_box: area }
    }

    fn mark(kind: PageMarkKind) -> PageMark {
        PageMark { kind, bounding_box: BoundingBox::default() }
    }

    fn word(change: impl FnOnce(&mut TextWord)) -> bool {
        read(|page| change(&mut page.lines[0].words[0]))
    }

    #[test]
    fn a_page_with_a_number_or_a_length_that_cannot_be_is_not_believed() {
        assert!(read(|_| ()));
        assert!(read(|page| page.codes = vec![code(7_089); 32]));
        assert!(read(|page| page.marks = vec![mark(PageMarkKind::Figure); 32]));
        #[rustfmt::skip]
        let table = [
            ("another page",            read(|page| page.number = 2)),
            ("an endless page",         read(|page| page.width = f32::INFINITY)),
            ("a page of no size",       read(|page| page.height = f32::NAN)),
            ("better than right",       read(|page| page.quality = 1.5)),
            ("empty languages",         read(|page| page.languages = vec![String::new(); 2])),
            ("too many languages",      read(|page| page.languages = vec!["eng".to_owned(); 300])),
            ("a language with an end",  read(|page| page.languages = vec!["eng\n".to_owned()])),
            ("a provider",              read(|page| page.provider = Some(Box::default()))),
            ("too many marks",          read(|page| page.marks = vec![mark(PageMarkKind::Figure); 33])),
            ("a hand nowhere",          read(|page| {
                page.marks = vec![mark(PageMarkKind::Handwriting)];
                page.marks[0].bounding_box.w = f32::NAN;
            })),
            ("too many codes",          read(|page| page.codes = vec![code(1); 33])),
            ("a code without end",      read(|page| page.codes = vec![code(7_090)])),
            ("a code nowhere",          read(|page| {
                page.codes = vec![code(1)];
                page.codes[0].bounding_box.y = f32::NAN;
            })),
            ("surer than sure",         word(|word| word.confidence = 2.0)),
            ("a word nowhere",          word(|word| word.bounding_box.x = f32::NEG_INFINITY)),
        ];
        for (name, is_believed) in table {
            assert!(!is_believed, "{name}");
        }
    }

    #[test]
    fn a_picture_for_another_reader_is_believed_only_with_what_was_read_of_it_here() {
        let limits = LimitsConfig::default();
        let check = AnswerCheck::new(&limits);
        let fit = PictureFit { quarter_turns: 0, longest_side: 4096, pixels: check.most_pixels() };
        let shown = |local_reading: Option<PageReadResult>| {
            PageViewResult::Picture(Box::new(PagePicture {
                facts: facts(),
                image: picture(),
                local_reading: local_reading.map(Box::new),
            }))
        };
        let read =
            |number: u32| PageReadResult { page: PageText { number, ..page() }, repaired: None };
        assert!(check.has_local_reading(&shown(Some(read(1))), fit, 0));
        assert!(!check.has_local_reading(&shown(None), fit, 0), "nothing was read of it");
        assert!(!check.has_local_reading(&shown(Some(read(2))), fit, 0), "another page was read");
        assert!(!check.has_local_reading(&PageViewResult::Unaltered, fit, 0), "no picture");
    }

    #[test]
    fn a_verdict_of_rules_beyond_the_bounds_is_not_believed() {
        let limits = LimitsConfig::default();
        let check = AnswerCheck::new(&limits);
        let report = |sets: usize| RuleReport {
            sets: vec!["EN 16931 UBL 1".to_owned(); sets],
            ..RuleReport::default()
        };
        let found = |rules| {
            let found = EinvoiceFinding::unusable(EinvoiceDefect::NotAnInvoice, false);
            check.is_finding(&EinvoiceFinding { rules, ..found })
        };
        assert!(found(None) && found(Some(report(2))));
        assert!(!found(Some(report(1_000))), "more sets than there are");
        let of_none = EinvoiceFinding { rules: Some(report(1)), ..EinvoiceFinding::NONE };
        assert!(!check.is_finding(&of_none), "a verdict on nothing");
    }

    #[test]
    fn a_document_has_as_many_pages_as_are_allowed_and_as_it_had_before() {
        let limits = LimitsConfig { pages: 10, ..LimitsConfig::default() };
        let check = AnswerCheck::new(&limits);
        for (pages, before, expected) in [
            (1, None, true),
            (10, None, true),
            (10, Some(10), true),
            (0, None, false),
            (11, None, false),
            (u32::MAX, None, false),
            (9, Some(10), false),
        ] {
            assert_eq!(
                check.is_page_count(pages, before, false),
                expected,
                "{pages} after {before:?}"
            );
        }
    }

    #[test]
    fn a_grid_that_would_take_all_memory_is_not_made() {
        let limits = LimitsConfig::default();
        let check = AnswerCheck::new(&limits);
        let map = TextMap { across: 10, cells: 100, cell: 16, text: vec![0, 99] };
        assert!(check.is_map(&map) && check.is_map(&TextMap::default()));
        for (name, wrong) in [
            ("cells without end", TextMap { cells: usize::MAX, ..map.clone() }),
            ("cells beyond the grid", TextMap { text: vec![100], ..map.clone() }),
            ("a row beyond the grid", TextMap { across: 101, ..map.clone() }),
            ("a cell beyond the page", TextMap { cell: usize::MAX, ..map }),
        ] {
            assert!(!check.is_map(&wrong), "{name}");
        }
    }

    #[test]
    fn a_refusal_is_about_the_input_and_one_line() {
        assert!(is_refusal(OutcomeReason::TooLarge, "1001 pages, limits.pages is 1000"));
        assert!(!is_refusal(OutcomeReason::Cancelled, ""), "that is the operator's word");
        assert!(!is_refusal(OutcomeReason::GateRefused, ""), "and that the gate's");
        assert!(!is_refusal(OutcomeReason::Corrupt, &"x".repeat(401)));
        assert!(!is_refusal(OutcomeReason::Corrupt, "\u{1b}]52;c;ZXZpbA==\u{7}"));
        assert!(!is_remark("two\nlines"));
    }
}
