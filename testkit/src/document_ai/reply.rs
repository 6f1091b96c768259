//! Replies in the dialect of the real service.
#![expect(clippy::indexing_slicing, reason = "a key of a JSON object made here")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::pictures::Seen;

/// The content of a page.
#[derive(Debug, Clone)]
pub struct Said {
    /// The lines of the page, each of words set apart by spaces.
    pub lines: Vec<String>,
    /// Confidence of every token.
    pub confidence: f64,
    /// Score of the picture; zero is left out, as the dialect does.
    pub score: f64,
    /// Names behind `quality/defect_`, and how surely.
    pub defects: Vec<(&'static str, f64)>,
    /// How the page image was straightened.
    pub straightened: Option<Straightened>,
}

/// A page image that is not the picture that was sent.
#[derive(Debug, Clone, Copy)]
pub struct Straightened {
    /// First two rows of the matrix from the picture's points to the page image's.
    pub matrix: [f64; 6],
    /// Size of the page image.
    pub size: (f64, f64),
}

impl Said {
    /// The size of the picture, in words with letters of one to four bytes.
    pub fn of_size(seen: Seen) -> Self {
        let Seen { width, height } = seen;
        Self {
            lines: vec![
                format!("Größe {width} x {height}"),
                format!("Rechnung INV-{width}-𝟚 für Zürich"),
            ],
            confidence: 0.96,
            score: 0.92,
            defects: Vec::new(),
            straightened: None,
        }
    }
}

/// Left edge, top edge, width and height of word `word` on line `line`, as shares of the picture.
fn place(line: usize, word: usize) -> [f64; 4] {
    [0.1 + 0.12 * as_float(word), 0.1 + 0.03 * as_float(line), 0.1, 0.02]
}

fn as_float(count: usize) -> f64 {
    f64::from(u16::try_from(count).unwrap_or(u16::MAX))
}

/// The answer to a request about these pages.
pub(super) fn reply(request: &Value, said: &[(Seen, Said)]) -> Value {
    let mask = request.get("fieldMask").and_then(Value::as_str).unwrap_or_default();
    let asked = |path: &str| mask.split(',').any(|name| name == path || name == "pages");
    let config = request.pointer("/processOptions/ocrConfig/enableImageQualityScores");
    let scores = config == Some(&Value::Bool(true));
    let mut text = Text::default();
    let pages = (1..).zip(said).map(|(number, (seen, said)): (u32, _)| {
        let page = page(number, (*seen, said), &mut text, scores);
        page.into_iter()
            .filter(|(field, _)| asked(&format!("pages.{field}")))
            .collect::<Map<_, _>>()
    });
    let pages: Vec<Map<String, Value>> = pages.collect();
    let mut document = json!({"pages": pages});
    if asked("text") {
        document["text"] = Value::String(text.text);
    }
    json!({"document": document, "humanReviewStatus": {"state": "SKIPPED"}})
}

/// The text of all pages so far.
#[derive(Default)]
struct Text {
    text: String,
    characters: usize,
}

impl Text {
    /// Adds a piece; its anchor.
    fn add(&mut self, piece: &str) -> Value {
        let start = self.characters;
        self.text.push_str(piece);
        self.characters += piece.chars().count();
        anchor(start, self.characters)
    }
}

/// Zeros are left out and numbers are strings.
fn anchor(start: usize, end: usize) -> Value {
    let mut segment = Map::new();
    if start > 0 {
        segment.insert("startIndex".to_owned(), json!(start.to_string()));
    }
    segment.insert("endIndex".to_owned(), json!(end.to_string()));
    json!({"textSegments": [segment]})
}

fn page(
    number: u32,
    (seen, said): (Seen, &Said),
    text: &mut Text,
    scores: bool,
) -> Map<String, Value> {
    let (width, height) = (f64::from(seen.width), f64::from(seen.height));
    let own = said.straightened.map_or((width, height), |straightened| straightened.size);
    let poly = |[x, y, w, h]: [f64; 4]| {
        let corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)];
        let vertices = corners.map(|(x, y)| {
            let (x, y) = (x * width, y * height);
            let (x, y) = said.straightened.map_or((x, y), |Straightened { matrix, .. }| {
                let [a, b, c, d, e, f] = matrix;
                (a * x + b * y + c, d * x + e * y + f)
            });
            json!({"x": x / own.0, "y": y / own.1})
        });
        json!({"normalizedVertices": vertices})
    };
    let (mut lines, mut tokens) = (Vec::new(), Vec::new());
    for (line, words) in said.lines.iter().enumerate() {
        let start = text.characters;
        let count = words.split(' ').count();
        for (at, word) in words.split(' ').enumerate() {
            let after = if at + 1 == count { "\n" } else { " " };
            let pieces = pieces(word);
            let last = pieces.len().saturating_sub(1);
            for (piece_at, piece) in pieces.into_iter().enumerate() {
                let whole = if piece_at == last { format!("{piece}{after}") } else { piece };
                let mut token = json!({"layout": {
                    "textAnchor": text.add(&whole),
                    "confidence": said.confidence,
                    "boundingPoly": poly(place(line, at)),
                    "orientation": "PAGE_UP",
                }});
                if piece_at == last {
                    token["detectedBreak"] = json!({"type": "SPACE"});
                }
                tokens.push(token);
            }
        }
        lines.push(json!({"layout": {
            "textAnchor": anchor(start, text.characters),
            "confidence": said.confidence,
            "boundingPoly": poly([0.1, 0.1, 0.8, 0.02]),
        }}));
    }
    let mut page = Map::new();
    let mut put = |name: &str, value: Value| page.insert(name.to_owned(), value);
    put("pageNumber", json!(number));
    put("dimension", json!({"width": own.0, "height": own.1, "unit": "pixels"}));
    put("detectedLanguages", json!([{"languageCode": "de", "confidence": 0.8}]));
    put("lines", Value::Array(lines));
    put("tokens", Value::Array(tokens));
    if let Some(Straightened { matrix, .. }) = said.straightened {
        put("transforms", json!([stored(matrix)]));
    }
    if scores {
        put("imageQualityScores", quality(said));
    }
    page
}

/// A word in parts: punctuation is a token of its own.
fn pieces(word: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for letter in word.chars() {
        if letter == '-' {
            pieces.push(letter.to_string());
            pieces.push(String::new());
        } else if let Some(last) = pieces.last_mut() {
            last.push(letter);
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

fn quality(said: &Said) -> Value {
    let defects = said.defects.iter().map(|(name, confidence)| {
        json!({"type": format!("quality/defect_{name}"), "confidence": confidence})
    });
    let mut scores = Map::new();
    if said.score > 0.0 {
        scores.insert("qualityScore".to_owned(), json!(said.score));
    }
    scores.insert("detectedDefects".to_owned(), defects.collect());
    Value::Object(scores)
}

/// As `OpenCV` stores it: three rows of doubles.
fn stored(matrix: [f64; 6]) -> Value {
    let numbers = matrix.into_iter().chain([0.0, 0.0, 1.0]);
    let bytes: Vec<u8> = numbers.flat_map(f64::to_le_bytes).collect();
    json!({"rows": 3, "cols": 3, "type": 6, "data": STANDARD.encode(bytes)})
}
