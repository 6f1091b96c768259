//! A strict, fast stand-in for Amazon SQS over its AWS JSON 1.0 protocol.
