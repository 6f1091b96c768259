//! Permissions that the `tesseract` program needs in a confined process.

use std::path::{Path, PathBuf};

use crate::sandbox::confine::ProcessPermissions;

/// Where language data lies if `TESSDATA_PREFIX` does not say; those that exist.
const DATA: [&str; 4] = [
    "/usr/share/tesseract-ocr",
    "/usr/share/tessdata",
    "/usr/local/share/tessdata",
    "/usr/local/share/tesseract-ocr",
];

/// The program itself, libraries, language data.
pub(super) fn program_permissions(program: &Path) -> ProcessPermissions {
    let data = DATA.iter().map(PathBuf::from);
    let named = std::env::var_os("TESSDATA_PREFIX").map(PathBuf::from);
    let libraries = std::env::var_os("LD_LIBRARY_PATH");
    let libraries = libraries.iter().flat_map(std::env::split_paths);
    ProcessPermissions::for_program(
        locate_program(program),
        data.chain(named).chain(libraries).collect::<Vec<_>>(),
    )
}

/// The file that a name without a folder means.
pub(super) fn locate_program(program: &Path) -> PathBuf {
    if program.components().count() > 1 {
        return program.to_owned();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates = std::env::split_paths(&path).map(|folder| folder.join(program));
    candidates.find(|file| file.is_file()).unwrap_or_else(|| program.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_on_the_path_and_a_path_is_left_alone() {
        let shell = program_permissions(Path::new("sh")).programs;
        assert!(shell[0].is_absolute() && shell[0].ends_with("sh"), "{shell:?}");
        assert_eq!(
            locate_program(Path::new("/nowhere/tesseract")),
            Path::new("/nowhere/tesseract")
        );
        assert_eq!(
            locate_program(Path::new("nowhere-to-be-found")),
            Path::new("nowhere-to-be-found")
        );
    }
}
