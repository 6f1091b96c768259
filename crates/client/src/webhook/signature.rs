//! How a message is signed: HMAC-SHA256 over `id.timestamp.body`, in base64, after `v1,`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Prefix of a secret.
const PREFIX: &str = "whsec_";

/// A message that is signed.
#[derive(Debug, Clone)]
pub struct SignedMessage {
    /// `webhook-id`: the same at every try.
    pub id: String,
    /// `webhook-timestamp`: seconds, of this try.
    pub timestamp: i64,
    /// `webhook-signature`: one for each secret, blanks between them.
    pub signatures: String,
    /// The body that was signed.
    pub body: String,
}

/// A signing key, 24 to 64 bytes.
#[derive(Clone)]
pub struct SigningSecret(Vec<u8>);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(set)")
    }
}

/// The secrets of a text, blanks or line ends between them: all of them sign, so that a target may
/// know the old or the new one while it is replaced.
///
/// # Errors
/// One is not `whsec_` and 24 to 64 bytes in base64; the text does not repeat it. There is none.
pub fn parse_secrets(text: &str) -> Result<Vec<SigningSecret>, String> {
    let secrets: Vec<SigningSecret> =
        text.split_whitespace().map(parse_secret).collect::<Result<_, _>>()?;
    if secrets.is_empty() { Err("there is no signing secret".to_owned()) } else { Ok(secrets) }
}

/// One secret of a text.
fn parse_secret(word: &str) -> Result<SigningSecret, String> {
    let bytes = word.strip_prefix(PREFIX).and_then(|rest| STANDARD.decode(rest).ok());
    let bytes = bytes.filter(|bytes| (24..=64).contains(&bytes.len()));
    bytes.map(SigningSecret).ok_or_else(|| {
        "a signing secret must be whsec_ and 24 to 64 bytes in base64: docmill webhooks \
             new-secret makes one"
            .to_owned()
    })
}

/// A secret as it is handed out.
pub fn write_secret(bytes: &[u8; 32]) -> String {
    format!("{PREFIX}{}", STANDARD.encode(bytes))
}

/// The signatures of a message, one for each secret, blanks between them.
///
/// # Errors
/// A secret that no key can be made of; none that was read is one.
pub fn sign_message(
    secrets: &[SigningSecret],
    id: &str,
    timestamp: i64,
    body: &str,
) -> Result<String, String> {
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret: &SigningSecret| {
            let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0)
                .map_err(|_| "the signing secret is not a key".to_owned())?;
            mac.update(format!("{id}.{timestamp}.").as_bytes());
            mac.update(body.as_bytes());
            Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
        })
        .collect::<Result<_, String>>()?;
    Ok(signatures.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector that the libraries of the specification are tested with.
    #[test]
    fn a_message_is_signed_as_the_libraries_of_the_specification_sign_it() {
        let secrets = parse_secrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", r#"{"test": 2432232314}"#);
        let signed = sign_message(&secrets, id, 1_614_265_330, body).unwrap();
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn while_a_secret_is_replaced_both_sign() {
        let (old, new) = (write_secret(&[1; 32]), write_secret(&[2; 32]));
        let both = parse_secrets(&format!("{new}\n{old}\n")).unwrap();
        let signed = sign_message(&both, "id", 1, "{}").unwrap();
        let of = |text: &str| sign_message(&parse_secrets(text).unwrap(), "id", 1, "{}").unwrap();
        assert_eq!(signed, format!("{} {}", of(&new), of(&old)));
    }

    #[test]
    fn an_invalid_secret_is_refused_without_being_repeated() {
        for wrong in ["", "whsec_", "whsec_SECRETMARK", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            let said = parse_secrets(wrong).unwrap_err();
            assert!(!said.contains("SECRETMARK") && !said.contains("MfKQ"), "{said}");
        }
        let short = format!("{PREFIX}{}", STANDARD.encode([1; 23]));
        assert!(parse_secrets(&short).is_err());
        assert_eq!(format!("{:?}", parse_secrets(&write_secret(&[1; 32])).unwrap()), "[(set)]");
    }
}
