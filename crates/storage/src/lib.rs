//! The object store as a port, with S3 and a folder behind it. What the objects mean is for others
//! to say.

pub mod store;
