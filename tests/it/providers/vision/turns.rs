//! A model's answer about the turn of a page: believed where nothing was read here, tried twice at most.

use docmill_core::model::ReadingRefusal::Turned;

use super::*;

const LOST: LocalReader = LocalReader { confidence: 0.3, reads: true };

/// A model that reads when the page stands as `(width, height)` says, and otherwise asks for a turn.
fn reads_upright(size: (u32, u32), asks: &'static str) -> Script {
    Script::function(move |request| {
        let picture = request.picture().unwrap();
        match (picture.width, picture.height) == size {
            true => says(&rows(1)),
            false => says_turned(&["x y z".to_owned()], asks),
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_calls_a_page_turned_which_was_read_here_is_not_believed() {
    let script = Script::always(says_turned(&rows(1), "180"));
    let (read, kept, server) = read_by(script, SURE, 1).await;
    assert_eq!((kept.refusals(), server.calls().len()), (Vec::new(), 1));
    assert_eq!(read.pages[0].text(), rows(1).join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_nobody_here_can_read_is_turned_as_the_model_says_and_asked_for_again() {
    let turned = (pictures::HEIGHT, pictures::width(1));
    let (read, kept, server) = read_by(reads_upright(turned, "90"), LOST, 1).await;
    assert_eq!((kept.refusals(), server.calls().len()), (vec![Turned], 2));
    assert_eq!(read.provider, "vision");
    assert_eq!(kept.used.len(), 2, "both are paid for, and booked");
    let sizes: Vec<(u32, u32)> = server
        .exchanges()
        .into_iter()
        .filter_map(|it| Request { body: it.request, number: 0 }.picture())
        .map(|picture| (picture.width, picture.height))
        .collect();
    assert_eq!(sizes, [(pictures::width(1), pictures::HEIGHT), turned]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_never_content_with_how_a_page_stands_is_asked_three_times_at_most() {
    for (asks, calls) in [("90", 3), ("270", 3), ("180", 2)] {
        let script = Script::always(says_turned(&["x y z".to_owned()], asks));
        let (read, kept, server) = read_by(script, LOST, 1).await;
        assert_eq!((kept.refusals().len(), server.calls().len()), (calls, calls), "{asks}");
        assert!(kept.refusals().iter().all(|why| *why == Turned));
        assert!(read.pages[0].provider.is_none(), "{asks}: the next one reads it");
    }
}
