//! The folder with the networks' weights and the library that runs them, which `scripts/models.sh` makes.

use std::path::{Path, PathBuf};

use docmill_core::fault::{Error, Result};

/// Files that must be in it.
const FILES: [&str; 6] =
    [DETECTOR, RECOGNISER, CHARACTERS, QUICK_RECOGNISER, QUICK_CHARACTERS, LIBRARY];
const DETECTOR: &str = "detector.onnx";
const RECOGNISER: &str = "recogniser.onnx";
const CHARACTERS: &str = "characters.txt";
const QUICK_RECOGNISER: &str = "quick_recogniser.onnx";
const QUICK_CHARACTERS: &str = "quick_characters.txt";
/// The library of ONNX Runtime.
const LIBRARY: &str =
    if cfg!(target_os = "macos") { "libonnxruntime.dylib" } else { "libonnxruntime.so" };
/// Which weights they are: the name and version of their package, then the files' SHA-256.
const IDENTITY: &str = "WEIGHTS";

/// A folder in which all files are there.
#[derive(Debug, Clone)]
pub(super) struct WeightFolder(PathBuf);

/// The bytes of the networks.
pub(super) struct NetworkFiles {
    /// Of the one that finds lines, ONNX.
    pub detector: Vec<u8>,
    /// The small network that reads every line.
    pub quick: RecogniserFiles,
    /// The larger network, for lines of low confidence.
    pub thorough: RecogniserFiles,
}

/// A network that reads lines.
pub(super) struct RecogniserFiles {
    /// Its weights, ONNX.
    pub weights: Vec<u8>,
    /// Names of its classes, one per line.
    pub characters: String,
}

impl WeightFolder {
    /// The folder that the configuration names, which has to have them; else the first usual one that
    /// does, if there is any.
    ///
    /// # Errors
    /// The named folder lacks a file; the message names the script that makes it.
    pub(super) fn find(named: &Path) -> Result<Option<Self>> {
        if named.as_os_str().is_empty() {
            return Ok(usual_folders().into_iter().find(|it| missing_file(it).is_none()).map(Self));
        }
        match missing_file(named) {
            None => Ok(Some(Self(named.to_owned()))),
            Some(file) => Err(Error::internal(format!(
                "ocr.models: `{}` is not there; `scripts/models.sh {}` puts it there",
                named.join(file).display(),
                named.display()
            ))),
        }
    }

    /// The library that runs the networks.
    pub(super) fn library(&self) -> PathBuf {
        self.0.join(LIBRARY)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Which weights are in it, on one line.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn identity(&self) -> Result<String> {
        let text = String::from_utf8_lossy(&self.read(IDENTITY)?).into_owned();
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Reads them.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn load(&self) -> Result<NetworkFiles> {
        Ok(NetworkFiles {
            detector: self.read(DETECTOR)?,
            quick: self.load_recogniser(QUICK_RECOGNISER, QUICK_CHARACTERS)?,
            thorough: self.load_recogniser(RECOGNISER, CHARACTERS)?,
        })
    }

    fn load_recogniser(&self, weights: &str, characters: &str) -> Result<RecogniserFiles> {
        let characters = String::from_utf8_lossy(&self.read(characters)?).into_owned();
        Ok(RecogniserFiles { weights: self.read(weights)?, characters })
    }

    fn read(&self, file: &str) -> Result<Vec<u8>> {
        let path = self.0.join(file);
        std::fs::read(&path).map_err(|error| {
            Error::internal(format!("cannot read `{}`", path.display())).with_source(error)
        })
    }
}

fn missing_file(folder: &Path) -> Option<&'static str> {
    FILES.into_iter().chain([IDENTITY]).find(|file| !folder.join(file).is_file())
}

/// Beside the program, as it is installed (`bin/docmill`, `share/docmill/ocr-models`) or built
/// (`target/debug/docmill`, `target/tools/ocr-models`); then where a package would put them.
fn usual_folders() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let above = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    let beside =
        above.map(|above| [above.join("share/docmill/ocr-models"), above.join("tools/ocr-models")]);
    let packaged = ["/usr/local/share/docmill/ocr-models", "/usr/share/docmill/ocr-models"];
    beside.into_iter().flatten().chain(packaged.map(PathBuf::from)).collect()
}
