//! `docmill dashboard`: the service at one glance; redrawn on a terminal, once otherwise.

use std::io::IsTerminal as _;
use std::time::Duration;

use humantime::format_duration;

use super::{CommandContext, CommandExit, DATABASE_AND_QUEUE, print};
use docmill_operations::dashboard::{
    self, LaneTotals, LocalDeviceTotals, LocalModelTotals, ServiceOverview,
};
use docmill_pipeline::shutdown::Shutdown;

/// Arguments of `dashboard`.
#[derive(Debug, clap::Args)]
pub(super) struct DashboardArgs {
    /// Print once and exit, even on a terminal
    #[arg(long)]
    once: bool,
    /// Refresh interval
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = humantime::parse_duration)]
    every: Duration,
}

pub(super) async fn run(
    context: &CommandContext,
    arguments: DashboardArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE_AND_QUEUE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let queue = app.open_queue().await?;
    let redraws = !arguments.once && !context.global.json && std::io::stdout().is_terminal();
    let stop = if redraws { Shutdown::on_signals()? } else { Shutdown::default() };
    loop {
        let overview = dashboard::load_overview(&db, queue.as_ref()).await?;
        if !redraws {
            context.result_output().show(&overview, || format_overview(&overview))?;
            return Ok(CommandExit::Done);
        }
        print::redraw(&format_overview(&overview))?;
        tokio::select! {
            () = tokio::time::sleep(arguments.every.max(Duration::from_millis(200))) => {}
            () = stop.wait_until_requested() => return Ok(CommandExit::Done),
        }
    }
}

fn format_overview(overview: &ServiceOverview) -> String {
    let mut lines = vec![format_messages(overview)];
    lines.extend(overview.tiers.iter().map(|tier| {
        let (ready, hidden, delayed) = (tier.ready, tier.in_flight, tier.delayed);
        format!("  {:<10} {ready} ready, {hidden} hidden, {delayed} delayed", tier.priority.code())
    }));
    let workers = overview.workers;
    lines.push(format!(
        "workers   {} live, {} of {} slots used",
        workers.live, workers.slots_used, workers.slots
    ));
    lines.extend(overview.lanes.iter().map(format_lane));
    lines.extend(overview.local_models.iter().map(format_local_model));
    lines.extend(overview.local_devices.iter().map(format_local_device));
    for pause in &overview.pauses {
        lines.push(format!("paused    {} {} by {}", pause.scope, pause.name, pause.paused_by));
    }
    let states: Vec<_> = overview
        .in_flight
        .iter()
        .map(|state| {
            format!("{} {} (oldest {})", state.count, state.state, format_age(state.oldest_s))
        })
        .collect();
    lines.push(match states.is_empty() {
        true => "in flight nothing".to_owned(),
        false => format!("in flight {}", states.join(", ")),
    });
    for ended in &overview.throughput {
        let minutes = f64::from(ended.minutes.max(1));
        let all = ended.completed + ended.failed + ended.cancelled;
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        let rate = all as f64 / minutes;
        lines.push(format!(
            "last {:>2} min: {} completed ({} flagged), {} failed, {} cancelled; {rate:.1} a minute",
            ended.minutes, ended.completed, ended.flagged, ended.failed, ended.cancelled
        ));
    }
    lines.push(String::new());
    lines.extend(format_jobs(overview));
    lines.extend(format_failures(overview));
    lines.join("\n")
}

fn format_lane(lane: &LaneTotals) -> String {
    let trouble = match (lane.denied, lane.down) {
        (0, 0) => String::new(),
        (0, down) => format!(", down for {down} of {} workers", lane.workers),
        (denied, _) => {
            format!(", denied to {denied} of {} workers: a person has to act", lane.workers)
        }
    };
    let LaneTotals { provider, model, in_flight, waiting, .. } = lane;
    format!("calls     {provider} {model}: {in_flight} under way, {waiting} wait{trouble}")
}

fn format_local_model(model: &LocalModelTotals) -> String {
    let LocalModelTotals { model: name, running, waiting, .. } = model;
    let turns = dashboard::describe_turns(model);
    let oldest = model.oldest_s.map(|age| format!(" (oldest {})", format_age(age)));
    let oldest = oldest.unwrap_or_default();
    format!("model     {name}: {turns}, {running} under way, {waiting} wait for memory{oldest}")
}

fn format_local_device(device: &LocalDeviceTotals) -> String {
    let LocalDeviceTotals { worker, device: name, total_mib, free_mib, held_mib, .. } = device;
    let age = format_age(device.read_s);
    format!(
        "memory    {name} of {worker}: {held_mib} of {total_mib} MiB held, {free_mib} free {age} ago"
    )
}

fn format_messages(overview: &ServiceOverview) -> String {
    match (&overview.queue, &overview.queue_problem) {
        (Some(depth), _) => {
            let dead =
                depth.dead.map_or("no dead-letter queue".to_owned(), |n| format!("{n} dead"));
            let (ready, hidden, delayed) = (depth.ready, depth.in_flight, depth.delayed);
            format!("messages  {ready} ready, {hidden} hidden, {delayed} delayed, {dead}")
        }
        (None, problem) => {
            format!("messages  the queue does not answer: {}", print::or_dash(problem.as_deref()))
        }
    }
}

fn format_jobs(overview: &ServiceOverview) -> Vec<String> {
    if overview.working.is_empty() {
        return Vec::new();
    }
    let rows: Vec<_> = overview
        .working
        .iter()
        .map(|job| {
            [
                job.ingestion_id.to_string(),
                print::or_dash(job.stage.as_deref()),
                format_age(job.age_s),
                job.attempt_count.to_string(),
                print::or_dash(job.kind.as_deref()),
                print::or_dash(job.worker.as_deref()),
            ]
        })
        .collect();
    vec![print::table(["working on", "stage", "for", "attempt", "kind", "worker"], &rows)]
}

fn format_failures(overview: &ServiceOverview) -> Vec<String> {
    if overview.failures.is_empty() {
        return vec!["no failure within a day".to_owned()];
    }
    let rows: Vec<_> = overview
        .failures
        .iter()
        .map(|row| [row.reason.clone(), row.count.to_string(), row.latest.to_string()])
        .collect();
    vec![print::table(["failed within a day", "count", "latest"], &rows)]
}

fn format_age(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default().as_secs();
    format_duration(Duration::from_secs(whole)).to_string()
}
