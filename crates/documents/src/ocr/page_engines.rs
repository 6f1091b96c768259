//! The readers of page images on this machine together: Tesseract, and the neural one where its
//! weights are.
//!
//! `reading` chooses between them for each page, unless the configuration does.

use std::path::Path;
use std::time::Duration;

use super::OcrEngine;
use super::neural::NeuralEngine;
use super::tesseract::TesseractEngine;
use crate::page::PageRaster;
use crate::reading::recognise::PageRecogniser;
use crate::sandbox::confine::ProcessPermissions;
use docmill_core::config::{OcrConfig, OcrEngineChoice};
use docmill_core::fault::{Error, Result};
use docmill_core::model::TextLine;

/// The engines that read page images in page processes.
#[derive(Debug, Clone)]
pub struct PageEngines {
    choice: OcrEngineChoice,
    tesseract: TesseractEngine,
    neural: Option<NeuralEngine>,
}

impl PageEngines {
    /// Finds what is installed of what the configuration asks for. A page may take `page_time`.
    ///
    /// # Errors
    /// Tesseract is missing; the weights are, where the neural reader is asked for by name.
    pub fn find_installed(config: &OcrConfig, page_time: Duration) -> Result<Self> {
        let tesseract = TesseractEngine::find_installed(config, page_time)?;
        let neural = match config.engine {
            OcrEngineChoice::Tesseract => None,
            OcrEngineChoice::Auto | OcrEngineChoice::Neural => {
                NeuralEngine::find_installed(config)?
            }
        };
        if neural.is_none() && config.engine == OcrEngineChoice::Neural {
            return Err(Error::internal(
                "ocr.engine is neural, and its weights are not there: `scripts/models.sh FOLDER` \
                 fetches them, ocr.models names the folder",
            ));
        }
        let neural = neural.map(|neural| neural.with_words(tesseract.language_words()));
        Ok(Self { choice: config.engine, tesseract, neural })
    }

    /// Permissions that a process needs to read with them.
    pub fn process_permissions(&self) -> ProcessPermissions {
        let mut permissions = self.tesseract.process_permissions();
        permissions.reads.extend(self.weights().map(Path::to_owned));
        permissions
    }

    /// The folder with the weights of the neural reader, if that is used.
    pub fn weights(&self) -> Option<&Path> {
        self.neural.as_ref().map(NeuralEngine::folder)
    }

    /// Makes everything ready for so many readers at the same time, in a process that maps no
    /// executable memory later. Starts no thread.
    ///
    /// # Errors
    /// The weights are not what they should be.
    pub fn load(&self, readers: usize) -> Result<()> {
        self.neural.as_ref().map_or(Ok(()), |neural| neural.load_networks(readers))
    }
}

impl OcrEngine for PageEngines {
    fn name(&self) -> String {
        match (&self.neural, self.choice) {
            (Some(neural), OcrEngineChoice::Neural) => neural.name(),
            (Some(neural), _) => format!("{}, {}", self.tesseract.name(), neural.name()),
            (None, _) => self.tesseract.name(),
        }
    }

    fn identity(&self) -> String {
        match (&self.neural, self.choice) {
            (Some(neural), OcrEngineChoice::Neural) => {
                // Its words are those of Tesseract's data.
                format!("{}; words of {}", neural.identity(), self.tesseract.identity())
            }
            (Some(neural), _) => {
                format!("{}; {}", self.tesseract.identity(), neural.identity())
            }
            (None, _) => self.tesseract.identity(),
        }
    }

    fn make_recogniser(&self) -> Result<Box<dyn PageRecogniser>> {
        match (&self.neural, self.choice) {
            (Some(neural), OcrEngineChoice::Neural) => neural.make_recogniser(),
            (Some(neural), _) => Ok(Box::new(ReaderPair {
                plain: self.tesseract.make_recogniser()?,
                robust: neural.make_recogniser()?,
            })),
            (None, _) => self.tesseract.make_recogniser(),
        }
    }
}

/// Tesseract with the neural reader beside it.
struct ReaderPair {
    plain: Box<dyn PageRecogniser>,
    robust: Box<dyn PageRecogniser>,
}

impl PageRecogniser for ReaderPair {
    fn languages(&self) -> &[String] {
        self.plain.languages()
    }

    fn recognise(&mut self, page: &PageRaster, languages: &[String]) -> Result<Vec<TextLine>> {
        self.plain.recognise(page, languages)
    }

    fn robust_reader(&mut self) -> Option<&mut dyn PageRecogniser> {
        Some(self.robust.as_mut())
    }
}
