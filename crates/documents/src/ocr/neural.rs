//! Reads pages with three small neural networks: a detector of lines, a recogniser, and a larger
//! recogniser for lines of low confidence.
//!
//! The networks are PP-OCRv6's (of `PaddleOCR`, Apache-2.0): the smallest detector, the smallest
//! and the middle recogniser, both cut down to Latin script by `scripts/models.sh`. ONNX Runtime
//! runs them on the thread of the page. They read bad pictures far better than Tesseract does, in
//! any orientation, and clean ones as well at a lower cost.
//!
//! Not promised: other scripts than Latin; text in the reading order; more than some thousand lines
//! of a page (`line_box`).

mod ctc;
mod detector;
mod line_box;
mod line_reader;
mod line_strip;
mod network;
mod page_reader;
mod pixels;
mod spelling;
mod weights;
mod word_box;

use std::path::Path;
use std::sync::Arc;

use self::page_reader::{LoadedNetworks, NeuralReader};
use self::weights::WeightFolder;
use super::OcrEngine;
use super::tesseract::LanguageWords;
use crate::reading::recognise::PageRecogniser;
use docmill_core::config::OcrConfig;
use docmill_core::fault::Result;
use parking_lot::Mutex;

/// The neural reader as it is installed.
#[derive(Clone)]
pub struct NeuralEngine {
    folder: WeightFolder,
    weights: String,
    networks: Arc<Mutex<Option<Arc<LoadedNetworks>>>>,
    words: Option<Arc<LanguageWords>>,
}

impl NeuralEngine {
    /// Finds the weights, in `ocr.models` or where they are usually installed; `None`: nowhere.
    /// Nothing is loaded yet.
    ///
    /// # Errors
    /// `ocr.models` names a folder that lacks some; they cannot be read.
    pub fn find_installed(config: &OcrConfig) -> Result<Option<Self>> {
        let Some(folder) = WeightFolder::find(&config.models)? else { return Ok(None) };
        let weights = folder.identity()?;
        Ok(Some(Self { folder, weights, networks: Arc::default(), words: None }))
    }

    /// The same, and what it reads unsurely is held against the words of the page's language.
    pub(super) fn with_words(self, words: Option<Arc<LanguageWords>>) -> Self {
        Self { words, ..self }
    }

    /// The folder with the weights; it is all that a process that reads must be able to read.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Loads the networks for so many readers at the same time: in a process that can load none
    /// later.
    ///
    /// # Errors
    /// The files are not what they should be.
    pub fn load_networks(&self, readers: usize) -> Result<()> {
        self.networks(readers).map(drop)
    }

    fn networks(&self, readers: usize) -> Result<Arc<LoadedNetworks>> {
        let mut loaded = self.networks.lock();
        if let Some(networks) = loaded.as_ref() {
            return Ok(Arc::clone(networks));
        }
        let networks = Arc::new(LoadedNetworks::load(self.folder.clone(), readers)?);
        *loaded = Some(Arc::clone(&networks));
        Ok(networks)
    }
}

impl std::fmt::Debug for NeuralEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NeuralEngine").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl OcrEngine for NeuralEngine {
    fn name(&self) -> String {
        let package: Vec<&str> = self.weights.split(' ').take(2).collect();
        format!("neural {}", package.join(" "))
    }

    fn identity(&self) -> String {
        format!("neural {}", self.weights)
    }

    fn make_recogniser(&self) -> Result<Box<dyn PageRecogniser>> {
        Ok(Box::new(NeuralReader::new(self.networks(1)?, self.words.clone())?))
    }
}
