//! Replies as blocks.
#![expect(clippy::indexing_slicing, reason = "a key of a JSON object made here")]

use serde_json::{Value, json};

use super::File;

/// Version of the model, as the service names it.
const VERSION: &str = "1.0";

/// The answer about a picture with these lines of words.
pub(super) fn detected(lines: &[String], confidence: f64) -> Value {
    json!({
        "DocumentMetadata": {"Pages": 1},
        "Blocks": blocks(1, lines, confidence),
        "DetectDocumentTextModelVersion": VERSION,
    })
}

/// The answer about a picture with these fields and lines.
pub(super) fn expense(
    summary: &[(String, String)],
    lines: &[Vec<(String, String)>],
    confidence: f64,
) -> Value {
    let lines: Vec<Value> = lines
        .iter()
        .map(|line| json!({"LineItemExpenseFields": expense_fields(line, confidence)}))
        .collect();
    json!({
        "DocumentMetadata": {"Pages": 1},
        "ExpenseDocuments": [{
            "ExpenseIndex": 1,
            "SummaryFields": expense_fields(summary, confidence),
            "LineItemGroups": [{"LineItemGroupIndex": 1, "LineItems": lines}],
        }],
    })
}

fn expense_fields(fields: &[(String, String)], confidence: f64) -> Vec<Value> {
    let rows = fields.iter().enumerate();
    rows.map(|(row, (name, text))| {
        json!({
            "Type": {"Text": name, "Confidence": confidence},
            "ValueDetection": {
                "Text": text, "Confidence": confidence,
                "Geometry": geometry(0.1, top(row), 0.2, 0.02),
            },
            "PageNumber": 1,
        })
    })
    .collect()
}

/// A part of a job's result: at most `most` blocks from block `from` on.
pub(super) fn job(file: &File, confidence: f64, from: usize, most: usize) -> Value {
    let pages = file.pages.len();
    if file.status == "FAILED" {
        return json!({"JobStatus": "FAILED", "StatusMessage": "scripted"});
    }
    let read = (1..).zip(&file.pages).filter(|(number, _)| !file.lost.contains(number));
    let all: Vec<Value> =
        read.flat_map(|(number, lines)| blocks(number, lines, confidence)).collect();
    let part: Vec<&Value> = all.iter().skip(from).take(most).collect();
    let behind = from + part.len();
    let mut answer = json!({
        "DocumentMetadata": {"Pages": pages},
        "JobStatus": file.status,
        "Blocks": part,
        "DetectDocumentTextModelVersion": VERSION,
    });
    if behind < all.len() {
        answer["NextToken"] = json!(format!("from-{behind}"));
    }
    if !file.lost.is_empty() {
        answer["Warnings"] = json!([{"ErrorCode": "PAGE_CHARACTERS_EXCEEDED", "Pages": file.lost}]);
    }
    answer
}

/// The page, its lines, then their words: a line comes before the words that it names.
fn blocks(page: u32, lines: &[String], confidence: f64) -> Vec<Value> {
    let line_id = |line: usize| format!("line-{page}-{line}");
    let ids: Vec<String> = (0..lines.len()).map(line_id).collect();
    let mut blocks = vec![json!({
        "BlockType": "PAGE", "Id": format!("page-{page}"), "Page": page,
        "Geometry": geometry(0.0, 0.0, 1.0, 1.0),
        "Relationships": [{"Type": "CHILD", "Ids": ids}],
    })];
    for (line, words) in lines.iter().enumerate() {
        let count = words.split(' ').count();
        let ids: Vec<String> = (0..count).map(|word| id_of_word(page, line, word)).collect();
        blocks.push(json!({
            "BlockType": "LINE", "Id": line_id(line), "Page": page, "Text": words,
            "Confidence": confidence, "Geometry": geometry(0.1, top(line), 0.8, 0.02),
            "Relationships": [{"Type": "CHILD", "Ids": ids}],
        }));
    }
    for (line, words) in lines.iter().enumerate() {
        for (at, word) in words.split(' ').enumerate() {
            let left = 0.1 + 0.12 * f64::from(u16::try_from(at).unwrap_or(u16::MAX));
            blocks.push(json!({
                "BlockType": "WORD", "Id": id_of_word(page, line, at), "Page": page, "Text": word,
                "TextType": "PRINTED", "Confidence": confidence,
                "Geometry": geometry(left, top(line), 0.1, 0.02),
            }));
        }
    }
    blocks
}

fn id_of_word(page: u32, line: usize, word: usize) -> String {
    format!("word-{page}-{line}-{word}")
}

fn top(line: usize) -> f64 {
    0.1 + 0.03 * f64::from(u16::try_from(line).unwrap_or(u16::MAX))
}

fn geometry(left: f64, top: f64, width: f64, height: f64) -> Value {
    let (right, bottom) = (left + width, top + height);
    json!({
        "BoundingBox": {"Width": width, "Height": height, "Left": left, "Top": top},
        "Polygon": [point_at(left, top), point_at(right, top), point_at(right, bottom), point_at(left, bottom)],
    })
}

fn point_at(x: f64, y: f64) -> Value {
    json!({"X": x, "Y": y})
}
