//! From bytes to pages and their text: page processes, formats, quality, repair, OCR. What the text
//! means is for others to say.

pub mod cpu;
pub mod ocr;
pub mod pages;

use docmill_client::{aws, http, telemetry, throttle};
use docmill_core::{config, fault, metrics, model, retry};
