//! The published limits of vendors' structured outputs, in one table, and which of them a schema exceeds.
//!
//! A schema is counted as the vendor gets it. Not in the table: limits without a number, such as the size of
//! Anthropic's compiled grammar and the states of Gemini's. A schema that is refused for them is asked for by the
//! text alone.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::dialect::SchemaDialect;
use docmill_core::config::{LlmConfig, LlmProvider, LlmServer, StructuredOutput};

/// One vendor's limits.
struct VendorLimits {
    vendor: &'static str,
    dialect: SchemaDialect,
    limits: &'static [(SchemaCount, usize)],
}

/// OpenAI: developers.openai.com, structured outputs, "Supported schemas". Anthropic: platform.claude.com, structured
/// outputs, "JSON Schema limitations"; Bedrock's Converse has the same (langchain-aws #1114). One tool is sent, so the
/// limit of 20 strict ones cannot be reached. Gemini publishes no number.
const LIMITS: [VendorLimits; 4] = [
    VendorLimits {
        vendor: "openai",
        dialect: SchemaDialect::STRICT,
        limits: &[
            (SchemaCount::Properties, 5_000),
            (SchemaCount::Levels, 10),
            (SchemaCount::EnumValues, 1_000),
            (SchemaCount::NameChars, 120_000),
        ],
    },
    VendorLimits { vendor: "anthropic", dialect: SchemaDialect::SUBSET, limits: &GRAMMAR_LIMITS },
    VendorLimits { vendor: "bedrock", dialect: SchemaDialect::SUBSET, limits: &GRAMMAR_LIMITS },
    VendorLimits { vendor: "gemini", dialect: SchemaDialect::STRICT, limits: &[] },
];

const GRAMMAR_LIMITS: [(SchemaCount, usize); 2] =
    [(SchemaCount::Unions, 16), (SchemaCount::Optional, 24)];

/// A property of a schema that a vendor limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaCount {
    /// Schemas with `anyOf` or a list of types.
    Unions,
    /// Properties that are not required.
    Optional,
    /// Properties of all objects.
    Properties,
    /// Objects and lists within each other.
    Levels,
    /// Values of all enums.
    EnumValues,
    /// Characters of the names of properties and definitions and of the values of enums and constants.
    NameChars,
}

impl SchemaCount {
    fn name(self) -> &'static str {
        match self {
            Self::Unions => "unions",
            Self::Optional => "optional properties",
            Self::Properties => "properties",
            Self::Levels => "levels of nesting",
            Self::EnumValues => "values of enums",
            Self::NameChars => "characters of names and values of enums",
        }
    }
}

/// A vendor's limit that a schema exceeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExceededLimit {
    /// Whose limit it is.
    pub vendor: &'static str,
    /// The counted property, e.g. `unions`.
    pub what: &'static str,
    /// Its count in the schema.
    pub count: usize,
    /// The vendor's limit.
    pub limit: usize,
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor, what, count, limit } = self;
        write!(f, "{vendor} takes {limit} {what}, the schema has {count}")
    }
}

/// The limits of all vendors that a schema exceeds.
pub fn find_exceeded(schema: &Value) -> Vec<ExceededLimit> {
    LIMITS.iter().flat_map(|vendor| vendor.find_exceeded(schema)).collect()
}

/// The limits of one model's vendor that a schema exceeds; none where the model is not given the schema, or its
/// server publishes no limits.
pub fn find_exceeded_by(config: &LlmConfig, schema: &Value) -> Vec<ExceededLimit> {
    let published = config.provider != LlmProvider::Openai
        || matches!(config.server, LlmServer::Openai | LlmServer::Azure);
    if config.structured == StructuredOutput::Prompt || !published {
        return Vec::new();
    }
    let name = match config.provider {
        LlmProvider::Vertex if config.asks_claude() => LlmProvider::Anthropic.name(),
        LlmProvider::Vertex => LlmProvider::Gemini.name(),
        provider => provider.name(),
    };
    let own = LIMITS.iter().filter(|vendor| vendor.vendor == name);
    own.flat_map(|vendor| vendor.find_exceeded(schema)).collect()
}

impl VendorLimits {
    fn find_exceeded(&self, schema: &Value) -> Vec<ExceededLimit> {
        let mut size = SchemaSize::default();
        size.add_schema(&self.dialect.compile(schema), 0);
        let counts = self.limits.iter().map(|(what, limit)| (size.count_of(*what), what, *limit));
        let beyond = counts.filter(|(count, _, limit)| count > limit);
        beyond
            .map(|(count, what, limit)| {
                let (vendor, what) = (self.vendor, what.name());
                ExceededLimit { vendor, what, count, limit }
            })
            .collect()
    }
}

