//! Decides about a document without a live worker. Pure.

use docmill_core::model::Priority;

/// The objects of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DocumentFacts {
    /// Whether its result is in the bucket.
    pub(super) done: bool,
    /// Whether it was given up.
    pub(super) dead: bool,
    /// Whether there is a lock on it.
    pub(super) locked: bool,
    /// Whether its original is in the bucket.
    pub(super) raw: bool,
    /// The most urgent of its markers.
    pub(super) marker: Option<Priority>,
    /// Where it is to wait if it has no marker.
    pub(super) named: Priority,
    /// Runs by its markers.
    pub(super) counted: u32,
    /// Runs by the mark of its failure, if there is one.
    pub(super) failed: Option<u32>,
    /// Runs by the lock that was abandoned, if there is one.
    pub(super) abandoned: Option<u32>,
    /// Whether an operator has withdrawn it by a note in that lock.
    pub(super) withdrawn: bool,
    /// Whether that lock was taken to remove it.
    pub(super) removing: bool,
    /// Maximum runs.
    pub(super) max: u32,
}

/// The repair of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SweepDecision {
    /// It has ended: remove contradicting objects.
    Clear,
    /// The document has used up its runs and becomes dead.
    Bury { priority: Priority, runs: u32 },
    /// An operator has withdrawn the document, and it is given up.
    Withdraw { priority: Priority, runs: u32 },
    /// The document waits (again), with this priority and this count of runs.
    Queue { priority: Priority, runs: u32 },
    /// Its removal was begun and is to be ended.
    Remove,
    /// There is nothing of it but the lock.
    Forget,
}

/// Decides by the facts. The largest count of runs is used: adding would count some twice.
pub(super) fn decide_action(facts: &DocumentFacts) -> SweepDecision {
    if facts.removing {
        return SweepDecision::Remove;
    }
    if facts.done || facts.dead {
        return SweepDecision::Clear;
    }
    if facts.marker.is_none() && facts.failed.is_none() && !facts.raw {
        return SweepDecision::Forget;
    }
    let noted = facts.failed.unwrap_or_default().max(facts.abandoned.unwrap_or_default());
    let runs = facts.counted.max(noted);
    let priority = facts.marker.unwrap_or(facts.named);
    if facts.withdrawn {
        SweepDecision::Withdraw { priority, runs }
    } else if runs >= facts.max {
        SweepDecision::Bury { priority, runs }
    } else {
        SweepDecision::Queue { priority, runs }
    }
}

#[cfg(test)]
mod tests {
    use Priority::{High, Low, Normal};

    use super::*;

    #[test]
    fn the_janitors_decision_table() {
        let nothing = DocumentFacts {
            done: false,
            dead: false,
            locked: false,
            raw: true,
            marker: None,
            named: Low,
            counted: 0,
            failed: None,
            abandoned: None,
            withdrawn: false,
            removing: false,
            max: 3,
        };
        let queue = |priority, runs| SweepDecision::Queue { priority, runs };
        #[rustfmt::skip]
        let table = [
            ("its worker died in run 1", DocumentFacts { marker: Some(High), counted: 1, abandoned: Some(1), ..nothing }, queue(High, 1)),
            ("in the last one", DocumentFacts { marker: Some(High), counted: 3, abandoned: Some(3), ..nothing }, SweepDecision::Bury { priority: High, runs: 3 }),
            ("BlobForge's, whose marker counts nothing", DocumentFacts { marker: Some(Normal), counted: 0, abandoned: Some(1), ..nothing }, queue(Normal, 1)),
            ("withdrawn before its worker died", DocumentFacts { marker: Some(High), counted: 1, abandoned: Some(1), withdrawn: true, ..nothing }, SweepDecision::Withdraw { priority: High, runs: 1 }),
            ("half removed", DocumentFacts { abandoned: Some(0), removing: true, ..nothing }, SweepDecision::Remove),
            ("half removed, its result is there", DocumentFacts { done: true, removing: true, ..nothing }, SweepDecision::Remove),
            ("an operator died over it", DocumentFacts { marker: Some(High), abandoned: Some(0), ..nothing }, queue(High, 0)),
            ("withdrawn, and its result is there", DocumentFacts { done: true, withdrawn: true, ..nothing }, SweepDecision::Clear),
            ("seen by two janitors", DocumentFacts { marker: Some(Normal), counted: 2, abandoned: Some(2), ..nothing }, queue(Normal, 2)),
            ("it died after its failure was noted", DocumentFacts { failed: Some(2), abandoned: Some(2), ..nothing }, queue(Low, 2)),
            ("failed once", DocumentFacts { failed: Some(1), ..nothing }, queue(Low, 1)),
            ("failed, and BlobForge left the marker", DocumentFacts { failed: Some(3), marker: Some(High), ..nothing }, SweepDecision::Bury { priority: High, runs: 3 }),
            ("its marker is lost", DocumentFacts { abandoned: Some(1), ..nothing }, queue(Low, 1)),
            ("it died after the result was there", DocumentFacts { done: true, marker: Some(High), counted: 3, abandoned: Some(3), ..nothing }, SweepDecision::Clear),
            ("given up already", DocumentFacts { dead: true, failed: Some(3), ..nothing }, SweepDecision::Clear),
            ("removed meanwhile", DocumentFacts { raw: false, abandoned: Some(1), ..nothing }, SweepDecision::Forget),
        ];
        for (name, facts, expected) in table {
            assert_eq!(decide_action(&facts), expected, "{name}");
        }
    }
}
