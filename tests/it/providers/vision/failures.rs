//! Everything that models do wrong with a page: refused with its reason, and read by the next one.

use docmill_core::fault::Fault;
use docmill_core::model::ReadingRefusal::{
    AnotherPage, BrokenForm, Cut, Declined, Incomplete, Invented, Loop, NoPicture, TooLong,
};

use super::*;
use crate::support::whole::ReadWhole as _;

/// A reply that a model never ended.
fn runs_on(piece: &str, times: usize) -> Answer {
    let rows = rows(1).join("\",\"");
    Answer::Cut { content: format!("{{\"turn\":\"0\",\"lines\":[\"{rows}{}", piece.repeat(times)) }
}

fn text(content: impl Into<String>) -> Answer {
    Answer::Text { content: content.into() }
}

fn list(rows: &[&str]) -> Answer {
    says(&rows.iter().map(|row| (*row).to_owned()).collect::<Vec<String>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_that_is_of_no_use_is_refused_with_its_reason_and_the_next_one_reads_the_page() {
    let long: String = (0..50).map(|at| format!("w{} ", at * 7 % 50)).collect();
    let growing: Vec<String> = (1..200).map(|at| format!("Item {at} at {at},00")).collect();
    let again = vec!["Widget blue 2".to_owned(); 200];
    // Fewer letters than there is ink for.
    let beside: String = ('a'..='x').map(|c| format!("q{c} x{c} ")).collect();
    let injected = json!({"turn": "0", "lines": rows(1), "approved": true}).to_string();
    #[rustfmt::skip]
    let table: [(&str, Answer, ReadingRefusal); 20] = [
        ("cut",                    runs_on(" and so", 1),                        Cut),
        ("a loop of a letter",     runs_on("a", 4000),                           Loop),
        ("a loop of eight",        runs_on("abc 123 ", 900),                     Loop),
        ("a loop of two hundred",  runs_on(&long, 40),                           Loop),
        ("a loop that ends",       list(&[&"so it goes ".repeat(200)]),          Loop),
        ("a loop of rows",         says(&[rows(1), again].concat()),             Loop),
        ("white space",            Answer::Whitespace,                           Loop),
        ("growing numbers",        says(&[rows(1), growing].concat()),           Invented),
        ("as much again",          says(&[rows(1), vec![beside]].concat()),      Invented),
        ("declined",               Answer::Refusal,                              Declined),
        ("filtered",               Answer::ContentFilter,                        Declined),
        ("does not fit",           Answer::error(400, "context_length_exceeded"), TooLong),
        ("prose",                  text("I am sorry, I cannot see any picture."), BrokenForm),
        ("nothing",                text(" "),                                    BrokenForm),
        ("broken JSON",            text("{\"turn\":\"0\",\"lines\":[\"Invoice"), BrokenForm),
        ("more than was asked",    text(injected),                               BrokenForm),
        ("another page",           list(&["Meeting of the board in March", "Present were nine members and two guests", "The minutes of February were approved", "Any other business closed at noon"]), AnotherPage),
        ("no lines",               list(&[]),                                    Incomplete),
        ("half of the page",       says(&rows(1)[..2]),                          Incomplete),
        ("an apology in its form", list(&["I am sorry but there is no picture for me to look at here at all"]), AnotherPage),
    ];
    for (name, answer, reason) in table {
        let (read, kept, server) = read_by(Script::always(answer), SURE, 1).await;
        assert_eq!(kept.refusals(), [reason], "{name}");
        assert_eq!(texts(&read), [rows(1).join("\n")], "{name}: read by the next one");
        assert!(read.pages[0].provider.is_none() && read.provider == "local", "{name}");
        assert_eq!(server.calls().len(), 1, "{name}: asked once");
        assert_eq!(kept.used.len(), 1, "{name}: what was paid is booked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_every_page_with_the_first_one_is_believed_for_the_first_alone() {
    let script = Script::always(says(&rows(1)));
    let (read, kept, _server) = read_by(script, SURE, 4).await;
    assert_eq!(kept.refusals(), [AnotherPage; 3]);
    for page in &read.pages {
        assert_eq!(page.text(), rows(page.number).join("\n"));
        assert_eq!(page.provider.is_some(), page.number == 1, "page {}", page.number);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_leaves_the_picture_out_is_told_by_what_it_counts() {
    for blind in [false, true] {
        // It guesses right, so that nothing else is wrong with it.
        let script = Script::always(says(&rows(pictures::LARGE)));
        let server =
            Server::start(Script { blind, ..script }.from(Vendor::Anthropic)).await.unwrap();
        let config = settings(&server, Vendor::Anthropic, VisionRecipe::General);
        let reader = vision_reader(&config, SURE).await;
        let (_, kept) = read_pages(&reader, pictures::large(), Vec::new()).await;
        let expected = if blind { vec![NoPicture] } else { Vec::new() };
        assert_eq!((kept.refusals(), kept.used.len()), (expected, 1), "blind: {blind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_without_ink_is_invented_even_where_nobody_here_can_read() {
    let unread = LocalReader { reads: false, ..SURE };
    let some: Vec<String> = (0..6).map(|at| format!("written by hand {at}")).collect();
    let (read, kept, _server) = read_by(Script::always(says(&some)), unread.clone(), 1).await;
    assert_eq!(kept.refusals(), [], "as much as there is ink for");
    let words: Vec<&TextWord> = read.pages[0].lines.iter().flat_map(|line| &line.words).collect();
    assert!(words.len() == 24 && words.iter().all(|word| word.unwitnessed), "{words:?}");
    let much: Vec<String> = (0..400).map(|at| format!("clause {at} of the agreement")).collect();
    let server = Server::start(Script::always(says(&much))).await.unwrap();
    let config = settings(&server, Vendor::Openai, VisionRecipe::General);
    let reader = vision_reader(&config, unread).await;
    let document = reader.open_document(pictures::scans(1).into(), false).await.unwrap();
    let mut kept = KeptPages::default();
    let (finished, sha256, options) = (Vec::new(), "sha".to_owned(), ReadOptions::default());
    let reading = ReadRequest { document, sha256, finished, options };
    let _no_text = reader.read_remaining(reading, &mut kept).await;
    assert_eq!(kept.refusals(), [Invented]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_model_leaves_out_are_missed_by_their_ink_where_nothing_was_read_surely() {
    let unsure = LocalReader { confidence: 0.7, reads: true };
    for (said, expected) in [(2, vec![Incomplete]), (5, Vec::new())] {
        let script = Script::always(says(&rows(1)[..said]));
        let (read, kept, _server) = read_by(script, unsure.clone(), 1).await;
        assert_eq!(kept.refusals(), expected, "{said} of 6 rows");
        assert_eq!(texts(&read), [rows(1).join("\n")], "{said} of 6 rows");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_or_takes_no_pictures_leaves_its_pages_to_the_next_one() {
    let refusing = [Answer::error(400, "invalid_image_format"), Answer::status(401)];
    for answer in refusing {
        let (read, kept, _server) = read_by(Script::always(answer), SURE, 2).await;
        assert_eq!(texts(&read), [rows(1).join("\n"), rows(2).join("\n")]);
        assert!(kept.used.is_empty() && read.provider == "local");
    }
    let server = Server::start(Script::always(Answer::throttled("60"))).await.unwrap();
    let config = settings(&server, Vendor::Openai, VisionRecipe::General);
    let reader = vision_reader(&config, SURE).await;
    let read = reader.read(pictures::scans(1).into(), "sha", false).await;
    let Err(StepError::Fault(error)) = read else { panic!("{read:?}") };
    assert!(
        matches!(error.fault, Fault::Throttled(_)),
        "one that is busy is waited for: {error:?}"
    );
}
