//! The cost of an invoice at a model: tokens of the prompt and of a reply, over all invoices of the corpus.
//!
//! Counted without a vendor's tokeniser: a word is a token for each six letters, a number one for each
//! three digits, punctuation one for each two signs. `--no-capture` prints the medians.

use docmill_core::config::KindsConfig;
use docmill_extract::prompt::TranscriptView;
use docmill_extract::rules::extract_by_rules;
use docmill_extract::schema::ReplySchema;
use docmill_gate::kinds::KindSet;
use serde_json::{Map, Value, json};

use super::{corpus, transcript};

/// Tokens, about as tokenisers of 2026 count them.
fn count_tokens(text: &str) -> usize {
    let class = |c: char| match c {
        ' ' => 0,
        c if c.is_alphabetic() => 1,
        c if c.is_numeric() => 2,
        _ => 3,
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for c in text.chars() {
        match runs.last_mut() {
            Some((last, length)) if *last == class(c) => *length += 1,
            _ => runs.push((class(c), 1)),
        }
    }
    let tokens = runs.into_iter().map(|(class, length)| match class {
        // A single space belongs to the word behind it.
        0 => usize::from(length > 1),
        1 => length.div_ceil(6),
        2 => length.div_ceil(3),
        _ => length.div_ceil(2),
    });
    tokens.sum()
}

fn median(mut counts: Vec<usize>) -> usize {
    counts.sort_unstable();
    counts.get(counts.len() / 2).copied().unwrap_or_default()
}

/// Takes off what no model is asked for.
fn leave_asked(schema: &Value, fields: &mut Map<String, Value>) {
    let properties = schema.get("properties").unwrap().as_object().unwrap();
    fields.retain(|name, _| properties.contains_key(name));
    for (name, value) in fields {
        let Some(items) = properties.get(name).and_then(|list| list.get("items")) else { continue };
        for entry in value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            leave_asked(items, entry);
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures stand in the manual")]
fn a_typical_invoice_takes_no_more_tokens_than_are_planned_for() {
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let kind = kinds.get("invoice").unwrap();
    let form = ReplySchema::for_kind(kind).unwrap();
    let (mut documents, mut replies) = (Vec::new(), Vec::new());
    for page in corpus().iter().filter(|page| page.value("kind") == Some("invoice")) {
        let transcript = transcript(&page.pages);
        let shown = TranscriptView::of_transcript(&transcript);
        documents.push(count_tokens(&shown.user_prompt(&shown.all_rows())));
        // The rules reader stands in for a model that finds everything.
        let mut fields = extract_by_rules(&transcript, kind).data;
        leave_asked(&kind.asked_schema(), &mut fields);
        let reply = json!({
            "fields": fields,
            "evidence": [],
            "confidence": "high",
            "extraction_successful": true,
        });
        assert_eq!(form.find_violations(&reply), [], "{:?}", page.path);
        replies.push(count_tokens(&reply.to_string()));
    }
    let (system, invoices) = (count_tokens(&form.system), documents.len());
    let schema = count_tokens(&form.schema.to_string());
    let (document, reply) = (median(documents), median(replies));
    println!(
        "tokens, medians over {invoices} invoices: {system} of stable text, {schema} of schema, \
         {document} of document, {reply} of reply"
    );
    assert!(invoices > 500);
    assert!(document <= 500, "{document} tokens of document");
    assert!(reply <= 300, "{reply} tokens of reply");
}
