//! Every vendor's client against the scripted server in that vendor's protocol: the same outcome
//! for the same event.

use docmill_client::throttle::Governor;
use docmill_core::config::{
    LlmServer, ModelEffort, PromptCache, ReplyNumbers, StructuredOutput, ThrottleConfig,
};
use docmill_core::model::{EncodedImage, ImageEncoding, ImageHeader, ModelUsage, PictureRule};
use docmill_llm::PromptPicture;
use docmill_llm::anthropic::AnthropicClient;
use docmill_llm::anthropic::batches::AnthropicBatches;
use docmill_llm::batch::{
    BatchApi, BatchProgress, BatchQuestion, BatchSubmission, SubmissionFence,
};
use docmill_llm::bedrock::BedrockClient;
use docmill_llm::bedrock::batches::BedrockBatches;
use docmill_llm::gemini::GeminiClient;
use docmill_llm::gemini::batches::GeminiBatches;
use docmill_llm::governed::GovernedLlm;
use docmill_llm::openai::batches::OpenAiBatches;
use docmill_testkit::models::Vendor;
use image::{GrayImage, ImageFormat};

use super::*;
use crate::reading::papers::encoded;

/// Vendors at their own hosts, which take keys and batches.
pub(crate) const OWN_HOSTS: [Vendor; 4] =
    [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock, Vendor::Gemini];
/// The same, and those that are served by Vertex AI.
const VENDORS: [Vendor; 6] = [
    Vendor::Openai,
    Vendor::Anthropic,
    Vendor::Bedrock,
    Vendor::Gemini,
    Vendor::VertexGemini,
    Vendor::VertexClaude,
];
/// Those that stream, and whose caches are asked for. Gemini's replies come whole.
const STREAMING: [Vendor; 4] =
    [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock, Vendor::VertexClaude];

pub(crate) fn config_of(vendor: Vendor, server: &Server) -> LlmConfig {
    LlmConfig {
        provider: match vendor {
            Vendor::Openai => LlmProvider::Openai,
            Vendor::Anthropic => LlmProvider::Anthropic,
            Vendor::Bedrock => LlmProvider::Bedrock,
            Vendor::Gemini => LlmProvider::Gemini,
            Vendor::VertexGemini | Vendor::VertexClaude => LlmProvider::Vertex,
        },
        base_url: server.base_url(),
        api_key: match vendor {
            Vendor::VertexGemini | Vendor::VertexClaude => federation_at(&server.base_url()).into(),
            _ => "key".to_owned().into(),
        },
        region: "us-east-1".to_owned(),
        model: match vendor {
            Vendor::VertexClaude => "claude-model-1".to_owned(),
            _ => "model-1".to_owned(),
        },
        timeout: Duration::from_secs(10),
        ..LlmConfig::default()
    }
}

/// Credentials of Google by which the stand-in at this base address itself gives the token `key`.
pub(crate) fn federation_at(base: &str) -> String {
    let (address, _) = base.split_once("/v1/").unwrap();
    let form = json!({"type": "json", "subject_token_field_name": "subject"});
    json!({
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("{address}/v1/token"),
        "credential_source": {"url": format!("{address}/subject"), "format": form},
    })
    .to_string()
}

pub(crate) async fn model(config: &LlmConfig) -> Arc<dyn Llm> {
    match config.provider {
        LlmProvider::Vertex if config.asks_claude() => {
            Arc::new(AnthropicClient::new(config).unwrap())
        }
        LlmProvider::Vertex => Arc::new(GeminiClient::new(config).unwrap()),
        LlmProvider::Anthropic => Arc::new(AnthropicClient::new(config).unwrap()),
        LlmProvider::Bedrock => Arc::new(BedrockClient::connect(config).await.unwrap()),
        LlmProvider::Gemini => Arc::new(GeminiClient::new(config).unwrap()),
        _ => Arc::new(OpenAiClient::new(config).unwrap()),
    }
}

async fn started(vendor: Vendor, script: Script) -> (Server, Arc<dyn Llm>) {
    let script = Script { api_key: Some("key".to_owned()), ..script };
    let server = Server::start(script.from(vendor)).await.unwrap();
    let llm = model(&config_of(vendor, &server)).await;
    (server, llm)
}

async fn read(llm: &dyn Llm) -> Result<Extraction, ExtractError> {
    let (kind, terms, invoice) = (kind(), terms(), invoice());
    let mut journal = Memory::default();
    let run = extract_by_model(llm, &kind, &invoice, &terms, &mut journal);
    tokio::time::timeout(DEADLINE, run).await.unwrap()
}

