//! Tesseract as a library, its engines kept warm between pages.
//!
//! Loading a language costs a tenth of an ordinary page, so each reader keeps the engines of the
//! languages it was asked for last. An engine takes 20 to 90 MB and cannot be stopped within a
//! page: the process has to be. Readings do not depend on earlier pages: the neural engine learns
//! nothing between pages, and the document dictionary is off.

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

use tesseract_plumbing::TessBaseApi;

use super::options::SEGMENTATION;
use super::tsv;
use crate::page::PageRaster;
use crate::reading::recognise::PageRecogniser;
use docmill_core::fault::{Error, Result};
use docmill_core::model::TextLine;

/// Folders of language data without `TESSDATA_PREFIX`: Debian and derivatives, installations from
/// source, Homebrew.
const FOLDERS: [&str; 6] = [
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
    "/usr/local/opt/tesseract/share/tessdata",
];

/// Engines that one reader keeps.
const KEPT: usize = 3;

/// Ending of a file with a language's data.
pub(super) const DATA: &str = "traineddata";

/// The folder with language data.
///
/// # Errors
/// There is none; the message names the package to install.
pub(super) fn data_folder() -> Result<PathBuf> {
    let named = std::env::var_os("TESSDATA_PREFIX").map(PathBuf::from);
    let usual = FOLDERS.iter().map(PathBuf::from);
    let mut candidates = named.map_or_else(|| usual.collect(), |named| vec![named]).into_iter();
    candidates.find(|folder| folder.is_dir()).ok_or_else(|| {
        Error::internal(
            "no language data of Tesseract is found: install tesseract-ocr-eng (Debian, Ubuntu) or \
             tesseract-lang (Homebrew), or set TESSDATA_PREFIX to the folder that has eng.traineddata",
        )
    })
}

/// The languages installed in `folder`.
///
/// # Errors
/// The folder cannot be read.
pub(super) fn installed_languages(folder: &Path) -> Result<Vec<String>> {
    let unreadable =
        |error| Error::internal(format!("cannot read `{}`", folder.display())).with_source(error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let name = file.file_stem().and_then(|stem| stem.to_str());
        if let (Some(name), true) = (name, file.extension().is_some_and(|end| end == DATA)) {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

/// The languages with the size of their data, which distinguishes the fast, the standard and the
/// best models.
pub(super) fn language_sizes(folder: &Path, languages: &[String]) -> String {
    let mut sizes = Vec::with_capacity(languages.len());
    for language in languages {
        let file = folder.join(format!("{language}.{DATA}"));
        let bytes = std::fs::metadata(file).map_or(0, |data| data.len());
        sizes.push(format!("{language} {bytes}"));
    }
    sizes.join("+")
}

/// Version of the linked library.
pub(super) fn library_version() -> String {
    tesseract_plumbing::version().to_string_lossy().into_owned()
}

/// Engines by their set of languages, the one used last at the end.
pub(super) struct EngineCache {
    data: CString,
    languages: Vec<String>,
    warm: Vec<(String, TessBaseApi)>,
}

impl EngineCache {
    /// No engine yet: each is loaded when a page first needs it.
    ///
    /// # Errors
    /// OpenMP is not limited to one thread, or the folder has a name that C cannot say.
    pub(super) fn new(data: &Path, languages: Vec<String>) -> Result<Self> {
        if std::env::var_os("OMP_THREAD_LIMIT").is_none_or(|limit| limit != "1") {
            return Err(Error::internal(
                "OMP_THREAD_LIMIT must be 1 in the environment of a process that reads with \
                 Tesseract's library",
            ));
        }
        let data = CString::new(data.as_os_str().as_encoded_bytes());
        let data = data.map_err(|_nul| Error::internal("the folder of language data has a NUL"))?;
        Ok(Self { data, languages, warm: Vec::new() })
    }

    fn load_engine(&self, languages: &str) -> Result<TessBaseApi> {
        let failed = || Error::internal(format!("Tesseract cannot load its data for {languages}"));
        let name = CString::new(languages).map_err(|_nul| failed())?;
        let mut engine = TessBaseApi::create();
        engine.init_2(Some(&self.data), Some(&name)).map_err(|_refused| failed())?;
        for (variable, value) in VARIABLES {
            engine.set_variable(variable, value).map_err(|_refused| failed())?;
        }
        engine.set_page_seg_mode(SEGMENTATION);
        Ok(engine)
    }
}

/// Nothing is printed. Words of one page do not become the dictionary of the next.
const VARIABLES: [(&CStr, &CStr); 2] =
    [(c"debug_file", c"/dev/null"), (c"tessedit_enable_doc_dict", c"0")];

impl PageRecogniser for EngineCache {
    fn languages(&self) -> &[String] {
        &self.languages
    }

    fn recognise(&mut self, page: &PageRaster, languages: &[String]) -> Result<Vec<TextLine>> {
        let name = languages.join("+");
        let mut engine = match self.warm.iter().position(|(kept, _)| *kept == name) {
            Some(at) => self.warm.remove(at).1,
            None => self.load_engine(&name)?,
        };
        // An engine that failed is not used again.
        let lines = recognise_page(&mut engine, page)?;
        if self.warm.len() >= KEPT {
            self.warm.remove(0);
        }
        self.warm.push((name, engine));
        Ok(lines)
    }
}

fn page_error(what: &str) -> Error {
    Error::internal(format!("Tesseract cannot {what}"))
}

fn recognise_page(engine: &mut TessBaseApi, page: &PageRaster) -> Result<Vec<TextLine>> {
    let size = [page.width, page.height, page.dpi].map(i32::try_from);
    let [Ok(width), Ok(height), Ok(dpi)] = size else {
        return Err(page_error("take a page of this size"));
    };
    // The wrapper multiplies the two as 32-bit numbers.
    width.checked_mul(height).ok_or_else(|| page_error("take a page of this size"))?;
    let set = engine.set_image(&page.pixels, width, height, 1, width);
    set.map_err(|_refused| page_error("take the page"))?;
    engine.set_source_resolution(dpi);
    engine.recognize().map_err(|_refused| page_error("read the page"))?;
    let table = engine.get_tsv_text(0).map_err(|_none| page_error("say what it read"))?;
    Ok(tsv::parse_lines(&table.as_ref().to_string_lossy()))
}
