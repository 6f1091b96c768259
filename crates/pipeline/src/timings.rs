//! How long a run spends in each stage, for its caller and for the metrics.

use std::time::{Duration, Instant};

use docmill_core::metrics;
use docmill_core::model::IngestionStage;

/// The time a run has spent in each stage so far; a stage that is entered twice counts both times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageTimings([Duration; IngestionStage::ALL.len()]);

impl StageTimings {
    /// The time spent in this stage; zero if it was not reached.
    pub fn of(&self, stage: IngestionStage) -> Duration {
        let timings = IngestionStage::ALL.iter().zip(&self.0);
        timings.filter(|(other, _)| **other == stage).map(|(_, time)| *time).sum()
    }

    fn add(&mut self, stage: IngestionStage, time: Duration) {
        let timings = IngestionStage::ALL.iter().zip(&mut self.0);
        timings.filter(|(other, _)| **other == stage).for_each(|(_, sum)| *sum += time);
    }
}

/// Measures the stages of one run.
pub(super) struct StageClock {
    stage: IngestionStage,
    since: Instant,
    timings: StageTimings,
}

impl StageClock {
    /// In the first stage from now on.
    pub(super) fn start() -> Self {
        Self {
            stage: IngestionStage::Claimed,
            since: Instant::now(),
            timings: StageTimings::default(),
        }
    }

    /// The stage it is in.
    pub(super) fn stage(&self) -> IngestionStage {
        self.stage
    }

    /// The time spent so far, that in the current stage included.
    pub(super) fn timings(&self) -> StageTimings {
        let mut timings = self.timings;
        timings.add(self.stage, self.since.elapsed());
        timings
    }

    /// Begins the next stage.
    pub(super) fn enter(&mut self, stage: IngestionStage) {
        self.stop();
        (self.stage, self.since) = (stage, Instant::now());
    }

    /// The current stage is over.
    pub(super) fn stop(&mut self) {
        let time = self.since.elapsed();
        metrics::record_stage(self.stage.code(), time);
        self.timings.add(self.stage, time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_is_entered_twice_counts_both_times_and_one_that_is_not_reached_none() {
        let mut timings = StageTimings::default();
        for (stage, seconds) in
            [(IngestionStage::Extract, 2), (IngestionStage::Gate, 1), (IngestionStage::Extract, 3)]
        {
            timings.add(stage, Duration::from_secs(seconds));
        }
        assert_eq!(timings.of(IngestionStage::Extract), Duration::from_secs(5));
        assert_eq!(timings.of(IngestionStage::Gate), Duration::from_secs(1));
        assert_eq!(timings.of(IngestionStage::Transcribe), Duration::ZERO);
    }
}
