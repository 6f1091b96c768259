//! Deployment files: existing settings, alarms about existing metrics, and a template with whose
//! queues and bucket a worker runs.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    Event, FilterRule, FilterRuleName, NotificationConfiguration, NotificationConfigurationFilter,
    QueueConfiguration, S3KeyFilter,
};
use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use docmill_core::metrics;
use docmill_operations::janitor::MaintenanceChore;
use docmill_queue::sqs::SqsQueue;
use docmill_storage::s3::S3Store;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::support::documents;
use crate::support::moto::Moto;
use crate::support::world::{SOON, World, s3_client, until};

const RULES: &str = "deploy/kubernetes/components/monitoring/prometheus-rule.yaml";
const RULES_TEST: &str = "deploy/kubernetes/components/monitoring/alerts-test.yaml";
const BOARD: &str = "deploy/kubernetes/components/monitoring/docmill-board.json";
const STORAGE: &str = "deploy/ecs/storage.yaml";
const SERVICE: &str = "deploy/ecs/service.yaml";
const WEB: &str = "deploy/ecs/web.yaml";
const SETTINGS_FILE: &str = "[cost]\ndaily_budget = \"5\"\n[[cost.price]]\nprovider = \"document_ai\"\nfrom = \"2026-11-01\"\npages = 1.5\n";
const POLICY: &str = "deploy/kubernetes/worker-policy.yaml";

