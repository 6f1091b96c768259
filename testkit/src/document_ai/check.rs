//! Whether a request is one that the real service would take.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::pictures::{Seen, seen};

/// Most bytes of a file in an online call.
const MAX_BYTES: usize = 40 << 20;
/// Most pages, and with `imagelessMode`.
const MAX_PAGES: usize = 15;
const MAX_PAGES_IMAGELESS: usize = 30;

/// Whether the path is that of a processor or of one of its versions.
pub(super) fn is_process(path: &str) -> bool {
    let Some(path) = path.strip_prefix("/v1/").and_then(|path| path.strip_suffix(":process"))
    else {
        return false;
    };
    let parts: Vec<&str> = path.split('/').collect();
    let names = parts.chunks(2).all(|pair| pair.get(1).is_some_and(|name| !name.is_empty()));
    let kinds: Vec<&str> = parts.iter().step_by(2).copied().collect();
    let known: [&[&str]; 2] = [
        &["projects", "locations", "processors"],
        &["projects", "locations", "processors", "processorVersions"],
    ];
    names && known.contains(&kinds.as_slice())
}

/// The pictures in a request, or what is wrong with it in the service's words.
pub(super) fn request(body: &Value) -> Result<Vec<Seen>, String> {
    let root = object(
        body,
        "",
        &["rawDocument", "skipHumanReview", "fieldMask", "imagelessMode", "processOptions"],
    )?;
    let raw = part(root, "rawDocument")?;
    let raw = object(raw, "raw_document", &["content", "mimeType", "displayName"])?;
    let content = part(raw, "content")?.as_str().and_then(|text| STANDARD.decode(text).ok());
    let content = content.ok_or("raw_document.content: Base64 decoding failed")?;
    if content.len() > MAX_BYTES {
        let size = content.len();
        return Err(format!("Document size ({size}) exceeds the limit: {MAX_BYTES}."));
    }
    let mime = part(raw, "mimeType")?.as_str().unwrap_or_default();
    let right: &[u8] = match mime {
        "application/pdf" => b"%PDF-",
        "image/png" => b"\x89PNG",
        "image/jpeg" => &[0xff, 0xd8],
        _ => return Err(format!("Unsupported mime type: {mime}")),
    };
    let pages = seen(&content).filter(|_| content.starts_with(right));
    let pages = pages.ok_or("The document is not of its mime type.")?;
    let imageless = flag(root, "imagelessMode")?;
    let most = if imageless { MAX_PAGES_IMAGELESS } else { MAX_PAGES };
    if pages.is_empty() || pages.len() > most {
        let count = pages.len();
        return Err(format!("Document pages exceed the limit: {most} got {count}"));
    }
    mask(root)?;
    options(root)?;
    Ok(pages)
}

fn mask(root: &Map<String, Value>) -> Result<(), String> {
    let mask = part(root, "fieldMask")?.as_str().ok_or("field_mask is a text")?;
    match mask.split(',').find(|path| !is_allowed_path(path)) {
        Some(path) => Err(format!("Invalid field mask path: {path}")),
        None => Ok(()),
    }
}

fn is_allowed_path(path: &str) -> bool {
    match path.split_once('.') {
        None => ["text", "error", "mimeType", "pages", "entities"].contains(&path),
        Some(("pages", field)) => [
            "pageNumber",
            "image",
            "dimension",
            "layout",
            "detectedLanguages",
            "blocks",
            "paragraphs",
            "lines",
            "tokens",
            "transforms",
            "imageQualityScores",
        ]
        .contains(&field),
        Some(_) => false,
    }
}

fn options(root: &Map<String, Value>) -> Result<(), String> {
    let known = ["ocrConfig", "individualPageSelector", "fromStart", "fromEnd", "layoutConfig"];
    let options = object(part(root, "processOptions")?, "process_options", &known)?;
    let known = [
        "enableNativePdfParsing",
        "enableImageQualityScores",
        "enableSymbol",
        "hints",
        "advancedOcrOptions",
    ];
    let config = object(part(options, "ocrConfig")?, "ocr_config", &known)?;
    flag(config, "enableNativePdfParsing")?;
    flag(config, "enableImageQualityScores")?;
    if let Some(hints) = config.get("hints") {
        let hints = object(hints, "hints", &["languageHints"])?;
        let names = part(hints, "languageHints")?.as_array().ok_or("language_hints is a list")?;
        if names.iter().any(|name| !name.is_string()) {
            return Err("language_hints are texts".to_owned());
        }
    }
    Ok(())
}

fn part<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a Value, String> {
    object.get(name).ok_or_else(|| format!("{name} is missing"))
}

fn flag(object: &Map<String, Value>, name: &str) -> Result<bool, String> {
    match object.get(name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("{name}: not a Boolean")),
    }
}

fn object<'a>(
    value: &'a Value,
    name: &str,
    known: &[&str],
) -> Result<&'a Map<String, Value>, String> {
    let object = value.as_object().ok_or_else(|| format!("{name}: not an object"))?;
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("Unknown name \"{key}\" at '{name}': Cannot find field.")),
        None => Ok(object),
    }
}
