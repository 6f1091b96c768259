//! `docmill scheduler`: what the processes of this machine have posted about local models.

use serde::Serialize;

use super::{CommandContext, CommandExit, NOTHING, print};
use docmill_core::model::LocalModelState;
use docmill_scheduler::{self, MemoryDevice, MemoryNeed, ModelDemand, ProcessState};

/// Everything that is known, for programs.
#[derive(Debug, Serialize)]
struct SchedulerView {
    now_ms: u64,
    devices: Vec<DeviceView>,
    processes: Vec<ProcessState>,
}

#[derive(Debug, Serialize)]
struct DeviceView {
    #[serde(flatten)]
    device: MemoryDevice,
    held_mib: u64,
    read_s: u64,
}

pub(super) fn run(context: &CommandContext) -> anyhow::Result<CommandExit> {
    let config = context.load_config(NOTHING)?.llm.scheduler;
    let processes = docmill_scheduler::read_states(&config.shared_folder())?;
    let posts: Vec<ModelDemand> = processes.iter().flat_map(|sheet| sheet.posts.clone()).collect();
    // The processes share the devices: the newest reading is everybody's.
    let now_ms = docmill_scheduler::machine_ms();
    let newest = processes.iter().map(|sheet| &sheet.reading).max_by_key(|reading| reading.at_ms);
    let devices = newest.into_iter().flat_map(|reading| {
        reading.devices.iter().map(|device| DeviceView {
            held_mib: docmill_scheduler::held_mib(&device.name, &posts),
            read_s: now_ms.saturating_sub(reading.at_ms) / 1000,
            device: device.clone(),
        })
    });
    let shown = SchedulerView { now_ms, devices: devices.collect(), processes };
    context.result_output().show(&shown, || format_scheduler(&shown))?;
    Ok(CommandExit::Done)
}

fn format_scheduler(shown: &SchedulerView) -> String {
    if shown.processes.is_empty() {
        return "no worker of this machine schedules local models (llm.scheduler)".to_owned();
    }
    let devices: Vec<[String; 5]> = shown
        .devices
        .iter()
        .map(|DeviceView { device, held_mib, read_s }| {
            let [total, free, held] =
                [device.total_mib, device.free_mib, *held_mib].map(|mib| mib.to_string());
            [device.name.clone(), total, free, held, format!("{read_s} s ago")]
        })
        .collect();
    let mut models = Vec::new();
    for sheet in &shown.processes {
        let rows = sheet.posts.iter().map(|post| demand_row(sheet.process, post, shown.now_ms));
        models.extend(rows);
    }
    let devices = print::table(["device", "total MiB", "free MiB", "held MiB", "read"], &devices);
    let header = ["model", "process", "needs MiB", "state", "running", "waiting", "oldest"];
    format!("{devices}\n{}", print::table(header, &models))
}

fn demand_row(process: u32, post: &ModelDemand, now_ms: u64) -> [String; 7] {
    let needs = match post.need {
        MemoryNeed::Mib(mib) => mib.to_string(),
        MemoryNeed::Alone => "alone".to_owned(),
    };
    let device = post.device().unwrap_or_default();
    let state = match post.state() {
        LocalModelState::Loaded => format!("has {device}"),
        LocalModelState::Loading => format!("loads on {device}"),
        LocalModelState::Waiting => "waits for memory".to_owned(),
        LocalModelState::Idle => format!("idle on {device}"),
        LocalModelState::Absent => "-".to_owned(),
    };
    let oldest = post.oldest_ms.map(|since| format!("{} s", now_ms.saturating_sub(since) / 1000));
    [
        post.model.clone(),
        process.to_string(),
        needs,
        state,
        post.running.to_string(),
        post.waiting.to_string(),
        print::or_dash(oldest.as_deref()),
    ]
}
