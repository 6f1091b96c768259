use async_trait::async_trait;

use super::*;
use docmill_core::model::{PagePicture, PageSource, PageUsage, ProviderNotes, ProviderReading};
use docmill_documents::ocr::ProviderCallLimits;

struct Named(&'static str);

#[async_trait]
impl RemoteOcrProvider for Named {
    fn name(&self) -> &'static str {
        self.0
    }

    fn identity(&self) -> String {
        format!("{} version 1", self.0)
    }

    fn call_limits(&self) -> ProviderCallLimits {
        ProviderCallLimits { pages: 1, bytes: 1 }
    }

    async fn ping(&self) -> fault::Result<()> {
        Ok(())
    }

    async fn read_pictures(
        &self,
        _: &[PagePicture],
    ) -> fault::Result<(Vec<ProviderReading>, PageUsage)> {
        Err(fault::Error::internal("nobody asks"))
    }
}

fn remote_ocr(order: &[OcrProvider]) -> RemoteOcr {
    let named: Arc<dyn RemoteOcrProvider> = Arc::new(Named("document_ai"));
    let providers = BTreeMap::from([(OcrProvider::DocumentAi, named)]);
    RemoteOcr::new(order.to_vec(), providers, ByteSize::from_mib(64))
}

fn page(number: u32, source: PageSource, provider: Option<&str>) -> PageText {
    let mut page = PageText::from_native(number, (1.0, 1.0), 1.0, Vec::new());
    page.source = source;
    let notes = |name: &str| ProviderNotes { name: name.to_owned(), ..ProviderNotes::default() };
    page.provider = provider.map(|name| Box::new(notes(name)));
    page
}

#[test]
fn the_identity_lists_remote_providers_in_order_and_none_for_local_reading() {
    use OcrProvider::{DocumentAi, Tesseract};
    let both = remote_ocr(&[DocumentAi, Tesseract]);
    let identity = both.identity(&ReadOptions::default());
    assert!(identity.contains("document_ai version 1") && identity.contains("tesseract"));
    assert_ne!(identity, remote_ocr(&[DocumentAi]).identity(&ReadOptions::default()));
    // As it was before there were any providers: stored transcripts stay of use.
    assert_eq!(RemoteOcr::default().identity(&ReadOptions::default()), "");
    assert_eq!(remote_ocr(&[Tesseract, DocumentAi]).identity(&ReadOptions::default()), "");
    let options = ReadOptions { order: Some(vec![Tesseract]), original: None };
    assert_eq!(both.identity(&options), "");
}

#[test]
fn one_that_was_not_set_up_is_a_bug_and_not_passed_over() {
    let both = remote_ocr(&[]);
    assert!(both.find_provider(OcrProvider::DocumentAi).unwrap().is_some());
    assert!(both.find_provider(OcrProvider::Tesseract).unwrap().is_none());
    assert!(both.find_provider(OcrProvider::Textract).is_err());
}

#[test]
fn the_transcript_names_those_who_read_pictures() {
    let ocr = |number, provider| page(number, PageSource::Ocr, provider);
    let native = page(9, PageSource::Native, None);
    #[rustfmt::skip]
    let table = [
        (vec![native.clone()],                                               "here"),
        (vec![ocr(1, None)],                                                 "here"),
        (vec![ocr(1, Some("a")), ocr(2, Some("a")), native],                 "a"),
        (vec![ocr(1, Some("a")), ocr(2, None), ocr(3, Some("b"))],           "a, here, b"),
    ];
    for (pages, expected) in table {
        assert_eq!(provider_names(&pages, "here"), expected);
    }
}
