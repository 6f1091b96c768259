//! ZIP archives (APPNOTE 6.3): each file is a member. Its size is counted by expanding it, whatever the
//! archive says, and it is expanded once more when it is asked for.

use std::io::{self, Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::{MemberCollector, MemberContent};
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

const BEGIN: &[u8] = b"PK\x03\x04";
/// End of the central directory, its count of entries at [`COUNT_AT`]; of ZIP64 at [`COUNT64_AT`].
const END: &[u8] = b"PK\x05\x06";
const END64: &[u8] = b"PK\x06\x06";
const COUNT_AT: usize = 10;
/// Offset of the directory's size in the end record.
const SIZE_AT: usize = 12;
/// Offset of the first file's name in an archive, and its beginning in OpenDocument files and
/// books: the name `mimetype` and its content.
const NAME_AT: usize = 30;
const TYPED: &[u8] = b"mimetypeapplication/";
const COUNT64_AT: usize = 32;
/// The end lies within so many bytes of the file's end: its longest comment and itself.
const END_WINDOW: usize = 66_000;

/// Names in every Office document, Java archive and book, which are no containers.
const PACKAGES: [&[u8]; 4] =
    [b"[Content_Types].xml", TYPED, b"META-INF/MANIFEST.MF", b"META-INF/manifest.xml"];
/// Files and folders that operating systems add.
const LITTER: [&str; 3] = ["__MACOSX/", ".DS_Store", "Thumbs.db"];

/// Whether it is a ZIP and no other format that is one inside.
pub(super) fn is_archive(bytes: &[u8]) -> bool {
    let Some(directory) = directory_of(bytes) else {
        return bytes.starts_with(BEGIN)
            && !PACKAGES.iter().any(|name| memchr::memmem::find(bytes, name).is_some());
    };
    // Names within a file that is stored as it is are not names of the archive's own.
    let is_package = PACKAGES.iter().any(|name| memchr::memmem::find(directory, name).is_some());
    let is_typed = bytes.get(NAME_AT..).is_some_and(|rest| rest.starts_with(TYPED));
    bytes.starts_with(BEGIN) && !is_package && !is_typed
}

/// The list of an archive's files at its end; `None` for the beginning of a file.
fn directory_of(bytes: &[u8]) -> Option<&[u8]> {
    let from = bytes.len().saturating_sub(END_WINDOW);
    let end = from + memchr::memmem::rfind(bytes.get(from..)?, END)?;
    let size: [u8; 4] = bytes.get(end + SIZE_AT..end + SIZE_AT + 4)?.try_into().ok()?;
    let size = usize::try_from(u32::from_le_bytes(size)).ok()?;
    bytes.get(end.checked_sub(size)?..end)
}

/// The members of an archive.
pub(super) fn add_members(
    bytes: &[u8],
    found: &mut MemberCollector<'_>,
) -> Result<(), PageRefusal> {
    let count = check_entries(bytes, found)?;
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_error| damaged())?;
    if u64::try_from(archive.len()).unwrap_or(u64::MAX) < count {
        let detail = "a ZIP archive with two files of one name";
        return Err(PageRefusal::new(OutcomeReason::Corrupt, detail));
    }
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| read_error(&error))?;
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let readable = entry.name().map_or(name, |name| name.into_owned());
        if entry.is_dir() || LITTER.iter().any(|litter| readable.contains(litter)) {
            continue;
        }
        let room = found.room();
        let size = io::copy(&mut entry.take(room.saturating_add(1)), &mut io::sink());
        let size = size.map_err(|_error| damaged())?;
        found.add_content(Some(&readable), size, MemberContent::ZipEntry(index))?;
    }
    Ok(())
}

/// The number of entries. The central directory is read as a whole: of more than
/// `limits.archive_entries` it is not.
fn check_entries(bytes: &[u8], found: &MemberCollector<'_>) -> Result<u64, PageRefusal> {
    let window = bytes.get(bytes.len().saturating_sub(END_WINDOW)..).unwrap_or(bytes);
    let count = memchr::memmem::rfind(window, END)
        .and_then(|at| window.get(at + COUNT_AT..at + COUNT_AT + 2)?.try_into().ok())
        .map_or(0, |bytes| u64::from(u16::from_le_bytes(bytes)));
    let count64 = memchr::memmem::rfind(window, END64)
        .and_then(|at| window.get(at + COUNT64_AT..at + COUNT64_AT + 8)?.try_into().ok())
        .map_or(0, u64::from_le_bytes);
    let most = found.limits.archive_entries;
    if count.max(count64) > u64::from(most) {
        let detail = format!("a ZIP archive of more entries than limits.archive_entries ({most})");
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    // 65,535 stands for a number that is elsewhere.
    Ok(if count == u64::from(u16::MAX) { count64 } else { count })
}

/// One entry, which had so many bytes when it was counted.
pub(super) fn extract(bytes: &[u8], index: usize, size: u64) -> Result<Vec<u8>, PageRefusal> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_error| damaged())?;
    let entry = archive.by_index(index).map_err(|_error| damaged())?;
    let mut content = Vec::new();
    entry.take(size).read_to_end(&mut content).map_err(|_error| damaged())?;
    Ok(content)
}

fn read_error(error: &ZipError) -> PageRefusal {
    match error {
        ZipError::InvalidPassword => locked(),
        ZipError::UnsupportedArchive(why) if *why == ZipError::PASSWORD_REQUIRED => locked(),
        _ => damaged(),
    }
}

fn locked() -> PageRefusal {
    PageRefusal::new(OutcomeReason::Encrypted, "a ZIP archive with a password")
}

fn damaged() -> PageRefusal {
    PageRefusal::new(OutcomeReason::Corrupt, "a ZIP archive that is damaged or cut off")
}
