//! Cases that every reader of page images passes: providers over the network against their
//! stand-ins, engines of this machine as they are installed.
//!
//! A new provider is one [`ProviderHarness`] and one line at `providers!`, a new engine one line at
//! `engines!`. Peculiarities of one provider are tested in `providers/`.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod engines;
mod harness;
mod providers;

use std::sync::Arc;

use async_trait::async_trait;
use docmill_core::config::OcrProvider;
use docmill_core::model::PagePicture;
use docmill_documents::ocr::RemoteOcrProvider;

/// A provider's stand-in, and the real client of it.
#[async_trait]
trait ProviderHarness: Send + Sync {
    /// Its name in the configuration.
    fn provider(&self) -> OcrProvider;
    /// One more client with the same settings.
    async fn client(&self) -> Arc<dyn RemoteOcrProvider>;
    /// The stand-in answers so many calls like this, and the rest well.
    fn fail(&self, failure: ServiceFailure, times: usize);
    /// The stand-in takes no credentials when it is asked whether it is there.
    fn refuse_ping(&self) {
        self.fail(ServiceFailure::Denied, 1);
    }
    /// A page to send; each number is another page.
    fn picture(&self, page: u32) -> PagePicture;
    /// Text that the stand-in reads from that page.
    fn text(&self, page: u32) -> String;
    /// Calls that asked for pages to be read, answered or not.
    fn calls(&self) -> usize;
    /// Pages that were read, and would be paid for.
    fn pages_read(&self) -> usize;
}

/// Answers that every service has, each in its own form.
#[derive(Debug, Clone, Copy)]
enum ServiceFailure {
    /// Over the quota.
    Throttled,
    /// The credentials are not taken.
    Denied,
    /// The picture is not taken.
    Rejected,
    /// An error of the service itself.
    Broken,
}

/// One test per case and reader.
macro_rules! cases {
    ($name:ident, $reader:expr, $group:ident: [$($case:ident),* $(,)?]) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $case() {
                    super::$group::$case(&$reader).await;
                }
            )*
        }
    };
}

macro_rules! providers {
    ($($name:ident => $harness:ident),* $(,)?) => {
        $(cases!($name, crate::ocr_suite::harness::$harness::start().await, providers: [
            is_called_as_the_configuration_calls_it,
            a_call_within_the_limits_gives_one_reading_for_each_picture_in_order,
            words_lie_within_their_picture,
            each_failure_asks_for_its_reaction_and_is_retried_only_if_that_helps,
            a_ping_reads_no_page_and_names_refused_credentials,
        ]);)*

        #[tokio::test]
        async fn every_provider_of_the_configuration_is_in_the_suite() {
            let mut listed = vec![OcrProvider::Tesseract];
            $(listed.push(harness::$harness::start().await.provider());)*
            listed.sort();
            listed.dedup();
            let mut all = OcrProvider::ALL.to_vec();
            all.sort();
            assert_eq!(listed, all);
        }
    };
}

macro_rules! engines {
    ($($name:ident => $engine:expr),* $(,)?) => {
        $(cases!($name, $engine, engines: [
            has_a_name_and_an_identity_that_two_finds_share,
            a_clean_page_is_read_and_its_words_lie_within_it,
            the_same_picture_gives_the_same_lines_whatever_was_read_before,
            a_page_without_ink_has_no_words_and_none_of_any_shape_is_a_failure,
            two_pages_are_read_at_the_same_time,
        ]);)*
    };
}

providers!(
    document_ai => DocumentAiStandIn,
    textract => TextractStandIn,
    document_intelligence => DocumentIntelligenceStandIn,
    vision => VisionStandIn,
    mistral_ocr => MistralOcrStandIn,
);

engines!(
    tesseract_linked => super::engines::tesseract(""),
    tesseract_program => super::engines::tesseract("tesseract"),
    neural => super::engines::neural(),
    tesseract_and_neural => super::engines::both(),
);
