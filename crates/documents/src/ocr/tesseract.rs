//! Reading pages with Tesseract: the library by default, or a program that the configuration names.
//!
//! The library (`linked`) keeps its engines warm, which saves a tenth of an ordinary page's time.
//! Tesseract and Leptonica are C++ on hostile pixels, so they run in a process that may die
//! ([`crate::sandbox`]). A program (`program`) is for another version than the linked one, and
//! costs a process per page. Both are limited to one thread (`OMP_THREAD_LIMIT=1`): with threads
//! beyond the cores OpenMP slows down tenfold. For the library that variable must be in the
//! environment when the process starts.

mod linked;
mod needs;
mod options;
mod program;
mod tsv;
mod word_list;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use self::options::SEGMENTATION;
pub(in crate::ocr) use self::word_list::{LanguageWords, WordList};
use super::OcrEngine;
use crate::reading::recognise::PageRecogniser;
use crate::sandbox::confine::ProcessPermissions;
use docmill_core::config::OcrConfig;
use docmill_core::fault::{Error, Result};

/// Data for the detection of orientation and of equations, not languages.
const NOT_LANGUAGES: [&str; 3] = ["osd", "equ", "snum"];

/// Tesseract as it is installed.
#[derive(Debug, Clone)]
pub struct TesseractEngine {
    engine: TesseractMode,
    version: String,
    languages: Vec<String>,
    /// Told once: every document asks for it, and the data of each language would be looked at.
    identity: String,
    page_time: Duration,
}

#[derive(Debug, Clone)]
enum TesseractMode {
    /// The linked library and where its language data lies.
    Linked(PathBuf),
    Program(PathBuf),
}

impl TesseractEngine {
    /// Finds Tesseract and its languages. A page may take `page_time`.
    ///
    /// # Errors
    /// The program or the language data is missing, or a configured language is; the message names
    /// the package to install.
    pub fn find_installed(config: &OcrConfig, page_time: Duration) -> Result<Self> {
        let given = &config.tesseract;
        let (engine, version, languages) = if given.as_os_str().is_empty() {
            let data = linked::data_folder()?;
            let languages = linked::installed_languages(&data)?;
            (TesseractMode::Linked(data), linked::library_version(), languages)
        } else {
            let (version, languages) = program::query_program(given)?;
            (TesseractMode::Program(given.clone()), version, languages)
        };
        let languages = usable_languages(languages, &config.languages)?;
        let data = match &engine {
            TesseractMode::Linked(data) => linked::language_sizes(data, &languages),
            TesseractMode::Program(program) => {
                format!("{} by {}", languages.join("+"), program.display())
            }
        };
        let identity = format!("tesseract {version}; psm {SEGMENTATION}; {data}");
        Ok(Self { engine, version, languages, identity, page_time })
    }

    /// The words of its languages; `None` where a program reads, whose data may lie anywhere.
    pub(super) fn language_words(&self) -> Option<Arc<LanguageWords>> {
        match &self.engine {
            TesseractMode::Linked(data) => {
                Some(Arc::new(LanguageWords::new(data.clone(), self.languages.clone())))
            }
            TesseractMode::Program(_) => None,
        }
    }

    /// Permissions that a process needs to read with it.
    pub fn process_permissions(&self) -> ProcessPermissions {
        match &self.engine {
            TesseractMode::Linked(data) => {
                ProcessPermissions { programs: Vec::new(), reads: vec![data.clone()] }
            }
            TesseractMode::Program(program) => needs::program_permissions(program),
        }
    }
}

impl OcrEngine for TesseractEngine {
    fn name(&self) -> String {
        format!("tesseract {}", self.version)
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn make_recogniser(&self) -> Result<Box<dyn PageRecogniser>> {
        let languages = self.languages.clone();
        Ok(match &self.engine {
            TesseractMode::Linked(data) => Box::new(linked::EngineCache::new(data, languages)?),
            TesseractMode::Program(program) => {
                Box::new(program::TesseractProgram::new(program.clone(), languages, self.page_time))
            }
        })
    }
}

/// Checks that the configured languages are there. Returns those, or all if none is configured.
fn usable_languages(mut installed: Vec<String>, configured: &[String]) -> Result<Vec<String>> {
    installed.retain(|language| !NOT_LANGUAGES.contains(&language.as_str()));
    installed.sort();
    let absent: Vec<&String> =
        configured.iter().filter(|language| !installed.contains(language)).collect();
    if !absent.is_empty() {
        let names: Vec<&str> = absent.iter().map(|language| language.as_str()).collect();
        let packages: Vec<String> =
            names.iter().map(|language| language_package(language)).collect();
        return Err(Error::internal(format!(
            "ocr.languages: {} not installed; install {} (Debian, Ubuntu) or take it out",
            names.join(", "),
            packages.join(" "),
        )));
    }
    let chosen = if configured.is_empty() { installed } else { configured.to_vec() };
    if chosen.is_empty() {
        let message = "tesseract has no language to read; install tesseract-ocr-eng (Debian, \
                       Ubuntu) or tesseract-lang (Homebrew)";
        return Err(Error::internal(message));
    }
    Ok(chosen)
}

fn language_package(language: &str) -> String {
    format!("tesseract-ocr-{}", language.to_lowercase().replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_the_configured_ones_or_all_that_are_there() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let choose = |configured: &[&str]| -> std::result::Result<Vec<String>, String> {
            let configured: Vec<String> = names(configured);
            usable_languages(names(&["osd", "eng", "deu", "chi_sim"]), &configured)
                .map_err(|error| error.to_string())
        };
        assert_eq!(choose(&[]).unwrap(), ["chi_sim", "deu", "eng"]);
        assert_eq!(choose(&["chi_sim"]).unwrap(), ["chi_sim"]);
        let refused = choose(&["eng", "chi_tra"]).unwrap_err();
        assert!(refused.contains("tesseract-ocr-chi-tra"), "{refused}");
        assert!(usable_languages(names(&["osd"]), &[]).is_err());
    }

    #[test]
    fn a_missing_program_is_named_with_the_package_to_install() {
        let config = OcrConfig { tesseract: "/nowhere/tesseract".into(), ..OcrConfig::default() };
        let error = TesseractEngine::find_installed(&config, Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.fault, docmill_core::fault::Fault::Internal);
        let message = error.to_string();
        assert!(
            message.contains("/nowhere/tesseract") && message.contains("install tesseract-ocr")
        );
    }
}
