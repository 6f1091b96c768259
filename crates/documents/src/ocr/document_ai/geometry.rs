//! Coordinates: from Document AI's page image back to the picture that we sent.
//!
//! It straightens and turns pages before it reads them. Its boxes are positions on the page image
//! after that; `transforms` are the matrices that were applied, as `OpenCV` stores them. They are
//! inverted here. The scale at which it draws a page of a PDF follows from the size of the page
//! image. A margin added by straightening is not reported, so a box may be off by as much.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::wire::{BoundingPoly, PageDimension, PolyVertex, TransformMatrix};
use docmill_core::model::BoundingBox;

/// `OpenCV`'s codes of 32-bit and 64-bit floating-point elements (`CV_32F`, `CV_64F`).
const FLOAT: u32 = 5;
const DOUBLE: u32 = 6;

/// The first two rows of an affine transformation.
pub(super) type AffineTransform = [f32; 6];

const SAME: AffineTransform = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

/// Maps positions on the provider's page image to positions on our picture.
#[derive(Debug)]
pub(super) struct PageGeometry {
    /// Size of the provider's page image.
    own: (f32, f32),
    /// From there to the page image before it was straightened.
    back: AffineTransform,
    /// From there to our picture.
    scale: (f32, f32),
    /// Size of our picture.
    picture: (f32, f32),
    /// How it was straightened, if it was.
    pub(super) transform: Option<AffineTransform>,
}

impl PageGeometry {
    /// Of a page whose picture has this size in pixels. `alone`: the picture itself was sent, not a
    /// page of a PDF, so that its pixels are the provider's.
    pub(super) fn new(
        dimension: &PageDimension,
        matrices: &[TransformMatrix],
        picture: (f32, f32),
        alone: bool,
    ) -> Self {
        let known = dimension.width > 0.0 && dimension.height > 0.0;
        let own = if known { (dimension.width, dimension.height) } else { picture };
        let read: Option<Vec<AffineTransform>> = matrices.iter().map(parse_matrix).collect();
        let transform = read
            .filter(|all| !all.is_empty())
            .map(|all| all.into_iter().fold(SAME, |done, next| compose_affine(next, done)));
        let back = transform.and_then(invert_affine);
        let transform = transform.filter(|_| back.is_some());
        // A quarter turn swaps the sides.
        let sideways = transform.is_some_and(|[a, b, ..]| b.abs() > a.abs());
        let before = if sideways { (own.1, own.0) } else { own };
        let scale = match transform {
            Some(_) if alone => (1.0, 1.0),
            _ => (picture.0 / before.0, picture.1 / before.1),
        };
        Self { own, back: back.unwrap_or(SAME), scale, picture, transform }
    }

    /// The smallest box in our picture around the polygon.
    pub(super) fn bounding_box(&self, poly: &BoundingPoly) -> BoundingBox {
        let (width, height) = self.own;
        let points: Vec<(f32, f32)> = match poly.normalized_vertices.as_slice() {
            [] => poly.vertices.iter().map(|vertex| (vertex.x, vertex.y)).collect(),
            normalized => normalized
                .iter()
                .map(|vertex: &PolyVertex| (vertex.x * width, vertex.y * height))
                .collect(),
        };
        let mut points = points.into_iter().map(|point| self.to_picture(point));
        let Some(first) = points.next() else { return BoundingBox::default() };
        let start = (first, first);
        let ((left, top), (right, bottom)) = points.fold(start, |(least, most), (x, y)| {
            ((least.0.min(x), least.1.min(y)), (most.0.max(x), most.1.max(y)))
        });
        BoundingBox { x: left, y: top, w: right - left, h: bottom - top }
    }

    fn to_picture(&self, (x, y): (f32, f32)) -> (f32, f32) {
        let [a, b, c, d, e, f] = self.back;
        let (x, y) = (a * x + b * y + c, d * x + e * y + f);
        let (x, y) = (x * self.scale.0, y * self.scale.1);
        (x.clamp(0.0, self.picture.0), y.clamp(0.0, self.picture.1))
    }
}

/// Reads a matrix of two or three rows by three columns; `None` for anything else.
fn parse_matrix(matrix: &TransformMatrix) -> Option<AffineTransform> {
    if !(2..=3).contains(&matrix.rows) || matrix.cols != 3 {
        return None;
    }
    let bytes = STANDARD.decode(&matrix.data).ok()?;
    let numbers: Vec<f32> = match matrix.kind {
        FLOAT => bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect(),
        DOUBLE => bytes.as_chunks::<8>().0.iter().map(|eight| f32_from_bytes(*eight)).collect(),
        _ => return None,
    };
    let numbers: AffineTransform = *numbers.first_chunk()?;
    numbers.iter().all(|number| number.is_finite()).then_some(numbers)
}

#[expect(clippy::cast_possible_truncation, reason = "pixels need no more than seven digits")]
fn f32_from_bytes(bytes: [u8; 8]) -> f32 {
    f64::from_le_bytes(bytes) as f32
}

