//! Fields that a service read of the pages by itself: a second source beside our own reading.

use serde::{Deserialize, Serialize};

use crate::model::PageRegion;

/// A field as the service read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpenseField {
    /// The service's word for its sort, e.g. `TOTAL` or `UNIT_PRICE`.
    pub name: String,
    /// As it is printed.
    pub text: String,
    /// Where it stands, with the service's own confidence.
    pub place: PageRegion,
}

/// Fields of one document or page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpenseReading {
    /// Fields of the document as a whole.
    pub fields: Vec<ExpenseField>,
    /// The fields of each line, in the order of the pages.
    pub lines: Vec<Vec<ExpenseField>>,
}

impl ExpenseReading {
    /// Adds what was read of a further page.
    pub fn add_page(&mut self, page: &Self) {
        self.fields.extend(page.fields.iter().cloned());
        self.lines.extend(page.lines.iter().cloned());
    }
}
