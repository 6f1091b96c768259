//! The fields of a request that a server or model may refuse: what is sent, and the memory of what
//! was refused.
//!
//! Which models take which field changes with every release, and no vendor has a list to ask for. A
//! refusal (400) names the field; it is left out from then on, for the life of the process, of direct
//! calls and of batches alike. The same call is then repeated, without counting as a retry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use parking_lot::Mutex;
use reqwest::StatusCode;

use crate::{Prompt, PromptThinking};
use docmill_core::config::{BedrockFamily, LlmConfig, ModelEffort};

/// A field that may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionalField {
    /// The cap on the reply by its older name, `max_tokens`; without it by the newer one.
    OlderLimit,
    /// The switch that turns thinking off; without it the lowest effort is asked for.
    NoThinking,
    /// The effort.
    Effort,
    /// OpenAI's instruction to cache up to our mark only, and the mark.
    CacheOptions,
    /// OpenAI's key under which prompts of one kind meet the same cache.
    CacheKey,
    /// OpenAI's instruction not to keep the completion.
    Store,
    /// The class of service.
    ServiceTier,
    /// The randomness.
    Temperature,
    /// Tokens added to the cap for thinking: a model's own limit may be below the sum.
    ThinkingReserve,
}

/// In the order in which a refusal is compared with them: what is more exact comes first.
const FIELDS: [OptionalField; 9] = [
    OptionalField::OlderLimit,
    OptionalField::NoThinking,
    OptionalField::Effort,
    OptionalField::CacheOptions,
    OptionalField::CacheKey,
    OptionalField::Store,
    OptionalField::ServiceTier,
    OptionalField::Temperature,
    OptionalField::ThinkingReserve,
];

/// How effort is written by OpenAI, Anthropic, Gemini, Nova and vLLM, in lower case.
const EFFORT_NAMES: [&str; 10] = [
    "reasoning_effort",
    "reasoning.effort",
    "effort",
    "thinkinglevel",
    "thinking_level",
    "thinking level",
    "reasoningconfig",
    "chat_template_kwargs",
    "thinkingconfig",
    "thinking_config",
];
/// How thinking is switched off, in lower case; besides by an effort of none.
const THINKING_NAMES: [&str; 4] = ["thinking", "thinkingbudget", "thinking_budget", "budget"];
const CAP_NAMES: [&str; 7] = [
    "max_tokens",
    "max_completion_tokens",
    "maxtokens",
    "maximum tokens",
    "max_output_tokens",
    "maxoutputtokens",
    "completion tokens",
];

/// Words of a refusal that is about a field, in lower case: without one of them a message that
/// merely contains the word is about something else.
const COMPLAINTS: [&str; 19] = [
    "unsupported",
    "not supported",
    "does not support",
    "doesn't support",
    "unrecognized",
    "not recognized",
    "unknown",
    "extra inputs",
    "extraneous",
    "not permitted",
    "not allowed",
    "not available",
    "unexpected",
    "deprecated",
    "invalid",
    "cannot be",
    "can't be",
    "only works",
    "must be",
];
/// Words of a refusal because a cap is above the model's own, in lower case.
const TOO_LARGE: [&str; 5] = [
    "too large",
    "exceeds the model limit",
    "maximum allowed number",
    "at most",
    "supported range",
];

impl OptionalField {
    /// Fields of OpenAI's protocol alone.
    pub(crate) const OPENAI_ONLY: [Self; 4] =
        [Self::OlderLimit, Self::CacheOptions, Self::CacheKey, Self::Store];

    fn bit(self) -> u16 {
        1 << (self as u16)
    }

    /// For the log.
    fn name(self) -> &'static str {
        match self {
            Self::OlderLimit => "max_tokens",
            Self::NoThinking => "the switch that turns thinking off",
            Self::Effort => "effort",
            Self::CacheOptions => "prompt_cache_options",
            Self::CacheKey => "prompt_cache_key",
            Self::Store => "store",
            Self::ServiceTier => "service tier",
            Self::Temperature => "temperature",
            Self::ThinkingReserve => "a cap of this size (llm.thinking_tokens)",
        }
    }

    /// Whether a refusal is about this field.
    fn is_named_in(self, refusal: RefusalWords<'_>) -> bool {
        match self {
            Self::OlderLimit => {
                refusal.message.contains("max_completion_tokens")
                    || (refusal.param == Some("max_tokens") && !refusal.is_about_size())
            }
            Self::NoThinking => {
                refusal.complains_about(&EFFORT_NAMES) || refusal.complains_about(&THINKING_NAMES)
            }
            Self::Effort => refusal.complains_about(&EFFORT_NAMES),
            Self::CacheOptions => {
                refusal.complains_about(&["prompt_cache_options", "prompt_cache_breakpoint"])
            }
            Self::CacheKey => refusal.complains_about(&["prompt_cache_key"]),
            Self::Store => refusal.complains_about(&["store"]),
            Self::ServiceTier => {
                refusal.complains_about(&["service_tier", "servicetier", "service tier"])
            }
            Self::Temperature => refusal.complains_about(&["temperature"]),
            Self::ThinkingReserve => refusal.is_about_size() && refusal.names_any(&CAP_NAMES),
        }
    }
}

