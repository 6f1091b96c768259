//! Asking a provider whether it is there costs no page, and names what is wrong.

use docmill_core::fault::Fault;
use docmill_testkit::document_ai::Trouble;
use docmill_testkit::textract::{DETECT, GET};

use super::*;

#[tokio::test]
async fn document_ai_is_asked_without_a_document_and_says_what_a_person_has_to_mend() {
    #[rustfmt::skip]
    let table = [
        (Some(Trouble::refused(403, "PERMISSION_DENIED")), Some(Fault::Denied),      "role"),
        (Some(Trouble::refused(404, "NOT_FOUND")),         Some(Fault::Denied),      "ocr.document_ai.project"),
        (Some(Trouble::refused(503, "UNAVAILABLE")),       Some(Fault::Unavailable), "503"),
    ];
    for (trouble, fault, words) in table {
        let script = google::Script::default().troubled(trouble);
        let server = google::Server::start(script).await.unwrap();
        let answer = document_ai(&server, |_| ()).ping().await;
        assert_eq!(answer.as_ref().err().map(|error| error.fault), fault);
        if let Err(error) = answer {
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!((server.calls().len(), server.read().len()), (1, 0));
    }
}

#[tokio::test]
async fn textract_is_asked_for_what_is_no_picture_and_for_a_job_that_there_is_not() {
    let denied = ("AccessDeniedException", 400);
    for (operation, fault) in [(None, None), (Some(GET), Some(Fault::Denied))] {
        let mut script = amazon::Script::default();
        if let Some(operation) = operation {
            script = script.troubled(operation, [denied]);
        }
        let server = amazon::Server::start(script).await.unwrap();
        let answer = textract(&server).ping().await;
        assert_eq!(answer.err().map(|error| error.fault), fault, "{operation:?}");
        assert_eq!((server.answered(DETECT), server.answered(GET), server.jobs()), (0, 0, 0));
    }
}