#[tokio::test]
async fn every_vendor_reads_an_invoice_whichever_way_the_form_is_demanded() {
    for vendor in VENDORS {
        let server = Server::start(Script::default().from(vendor)).await.unwrap();
        for structured in demands_of(vendor) {
            let llm = model(&LlmConfig { structured, ..config_of(vendor, &server) }).await;
            let read = read(llm.as_ref()).await.unwrap();
            let at = format!("{vendor:?} {structured:?}");
            assert_eq!(
                (&read.data["invoice_number"], &read.data["total"]),
                (&json!("A-17"), &json!(12.0)),
                "{at}"
            );
            assert_eq!(read.data["line_items"][0]["amount"], 10.0, "{at}");
            assert_eq!(read.model.as_deref(), Some("model-1"), "{at}");
            assert!(read.usage.prompt_tokens() > 0 && read.usage.output > 0, "{at}");
        }
    }
}

/// The ways in which a vendor can be asked for the form of a reply.
fn demands_of(vendor: Vendor) -> Vec<StructuredOutput> {
    let mut demands = vec![StructuredOutput::Schema, StructuredOutput::Prompt];
    if matches!(vendor, Vendor::Anthropic | Vendor::Bedrock | Vendor::VertexClaude) {
        demands.push(StructuredOutput::Tool);
    }
    demands
}

#[tokio::test]
async fn every_shipped_kind_is_within_the_limits_of_every_vendor_in_every_mode() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let mut table = String::new();
    for vendor in VENDORS {
        let server = Server::start(Script::default().from(vendor)).await.unwrap();
        for structured in demands_of(vendor) {
            let config =
                LlmConfig { structured, server: LlmServer::Openai, ..config_of(vendor, &server) };
            let llm = model(&config).await;
            for kind in kinds.iter() {
                for pictures in [false, true] {
                    let prompt = docmill_extract::probe::probe_prompt(kind, pictures).unwrap();
                    let asked = server.calls().len();
                    llm.complete(&prompt).await.unwrap();
                    let calls = server.calls();
                    let statuses: Vec<u16> =
                        calls[asked..].iter().map(|call| call.status).collect();
                    let at = format!("{vendor:?} {structured:?} {} pictures={pictures}", kind.name);
                    table.push_str(&format!("{at}: {statuses:?}\n"));
                    assert_eq!(statuses, [200], "{at}\n{table}");
                    assert!(!llm.refuses_schema(&prompt), "{at}");
                }
            }
        }
    }
    std::io::Write::write_all(&mut std::io::stdout(), table.as_bytes()).unwrap();
}

/// Whether each example reply in the prompt is a reply to the schema of the request.
fn has_consistent_examples(request: &Request) -> bool {
    let validator = jsonschema::validator_for(&request.schema()).unwrap();
    let system = request.message("system");
    let mut replies = system.lines().filter(|line| line.starts_with("{\"fields\":"));
    replies.all(|line| validator.is_valid(&serde_json::from_str(line).unwrap()))
}

#[tokio::test]
async fn the_examples_of_a_prompt_are_replies_to_the_schema_that_its_request_demands() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    for vendor in VENDORS {
        let script = Script::function(|request: &Request| match has_consistent_examples(request) {
            true => Answer::Read,
            false => Answer::Text { content: "inconsistent".to_owned() },
        });
        let server = Server::start(script.from(vendor)).await.unwrap();
        for structured in demands_of(vendor) {
            for numbers in [ReplyNumbers::Json, ReplyNumbers::Printed] {
                let config = config_of(vendor, &server);
                let llm = model(&LlmConfig { structured, numbers, ..config }).await;
                for kind in kinds.iter() {
                    let prompt = docmill_extract::probe::probe_prompt(kind, false).unwrap();
                    let shown = prompt.system.matches("\n{\"fields\":").count();
                    assert_eq!(shown, kind.examples.len(), "{}", kind.name);
                    let reply = llm.complete(&prompt).await.unwrap();
                    let at = format!("{vendor:?} {structured:?} {numbers:?} {}", kind.name);
                    assert!(!reply.text.contains("inconsistent"), "{at}");
                }
            }
        }
    }
}

