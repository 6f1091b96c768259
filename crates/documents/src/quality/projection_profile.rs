//! Sums along lines that run aslant: the lines of pixels across them are added up, each moved by
//! its own share of the fall. No sheared page is ever made, which was most of the work.

use crate::image::opencv_mat::to_f32;

/// Adds a line of pixels to `sums`, shifted towards its beginning by `by`; a position between two
/// pixels takes from both. Values shifted out of `sums` are dropped.
pub(super) fn add_shifted<T: Copy + Into<f32>>(sums: &mut [f32], line: &[T], by: f64) {
    let part = to_f32(by - by.floor());
    let whole = to_i64(by);
    add_whole(sums, line, whole, 1.0 - part);
    add_whole(sums, line, whole.saturating_add(1), part);
}

fn add_whole<T: Copy + Into<f32>>(sums: &mut [f32], line: &[T], by: i64, weight: f32) {
    let skipped = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    let (sums, line) = match by < 0 {
        true => (sums.get_mut(skipped..), Some(line)),
        false => (Some(sums), line.get(skipped..)),
    };
    for (sum, value) in sums.unwrap_or_default().iter_mut().zip(line.unwrap_or_default()) {
        *sum += weight * (*value).into();
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a place on a page")]
fn to_i64(place: f64) -> i64 {
    place.floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_moved_by_whole_and_by_parts_of_pixels_and_loses_what_leaves() {
        #[rustfmt::skip]
        let table: [(f64, [f32; 4]); 7] = [
            (0.0,  [1.0, 2.0, 4.0, 8.0]),
            (1.0,  [2.0, 4.0, 8.0, 0.0]),
            (-1.0, [0.0, 1.0, 2.0, 4.0]),
            (0.25, [1.25, 2.5, 5.0, 6.0]),
            (-0.5, [0.5, 1.5, 3.0, 6.0]),
            (9.0,  [0.0; 4]),
            (-9.0, [0.0; 4]),
        ];
        for (by, expected) in table {
            let mut sums = [0.0; 4];
            add_shifted(&mut sums, &[1_u8, 2, 4, 8], by);
            assert_eq!(sums, expected, "{by}");
        }
    }
}