/// The words of a refusal that may name a field. They are compared and never passed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefusalWords<'a> {
    pub(crate) status: StatusCode,
    /// The field, where the vendor names it apart.
    pub(crate) param: Option<&'a str>,
    /// In lower case.
    pub(crate) message: &'a str,
}

impl RefusalWords<'_> {
    fn complains_about(self, names: &[&str]) -> bool {
        let param = self.param.unwrap_or_default().to_lowercase();
        names.iter().any(|name| has_word(&param, name))
            || (self.names_any(names) && COMPLAINTS.iter().any(|it| self.message.contains(it)))
    }

    fn names_any(self, names: &[&str]) -> bool {
        names.iter().any(|name| has_word(self.message, name))
    }

    fn is_about_size(self) -> bool {
        TOO_LARGE.iter().any(|words| self.message.contains(words))
    }
}

/// Whether a text has a word that is no part of a longer identifier.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text.get(..at), text.get(at + word.len()..));
        let before = before.and_then(|text| text.chars().next_back());
        let after = after.and_then(|text| text.chars().next());
        !before.is_some_and(is_identifier_part) && !after.is_some_and(is_identifier_part)
    })
}

fn is_identifier_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a field is not among those that are left out.
fn is_kept(left_out: u16, field: OptionalField) -> bool {
    left_out & field.bit() == 0
}

/// Most tokens of a cap that are made for thinking: twice the longest thoughts that vendors advise for.
const MAX_THINKING_TOKENS: u32 = 65_536;
/// In the place of the room that was made: the model refused it.
const REFUSED_ROOM: u32 = u32::MAX;

/// Requests to one model: the fields that are left out, and the room for its thinking.
#[derive(Debug, Default)]
struct LearnedTerms {
    left_out: AtomicU16,
    /// Tokens that its caps have for thinking since it filled a reply with it; zero: as configured.
    room: AtomicU32,
}

impl LearnedTerms {
    fn bits(&self) -> u16 {
        self.left_out.load(Ordering::Relaxed)
    }

    fn insert(&self, field: OptionalField) {
        self.left_out.fetch_or(field.bit(), Ordering::Relaxed);
    }

    fn room(&self) -> u32 {
        Some(self.room.load(Ordering::Relaxed)).filter(|room| *room != REFUSED_ROOM).unwrap_or(0)
    }

    /// Whether there was less room than this, and it may be made.
    fn raise_room(&self, wanted: u32) -> bool {
        self.room.fetch_max(wanted, Ordering::Relaxed) < wanted
    }

    fn refuse_room(&self) {
        self.room.store(REFUSED_ROOM, Ordering::Relaxed);
    }
}

/// The addresses and models that were asked by this process: a client for direct calls and one for
/// batches learn together.
static KNOWN: Mutex<BTreeMap<(String, String), Arc<LearnedTerms>>> = Mutex::new(BTreeMap::new());

/// How thinking is asked for in one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEffort {
    /// Nothing is said of it.
    Unsaid,
    /// It is switched off.
    Off,
    /// By one of the words that all vendors have: `low`, `medium`, `high`.
    Level(&'static str),
}

impl CallEffort {
    /// The word, if one is sent.
    pub(crate) fn level(self) -> Option<&'static str> {
        match self {
            Self::Level(level) => Some(level),
            Self::Unsaid | Self::Off => None,
        }
    }
}

/// Fields of one call beside the prompt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallOptions<'a> {
    pub(crate) effort: CallEffort,
    pub(crate) temperature: Option<f64>,
    pub(crate) service_tier: Option<&'a str>,
    /// The cap on the reply, thinking included.
    pub(crate) max_tokens: u32,
    left_out: u16,
    /// Tokens of the cap that are for thinking.
    reserve: u32,
}