/// Answers of vendors that do not take a schema, in their recorded words.
#[tokio::test]
async fn a_refused_schema_is_asked_for_by_text_once_and_for_all_at_every_vendor() {
    #[rustfmt::skip]
    let table = [
        (Vendor::Anthropic, "Schemas contains too many parameters with union types (20 parameters with type arrays or anyOf). This causes exponential compilation cost."),
        (Vendor::Anthropic, "The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce the number of strict tools."),
        (Vendor::Anthropic, "Schemas contains too many optional parameters (87), which would make grammar compilation inefficient."),
        (Vendor::Bedrock,   "The model returned the following errors: Schemas contains too many parameters with union types (20 parameters with type arrays or anyOf)."),
        (Vendor::Gemini,    "The specified schema produces a constraint that has too many states for serving."),
        (Vendor::Openai,    "Invalid schema for response_format 'invoice': 11 levels of nesting exceeds limit of 10."),
        (Vendor::Openai,    "The provided JSON schema contains features not supported by xgrammar."),
    ];
    for (vendor, words) in table {
        let refusal = Answer::Status {
            status: 400,
            retry_after: None,
            retry_after_ms: None,
            should_retry: None,
            code: None,
            message: Some(words.to_owned()),
        };
        let refusing = Script::function(move |request: &Request| {
            let body = request.body.to_string();
            let schemas = ["json_schema", "input_schema", "inputSchema", "responseJsonSchema"];
            let has_schema = schemas.iter().any(|name| body.contains(&format!("\"{name}\"")));
            if has_schema { refusal.clone() } else { Answer::Read }
        });
        let (server, llm) = started(vendor, refusing).await;
        for calls in [2, 3] {
            let read = read(llm.as_ref()).await.unwrap();
            assert_eq!(read.data["total"], 12.0, "{vendor:?} {words}");
            assert_eq!(server.calls().len(), calls, "{vendor:?} {words}");
        }
        let refused = server.calls().iter().filter(|call| call.status == 400).count();
        assert_eq!(refused, 1, "{vendor:?} {words}");
        // The vendor's batches are asked in the same way from then on.
        let asked = docmill_extract::probe::probe_prompt(&kind(), false).unwrap();
        assert!(llm.refuses_schema(&asked), "{vendor:?} {words}");
    }
}

#[tokio::test]
async fn printed_decimals_and_empty_fields_arrive_the_same_from_every_dialect() {
    for vendor in VENDORS {
        let (_server, llm) = started(vendor, Script::default()).await;
        let read = read(llm.as_ref()).await.unwrap();
        let items = read.data["line_items"].as_array().unwrap();
        assert_eq!(items[0]["unit_price"], json!(5.0), "{vendor:?}");
        assert_eq!(items[0]["article_number"], Value::Null, "{vendor:?}");
        assert_eq!(read.data["buyer_name"], Value::Null, "{vendor:?}");
        assert_eq!(read.data["allowances"], Value::Null, "{vendor:?}");
        assert_eq!(read.data["invoice_date"], json!("2026-03-01"), "{vendor:?}");
    }
}

#[tokio::test]
async fn the_second_document_of_a_kind_reads_its_prefix_from_the_cache_at_every_vendor() {
    for vendor in STREAMING {
        let (_server, llm) = started(vendor, Script::default()).await;
        let first = read(llm.as_ref()).await.unwrap().usage;
        let second = read(llm.as_ref()).await.unwrap().usage;
        assert!(first.cache_write > 0 && first.cache_read == 0, "{vendor:?} {first:?}");
        let expected = ModelUsage { cache_read: first.cache_write, cache_write: 0, ..first };
        assert_eq!(second, expected, "{vendor:?}");
    }
}

