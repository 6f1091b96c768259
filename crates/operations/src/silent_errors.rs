//! The bound on silent errors: judges the decisions about drawn documents, and reports the state.
//!
//! The statistics are those of `docmill-assurance`; the draws themselves are made as a result is
//! recorded. Each level is judged from one tenant's documents of one kind and reader, and from no
//! other.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use docmill_assurance::level::{
    DrawnDocument, LevelInForce, LevelState, LookState, judge_level, weigh_levels,
};
use docmill_core::config::SilentErrorsConfig;
use docmill_core::fault::Result;
use docmill_core::metrics;
use docmill_gate::kinds::{FieldRole, KindSet};
use docmill_ledger::db::Db;
use docmill_ledger::db::reports::quality::{
    self, FieldCorrections, KindEffort, ReaderThroughput, ReasonYield, SupplierCorrections,
};
use docmill_ledger::db::reviews::levels::{self, DrawRow, LevelScope, LevelUpdate, StoredLevel};

/// A draw that waits for longer counts as wrong.
const OVERDUE_S: f64 = 7.0 * 24.0 * 3600.0;
/// Levels that one pass judges; the others come with the next one.
const JUDGED_PER_PASS: i64 = 200;
/// Levels that are described.
pub const MAX_DESCRIBED: i64 = 100;

/// How the bound of one tenant, kind and reader stands.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct BoundStatement {
    /// Whose it is.
    #[serde(flatten)]
    pub scope: LevelScope,
    /// The bound: at most 1 in so many unflagged documents is wrong.
    pub one_in: u32,
    /// `unproven`: too few decisions, the gate is as it is; `shown`; `broken`: everything is flagged.
    pub state: &'static str,
    /// Documents below this certainty, 0..1, are flagged; 0: the gate as it is; 1: all are.
    pub level: f32,
    /// Since when.
    #[serde(with = "time::serde::rfc3339")]
    pub since: OffsetDateTime,
    /// How often the bound was found broken.
    pub alarms: u32,
    /// Drawn documents since the last alarm that were decided.
    pub decided: u32,
    /// Those of them that were wrong.
    pub wrong: u32,
    /// Drawn documents that wait for a decision.
    pub waiting: u32,
    /// At most this share of the documents above the level in force is wrong, with a certainty of
    /// 95 %; `None`: everything is flagged.
    pub at_most: Option<f64>,
    /// Effect of more looks.
    pub levels: Vec<LevelPrice>,
}

/// The looks that a level is short of.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LevelPrice {
    /// The level; 0: the gate as it is.
    pub level: f32,
    /// The share of drawn documents that reach it: what would pass unflagged.
    pub passing: Option<f64>,
    /// More looks at documents that reach it, all of them right, that show the bound; 0: it is shown;
    /// `None`: out of reach.
    pub looks_to_show: Option<u32>,
}

/// Judges the levels to which a decision was added.
pub(crate) async fn judge_levels(db: &Db, config: &SilentErrorsConfig) -> Result<()> {
    for (kind, one_in) in &config.at_most_one_in {
        levels::add_levels(db, kind, *one_in).await?;
    }
    for level in levels::take_due_levels(db, JUDGED_PER_PASS).await? {
        judge_one(db, config, &level).await?;
    }
    let counts = levels::count_levels(db).await?;
    for state in LevelState::ALL {
        let own = counts.iter().find(|count| count.state == state.code());
        metrics::silent_error_levels(state.code(), own.map_or(0, |own| own.count));
    }
    Ok(())
}

