//! Commands on a document's result: download, preview, logs.

use std::io::{Cursor, Read as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::io::AsyncWriteExt as _;

use crate::cli::{CommandContext, CommandExit};
use docmill_compat::bucket::{self, BlobForgeBucket};
use docmill_compat::objects::blobforge::out_key;
use docmill_storage::{GetOptions, GetResult};

/// A larger result is no preview's to read; bytes.
const MAX_RESULT_BYTES: u64 = 1 << 30;
/// Bytes of a text that a preview looks at.
const PREVIEWED: u64 = 1 << 20;
/// A larger log was not written by BlobForge; bytes.
const MAX_LOG: u64 = 1 << 20;

/// Arguments of `download`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketDownloadArgs {
    /// Hashes or prefixes
    #[arg(required = true)]
    documents: Vec<String>,
    /// Output folder for HASH.zip
    #[arg(long, short, default_value = ".", value_name = "FOLDER")]
    output: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

/// Arguments of `preview`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketPreviewArgs {
    /// Hash or prefix
    document: String,
    /// Number of lines
    #[arg(long, short = 'n', default_value_t = 40)]
    lines: usize,
}

/// Arguments of `logs`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct BucketLogsArgs {
    /// Hash or prefix
    document: String,
}

pub(super) async fn download(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketDownloadArgs,
) -> anyhow::Result<CommandExit> {
    let mut written = Vec::new();
    for hash in super::resolve_hashes(bucket, &arguments.documents).await? {
        let bytes = fetch_result(bucket, &hash).await?;
        let path = arguments.output.join(format!("{hash}.zip"));
        write_file(&path, &bytes, arguments.force).await?;
        written.push(path.display().to_string());
    }
    context.result_output().show(&written, || written.join("\n"))?;
    Ok(CommandExit::Done)
}

/// Writes atomically: readers never see half a file.
async fn write_file(path: &Path, bytes: &[u8], force: bool) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    if !force && tokio::fs::try_exists(path).await.with_context(failed)? {
        anyhow::bail!("{} exists: use --force to overwrite", path.display());
    }
    let part = path.with_extension(format!("{}.part", uuid::Uuid::new_v4().simple()));
    let write = async {
        let mut file = tokio::fs::File::create_new(&part).await?;
        file.write_all(bytes).await?;
        file.sync_all().await?;
        tokio::fs::rename(&part, path).await
    };
    let done = write.await;
    if done.is_err() {
        // The error is the news, not that its remains are gone.
        drop(tokio::fs::remove_file(&part).await);
    }
    done.map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))
}

async fn fetch_result(bucket: &BlobForgeBucket, hash: &str) -> anyhow::Result<bytes::Bytes> {
    let what = GetOptions { at_most: MAX_RESULT_BYTES, if_match: None };
    match bucket.store().get(&out_key(hash), what).await? {
        GetResult::Found(found) => Ok(found.bytes),
        GetResult::TooLarge { size } => anyhow::bail!("the result is too large: {size} bytes"),
        GetResult::Missing | GetResult::Changed => {
            anyhow::bail!(
                "{hash} has no result; `docmill bucket status {hash}` says where it stands"
            )
        }
    }
}

pub(super) async fn preview(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketPreviewArgs,
) -> anyhow::Result<CommandExit> {
    let hash = bucket::find_document(bucket, &arguments.document, false).await?.hash;
    let bytes = fetch_result(bucket, &hash).await?;
    let mut text = Vec::new();
    let mut archive =
        zip::ZipArchive::new(Cursor::new(bytes)).context("the result is not a zip file")?;
    let content = archive.by_name("content.md").context("the result has no content.md")?;
    content.take(PREVIEWED).read_to_end(&mut text).context("the result is damaged")?;
    let text = String::from_utf8_lossy(&text);
    let shown: Vec<&str> = text.lines().take(arguments.lines).collect();
    context.result_output().show(&shown, || shown.join("\n"))?;
    Ok(CommandExit::Done)
}

pub(super) async fn show_logs(
    context: &CommandContext,
    bucket: &BlobForgeBucket,
    arguments: BucketLogsArgs,
) -> anyhow::Result<CommandExit> {
    let found = bucket::find_document(bucket, &arguments.document, false).await?;
    let mut lines: Vec<String> = found
        .history
        .iter()
        .map(|one| format!("{}  run {} of {}: {}", one.at, one.run, one.worker, one.error))
        .collect();
    lines.extend(found.reason.map(|reason| format!("now: {reason}")));
    let store = bucket.store();
    for entry in store.list(&format!("registry/logs/{}/", found.hash), None, 100).await? {
        let what = GetOptions { at_most: MAX_LOG, if_match: None };
        if let GetResult::Found(log) = store.get(&entry.key, what).await? {
            lines.push(format!("{}:", entry.key));
            lines.extend(String::from_utf8_lossy(&log.bytes).lines().map(str::to_owned));
        }
    }
    context.result_output().show(&lines, || lines.join("\n"))?;
    Ok(CommandExit::from_success(!lines.is_empty()))
}
