//! How many files and connections this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open descriptors to the hard one: the usual 1024 is meant for programs
/// that wait by `select`, and a worker with all its slots busy comes near it. Page processes have a
/// low one of their own. A limit that cannot be raised stays.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    let raised = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(error = %error, "the limit of open descriptors stays as it is");
    }
}
