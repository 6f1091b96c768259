//! Visits every state within the bounds and prints the result: `docmill-model [FAULTS [ORDERS]]`.
//! Exit code 1 if a property does not hold.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use docmill_model::checker::{Counterexample, StateGraph};
use docmill_model::protocol::{self, ClaimProtocol, EarlierRules, property};

fn main() -> ExitCode {
    let mut bounds = std::env::args().skip(1).map(|bound| bound.parse::<u8>());
    let bounds = (bounds.next().unwrap_or(Ok(3)), bounds.next().unwrap_or(Ok(1)));
    let (Ok(faults), Ok(orders)) = bounds else {
        return report(&["usage: docmill-model [FAULTS [ORDERS]]".to_owned()], ExitCode::from(2));
    };
    let checked = ClaimProtocol { faults, orders, rules: EarlierRules::default() };
    let began = Instant::now();
    let graph = StateGraph::explore(&checked);
    let mut lines = vec![format!(
        "{} states, {} steps between them, {} faults and {} orders: {:.1} s",
        graph.count_states(),
        graph.steps,
        faults,
        orders,
        began.elapsed().as_secs_f64()
    )];
    if let Some(found) = &graph.counterexample {
        lines.extend(describe(found));
        return report(&lines, ExitCode::FAILURE);
    }
    lines.push("S1 to S5, S8, S9, S11: hold in each".to_owned());
    let mut code = ExitCode::SUCCESS;
    for (name, way) in [
        (property::ENDS, graph.longest_way(&checked, property::ENDS, protocol::has_ended)),
        (
            property::IS_TAKEN_OVER,
            graph.longest_way(&checked, property::IS_TAKEN_OVER, protocol::has_no_orphan),
        ),
    ] {
        match way {
            Ok(ticks) => lines.push(format!("{name}: within {ticks} heartbeats of the last fault")),
            Err(found) => {
                lines.extend(describe(&found));
                code = ExitCode::FAILURE;
            }
        }
    }
    lines.push(format!("{:.1} s in all", began.elapsed().as_secs_f64()));
    report(&lines, code)
}

fn describe(found: &Counterexample) -> Vec<String> {
    let mut lines = vec![format!("BROKEN {}", found.property)];
    lines.extend(found.path.iter().map(|step| format!("  {step}")));
    lines
}

fn report(lines: &[String], code: ExitCode) -> ExitCode {
    match writeln!(std::io::stdout(), "{}", lines.join("\n")) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}