type Settings = BTreeMap<String, String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// `NAME=value` lines, as Kustomize reads them.
fn env_file(path: &str) -> Settings {
    let pair = |line: &str| {
        let (name, value) = line.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    read(path).lines().filter(|line| !line.starts_with('#')).map(pair).collect()
}

/// The environment of an overlay's worker; its secrets are in one file or external.
fn overlay(name: &str) -> Settings {
    let mut settings = env_file("deploy/kubernetes/base/settings.env");
    settings.extend(env_file(&format!("deploy/kubernetes/overlays/{name}/settings.env")));
    settings
}

/// The `Name`/`Value` pairs of a task definition, with invented values for the stack's parameters.
fn task_environment(template: &str) -> Settings {
    let template = read(template);
    let lines: Vec<&str> = template.lines().map(str::trim).collect();
    let invented = BTreeMap::from([
        ("Slots", "64"),
        ("QueueUrl", "https://sqs.eu-central-1.amazonaws.com/111122223333/documents"),
        ("DeadLetterQueueUrl", "https://sqs.eu-central-1.amazonaws.com/111122223333/dead"),
        ("BucketName", "documents"),
        ("EventPlaces", "documents/documents/"),
        ("PageReaders", "document_ai,textract,tesseract"),
        ("ExpensePages", "2"),
        ("DocumentAiProject", "my-project"),
        ("DocumentAiLocation", "eu"),
        ("DocumentAiProcessor", "1a2b3c"),
        ("DocumentAiKeySecretArn", "{}"),
        ("SettingsArn", SETTINGS_FILE),
        ("Origin", "https://docmill.example.com"),
        ("Confinement", "required"),
        ("ModelProvider", "openai"),
        ("ModelBaseUrl", "https://api.openai.com/v1"),
        ("ModelName", "m"),
        ("DatabaseUrlSecretArn", "postgres://worker@db/app"),
        ("MigratorUrlSecretArn", "postgres://migrator@db/app"),
        ("ModelKeySecretArn", "key"),
    ]);
    let mut found = Settings::new();
    for pair in lines.windows(2) {
        let [name, value] = pair else { continue };
        let Some(name) = name.strip_prefix("- Name: DOCMILL") else { continue };
        let value = value.strip_prefix("ValueFrom: ").or_else(|| value.strip_prefix("Value: "));
        let value = value.unwrap().trim_matches('"');
        let value = match value.strip_prefix("!Ref ") {
            Some(parameter) => invented.get(parameter).unwrap(),
            None => value,
        };
        found.insert(format!("DOCMILL{name}"), value.to_owned());
    }
    found
}

/// The mapping of the worker's variables in `compose.yaml`.
fn compose() -> Settings {
    let pair = |line: &str| {
        let (name, value) = line.trim().split_once(": ")?;
        let is_ours = name.starts_with("DOCMILL") || name.starts_with("AWS_");
        is_ours.then(|| (name.to_owned(), value.trim_matches('"').to_owned()))
    };
    read("compose.yaml").lines().filter_map(pair).collect()
}

/// The output of `docmill config check` for these settings.
fn check(settings: &Settings) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    command.args(["config", "check"]).env_clear().envs(settings).stdin(Stdio::null());
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn shipped_configurations_require_confined_page_processes() {
    let confine = "DOCMILL__CPU__CONFINE";
    for name in ["aws", "gcp", "local", "bucket"] {
        let settings = overlay(name);
        assert_eq!(settings.get(confine).map(String::as_str), Some("required"), "{name}");
    }
    assert!(task_environment(SERVICE).contains_key(confine));
    let (_, parameter) = read(SERVICE).split_once("\n  Confinement:\n").map(own).unwrap();
    assert!(parameter.starts_with("    Type: String\n    Default: required\n"), "{parameter:.80}");
    assert!(read("Dockerfile").contains("\nENV DOCMILL__CPU__CONFINE=required\n"));
}

fn own((before, after): (&str, &str)) -> (String, String) {
    (before.to_owned(), after.to_owned())
}

fn everything_deployed() -> Vec<(&'static str, Settings)> {
    let mut aws = overlay("aws");
    aws.insert("DOCMILL__DATABASE__URL".to_owned(), "postgres://worker@db/app".to_owned());
    let mut gcp = overlay("gcp");
    gcp.insert("DOCMILL__DATABASE__URL".to_owned(), "postgres://worker@db/app".to_owned());
    let file = read("deploy/kubernetes/overlays/gcp/docmill.toml");
    gcp.insert("DOCMILL_CONFIG_TEXT".to_owned(), file);
    let mut local = overlay("local");
    local.extend(env_file("deploy/kubernetes/overlays/local/secrets.env"));
    vec![
        ("Kubernetes, aws", aws),
        ("Kubernetes, gcp", gcp),
        ("Kubernetes, local", local),
        ("ECS", task_environment(SERVICE)),
        ("compose", compose()),
    ]
}

#[test]
fn every_setting_that_is_deployed_with_is_a_key_and_the_whole_is_a_valid_configuration() {
    for (place, settings) in everything_deployed() {
        assert!(settings.len() > 5, "{place}: {settings:?}");
        let (well, said) = check(&settings);
        assert!(well, "{place}: {said}");
        // The check above would not notice a name that is not read at all.
        for name in settings.keys().filter(|name| name.starts_with("DOCMILL")) {
            let known = name.starts_with("DOCMILL__")
                || ["DOCMILL_STOP_TIMEOUT", "DOCMILL_CONFIG_TEXT"].contains(&name.as_str());
            assert!(known, "{place}: nothing reads {name}");
        }
    }
    let mut misspelt = task_environment(SERVICE);
    misspelt.insert("DOCMILL__WORKER__SLOT".to_owned(), "1".to_owned());
    assert!(!check(&misspelt).0, "an unknown key is noticed");
}

#[test]
fn a_settings_file_that_comes_as_a_text_is_obeyed_checked_and_never_quoted() {
    let show = |text: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
        command.args(["config", "show"]).env_clear().env("DOCMILL_CONFIG_TEXT", text);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    };
    let (well, said) =
        show("[claim]\nlease = \"7m\"\n[ocr.document_ai]\ncredentials_json = \"hunter2\"\n");
    assert!(well && said.contains("7m") && !said.contains("hunter2"), "{said}");
    let (well, said) = show("[claim]\nleese = \"hunter2\"\n");
    assert!(!well && said.contains("leese") && !said.contains("hunter2"), "{said}");
    let (well, said) = show("lease = hunter2");
    assert!(
        !well && said.contains("DOCMILL_CONFIG_TEXT, line 1") && !said.contains("hunter2"),
        "{said}"
    );
}

#[test]
fn every_platforms_stop_timeout_exceeds_the_drain() {
    let duration = |settings: &Settings, name: &str| {
        let text = settings.get(name).unwrap_or_else(|| panic!("{name} is not set"));
        humantime::parse_duration(text).unwrap()
    };
    for (place, settings) in everything_deployed() {
        let granted = duration(&settings, "DOCMILL_STOP_TIMEOUT");
        let drain = duration(&settings, "DOCMILL__WORKER__DRAIN");
        assert!(drain + Duration::from_secs(10) <= granted, "{place}: {drain:?} of {granted:?}");
    }
    let says = |path: &str, line: &str| assert!(read(path).contains(line), "{path}: no {line:?}");
    says("deploy/kubernetes/base/deployment.yaml", "terminationGracePeriodSeconds: 130\n");
    says("deploy/kubernetes/base/settings.env", "DOCMILL_STOP_TIMEOUT=130s\n");
    says(SERVICE, "StopTimeout: 120\n");
    says(SERVICE, "- Name: DOCMILL_STOP_TIMEOUT\n              Value: 120s\n");
    says("compose.yaml", "stop_grace_period: 120s\n");
    says("compose.yaml", "DOCMILL_STOP_TIMEOUT: 120s\n");
}

