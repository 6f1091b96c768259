//! Peculiarities of Azure AI Document Intelligence: analyses that are asked for until they have ended,
//! and results that stay until they are removed.

use docmill_core::fault::Fault;
use docmill_documents::ocr::document_intelligence::{AzureCredential, DocumentIntelligence};
use docmill_testkit::document_intelligence::{KEY, Server, lines_of};

use super::*;
use docmill_core::config::DocumentIntelligenceConfig;

/// The real client of a stand-in.
pub(crate) fn document_intelligence(server: &Server) -> DocumentIntelligence {
    document_intelligence_at(server.endpoint())
}

/// The real client of whoever is there.
pub(crate) fn document_intelligence_at(endpoint: String) -> DocumentIntelligence {
    let config = DocumentIntelligenceConfig {
        endpoint,
        poll: Duration::from_millis(20),
        timeout: Duration::from_secs(20),
        ..DocumentIntelligenceConfig::default()
    };
    let key = SecretSource::new(&KEY.to_owned().into(), Path::new(""));
    let governed = lane(&impatient(), DocumentIntelligence::ANALYZE);
    DocumentIntelligence::new(&config, AzureCredential::Key(key), governed).unwrap()
}

/// The first line that is read of a page.
pub(crate) fn text(page: u32) -> String {
    let header = &pictures::sent(page).image.header;
    let [first, _] = lines_of(google::Seen { width: header.width, height: header.height });
    first
}

#[tokio::test]
async fn a_result_is_removed_from_the_service_once_it_has_been_read_and_after_a_failure() {
    let server = Server::start().await.unwrap();
    let client = document_intelligence(&server);
    client.read_pictures(&[pictures::sent(1), pictures::sent(2)]).await.unwrap();
    assert_eq!((server.read().len(), server.kept_results()), (2, 0));
    server.fail_analyses(["InvalidRequest"]);
    let failed = client.read_pictures(&[pictures::sent(1)]).await.unwrap_err();
    assert_eq!(failed.fault, Fault::Rejected);
    assert!(!failed.to_string().contains("scripted"), "{failed}");
    assert_eq!(server.kept_results(), 0);
}

#[tokio::test]
async fn a_question_that_is_throttled_is_asked_again_and_the_analysis_is_not() {
    let server = Server::start().await.unwrap();
    server.be_busy([429, 503]);
    document_intelligence(&server).read_pictures(&[pictures::sent(1)]).await.unwrap();
    assert_eq!((server.analyses(), server.read().len()), (1, 1));
}
