//! `docmill doctor`: what is wrong with the set-up, and what to change.

use super::{Context, Exit};
use crate::config::Needs;
use crate::ops::doctor::process::Surroundings;
use crate::ops::doctor::{Report, Verdict};

pub(super) async fn run(context: &Context) -> anyhow::Result<Exit> {
    let app = context.app(Needs::WORKER)?;
    context.quiet_logs()?;
    let report = Box::pin(app.doctor(&Surroundings::here(app.config()))).await;
    context.out().show(&report, || describe(&report))?;
    Ok(Exit::of(report.well))
}

fn describe(report: &Report) -> String {
    let mut lines = Vec::new();
    for finding in &report.findings {
        let word = match finding.verdict {
            Verdict::Ok => "ok   ",
            Verdict::Warn => "warn ",
            Verdict::Wrong => "WRONG",
        };
        lines.push(format!("{word} {}: {}", finding.check, finding.found));
        lines.extend(finding.advice.as_ref().map(|advice| format!("      -> {advice}")));
    }
    let wrong = report.findings.iter().filter(|one| one.verdict == Verdict::Wrong).count();
    lines.push(match wrong {
        0 => "nothing must be changed".to_owned(),
        1 => "1 thing must be changed".to_owned(),
        more => format!("{more} things must be changed"),
    });
    lines.join("\n")
}
