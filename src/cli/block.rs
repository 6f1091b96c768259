//! `docmill block` and `unblock`: content that is cancelled unread.

use super::{Context, DATABASE, Exit, jobs};
use crate::ops::retry;

/// Arguments of `block` and `unblock`.
#[derive(Debug, clap::Args)]
pub(super) struct Blocking {
    /// SHA-256 of the content: 64 digits of hex
    #[arg(value_parser = sha256)]
    sha256: String,
    /// For those who read it later
    #[arg(long, default_value = "")]
    why: String,
}

fn sha256(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text);
    }
    Err("64 digits of hex; `docmill status ID` shows a document's".to_owned())
}

pub(super) async fn run(
    context: &Context,
    Blocking { sha256, why }: Blocking,
    block: bool,
) -> anyhow::Result<Exit> {
    let app = context.app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.database().await?;
    db.require_schema().await?;
    let by = jobs::by(why);
    let changed = match block {
        true => retry::block(&db, &sha256, &by).await?,
        false => retry::unblock(&db, &sha256, &by).await?,
    };
    let done = serde_json::json!({ "sha256": sha256, "blocked": block, "changed": changed });
    context.out().show(&done, || match (block, changed) {
        (true, true) => format!("{sha256} is blocked: such documents end `blocked`, unread"),
        (true, false) => format!("{sha256} was blocked before"),
        (false, true) => format!("{sha256} is no longer blocked"),
        (false, false) => format!("{sha256} was not blocked"),
    })?;
    Ok(Exit::Done)
}
