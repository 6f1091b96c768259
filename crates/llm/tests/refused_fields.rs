//! Every vendor's client against the scripted server, which refuses fields and caps in the vendor's
//! words and lets a model think: no document pays for a fault that is not its own.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::time::Duration;

use docmill_core::config::{AutoOr, LlmConfig, LlmProvider, LlmServer, ModelEffort};
use docmill_core::fault::Fault;
use docmill_llm::anthropic::AnthropicClient;
use docmill_llm::bedrock::BedrockClient;
use docmill_llm::gemini::GeminiClient;
use docmill_llm::openai::OpenAiClient;
use docmill_llm::{FinishReason, Llm, Prompt, PromptThinking};
use docmill_testkit::models::{Answer, Script, Server, Vendor};
use serde_json::json;

const VENDORS: [Vendor; 4] = [Vendor::Openai, Vendor::Anthropic, Vendor::Bedrock, Vendor::Gemini];

/// Tokens of the reply that the prompt asks for at most.
const CAP: u32 = 1_000;

fn prompt() -> Prompt {
    Prompt {
        system: "Read the document.".into(),
        user: "---\np1.l1| Invoice number A-17\np1.l2| Total 12.00\n---".to_owned(),
        schema_name: "invoice".to_owned(),
        schema: json!({
            "type": "object",
            "properties": {"fields": {"type": "object", "properties": {"total": {"type": "string"}}}},
        })
        .into(),
        schema_in_text: false,
        thinking: PromptThinking::AsConfigured,
        max_output_tokens: CAP,
        pictures: Vec::new(),
    }
}

/// Everything is set that can be.
fn config_of(vendor: Vendor, server: &Server) -> LlmConfig {
    LlmConfig {
        provider: match vendor {
            Vendor::Openai => LlmProvider::Openai,
            Vendor::Anthropic => LlmProvider::Anthropic,
            Vendor::Bedrock => LlmProvider::Bedrock,
            Vendor::Gemini => LlmProvider::Gemini,
            Vendor::VertexGemini | Vendor::VertexClaude => LlmProvider::Vertex,
        },
        server: if vendor == Vendor::Openai { LlmServer::Openai } else { LlmServer::Other },
        base_url: server.base_url(),
        api_key: "key".to_owned().into(),
        region: "us-east-1".to_owned(),
        model: match vendor {
            Vendor::Openai => "gpt-6-sol",
            Vendor::Anthropic => "claude-x",
            Vendor::Bedrock => "eu.anthropic.claude-x",
            Vendor::Gemini | Vendor::VertexGemini => "gemini-3.8-flash",
            Vendor::VertexClaude => "claude-x",
        }
        .to_owned(),
        timeout: Duration::from_secs(10),
        effort: ModelEffort::None,
        temperature: AutoOr::Value(0.0),
        service_tier: if vendor == Vendor::Anthropic { "auto" } else { "flex" }.to_owned(),
        ..LlmConfig::default()
    }
}

async fn model(config: &LlmConfig) -> Arc<dyn Llm> {
    match config.provider {
        LlmProvider::Anthropic => Arc::new(AnthropicClient::new(config).unwrap()),
        LlmProvider::Bedrock => Arc::new(BedrockClient::connect(config).await.unwrap()),
        LlmProvider::Gemini => Arc::new(GeminiClient::new(config).unwrap()),
        _ => Arc::new(OpenAiClient::new(config).unwrap()),
    }
}

async fn started(vendor: Vendor, script: Script) -> (Server, Arc<dyn Llm>) {
    let server = Server::start(script.from(vendor)).await.unwrap();
    let llm = model(&config_of(vendor, &server)).await;
    (server, llm)
}

