//! The charts of the overview: throughput, time to the outcome, the share without a person, failures by
//! reason and cost, from the counts of the hours that are over.

use std::collections::BTreeMap;

use maud::{Markup, html};
use time::{Duration, OffsetDateTime, UtcOffset};

use super::failure::ConsoleFailure;
use super::hour_chart::{ChartForm, ChartSeries, HourChart, hour_name};
use super::layout::{age_text_of, money};
use super::state::ConsoleState;
use docmill_operations::dashboard::{EndedHour, list_ended_hours};

/// The periods: name in the address, words, hours.
const PERIODS: [(&str, &str, i32); 3] =
    [("day", "24 hours", 24), ("week", "7 days", 7 * 24), ("month", "30 days", 30 * 24)];
/// Reasons with a colour of their own; the others are one.
const MAX_NAMED_REASONS: usize = 3;
/// Colours of reasons, and of the rest.
const REASON_TONES: [&str; 4] = ["bad", "busy", "link", "quiet"];

/// A period of counted hours.
pub(super) struct CountedPeriod {
    name: &'static str,
    hours: usize,
    counted: Vec<EndedHour>,
}

/// The counted hours of the period of this name.
///
/// # Errors
/// There is no such period, or no answer from Postgres.
pub(super) async fn load_period(
    state: &ConsoleState,
    wanted: Option<&str>,
) -> Result<CountedPeriod, ConsoleFailure> {
    let wanted = wanted.unwrap_or("day");
    let found = PERIODS.iter().find(|(name, ..)| *name == wanted);
    let (name, _, hours) = found
        .ok_or_else(|| ConsoleFailure::wrong_request("period is one of day, week and month"))?;
    let counted = list_ended_hours(state.database(), *hours).await?;
    Ok(CountedPeriod { name, hours: usize::try_from(*hours).unwrap_or_default(), counted })
}

impl CountedPeriod {
    /// All charts, and their figures as a table.
    pub(super) fn show(&self, state: &ConsoleState) -> Markup {
        html! {
            h2 #charts { "Finished by hour" }
            nav.tabs aria-label="Period" { @for (name, words, _) in PERIODS {
                a href=(state.link(&format!("/overview?period={name}"))) aria-current=[(name == self.name).then_some("page")] { (words) }
            } }
            @match self.counted.last() {
                None => p { "No hour has been counted yet. Maintenance of a worker counts each hour two minutes after its end." },
                Some(last) => (self.show_charts(last.hour)),
            }
        }
    }

    fn show_charts(&self, last: OffsetDateTime) -> Markup {
        let back = Duration::hours(i64::try_from(self.hours).unwrap_or_default() - 1);
        let first = last - back;
        let charts = [
            self.throughput(first),
            self.waits(first),
            self.share(first),
            self.failures(first),
            self.cost(first),
        ];
        html! {
            div.charts { @for chart in &charts { (chart.draw(first, last)) } }
            details { summary { "Figures" } (self.figures()) }
        }
    }

    /// A value of every hour of the period; `None` for hours that were not counted.
    fn values(
        &self,
        first: OffsetDateTime,
        value: impl Fn(&EndedHour) -> Option<f64>,
    ) -> Vec<Option<f64>> {
        let mut values = vec![None; self.hours];
        for hour in &self.counted {
            let place = usize::try_from((hour.hour - first).whole_hours()).ok();
            if let Some(slot) = place.and_then(|place| values.get_mut(place)) {
                *slot = value(hour);
            }
        }
        values
    }

    fn sum(&self, value: impl Fn(&EndedHour) -> i64) -> i64 {
        self.counted.iter().map(value).sum()
    }

    fn throughput(&self, first: OffsetDateTime) -> HourChart {
        let unflagged = self.values(first, |hour| Some((hour.completed - hour.flagged) as f64));
        let flagged = self.values(first, |hour| Some(hour.flagged as f64));
        let failed = self.values(first, |hour| Some(hour.failed as f64));
        let (ended, most) = (self.sum(ended_of), self.counted.iter().map(ended_of).max());
        HourChart {
            title: "Throughput",
            summary: format!("{ended} documents, at most {} an hour", most.unwrap_or_default()),
            form: ChartForm::Stacked,
            top: None,
            series: vec![
                series("unflagged", "good", unflagged),
                series("flagged for review", "busy", flagged),
                series("failed", "bad", failed),
            ],
        }
    }

