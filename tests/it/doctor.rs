//! `docmill doctor` as it is run: twelve wrong set-ups, each named by its cause.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_s3::types::{Event, NotificationConfiguration, QueueConfiguration};
use docmill_testkit::openai::{self, Script};
use docmill_testkit::sqs::{Action, Failure};
use serde_json::Value;

use crate::support::moto::Moto;
use crate::support::postgres::TestDatabase;
use crate::support::process::docmill;
use crate::support::world::{World, s3_client};

/// Check, verdict, and its texts.
type Findings = BTreeMap<String, (String, String)>;

fn doctor(world: &World, settings: &[(&str, &str)], stop_timeout: &str) -> (i32, Findings) {
    let mut command = docmill(world, &["doctor", "--json"], settings);
    let output = command.env("DOCMILL_STOP_TIMEOUT", stop_timeout).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let finding = |finding: &Value| {
        let text =
            |key: &str| finding.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("check"), (text("verdict"), format!("{} {}", text("found"), text("advice"))))
    };
    let findings = report.get("findings").unwrap().as_array().unwrap().iter().map(finding);
    (output.status.code().unwrap(), findings.collect())
}

fn wrong(findings: &Findings) -> Vec<&str> {
    let wrong = findings.iter().filter(|(_, (verdict, _))| verdict == "wrong");
    wrong.map(|(check, _)| check.as_str()).collect()
}

/// A bucket that sends all events to `queue`.
async fn chatty_bucket(endpoint: &str, queue: &str) {
    let s3 = s3_client(endpoint);
    s3.create_bucket().bucket("chatty").send().await.unwrap();
    let rule = QueueConfiguration::builder()
        .queue_arn(queue)
        .events(Event::from("s3:ObjectCreated:*"))
        .build()
        .unwrap();
    let rules = NotificationConfiguration::builder().queue_configurations(rule).build();
    let request = s3.put_bucket_notification_configuration().bucket("chatty");
    request.notification_configuration(rules).send().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_set_up_has_nothing_that_must_be_changed() {
    let world = World::new().await;
    let (code, findings) = doctor(&world, &[("WORKER__DRAIN", "110s")], "120");
    assert_eq!((code, wrong(&findings)), (0, vec![]), "{findings:#?}");
    for check in [
        "database.version",
        "database.schema",
        "database.roles",
        "database.rows",
        "clock.database",
        "clock.queue",
        "queue.redrive",
        "queue.permissions",
        "queue.visibility",
        "process.stop_timeout",
        "process.memory",
        "process.confinement",
        "provider.llm",
        "provider.ocr",
        "store",
    ] {
        assert!(findings.contains_key(check), "{check} was not looked at: {findings:#?}");
    }
}

/// Settings, the platform's stop timeout, the check that must fail, a word of its text.
type WrongSetUp<'a> = (Vec<(&'a str, &'a str)>, &'a str, &'a str, &'a str);

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::too_many_lines, reason = "one row for each set-up")]
async fn each_of_twelve_wrong_set_ups_is_named_by_its_cause() {
    let world = World::new().await;
    let moto = Moto::start().await;
    chatty_bucket(&moto.endpoint(), &world.sqs.queue_arn("documents")).await;
    let model =
        openai::Server::start(Script { api_key: Some("right".to_owned()), ..Script::default() });
    let model = model.await.unwrap();
    let empty = TestDatabase::empty().await;
    let login = format!("bare_{}", uuid::Uuid::new_v4().simple());
    world.execute(&format!("CREATE ROLE {login} LOGIN PASSWORD 'x'")).await;
    world.execute(&format!("GRANT USAGE ON SCHEMA docmill TO {login}")).await;
    let url = world.database.url();
    let (scheme, rest) = url.split_once("://").unwrap();
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let bare = format!("{scheme}://{login}:x@{host}");
    let older = empty.url();
    let nowhere = format!("{url}_is_not_there");
    let queue =
        |name: &str, attributes: &[(&str, &str)]| world.sqs.create_queue(name, attributes).unwrap();
    let endless = queue("endless", &[]);
    let low = world.sqs.create_queue_with_dead("low", 5).unwrap();
    let missing = world.sqs.queue_url("missing");
    let (s3, base) = (moto.endpoint(), model.base_url());
    let in_s3 = |bucket: &'static str| {
        vec![
            ("STORE__BACKEND", "s3"),
            ("STORE__BUCKET", bucket),
            ("STORE__ENDPOINT", s3.as_str()),
            ("STORE__PATH_STYLE", "true"),
        ]
    };
    let asking = vec![
        ("LLM__PROVIDER", "openai"),
        ("LLM__BASE_URL", base.as_str()),
        ("LLM__MODEL", "m"),
        ("LLM__API_KEY", "stale"),
    ];

    #[rustfmt::skip]
    let table: Vec<WrongSetUp<'_>> = vec![
        (vec![("QUEUE__URL", &missing)],             "120", "queue",                "queue.url"),
        (vec![("QUEUE__URL", &endless)],             "120", "queue.redrive",        "redrive policy"),
        (vec![("QUEUE__URL", &low)],                 "120", "queue.redrive",        "maxReceiveCount is 5"),
        (vec![("QUEUE__VISIBILITY", "10m")],         "120", "queue.visibility",     "claim.lease"),
        (vec![("WORKER__DRAIN", "110s")],            "30",  "process.stop_timeout", "worker.drain"),
        (vec![("DATABASE__URL", &nowhere)],          "120", "database",             "database.url"),
        (vec![("DATABASE__URL", &older)],            "120", "database.schema",      "docmill migrate"),
        (vec![("DATABASE__URL", &bare)],             "120", "database.roles",       "GRANT docmill_worker"),
        (in_s3("nobodys"),                           "120", "store",                "store.bucket"),
        (in_s3("chatty"),                            "120", "store.notification",   "prefix filter"),
        (asking,                                     "120", "provider.llm",         "llm.api_key"),
    ];
    for (settings, stop_timeout, check, word) in &table {
        let (code, findings) = doctor(&world, settings, stop_timeout);
        assert_eq!(code, 1, "{settings:?}");
        assert_eq!(wrong(&findings), [*check], "{settings:?}: {findings:#?}");
        let (_, said) = findings.get(*check).unwrap();
        assert!(said.contains(word), "{settings:?}: {said}");
    }
    // Two faults of the environment, not of the settings.
    world.sqs.faults().fail(Action::SendMessage, 1, Failure::AccessDenied);
    let (code, findings) = doctor(&world, &[], "120");
    assert_eq!((code, wrong(&findings)), (1, vec!["queue.permissions"]), "{findings:#?}");
    assert!(findings.get("queue.permissions").unwrap().1.contains("sqs:SendMessage"));
    world.database.advance(Duration::from_secs(600)).await;
    let (code, findings) = doctor(&world, &[], "120");
    assert_eq!((code, wrong(&findings)), (1, vec!["clock.database"]), "{findings:#?}");

    world.execute(&format!("DROP OWNED BY {login}")).await;
    world.execute(&format!("DROP ROLE {login}")).await;
}

