//! The deterministic verdict on an extraction.
