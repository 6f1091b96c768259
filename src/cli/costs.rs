//! `docmill costs`: what was spent, and how much of the day's budget is.

use std::time::Duration;

use clap::ValueEnum;
use rust_decimal::Decimal;
use serde::Serialize;
use time::OffsetDateTime;

use super::{CommandContext, CommandExit, DATABASE, print};
use docmill_operations::inspect::{self, CostGrouping, CostSum};

/// Arguments of `costs`.
#[derive(Debug, clap::Args)]
pub(super) struct CostsArgs {
    /// Group by
    #[arg(long, value_enum, default_value_t = CostGroupingArg::Day)]
    by: CostGroupingArg,
    /// Spent within this time, in whole UTC days
    #[arg(long, value_name = "TIME", value_parser = inspect::parse_look_back, default_value = "30days")]
    since: Duration,
    /// Maximum number of rows
    #[arg(long, default_value_t = 100)]
    limit: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CostGroupingArg {
    Day,
    Tenant,
    Model,
    Document,
}

/// For programs: the amount beside its exact count.
#[derive(Debug, Serialize)]
struct CostLine {
    #[serde(flatten)]
    sum: CostSum,
    cost: String,
    /// Savings by batches.
    saved: String,
    currency: String,
}

pub(super) async fn run(
    context: &CommandContext,
    arguments: CostsArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let by = match arguments.by {
        CostGroupingArg::Day => CostGrouping::Day,
        CostGroupingArg::Tenant => CostGrouping::Tenant,
        CostGroupingArg::Model => CostGrouping::Model,
        CostGroupingArg::Document => CostGrouping::Document,
    };
    let since = OffsetDateTime::now_utc() - arguments.since;
    let sums = inspect::sum_costs(&db, by, since, arguments.limit).await?;
    let currency = &app.config().cost.currency;
    let lines: Vec<CostLine> = sums
        .into_iter()
        .map(|sum| CostLine {
            cost: format_amount(sum.cost_nanos),
            saved: format_amount(sum.saved_nanos),
            currency: currency.clone(),
            sum,
        })
        .collect();
    let unpriced = app.config().unpriced_models(OffsetDateTime::now_utc().date());
    context.result_output().show(&lines, || {
        format!("{}{}", warn_unpriced(&unpriced), format_costs(&lines, by, currency))
    })?;
    db.close().await;
    Ok(CommandExit::Done)
}

/// Billionths as an amount of at least two places.
pub(super) fn format_amount(nanos: i64) -> String {
    let exact = Decimal::new(nanos, 9).normalize();
    if exact.scale() < 2 { format!("{exact:.2}") } else { exact.to_string() }
}

/// The first words of the table: models whose calls are in no amount, and within no budget.
fn warn_unpriced(models: &[String]) -> String {
    models
        .iter()
        .map(|model| {
            format!(
                "NO PRICE for {model}: its calls are in no amount below and in no budget; add a \
                 [[cost.price]]\n"
            )
        })
        .collect()
}

fn format_costs(lines: &[CostLine], by: CostGrouping, currency: &str) -> String {
    if lines.is_empty() {
        return "nothing was spent in that time".to_owned();
    }
    let name = match by {
        CostGrouping::Day => "day",
        CostGrouping::Tenant => "tenant",
        CostGrouping::Model => "model",
        CostGrouping::Document => "document",
    };
    let row = |CostLine { sum, cost, saved, .. }: &CostLine| {
        [
            print::or_dash(Some(&sum.name)),
            cost.clone(),
            sum.attempts.to_string(),
            sum.calls.to_string(),
            sum.pages.to_string(),
            sum.input_tokens.to_string(),
            sum.cache_read_tokens.to_string(),
            sum.cache_write_tokens.to_string(),
            sum.output_tokens.to_string(),
            sum.batch_calls.to_string(),
            saved.clone(),
        ]
    };
    let rows: Vec<_> = lines.iter().map(row).collect();
    let header = [
        name, currency, "attempts", "calls", "pages", "input", "read", "written", "output",
        "batched", "saved",
    ];
    let mut text = print::table(header, &rows);
    let unpriced: i64 = lines.iter().map(|line| line.sum.unpriced_calls).sum();
    if unpriced > 0 {
        let note = "calls had no price in cost.price and are not in the amounts";
        text.push_str(&format!("\n{unpriced} {note}"));
    }
    let late: i64 = lines.iter().map(|line| line.sum.late_calls).sum();
    if late > 0 {
        let note = "answers of batches came after a direct call had taken their place: paid twice";
        text.push_str(&format!("\n{late} {note}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_a_price_is_named_before_the_table() {
        assert_eq!(warn_unpriced(&[]), "");
        let said = warn_unpriced(&["openai m".to_owned(), "bedrock n".to_owned()]);
        assert!(
            said.starts_with("NO PRICE for openai m") && said.contains("\nNO PRICE for bedrock n")
        );
    }

    #[test]
    fn amounts_are_exact_and_have_two_places_at_least() {
        for (nanos, shown) in [(0, "0.00"), (1, "0.000000001"), (12_500_000_000, "12.50")] {
            assert_eq!(format_amount(nanos), shown);
        }
    }
}