async fn judge_one(db: &Db, config: &SilentErrorsConfig, stored: &StoredLevel) -> Result<()> {
    let Some(one_in) = config.one_in(&stored.scope.kind) else { return Ok(()) };
    let rows = levels::list_draws(db, stored).await?;
    let judged = judge_level(level_before(stored, one_in), &drawn(&rows, config), rate_of(one_in));
    let alarm_number = judged.alarm_at.and_then(|at| rows.get(at)).map(|row| row.number);
    let update = LevelUpdate {
        one_in,
        state: judged.in_force.state.code(),
        level: judged.in_force.level,
        evidence_after: alarm_number.unwrap_or(stored.evidence_after),
        alarm: alarm_number.is_some(),
    };
    levels::save_level(db, stored, &update).await?;
    if update.alarm {
        metrics::count_silent_error_alarm();
        let LevelScope { tenant, kind, reader } = &stored.scope;
        tracing::warn!(
            tenant,
            kind,
            reader,
            one_in,
            "more than 1 in {one_in} unflagged documents of kind {kind} by {reader} are wrong: \
             all are flagged until decisions show otherwise"
        );
    }
    Ok(())
}

/// The level in force; a bound that was changed is judged anew.
fn level_before(stored: &StoredLevel, one_in: u32) -> LevelInForce {
    match LevelState::from_code(&stored.state) {
        Some(LevelState::Broken) => LevelInForce::BROKEN,
        Some(state) if stored.one_in == one_in => LevelInForce { state, level: stored.level },
        _ => LevelInForce::UNPROVEN,
    }
}

fn rate_of(one_in: u32) -> f64 {
    1.0 / f64::from(one_in.max(2))
}

fn drawn(rows: &[DrawRow], config: &SilentErrorsConfig) -> Vec<DrawnDocument> {
    let documents = rows
        .iter()
        .map(|row| DrawnDocument { certainty: row.certainty, look: look_of(row, config) });
    documents.collect()
}

/// A document is wrong if it was rejected, or if a field that counts was changed.
fn look_of(row: &DrawRow, config: &SilentErrorsConfig) -> LookState {
    match &row.changed {
        None if row.age_s > OVERDUE_S => LookState::Overdue,
        None => LookState::Open,
        Some(_) if row.rejected => LookState::Wrong,
        Some(changed) if changed.iter().any(|field| !config.uncounted.contains(field)) => {
            LookState::Wrong
        }
        Some(_) => LookState::Right,
    }
}

/// How every bound stands, of one tenant or of all, at most [`MAX_DESCRIBED`].
///
/// # Errors
/// No answer from Postgres.
pub async fn describe_bounds(
    db: &Db,
    config: &SilentErrorsConfig,
    tenant: Option<&str>,
) -> Result<Vec<BoundStatement>> {
    let mut statements = Vec::new();
    for stored in levels::list_levels(db, tenant, MAX_DESCRIBED).await? {
        let Some(one_in) = config.one_in(&stored.scope.kind) else { continue };
        let rows = levels::list_draws(db, &stored).await?;
        statements.push(describe_bound(stored, one_in, &drawn(&rows, config)));
    }
    Ok(statements)
}

/// Quality by the decisions of people: the bounds, and where errors arise.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct QualityReport {
    /// How every bound on silent errors stands.
    pub bounds: Vec<BoundStatement>,
    /// The share of the newest documents that needed no person.
    pub throughput: Vec<ReaderThroughput>,
    /// Why people were asked, and how often something was changed.
    pub reasons: Vec<ReasonYield>,
    /// The fields that are corrected.
    pub corrections: Vec<FieldCorrections>,
    /// The suppliers whose documents are corrected.
    pub suppliers: Vec<SupplierCorrections>,
    /// The effort of decisions.
    pub efforts: Vec<KindEffort>,
}

/// Reports the quality of results, of one tenant or of all. `kinds`: for the name of the supplier's
/// field.
///
/// # Errors
/// No answer from Postgres.
pub async fn report_quality(
    db: &Db,
    config: &SilentErrorsConfig,
    kinds: &KindSet,
    tenant: Option<&str>,
) -> Result<QualityReport> {
    let mut kinds = kinds.iter();
    let supplier =
        kinds.next().map_or("supplier_name", |kind| kind.field_of(FieldRole::SupplierName));
    Ok(QualityReport {
        bounds: describe_bounds(db, config, tenant).await?,
        throughput: quality::measure_throughput(db, tenant).await?,
        reasons: quality::count_reasons(db, tenant).await?,
        corrections: quality::count_corrections(db, tenant).await?,
        suppliers: quality::count_suppliers(db, tenant, supplier).await?,
        efforts: quality::measure_effort(db, tenant).await?,
    })
}

