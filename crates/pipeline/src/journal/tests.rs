//! The journal over a folder, page by page.

use super::*;
use crate::claim_handle::{ClaimRenewer, claim_pair};
use crate::preprocessed;
use docmill_core::config::ByteSize;
use docmill_core::model::{ClaimToken, ImageEncoding, ImageHeader};
use docmill_documents::{DocumentFormat, open_document};
use docmill_storage::folder::FolderStore;

struct Place {
    store: FolderStore,
    budget: ByteBudget,
    hold: ClaimHandle,
    keeper: ClaimRenewer,
    _folder: tempfile::TempDir,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = FolderStore::open(folder.path()).await.unwrap();
        let until = Instant::now() + Duration::from_secs(600);
        let (hold, keeper) = claim_pair(IngestionId::random(), ClaimToken::random(), until);
        let budget = ByteBudget::new(ByteSize::from_mib(64));
        Self { store, budget, hold, keeper, _folder: folder }
    }

    async fn claim(&self, claims: i64, identity: &str) -> (PageJournal<'_>, Vec<u32>) {
        let (budget, identity) = (&self.budget, identity.to_owned());
        let opened = PageJournal::open(&self.store, budget, &self.hold, claims, identity).await;
        let (journal, finished) = opened.unwrap();
        let mut numbers: Vec<u32> = finished.iter().map(|page| page.number).collect();
        numbers.sort_unstable();
        (journal, numbers)
    }

    async fn parts(&self) -> usize {
        let prefix = keys::page_parts_prefix(self.hold.id);
        list_parts(&self.store, &prefix).await.unwrap().len()
    }
}

fn page(number: u32, source: PageSource) -> PageText {
    PageText {
        number,
        source,
        width: 100.0,
        height: 100.0,
        quality: 0.9,
        defects: Vec::new(),
        languages: Vec::new(),
        repaired: false,
        provider: None,
        codes: Vec::new(),
        marks: Vec::new(),
        notes: Vec::new(),
        lines: Vec::new(),
    }
}

/// A grey image of this size.
fn image(side: u32) -> EncodedImage {
    // Different everywhere, so that the size of the file follows the size of the image.
    let noise = image::GrayImage::from_fn(side, side, |x, y| {
        image::Luma([u8::try_from((x * 31 + y * 17 + x * y) % 251).unwrap()])
    });
    let mut bytes = std::io::Cursor::new(Vec::new());
    noise.write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let encoding = ImageEncoding::Png;
    EncodedImage {
        header: ImageHeader { width: side, height: side, dpi: 100, encoding },
        bytes: bytes.into_inner(),
    }
}

async fn keep(journal: &mut PageJournal<'_>, numbers: std::ops::RangeInclusive<u32>) {
    for number in numbers {
        journal.store_page(&page(number, PageSource::Ocr), None).await.unwrap();
    }
}

#[tokio::test]
async fn a_few_pages_cost_no_request_and_many_a_part_for_ten() {
    let place = Place::new().await;
    let (mut journal, _) = place.claim(1, "a").await;
    keep(&mut journal, 1..=9).await;
    assert_eq!(place.parts().await, 0);
    keep(&mut journal, 10..=35).await;
    for number in 36..=90 {
        journal.store_page(&page(number, PageSource::Native), None).await.unwrap();
    }
    assert_eq!(place.parts().await, 3, "native text is not kept");
    journal.remove().await;
    assert_eq!(place.parts().await, 0);
}

