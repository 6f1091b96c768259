//! The scope of Google's tokens.

/// The one scope that is asked for; the roles of the account bound what it may do.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