/// Each vendor's answer to the same event: calls made, fault.
#[tokio::test]
async fn every_answer_has_its_fault_at_every_vendor() {
    let (some, none) = (Some(Duration::from_secs(9)), None);
    #[rustfmt::skip]
    let table = [
        (Vendor::Anthropic, Answer::status(429),      1, Fault::Throttled(none)),
        (Vendor::Anthropic, Answer::throttled("9"),   1, Fault::Throttled(some)),
        (Vendor::Anthropic, Answer::error(429, "enforced_spend_limit_reached"), 1, Fault::Denied),
        (Vendor::Anthropic, Answer::status(529),      1, Fault::Throttled(none)),
        (Vendor::Anthropic, Answer::status(500),      3, Fault::Transient),
        (Vendor::Anthropic, Answer::status(504),      3, Fault::Unavailable),
        (Vendor::Anthropic, Answer::status(400),      1, Fault::Internal),
        (Vendor::Anthropic, Answer::status(401),      1, Fault::Denied),
        (Vendor::Anthropic, Answer::status(402),      1, Fault::Denied),
        (Vendor::Anthropic, Answer::status(403),      1, Fault::Denied),
        (Vendor::Anthropic, Answer::status(404),      1, Fault::Denied),
        (Vendor::Anthropic, Answer::Reset,            3, Fault::Transient),
        (Vendor::Anthropic, Answer::CutBody,          3, Fault::Transient),
        (Vendor::Bedrock,   Answer::status(429),      1, Fault::Throttled(none)),
        (Vendor::Bedrock,   Answer::error(429, "ModelNotReadyException"),        1, Fault::Throttled(none)),
        (Vendor::Bedrock,   Answer::error(400, "ServiceQuotaExceededException"), 1, Fault::Throttled(none)),
        (Vendor::Bedrock,   Answer::status(408),      3, Fault::Transient),
        (Vendor::Bedrock,   Answer::status(424),      3, Fault::Transient),
        (Vendor::Bedrock,   Answer::status(500),      3, Fault::Transient),
        (Vendor::Bedrock,   Answer::status(503),      3, Fault::Unavailable),
        (Vendor::Bedrock,   Answer::status(400),      1, Fault::Internal),
        (Vendor::Bedrock,   Answer::status(403),      1, Fault::Denied),
        (Vendor::Bedrock,   Answer::error(403, "ExpiredTokenException"),         1, Fault::Denied),
        (Vendor::Bedrock,   Answer::status(404),      1, Fault::Denied),
        (Vendor::Bedrock,   Answer::CutBody,          3, Fault::Transient),
        (Vendor::Gemini,    Answer::status(429),      1, Fault::Throttled(none)),
        (Vendor::Gemini,    Answer::status(500),      3, Fault::Transient),
        (Vendor::Gemini,    Answer::status(503),      3, Fault::Unavailable),
        (Vendor::Gemini,    Answer::status(400),      1, Fault::Internal),
        (Vendor::Gemini,    Answer::status(403),      1, Fault::Denied),
        (Vendor::Gemini,    Answer::status(404),      1, Fault::Denied),
        (Vendor::Gemini,    Answer::CutBody,          3, Fault::Transient),
        (Vendor::VertexGemini, Answer::status(429),   1, Fault::Throttled(none)),
        (Vendor::VertexGemini, Answer::status(403),   1, Fault::Denied),
        (Vendor::VertexGemini, Answer::status(404),   1, Fault::Denied),
        (Vendor::VertexGemini, Answer::status(503),   3, Fault::Unavailable),
        (Vendor::VertexClaude, Answer::throttled("9"),1, Fault::Throttled(some)),
        (Vendor::VertexClaude, Answer::status(403),   1, Fault::Denied),
        (Vendor::VertexClaude, Answer::status(529),   1, Fault::Throttled(none)),
        (Vendor::VertexClaude, Answer::CutBody,       3, Fault::Transient),
    ];
    let mut runs = tokio::task::JoinSet::new();
    for (vendor, answer, calls, fault) in table {
        runs.spawn(async move {
            let (server, llm) = started(vendor, Script::always(answer.clone())).await;
            let error = llm.complete(&prompt()).await.unwrap_err();
            let at = format!("{vendor:?} {answer:?} {error}");
            assert_eq!((error.fault, server.calls().len()), (fault, calls), "{at}");
            assert!(error.to_string().contains("127.0.0.1"), "{at}");
        });
    }
    while let Some(run) = runs.join_next().await {
        run.unwrap();
    }
}

#[tokio::test]
async fn a_call_over_its_time_is_not_paid_for_again_at_any_vendor() {
    for vendor in VENDORS {
        let server = Server::start(Script::always(Answer::Hang).from(vendor)).await.unwrap();
        let config =
            LlmConfig { timeout: Duration::from_millis(500), ..config_of(vendor, &server) };
        let error = model(&config).await.complete(&prompt()).await.unwrap_err();
        assert_eq!((error.fault, server.calls().len()), (Fault::Transient, 1), "{vendor:?}");
    }
}