#[test]
fn workers_on_kubernetes_may_do_the_same_as_on_ecs() {
    let statements = |path: &str, end: &str| {
        let template = read(path);
        let (_, rest) = template.split_once("- Sid: Queues").unwrap();
        let (part, _) = rest.split_once(end).unwrap();
        part.trim().lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let ecs = statements(SERVICE, "- Sid: OwnProtection");
    assert!(ecs.len() > 30, "{ecs:?}");
    assert_eq!(ecs, statements(POLICY, "\n  # docmill web:"));
}

#[test]
fn pages_on_kubernetes_may_do_the_same_as_on_ecs() {
    let statements = |path: &str, start: &str, end: &str| {
        let template = read(path);
        let (_, rest) = template.split_once(start).unwrap();
        let (_, rest) = rest.split_once("- Sid: Queues").unwrap();
        let (part, _) = rest.split_once(end).unwrap();
        part.trim().lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let ecs = statements(WEB, "\n  WebRole:", "\n  WebTask:");
    assert!(ecs.len() > 30, "{ecs:?}");
    assert_eq!(ecs, statements(POLICY, "\n  WebPolicy:", "\n  # KEDA"));
}

#[test]
fn the_deployed_console_has_a_valid_configuration_with_a_sign_in() {
    let mut ecs = task_environment(WEB);
    let mut all = Vec::new();
    for overlay_name in ["aws", "gcp"] {
        let file = read(&format!("deploy/kubernetes/overlays/{overlay_name}/web.toml"));
        ecs.insert("DOCMILL_CONFIG_TEXT".to_owned(), file.clone());
        let mut settings = overlay(overlay_name);
        settings.insert("DOCMILL_CONFIG_TEXT".to_owned(), file);
        settings.insert("DOCMILL__DATABASE__URL".to_owned(), "postgres://pages@db/app".to_owned());
        settings.insert("DOCMILL__WEB__ADDRESS".to_owned(), "0.0.0.0:8090".to_owned());
        all.push((overlay_name, settings));
    }
    all.push(("ECS", ecs));
    for (place, mut settings) in all {
        let (well, said) = check(&settings);
        assert!(well, "{place}: {said}");
        // Listening on all addresses without sign-in is refused.
        settings.remove("DOCMILL_CONFIG_TEXT");
        let (well, said) = check(&settings);
        assert!(!well && said.contains("there are no web.tokens"), "{place}: {said}");
    }
    let chart = read("deploy/helm/docmill/templates/web.yaml");
    let component = read("deploy/kubernetes/components/web/deployment.yaml");
    for text in [chart, component] {
        assert!(
            text.contains("- name: DOCMILL__WEB__ADDRESS\n              value: 0.0.0.0:8090\n")
        );
        assert!(text.contains("{ name: arriving, mountPath: /tmp }"), "uploads are written down");
    }
}

#[test]
fn the_deployed_inbox_has_the_settings_of_the_manual_and_reaches_mailboxes() {
    let page = read("docs/guides/producers.md");
    let (_, sources) = page.split_once("[[inbox.sources]]").unwrap();
    let sources = sources.split("```").next().unwrap();
    // In a secret of its own there is no file beside it.
    let sources = sources.replace("password_file = \"/run/secrets/imap\"", "password = \"x\"");
    let mut settings = overlay("gcp");
    settings.insert("DOCMILL__DATABASE__URL".to_owned(), "postgres://inbox@db/app".to_owned());
    settings.insert("DOCMILL_CONFIG_TEXT".to_owned(), format!("[[inbox.sources]]{sources}"));
    let (well, said) = check(&settings);
    assert!(well, "{said}");
    let chart = read("deploy/helm/docmill/templates/inbox.yaml");
    let component = read("deploy/kubernetes/components/inbox/inbox.yaml");
    for text in [chart, component] {
        assert!(text.contains("args: [inbox]\n") && text.contains("replicas: 1\n"));
        assert!(text.contains("- { port: 993, protocol: TCP }\n"));
        assert!(text.contains("{ name: arriving, mountPath: /tmp }"), "mails are written down");
    }
}

/// Words of a text that begin with `docmill_`.
fn metric_words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'))
        .filter(|word| word.starts_with("docmill_"))
        .map(|word| {
            // The parts of a histogram.
            let histogram = ["_bucket", "_sum", "_count"];
            let name = histogram.iter().find_map(|part| word.strip_suffix(part));
            name.unwrap_or(word).to_owned()
        })
        .collect()
}

/// `name="value"` in the selectors of a text.
fn label_values(text: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for selector in text.split("docmill_").skip(1).filter_map(|rest| rest.split_once('{')) {
        let (name, rest) = selector;
        if !name.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
            continue;
        }
        for pair in rest.split('}').next().unwrap().split(',') {
            let Some((label, value)) = pair.split_once('=') else { continue };
            found.insert((label.trim_end_matches('!').to_owned(), value.replace(['"', '\\'], "")));
        }
    }
    found
}

