//! From a transcript to structured data.