#[tokio::test]
async fn every_way_of_not_replying_ends_the_same_at_every_vendor() {
    let text = |content: &str| Answer::Text { content: content.to_owned() };
    let ends = |reason: &str| Answer::Ends { reason: reason.to_owned() };
    let (refused, cut, gate) =
        (OutcomeReason::ModelRefused, OutcomeReason::Cut, OutcomeReason::GateRefused);
    for vendor in VENDORS {
        #[rustfmt::skip]
        let mut table = vec![
            (Answer::Refusal,                            refused, 1),
            (Answer::ContentFilter,                      refused, 1),
            (Answer::Cut { content: "{".to_owned() },    cut,     1),
            (Answer::Whitespace,                         gate,    2),
            (text("Sure! Here is the data."),            gate,    2),
            (text("{\"fields\": {"),                     gate,    2),
            (Answer::Ok { content: json!({"total": 1})}, gate,    2),
        ];
        match vendor {
            Vendor::Anthropic | Vendor::VertexClaude => {
                table.push((ends("model_context_window_exceeded"), cut, 1));
                table.push((ends("a_new_reason"), gate, 2));
            }
            Vendor::Bedrock => {
                table.push((ends("model_context_window_exceeded"), cut, 1));
                table.push((ends("malformed_model_output"), gate, 2));
                table.push((ends("malformed_tool_use"), gate, 2));
                table.push((ends("a_new_reason"), gate, 2));
            }
            Vendor::Gemini | Vendor::VertexGemini => {
                table.push((ends("RECITATION"), refused, 1));
                table.push((ends("MALFORMED_RESPONSE"), gate, 2));
                table.push((ends("OTHER"), gate, 2));
                table.push((ends("A_NEW_REASON"), gate, 2));
            }
            Vendor::Openai => table.push((ends("model_length"), cut, 1)),
        }
        for (answer, reason, calls) in table {
            let at = format!("{vendor:?} {answer:?}");
            let (server, llm) = started(vendor, Script::always(answer)).await;
            let (ending, _) = ending(read(llm.as_ref()).await);
            assert_eq!((ending.outcome_reason(), server.calls().len()), (reason, calls), "{at}");
        }
    }
}

#[tokio::test]
async fn a_reply_that_ended_for_an_unknown_reason_is_asked_for_once_more_whole() {
    for vendor in VENDORS {
        let stopped = Answer::Ends { reason: "a_new_reason".to_owned() };
        let (server, llm) = started(vendor, Script::of([stopped])).await;
        assert_eq!(read(llm.as_ref()).await.unwrap().data["total"], 12.0, "{vendor:?}");
        assert_eq!(server.calls().len(), 2, "{vendor:?}: once more, and not in parts");
    }
}

#[tokio::test]
async fn white_space_without_end_is_asked_for_once_more_and_not_in_parts() {
    for vendor in VENDORS {
        let (server, llm) = started(vendor, Script::of([Answer::Whitespace])).await;
        assert_eq!(read(llm.as_ref()).await.unwrap().data["total"], 12.0, "{vendor:?}");
        assert_eq!(server.calls().len(), 2, "{vendor:?}");
    }
}

#[tokio::test]
async fn an_overlong_prompt_is_distinguished_from_a_bad_request_at_every_vendor() {
    for (vendor, words) in [
        (Vendor::Anthropic, "prompt is too long: 210000 tokens > 200000 maximum"),
        (Vendor::Bedrock, "Input is too long for requested model."),
        (
            Vendor::Gemini,
            "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
        ),
    ] {
        let answer = Answer::Status {
            status: 400,
            retry_after: None,
            retry_after_ms: None,
            should_retry: None,
            code: None,
            message: Some(words.to_owned()),
        };
        let (_server, llm) = started(vendor, Script::always(answer)).await;
        assert_eq!(
            llm.complete(&prompt()).await.unwrap().stop,
            FinishReason::TooLong,
            "{vendor:?}"
        );
    }
}

async fn streaming(vendor: Vendor, answer: Answer) -> (Server, Arc<dyn Llm>) {
    let server = Server::start(Script::always(answer).from(vendor)).await.unwrap();
    let config = LlmConfig {
        stream_above: 0,
        idle_timeout: Duration::from_millis(500),
        ..config_of(vendor, &server)
    };
    let llm = model(&config).await;
    (server, llm)
}

