//! A profile of the colour space sRGB (IEC 61966-2-1) in the form of ICC version 2.1, for the greys
//! of archived pages.
//!
//! Computed from the numbers of the standard, so it is free of licences.

/// Entries of the curve from a sample to light.
const CURVE: u16 = 1024;
/// Bytes of the profile's header, and of a tag's entry behind it.
const HEADER: usize = 128;
const ENTRY: usize = 12;
/// The white that profiles are relative to, D50 (ICC.1, 6.3.4.3).
const WHITE: [f64; 3] = [0.9642, 1.0, 0.8249];
/// Red, green and blue of sRGB seen under that white.
const RED: [f64; 3] = [0.436_074_7, 0.222_504_5, 0.013_932_2];
const GREEN: [f64; 3] = [0.385_064_9, 0.716_878_6, 0.097_104_5];
const BLUE: [f64; 3] = [0.143_080_4, 0.060_616_9, 0.714_173_3];
/// The profile's name.
const NAME: &str = "sRGB IEC61966-2.1";

/// The profile's bytes.
pub(crate) fn srgb_profile() -> Vec<u8> {
    let curve = tone_curve();
    // Three tags share the one curve.
    let tags: [(&[&[u8; 4]], Vec<u8>); 7] = [
        (&[b"desc"], description()),
        (&[b"cprt"], plain_text("No copyright")),
        (&[b"wtpt"], colour(WHITE)),
        (&[b"rXYZ"], colour(RED)),
        (&[b"gXYZ"], colour(GREEN)),
        (&[b"bXYZ"], colour(BLUE)),
        (&[b"rTRC", b"gTRC", b"bTRC"], curve),
    ];
    let count: usize = tags.iter().map(|(names, _)| names.len()).sum();
    let mut table = be32(count).to_vec();
    let mut body = Vec::new();
    for (names, data) in &tags {
        let start = HEADER + 4 + ENTRY * count + body.len();
        for name in *names {
            table.extend_from_slice(*name);
            table.extend(be32(start));
            table.extend(be32(data.len()));
        }
        body.extend_from_slice(data);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    let mut profile = header(HEADER + table.len() + body.len());
    profile.extend(table);
    profile.extend(body);
    profile
}

fn header(size: usize) -> Vec<u8> {
    let mut header = be32(size).to_vec();
    header.extend([0; 4]);
    header.extend([2, 0x10, 0, 0]);
    header.extend_from_slice(b"mntrRGB XYZ ");
    // Made on a day that is always the same: the same profile is the same bytes.
    header.extend([2026_u16, 1, 1, 0, 0, 0].into_iter().flat_map(u16::to_be_bytes));
    header.extend_from_slice(b"acsp");
    // Platform, flags, device, attributes: none; rendered as it is perceived.
    header.extend([0; 28]);
    header.extend(WHITE.into_iter().flat_map(fixed));
    header.resize(HEADER, 0);
    header
}

fn be32(value: usize) -> [u8; 4] {
    u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes()
}

/// A number with sixteen bits behind the point.
#[expect(clippy::cast_possible_truncation, reason = "numbers from 0 to 1")]
fn fixed(value: f64) -> [u8; 4] {
    ((value * 65_536.0).round() as i32).to_be_bytes()
}

fn colour(value: [f64; 3]) -> Vec<u8> {
    let mut data = b"XYZ \0\0\0\0".to_vec();
    data.extend(value.into_iter().flat_map(fixed));
    data
}

fn plain_text(text: &str) -> Vec<u8> {
    let mut data = b"text\0\0\0\0".to_vec();
    data.extend(text.bytes().chain([0]));
    data
}

/// In ASCII; the forms for Unicode and for old Macintoshes are there and empty (ICC.1:2001,
/// 6.5.17).
fn description() -> Vec<u8> {
    let mut data = b"desc\0\0\0\0".to_vec();
    data.extend(be32(NAME.len() + 1));
    data.extend(NAME.bytes().chain([0]));
    data.extend([0; 4 + 4 + 2 + 1 + 67]);
    data
}

/// Curve from samples, 0 to 1, to light, in equal steps.
fn tone_curve() -> Vec<u8> {
    let mut data = b"curv\0\0\0\0".to_vec();
    data.extend(u32::from(CURVE).to_be_bytes());
    data.extend((0..CURVE).flat_map(|step| curve_entry(step).to_be_bytes()));
    data
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 65535")]
fn curve_entry(step: u16) -> u16 {
    let sample = f64::from(step) / f64::from(CURVE - 1);
    let light = match sample <= 0.040_45 {
        true => sample / 12.92,
        false => ((sample + 0.055) / 1.055).powf(2.4),
    };
    (light * 65_535.0).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_has_its_declared_length_and_its_white_is_the_sum_of_its_colours() {
        let profile = srgb_profile();
        let number = |at: usize| {
            let bytes = profile[at..at + 4].try_into().unwrap();
            usize::try_from(u32::from_be_bytes(bytes)).unwrap()
        };
        assert_eq!((number(0), &profile[36..40]), (profile.len(), b"acsp".as_slice()));
        assert_eq!(number(HEADER), 9, "tags");
        let find = |name: &[u8; 4]| {
            let entries = (0..9).map(|at| HEADER + 4 + ENTRY * at);
            let entry = entries.into_iter().find(|at| &profile[*at..*at + 4] == name).unwrap();
            let (start, length) = (number(entry + 4), number(entry + 8));
            assert!(start % 4 == 0 && start + length <= profile.len(), "{name:?}");
            start
        };
        // In each of the three the colours together are the white.
        for part in 0..3 {
            let of = |name| i64::try_from(number(find(name) + 8 + 4 * part)).unwrap();
            let sum = of(b"rXYZ") + of(b"gXYZ") + of(b"bXYZ");
            assert!((sum - of(b"wtpt")).abs() <= 32, "{sum} beside {}", of(b"wtpt"));
        }
        let curve = find(b"gTRC") + 12;
        assert_eq!(find(b"rTRC") + 12, curve, "one curve for all");
        let at = |step: usize| {
            let bytes = profile[curve + 2 * step..curve + 2 * step + 2].try_into().unwrap();
            u16::from_be_bytes(bytes)
        };
        // Half of the way is a fifth of the light.
        assert_eq!((at(0), at(1023)), (0, u16::MAX));
        assert!((13_900..14_200).contains(&at(511)), "{}", at(511));
    }
}
