//! Hooks as the workers found them: whether they answer, since when they fail, and how quickly the last
//! answer came.
//!
//! Not promised: hooks that no running worker has asked yet. Their settings are the workers'.

use maud::{Markup, html};

use super::layout::{moment, state_mark};
use super::state::ConsoleState;
use docmill_operations::dashboard::LaneTotals;

/// The table of all hooks; empty without any.
pub(super) fn hooks_table(lanes: &[LaneTotals]) -> Markup {
    html! {
        @if lanes.iter().any(LaneTotals::is_hook) {
            h2 #hooks { "Hooks" }
            div.wide tabindex="0" { table {
                thead { tr { th { "hook" } th { "state" } th { "last answer" } th.number { "under way" }
                    th.number { "wait" } th.number { "workers" } } }
                tbody { @for hook in lanes.iter().filter(|lane| lane.is_hook()) { tr {
                    td { (hook.model) } td { (hook_state(hook)) } td { (last_answer(hook)) }
                    td.number { (hook.in_flight) } td.number { (hook.waiting) } td.number { (hook.workers) }
                } } }
            } }
            p.hint { "As the workers of the last minute found them." }
        }
    }
}

/// A notice of each hook that fails.
pub(super) fn hook_notices(state: &ConsoleState, lanes: &[LaneTotals]) -> Markup {
    html! {
        @for hook in lanes.iter().filter(|lane| lane.is_hook()) {
            @if let Some(since) = hook.failing_since {
                p.notice.bad { a href=(state.link("/webhooks#hooks")) { "Hook " (hook.model) } " has been failing since "
                    (moment(since)) }
            }
        }
    }
}

fn hook_state(hook: &LaneTotals) -> Markup {
    html! {
        @match hook.failing_since {
            Some(since) => { (state_mark("failing")) " since " (moment(since)) },
            None if hook.down > 0 => { (state_mark("failing")) " in " (hook.down) " of " (hook.workers) " workers" },
            None => (state_mark("healthy")),
        }
        @if hook.denied > 0 { ": it refuses every question, check its address and secret" }
    }
}

fn last_answer(hook: &LaneTotals) -> Markup {
    html! {
        @match (hook.answered_at, hook.answer_ms) {
            (Some(at), Some(ms)) => { "in " (ms) " ms, " (moment(at)) },
            _ => "none yet",
        }
    }
}