/// All Rust sources of a folder, as one text.
fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &sources(&path);
        } else if path.extension().is_some_and(|it| it == "rs") {
            all += &std::fs::read_to_string(path).unwrap();
        }
    }
    all
}

#[test]
fn alarms_and_board_ask_for_metrics_and_labels_that_the_worker_exports() {
    let names = read("crates/core/src/metrics.rs");
    let exported: BTreeSet<String> = names
        .split("= \"docmill_")
        .skip(1)
        .map(|rest| format!("docmill_{}", rest.split('"').next().unwrap()))
        .collect();
    let code = sources(&root().join("src")) + &sources(&root().join("crates"));
    for path in [RULES, RULES_TEST, BOARD] {
        let text = read(path);
        let named = metric_words(&text);
        assert!(named.len() > 10, "{path}: {named:?}");
        let unknown: Vec<&String> = named.difference(&exported).collect();
        assert!(unknown.is_empty(), "{path} asks for {unknown:?}");
        for (label, value) in label_values(&text) {
            // Prometheus adds these; providers, models and inboxes are configured.
            if ["pod", "namespace", "provider", "model", "inbox", "le"].contains(&label.as_str()) {
                continue;
            }
            assert!(code.contains(&format!("\"{value}\"")), "{path}: nothing sets {label}={value}");
        }
    }
    let shown = metric_words(&read(BOARD));
    let missing: Vec<&String> = exported.difference(&shown).collect();
    assert!(missing.is_empty(), "the board does not show {missing:?}");
}

/// Prometheus sees no growth in a counter that appears as 1.
#[test]
fn counters_of_alarms_are_exported_at_zero_from_the_start() {
    let page = metrics::install_metrics().unwrap();
    metrics::start_maintenance_counters(MaintenanceChore::ALL.iter().map(|chore| chore.name()));
    metrics::start_inbox_counters("mails");
    let page = page.render();
    let rules = read(RULES);
    let counted: BTreeSet<&str> = rules
        .split("increase(")
        .skip(1)
        .map(|rest| rest.split('[').next().unwrap())
        .chain(["docmill_deliveries_total{answer=\"claimed\"}"])
        .collect();
    assert!(counted.len() > 10, "{counted:?}");
    for counter in counted {
        let zero = |line: &str| line.starts_with(counter) && line.ends_with(" 0");
        assert!(page.lines().any(zero), "{counter} is not there");
    }
}

#[test]
fn every_alarm_has_its_paragraph_and_its_test_and_every_paragraph_its_alarm() {
    let alarms: BTreeSet<String> = read(RULES)
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .map(str::to_owned)
        .collect();
    assert!(alarms.len() > 15, "{alarms:?}");
    let explained: BTreeSet<String> = read("docs/guides/operations.md")
        .lines()
        .filter_map(|line| line.strip_prefix("#### "))
        .map(str::to_owned)
        .collect();
    assert_eq!(alarms, explained, "left: alarms, right: paragraphs of docs/guides/operations.md");
    let tests = read(RULES_TEST);
    let untested: Vec<&String> = alarms.iter().filter(|name| !tests.contains(*name)).collect();
    assert!(untested.is_empty(), "never seen to fire: {untested:?}");
}

