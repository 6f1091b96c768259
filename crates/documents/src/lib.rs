//! From bytes to pages and their text: page processes, formats, quality, repair, OCR. What the text
//! means is for others to say.

pub mod cpu;
pub mod ocr;
pub mod pages;