fn describe_bound(stored: StoredLevel, one_in: u32, drawn: &[DrawnDocument]) -> BoundStatement {
    let in_force = level_before(&stored, one_in);
    let weighed = weigh_levels(drawn, rate_of(one_in));
    let at_most = weighed.iter().find(|it| it.level >= in_force.level).map(|it| it.bound);
    let count = |wanted: &[LookState]| count_looks(drawn, wanted);
    BoundStatement {
        scope: stored.scope,
        one_in,
        state: in_force.state.code(),
        level: in_force.level,
        since: stored.since,
        alarms: stored.alarms,
        decided: count(&[LookState::Right, LookState::Wrong]),
        wrong: count(&[LookState::Wrong]),
        waiting: count(&[LookState::Open, LookState::Overdue]),
        at_most,
        levels: weighed
            .iter()
            .map(|it| LevelPrice {
                level: it.level,
                passing: passing_share(drawn, it.level),
                looks_to_show: it.looks_to_show,
            })
            .collect(),
    }
}

fn count_looks(drawn: &[DrawnDocument], wanted: &[LookState]) -> u32 {
    let count = drawn.iter().filter(|one| wanted.contains(&one.look)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn passing_share(drawn: &[DrawnDocument], level: f32) -> Option<f64> {
    let passing = drawn.iter().filter(|one| one.certainty >= level).count();
    (!drawn.is_empty()).then(|| passing as f64 / drawn.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(age_s: f64, changed: Option<&[&str]>, rejected: bool) -> DrawRow {
        let changed = changed.map(|fields| fields.iter().map(|it| (*it).to_owned()).collect());
        DrawRow { number: 1, certainty: 0.9, age_s, changed, rejected }
    }

    #[test]
    fn a_document_is_wrong_if_it_was_rejected_or_a_field_that_counts_was_changed() {
        let config = SilentErrorsConfig {
            uncounted: vec!["description".to_owned()],
            ..SilentErrorsConfig::default()
        };
        let week = 7.0 * 24.0 * 3600.0;
        for (row, expected) in [
            (row(1.0, None, false), LookState::Open),
            (row(week + 1.0, None, false), LookState::Overdue),
            (row(week + 1.0, Some(&[]), false), LookState::Right),
            (row(1.0, Some(&["description"]), false), LookState::Right),
            (row(1.0, Some(&["description", "total"]), false), LookState::Wrong),
            (row(1.0, Some(&[]), true), LookState::Wrong),
        ] {
            assert_eq!(look_of(&row, &config), expected, "{row:?}");
        }
    }

    #[test]
    fn a_changed_bound_is_shown_anew_and_a_broken_one_stays_broken() {
        let stored = |state: &str, level| StoredLevel {
            scope: LevelScope {
                tenant: String::new(),
                kind: "invoice".to_owned(),
                reader: "rules".to_owned(),
            },
            one_in: 100,
            state: state.to_owned(),
            level,
            evidence_after: 0,
            since: OffsetDateTime::UNIX_EPOCH,
            alarms: 0,
        };
        let shown = LevelInForce { state: LevelState::Shown, level: 0.8 };
        for (state, level, one_in, expected) in [
            ("shown", 0.8, 100, shown),
            ("shown", 0.8, 200, LevelInForce::UNPROVEN),
            ("broken", 1.0, 200, LevelInForce::BROKEN),
        ] {
            assert_eq!(level_before(&stored(state, level), one_in), expected, "{state} {one_in}");
        }
        let described = describe_bound(stored("broken", 1.0), 100, &[]);
        assert_eq!((described.at_most, described.decided), (None, 0));
        let fresh = describe_bound(stored("unproven", 0.0), 100, &[]);
        assert_eq!(fresh.levels[0].looks_to_show, Some(455), "it says how many are lacking");
    }
}
