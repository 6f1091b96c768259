//! Text from page images, behind two small traits.
//!
//! An [`OcrEngine`] makes recognisers, which read one page image at a time inside a page process. A
//! [`RemoteOcrProvider`] reads pictures of pages over the network, from the worker itself. Both
//! answer in the provider-neutral form of `model::transcript`. Neither judges a page nor decides
//! what to do about a bad one, and neither ever sees a document in its original form: what they get
//! was drawn from it.
//!
//! | provider | a call carries | whole files |
//! |---|---|---|
//! | `document_ai` | up to 15 pages (30 without images in the reply), 40 MB | no |
//! | `document_intelligence` | up to 15 pages, 48 MB | no |
//! | `textract` | one page, 10 MB | PDFs in S3, as a job |
//! | `vision` | one page with its local reading | no |

pub mod document_ai;
pub mod document_intelligence;
pub mod governed_client;
mod handwriting;
pub mod neural;
pub mod page_engines;
pub mod tesseract;
pub mod textract;
pub mod vision;

use std::collections::BTreeMap;

use async_trait::async_trait;

use crate::image::image_pdf::ImagePdf;
use crate::reading::recognise::PageRecogniser;
use docmill_core::fault::{Error, Result};
use docmill_core::model::{ImageEncoding, PagePicture, PageUsage, PictureFit, ProviderReading};

/// Something that reads page images in this process.
pub trait OcrEngine: Send + Sync {
    /// Name and version, e.g. `tesseract 5.3.0`; stored in the transcript.
    fn name(&self) -> String;

    /// Everything that changes what is read from the same image (version, languages that are there,
    /// options): part of the transcript's identity.
    fn identity(&self) -> String;

    /// One more reader of pages, for one thread.
    ///
    /// # Errors
    /// Its program, data or weights are missing.
    fn make_recogniser(&self) -> Result<Box<dyn PageRecogniser>>;
}

/// Most that one call to a provider may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderCallLimits {
    /// Most pages of one call.
    pub pages: usize,
    /// Most bytes of all their pictures together.
    pub bytes: usize,
}

/// Something that reads pictures of pages elsewhere, for money.
///
/// Calls are paced by the throttle governor inside; a short wait is waited there, a long one comes
/// back as [`Fault::Throttled`](docmill_core::fault::Fault::Throttled).
#[async_trait]
pub trait RemoteOcrProvider: Send + Sync {
    /// Its name in the configuration, in pauses and in metric labels, e.g. `document_ai`.
    fn name(&self) -> &'static str;

    /// Everything of ours that changes what is read from the same picture (processor, version,
    /// options): part of the transcript's identity.
    fn identity(&self) -> String;

    /// The most that one call can carry.
    fn call_limits(&self) -> ProviderCallLimits;

    /// How large its pictures are, if it reads only beside this machine's own reading of the same
    /// picture; then each picture comes with one.
    fn picture_fit(&self) -> Option<PictureFit> {
        None
    }

    /// Reads the pictures, which are within [`RemoteOcrProvider::call_limits`]; one reading for
    /// each, in the same order, and what the call used. Dropping the future aborts the call.
    ///
    /// # Errors
    /// [`Fault::Rejected`](docmill_core::fault::Fault::Rejected): it does not take these pictures;
    /// others may pass. Any other fault is not the pictures'.
    async fn read_pictures(
        &self,
        pictures: &[PagePicture],
    ) -> Result<(Vec<ProviderReading>, PageUsage)>;

    /// Asks whether it is there and takes our credentials, by calls that cannot succeed: no page is
    /// read and none is paid for.
    ///
    /// # Errors
    /// The cause, and the setting to check.
    async fn ping(&self) -> Result<()>;

    /// Whether it is known to be down, or to deny us.
    fn is_down(&self) -> bool {
        false
    }

    /// How it reads whole files, if it does.
    fn file_reader(&self) -> Option<&dyn FileReader> {
        None
    }
}

/// A PDF where a provider can fetch it by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Name of the bucket.
    pub bucket: String,
    /// Key of the object in the bucket.
    pub key: String,
    /// The version to be read, in a bucket that keeps versions.
    pub version: Option<String>,
    /// Names the work: the same token never starts the same work twice. 1 to 60 of
    /// `[a-zA-Z0-9_-]`.
    pub token: String,
}

/// Pixels of the pictures that readings are to be positions in, by page number.
pub type PictureSizes = BTreeMap<u32, (u32, u32)>;

/// Reads whole files that lie in a bucket.
#[async_trait]
pub trait FileReader: Send + Sync {
    /// Reads the pages of a file of which `sizes` are known; pages that could not be read are not
    /// in the answer. A second call with the same token, by whichever process, goes on with what
    /// the first one started.
    ///
    /// # Errors
    /// [`Fault::Rejected`](docmill_core::fault::Fault::Rejected): it does not take this file, or
    /// cannot reach it. Anything else is not the file's fault.
    async fn read_file(
        &self,
        file: &StoredFile,
        sizes: &PictureSizes,
    ) -> Result<(BTreeMap<u32, ProviderReading>, PageUsage)>;
}

/// The bytes of a call and what they are: one picture as it is, several as a PDF.
fn call_content(pictures: &[PagePicture]) -> Result<(Vec<u8>, &'static str)> {
    if let [picture] = pictures {
        let kind = match picture.image.header.encoding {
            ImageEncoding::Png => "image/png",
            ImageEncoding::Jpeg => "image/jpeg",
        };
        return Ok((picture.image.bytes.clone(), kind));
    }
    let mut pdf = ImagePdf::default();
    for picture in pictures {
        pdf.add_page(picture.facts.number, &picture.image)
            .map_err(|bad| Error::internal("a page picture cannot be sent").with_source(bad))?;
    }
    Ok((pdf.finish(), "application/pdf"))
}

fn pixels_to_f32(pixels: u32) -> f32 {
    f32::from(u16::try_from(pixels).unwrap_or(u16::MAX))
}