/// The doctor's exit code and its probes, with a model of this vendor.
async fn probe(world: &World, script: Script, arguments: &[&str]) -> (i32, Vec<Value>, usize) {
    let model = openai::Server::start(script).await.unwrap();
    let base = model.base_url();
    let settings = [
        ("LLM__PROVIDER", "anthropic"),
        ("LLM__BASE_URL", base.as_str()),
        ("LLM__MODEL", "m"),
        ("LLM__API_KEY", "k"),
        ("WORKER__DRAIN", "110s"),
    ];
    let mut command = docmill(world, arguments, &settings);
    let output = command.env("DOCMILL_STOP_TIMEOUT", "120").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    let findings = report["findings"].as_array().unwrap().iter();
    let probes = findings.filter(|finding| finding["check"] == "probe").cloned().collect();
    (output.status.code().unwrap(), probes, model.calls().len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_is_made_on_request_alone_and_names_each_schema_that_is_refused() {
    let world = World::new().await;
    let anthropic = |script: Script| script.from(openai::Vendor::Anthropic);
    let asked = ["doctor", "--json", "--probe"];
    let (code, probes, calls) =
        probe(&world, anthropic(Script::default()), &["doctor", "--json"]).await;
    assert_eq!(
        (code, probes.len(), calls),
        (0, 0, 0),
        "nothing is paid for unless it is asked for"
    );

    let (code, probes, calls) = probe(&world, anthropic(Script::default()), &asked).await;
    assert_eq!((code, probes.len(), calls), (0, 5, 5), "one call per schema: {probes:#?}");
    let found = |probe: &Value| probe["found"].as_str().unwrap_or_default().to_owned();
    assert!(found(&probes[0]).contains("the schema is accepted"), "{probes:#?}");
    assert!(found(&probes[0]).contains("no price is configured"), "{probes:#?}");

    let refusing = Script::function(|request: &openai::Request| {
        if request.body.pointer("/output_config/format").is_none() {
            return openai::Answer::Read;
        }
        openai::Answer::Status {
            status: 400,
            retry_after: None,
            retry_after_ms: None,
            should_retry: None,
            code: None,
            message: Some("The compiled grammar is too large.".to_owned()),
        }
    });
    let (code, probes, _) = probe(&world, anthropic(refusing), &asked).await;
    assert_eq!((code, probes.len()), (1, 5), "{probes:#?}");
    for probe in &probes {
        assert!(found(probe).contains("the schema is refused"), "{probes:#?}");
    }
}
