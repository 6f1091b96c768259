//! How many calls may be under way: additive increase, multiplicative decrease.
//!
//! It opens by one for every answer until the first sign of overload, then by one for every
//! windowful. Overload (a timeout, a server that is down) halves it; so does a refusal of a call
//! that the window itself had held back.

/// Calls at the same time before anything is known: a worker's usual slots. Fewer would leave a
/// slow provider idle for several of its calls after each start; a small one says what is too many.
const FIRST: f64 = 64.0;

/// How many calls may be under way at the same time, learned from answers and refusals.
#[derive(Debug)]
pub(super) struct ConcurrencyWindow {
    size: f64,
    most: f64,
    cut: bool,
}

impl ConcurrencyWindow {
    /// The window before anything is known; it never grows above `most` calls.
    pub(super) fn new(most: u32) -> Self {
        Self { size: FIRST.min(f64::from(most)), most: f64::from(most), cut: false }
    }

    /// Whether another call may start beside `in_flight`.
    pub(super) fn has_room(&self, in_flight: u32) -> bool {
        f64::from(in_flight) + 1.0 <= self.size.max(1.0)
    }

    /// A call was answered while the window was full: it may be wider.
    pub(super) fn record_answer(&mut self, was_full: bool) {
        if was_full {
            let step = if self.cut { 1.0 / self.size.max(1.0) } else { 1.0 };
            self.size = (self.size + step).min(self.most);
        }
    }

    /// The provider said that there were too many calls: halves the window.
    pub(super) fn shrink(&mut self) {
        self.size = (self.size / 2.0).max(1.0);
        self.cut = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_one_by_one_halves_on_overload_and_keeps_room_for_one() {
        let mut window = ConcurrencyWindow::new(100);
        assert!(window.has_room(63) && !window.has_room(64));
        window.record_answer(false);
        assert!(!window.has_room(64), "a window that is not used does not grow");
        (0..8).for_each(|_| window.record_answer(true));
        assert!(window.has_room(71) && !window.has_room(72));
        window.shrink();
        assert!(window.has_room(35) && !window.has_room(36));
        (0..37).for_each(|_| window.record_answer(true));
        assert!(window.has_room(36) && !window.has_room(37), "one more for a windowful");
        (0..20).for_each(|_| window.shrink());
        assert!(window.has_room(0) && !window.has_room(1));
        (0..100_000).for_each(|_| window.record_answer(true));
        assert!(window.has_room(99) && !window.has_room(100));
    }
}
