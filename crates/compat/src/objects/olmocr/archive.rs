//! Archives of documents, `.tar.gz` and `.tgz`: each PDF in one is a separate document, named
//! `ARCHIVE::MEMBER`, as in olmOCR.
//!
//! Archives are untrusted. One is unpacked in memory, a document at a time. Member names are never
//! used as file names, links and devices are skipped, and bytes, entries and names are counted
//! during unpacking. Not promised: sparse files, and names that are no UTF-8, whose invalid bytes
//! are replaced.

use std::io::{self, Read};

use bytes::Bytes;
use docmill_core::config::LimitsConfig;
use flate2::bufread::MultiGzDecoder;

/// Maximum bytes of a member's name, or of an extended header.
const MAX_NAME: u64 = 64 << 10;
/// Between archive and member in the name of a document.
const SEPARATOR: &str = "::";

/// Whether a path of an index is an archive; olmOCR goes by the ending as well.
pub fn is_archive(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    lower.ends_with(".tar.gz") || lower.ends_with(".tgz")
}

/// The name of a document of an archive.
pub fn member_path(archive: &str, member: &str) -> String {
    format!("{archive}{SEPARATOR}{member}")
}

/// Archive and member, if a path names a document of an archive.
pub fn split_member(path: &str) -> Option<(&str, &str)> {
    let mut splits = path.match_indices(SEPARATOR).filter_map(|(at, _)| path.split_at_checked(at));
    let (archive, member) = splits.find(|(archive, _)| is_archive(archive))?;
    Some((archive, member.strip_prefix(SEPARATOR)?))
}

/// How much of an archive is read.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveLimits {
    /// Bytes of an archive as it lies, and of all that is in it together.
    pub bytes: u64,
    /// Maximum entries of any kind.
    pub entries: u32,
    /// Bytes of one document.
    pub document: u64,
}

impl Default for ArchiveLimits {
    /// Those of the default settings.
    fn default() -> Self {
        Self::from(&LimitsConfig::default())
    }
}

impl From<&LimitsConfig> for ArchiveLimits {
    fn from(limits: &LimitsConfig) -> Self {
        Self {
            bytes: limits.archive_bytes.0,
            entries: limits.archive_entries,
            document: limits.document_bytes.0,
        }
    }
}

/// A document of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberContent {
    /// The bytes of the document.
    Bytes(Bytes),
    /// The document has more bytes than allowed.
    TooLarge,
}

/// The next event of a walk through an archive; none after its end.
#[derive(Debug, PartialEq, Eq)]
pub enum ArchiveStep {
    /// A PDF.
    Document {
        /// The name that it has in the archive.
        member: String,
        /// The content.
        content: MemberContent,
    },
    /// The rest of the archive is not read.
    Broken {
        /// One of our reasons.
        code: &'static str,
        /// Counts and limits, never content.
        detail: String,
    },
}

/// Bounds the unpacked bytes; exceeding the bound is an error, not an end of file.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(room)?;
        let counted = u64::try_from(read).unwrap_or(u64::MAX);
        self.left = self.left.checked_sub(counted).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(read)
    }
}

/// Reports each PDF of a packed archive until `say` returns false.
///
/// # Errors
/// The step that explains why the rest is not read.
pub fn list_members(
    packed: &[u8],
    limits: ArchiveLimits,
    mut say: impl FnMut(ArchiveStep) -> bool,
) -> Result<(), ArchiveStep> {
    let broken = |error: io::Error| break_off(&error, limits);
    let unpacked = BoundedReader { inner: MultiGzDecoder::new(packed), left: limits.bytes };
    let mut archive = tar::Archive::new(unpacked);
    let (mut entries, mut longer_name) = (0_u32, None);
    // Raw: the library would take names of any length into memory.
    for entry in archive.entries().map_err(broken)?.raw(true) {
        let mut entry = entry.map_err(broken)?;
        entries += 1;
        if entries > limits.entries {
            let detail = format!("more than {} entries (limits.archive_entries)", limits.entries);
            return Err(ArchiveStep::Broken { code: "too_large", detail });
        }
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
            let text = read_name(&mut entry).map_err(broken)?;
            longer_name = match kind.is_gnu_longname() {
                true => Some(text.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()),
                false => pax_path(&text).or(longer_name),
            };
            continue;
        }
        let name = longer_name.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
        let is_pdf = name.to_ascii_lowercase().ends_with(b".pdf");
        if !is_pdf || !(kind.is_file() || kind.is_contiguous()) {
            continue;
        }
        let content = read_member(&mut entry, limits.document).map_err(broken)?;
        let member = String::from_utf8_lossy(&name).into_owned();
        if !say(ArchiveStep::Document { member, content }) {
            break;
        }
    }
    Ok(())
}

fn break_off(error: &io::Error, limits: ArchiveLimits) -> ArchiveStep {
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            let detail = format!("it unpacks to more than {} (limits.archive_bytes)", limits.bytes);
            ArchiveStep::Broken { code: "too_large", detail }
        }
        _ => {
            let detail = "no archive, or torn: .tar.gz is read".to_owned();
            ArchiveStep::Broken { code: "corrupt", detail }
        }
    }
}

/// The text of an extended header.
fn read_name(entry: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    entry.take(MAX_NAME + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_NAME {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(text)
}

/// The name that an extended header of POSIX gives to the entry behind it.
fn pax_path(text: &[u8]) -> Option<Vec<u8>> {
    let mut said = tar::PaxExtensions::new(text).filter_map(Result::ok);
    said.find(|one| one.key_bytes() == b"path").map(|one| one.value_bytes().to_vec())
}

/// The bytes of a member, whole, unless there are too many.
fn read_member<R: Read>(entry: &mut tar::Entry<'_, R>, largest: u64) -> io::Result<MemberContent> {
    let size = entry.size();
    if size > largest {
        return Ok(MemberContent::TooLarge);
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    // At the end of a torn archive the library gives less than was announced, without an error.
    if bytes.len() as u64 != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(MemberContent::Bytes(bytes.into()))
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
