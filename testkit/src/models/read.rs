//! The simple reader behind the default answer: reads plain invoices line by line.
//!
//! Works on any prompt that shows the document as `p1.l12| text` and asks for an object with
//! `fields` and `evidence`. A stand-in for a model, not a good one.

use serde_json::{Map, Value, json};

const LABELS: [(&str, &[&str]); 7] = [
    ("supplier_vat_id", &["tax id"]),
    ("invoice_number", &["invoice number", "invoice no", "rechnungsnummer", "facture no"]),
    ("invoice_date", &["invoice date", "rechnungsdatum", "date"]),
    ("due_date", &["due date", "payment due", "fällig"]),
    ("subtotal", &["subtotal", "net total", "zwischensumme"]),
    ("vat_amount", &["vat amount", "vat", "mwst", "tva"]),
    ("total", &["total due", "grand total", "total", "gesamtbetrag"]),
];

/// A request's task, whichever vendor's it is.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) system: String,
    pub(crate) user: String,
    /// Of the whole reply.
    pub(crate) schema: Value,
}

/// Where vendors put the schema; Bedrock's is a text.
const SCHEMAS: [&str; 6] = [
    "/response_format/json_schema/schema",
    "/output_config/format/schema",
    "/tools/0/input_schema",
    "/outputConfig/textFormat/structure/jsonSchema/schema",
    "/toolConfig/tools/0/toolSpec/inputSchema/json",
    "/generationConfig/responseJsonSchema",
];

/// The text before the schema in docmill's prompts.
const IN_PROMPT: &str = "JSON Schema of the reply:\n";

/// Reads what a request asks for.
pub(crate) fn asked(body: &Value) -> Asked {
    let messages = body.get("messages").and_then(Value::as_array);
    let message = |role: &str| {
        let messages = messages.into_iter().flatten();
        let mut found =
            messages.filter(|message| message.get("role").and_then(Value::as_str) == Some(role));
        found.next().map(|message| content(message.get("content").unwrap_or(&Value::Null)))
    };
    let system = message("system").or_else(|| body.get("system").map(content));
    let system = system.or_else(|| body.pointer("/systemInstruction/parts").map(content));
    let user = message("user").or_else(|| body.pointer("/contents/0/parts").map(content));
    let system = system.unwrap_or_default();
    let schema = SCHEMAS.iter().find_map(|pointer| body.pointer(pointer)).cloned();
    let schema = match schema {
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or_default(),
        Some(schema) => schema,
        None => in_prompt(&system).unwrap_or_default(),
    };
    Asked { system, user: user.unwrap_or_default(), schema }
}

/// A text, or the texts of blocks.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(block_text).collect(),
        _ => String::new(),
    }
}

fn block_text(block: &Value) -> Option<String> {
    block.get("text").and_then(Value::as_str).map(str::to_owned)
}

fn in_prompt(system: &str) -> Option<Value> {
    let (_, rest) = system.split_once(IN_PROMPT)?;
    serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
}

/// The document lines of a request: id and text.
pub fn document_lines(body: &Value) -> Vec<(String, String)> {
    let user = asked(body).user;
    user.lines().filter_map(line).map(|(id, text)| (id.to_owned(), text.to_owned())).collect()
}

/// Splits a line of a prompt (`p1.l12| text`) into its id and its text.
fn line(text: &str) -> Option<(&str, &str)> {
    let (id, text) = text.split_once("| ")?;
    let (page, line) = id.strip_prefix('p')?.split_once(".l")?;
    (is_number(page) && is_number(line)).then_some((id, text))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The line before the first document line: the fence.
pub(crate) fn marker(body: &Value) -> Option<String> {
    let mut before = None;
    for text in asked(body).user.lines() {
        if line(text).is_some() {
            return before;
        }
        before = Some(text.to_owned());
    }
    None
}

/// Reads the document of a request into the schema it asks for.
pub fn read_document(body: &Value) -> Value {
    let lines: Vec<(String, String)> = document_lines(body)
        .into_iter()
        // The cells in front of a label are empty.
        .map(|(id, text)| (id, text.trim_start_matches([' ', '|']).to_owned()))
        .collect();
    let schema = asked(body).schema;
    let wanted = schema.pointer("/properties/fields/properties");
    let wanted = wanted.and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut fields, mut evidence) = (Map::new(), Vec::new());
    for (name, schema) in &wanted {
        let (value, ids) = field(name, schema, &lines);
        for (suffix, id) in ids {
            evidence.push(json!({"field": format!("{name}{suffix}"), "lines": [id]}));
        }
        fields.insert(name.clone(), completed(schema, value));
    }
    json!({
        "fields": fields,
        "evidence": evidence,
        "confidence": "high",
        "extraction_successful": true,
    })
}

/// The value with everything that its schema demands: what is missing is null, or empty where null is not allowed.
fn completed(schema: &Value, value: Value) -> Value {
    let of_object = schema.get("properties").or_else(|| schema.pointer("/anyOf/0/properties"));
    let of_list = schema.get("items").or_else(|| schema.pointer("/anyOf/0/items"));
    match value {
        Value::Null => empty(schema),
        Value::Array(entries) => {
            let items = of_list.unwrap_or(&Value::Null);
            entries.into_iter().map(|entry| completed(items, entry)).collect()
        }
        Value::Object(mut object) => {
            let properties = of_object.and_then(Value::as_object).into_iter().flatten();
            let whole = properties.map(|(name, inner)| {
                (name.clone(), completed(inner, object.remove(name).unwrap_or_default()))
            });
            Value::Object(whole.collect())
        }
        value => value,
    }
}