impl CallOptions<'_> {
    /// Whether a field is sent that needs no value of the settings.
    pub(crate) fn keeps(self, field: OptionalField) -> bool {
        is_kept(self.left_out, field)
    }

    /// Whether the call carried a field, so that its refusal may be about it.
    fn carries(self, field: OptionalField) -> bool {
        match field {
            OptionalField::NoThinking => self.effort == CallEffort::Off,
            OptionalField::Effort => self.effort.level().is_some(),
            OptionalField::Temperature => self.temperature.is_some(),
            OptionalField::ServiceTier => self.service_tier.is_some(),
            OptionalField::ThinkingReserve => self.reserve > 0,
            _ => self.keeps(field),
        }
    }
}

/// The settings of one model's requests, and what it refused of them.
#[derive(Debug)]
pub struct RequestOptions {
    model: String,
    effort: ModelEffort,
    temperature: Option<f64>,
    reserve: u32,
    service_tier: String,
    learned: Arc<LearnedTerms>,
}

impl RequestOptions {
    /// With all fields that the settings ask for.
    pub(crate) fn new(config: &LlmConfig) -> Self {
        let place = format!("{:?} {} {}", config.provider, config.base_url, config.region);
        let key = (place, config.model.clone());
        let learned = Arc::clone(KNOWN.lock().entry(key).or_default());
        Self {
            model: config.model.clone(),
            effort: config.effort,
            temperature: config.sent_temperature(),
            reserve: config.thinking_reserve(),
            service_tier: config.service_tier.clone(),
            learned,
        }
    }

    /// The same on Bedrock, which has none of OpenAI's own fields, and of few makers' models one for effort.
    pub(crate) fn for_bedrock(config: &LlmConfig) -> Self {
        let options = Self::new(config);
        options.leave_out(&OptionalField::OPENAI_ONLY);
        if config.bedrock_family() == BedrockFamily::Other {
            options.leave_out(&[OptionalField::NoThinking, OptionalField::Effort]);
        }
        options
    }

    /// Leaves fields out that the protocol, server or model is known not to take.
    pub(crate) fn leave_out(&self, unknown: &[OptionalField]) {
        unknown.iter().for_each(|field| self.learned.insert(*field));
    }

    /// The same, without these fields.
    #[cfg(test)]
    pub(crate) fn without(self, unknown: &[OptionalField]) -> Self {
        self.leave_out(unknown);
        self
    }

    /// Tokens that are added to the cap of a reply, [`Prompt::max_output_tokens`].
    pub fn reserve(&self) -> u32 {
        let kept = is_kept(self.learned.bits(), OptionalField::ThinkingReserve);
        if kept { self.reserve.max(self.learned.room()) } else { 0 }
    }

    /// Whether less thinking than this prompt's can be asked for: the request would be another one.
    pub fn can_think_less(&self, prompt: &Prompt) -> bool {
        let left_out = self.learned.bits();
        let less = self.call_effort(PromptThinking::Less, left_out);
        less != self.call_effort(prompt.thinking, left_out)
    }

    /// Makes room in the caps of all further calls of this model, whose thoughts filled a reply of
    /// `generated` tokens: twice as much, until the next start. `false`: a call of this prompt has no more
    /// than that reply had, by our own limit or by the model's.
    pub fn make_room(&self, prompt: &Prompt, generated: u64) -> bool {
        let wanted = u32::try_from(generated.saturating_mul(2)).unwrap_or(u32::MAX);
        let wanted = wanted.min(MAX_THINKING_TOKENS);
        if self.learned.raise_room(wanted) {
            tracing::warn!(
                llm.model = self.model,
                "model {} filled a reply with thinking: until the next start its calls have {wanted} \
                 tokens for it; see llm.thinking_tokens and llm.effort",
                self.model
            );
        }
        u64::from(self.for_call(prompt).max_tokens) > generated
    }

