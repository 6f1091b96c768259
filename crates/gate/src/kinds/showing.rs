//! Whether documents of a kind are shown to the model that extracts, beside their transcript.

use docmill_core::model::{PageText, Transcript};

/// Most pages of one document that any kind may ask for: what every vendor takes in one request.
pub(super) const MAX_PAGES: u32 = 20;
/// Least pixels that print can be read on.
pub(super) const MIN_PIXELS: u64 = 200_000;
/// Pages that are shown where a kind does not say how many.
const USUAL_PAGES: u32 = 4;

/// When pages are shown as pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShowPages {
    /// Text only, whatever the page looks like.
    Never,
    /// Pages that were read badly, and all where a stronger model of the chain is asked.
    Doubtful,
    /// Every page, as far as the limit reaches.
    Always,
}

impl ShowPages {
    /// Its name in `kind.toml`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "never" => Some(Self::Never),
            "doubtful" => Some(Self::Doubtful),
            "always" => Some(Self::Always),
            _ => None,
        }
    }
}

/// The pages of a document that a kind shows to models with vision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageShowing {
    /// Which pages.
    pub when: ShowPages,
    /// Most pages of a document, the doubtful ones first.
    pub most_pages: u32,
    /// Most pixels of a picture; 0: by the vendor's rule alone.
    pub most_pixels: u64,
}

impl Default for PageShowing {
    fn default() -> Self {
        Self { when: ShowPages::Doubtful, most_pages: USUAL_PAGES, most_pixels: 0 }
    }
}

impl PageShowing {
    /// The numbers of the pages that are shown, ascending: the worst first where not all may be.
    /// `threshold`: below this quality a page is doubtful. `is_stronger`: a model was asked before.
    pub fn choose_pages(
        &self,
        transcript: &Transcript,
        threshold: f32,
        is_stronger: bool,
    ) -> Vec<u32> {
        let mut chosen: Vec<(bool, &PageText)> = match self.when {
            ShowPages::Never => return Vec::new(),
            ShowPages::Doubtful if !is_stronger => {
                let doubtful = transcript.pages.iter().filter(|page| is_doubtful(page, threshold));
                doubtful.map(|page| (false, page)).collect()
            }
            ShowPages::Doubtful | ShowPages::Always => {
                transcript.pages.iter().map(|page| (!is_doubtful(page, threshold), page)).collect()
            }
        };
        // A stable order: of pages that are equally bad the earlier ones.
        chosen.sort_by(|(one, a), (other, b)| {
            let quality =
                if *one { std::cmp::Ordering::Equal } else { a.quality.total_cmp(&b.quality) };
            one.cmp(other).then(quality)
        });
        let most = usize::try_from(self.most_pages).unwrap_or(usize::MAX);
        let mut numbers: Vec<u32> =
            chosen.into_iter().take(most).map(|(_, page)| page.number).collect();
        numbers.sort_unstable();
        numbers
    }
}

/// Whether a page was read badly, or words of it have a single source.
fn is_doubtful(page: &PageText, threshold: f32) -> bool {
    let mut words = page.lines.iter().flat_map(|line| &line.words);
    page.quality < threshold || words.any(|word| word.unwitnessed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(qualities: &[f32]) -> Transcript {
        let pages = (1..).zip(qualities).map(|(number, quality)| {
            PageText::from_native(number, (595.0, 842.0), *quality, Vec::new())
        });
        Transcript {
            format: Transcript::FORMAT,
            sha256: String::new(),
            provider: String::new(),
            pages: pages.collect(),
            quality: 1.0,
        }
    }

    #[test]
    fn the_worst_pages_are_shown_first_and_never_more_than_may_be() {
        let seen = document(&[1.0, 0.5, 0.9, 0.2, 0.6]);
        let shown = |when, most_pages, is_stronger| {
            let showing = PageShowing { when, most_pages, most_pixels: 0 };
            showing.choose_pages(&seen, 0.7, is_stronger)
        };
        #[rustfmt::skip]
        let table: [(ShowPages, u32, bool, &[u32]); 7] = [
            (ShowPages::Never,    9, true,  &[]),
            (ShowPages::Doubtful, 9, false, &[2, 4, 5]),
            (ShowPages::Doubtful, 2, false, &[2, 4]),
            (ShowPages::Doubtful, 9, true,  &[1, 2, 3, 4, 5]),
            (ShowPages::Doubtful, 4, true,  &[1, 2, 4, 5]),
            (ShowPages::Always,   9, false, &[1, 2, 3, 4, 5]),
            (ShowPages::Always,   1, false, &[4]),
        ];
        for (when, most, is_stronger, expected) in table {
            assert_eq!(shown(when, most, is_stronger), expected, "{when:?} {most} {is_stronger}");
        }
    }
}
