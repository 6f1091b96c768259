//! The report as a table for people.

use std::collections::BTreeMap;
use std::fmt;

use super::calibration::ScoreCalibration;
use super::{EvalReport, FlagReasonCount, FlagTradeOff, GroupReport, ScanKindScore};

impl fmt::Display for EvalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, group) in &self.groups {
            write_group(f, name, group)?;
        }
        if self.groups.len() > 1 {
            write_group(f, "all", &self.all)?;
        }
        if !self.kinds.is_empty() {
            write_kinds(f, &self.kinds)?;
        }
        if self.without_truth > 0 {
            writeln!(f, "{} files without truth were left out", self.without_truth)?;
        }
        Ok(())
    }
}

/// Word recall and character error rate by kind of scan, and without repair beside them.
fn write_kinds(f: &mut fmt::Formatter<'_>, kinds: &BTreeMap<String, ScanKindScore>) -> fmt::Result {
    let beside = kinds.values().any(|score| score.without_repair.is_some());
    write!(f, "{:<36}{:>5}{:>9}{:>9}", "kind of scan", "docs", "recall", "errors")?;
    writeln!(f, "{}", if beside { "   without repair" } else { "" })?;
    for (kind, score) in kinds {
        let ScanKindScore { documents, text, without_repair } = score;
        write!(f, "{kind:<36}{documents:>5}")?;
        for text in [Some(text), without_repair.as_ref()].into_iter().flatten() {
            write!(
                f,
                "{:>9}{:>9}",
                format_percent(text.word_recall),
                format_percent(text.character_error_rate)
            )?;
        }
        writeln!(f)?;
    }
    writeln!(f)
}

fn write_group(f: &mut fmt::Formatter<'_>, name: &str, group: &GroupReport) -> fmt::Result {
    let failed: usize = group.failed.values().sum();
    writeln!(
        f,
        "{name}: {} documents, {} completed ({} flagged), {failed} failed",
        group.documents, group.completed, group.flagged
    )?;
    for (reason, count) in &group.failed {
        writeln!(f, "  {reason}: {count}")?;
    }
    if group.with_truth > 0 {
        writeln!(
            f,
            "  whole documents right: {} of {} ({}); silent errors: {}",
            group.whole_documents,
            group.with_truth,
            format_percent(Some(group.whole_documents as f64 / group.with_truth as f64)),
            group.silent_errors
        )?;
        writeln!(f, "  {:<26}{:>9}{:>9}{:>7}  right/known", "field", "precision", "recall", "F1")?;
    }
    for (field, score) in &group.fields {
        writeln!(
            f,
            "  {field:<26}{:>9}{:>9}{:>7}  {}/{}",
            format_percent(score.precision),
            format_percent(score.recall),
            score.f1.map_or("-".to_owned(), |f1| format!("{f1:.3}")),
            score.correct,
            score.correct + score.missed
        )?;
    }
    if group.rows.known > 0 {
        let share = group.rows.found as f64 / group.rows.known as f64;
        let (found, known) = (group.rows.found, group.rows.known);
        writeln!(f, "  list rows found: {found} of {known} ({})", format_percent(Some(share)))?;
    }
    write_calibration(f, &group.calibration)?;
    write_trade_off(f, &group.trade_off)?;
    write_reasons(f, &group.reasons)?;
    if group.with_text > 0 {
        writeln!(
            f,
            "  text of {}: word recall {}, character error rate {}",
            group.with_text,
            format_percent(group.word_recall),
            format_percent(group.character_error_rate)
        )?;
    }
    writeln!(f)
}

fn write_calibration(f: &mut fmt::Formatter<'_>, calibration: &ScoreCalibration) -> fmt::Result {
    if calibration.results == 0 {
        return Ok(());
    }
    writeln!(
        f,
        "  score of {}: AUROC {}, calibration error {}",
        calibration.results,
        format_figure(calibration.auroc),
        format_figure(calibration.expected_error)
    )?;
    let Some(fit) = calibration.fit else { return Ok(()) };
    let (offset, slope) = (fit.offset, fit.slope);
    writeln!(f, "  honest log-odds: {offset:.2} + {slope:.2} x those of the score")
}

/// The documents that each level of certainty passes, and those it flags needlessly.
fn write_trade_off(f: &mut fmt::Formatter<'_>, curve: &[FlagTradeOff]) -> fmt::Result {
    if !curve.is_empty() {
        writeln!(f, "  certainty  unflagged  errors among them  right ones flagged")?;
    }
    for one in curve {
        let (level, unflagged, errors) = (one.level, one.unflagged, one.errors);
        let share = (one.right > 0).then(|| one.right_flagged as f64 / one.right as f64);
        let flagged = format_percent(share);
        let of = format!("{} of {}", one.right_flagged, one.right);
        writeln!(f, "  {level:>9.2}{unflagged:>11}{errors:>19}  {of} ({flagged})")?;
    }
    Ok(())
}

/// Which reasons sent what is right to a person, the most frequent first.
fn write_reasons(
    f: &mut fmt::Formatter<'_>,
    reasons: &BTreeMap<String, FlagReasonCount>,
) -> fmt::Result {
    let mut all: Vec<_> = reasons.iter().filter(|(_, one)| one.right > 0).collect();
    all.sort_by_key(|(_, one)| std::cmp::Reverse(one.right));
    if !all.is_empty() {
        writeln!(f, "  {:<42}right ones  for it alone  wrong ones", "reason to look")?;
    }
    for (reason, one) in all {
        let FlagReasonCount { wrong, right, right_alone } = one;
        writeln!(f, "  {reason:<42}{right:>10}{right_alone:>14}{wrong:>12}")?;
    }
    Ok(())
}

fn format_percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

/// With three decimals, `-` without a value.
pub(super) fn format_figure(figure: Option<f64>) -> String {
    figure.map_or("-".to_owned(), |figure| format!("{figure:.3}"))
}