    /// Fields of a call, without those known to be refused.
    pub(crate) fn for_call(&self, prompt: &Prompt) -> CallOptions<'_> {
        let left_out = self.learned.bits();
        let has_tier =
            !self.service_tier.is_empty() && is_kept(left_out, OptionalField::ServiceTier);
        let reserve = self.reserve();
        CallOptions {
            effort: self.call_effort(prompt.thinking, left_out),
            temperature: self.temperature.filter(|_| is_kept(left_out, OptionalField::Temperature)),
            service_tier: has_tier.then_some(self.service_tier.as_str()),
            max_tokens: prompt.max_output_tokens.saturating_add(reserve),
            left_out,
            reserve,
        }
    }

    /// Fields of a batch's question: as of a call, but batches are a class of service themselves.
    pub(crate) fn for_batch(&self, prompt: &Prompt) -> CallOptions<'_> {
        CallOptions { service_tier: None, ..self.for_call(prompt) }
    }

    fn call_effort(&self, thinking: PromptThinking, left_out: u16) -> CallEffort {
        let effort = match thinking {
            PromptThinking::AsConfigured => self.effort,
            PromptThinking::Less | PromptThinking::Longer => ModelEffort::None,
        };
        let level = match effort {
            ModelEffort::Default => return CallEffort::Unsaid,
            ModelEffort::None if is_kept(left_out, OptionalField::NoThinking) => {
                return CallEffort::Off;
            }
            // A model that cannot do without it thinks as little as it can.
            ModelEffort::None | ModelEffort::Low => "low",
            ModelEffort::Medium => "medium",
            ModelEffort::High => "high",
        };
        match is_kept(left_out, OptionalField::Effort) {
            true => CallEffort::Level(level),
            false => CallEffort::Unsaid,
        }
    }

    /// Remembers the field that a call was refused for. Returns whether there is one: the call
    /// without it is another one.
    pub(crate) fn learn(&self, sent: CallOptions<'_>, refusal: RefusalWords<'_>) -> bool {
        if !matches!(refusal.status.as_u16(), 400 | 422) {
            return false;
        }
        let mut fields = FIELDS.iter();
        let field = fields.find(|field| sent.carries(**field) && field.is_named_in(refusal));
        let Some(field) = field else { return false };
        // The room that was made goes before the reserve of the settings does.
        match *field {
            OptionalField::ThinkingReserve if sent.reserve > self.reserve => {
                self.learned.refuse_room();
            }
            field => self.learned.insert(field),
        }
        tracing::warn!(
            llm.model = self.model,
            "{} is refused for model {} and left out until the next start",
            field.name(),
            self.model
        );
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::{AutoOr, LlmProvider, LlmServer};
    use serde_json::json;

    fn prompt() -> Prompt {
        Prompt {
            system: "s".into(),
            user: "u".into(),
            schema_name: "invoice".into(),
            schema: json!({"type": "object", "properties": {}}).into(),
            schema_in_text: false,
            thinking: PromptThinking::AsConfigured,
            max_output_tokens: 1_000,
            pictures: Vec::new(),
        }
    }

    /// Everything is set that can be; `name` keeps the tests apart.
    fn all_set(name: &str) -> RequestOptions {
        let config = LlmConfig {
            provider: LlmProvider::Openai,
            server: LlmServer::Openai,
            model: name.to_owned(),
            effort: ModelEffort::None,
            temperature: AutoOr::Value(0.0),
            service_tier: "flex".to_owned(),
            ..LlmConfig::default()
        };
        RequestOptions::new(&config)
    }

    fn refusal<'a>(param: Option<&'a str>, message: &'a str) -> RefusalWords<'a> {
        RefusalWords { status: StatusCode::BAD_REQUEST, param, message }
    }

    #[test]
    fn each_vendors_words_for_a_refused_field_name_that_field() {
        use OptionalField as Field;
        #[rustfmt::skip]
        let table = [
            (Some("max_tokens"), "unsupported parameter: 'max_tokens' is not supported with this model. use 'max_completion_tokens' instead.", Field::OlderLimit),
            (Some("max_tokens"), "max_tokens is too large: 12288. this model supports at most 4096 completion tokens.", Field::ThinkingReserve),
            (None, "max_tokens: 70000 > 64000, which is the maximum allowed number of output tokens for claude", Field::ThinkingReserve),
            (None, "the maximum tokens you requested exceeds the model limit of 10000.", Field::ThinkingReserve),
            (None, "\"thinking.type.disabled\" is not supported for this model. use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.", Field::NoThinking),
            (None, "budget 0 is invalid. this model only works in thinking mode.", Field::NoThinking),
            (Some("reasoning_effort"), "unsupported value: 'none' is not supported with this model.", Field::NoThinking),
            (None, "unrecognized request argument supplied: prompt_cache_key", Field::CacheKey),
            (Some("prompt_cache_options"), "unknown parameter", Field::CacheOptions),
            (None, "unknown parameter: 'store'.", Field::Store),
            (None, "service_tier: extra inputs are not permitted", Field::ServiceTier),
            (None, "`temperature` is deprecated for this model.", Field::Temperature),
            (Some("temperature"), "unsupported value: 'temperature' does not support 0 with this model.", Field::Temperature),
            (None, "malformed input request: #: extraneous key [thinking] is not permitted", Field::NoThinking),
        ];
        for (at, (param, message, field)) in table.into_iter().enumerate() {
            let options = all_set(&format!("words {at}"));
            let (prompt, before) = (prompt(), options.learned.bits());
            assert!(options.learn(options.for_call(&prompt), refusal(param, message)), "{message}");
            assert_eq!(options.learned.bits() ^ before, field.bit(), "{message}");
        }
    }

    #[test]
    fn a_refusal_that_names_no_field_that_was_sent_teaches_nothing() {
        let (options, prompt) = (all_set("nothing"), prompt());
        for message in [
            "",
            "invalid schema for response_format",
            "the temperature of the warehouse was 4 degrees",
            "invalid image: restored from a stored file",
        ] {
            let sent = options.for_call(&prompt);
            assert!(!options.learn(sent, refusal(None, message)), "{message}");
        }
        let busy = RefusalWords {
            status: StatusCode::TOO_MANY_REQUESTS,
            ..refusal(Some("store"), "unknown parameter: 'store'")
        };
        assert!(!options.learn(options.for_call(&prompt), busy), "only a bad request is");
        assert_eq!(options.learned.bits(), 0);
    }

    #[test]
    fn a_model_that_cannot_stop_thinking_is_asked_to_think_little_and_then_nothing_is_said() {
        let (options, prompt) = (all_set("thinks"), prompt());
        assert_eq!(options.for_call(&prompt).effort, CallEffort::Off);
        let words = refusal(Some("reasoning_effort"), "unsupported value");
        for expected in [CallEffort::Level("low"), CallEffort::Unsaid] {
            assert!(options.learn(options.for_call(&prompt), words));
            assert_eq!(options.for_call(&prompt).effort, expected);
        }
        assert!(!options.learn(options.for_call(&prompt), words), "it is not sent any more");
        let config = LlmConfig { effort: ModelEffort::High, ..LlmConfig::default() };
        let options = RequestOptions::new(&LlmConfig { model: "less".to_owned(), ..config });
        assert_eq!(options.for_call(&prompt).effort, CallEffort::Level("high"));
        assert!(options.can_think_less(&prompt));
        let less = Prompt { thinking: PromptThinking::Less, ..prompt };
        assert_eq!(options.for_call(&less).effort, CallEffort::Off, "whatever the settings say");
        assert!(!options.can_think_less(&less));
    }

    #[test]
    fn room_for_thinking_doubles_up_to_a_limit_and_a_model_that_refuses_it_keeps_its_reserve() {
        let (options, prompt) = (all_set("fills"), prompt());
        assert!(!options.can_think_less(&prompt), "it thinks as little as it can");
        for (generated, cap) in [(5_096, 11_192), (11_192, 23_384), (5_096, 23_384)] {
            assert!(options.make_room(&prompt, generated));
            assert_eq!(options.for_call(&prompt).max_tokens, cap);
        }
        assert!(options.make_room(&prompt, 60_000), "as much as there may be");
        assert!(!options.make_room(&prompt, 66_536), "and no more");
        assert_eq!(all_set("fills").reserve(), MAX_THINKING_TOKENS, "every client of the model");
        let words = refusal(None, "max_tokens is too large: this model supports at most 8192");
        assert!(options.learn(options.for_call(&prompt), words));
        assert_eq!(options.reserve(), 4_096);
        assert!(!options.make_room(&prompt, 5_096), "refused once is refused");
        assert_eq!(options.reserve(), 4_096);
    }

    #[test]
    fn the_reserve_is_added_until_the_model_refuses_the_sum_and_batches_learn_with_calls() {
        let (options, other, prompt) = (all_set("shared"), all_set("shared"), prompt());
        assert_eq!(options.for_call(&prompt).max_tokens, 1_000 + 4_096);
        let words = refusal(None, "the maximum tokens you requested exceeds the model limit");
        assert!(options.learn(options.for_call(&prompt), words));
        assert_eq!(other.for_batch(&prompt).max_tokens, 1_000);
        assert_eq!(other.for_batch(&prompt).service_tier, None);
        assert_eq!(other.for_call(&prompt).service_tier, Some("flex"));
    }
}
