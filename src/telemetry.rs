//! Log lines: JSON or text, and the panic hook.
