//! Tenants whose share of silent errors is known: how often a stated bound holds, how much passes
//! unflagged, and how soon drift is noticed.
//!
//! A tenant has families of documents in random order. Each family has its own share of errors, and
//! wrong documents are less certain than right ones. Every step of the product is here but the
//! database: draws by chance, decisions, levels. Run it with --release; it takes a minute.
//!
//! Usage: `simulate_tenants [TENANTS [DOCUMENTS]]`
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its output is its purpose")]

use std::process::ExitCode;

use docmill_assurance::fixed::upper_share;
use docmill_assurance::level::{
    DrawnDocument, FLAG_ALL, LEVELS, LevelInForce, LevelState, LookState, RISK, judge_level,
};
use fastrand::Rng;

/// The share of unflagged documents that is drawn.
const DRAW_SHARE: f64 = 0.05;
/// Looks between two judgements, at the least.
const MIN_LOOKS_BETWEEN_JUDGEMENTS: usize = 25;
/// The certainty that no document exceeds: the gate's score of data without an objection.
const MAX_CERTAINTY: f64 = 0.967;
/// Mean distance of a right document's certainty from that, and of a wrong one's.
const SPREADS: [f64; 2] = [0.02, 0.08];

/// A tenant's families: how often each comes, and its share of errors.
struct Tenant {
    families: Vec<(f64, f64)>,
}

impl Tenant {
    /// A tenant whose errors are `rate` on average, unevenly over its families.
    fn draw(rng: &mut Rng, rate: f64) -> Self {
        let count = rng.usize(5..=40);
        let mut families: Vec<(f64, f64)> =
            (0..count).map(|_| (-rng.f64().ln(), (3.0 * rng.f64()).exp())).collect();
        let weight: f64 = families.iter().map(|(weight, _)| weight).sum();
        families.iter_mut().for_each(|family| family.0 /= weight);
        let mean: f64 = families.iter().map(|(weight, errors)| weight * errors).sum();
        families.iter_mut().for_each(|family| family.1 = (family.1 * rate / mean).min(0.9));
        Self { families }
    }

    /// The next document: its certainty, and whether it is wrong.
    fn next(&self, rng: &mut Rng) -> (f64, bool) {
        let mut at = rng.f64();
        let family = self.families.iter().find(|(weight, _)| {
            at -= weight;
            at <= 0.0
        });
        let wrong = rng.f64() < family.or(self.families.last()).map_or(0.0, |(_, errors)| *errors);
        let spread = if wrong { SPREADS[1] } else { SPREADS[0] };
        ((MAX_CERTAINTY + spread * rng.f64().ln()).max(0.0), wrong)
    }

    /// The share of documents that reach a level, and of errors among them.
    fn above(&self, level: f32) -> (f64, f64) {
        let reach =
            |spread: f64| 1.0 - (-(MAX_CERTAINTY - f64::from(level)).max(0.0) / spread).exp();
        let errors: f64 = self.families.iter().map(|(weight, errors)| weight * errors).sum();
        let (right, wrong) = ((1.0 - errors) * reach(SPREADS[0]), errors * reach(SPREADS[1]));
        (right + wrong, if wrong == 0.0 { 0.0 } else { wrong / (right + wrong) })
    }
}

/// A tenant's life.
#[derive(Default)]
struct Life {
    /// A bound was stated that did not hold.
    broken_word: bool,
    /// The same, had Clopper and Pearson been asked again at every judgement.
    naive_broken_word: bool,
    /// The level in force at the end.
    end: Option<LevelInForce>,
    /// Looks until a bound was stated.
    looks_to_state: Option<usize>,
    /// Documents and looks from the drift to the alarm.
    alarm: Option<(usize, usize)>,
    /// An alarm without drift.
    false_alarm: bool,
    looks: usize,
}

/// Lives through `documents`; from `drift` on they are another tenant's.
fn live(
    rng: &mut Rng,
    tenant: &Tenant,
    documents: usize,
    rate: f64,
    drift: Option<(usize, &Tenant)>,
) -> Life {
    let mut life = Life::default();
    let mut in_force = LevelInForce::UNPROVEN;
    let (mut drawn, mut since, mut looks_of_drift) = (Vec::new(), 0, 0);
    for at in 0..documents {
        let drifted = drift.filter(|(from, _)| at >= *from);
        let (certainty, wrong) = drifted.map_or(tenant, |(_, other)| other).next(rng);
        let all = in_force.level >= FLAG_ALL;
        if !all && rng.f64() >= DRAW_SHARE {
            continue;
        }
        let look = if wrong { LookState::Wrong } else { LookState::Right };
        #[expect(clippy::cast_possible_truncation, reason = "certainties are kept so")]
        let certainty = certainty as f32;
        drawn.push(DrawnDocument { certainty, look });
        life.looks += 1;
        looks_of_drift += usize::from(drifted.is_some());
        if drawn.len() < since + MIN_LOOKS_BETWEEN_JUDGEMENTS.max(drawn.len() / 20)
            && !(wrong && drifted.is_some())
        {
            continue;
        }
        since = drawn.len();
        let judged = judge_level(in_force, &drawn, rate);
        in_force = judged.in_force;
        if let Some(alarm) = judged.alarm_at {
            (since, _) = (0, drawn.drain(..=alarm));
            match drift {
                Some((from, _)) if at >= from => {
                    life.alarm.get_or_insert((at - from, looks_of_drift));
                }
                _ => life.false_alarm = true,
            }
            if life.alarm.is_some() {
                break;
            }
        }
        if in_force.state == LevelState::Shown {
            life.looks_to_state.get_or_insert(life.looks);
            life.broken_word |= drift.is_none() && tenant.above(in_force.level).1 > rate;
        }
        if drift.is_none() && !life.naive_broken_word {
            life.naive_broken_word =
                naive_level(&drawn, rate).is_some_and(|level| tenant.above(level).1 > rate);
        }
    }
    life.end = Some(in_force);
    life
}

