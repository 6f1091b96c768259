//! `docmill block` and `unblock`: content that is cancelled unread.

use super::{CommandContext, CommandExit, DATABASE, jobs};
use docmill_operations::retry;

/// Arguments of `block` and `unblock`.
#[derive(Debug, clap::Args)]
pub(super) struct BlockArgs {
    /// SHA-256 of the content: 64 digits of hex
    #[arg(value_parser = parse_sha256)]
    sha256: String,
    /// Comment for the audit log
    #[arg(long, default_value = "")]
    why: String,
}

fn parse_sha256(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text);
    }
    Err("64 digits of hex; `docmill status ID` shows a document's".to_owned())
}

pub(super) async fn run(
    context: &CommandContext,
    BlockArgs { sha256, why }: BlockArgs,
    block: bool,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let by = jobs::audit_note(why);
    let changed = match block {
        true => retry::block_content(&db, &sha256, &by).await?,
        false => retry::unblock_content(&db, &sha256, &by).await?,
    };
    let done = serde_json::json!({ "sha256": sha256, "blocked": block, "changed": changed });
    context.result_output().show(&done, || match (block, changed) {
        (true, true) => format!("{sha256} is blocked: such documents end `blocked`, unread"),
        (true, false) => format!("{sha256} was blocked before"),
        (false, true) => format!("{sha256} is no longer blocked"),
        (false, false) => format!("{sha256} was not blocked"),
    })?;
    Ok(CommandExit::Done)
}
