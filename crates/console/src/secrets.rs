//! Random secrets and their hashes: tokens, ids of sessions, secrets of forms.

use docmill_core::model::digest::encode_hex;
use sha2::{Digest as _, Sha256};

/// SHA-256 of a token or of the id of a session.
pub(super) type SecretDigest = [u8; 32];

/// 256 random bits, in hex.
///
/// # Errors
/// The system gives no random numbers.
pub(super) fn make_secret() -> Result<String, getrandom::Error> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits)?;
    Ok(encode_hex(bits))
}

/// The hash of a secret.
pub(super) fn secret_digest(secret: &str) -> SecretDigest {
    Sha256::digest(secret.as_bytes()).into()
}

/// The same in hex.
pub(super) fn hash_secret(secret: &str) -> String {
    encode_hex(secret_digest(secret))
}
