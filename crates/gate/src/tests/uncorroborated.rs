//! Values that stand on words which one model alone saw.

use super::*;

/// The page with these words marked, everywhere.
fn marked(page: &str, words: &[&str]) -> Transcript {
    let mut transcript = transcript(page);
    for line in transcript.pages.iter_mut().flat_map(|page| &mut page.lines) {
        for word in &mut line.words {
            word.unwitnessed = words.contains(&word.text.as_str());
        }
    }
    transcript
}

fn found(extraction: &Extraction, transcript: &Transcript) -> Vec<(String, RuleConsequence)> {
    let verdict = judged(extraction, transcript, &lookups());
    let own = verdict.findings.into_iter().filter(|it| it.rule == "seen_by_one_model");
    own.map(|it| (it.field.unwrap_or_default(), it.consequence)).collect()
}

#[test]
fn no_value_with_a_digit_passes_that_one_model_alone_saw_and_a_name_is_flagged() {
    use RuleConsequence::{Flag, Review};
    #[rustfmt::skip]
    let table = [
        ("441,87",      "total",                Review),
        ("48,87",       "vat_amount",           Review),
        ("RE-17",       "invoice_number",       Review),
        ("05.03.2021",  "invoice_date",         Review),
        ("DE123456789", "supplier_vat_id",      Review),
        ("178,00",      "line_items[0].amount", Review),
        ("Korkstein",   "supplier_name",        Flag),
        ("GmbH",        "supplier_name",        Flag),
    ];
    for (word, field, consequence) in table {
        let all = found(&sound(), &marked(PAGE, &[word]));
        assert_eq!(all, [(field.to_owned(), consequence)], "{word}");
        let verdict = judged(&sound(), &marked(PAGE, &[word]), &lookups());
        assert_eq!(verdict.is_refused(), consequence == Review, "{word}");
        assert!(verdict.needs_review() && !verdict.needs_escalation(), "{word}");
        let reason = format!("seen_by_one_model:{field}");
        assert!(verdict.review_reasons().contains(&reason), "{:?}", verdict.review_reasons());
    }
}

#[test]
fn an_amount_of_two_words_is_refused_for_either_of_them() {
    let mut extraction = sound();
    extraction.data.insert("total".to_owned(), 1441.87.into());
    let page = PAGE.replace("Total 441,87", "Total 1 441,87");
    assert_eq!(found(&extraction, &marked(&page, &[])), []);
    for word in ["1", "441,87"] {
        let all = found(&extraction, &marked(&page, &[word]));
        assert_eq!(all, [("total".to_owned(), RuleConsequence::Review)], "{word}");
    }
}

#[test]
fn of_more_findings_than_are_kept_the_refusals_stand_first() {
    let mut extraction = sound();
    for number in 0..MAX_FINDINGS {
        extraction.data.insert(format!("a{number}"), "Mustard".into());
    }
    let all = found(&extraction, &marked(PAGE, &["Mustard", "441,87"]));
    assert_eq!(all.len(), MAX_FINDINGS);
    assert_eq!(all[0], ("total".to_owned(), RuleConsequence::Review));
}

#[test]
fn a_value_that_two_readers_saw_in_one_place_stands_on_that_place() {
    let twice = format!("Sum 441,87\nRE-17 again\n{PAGE}");
    let mut page = transcript(&twice);
    for words in page.pages[0].lines.iter_mut().take(2).map(|line| &mut line.words) {
        words.iter_mut().for_each(|word| word.unwitnessed = true);
    }
    assert_eq!(found(&sound(), &page), []);
    let verdict = judged(&sound(), &page, &lookups());
    for field in ["total", "invoice_number"] {
        let place = verdict.grounded.iter().find(|it| it.field == field).unwrap().place;
        assert!(!place.unwitnessed && place.bounding_box.y > 20.0, "{field}: {place:?}");
    }
}

#[test]
fn a_name_whose_words_stand_apart_is_seen_by_two_only_if_each_word_is() {
    let apart = PAGE.replace("Korkstein GmbH", "Korkstein North\nKorkstein South GmbH");
    assert_eq!(found(&sound(), &marked(&apart, &[])), []);
    let mut page = marked(&apart, &["Korkstein"]);
    assert_eq!(found(&sound(), &page), [("supplier_name".to_owned(), RuleConsequence::Flag)]);
    page.pages[0].lines[1].words[0].unwitnessed = false;
    assert_eq!(found(&sound(), &page), [], "once is enough");
}

#[test]
fn attached_xml_needs_no_word_of_the_pages_and_every_other_reader_and_kind_does() {
    let page = marked(PAGE, &["441,87"]);
    for reader in [ExtractionMethod::Llm, ExtractionMethod::Rules] {
        assert_eq!(found(&Extraction { reader, ..sound() }, &page).len(), 1, "{reader:?}");
    }
    assert_eq!(found(&Extraction { reader: ExtractionMethod::Einvoice, ..sound() }, &page), []);
    for kind in KINDS.iter() {
        let verdict = judge_extraction(&sound(), &page, kind, &lookups());
        let own = verdict.findings.iter().filter(|it| it.rule == "seen_by_one_model");
        assert_eq!(own.count(), 1, "no kind is without it");
    }
}

#[test]
fn a_word_that_the_drawn_page_does_not_confirm_silences_no_comparison_with_the_einvoice() {
    let attached =
        GateLookups { einvoice: EinvoiceState::Attached { show_more: false }, ..lookups() };
    let reasons = |page: &Transcript| {
        let read = Extraction { reader: ExtractionMethod::Einvoice, ..sound() };
        judged(&read, page, &attached).review_reasons()
    };
    assert_eq!(reasons(&marked(PAGE, &[])), Vec::<String>::new());
    assert_eq!(reasons(&marked(PAGE, &["441,87"])), ["einvoice_contradicts_page:total"]);
}
