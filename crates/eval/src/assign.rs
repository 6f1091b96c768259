//! The assignment of known to given rows whose likeness is greatest in sum.

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

/// Likeness is compared in steps of a billionth: the solver wants whole numbers.
const STEPS: f64 = 1e9;

/// Pairs of indexes, each used once, ascending by the first; only pairs whose likeness is above
/// zero. `likeness(row, column)` has to be finite.
pub(super) fn best_pairs(
    rows: usize,
    columns: usize,
    likeness: &dyn Fn(usize, usize) -> f64,
) -> Vec<(usize, usize)> {
    // The solver gives each of the fewer a partner among the more.
    let as_pair = |one, other| if rows <= columns { (one, other) } else { (other, one) };
    let weights = Matrix::from_fn(rows.min(columns), rows.max(columns), |(one, other)| {
        let (row, column) = as_pair(one, other);
        to_steps(likeness(row, column))
    });
    let (_, partners) = kuhn_munkres(&weights);
    let pairs = partners.into_iter().enumerate().map(|(one, other)| as_pair(one, other));
    let mut pairs: Vec<(usize, usize)> =
        pairs.filter(|(row, column)| likeness(*row, *column) > 0.0).collect();
    pairs.sort_unstable();
    pairs
}

#[expect(clippy::cast_possible_truncation, reason = "a likeness is far below nine billion")]
fn to_steps(likeness: f64) -> i64 {
    (likeness * STEPS).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_greatest_sum_wins_over_the_likest_pair() {
        // Greedy takes (0, 0) with 10 and leaves 1; the best is 9 + 8.
        let table = [[10.0, 9.0], [8.0, 1.0]];
        assert_eq!(best_pairs(2, 2, &|row, column| table[row][column]), [(0, 1), (1, 0)]);
        assert_eq!(best_pairs(0, 3, &|_, _| 1.0), []);
        assert_eq!(best_pairs(3, 1, &|row, _| row as f64), [(2, 0)]);
        assert_eq!(best_pairs(2, 2, &|_, _| 0.0), []);
    }

    fn brute(rows: usize, columns: usize, table: &[Vec<f64>], used: &mut Vec<bool>) -> f64 {
        if rows == 0 {
            return 0.0;
        }
        let mut most = brute(rows - 1, columns, table, used);
        for column in 0..columns {
            if !used[column] {
                used[column] = true;
                let own = table[rows - 1][column] + brute(rows - 1, columns, table, used);
                used[column] = false;
                most = most.max(own);
            }
        }
        most
    }

    proptest! {
        #[test]
        fn no_other_assignment_is_better(
            table in prop::collection::vec(prop::collection::vec(0_u8..20, 5), 1..6),
            columns in 1_usize..6,
        ) {
            let table: Vec<Vec<f64>> =
                table.iter().map(|row| row.iter().map(|it| f64::from(*it)).collect()).collect();
            let pairs = best_pairs(table.len(), columns, &|row, column| table[row][column]);
            let sum: f64 = pairs.iter().map(|(row, column)| table[*row][*column]).sum();
            let most = brute(table.len(), columns, &table, &mut vec![false; columns]);
            prop_assert!((sum - most).abs() < 1e-9, "{} {} {:?}", sum, most, pairs);
        }
    }
}
