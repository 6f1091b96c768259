//! The switch of the telemetry of ONNX Runtime: set as a page process starts, asked for as the library is
//! loaded.

/// The variable, and its value, with which ONNX Runtime starts no thread that sends figures to its
/// vendor: such a thread would run before the process is confined.
pub(crate) const TELEMETRY_SWITCH: (&str, &str) = ("ORT_DISABLE_TELEMETRY", "1");