    fn waits(&self, first: OffsetDateTime) -> HourChart {
        let longest = self.counted.iter().filter_map(|hour| hour.p95_s).fold(0.0, f64::max);
        HourChart {
            title: "From message to outcome",
            summary: format!("95 % within {} in the slowest hour", age_text_of(longest)),
            form: ChartForm::Lines,
            top: None,
            series: vec![
                series("50 % within", "good", self.values(first, |hour| hour.p50_s)),
                series("95 % within", "busy", self.values(first, |hour| hour.p95_s)),
            ],
        }
    }

    fn share(&self, first: OffsetDateTime) -> HourChart {
        let (passed, ended) = (self.sum(|hour| hour.completed - hour.flagged), self.sum(ended_of));
        HourChart {
            title: "Without a person",
            summary: share_text(passed, ended),
            form: ChartForm::Lines,
            top: Some(1.0),
            series: vec![series("unflagged", "good", self.values(first, share_of))],
        }
    }

    fn failures(&self, first: OffsetDateTime) -> HourChart {
        let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
        for hour in &self.counted {
            for (reason, count) in failures_of(hour) {
                *totals.entry(reason).or_default() += count;
            }
        }
        let mut reasons: Vec<(&str, i64)> = totals.into_iter().collect();
        reasons.sort_by_key(|(reason, count)| (-count, *reason));
        let (named, others) = reasons.split_at(reasons.len().min(MAX_NAMED_REASONS));
        let mut shown = Vec::new();
        for ((reason, count), tone) in named.iter().zip(REASON_TONES) {
            let values = self.values(first, |hour| Some(failures_for(hour, &[*reason])));
            shown.push(series(&format!("{reason} {count}"), tone, values));
        }
        let rest: Vec<&str> = others.iter().map(|(reason, _)| *reason).collect();
        if let (false, Some(tone)) = (rest.is_empty(), REASON_TONES.last()) {
            let count: i64 = others.iter().map(|(_, count)| count).sum();
            let values = self.values(first, |hour| Some(failures_for(hour, &rest)));
            shown.push(series(&format!("others {count}"), tone, values));
        }
        let failed = self.sum(|hour| hour.failed);
        let summary = match reasons.first() {
            Some((reason, count)) => format!("{failed}, most often {reason} ({count})"),
            None => "none".to_owned(),
        };
        HourChart {
            title: "Failures by reason",
            summary,
            form: ChartForm::Stacked,
            top: None,
            series: shown,
        }
    }

    fn cost(&self, first: OffsetDateTime) -> HourChart {
        let values = self.values(first, |hour| Some(hour.cost_nanos as f64));
        HourChart {
            title: "Cost",
            summary: money(self.sum(|hour| hour.cost_nanos)),
            form: ChartForm::Stacked,
            top: None,
            series: vec![series("cost", "link", values)],
        }
    }

    /// The same as a table: by hour within a day, else by day.
    fn figures(&self) -> Markup {
        let mut rows: BTreeMap<String, EndedHour> = BTreeMap::new();
        for hour in &self.counted {
            let name = match self.name {
                "day" => hour_name(hour.hour),
                _ => hour.hour.to_offset(UtcOffset::UTC).date().to_string(),
            };
            match rows.get_mut(&name) {
                Some(row) => add_hour(row, hour),
                None => drop(rows.insert(name, hour.clone())),
            }
        }
        let unit = if self.name == "day" { "hour (UTC)" } else { "day (UTC)" };
        html! {
            div.wide tabindex="0" { table {
                thead { tr { th { (unit) } th.number { "completed" } th.number { "of these flagged" }
                    th.number { "failed" } th.number { "cancelled" } th.number { "95 % within" } th.number { "cost" } } }
                tbody { @for (name, row) in rows.iter().rev() { tr {
                    td { (name) } td.number { (row.completed) } td.number { (row.flagged) }
                    td.number { (row.failed) } td.number { (row.cancelled) }
                    td.number { @match row.p95_s { Some(seconds) => (age_text_of(seconds)), None => "–" } }
                    td.number { (money(row.cost_nanos)) }
                } } }
            } }
            @if self.name != "day" { p.hint { "Times are those of the slowest hour of the day." } }
        }
    }
}

