//! `docmill quality`: the bounds on silent errors, and where errors arise.

use super::{CommandContext, CommandExit, DATABASE, print};
use docmill_gate::kinds::KindSet;
use docmill_operations::silent_errors::{self, QualityReport};

/// Arguments of `quality`.
#[derive(Debug, clap::Args)]
pub(super) struct QualityArgs {
    /// Only this tenant
    #[arg(long)]
    tenant: Option<String>,
}

pub(super) async fn run(
    context: &CommandContext,
    arguments: QualityArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let kinds = KindSet::load(&app.config().kinds)?;
    let (terms, tenant) = (&app.config().silent_errors, arguments.tenant.as_deref());
    let report = silent_errors::report_quality(&db, terms, &kinds, tenant).await?;
    context.result_output().show(&report, || format_report(&report))?;
    db.close().await;
    Ok(CommandExit::Done)
}

fn format_report(report: &QualityReport) -> String {
    let bounds = report.bounds.iter().map(|bound| {
        let to_show = bound.levels.first().and_then(|price| price.looks_to_show);
        [
            print::or_dash(Some(&bound.scope.tenant)),
            bound.scope.kind.clone(),
            bound.scope.reader.clone(),
            format!("1 in {}", bound.one_in),
            bound.state.to_owned(),
            format!("{:.2}", bound.level),
            bound.decided.to_string(),
            bound.wrong.to_string(),
            bound.waiting.to_string(),
            print::or_dash(bound.at_most.map(|share| format!("{:.2} %", share * 100.0)).as_deref()),
            print::or_dash(to_show.map(|looks| looks.to_string()).as_deref()),
        ]
    });
    let rows: Vec<_> = bounds.collect();
    let header = [
        "tenant",
        "kind",
        "reader",
        "bound",
        "state",
        "level",
        "decided",
        "wrong",
        "waiting",
        "at most",
        "looks to show",
    ];
    let mut text = match rows.is_empty() {
        true => "no bound on silent errors is stated, or no document was drawn yet".to_owned(),
        false => print::table(header, &rows),
    };
    let corrections = report.corrections.iter();
    let rows: Vec<_> = corrections
        .map(|row| [row.field.clone(), row.reader.clone(), row.corrections.to_string()])
        .collect();
    if !rows.is_empty() {
        text.push_str("\n\n");
        text.push_str(&print::table(["corrected", "reader", "times"], &rows));
    }
    text
}
