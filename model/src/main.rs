//! Visits every state within the bounds and prints the result: `docmill-model [FAULTS [ORDERS]]` for
//! one document, `docmill-model neighbours [DOCUMENTS [FAULTS]] [--without MEND]` for several beside each other.
//! Exit code 1 if a property does not hold.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use docmill_model::checker::{Counterexample, Protocol, StateGraph};
use docmill_model::neighbours::{self, Mend, NeighbourProtocol};
use docmill_model::protocol::{self, ClaimProtocol, EarlierRules, property};

/// A property that every path leads to, and its goal.
type LivenessGoal<S> = (&'static str, fn(&S) -> bool);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let checked = match words.as_slice() {
        ["neighbours", bounds @ ..] => check_neighbours(bounds),
        bounds => check_one(bounds),
    };
    let usage = || {
        let mends = Mend::ALL.map(Mend::name).join(", ");
        let usage = "usage: docmill-model [FAULTS [ORDERS]]\n       docmill-model neighbours \
                     [DOCUMENTS [FAULTS]] [--without MEND]";
        (vec![format!("{usage}\nMEND: {mends}")], ExitCode::from(2))
    };
    let (lines, code) = checked.unwrap_or_else(usage);
    match writeln!(std::io::stdout(), "{}", lines.join("\n")) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

/// One document and its messages; `None`: the bounds cannot be read.
fn check_one(bounds: &[&str]) -> Option<(Vec<String>, ExitCode)> {
    let (faults, orders) = match bounds {
        [] => (3, 1),
        [faults] => (faults.parse().ok()?, 1),
        [faults, orders] => (faults.parse().ok()?, orders.parse().ok()?),
        _ => return None,
    };
    let checked = ClaimProtocol { faults, orders, rules: EarlierRules::default() };
    let bounds = format!("{faults} faults and {orders} orders");
    let goals: [LivenessGoal<_>; 2] =
        [(property::ENDS, protocol::has_ended), (property::IS_TAKEN_OVER, protocol::has_no_orphan)];
    Some(check(&checked, &bounds, "S1 to S5, S8, S9, S11", &goals))
}

/// Documents beside each other; `None`: the bounds cannot be read.
fn check_neighbours(bounds: &[&str]) -> Option<(Vec<String>, ExitCode)> {
    let (bounds, without) = match bounds {
        [bounds @ .., "--without", mend] => (bounds, Some(Mend::from_name(mend)?)),
        bounds => (bounds, None),
    };
    let (documents, faults) = match bounds {
        [] => (3, 1),
        [documents] => (documents.parse().ok()?, 1),
        [documents, faults] => (documents.parse().ok()?, faults.parse().ok()?),
        _ => return None,
    };
    let checked = NeighbourProtocol::new(documents, faults, without);
    let bounds = format!("{documents} documents beside each other, {faults} faults");
    let goals: [LivenessGoal<_>; 1] = [(neighbours::property::ALL_END, neighbours::has_ended)];
    Some(check(&checked, &bounds, "N1 to N3", &goals))
}

/// Visits every state; what was found, in lines.
fn check<P: Protocol>(
    checked: &P,
    bounds: &str,
    properties: &str,
    goals: &[LivenessGoal<P::State>],
) -> (Vec<String>, ExitCode) {
    let began = Instant::now();
    let graph = StateGraph::explore(checked);
    let mut lines = vec![format!(
        "{} states, {} steps between them, {bounds}: {:.1} s",
        graph.count_states(),
        graph.steps,
        began.elapsed().as_secs_f64()
    )];
    if let Some(found) = &graph.counterexample {
        lines.extend(describe(found));
        return (lines, ExitCode::FAILURE);
    }
    lines.push(format!("{properties}: hold in each"));
    let mut code = ExitCode::SUCCESS;
    for (name, is_goal) in goals {
        match graph.longest_way(checked, name, is_goal) {
            Ok(ticks) => lines.push(format!("{name}: within {ticks} heartbeats of the last fault")),
            Err(found) => {
                lines.extend(describe(&found));
                code = ExitCode::FAILURE;
            }
        }
    }
    lines.push(format!("{:.1} s in all", began.elapsed().as_secs_f64()));
    (lines, code)
}

fn describe(found: &Counterexample) -> Vec<String> {
    let mut lines = vec![format!("BROKEN {}", found.property)];
    lines.extend(found.path.iter().map(|step| format!("  {step}")));
    lines
}
