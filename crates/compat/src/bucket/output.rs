//! The result of a document as BlobForge packs it: `content.md`, `assets/*`, `info.json`.

use std::io::{Cursor, Write as _};

use bytes::Bytes;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use super::convert::{ConversionOutput, OriginalDocument};
use docmill_core::fault::{Error, Result};

/// Which worker made the output, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputMaker<'a> {
    /// The id of the worker.
    pub(super) worker: &'a str,
    /// When the output was made; RFC 3339, UTC.
    pub(super) at: &'a str,
}

/// Packs a result. The same result is packed into the same bytes.
///
/// # Errors
/// Internal: a part cannot be packed.
pub(super) fn pack_output(
    original: &OriginalDocument,
    output: &ConversionOutput,
    maker: OutputMaker<'_>,
) -> Result<Bytes> {
    let info = build_info(original, output, maker);
    let info = serde_json::to_vec_pretty(&info)
        .map_err(|error| Error::internal("cannot serialise the result").with_source(error))?;
    write_archive(output, &info)
        .map_err(|error| Error::internal("the result cannot be packed").with_source(error))
}

fn write_archive(output: &ConversionOutput, info: &[u8]) -> zip::result::ZipResult<Bytes> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default());
    let mut part = |name: &str, bytes: &[u8]| -> zip::result::ZipResult<()> {
        zip.start_file(name, options)?;
        zip.write_all(bytes)?;
        Ok(())
    };
    part("content.md", output.markdown.as_bytes())?;
    for (name, bytes) in &output.assets {
        part(&format!("assets/{name}"), bytes)?;
    }
    part("info.json", info)?;
    Ok(zip.finish()?.into_inner().into())
}

/// BlobForge's fields; `marker_meta` has docmill's converter data in place of Marker's.
fn build_info(
    original: &OriginalDocument,
    output: &ConversionOutput,
    maker: OutputMaker<'_>,
) -> Value {
    json!({
        "hash": original.hash,
        "converted_at": maker.at,
        "worker_id": maker.worker,
        "original_filename": original.name,
        "tags": original.tags,
        "size_bytes": original.bytes.len().to_string(),
        "marker_meta": output.meta,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_result_holds_the_text_the_assets_and_who_made_it() {
        let original = OriginalDocument {
            hash: "ab".repeat(32),
            name: "we \"ird\", näme\n.pdf".to_owned(),
            tags: vec!["a".to_owned()],
            bytes: Bytes::from_static(b"%PDF"),
        };
        let output = ConversionOutput {
            markdown: "# ä\n".to_owned(),
            assets: vec![("transcription.json".to_owned(), Bytes::from_static(b"{}"))],
            meta: json!({"reader": "rules"}),
        };
        let maker = OutputMaker { worker: "w-0", at: "2026-01-01T00:00:00Z" };
        let bytes = pack_output(&original, &output, maker).unwrap();
        assert_eq!(bytes, pack_output(&original, &output, maker).unwrap());
        let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut read = |name: &str| {
            let mut text = String::new();
            zip.by_name(name).unwrap().read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(read("content.md"), "# ä\n");
        assert_eq!(read("assets/transcription.json"), "{}");
        let info: Value = serde_json::from_str(&read("info.json")).unwrap();
        assert_eq!(info["size_bytes"], "4", "a text, as BlobForge has it");
        assert_eq!(info["original_filename"], original.name.as_str());
    }
}
