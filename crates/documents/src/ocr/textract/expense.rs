//! Textract's `AnalyzeExpense`: the fields of one page of an invoice or receipt, read from its picture
//! by the service itself, for the gate to hold against our own reading.
//!
//! Contract: the service model `textract/2018-06-27`. A page goes as bytes and is answered at once.
//! Not read: addresses in parts, labels, blocks of words.

use aws_sdk_textract::Client;
use aws_sdk_textract::primitives::Blob;
use aws_sdk_textract::types::{Document, ExpenseField as FoundField};

use super::faults::textract_error;
use super::{limit_client, load_client, page_usage};
use crate::ocr::governed_client::GovernedClient;
use docmill_core::config::TextractConfig;
use docmill_core::expense::{ExpenseField, ExpenseReading};
use docmill_core::fault::{Fault, Result};
use docmill_core::model::{BoundingBox, EncodedImage, PageRegion, PageUsage};

/// Most fields of a page that are kept: a page of lines has a few hundred.
const MAX_FIELDS: usize = 5_000;
/// Most characters of one field's text.
const MAX_FIELD_CHARS: usize = 1_000;

/// A page as the transcript measures it.
#[derive(Debug, Clone, Copy)]
pub struct ExpensePage {
    /// Its number, starting at 1.
    pub number: u32,
    /// Width in the unit of its boxes.
    pub width: f32,
    /// Height in the same unit.
    pub height: f32,
}

/// Analyses pages in one region.
pub struct TextractExpense {
    client: Client,
    governed: GovernedClient,
}

impl TextractExpense {
    /// The operation, as limiters and prices name it.
    pub const OPERATION: &'static str = "AnalyzeExpense";

    /// Sets the client up from the environment; nothing is sent.
    pub async fn connect(config: &TextractConfig, governed: GovernedClient) -> Self {
        Self::with_client(load_client(config).await, config, governed)
    }

    /// Over a client that is set up already, but for its time limits, and that it repeats nothing.
    pub fn with_client(client: Client, config: &TextractConfig, governed: GovernedClient) -> Self {
        Self { client: limit_client(&client, config), governed }
    }

    /// The fields that the service reads of a page's picture, and the pages that the call used.
    ///
    /// # Errors
    /// [`Fault::Rejected`]: it does not take this picture. Any other fault is not the picture's.
    pub async fn analyze_page(
        &self,
        image: &EncodedImage,
        page: ExpensePage,
    ) -> Result<(ExpenseReading, PageUsage)> {
        let document = Document::builder().bytes(Blob::new(image.bytes.clone())).build();
        let request = self.client.analyze_expense().document(document);
        let answer = self
            .governed
            .call_with_retry(|| {
                let request = request.clone();
                async move {
                    let sent = request.send().await;
                    sent.map_err(|error| textract_error(Self::OPERATION, &error))
                }
            })
            .await?;
        let mut reading = ExpenseReading::default();
        for found in answer.expense_documents() {
            reading.fields.extend(read_fields(found.summary_fields(), page));
            let groups = found.line_item_groups().iter();
            let lines = groups.flat_map(|group| group.line_items());
            let lines = lines.map(|line| read_fields(line.line_item_expense_fields(), page));
            reading.lines.extend(lines.map(Iterator::collect).take(MAX_FIELDS));
        }
        reading.fields.truncate(MAX_FIELDS);
        Ok((reading, page_usage(Self::OPERATION, 1)))
    }

    /// Asks with a picture that is none: whether it is there and takes our credentials.
    ///
    /// # Errors
    /// The cause, and the setting to check.
    pub async fn ping(&self) -> Result<()> {
        let none = Document::builder().bytes(Blob::new(*b"none")).build();
        let asked = self.client.analyze_expense().document(none).send().await;
        match asked.map_err(|error| textract_error(Self::OPERATION, &error)) {
            Err(error) if error.fault != Fault::Rejected => Err(error),
            _ => Ok(()),
        }
    }
}

/// The fields that have a sort and a text.
fn read_fields(found: &[FoundField], page: ExpensePage) -> impl Iterator<Item = ExpenseField> {
    found.iter().filter_map(move |field| {
        let name = field.r#type().and_then(|sort| sort.text()).filter(|name| *name != "OTHER")?;
        let value = field.value_detection()?;
        let text = value.text().map(str::trim).filter(|text| !text.is_empty())?;
        let place = PageRegion {
            page: page.number,
            bounding_box: value.geometry().and_then(|it| it.bounding_box()).map_or_else(
                BoundingBox::default,
                |shares| BoundingBox {
                    x: shares.left() * page.width,
                    y: shares.top() * page.height,
                    w: shares.width() * page.width,
                    h: shares.height() * page.height,
                },
            ),
            confidence: (value.confidence().unwrap_or_default() / 100.0).clamp(0.0, 1.0),
            unwitnessed: false,
        };
        let text = text.chars().take(MAX_FIELD_CHARS).collect();
        Some(ExpenseField { name: name.to_owned(), text, place })
    })
}