/// The lowest level by Clopper and Pearson's bound, as if each look were the only one planned.
fn naive_level(drawn: &[DrawnDocument], rate: f64) -> Option<f32> {
    let levels = LEVELS.iter().map(|(level, _)| *level);
    levels.into_iter().find(|level| {
        let reach = drawn.iter().filter(|one| one.certainty >= *level);
        let wrong = reach.clone().filter(|one| one.look == LookState::Wrong).count();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        upper_share(count(wrong), count(reach.count()), RISK) <= rate
    })
}

fn median(mut values: Vec<usize>) -> usize {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of.max(1) as f64
}

/// Tenants whose errors lie between `low` and `high` times the bound, evenly in logarithms.
fn report_bound(name: &str, one_in: f64, [low, high]: [f64; 2], [tenants, documents]: [usize; 2]) {
    let (mut rng, rate) = (Rng::with_seed(7), 1.0 / one_in);
    let (mut lives, mut covered, mut honest) = (Vec::new(), 0.0, 0);
    for _ in 0..tenants {
        let errors = rate * low * (high / low).powf(rng.f64());
        let tenant = Tenant::draw(&mut rng, errors);
        let life = live(&mut rng, &tenant, documents, rate, None);
        let end = life.end.unwrap_or(LevelInForce::UNPROVEN);
        covered += if end.level >= FLAG_ALL { 0.0 } else { tenant.above(end.level).0 };
        honest += usize::from(tenant.above(0.0).1 <= rate);
        lives.push(life);
    }
    let count = |test: fn(&Life) -> bool| lives.iter().filter(|life| test(life)).count();
    let of = lives.len();
    let state = |life: &Life, state| life.end.is_some_and(|end| end.state == state);
    let shown = lives.iter().filter(|life| state(life, LevelState::Shown)).count();
    let broken = lives.iter().filter(|life| state(life, LevelState::Broken)).count();
    println!(
        "| {name} | 1 in {one_in} | {:.1} % | {:.1} % | {:.0} % | {:.0} % | {:.0} % | {:.0} % | {} |",
        percent(of - count(|life| life.broken_word), of),
        percent(of - count(|life| life.naive_broken_word), of),
        100.0 * covered / of as f64,
        percent(shown, of),
        percent(broken, of),
        percent(honest, of),
        median(lives.iter().filter_map(|life| life.looks_to_state).collect()),
    );
}

/// Tenants at a quarter of the bound whose errors rise to `rise` times the bound.
fn report_drift(one_in: f64, rise: f64, tenants: usize) {
    let (mut rng, rate) = (Rng::with_seed(11), 1.0 / one_in);
    let (mut documents, mut looks, mut early) = (Vec::new(), Vec::new(), 0);
    for _ in 0..tenants {
        let tenant = Tenant::draw(&mut rng, rate / 4.0);
        let other = Tenant::draw(&mut rng, (rate * rise).min(0.6));
        let life = live(&mut rng, &tenant, 60_000, rate, Some((20_000, &other)));
        early += usize::from(life.false_alarm);
        if let Some((passed, seen)) = life.alarm {
            documents.push(passed);
            looks.push(seen);
        }
    }
    let found = percent(documents.len(), tenants);
    let mut sorted = documents.clone();
    sorted.sort_unstable();
    let slowest = sorted.get(sorted.len() * 9 / 10).copied().unwrap_or_default();
    println!(
        "| 1 in {one_in} | {:.1} % | {found:.0} % | {} | {slowest} | {} | {early} |",
        100.0 * rate * rise,
        median(documents),
        median(looks),
    );
}

fn main() -> ExitCode {
    let mut sizes = std::env::args().skip(1).map(|size| size.parse::<usize>());
    let (Ok(tenants), Ok(documents)) =
        (sizes.next().unwrap_or(Ok(200)), sizes.next().unwrap_or(Ok(40_000)))
    else {
        eprintln!("usage: simulate_tenants [TENANTS [DOCUMENTS]]");
        return ExitCode::from(2);
    };
    println!("{tenants} tenants, {documents} unflagged documents each, {DRAW_SHARE} of them drawn");
    println!(
        "| tenants' errors | bound | it held | by Clopper and Pearson at every judgement | coverage | \
         shown | broken | gate keeps it | looks |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for one_in in [100.0, 200.0] {
        for (name, range) in [
            ("0.05 to 4 bounds", [0.05, 4.0]),
            ("just above the bound", [1.0001, 1.1]),
            ("a tenth of it", [0.1, 0.1]),
        ] {
            report_bound(name, one_in, range, [tenants, documents]);
        }
    }
    println!(
        "| bound | errors rise to | found | documents until | of 9 in 10 | looks | alarms before |"
    );
    println!("|---|---|---|---|---|---|---|");
    for one_in in [100.0, 200.0] {
        for rise in [2.0, 5.0, 10.0, 30.0] {
            report_drift(one_in, rise, tenants);
        }
    }
    ExitCode::SUCCESS
}
