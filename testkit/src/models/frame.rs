//! Frames of Amazon's event streams (`application/vnd.amazon.eventstream`): lengths, headers and
//! payload, each part with its checksum. Only string headers, as in Bedrock's events.

use serde_json::Value;

/// Type of a header's value: a string with two bytes of length.
const STRING: u8 = 7;

/// One event or exception with its payload.
pub(super) fn frame(kind: &str, name: &str, payload: &Value) -> Vec<u8> {
    let named = format!(":{kind}-type");
    let mut headers = Vec::new();
    for (name, value) in
        [(":message-type", kind), (named.as_str(), name), (":content-type", "application/json")]
    {
        headers.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        headers.extend_from_slice(name.as_bytes());
        headers.push(STRING);
        headers.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    // Two lengths, two checksums.
    let mut frame = be_length(16 + headers.len() + payload.len()).to_vec();
    frame.extend_from_slice(&be_length(headers.len()));
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload.as_bytes());
    let whole = checksum(&frame);
    frame.extend_from_slice(&whole.to_be_bytes());
    frame
}

fn be_length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}

/// CRC-32 (ISO-HDLC) of the bytes.
fn checksum(bytes: &[u8]) -> u32 {
    let all = bytes
        .iter()
        .fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc_step(crc)));
    !all
}

fn crc_step(crc: u32) -> u32 {
    if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926);
    }
}
