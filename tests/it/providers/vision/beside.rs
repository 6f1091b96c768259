//! The result of a usable reading: the local reader's places, the model's words beside them.

use super::*;

fn words(page: &PageText) -> impl Iterator<Item = &TextWord> {
    page.lines.iter().flat_map(|line| &line.words)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_both_read_alike_has_the_places_of_the_local_reader_and_is_surer_than_it() {
    let script = Script::function(|request| says(&rows(page_of(&request.picture().unwrap()))));
    let (read, kept, server) = read_by(script, SURE, 3).await;
    for page in &read.pages {
        assert_eq!(page.text(), rows(page.number).join("\n"));
        assert_eq!(page.provider.as_ref().unwrap().name, "vision");
        assert!(words(page).all(|word| word.confidence >= 0.93 && !word.unwitnessed));
        assert!(words(page).all(|word| word.bounding_box.w > 5.0), "places of the local reader");
    }
    assert_eq!(read.provider, "vision");
    assert_eq!(server.completed_twice(), Vec::<String>::new());
    let used: Vec<(&str, u32)> = kept.used.iter().map(|it| (it.model.as_str(), it.pages)).collect();
    assert_eq!(used, [("seer-1", 1); 3], "every page is one call, and booked");
    assert!(kept.used.iter().all(|it| it.tokens.prompt_tokens() > 100 && it.tokens.output > 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_is_one_picture_of_the_page_in_each_vendors_form_and_never_a_document() {
    for vendor in [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock, Vendor::Gemini] {
        let script = Script::function(|request| says(&rows(page_of(&request.picture().unwrap()))));
        let script = Script { record: true, api_key: Some("key".to_owned()), ..script };
        let server = Server::start(script.from(vendor)).await.unwrap();
        let config = settings(&server, vendor, VisionRecipe::General);
        let reader = vision_reader(&config, SURE).await;
        let (read, kept) = read_pages(&reader, pictures::scans(1), Vec::new()).await;
        assert_eq!(read.provider, "vision", "{vendor:?}: {:?}", kept.refusals());
        let sent = server.exchanges().remove(0);
        assert_eq!(sent.status, 200, "{vendor:?}: {}", sent.answer);
        let body = sent.request.to_string();
        assert!(!body.contains("%PDF") && !body.contains("JVBER"), "{vendor:?}: a PDF was sent");
        let request = Request { body: sent.request, number: 0 };
        let picture = request.picture().unwrap();
        assert_eq!((picture.width, picture.height), (pictures::width(1), pictures::HEIGHT));
        let shown = image::load_from_memory(&picture.bytes).unwrap().into_luma8();
        let drawn = image::load_from_memory(&pictures::picture(1, 230).bytes).unwrap().into_luma8();
        let far = shown.pixels().zip(drawn.pixels()).filter(|(a, b)| a.0[0].abs_diff(b.0[0]) > 40);
        assert!(far.count() < 500, "{vendor:?}: another picture than the page's");
        assert!(!request.message("system").contains("PG-2041"), "no document in the instructions");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn olmocr_is_asked_in_its_own_words_without_a_system_message_and_answers_in_its_own_form() {
    let script = Script::function(|request| {
        let head = "---\nprimary_language: no\nis_rotation_valid: True\nrotation_correction: \
                    0\nis_table: False\nis_diagram: False\n---\n";
        let page = rows(page_of(&request.picture().unwrap()));
        // It was trained to leave out feet of pages.
        Answer::Text { content: format!("{head}# {}", page.get(..5).unwrap().join("\n\n")) }
    });
    let server = Server::start(Script { record: true, ..script }).await.unwrap();
    let config = settings(&server, Vendor::Openai, VisionRecipe::Olmocr);
    let reader = vision_reader(&config, SURE).await;
    let (read, kept) = read_pages(&reader, pictures::scans(1), Vec::new()).await;
    assert_eq!((read.provider.as_str(), kept.refusals()), ("vision", Vec::new()));
    assert_eq!(
        read.pages[0].text(),
        rows(1).join("\n"),
        "what it leaves out is the local reader's"
    );
    let sent = server.exchanges().remove(0).request;
    assert_eq!(sent["messages"].as_array().unwrap().len(), 1);
    assert!(sent.get("response_format").is_none());
    let asked = sent.pointer("/messages/0/content/0/text").unwrap().as_str().unwrap();
    assert!(asked.starts_with("Attached is one page") && asked.ends_with("parameters."), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_digit_passes_unmarked_that_the_local_reader_did_not_see_whatever_the_model_says() {
    let honest = rows(1);
    let seen = honest.join(" ");
    let change = |from: &str, to: &str| -> Vec<String> {
        honest.iter().map(|row| row.replace(from, to)).collect()
    };
    let more = |row: &str| [honest.clone(), vec![row.to_owned()]].concat();
    #[rustfmt::skip]
    let table: [(&str, Vec<String>, &str); 8] = [
        ("a digit swapped",        change("42,00", "47,00"),                      "42,00"),
        ("a separator swapped",    change("60,00", "60.00"),                      "60,00"),
        ("an amount beside it",    change("-72,00 EUR", "-72,00 EUR 99,00"),      "99,00"),
        ("another account",        change("DE89370400440532013000", "DE02120300000000202051"), "DE02120300000000202051"),
        ("a row invented",         more("Late fee 15,00"),                        "15,00"),
        ("an order obeyed",        more("Pay 9.999,00 to IBAN AA11"),             "9.999,00"),
        ("a number said twice",    change("12,00 EUR", "12,00 12,00 EUR"),        "12,00"),
        ("a date moved",           change("03.04.2026", "08.04.2026"),            "03.04.2026"),
    ];
    for (name, said, marked) in table {
        let script = Script::always(says(&said));
        let (read, kept, _server) = read_by(script, SURE, 1).await;
        assert_eq!(kept.refusals(), [], "{name}");
        let page = &read.pages[0];
        let is_numbered = |word: &&TextWord| word.text.contains(|c: char| c.is_ascii_digit());
        for word in words(page).filter(is_numbered).filter(|word| !word.unwitnessed) {
            assert!(seen.split(' ').any(|own| own == word.text), "{name}: {}", word.text);
        }
        let found = words(page).any(|word| word.text == marked && word.unwitnessed);
        assert!(found, "{name}: {marked} is not marked in {:?}", page.lines);
        let doubted: Vec<_> = words(page).filter(|word| word.unwitnessed).collect();
        assert!(doubted.iter().all(|word| word.confidence < 0.4), "{name}");
        assert!(doubted.len() <= 6, "{name}: what both have is not doubted");
        for own in seen.split(' ') {
            assert!(words(page).any(|word| word.text == own), "{name}: {own} is lost");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_model_drops_stays_as_the_local_reader_read_it() {
    let dropped = ["-72,00", "Total amount due on receipt ", "thank you"];
    for dropped in dropped {
        let said: Vec<String> = rows(1).iter().map(|row| row.replace(dropped, "")).collect();
        let (read, kept, _server) = read_by(Script::always(says(&said)), SURE, 1).await;
        assert_eq!((kept.refusals(), read.provider.as_str()), (Vec::new(), "vision"));
        assert_eq!(read.pages[0].text(), rows(1).join("\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_on_which_nothing_looks_like_text_is_shown_to_nobody() {
    let invented = vec!["Invoice 1".to_owned(), "Total 5,00".to_owned()];
    let server = Server::start(Script::always(says(&invented))).await.unwrap();
    let config = settings(&server, Vendor::Openai, VisionRecipe::General);
    let reader = vision_reader(&config, LocalReader { reads: false, ..SURE }).await;
    let mut file = docmill_documents::ImagePdf::default();
    file.add_page(1, &pictures::blank(1)).unwrap();
    let document = reader.open_document(file.finish().into(), false).await.unwrap();
    let (finished, sha256, options) = (Vec::new(), "sha".to_owned(), ReadOptions::default());
    let reading = ReadRequest { document, sha256, finished, options };
    let read = reader.read_remaining(reading, &mut KeptPages::default()).await;
    let Err(StepError::Rejected { reason, .. }) = read else { panic!("{read:?}") };
    assert_eq!(reason, docmill_core::model::OutcomeReason::NoText);
    assert_eq!(server.calls().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_was_paid_for_is_never_paid_for_again_whatever_came_of_it() {
    let script = Script::function(|request| match page_of(&request.picture().unwrap()) {
        2 => Answer::Cut { content: "{\"turn\":\"0\",\"lines\":[\"Inv".to_owned() },
        page => says(&rows(page)),
    });
    let server = Server::start(script).await.unwrap();
    let config = settings(&server, Vendor::Openai, VisionRecipe::General);
    let reader = vision_reader(&config, SURE).await;
    let (first, kept) = read_pages(&reader, pictures::scans(3), Vec::new()).await;
    assert_eq!((server.calls().len(), kept.refusals()), (3, vec![ReadingRefusal::Cut]));
    // A worker that was killed before the next one had read it left only this behind.
    let paid = |page: &PageText| page.provider.is_some();
    let finished: Vec<PageText> = kept.pages.into_iter().filter(paid).collect();
    let (again, kept) = read_pages(&reader, pictures::scans(3), finished).await;
    assert_eq!(server.calls().len(), 3, "nothing was paid twice");
    assert_eq!((kept.used.len(), texts(&again)), (0, texts(&first)));
    assert!(again.pages[1].provider.is_none(), "the next one read it");
}
