//! The next turn among tiers with shares: the smooth weighted round robin of nginx. Over any
//! stretch of turns each tier gets its share, and the turns of one are spread evenly among those of
//! the others, so that no tier waits for a run of another.

/// Chooses among several queues in turn, each as often as its weight says.
#[derive(Debug, Clone)]
pub struct WeightedRoundRobin {
    weights: Vec<i64>,
    credit: Vec<i64>,
}

impl WeightedRoundRobin {
    /// Takes a weight of zero for one.
    pub fn new(weights: impl IntoIterator<Item = u32>) -> Self {
        let weights: Vec<i64> =
            weights.into_iter().map(|weight| i64::from(weight.max(1))).collect();
        Self { credit: vec![0; weights.len()], weights }
    }

    /// The next among those that are `ready`; `None` if none is.
    pub fn next_ready(&mut self, ready: impl Fn(usize) -> bool) -> Option<usize> {
        let mut total = 0;
        let mut best: Option<(usize, i64)> = None;
        for (at, (credit, weight)) in self.credit.iter_mut().zip(&self.weights).enumerate() {
            if !ready(at) {
                // An idle tenant accumulates no turns.
                *credit = 0;
                continue;
            }
            *credit += weight;
            total += weight;
            if best.is_none_or(|(_, most)| *credit > most) {
                best = Some((at, *credit));
            }
        }
        let (at, _) = best?;
        if let Some(credit) = self.credit.get_mut(at) {
            *credit -= total;
        }
        Some(at)
    }

    /// Every one once: first whose turn it is, then the others in their order.
    pub fn next_round(&mut self) -> Vec<usize> {
        let first = self.next_ready(|_| true);
        let others = (0..self.weights.len()).filter(|at| Some(*at) != first);
        first.into_iter().chain(others).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tier_gets_its_share_and_none_waits_for_a_run_of_another() {
        let mut turns = WeightedRoundRobin::new([5, 1, 1]);
        let order: Vec<usize> = (0..7).filter_map(|_| turns.next_ready(|_| true)).collect();
        assert_eq!(order, [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(turns.next_ready(|at| at == 2), Some(2));
        assert_eq!(turns.next_ready(|_| false), None);
        assert_eq!(WeightedRoundRobin::new([]).next_ready(|_| true), None);
    }

    #[test]
    fn a_round_names_everybody_once() {
        let mut turns = WeightedRoundRobin::new([1, 3]);
        let rounds: Vec<Vec<usize>> = (0..4).map(|_| turns.next_round()).collect();
        assert_eq!(rounds, [vec![1, 0], vec![0, 1], vec![1, 0], vec![1, 0]]);
    }
}