#[tokio::test]
async fn a_later_claim_goes_on_where_an_earlier_ended_and_only_with_the_same_identity() {
    let place = Place::new().await;
    let (mut first, found) = place.claim(1, "a").await;
    assert!(found.is_empty());
    keep(&mut first, 1..=25).await;
    drop(first);
    let (mut second, found) = place.claim(2, "a").await;
    assert_eq!(found, (1..=20).collect::<Vec<u32>>(), "the open part died with its worker");
    keep(&mut second, 21..=24).await;
    second.handle_error(&fault::Error::transient("no answer").into()).await;
    drop(second);
    let (_, other) = place.claim(3, "b").await;
    assert!(other.is_empty(), "read otherwise");
    let (mut third, found) = place.claim(3, "a").await;
    assert_eq!(found, (1..=24).collect::<Vec<u32>>(), "what was finished before the failure");
    let rejected = StepError::rejected(docmill_core::model::OutcomeReason::Timeout, "page 25");
    third.handle_error(&rejected).await;
    assert_eq!(place.parts().await, 0, "nobody will read it again");
}

#[tokio::test]
async fn invariant_8_pages_that_were_paid_for_are_written_before_the_next_call() {
    let place = Place::new().await;
    let (mut journal, _) = place.claim(1, "a").await;
    let usage = PageUsage {
        provider: "p",
        model: "m".to_owned(),
        pages: 1,
        tokens: docmill_core::model::ModelUsage::default(),
        class: docmill_core::model::PriceClass::default(),
    };
    let mut first = page(1, PageSource::Ocr);
    first.quality = 0.1;
    journal.store_page(&first, None).await.unwrap();
    journal.after_call(&usage, false).await.unwrap();
    assert_eq!(place.parts().await, 1);
    journal.store_page(&page(1, PageSource::Ocr), None).await.unwrap();
    journal.after_call(&usage, true).await.unwrap();
    assert_eq!(place.parts().await, 1, "the transcript is written next");
    journal.flush().await.unwrap();
    let (budget, hold) = (&place.budget, &place.hold);
    let opened = PageJournal::open(&place.store, budget, hold, 2, "a".to_owned()).await;
    let (_, found) = opened.unwrap();
    let qualities: Vec<f32> = found.iter().map(|page| page.quality).collect();
    assert_eq!(qualities, [0.9], "the later reading holds");
    place.keeper.note_lost();
    assert!(
        journal.before_call().await.is_err_and(|error| error.is_claim_lost()),
        "no call any more"
    );
}

#[tokio::test]
async fn invariant_8_a_zombie_writes_no_page_and_cannot_replace_one() {
    let place = Place::new().await;
    let (mut zombie, _) = place.claim(1, "a").await;
    keep(&mut zombie, 1..=9).await;
    let (mut owner, _) = place.claim(2, "a").await;
    keep(&mut owner, 1..=10).await;
    place.keeper.note_lost();
    let refused = zombie.store_page(&page(10, PageSource::Ocr), None).await;
    assert!(refused.is_err_and(|error| error.is_claim_lost()));
    assert_eq!(place.parts().await, 1);
    // Even a write that was on its way goes to a key of its own.
    let keys = [1, 2].map(|claims| keys::page_part_key(place.hold.id, claims, 1));
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test]
async fn images_wait_in_the_budget_and_without_room_are_written_at_once() {
    let mut place = Place::new().await;
    place.budget = ByteBudget::new(ByteSize(40 << 10));
    let (mut journal, _) = place.claim(1, "a").await;
    let small = image(100);
    assert!((5_000..15_000).contains(&small.bytes.len()), "{}", small.bytes.len());
    journal.store_page(&page(1, PageSource::Ocr), Some(small.clone())).await.unwrap();
    assert_eq!(place.parts().await, 0);
    let others = place.budget.try_reserve(20 << 10).unwrap();
    journal.store_page(&page(2, PageSource::Ocr), Some(image(120))).await.unwrap();
    assert_eq!(place.parts().await, 1, "no room for it");
    drop(others);
    assert!(place.budget.try_reserve(36 << 10).is_some(), "what is written takes no room");
}