/// First `before`, then `next`.
fn compose_affine(next: AffineTransform, before: AffineTransform) -> AffineTransform {
    let [a, b, c, d, e, f] = next;
    let [g, h, i, j, k, l] = before;
    [
        a * g + b * j,
        a * h + b * k,
        a * i + b * l + c,
        d * g + e * j,
        d * h + e * k,
        d * i + e * l + f,
    ]
}

fn invert_affine([a, b, c, d, e, f]: AffineTransform) -> Option<AffineTransform> {
    let determinant = a * e - b * d;
    if determinant.abs() < 1e-6 {
        return None;
    }
    let (a, b, d, e) = (e / determinant, -b / determinant, -d / determinant, a / determinant);
    Some([a, b, -(a * c + b * f), d, e, -(d * c + e * f)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(numbers: &[f64]) -> TransformMatrix {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let rows = if numbers.len() > 6 { 3 } else { 2 };
        TransformMatrix { rows, cols: 3, kind: DOUBLE, data: STANDARD.encode(bytes) }
    }

    fn poly(corners: &[(f32, f32)]) -> BoundingPoly {
        let vertices = corners.iter().map(|(x, y)| PolyVertex { x: *x, y: *y }).collect();
        BoundingPoly { vertices: Vec::new(), normalized_vertices: vertices }
    }

    fn near(found: BoundingBox, expected: (f32, f32, f32, f32)) {
        let (x, y, w, h) = expected;
        let off = [found.x - x, found.y - y, found.w - w, found.h - h];
        assert!(off.iter().all(|off| off.abs() < 0.5), "{found:?}, not {expected:?}");
    }

    #[test]
    fn a_page_that_was_left_alone_is_only_scaled() {
        let dimension = PageDimension { width: 500.0, height: 1000.0 };
        let frame = PageGeometry::new(&dimension, &[], (1000.0, 2000.0), false);
        near(frame.bounding_box(&poly(&[(0.1, 0.1), (0.3, 0.2)])), (100.0, 200.0, 200.0, 200.0));
        let mut absolute = poly(&[]);
        absolute.vertices =
            vec![PolyVertex { x: 50.0, y: 100.0 }, PolyVertex { x: 150.0, y: 200.0 }];
        near(frame.bounding_box(&absolute), (100.0, 200.0, 200.0, 200.0));
        assert_eq!(frame.bounding_box(&poly(&[])), BoundingBox::default());
    }

    #[test]
    fn a_page_that_was_turned_is_turned_back() {
        // A quarter turn clockwise of a picture 400 wide and 600 high: (x, y) -> (600 - y, x).
        let turn = matrix(&[0.0, -1.0, 600.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        let dimension = PageDimension { width: 600.0, height: 400.0 };
        for alone in [true, false] {
            let frame = PageGeometry::new(&dimension, &[matrix_copy(&turn)], (400.0, 600.0), alone);
            // The box from (40, 60) to (80, 120) is now at (480, 40) to (540, 80).
            let there = poly(&[(480.0 / 600.0, 0.1), (540.0 / 600.0, 0.1), (540.0 / 600.0, 0.2)]);
            near(frame.bounding_box(&there), (40.0, 60.0, 40.0, 60.0));
            assert!(frame.transform.is_some());
        }
    }

    fn matrix_copy(matrix: &TransformMatrix) -> TransformMatrix {
        TransformMatrix { data: matrix.data.clone(), ..*matrix }
    }

    #[test]
    fn several_steps_are_taken_back_in_their_order() {
        let shift = matrix(&[1.0, 0.0, 10.0, 0.0, 1.0, 20.0]);
        let double = matrix(&[2.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
        let dimension = PageDimension { width: 1000.0, height: 1000.0 };
        let frame = PageGeometry::new(&dimension, &[shift, double], (1000.0, 1000.0), true);
        // (5, 5) -> (15, 25) -> (30, 50).
        near(frame.bounding_box(&poly(&[(0.03, 0.05)])), (5.0, 5.0, 0.0, 0.0));
    }

    #[test]
    fn a_matrix_that_makes_no_sense_is_no_reason_to_lose_the_page() {
        let dimension = PageDimension { width: 100.0, height: 100.0 };
        let bad = [
            matrix(&[0.0; 6]),
            TransformMatrix { kind: 0, ..matrix(&[1.0; 6]) },
            TransformMatrix { data: "*".to_owned(), ..matrix(&[1.0; 6]) },
            TransformMatrix { rows: 1, ..matrix(&[1.0; 6]) },
            matrix(&[f64::NAN, 0.0, 0.0, 0.0, 1.0, 0.0]),
        ];
        for matrix in bad {
            let frame = PageGeometry::new(&dimension, &[matrix], (100.0, 100.0), true);
            assert_eq!(frame.transform, None);
            near(frame.bounding_box(&poly(&[(0.1, 0.1), (0.2, 0.2)])), (10.0, 10.0, 10.0, 10.0));
        }
        let far = PageGeometry::new(&dimension, &[], (100.0, 100.0), true);
        near(far.bounding_box(&poly(&[(-3.0, 0.5), (9.0, 0.6)])), (0.0, 50.0, 100.0, 10.0));
    }
}