/// Deploys a template and returns the stack's outputs.
async fn deploy(moto: &Moto, template: &str, stack: &str) -> BTreeMap<String, String> {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let call = async |parameters: String| {
        let scope = "test/20261121/us-east-1/cloudformation/aws4_request";
        let url = moto.endpoint().parse().unwrap();
        let client = docmill_client::http::build_client(&url, Duration::from_secs(60)).unwrap();
        let answer = client
            .post(url)
            .header("authorization", format!("AWS4-HMAC-SHA256 Credential={scope}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("Version=2010-05-15&StackName={stack}&{parameters}"))
            .send()
            .await
            .unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{parameters:.40}: {status} {text}");
        text
    };
    call(format!("Action=CreateStack&TemplateBody={}", encoded(&read(template)))).await;
    let described = call("Action=DescribeStacks".to_owned()).await;
    assert!(described.contains("<StackStatus>CREATE_COMPLETE"), "{described}");
    let between = |text: &str, tag: &str| {
        let rest = text.split_once(&format!("<{tag}>")).unwrap().1;
        rest.split_once(&format!("</{tag}>")).unwrap().0.to_owned()
    };
    let outputs = described.split("<OutputKey>").skip(1).map(|rest| {
        let rest = format!("<OutputKey>{rest}");
        (between(&rest, "OutputKey"), between(&rest, "OutputValue"))
    });
    outputs.collect()
}

/// The value of the first line that begins with this key.
fn line_of(template: &str, key: &str) -> String {
    let found = template.lines().find_map(|line| line.trim().strip_prefix(key));
    found.unwrap_or_else(|| panic!("no line {key}")).trim().to_owned()
}

/// Sends the bucket's events by the template's rules; Moto creates buckets of templates without
/// them.
async fn send_events(s3: &aws_sdk_s3::Client, bucket: &str, queue_arn: &str) -> String {
    let template = read(STORAGE);
    let (_, parameter) = template.split_once("\n  EventPrefix:\n").unwrap();
    let (_, notification) = template.split_once("NotificationConfiguration:").unwrap();
    let prefix = line_of(parameter, "Default:");
    assert_eq!(line_of(notification, "Value:"), "!Ref EventPrefix");
    assert_eq!(line_of(notification, "- Name:"), "prefix");
    let rule = FilterRule::builder().name(FilterRuleName::Prefix).value(&prefix).build();
    let filter = NotificationConfigurationFilter::builder()
        .key(S3KeyFilter::builder().filter_rules(rule).build())
        .build();
    let configuration = QueueConfiguration::builder()
        .queue_arn(queue_arn)
        .events(Event::from(line_of(notification, "- Event:").as_str()))
        .filter(filter)
        .build()
        .unwrap();
    s3.put_bucket_notification_configuration()
        .bucket(bucket)
        .notification_configuration(
            NotificationConfiguration::builder().queue_configurations(configuration).build(),
        )
        .send()
        .await
        .unwrap();
    prefix
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_put_into_the_bucket_of_the_template_is_read_through_its_queue() {
    let moto = Moto::start().await;
    let made = deploy(&moto, STORAGE, "docmill").await;
    let sqs = crate::support::sqs::client(&moto.endpoint());
    let of = async |url: &str, attribute: Attribute| {
        let request = sqs.get_queue_attributes().queue_url(url).attribute_names(attribute.clone());
        let answer = request.send().await.unwrap();
        answer.attributes().and_then(|all| all.get(&attribute)).cloned().unwrap_or_default()
    };
    let (queue, dead) = (&made["QueueUrl"], &made["DeadLetterQueueUrl"]);
    let redrive = of(queue, Attribute::RedrivePolicy).await;
    let redrive: serde_json::Value = serde_json::from_str(&redrive).unwrap();
    assert_eq!(redrive["maxReceiveCount"].to_string().trim_matches('"'), "1000");
    assert_eq!(redrive["deadLetterTargetArn"], made["DeadLetterQueueArn"].as_str());
    for url in [queue, dead] {
        assert_eq!(of(url, Attribute::MessageRetentionPeriod).await, "1209600", "14 days: {url}");
    }

    let s3 = s3_client(&moto.endpoint());
    let prefix = send_events(&s3, &made["BucketName"], &made["QueueArn"]).await;
    let mut world = World::new().await;
    world.config.queue.url = queue.clone();
    world.config.queue.endpoint = moto.endpoint();
    world.config.store.bucket = made["BucketName"].clone();
    world.config.store.allow = vec![made["EventPlaces"].parse().unwrap()];
    let connected = SqsQueue::with_client(sqs.clone(), &world.config.queue).await.unwrap();
    world.queue = Arc::new(connected);
    world.store = Arc::new(S3Store::with_client(s3.clone(), &made["BucketName"]));
    let body = ByteStream::from(documents::invoice("T-1"));
    let key = format!("{prefix}october.pdf");
    s3.put_object().bucket(&made["BucketName"]).key(key).body(body).send().await.unwrap();

    let worker = world.worker().await;
    until(SOON, || async { world.all_ids().await.len() == 1 }).await;
    let id = *world.all_ids().await.first().unwrap();
    world.until(id, "status", "completed").await;
    // Its own artefacts lie outside the prefix: they send no events, so nothing else comes.
    world.until_empty().await;
    worker.stop().await;
    assert_eq!(world.all_ids().await, [id]);
    assert_eq!(world.queue.depth().await.unwrap().dead, Some(0), "the dead letters are found");
}
