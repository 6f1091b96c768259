//! Structured data by labels and layout, offline.
