//! Where on a document the data's values stand: page and box, kept beside the data so that a
//! reviewer is shown the place and does not have to search for it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::BoundingBox;

/// The region of a value on the document.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PageRegion {
    /// Page, starting at 1.
    pub page: u32,
    /// The smallest box around its words, in the page's own units.
    #[serde(rename = "box")]
    pub bounding_box: BoundingBox,
    /// 0..1: the least of its words' confidences, as the transcript gives them.
    pub confidence: f32,
    /// Whether one of its words is [`TextWord::unwitnessed`](super::TextWord): a single model read
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unwitnessed: bool,
}

/// A field's value was found on the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroundedField {
    /// Name of the field, e.g. `total` or `line_items[2].amount`.
    pub field: String,
    /// The first place that holds it; a value that is printed often may have been read elsewhere.
    #[serde(flatten)]
    pub place: PageRegion,
}

/// The value that the path of a field names, e.g. `line_items[2].amount`; `None`: there is none.
pub fn value_at<'v>(fields: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    let mut steps = path.split(['.', '[']).map(|step| step.trim_end_matches(']'));
    let mut at = fields.get(steps.next()?)?;
    for step in steps {
        at = match at {
            Value::Array(list) => list.get(step.parse::<usize>().ok()?)?,
            Value::Object(object) => object.get(step)?,
            _ => return None,
        };
    }
    Some(at)
}
