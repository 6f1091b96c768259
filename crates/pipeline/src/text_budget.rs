//! Memory for a document's text, within the byte budget. The text's size shows only during reading,
//! when the document already holds memory for its bytes: so this never waits. When the budget is
//! full, a share set aside for texts is used. When that is full too, the document is deferred until
//! others have ended.

use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;

use crate::byte_budget::{ByteBudget, permits};
use docmill_core::fault::{self, Fault};

/// Delay of a document without room: others have ended by then.
const LATER: Duration = Duration::from_secs(30);

/// Bytes of text that a document holds, given back on drop.
#[derive(Debug)]
pub struct TextBudget {
    budget: ByteBudget,
    bytes: u64,
    own: Option<OwnedSemaphorePermit>,
    /// Of what is set aside for texts.
    aside: Option<OwnedSemaphorePermit>,
}

impl TextBudget {
    /// No room so far.
    pub fn new(budget: &ByteBudget) -> Self {
        Self { budget: budget.clone(), bytes: 0, own: None, aside: None }
    }

    /// Reserves `bytes` more.
    ///
    /// # Errors
    /// As [`TextBudget::resize`].
    pub fn grow(&mut self, bytes: u64) -> fault::Result<()> {
        self.resize(self.bytes.saturating_add(bytes))
    }

    /// Resizes the reservation to `bytes`.
    ///
    /// # Errors
    /// `Throttled`: texts of other documents fill the budget; the reservation is unchanged.
    pub fn resize(&mut self, bytes: u64) -> fault::Result<()> {
        let wanted = if bytes == 0 { 0 } else { permits(bytes) };
        let held = count(self.own.as_ref()) + count(self.aside.as_ref());
        if let Some(more) = wanted.checked_sub(held).filter(|more| *more > 0) {
            let (place, permit) = match self.budget.try_take_permits(more) {
                Some(permit) => (&mut self.own, permit),
                None => match self.budget.try_take_aside(more) {
                    Some(permit) => (&mut self.aside, permit),
                    None => return Err(no_room_error()),
                },
            };
            match place {
                Some(held) => held.merge(permit),
                None => *place = Some(permit),
            }
        }
        let less = held.saturating_sub(wanted);
        let aside = less.min(count(self.aside.as_ref()));
        give_back(&mut self.aside, aside);
        give_back(&mut self.own, less - aside);
        self.bytes = bytes;
        Ok(())
    }
}

fn no_room_error() -> fault::Error {
    let context = "texts of other documents fill limits.documents_in_memory";
    fault::Error::new(Fault::Throttled(Some(LATER)), context)
}

fn count(permit: Option<&OwnedSemaphorePermit>) -> u32 {
    permit.map_or(0, |permit| u32::try_from(permit.num_permits()).unwrap_or(u32::MAX))
}

fn give_back(permit: &mut Option<OwnedSemaphorePermit>, count: u32) {
    if let (Some(held), Ok(count)) = (permit.as_mut(), usize::try_from(count)) {
        drop(held.split(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::ByteSize;

    const PIECE: u64 = 4096;

    /// A budget of eight pieces, and two aside for texts.
    fn budget() -> ByteBudget {
        ByteBudget::new(ByteSize(8 * PIECE))
    }

    #[test]
    fn text_counts_against_the_budget_of_documents_and_is_given_back() {
        let budget = budget();
        let mut text = TextBudget::new(&budget);
        text.grow(2 * PIECE).unwrap();
        text.grow(PIECE).unwrap();
        assert!(budget.try_reserve(6 * PIECE).is_none());
        assert!(budget.try_reserve(5 * PIECE).is_some());
        text.resize(PIECE).unwrap();
        assert!(budget.try_reserve(8 * PIECE).is_none());
        assert!(budget.try_reserve(7 * PIECE).is_some());
        drop(text);
        assert!(budget.try_reserve(8 * PIECE).is_some());
    }

    #[test]
    fn where_documents_fill_the_budget_a_text_still_has_some_room_and_then_is_put_off() {
        let budget = budget();
        let documents = budget.try_reserve(8 * PIECE).unwrap();
        let (mut first, mut second) = (TextBudget::new(&budget), TextBudget::new(&budget));
        first.grow(PIECE).unwrap();
        second.grow(PIECE).unwrap();
        let error = second.grow(PIECE).unwrap_err();
        assert_eq!(error.fault, Fault::Throttled(Some(LATER)), "never counted, never waited for");
        drop(first);
        second.grow(PIECE).unwrap();
        drop((second, documents));
        assert!(budget.try_reserve(8 * PIECE).is_some());
    }

    #[test]
    fn one_document_of_the_most_text_always_finds_room() {
        let budget = ByteBudget::new(ByteSize(8 * PIECE)).with_text(ByteSize(20 * PIECE));
        let _documents = budget.try_reserve(8 * PIECE).unwrap();
        let mut text = TextBudget::new(&budget);
        text.grow(20 * PIECE).unwrap();
        assert!(text.grow(1).is_err());
    }
}
