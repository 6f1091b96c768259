//! The forms of what the interface for programs is asked and answers. Written down by hand; a test
//! holds them against real answers.

use serde_json::{Map, Value, json};

/// The fields of every object: name and type, `?` for what may be null, `[]` for a list.
const OBJECTS: [(&str, &str); 21] = [
    (
        "SubmittedDocument",
        "document_id:uuid? ingestion_id:uuid? fate:text status:text? problem:text?",
    ),
    ("Problem", "type:text title:text status:int code:text detail:text"),
    ("Overview", "service:any cost_today:any"),
    ("IngestionPage", "items:Ingestion[] next_cursor:uuid?"),
    ("Ingestion", INGESTION),
    (
        "Attempt",
        "claims:int worker:text? started_at:time? ended_at:time stage:text? outcome:text \
        final:bool counted:bool detail:text?",
    ),
    (
        "IngestionResult",
        "ingestion_id:uuid document_id:uuid status:text reason:text? data:any \
        document_data:any needs_human_review:bool review_reasons:text[]",
    ),
    ("IngestionChange", "ingestion_id:uuid change:text problem:text?"),
    ("ReviewPage", "items:ReviewRow[] next_cursor:uuid?"),
    (
        "ReviewRow",
        "document_id:uuid file_path:text original_name:text? tenant:text? kind:text? \
        review_reasons:text[] decided_before:bool since:time status:text? held_by:text? \
        held_since:time? amount:number? currency:text?",
    ),
    (
        "ReviewCase",
        "document_id:uuid file_path:text original_name:text? tenant:text? \
        needs_human_review:bool review_reasons:text[] document_data:any version:time \
        ingestion_id:uuid? status:text? reason:text? kind:text? ingestion_data:any \
        transcription_file_path:text? held:any pending:any revisions:Revision[]",
    ),
    (
        "Revision",
        "decided_at:time reviewer:text decision:text why:text awaits_second:bool first_by:text? \
        data_before:any data_after:any",
    ),
    (
        "RecordedDecision",
        "document_id:uuid decision:text data:any awaits_second:bool undo_until:time?",
    ),
    ("UploadAddress", "upload_id:uuid method:text url:text headers:any expires_at:time"),
    ("TranscriptChunks", "sha256:text chunks:TextChunk[]"),
    ("TextChunk", "number:int tokens:int headings:text[] text:text spots:any"),
    ("WebhookTargets", "items:WebhookTarget[]"),
    (
        "WebhookTarget",
        "name:text place:text events:text[] tenant:text seen_at:time disabled_at:time? \
        disabled_why:text open:int oldest_s:number? dead:int",
    ),
    ("DeliveryPage", "items:WebhookDelivery[] next_cursor:text?"),
    (
        "WebhookDelivery",
        "id:int target:text event:text event_id:uuid document_id:uuid ingestion_id:uuid? \
        occurred_at:time state:text since:time tries:int due_at:time? last_status:int? \
        last_problem:text?",
    ),
    ("EnabledWebhook", "enabled:bool"),
];

const INGESTION: &str = "id:uuid document_id:uuid file_path:text original_name:text? status:text \
    reason:text? detail:text? stage:text? kind:text? tenant:text? attempt_count:int crashes:int \
    created_at:time started_at:time? completed_at:time? next_attempt_at:time? \
    lease_expires_at:time? worker:text? needs_human_review:bool review_reasons:text[] reader:text? \
    extraction_model:text? extraction_input_tokens:int? extraction_output_tokens:int? \
    transcription_quality_score:number? transcription_file_path:text? preprocessed_file_path:text? \
    extraction_output_file_path:text? sha256:text? pages:int? gate_score:number? \
    extraction_successful:bool? extraction_confidence:text? missing_fields:text[]? \
    structured_data:any";

