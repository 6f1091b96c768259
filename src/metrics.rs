//! Every metric name and label in one file.
