//! The rayon pool for page work behind an async call.
