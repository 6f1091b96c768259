//! Paths that are boxes, and the boxes around parts of paths.

use hayro::kurbo::{Affine, BezPath, PathEl, Point, Rect, Shape as _};

/// Tolerance for the corners of a box, in points.
pub(super) const CORNER_TOLERANCE: f64 = 1e-3;
/// Subpaths examined separately.
const MAX_PATH_PARTS: usize = 4_096;

/// Bounding boxes of the subpaths, of a path with several.
pub(super) fn parts_of(path: &BezPath) -> Vec<Rect> {
    let mut parts: Vec<BezPath> = Vec::new();
    for element in path.elements() {
        if matches!(element, PathEl::MoveTo(_)) {
            if parts.len() >= MAX_PATH_PARTS {
                break;
            }
            parts.push(BezPath::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(*element);
        }
    }
    if parts.len() < 2 {
        return Vec::new();
    }
    parts.iter().map(|part| part.control_box()).collect()
}

/// Whether the transform maps boxes to boxes.
pub(super) fn is_upright(transform: Affine) -> bool {
    let [a, b, c, d, ..] = transform.as_coeffs();
    b == 0.0 && c == 0.0 || a == 0.0 && d == 0.0
}

/// Whether a path, closed, is its own bounding box.
pub(super) fn is_box(path: &BezPath) -> bool {
    if path.elements().len() > 6 {
        return false;
    }
    let bounds = path.bounding_box();
    let has_corners = path.elements().iter().enumerate().all(|(at, element)| match element {
        PathEl::MoveTo(place) => at == 0 && is_corner(bounds, *place),
        PathEl::LineTo(place) => is_corner(bounds, *place),
        PathEl::ClosePath => true,
        PathEl::QuadTo(..) | PathEl::CurveTo(..) => false,
    });
    let mut closed = path.clone();
    closed.close_path();
    has_corners
        && (closed.area().abs() - bounds.area()).abs() <= CORNER_TOLERANCE * (1.0 + bounds.area())
}

fn is_corner(bounds: Rect, place: Point) -> bool {
    is_either(place.x, bounds.x0, bounds.x1) && is_either(place.y, bounds.y0, bounds.y1)
}

fn is_either(at: f64, low: f64, high: f64) -> bool {
    (at - low).abs() < CORNER_TOLERANCE || (at - high).abs() < CORNER_TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_box_only_if_it_fills_its_bounds() {
        let path = |places: &[(f64, f64)]| {
            let mut path = BezPath::new();
            path.move_to(places[0]);
            places[1..].iter().for_each(|place| path.line_to(*place));
            path.close_path();
            path
        };
        let mut round = path(&[(0.0, 0.0), (9.0, 0.0), (9.0, 5.0)]);
        round.quad_to((0.0, 5.0), (0.0, 0.0));
        #[rustfmt::skip]
        let table = [
            ("four corners",         path(&[(0.0, 0.0), (9.0, 0.0), (9.0, 5.0), (0.0, 5.0)]), true),
            ("back at the first",    path(&[(0.0, 5.0), (9.0, 5.0), (9.0, 0.0), (0.0, 0.0), (0.0, 5.0)]), true),
            ("a triangle",           path(&[(0.0, 0.0), (9.0, 0.0), (9.0, 5.0)]), false),
            ("two triangles",        path(&[(0.0, 0.0), (9.0, 5.0), (9.0, 0.0), (0.0, 5.0)]), false),
            ("a corner cut off",     path(&[(0.0, 0.0), (9.0, 0.0), (9.0, 4.0), (8.0, 5.0), (0.0, 5.0)]), false),
            ("a round side",         round, false),
        ];
        for (name, path, expected) in table {
            assert_eq!(is_box(&path), expected, "{name}");
        }
    }
}