#[tokio::test]
async fn documents_that_are_done_never_wait_for_bytes_that_each_other_has() {
    let mut place = Place::new().await;
    let pictures = image(100);
    let each = u64::try_from(pictures.bytes.len()).unwrap().div_ceil(4096) * 4096;
    // Each has half of the budget in its open part, and asks for as much again.
    place.budget = ByteBudget::new(ByteSize(2 * each));
    let (mut one, _) = place.claim(1, "a").await;
    let (mut other, _) = place.claim(2, "a").await;
    for journal in [&mut one, &mut other] {
        journal.store_page(&page(1, PageSource::Ocr), Some(pictures.clone())).await.unwrap();
    }
    assert_eq!(place.parts().await, 0, "there was room for both");
    let png = Some(DocumentFormat::Png);
    for journal in [&mut one, &mut other] {
        let storing = preprocessed::store_preprocessed(journal, png, 1, 1 << 20);
        let stored = tokio::time::timeout(Duration::from_secs(60), storing).await;
        assert!(stored.expect("it waits for the other").unwrap().is_some());
    }
}

#[tokio::test]
async fn repaired_pages_of_all_claims_are_put_together_by_number_up_to_a_limit() {
    let place = Place::new().await;
    let (mut first, _) = place.claim(1, "a").await;
    first.store_page(&page(12, PageSource::Ocr), Some(image(60))).await.unwrap();
    keep(&mut first, 3..=11).await;
    let (mut second, _) = place.claim(2, "a").await;
    for (number, side) in [(2, 40), (1, 50)] {
        second.store_page(&page(number, PageSource::Ocr), Some(image(side))).await.unwrap();
    }
    let pdf = Some(DocumentFormat::Pdf);
    let made =
        preprocessed::store_preprocessed(&mut second, pdf, 12, 1 << 20).await.unwrap().unwrap();
    assert_eq!(made.pages, [1, 2, 12]);
    assert_eq!(made.file.path, keys::preprocessed_key(place.hold.id, "pdf"));
    let what = GetOptions { at_most: 1 << 20, if_match: None };
    let GetResult::Found(object) = place.store.get(&made.file.path, what).await.unwrap() else {
        panic!("it is not there")
    };
    let document =
        open_document(object.bytes, &docmill_core::config::LimitsConfig::default(), 100).unwrap();
    let sides = [0, 1, 2].map(|index| match document.page_content(index).unwrap() {
        docmill_documents::PageContent::Image(raster) => raster.width,
        other => panic!("{other:?}"),
    });
    assert_eq!(sides, [50, 40, 60]);
    let enough_for_two = u64::try_from(image(50).bytes.len() + image(40).bytes.len()).unwrap();
    let made = preprocessed::store_preprocessed(&mut second, pdf, 12, enough_for_two)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(made.pages, [1, 2], "the others are left out and not named");
}

#[tokio::test]
async fn a_single_repaired_picture_stays_a_picture_and_no_repair_leaves_no_file() {
    let place = Place::new().await;
    let (mut journal, _) = place.claim(1, "a").await;
    journal.store_page(&page(1, PageSource::Ocr), None).await.unwrap();
    let png = Some(DocumentFormat::Png);
    assert!(
        preprocessed::store_preprocessed(&mut journal, png, 1, 1 << 20).await.unwrap().is_none()
    );
    let (mut journal, _) = place.claim(1, "a").await;
    let repaired = image(30);
    journal.store_page(&page(1, PageSource::Ocr), Some(repaired.clone())).await.unwrap();
    let made =
        preprocessed::store_preprocessed(&mut journal, png, 1, 1 << 20).await.unwrap().unwrap();
    assert_eq!(made.file.path, keys::preprocessed_key(place.hold.id, "png"));
    assert!(is_stored(&place.store, &made.file.path, &repaired.bytes.into()).await.unwrap());
    place.keeper.note_lost();
    let late = preprocessed::store_preprocessed(&mut journal, png, 1, 1 << 20).await;
    assert!(late.is_err_and(|error| error.is_claim_lost()));
}
