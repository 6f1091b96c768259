//! `docmill audit`: whether rows of the audit were changed or removed.

use super::{CommandContext, CommandExit, DATABASE, print};
use docmill_operations::inspect::{self, AuditCheck, AuditDefect, AuditFinding};

/// Arguments of `audit`.
#[derive(Debug, clap::Args)]
pub(super) struct AuditArgs {
    /// Head of an earlier check; it must still be in the chain
    #[arg(long, value_name = "HASH")]
    head: Option<String>,
}

pub(super) async fn run(
    context: &CommandContext,
    arguments: AuditArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let check = inspect::check_audit(&db, arguments.head.as_deref()).await?;
    context.result_output().show(&check, || format_check(&check))?;
    db.close().await;
    Ok(CommandExit::from_success(check.is_whole()))
}

fn format_check(check: &AuditCheck) -> String {
    let head = check.head.as_deref().unwrap_or("none");
    let mut text = format!("{} links, {} of erased rows; head {head}", check.links, check.erased);
    if check.has_known_head == Some(false) {
        text.push_str("\nTHE HEAD GIVEN IS NOT IN THE CHAIN: it was written anew or cut off");
    }
    if check.defects > 0 {
        let rows: Vec<_> = check.findings.iter().map(format_finding).collect();
        text.push_str(&format!("\n{} rows differ from the chain\n", check.defects));
        text.push_str(&print::table(["table", "row", "finding"], &rows));
    }
    text
}

fn format_finding(finding: &AuditFinding) -> [String; 3] {
    let words = match finding.defect {
        AuditDefect::Removed => "removed, and nothing says by whom",
        AuditDefect::Changed => "changed after it was written",
        AuditDefect::Broken => "does not continue the row before: a link is missing or changed",
        AuditDefect::Unlinked => "written past the chain",
    };
    [finding.source.clone(), finding.row_id.to_string(), words.to_owned()]
}