/// The schemas of everything that is asked and answered.
pub(super) fn describe_schemas(kinds: &[&str]) -> Value {
    let mut all: Map<String, Value> =
        OBJECTS.iter().map(|(name, fields)| ((*name).to_owned(), object_schema(fields))).collect();
    let history =
        format!("{INGESTION} state:text? explanation:text? attempts:Attempt[] grounded:any");
    all.insert("IngestionHistory".to_owned(), object_schema(&history));
    for name in ["Transcript", "TranscriptPage", "Description"] {
        all.insert(name.to_owned(), json!({ "type": "object" }));
    }
    let binary = json!({ "type": "string", "format": "binary" });
    all.insert("PagePicture".to_owned(), binary);
    let ids = json!({ "type": "array", "items": { "type": "integer" } });
    let report = json!({ "type": "object", "additionalProperties": false,
        "required": ["replayed", "left"], "properties": { "replayed": ids, "left": ids } });
    all.insert("ReplayReport".to_owned(), report);
    all.extend(request_schemas(kinds));
    Value::Object(all)
}

/// What is posted.
fn request_schemas(kinds: &[&str]) -> Vec<(String, Value)> {
    let text = json!({ "type": "string" });
    let priority = json!({ "enum": ["critical", "high", "normal", "low", "background", null] });
    let maybe = json!({ "type": ["string", "null"] });
    let kind = json!({ "anyOf": [{ "enum": kinds }, { "type": "null" }] });
    let object = |required: Value, properties: Value| {
        json!({ "type": "object", "additionalProperties": false, "required": required,
            "properties": properties })
    };
    let named = |name: &str, schema: Value| (name.to_owned(), schema);
    let reference = json!({ "object": { "type": "string",
        "description": "s3://bucket/key, or a key of the store's own bucket" },
        "kind": kind, "tenant": maybe, "priority": priority });
    let completion = json!({ "name": text, "kind": kind, "tenant": maybe, "priority": priority });
    // Up to where every program's numbers are exact.
    let size = json!({ "type": "integer", "minimum": 1, "maximum": 9_007_199_254_740_991_u64,
        "description": "bytes, no more, no fewer" });
    let ids = json!({ "type": "array", "minItems": 1, "maxItems": 1000,
        "items": { "type": "integer", "format": "int64" } });
    let replay = json!({ "oneOf": [
        object(json!(["deliveries"]), json!({ "deliveries": ids, "why": text })),
        object(json!(["dead_of"]), json!({ "dead_of": text, "why": text })),
    ] });
    vec![
        named("ChangeRequest", object(json!([]), json!({ "why": text }))),
        named("ReferenceRequest", object(json!(["object"]), reference)),
        named("UploadRequest", object(json!(["size"]), json!({ "size": size }))),
        named("CompletionRequest", object(json!([]), completion)),
        named("ReplayRequest", replay),
        named("DecisionRequest", decision_schema()),
    ]
}

fn decision_schema() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["decision"],
        "properties": {
            "decision": { "enum": ["accepted", "corrected", "rejected"] },
            "why": { "type": "string", "description": "Needed to reject." },
            "newest": { "type": "boolean",
                "description": "With accepted: what the newest ingestion read." },
            "take_over": { "type": "boolean",
                "description": "Also if somebody else has the document open." },
            "data": { "description": "With corrected: the whole data." },
            "fields": { "type": "object",
                "description": "With corrected: these fields, null for none." },
        },
    })
}

fn object_schema(fields: &str) -> Value {
    let fields = fields.split_whitespace().filter_map(|field| field.split_once(':'));
    let properties: Map<String, Value> =
        fields.map(|(name, kind)| (name.to_owned(), type_schema(kind))).collect();
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "additionalProperties": false, "required": required,
        "properties": properties })
}

fn type_schema(kind: &str) -> Value {
    let (name, null) = match kind.strip_suffix('?') {
        Some(name) => (name, true),
        None => (kind, false),
    };
    if let Some(element) = name.strip_suffix("[]") {
        let kind = if null { json!(["array", "null"]) } else { json!("array") };
        return json!({ "type": kind, "items": type_schema(element) });
    }
    let (plain, format) = match name {
        "any" => return json!({}),
        "text" => ("string", None),
        "uuid" => ("string", Some("uuid")),
        "time" => ("string", Some("date-time")),
        "int" => ("integer", None),
        "number" => ("number", None),
        "bool" => ("boolean", None),
        other => return json!({ "$ref": format!("#/components/schemas/{other}") }),
    };
    let mut schema =
        if null { json!({ "type": [plain, "null"] }) } else { json!({ "type": plain }) };
    if let (Some(format), Value::Object(fields)) = (format, &mut schema) {
        fields.insert("format".to_owned(), Value::from(format));
    }
    schema
}