#[tokio::test]
async fn a_streamed_reply_is_the_same_as_a_whole_one() {
    for vendor in STREAMING {
        let (_streaming, streamed) = streaming(vendor, Answer::Read).await;
        let (_whole, whole) = started(vendor, Script::default()).await;
        let streamed = read(streamed.as_ref()).await.unwrap();
        assert_eq!(streamed, read(whole.as_ref()).await.unwrap(), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_no_reply_and_is_not_paid_for_again() {
    let error = |kind: &str| Answer::StreamError { kind: kind.to_owned() };
    for vendor in STREAMING {
        let (busy, broken) = match vendor {
            Vendor::Bedrock => ("throttlingException", "modelStreamErrorException"),
            _ => ("overloaded_error", "api_error"),
        };
        let table = [
            (Answer::StreamCut, Fault::Transient),
            (Answer::StreamStall, Fault::Transient),
            (error(busy), Fault::Throttled(None)),
            (error(broken), Fault::Transient),
        ];
        for (answer, fault) in table {
            let at = format!("{vendor:?} {answer:?}");
            let (server, llm) = streaming(vendor, answer).await;
            let error = llm.complete(&prompt()).await.unwrap_err();
            assert_eq!((error.fault, server.calls().len()), (fault, 1), "{at} {error}");
        }
    }
}

#[tokio::test]
async fn a_stream_is_sorted_by_its_stop_reason_and_left_once_it_goes_in_circles() {
    for vendor in STREAMING {
        #[rustfmt::skip]
        let table = [
            (Answer::Refusal,                         FinishReason::Refused),
            (Answer::ContentFilter,                   FinishReason::Refused),
            (Answer::Cut { content: "{".to_owned() }, FinishReason::Cut),
            (Answer::Whitespace,                      FinishReason::Garbled),
        ];
        for (answer, stop) in table {
            let at = format!("{vendor:?} {answer:?}");
            let (_server, llm) = streaming(vendor, answer).await;
            let reply = llm.complete(&prompt()).await.unwrap();
            assert_eq!(reply.stop, stop, "{at}");
            if stop == FinishReason::Garbled {
                assert!(reply.text.len() < 2_000, "{at}: {} bytes were read", reply.text.len());
            }
        }
    }
}

#[tokio::test]
async fn an_error_within_a_stream_that_is_about_the_reply_ends_it_as_none() {
    let words = "Failed to parse input at pos 13: {".to_owned();
    let (server, llm) = streaming(Vendor::Openai, Answer::StreamError { kind: words }).await;
    let reply = llm.complete(&prompt()).await.unwrap();
    assert_eq!((reply.stop, reply.text.as_str()), (FinishReason::Garbled, ""));
    assert!(reply.usage.output > 0 && server.calls().len() == 1, "it is paid for, once");
}

#[tokio::test]
async fn a_key_that_is_replaced_in_its_file_is_used_from_the_next_call_on_at_every_vendor() {
    let keyed = |key: &str| Script { api_key: Some(key.to_owned()), ..Script::default() };
    for vendor in OWN_HOSTS {
        let server = Server::start(keyed("first").from(vendor)).await.unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "first\n").unwrap();
        let config = LlmConfig {
            api_key: String::new().into(),
            api_key_file: file.path().to_owned(),
            ..config_of(vendor, &server)
        };
        let llm = model(&config).await;
        llm.complete(&prompt()).await.unwrap();
        server.set(keyed("second").from(vendor));
        assert_eq!(llm.complete(&prompt()).await.unwrap_err().fault, Fault::Denied, "{vendor:?}");
        std::fs::write(file.path(), "second\n").unwrap();
        // The files of a coarse clock could be of the same moment.
        let later = std::time::SystemTime::now() + Duration::from_secs(2);
        file.as_file().set_modified(later).unwrap();
        llm.complete(&prompt()).await.unwrap();
    }
}

#[tokio::test]
async fn one_429_is_waited_out_by_the_governor_at_every_vendor() {
    struct Shared(Arc<dyn Llm>);

    #[async_trait]
    impl Llm for Shared {
        fn provider(&self) -> &str {
            self.0.provider()
        }

        fn model(&self) -> &str {
            self.0.model()
        }

        async fn complete(&self, prompt: &Prompt) -> fault::Result<docmill_llm::ModelReply> {
            self.0.complete(prompt).await
        }
    }

    for vendor in VENDORS {
        let (server, llm) = started(vendor, Script::of([Answer::status(429)])).await;
        let governor = Arc::new(Governor::new(ThrottleConfig::default()));
        let governed = GovernedLlm::new(Shared(llm), governor, "account".to_owned());
        let reply = governed.complete(&prompt()).await.unwrap();
        assert_eq!((reply.stop, server.calls().len()), (FinishReason::Complete, 2), "{vendor:?}");
    }
}

#[tokio::test]
async fn a_server_that_silently_drops_part_of_a_prompt_is_detected() {
    let server = Server::start(Script::default()).await.unwrap();
    let config = LlmConfig { server: LlmServer::Ollama, ..config_of(Vendor::Openai, &server) };
    let llm = model(&config).await;
    assert_eq!(llm.complete(&prompt()).await.unwrap().stop, FinishReason::Complete);
    let long = Prompt { user: "word ".repeat(10_000), ..prompt() };
    assert_eq!(llm.complete(&long).await.unwrap().stop, FinishReason::Complete);
    server.set(Script { window: Some(1_000), ..Script::default() });
    assert_eq!(llm.complete(&long).await.unwrap().stop, FinishReason::TooLong);
}

/// How each vendor's batches are asked; nothing is sent.
pub(crate) async fn batches(config: &LlmConfig) -> Arc<dyn BatchApi> {
    match config.provider {
        LlmProvider::Anthropic => Arc::new(AnthropicBatches::new(config).unwrap()),
        LlmProvider::Bedrock => Arc::new(BedrockBatches::connect(config).await.unwrap()),
        LlmProvider::Gemini => Arc::new(GeminiBatches::new(config).unwrap()),
        _ => Arc::new(OpenAiBatches::new(config).unwrap()),
    }
}

#[tokio::test]
async fn a_question_in_a_batch_is_the_request_that_a_direct_call_sends_at_every_vendor() {
    let header = ImageHeader { width: 40, height: 30, dpi: 300, encoding: ImageEncoding::Png };
    let bytes = encoded(&GrayImage::new(40, 30), ImageFormat::Png);
    let image = Arc::new(EncodedImage { header, bytes });
    let picture = PromptPicture::new(image, PictureRule::OTHER);
    let asked = Prompt { pictures: vec![picture], ..prompt() };
    for vendor in OWN_HOSTS {
        for structured in [StructuredOutput::Schema, StructuredOutput::Prompt] {
            let script = Script { record: true, ..Script::default() };
            let server = Server::start(script.from(vendor)).await.unwrap();
            // Cache points are the one thing that Bedrock's batches do not take.
            let prompt_cache = PromptCache::Off;
            let own = config_of(vendor, &server);
            let mut config =
                LlmConfig { structured, prompt_cache, server: LlmServer::Openai, ..own };
            config.batch.bedrock.bucket = "questions".to_owned();
            config.batch.bedrock.access_key_id = "AKIATEST".to_owned();
            config.batch.bedrock.secret_access_key = "secret".to_owned().into();
            model(&config).await.complete(&asked).await.unwrap();
            let question = batches(&config).await.encode_prompt(&asked).unwrap();
            let question: Value = serde_json::from_str(&question).unwrap();
            assert_eq!(
                question,
                server.exchanges().first().unwrap().request,
                "{vendor:?} {structured:?}"
            );
        }
    }
}

/// Reads the same invoice so many times; how often the server was called each time.
async fn calls_per_reading(server: &Server, llm: &dyn Llm, readings: usize) -> Vec<usize> {
    let mut calls = Vec::new();
    for _ in 0..readings {
        let before = server.calls().len();
        read(llm).await.ok();
        calls.push(server.calls().len() - before);
    }
    calls
}

/// A model that thinks so many tokens before each reply, and refuses these fields.
fn thinking(tokens: u64, refused: &[&str]) -> Script {
    Script {
        refuses: refused.iter().map(ToString::to_string).collect(),
        ..Script::always(Answer::Thinks { tokens })
    }
}

#[tokio::test]
async fn a_model_that_cannot_stop_thinking_gets_room_for_it_and_is_paid_once_from_then_on() {
    // Fields of effort that are refused first, by vendor; Bedrock's model has none.
    let refused: [(Vendor, &[&str], usize); 4] = [
        (Vendor::Openai, &["reasoning_effort"], 2),
        (Vendor::Anthropic, &["thinking", "effort"], 2),
        (Vendor::Bedrock, &[], 0),
        (Vendor::Gemini, &["thinkingConfig"], 2),
    ];
    for (vendor, fields, learned) in refused {
        let server = Server::start(thinking(20_000, fields).from(vendor)).await.unwrap();
        let config = LlmConfig { server: LlmServer::Openai, ..config_of(vendor, &server) };
        let llm = model(&LlmConfig { effort: ModelEffort::None, ..config }).await;
        let calls = calls_per_reading(&server, llm.as_ref(), 2).await;
        assert_eq!(calls, [learned + 2, 1], "{vendor:?}");
        assert_eq!(read(llm.as_ref()).await.unwrap().data["invoice_number"], "A-17", "{vendor:?}");

        // No room is enough: each reading pays for twice as much, up to the limit, and then once.
        server.set(thinking(1_000_000, fields).from(vendor));
        let calls = calls_per_reading(&server, llm.as_ref(), 3).await;
        assert_eq!(calls, [2, 1, 1], "{vendor:?}");
        let ended = read(llm.as_ref()).await.unwrap_err();
        assert!(ended.to_string().contains("llm.thinking_tokens"), "{vendor:?} {ended}");
    }
}

#[tokio::test]
async fn a_start_on_vertex_ai_has_a_text_counted_and_says_which_role_or_model_is_missing() {
    for vendor in [Vendor::VertexGemini, Vendor::VertexClaude] {
        let (server, llm) = started(vendor, Script::default()).await;
        llm.ping().await.unwrap();
        assert_eq!(server.calls().len(), 0, "{vendor:?}: nothing is paid for");
        let other = LlmConfig { model: "claude-none".to_owned(), ..config_of(vendor, &server) };
        let other = model(&other).await.ping().await.unwrap_err();
        assert_eq!(other.fault, Fault::Denied, "{vendor:?} {other}");
        server
            .set(Script { api_key: Some("another".to_owned()), ..Script::default() }.from(vendor));
        let denied = llm.ping().await.unwrap_err();
        let text = denied.to_string();
        assert!(text.contains("roles/aiplatform.user"), "{vendor:?} {text}");
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_before_the_next_call() {
    let (server, llm) = started(Vendor::VertexGemini, Script::default()).await;
    llm.complete(&prompt()).await.unwrap();
    let script = Script { api_key: Some("another".to_owned()), ..Script::default() };
    server.set(script.from(Vendor::VertexGemini));
    assert_eq!(llm.complete(&prompt()).await.unwrap_err().fault, Fault::Denied);
    let script = Script { api_key: Some("key".to_owned()), ..Script::default() };
    server.set(script.from(Vendor::VertexGemini));
    let granted = server.tokens_granted();
    llm.complete(&prompt()).await.unwrap();
    assert_eq!(server.tokens_granted(), granted + 1);
}

/// As Azure's deployments of other vendors' models answer.
fn unknown_cache_key(request: &Request) -> Answer {
    if request.body.get("prompt_cache_key").is_none() {
        return Answer::Read;
    }
    Answer::Status {
        status: 400,
        retry_after: None,
        retry_after_ms: None,
        should_retry: None,
        code: Some("unrecognized_request_argument".to_owned()),
        message: Some("Unrecognized request argument supplied: prompt_cache_key".to_owned()),
    }
}

#[tokio::test]
async fn a_server_that_does_not_know_the_cache_key_is_asked_without_it_from_then_on() {
    let server = Server::start(Script::function(unknown_cache_key)).await.unwrap();
    let config = LlmConfig { server: LlmServer::Azure, ..config_of(Vendor::Openai, &server) };
    let llm = model(&config).await;
    for calls in [2, 3] {
        llm.complete(&prompt()).await.unwrap();
        assert_eq!(server.calls().len(), calls);
    }
}

#[tokio::test]
async fn azures_batches_name_their_own_deployment_and_keep_to_azures_rules() {
    struct Open;

    #[async_trait]
    impl SubmissionFence for Open {
        async fn pass(&self) -> fault::Result<()> {
            Ok(())
        }
    }

    let server = Server::start(Script::default()).await.unwrap();
    let mut config = LlmConfig { server: LlmServer::Azure, ..config_of(Vendor::Openai, &server) };
    config.base_url = format!("http://{}/openai/v1", server.address());
    config.batch.azure_deployment = "batches".to_owned();
    let api = OpenAiBatches::new(&config).unwrap();
    let body = api.encode_prompt(&prompt()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["model"], "batches");
    let questions = [BatchQuestion { custom_id: "q-1".to_owned(), body }];
    let file = api.upload("docmill-1", &questions).await.unwrap();
    let batch = BatchSubmission { name: "docmill-1", file: file.as_deref(), questions: &questions };
    let handle = api.create(batch, &Open).await.unwrap();
    let BatchProgress::Ended { files, .. } = api.poll(&handle).await.unwrap() else {
        panic!("it has ended")
    };
    assert_eq!(files.len(), 1);
    assert_eq!(model(&config).await.model(), "model-1", "direct calls go to the other");
}
