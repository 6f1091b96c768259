//! Bytes to transcript: every page by its text layer or by OCR.