fn empty(schema: &Value) -> Value {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!(""),
        Some("array") => json!([]),
        Some("object") => completed(schema, json!({})),
        _ => Value::Null,
    }
}

type Ids = Vec<(String, String)>;

fn field(name: &str, schema: &Value, lines: &[(String, String)]) -> (Value, Ids) {
    match name {
        "line_items" => items(schema, lines),
        "supplier_name" => lines
            .first()
            .map_or((Value::Null, Vec::new()), |(id, text)| with_evidence(json!(text), id)),
        "supplier_address" => lines
            .get(1)
            .filter(|(_, text)| text.contains(','))
            .map_or((Value::Null, Vec::new()), |(id, text)| with_evidence(json!(text), id)),
        "currency" => ["EUR", "USD", "GBP", "CHF"]
            .iter()
            .find_map(|code| {
                let (id, _) = lines.iter().find(|(_, text)| text.contains(code))?;
                Some(with_evidence(json!(code), id))
            })
            .unwrap_or((Value::Null, Vec::new())),
        _ => {
            let labels = LABELS.iter().find(|(field, _)| *field == name).map(|(_, labels)| *labels);
            labels
                .into_iter()
                .flatten()
                .find_map(|label| {
                    let (id, text) =
                        lines.iter().find(|(_, text)| text.to_lowercase().starts_with(label))?;
                    Some(with_evidence(value(name, schema, text.get(label.len()..)?)?, id))
                })
                .unwrap_or((Value::Null, Vec::new()))
        }
    }
}

/// A value with one line as its evidence.
fn with_evidence(value: Value, id: &str) -> (Value, Ids) {
    (value, vec![(String::new(), id.to_owned())])
}

fn value(name: &str, schema: &Value, rest: &str) -> Option<Value> {
    let last = rest.split_whitespace().rfind(|word| word.bytes().any(|b| b.is_ascii_digit()))?;
    if name.ends_with("_date") {
        return Some(json!(date(last)));
    }
    if matches!(name, "subtotal" | "vat_amount" | "total") {
        return amount(schema, last);
    }
    Some(json!(last))
}

/// A printed amount as its schema asks for it: a number, or a text, which may be a copy.
fn amount(schema: &Value, printed: &str) -> Option<Value> {
    let (number, schema) = (number(printed)?, schema.to_string());
    Some(match () {
        () if schema.contains("\"number\"") => json!(number),
        () if schema.contains("as printed)") => json!(printed),
        () => json!(format!("{number:.2}")),
    })
}

/// `1,234.50`, `1.234,50`, `12`, with any currency sign.
fn number(text: &str) -> Option<f64> {
    let text: String =
        text.chars().filter(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '-')).collect();
    let point = text.rfind(['.', ',']);
    let plain: String = text
        .char_indices()
        .filter_map(|(at, c)| match c {
            '.' | ',' if Some(at) == point && text.len() - at == 3 => Some('.'),
            '.' | ',' => None,
            c => Some(c),
        })
        .collect();
    plain.parse().ok()
}

/// ISO and day-first dates as ISO.
fn date(text: &str) -> String {
    let parts: Vec<&str> = text.split(['.', '/', '-']).collect();
    match parts.as_slice() {
        [day, month, year] if year.len() == 4 => format!("{year}-{month:0>2}-{day:0>2}"),
        _ => text.to_owned(),
    }
}

/// Lines that end in quantity, unit price and amount. A line with nothing else has its description
/// on another line; its description is null.
fn items(schema: &Value, lines: &[(String, String)]) -> (Value, Ids) {
    // Some dialects write "or null" as an alternative.
    let list = ["/items", "/anyOf/0/items"].into_iter().find_map(|at| schema.pointer(at));
    let price = list.and_then(|list| list.pointer("/properties/amount")).unwrap_or(&Value::Null);
    let (mut items, mut ids) = (Vec::new(), Vec::new());
    for (id, text) in lines {
        // A bar separates cells.
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "|").collect();
        let Some((description, [quantity, unit, total])) = words.split_last_chunk::<3>() else {
            continue;
        };
        if ![quantity, unit, total].into_iter().all(|word| starts_with_digit(word)) {
            continue;
        }
        let description = Some(description.join(" ")).filter(|text| !text.is_empty());
        let cell = |word| amount(price, word);
        ids.push((format!("[{}]", items.len()), id.clone()));
        items.push(json!({
            "description": description,
            "quantity": cell(quantity),
            "unit_price": cell(unit),
            "amount": cell(total),
        }));
    }
    (Value::Array(items), ids)
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_dates_of_both_habits_are_read() {
        for (text, expected) in [("1,234.50", 1234.5), ("1.234,50", 1234.5), ("EUR12", 12.0)] {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        for (text, expected) in [("2026-03-01", "2026-03-01"), ("1.3.2026", "2026-03-01")] {
            assert_eq!(date(text), expected);
        }
    }
}
