//! `docmill doctor`: what is wrong with the set-up, and what to change.

use clap::Args;

use super::{CommandContext, CommandExit};
use docmill_core::config::ConfigNeeds;
use docmill_operations::doctor::process::PlatformLimits;
use docmill_operations::doctor::{DoctorReport, Severity};

/// Arguments of `docmill doctor`.
#[derive(Debug, Clone, Args)]
pub(super) struct DoctorArgs {
    /// Also send each kind's schema to its models in one short call each, which costs money
    #[arg(long)]
    probe: bool,
}

pub(super) async fn run(context: &CommandContext, args: DoctorArgs) -> anyhow::Result<CommandExit> {
    let app = context.build_app(ConfigNeeds::WORKER)?;
    context.quiet_logs()?;
    let report = Box::pin(app.run_doctor(&PlatformLimits::detect(app.config()), args.probe)).await;
    context.result_output().show(&report, || format_report(&report))?;
    Ok(CommandExit::from_success(report.well))
}

fn format_report(report: &DoctorReport) -> String {
    let mut lines = Vec::new();
    for finding in &report.findings {
        let word = match finding.verdict {
            Severity::Ok => "ok   ",
            Severity::Warn => "warn ",
            Severity::Wrong => "WRONG",
        };
        lines.push(format!("{word} {}: {}", finding.check, finding.found));
        lines.extend(finding.advice.as_ref().map(|advice| format!("      -> {advice}")));
    }
    let wrong = report.findings.iter().filter(|one| one.verdict == Severity::Wrong).count();
    lines.push(match wrong {
        0 => "nothing must be changed".to_owned(),
        1 => "1 thing must be changed".to_owned(),
        more => format!("{more} required fixes"),
    });
    lines.join("\n")
}
