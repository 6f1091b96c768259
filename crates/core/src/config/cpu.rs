//! `[cpu]`: the child processes that read documents.

use std::path::PathBuf;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::LimitsConfig;
use super::units::ByteSize;

/// Fixed memory of reading a page of any size: fonts, tables, a model of the OCR.
const PAGE_BASE: u64 = 256 << 20;
/// Bytes per pixel while a page is decoded, made grey and repaired: at most 8 in colour, and four
/// grey copies.
const PIXEL_BYTES: u64 = 12;

/// How documents are kept away from the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuConfig {
    /// Memory that reading one page may take; a child process may take this for each of its
    /// threads, besides the documents themselves.
    pub page_memory: ByteSize,
    /// Memory that all child processes may take together; 0: what the container or the machine
    /// leaves after the worker itself.
    pub memory: ByteSize,
    /// A child process is replaced after so many documents, so that what libraries leak does not
    /// add up.
    pub documents_per_process: u64,
    /// Whether child processes give up files, network and system calls that they do not need, and
    /// what follows where the kernel cannot hold that.
    pub confine: ConfinementMode,
    /// Which documents may be read by one child process.
    pub shared: ProcessSharing,
    /// The program that child processes run; empty: this one.
    pub program: PathBuf,
}

/// Whether child processes are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfinementMode {
    /// Documents are read by confined processes or not at all.
    Required,
    /// As far as the kernel can; what it cannot is said in the log.
    Attempted,
    /// Child processes may do what the worker may.
    Off,
}

impl Default for ConfinementMode {
    /// Required on Linux, which has what it takes; elsewhere nothing has.
    fn default() -> Self {
        if cfg!(target_os = "linux") { Self::Required } else { Self::Attempted }
    }
}

impl<'de> Deserialize<'de> for ConfinementMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModeVisitor)
    }
}

/// Takes the words, and `true` and `false` for the strictest and the loosest.
struct ModeVisitor;

impl Visitor<'_> for ModeVisitor {
    type Value = ConfinementMode;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`required`, `attempted` or `off`")
    }

    fn visit_bool<E: de::Error>(self, is: bool) -> Result<ConfinementMode, E> {
        Ok(if is { ConfinementMode::Required } else { ConfinementMode::Off })
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<ConfinementMode, E> {
        match word {
            // The environment has texts only.
            "required" | "true" => Ok(ConfinementMode::Required),
            "attempted" => Ok(ConfinementMode::Attempted),
            "off" | "false" => Ok(ConfinementMode::Off),
            _ => Err(E::unknown_variant(word, &["required", "attempted", "off"])),
        }
    }
}

/// Which documents may be read by one child process at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessSharing {
    /// All.
    #[default]
    All,
    /// Those of one tenant; a process ends with the last of them.
    Tenant,
    /// None: each has a process of its own.
    None,
}

impl Default for CpuConfig {
    fn default() -> Self {
        Self {
            page_memory: ByteSize::from_mib(1536),
            memory: ByteSize::from_mib(0),
            documents_per_process: 1000,
            confine: ConfinementMode::default(),
            shared: ProcessSharing::default(),
            program: PathBuf::new(),
        }
    }
}

impl CpuConfig {
    pub(super) fn collect_problems(&self, limits: &LimitsConfig, problems: &mut Vec<String>) {
        let least = limits.page_pixels.saturating_mul(PIXEL_BYTES).saturating_add(PAGE_BASE);
        if self.page_memory.0 < least {
            problems.push(format!(
                "cpu.page_memory ({}) must be at least 256MiB and 12 bytes for each of \
                 limits.page_pixels, here {}MiB: the largest allowed page could not be read",
                self.page_memory,
                least.div_ceil(1 << 20),
            ));
        }
        if self.documents_per_process == 0 {
            problems.push("cpu.documents_per_process must be above 0".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_confinement_are_read_and_those_of_earlier_files_as_well() {
        #[derive(Deserialize)]
        struct Read {
            confine: ConfinementMode,
        }
        let read = |text: &str| toml::from_str::<Read>(text).map(|read| read.confine).ok();
        for (text, expected) in [
            ("confine = 'required'", Some(ConfinementMode::Required)),
            ("confine = 'attempted'", Some(ConfinementMode::Attempted)),
            ("confine = 'off'", Some(ConfinementMode::Off)),
            ("confine = true", Some(ConfinementMode::Required)),
            ("confine = false", Some(ConfinementMode::Off)),
            ("confine = 'false'", Some(ConfinementMode::Off)),
            ("confine = 'yes'", None),
            ("confine = 1", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
