//! `docmill replay`: the present kinds, prompts and models over documents that people decided about.

use std::path::PathBuf;

use super::costs::format_amount;
use super::{CommandContext, CommandExit, print};
use crate::app::App;
use docmill_core::config::ConfigNeeds;
use docmill_operations::replay::{self, DecidedReplay, ReplayFilter, ReplayTerms};

/// It reads rows and transcripts, and no messages.
const NEEDS: ConfigNeeds = ConfigNeeds { database: true, queue: false, store: true };

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// Folder of kinds to try, in the place of `kinds.path`
    #[arg(long, value_name = "DIR")]
    kinds: Option<PathBuf>,
    /// Filter by tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Filter by kind
    #[arg(long)]
    kind: Option<String>,
    /// Maximum number of documents, the newest decisions first
    #[arg(long, default_value_t = 1000)]
    limit: u32,
    /// Begin no further document once models have cost this much
    #[arg(long, value_name = "AMOUNT", value_parser = parse_amount)]
    max_cost: Option<u64>,
    /// Fail unless at most this share of documents gets worse, with 95 % certainty
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, value_parser = parse_share)]
    max_worse: f64,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "a share from 0 to below 1".to_owned())
}

/// Billionths of the currency.
fn parse_amount(text: &str) -> Result<u64, String> {
    replay::parse_nanos(text).ok_or_else(|| "an amount of money".to_owned())
}

pub(super) async fn run(
    context: &CommandContext,
    arguments: ReplayArgs,
) -> anyhow::Result<CommandExit> {
    let mut config = context.load_config(NEEDS)?;
    if let Some(folder) = arguments.kinds {
        config.kinds.path = folder;
    }
    context.quiet_logs()?;
    let currency = config.cost.currency.clone();
    let app = App::new(config);
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let store = app.open_store().await?;
    let pipeline = Box::pin(app.replay_pipeline(&db)).await?;
    let terms = ReplayTerms {
        filter: ReplayFilter {
            tenant: arguments.tenant,
            kind: arguments.kind,
            ..ReplayFilter::default()
        },
        limit: arguments.limit,
        at_once: std::thread::available_parallelism().map_or(1, usize::from),
        max_cost_nanos: arguments.max_cost,
        max_worse: arguments.max_worse,
    };
    let report = Box::pin(replay::replay_decided(&db, &store, &pipeline, &terms)).await?;
    context.result_output().show(&report, || format_report(&report, &currency))?;
    db.close().await;
    Ok(CommandExit::from_success(report.taken))
}

fn format_report(report: &DecidedReplay, currency: &str) -> String {
    let cost = format_amount(i64::try_from(report.cost_nanos).unwrap_or(i64::MAX));
    let mut lines = vec![
        format!(
            "{} documents: {} changed, {} better, {} worse ({} of them unflagged)",
            report.documents, report.changed, report.better, report.worse, report.worse_unflagged
        ),
        format!(
            "{} newly flagged, {} no longer flagged, {} without a transcript",
            report.newly_flagged, report.no_longer_flagged, report.left_out
        ),
        format!("{cost} {currency}, {:.1} s", report.seconds),
    ];
    if report.cut_short {
        lines.push("ended early: --max-cost or a budget of the day is spent".to_owned());
    }
    lines.extend(report.named.iter().map(|one| {
        let fields = |names: &std::collections::BTreeSet<String>| {
            print::or_dash(Some(&names.iter().cloned().collect::<Vec<_>>().join(" ")))
        };
        let failed = if one.failed { ", fails now" } else { "" };
        let (id, worse, better) = (one.document_id, fields(&one.worse), fields(&one.better));
        format!("  {id}: worse {worse}, better {better}{failed}")
    }));
    lines.push(format!(
        "{}: at most {:.2} % get worse with 95 % certainty; {:.2} % are allowed",
        if report.taken { "taken" } else { "not taken" },
        report.worse_at_most * 100.0,
        report.max_worse * 100.0
    ));
    lines.join("\n")
}