fn series(name: &str, tone: &'static str, values: Vec<Option<f64>>) -> ChartSeries {
    ChartSeries { name: name.to_owned(), tone, values }
}

fn ended_of(hour: &EndedHour) -> i64 {
    hour.completed + hour.failed
}

fn share_of(hour: &EndedHour) -> Option<f64> {
    let ended = ended_of(hour);
    (ended > 0).then(|| (hour.completed - hour.flagged) as f64 / ended as f64)
}

fn share_text(passed: i64, ended: i64) -> String {
    match ended {
        0 => "nothing ended".to_owned(),
        ended => format!("{:.1} % of {ended}", 100.0 * passed as f64 / ended as f64),
    }
}

/// Failures of an hour by reason.
fn failures_of(hour: &EndedHour) -> impl Iterator<Item = (&str, i64)> {
    let counts = hour.failures.as_object().into_iter().flatten();
    counts.map(|(reason, count)| (reason.as_str(), count.as_i64().unwrap_or_default()))
}

fn failures_for(hour: &EndedHour, reasons: &[&str]) -> f64 {
    let counts = failures_of(hour).filter(|(reason, _)| reasons.contains(reason));
    counts.map(|(_, count)| count as f64).sum()
}

/// Adds an hour to the sum of its day.
fn add_hour(day: &mut EndedHour, hour: &EndedHour) {
    day.completed += hour.completed;
    day.flagged += hour.flagged;
    day.failed += hour.failed;
    day.cancelled += hour.cancelled;
    day.cost_nanos += hour.cost_nanos;
    day.p95_s = match (day.p95_s, hour.p95_s) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use time::macros::datetime;

    fn hour(at: OffsetDateTime, completed: i64, p95_s: f64) -> EndedHour {
        EndedHour {
            hour: at,
            completed,
            flagged: 1,
            failed: 4,
            cancelled: 0,
            p50_s: Some(1.0),
            p95_s: Some(p95_s),
            failures: json!({ "cut": 2, "corrupt": 1, "timeout": 1 }),
            cost_nanos: 1_500_000_000,
        }
    }

    #[test]
    fn hours_of_a_day_are_added_up_and_its_slowest_is_named() {
        let first = datetime!(2026-11-28 09:00 UTC);
        let counted = vec![hour(first, 6, 200.0), hour(first + Duration::hours(1), 2, 90.0)];
        let period = CountedPeriod { name: "week", hours: 168, counted };
        let figures = period.figures().into_string();
        for text in ["2026-11-28", ">8<", ">3 min<", ">3.00<"] {
            assert!(figures.contains(text), "{text}: {figures}");
        }
        assert_eq!(period.share(first).summary, "37.5 % of 16");
        assert_eq!(period.failures(first).summary, "8, most often cut (4)");
        let places = period.values(first, |hour| hour.p95_s);
        assert_eq!(places.get(..3), Some([Some(200.0), Some(90.0), None].as_slice()));
    }

    #[test]
    fn reasons_beyond_the_third_are_one() {
        let first = datetime!(2026-11-28 09:00 UTC);
        let mut one = hour(first, 6, 200.0);
        one.failures = json!({ "a": 5, "b": 4, "c": 3, "d": 2, "e": 1 });
        let period = CountedPeriod { name: "day", hours: 24, counted: vec![one] };
        let shown = period.failures(first).series;
        let names: Vec<&str> = shown.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["a 5", "b 4", "c 3", "others 3"]);
        assert_eq!(shown.last().and_then(|others| *others.values.first()?), Some(3.0));
    }
}
