//! The one HTTP client: timeouts, body cap, status and Retry-After to faults.
