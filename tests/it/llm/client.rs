//! The client's reaction to a server's answers and silences.

use docmill_client::throttle::Governor;
use docmill_core::config::ThrottleConfig;
use docmill_llm::governed::GovernedLlm;

use super::*;

#[tokio::test]
async fn every_answer_has_its_fault() {
    let denied = |code: &str| Answer::error(429, code);
    #[rustfmt::skip]
    let table = [
        // answer                            calls  fault
        (Answer::status(500),                    3, Fault::Transient),
        (Answer::status(503),                    3, Fault::Unavailable),
        (Answer::status(409),                    3, Fault::Transient),
        (Answer::throttled("0.01"),              1, Fault::Throttled(Some(Duration::from_millis(10)))),
        (Answer::throttled("9"),                 1, Fault::Throttled(Some(Duration::from_secs(9)))),
        (denied("insufficient_quota"),           1, Fault::Denied),
        (denied("credit_balance_exhausted"),     1, Fault::Denied),
        (Answer::status(401),                    1, Fault::Denied),
        (Answer::status(403),                    1, Fault::Denied),
        (Answer::error(404, "model_not_found"),  1, Fault::Denied),
        (Answer::status(400),                    1, Fault::Internal),
        (Answer::Reset,                          3, Fault::Transient),
        (Answer::CutBody,                        3, Fault::Transient),
        (Answer::Redirect { location: "http://127.0.0.1:1/v1/chat/completions".to_owned() }, 1, Fault::Denied),
    ];
    let mut runs = tokio::task::JoinSet::new();
    for (answer, calls, fault) in table {
        runs.spawn(async move {
            let server = Server::start(Script::always(answer.clone())).await.unwrap();
            let error = client(&server).complete(&prompt()).await.unwrap_err();
            assert_eq!((error.fault, server.calls().len()), (fault, calls), "{answer:?} {error}");
            assert!(error.to_string().contains("127.0.0.1"), "{error}");
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

#[tokio::test]
async fn one_429_with_or_without_a_time_is_waited_out_by_the_governor() {
    for answer in [Answer::throttled("0.05"), Answer::status(429)] {
        let server = Server::start(Script::of([answer])).await.unwrap();
        let governor = Arc::new(Governor::new(ThrottleConfig::default()));
        let governed = GovernedLlm::new(client(&server), governor, "account".to_owned());
        let reply = governed.complete(&prompt()).await.unwrap();
        assert_eq!((reply.stop, server.calls().len()), (FinishReason::Complete, 2));
    }
}

#[tokio::test]
async fn a_servers_no_retry_answer_is_obeyed() {
    let answer = Answer::Status {
        status: 500,
        retry_after: None,
        retry_after_ms: None,
        should_retry: Some(false),
        code: None,
        message: None,
    };
    let server = Server::start(Script::always(answer)).await.unwrap();
    let error = client(&server).complete(&prompt()).await.unwrap_err();
    assert_eq!((error.fault, server.calls().len()), (Fault::Transient, 1));
}

#[tokio::test]
async fn a_call_over_its_time_ends_and_is_not_paid_for_again() {
    let server = Server::start(Script::always(Answer::Hang)).await.unwrap();
    let config = LlmConfig { timeout: Duration::from_millis(300), ..config(&server) };
    let (client, prompt) = (OpenAiClient::new(&config).unwrap(), prompt());
    let ended = tokio::time::timeout(DEADLINE, client.complete(&prompt)).await;
    let error = ended.expect("the server never answers").unwrap_err();
    assert_eq!((error.fault, server.calls().len()), (Fault::Transient, 1));
}

#[tokio::test]
async fn a_model_that_wants_the_newer_name_of_the_cap_is_asked_again_with_it_once() {
    let script = Script { limit: LimitNames::Newer, ..Script::default() };
    let server = Server::start(script).await.unwrap();
    let client = client(&server);
    client.complete(&prompt()).await.unwrap();
    client.complete(&prompt()).await.unwrap();
    let statuses: Vec<u16> = server.calls().iter().map(|call| call.status).collect();
    assert_eq!(statuses, [400, 200, 200]);
}

#[tokio::test]
async fn the_check_at_start_names_the_address_and_the_next_step() {
    let script = |key: Option<&str>, models: Option<&str>| Script {
        api_key: key.map(str::to_owned),
        models: models.map(|name| vec![name.to_owned()]),
        ..Script::default()
    };
    for (script, ok) in [
        (script(None, None), true),
        (script(None, Some("model-1")), true),
        (script(None, Some("another")), true),
        (script(Some("right"), None), false),
    ] {
        let server = Server::start(script).await.unwrap();
        let result = client(&server).ping().await;
        assert_eq!(result.is_ok(), ok, "{result:?}");
        if let Err(error) = result {
            assert_eq!(error.fault, Fault::Denied);
            assert!(error.to_string().contains("llm.api_key"), "{error}");
        }
    }
    let gone = Server::start(Script::default()).await.unwrap();
    let client = client(&gone);
    let address = gone.address().to_string();
    drop(gone);
    // The listener closes shortly after its task is dropped.
    let error = loop {
        match client.ping().await {
            Err(error) => break error,
            Ok(()) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(error.fault, Fault::Unavailable);
    let text = error.to_string();
    assert!(text.contains(&address) && text.contains("llm.base_url"), "{text}");
}
