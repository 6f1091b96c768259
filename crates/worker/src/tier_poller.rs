//! Decides which tier is polled next, for how many messages and for how long. Pure.
//!
//! A queue without tiers counts as one tier. An idle tier has one waiting poll. With several tiers
//! such a poll asks for one message only, so that it reserves few slots. A tier whose polls come
//! back full asks for more, and gets more polls. Free slots are divided by weight.

use std::time::Duration;

use docmill_queue::QueueTier;
use docmill_queue::round_robin::WeightedRoundRobin;

/// Messages per poll; the most SQS hands out.
const PER_POLL: usize = 10;
/// Polls of one tier at the same time.
const MAX_POLLS: usize = 8;
/// With fewer slots than tiers not every tier can have a poll out: they take turns this often.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// One receive request that is to be sent to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollRequest {
    /// Index of the tier that is polled.
    pub tier: usize,
    /// Maximum number of messages.
    pub most: usize,
    /// It should not wait for longer.
    pub longest_wait: Duration,
}

/// The polls of one tier.
#[derive(Debug, Clone, Copy)]
struct TierPolls {
    out: usize,
    wanted: usize,
    size: usize,
}

/// Decides which tier is polled next, from the polls of every tier.
#[derive(Debug)]
pub struct TierPoller {
    poller: Vec<TierPolls>,
    turns: WeightedRoundRobin,
    slots: usize,
}

impl TierPoller {
    /// For a queue with these tiers (none: one tier) and a worker with this number of slots.
    pub fn new(tiers: &[QueueTier], slots: usize) -> Self {
        let weights: Vec<u32> = match tiers {
            [] => vec![1],
            tiers => tiers.iter().map(|tier| tier.weight).collect(),
        };
        let size = if weights.len() > 1 { 1 } else { PER_POLL };
        let poller = weights.iter().map(|_| TierPolls { out: 0, wanted: 1, size }).collect();
        Self { poller, turns: WeightedRoundRobin::new(weights), slots }
    }

    /// How many slots the next poll may use; `None` while every tier has the polls it wants.
    pub fn next_size(&self) -> Option<usize> {
        let open = self.poller.iter().filter(|lane| lane.out < lane.wanted);
        open.map(|lane| lane.size).max()
    }

    /// The next poll for `slots` free slots; it is counted as sent.
    pub fn next_request(&mut self, slots: usize) -> Option<PollRequest> {
        let Self { poller, turns, .. } = self;
        let tier = turns
            .next_ready(|at: usize| poller.get(at).is_some_and(|lane| lane.out < lane.wanted))?;
        let crowded = self.poller.len() > self.slots;
        let lane = self.poller.get_mut(tier)?;
        lane.out += 1;
        let longest_wait = if crowded { SHORT_WAIT } else { Duration::MAX };
        Some(PollRequest { tier, most: lane.size.min(slots), longest_wait })
    }

    /// Records the result of a poll: messages received and requested, or a failure. A full poll
    /// adds one poll; an empty or failed one resets to one.
    pub fn note_result(&mut self, tier: usize, got: Option<(usize, usize)>) {
        let several = self.poller.len() > 1;
        let Some(lane) = self.poller.get_mut(tier) else { return };
        lane.out = lane.out.saturating_sub(1);
        match got {
            Some((count, asked)) if count >= asked => {
                lane.wanted = (lane.wanted + 1).min(MAX_POLLS);
                lane.size = PER_POLL;
            }
            Some((count, _)) if count > 0 => {}
            _ => {
                lane.wanted = 1;
                lane.size = if several { 1 } else { PER_POLL };
            }
        }
    }

    /// A poll ended without telling its tier: every tier counts one poll fewer as out, and wants
    /// one.
    pub fn reset_counts(&mut self) {
        for lane in &mut self.poller {
            lane.out = lane.out.saturating_sub(1);
            lane.wanted = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::model::Priority;

    fn tiers(weights: &[u32]) -> Vec<QueueTier> {
        let tier = |weight: &u32| QueueTier { priority: Priority::Normal, weight: *weight };
        weights.iter().map(tier).collect()
    }

    #[test]
    fn polls_are_added_while_they_come_back_full_and_dropped_when_one_is_empty() {
        let mut poller = TierPoller::new(&[], 64);
        let first = poller.next_request(10).unwrap();
        assert_eq!((first.tier, first.most), (0, PER_POLL));
        assert_eq!(poller.next_size(), None, "one poll while there is little to do");
        poller.note_result(0, Some((10, 10)));
        for _ in 0..2 {
            assert!(poller.next_request(10).is_some());
        }
        assert!(poller.next_request(10).is_none());
        poller.note_result(0, Some((4, 10)));
        assert!(poller.next_request(10).is_some(), "as many as before");
        poller.note_result(0, None);
        assert_eq!(poller.next_size(), None, "the one that is still out is enough");
        for _ in 0..20 {
            poller.note_result(0, Some((10, 10)));
        }
        let out = std::iter::from_fn(|| poller.next_request(10)).count();
        assert_eq!(out, MAX_POLLS);
    }

    #[test]
    fn an_idle_tier_holds_one_slot_and_a_busy_one_gets_the_others_by_weight() {
        let mut poller = TierPoller::new(&tiers(&[3, 1]), 64);
        assert_eq!(poller.next_size(), Some(1));
        let idle: Vec<usize> =
            std::iter::from_fn(|| poller.next_request(10)).map(|r| r.most).collect();
        assert_eq!(idle, [1, 1], "each tier has a poll out that waits");
        for _ in 0..20 {
            poller.note_result(0, Some((10, 10)));
            poller.note_result(1, Some((10, 10)));
        }
        let order: Vec<usize> =
            (0..8).filter_map(|_| poller.next_request(10)).map(|request| request.tier).collect();
        assert_eq!(order.iter().filter(|tier| **tier == 0).count(), 6, "{order:?}");
        let mut few = TierPoller::new(&tiers(&[1, 1, 1]), 2);
        assert_eq!(
            few.next_request(1).unwrap().longest_wait,
            SHORT_WAIT,
            "the third must have its turn"
        );
    }
}