/// All counts of a schema.
#[derive(Debug, Default)]
struct SchemaSize {
    unions: usize,
    optional: usize,
    properties: usize,
    levels: usize,
    enum_values: usize,
    name_chars: usize,
}

impl SchemaSize {
    fn count_of(&self, what: SchemaCount) -> usize {
        match what {
            SchemaCount::Unions => self.unions,
            SchemaCount::Optional => self.optional,
            SchemaCount::Properties => self.properties,
            SchemaCount::Levels => self.levels,
            SchemaCount::EnumValues => self.enum_values,
            SchemaCount::NameChars => self.name_chars,
        }
    }

    /// Counts a schema that lies below `level` others.
    fn add_schema(&mut self, schema: &Value, level: usize) {
        let Some(object) = schema.as_object() else { return };
        if object.contains_key("anyOf") || object.get("type").is_some_and(Value::is_array) {
            self.unions += 1;
        }
        let holds = object.contains_key("properties") || object.contains_key("items");
        let level = level + usize::from(holds);
        self.levels = self.levels.max(level);
        let required =
            object.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (name, inner) in
            object.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            self.properties += 1;
            self.optional += usize::from(!required.iter().any(|it| it == name.as_str()));
            self.name_chars += name.chars().count();
            self.add_schema(inner, level);
        }
        for key in ["$defs", "definitions"] {
            for (name, inner) in object.get(key).and_then(Value::as_object).into_iter().flatten() {
                self.name_chars += name.chars().count();
                self.add_schema(inner, 0);
            }
        }
        let values = object.get("enum").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        self.enum_values += values.len();
        for text in values.iter().chain(object.get("const")).filter_map(Value::as_str) {
            self.name_chars += text.chars().count();
        }
        if let Some(items) = object.get("items") {
            self.add_schema(items, level);
        }
        for inner in object.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
            self.add_schema(inner, level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn object(properties: Map<String, Value>) -> Value {
        let required: Vec<&String> = properties.keys().collect();
        json!({"type": "object", "properties": properties, "required": required})
    }

    fn many(count: usize, schema: &Value) -> Value {
        object((0..count).map(|at| (format!("p{at:0>9}"), schema.clone())).collect())
    }

    fn exceeded(schema: &Value) -> Vec<String> {
        find_exceeded(schema).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_limit_is_exceeded_once_it_is_passed_by_one() {
        let text = json!({"type": "string"});
        let union = json!({"anyOf": [{"type": "string"}, {"type": "number"}]});
        let nested = |levels: usize| {
            (0..levels)
                .fold(text.clone(), |inner, _| object(Map::from_iter([("a".to_owned(), inner)])))
        };
        let listed = |count: usize| {
            let values: Vec<String> = (0..count).map(|at| at.to_string()).collect();
            many(1, &json!({"type": "string", "enum": values}))
        };
        let long = |chars: usize| many(1, &json!({"const": "x".repeat(chars - 10)}));
        #[rustfmt::skip]
        let table = [
            (many(16, &union),  many(17, &union),    "anthropic takes 16 unions, the schema has 17"),
            (many(16, &union),  many(17, &union),    "bedrock takes 16 unions, the schema has 17"),
            (many(5_000, &text), many(5_001, &text), "openai takes 5000 properties, the schema has 5001"),
            (nested(10),        nested(11),          "openai takes 10 levels of nesting, the schema has 11"),
            (listed(1_000),     listed(1_001),       "openai takes 1000 values of enums, the schema has 1001"),
            (long(120_000),     long(120_001),       "openai takes 120000 characters of names and values of enums, the schema has 120001"),
        ];
        for (within, beyond, words) in table {
            assert_eq!(exceeded(&within), Vec::<String>::new(), "{words}");
            assert!(
                exceeded(&beyond).iter().any(|line| line == words),
                "{words}: {:?}",
                exceeded(&beyond)
            );
        }
    }

    #[test]
    fn what_may_be_missing_is_no_union_at_anthropic_and_nothing_is_optional() {
        let nullable = json!({"type": ["number", "null"]});
        let mut schema = many(60, &nullable);
        schema["required"] = json!([]);
        assert_eq!(exceeded(&schema), Vec::<String>::new());
    }

    #[test]
    fn a_model_that_is_asked_by_text_or_whose_server_publishes_nothing_exceeds_nothing() {
        let schema = many(5_001, &json!({"type": "string"}));
        let openai = LlmConfig {
            provider: LlmProvider::Openai,
            server: LlmServer::Openai,
            ..LlmConfig::default()
        };
        let by_text = LlmConfig { structured: StructuredOutput::Prompt, ..openai.clone() };
        let own = LlmConfig { server: LlmServer::Vllm, ..openai.clone() };
        let counts = [openai, by_text, own].map(|config| find_exceeded_by(&config, &schema).len());
        assert_eq!(counts, [1, 0, 0]);
    }
}
