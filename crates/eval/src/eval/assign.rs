//! The assignment of known to given rows whose likeness is greatest in sum.
//!
//! The Hungarian method with potentials (Kuhn 1955, in the O(n²m) form of Jonker and Volgenant).

/// Pairs of indexes, each used once, ascending by the first; only pairs whose likeness is above
/// zero. `likeness(row, column)` has to be finite.
pub(super) fn best_pairs(
    rows: usize,
    columns: usize,
    likeness: &dyn Fn(usize, usize) -> f64,
) -> Vec<(usize, usize)> {
    if rows > columns {
        let mut pairs = best_pairs(columns, rows, &|row, column| likeness(column, row));
        for pair in &mut pairs {
            *pair = (pair.1, pair.0);
        }
        pairs.sort_unstable();
        return pairs;
    }
    let mut solver = AssignmentSolver::new(rows, columns);
    for row in 1..=rows {
        solver.add_row(row, likeness);
    }
    let owners = solver.owner.iter().enumerate().skip(1).filter(|(_, owner)| **owner > 0);
    let pairs = owners.map(|(column, owner)| (owner - 1, column - 1));
    let mut pairs: Vec<(usize, usize)> =
        pairs.filter(|(row, column)| likeness(*row, *column) > 0.0).collect();
    pairs.sort_unstable();
    pairs
}

/// Rows and columns count from 1; 0 stands for none.
struct AssignmentSolver {
    row_potential: Vec<f64>,
    column_potential: Vec<f64>,
    /// Which row owns the column.
    owner: Vec<usize>,
    way: Vec<usize>,
}

fn value_at<T: Copy + Default>(values: &[T], index: usize) -> T {
    values.get(index).copied().unwrap_or_default()
}

fn set_value<T>(values: &mut [T], index: usize, value: T) {
    if let Some(place) = values.get_mut(index) {
        *place = value;
    }
}

impl AssignmentSolver {
    fn new(rows: usize, columns: usize) -> Self {
        Self {
            row_potential: vec![0.0; rows + 1],
            column_potential: vec![0.0; columns + 1],
            owner: vec![0; columns + 1],
            way: vec![0; columns + 1],
        }
    }

    /// Finds the row a column, moving others along the cheapest alternating path.
    fn add_row(&mut self, row: usize, likeness: &dyn Fn(usize, usize) -> f64) {
        let columns = self.owner.len() - 1;
        let mut least = vec![f64::INFINITY; columns + 1];
        let mut used = vec![false; columns + 1];
        set_value(&mut self.owner, 0, row);
        let mut column = 0;
        loop {
            set_value(&mut used, column, true);
            let own = value_at(&self.owner, column);
            let (mut delta, mut next) = (f64::INFINITY, 0);
            for other in (1..=columns).filter(|other| !value_at(&used, *other)) {
                let cost = -likeness(own - 1, other - 1)
                    - value_at(&self.row_potential, own)
                    - value_at(&self.column_potential, other);
                if cost < value_at(&least, other) {
                    set_value(&mut least, other, cost);
                    set_value(&mut self.way, other, column);
                }
                if value_at(&least, other) < delta {
                    (delta, next) = (value_at(&least, other), other);
                }
            }
            self.shift_potentials(delta, &used, &mut least);
            column = next;
            if value_at(&self.owner, column) == 0 {
                break;
            }
        }
        while column != 0 {
            let before = value_at(&self.way, column);
            let owner = value_at(&self.owner, before);
            set_value(&mut self.owner, column, owner);
            column = before;
        }
    }

    fn shift_potentials(&mut self, delta: f64, used: &[bool], least: &mut [f64]) {
        for column in 0..used.len() {
            if value_at(used, column) {
                let own = value_at(&self.owner, column);
                let raised = value_at(&self.row_potential, own) + delta;
                set_value(&mut self.row_potential, own, raised);
                let lowered = value_at(&self.column_potential, column) - delta;
                set_value(&mut self.column_potential, column, lowered);
            } else {
                let nearer = value_at(least, column) - delta;
                set_value(least, column, nearer);
            }
        }
    }
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