#[tokio::test]
async fn every_optional_field_that_a_model_refuses_is_left_out_from_the_next_try_on() {
    #[rustfmt::skip]
    let table: [(Vendor, &[&str], usize); 13] = [
        (Vendor::Openai,    &[],                                               0),
        (Vendor::Openai,    &["temperature"],                                  1),
        // None, then low, then nothing is said of effort.
        (Vendor::Openai,    &["reasoning_effort"],                             2),
        (Vendor::Openai,    &["service_tier", "store", "prompt_cache_key"],    3),
        (Vendor::Openai,    &["prompt_cache_options", "temperature", "reasoning_effort"], 4),
        (Vendor::Anthropic, &[],                                               0),
        (Vendor::Anthropic, &["thinking"],                                     1),
        (Vendor::Anthropic, &["thinking", "effort", "temperature", "service_tier"], 4),
        (Vendor::Bedrock,   &[],                                               0),
        (Vendor::Bedrock,   &["thinking", "output_config", "temperature"],     3),
        (Vendor::Gemini,    &[],                                               0),
        (Vendor::Gemini,    &["thinkingConfig"],                               2),
        (Vendor::Gemini,    &["temperature", "service_tier"],                  2),
    ];
    for (vendor, refused, learned) in table {
        let refuses = refused.iter().map(ToString::to_string).collect();
        let (server, llm) = started(vendor, Script { refuses, ..Script::default() }).await;
        let at = format!("{vendor:?} {refused:?}");
        let reply = llm.complete(&prompt()).await.unwrap();
        assert_eq!(
            (reply.stop, server.calls().len()),
            (FinishReason::Complete, learned + 1),
            "{at}"
        );
        llm.complete(&prompt()).await.unwrap();
        assert_eq!(server.calls().len(), learned + 2, "{at}: it is learned once");
    }
}

#[tokio::test]
async fn a_model_whose_own_cap_is_below_the_reserve_is_asked_without_it() {
    for vendor in VENDORS {
        let script = Script { output_limit: Some(u64::from(CAP)), ..Script::default() };
        let (server, llm) = started(vendor, script).await;
        assert_eq!(llm.complete(&prompt()).await.unwrap().stop, FinishReason::Complete);
        assert_eq!(server.calls().len(), 2, "{vendor:?}");
    }
}

#[tokio::test]
async fn thinking_takes_nothing_from_the_reply_while_the_reserve_lasts() {
    for vendor in VENDORS {
        let server = Server::start(Script::always(Answer::Thinks { tokens: 3_000 }).from(vendor));
        let server = server.await.unwrap();
        let own = LlmConfig { effort: ModelEffort::Default, ..config_of(vendor, &server) };
        let reply = model(&own).await.complete(&prompt()).await.unwrap();
        assert_eq!(reply.stop, FinishReason::Complete, "{vendor:?}");
        let bare = LlmConfig { thinking_tokens: AutoOr::Value(0), ..own.clone() };
        let reply = model(&bare).await.complete(&prompt()).await.unwrap();
        assert_eq!(reply.stop, FinishReason::Cut, "{vendor:?}: all of the cap went into thoughts");
        let unthinking = LlmConfig { effort: ModelEffort::None, ..bare };
        let reply = model(&unthinking).await.complete(&prompt()).await.unwrap();
        assert_eq!(reply.stop, FinishReason::Complete, "{vendor:?}");
    }
}

#[tokio::test]
async fn a_limit_of_the_account_is_a_fault_of_the_provider_and_is_asked_once() {
    let limit = "You have reached your specified API usage limits. You will regain access on \
                 2026-12-01 at 00:00 UTC.";
    let quota = |id: &str, seconds| Answer::QuotaSpent { id: id.to_owned(), seconds };
    let hours = Duration::from_secs(35_640);
    #[rustfmt::skip]
    let table = [
        (Vendor::Anthropic, Answer::told(400, limit),                 Fault::Denied),
        (Vendor::Openai,    Answer::error(429, "insufficient_quota"), Fault::Denied),
        (Vendor::Gemini,    quota("GenerateRequestsPerDayPerProjectPerModel", 35_640), Fault::OverBudget(hours)),
        (Vendor::Gemini,    quota("GenerateRequestsPerMinutePerProjectPerModel", 9),
            Fault::Throttled(Some(Duration::from_secs(9)))),
    ];
    for (vendor, answer, fault) in table {
        let (server, llm) = started(vendor, Script::always(answer)).await;
        let error = llm.complete(&prompt()).await.unwrap_err();
        assert_eq!((error.fault, server.calls().len()), (fault, 1), "{vendor:?} {error}");
    }
}

#[tokio::test]
async fn further_fields_of_the_settings_are_in_the_request() {
    let script = Script { record: true, ..Script::default() };
    let server = Server::start(script.from(Vendor::Openai)).await.unwrap();
    let extra_body = toml::from_str("top_p = 0.5").unwrap();
    let config = LlmConfig { extra_body, ..config_of(Vendor::Openai, &server) };
    model(&config).await.complete(&prompt()).await.unwrap();
    let sent = server.exchanges().first().unwrap().request.clone();
    assert_eq!((sent.get("top_p"), sent.get("store")), (Some(&json!(0.5)), Some(&json!(false))));
}
