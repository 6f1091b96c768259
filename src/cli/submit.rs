//! `submit`: what to hand in, and a report that costs no more memory for more documents.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::mpsc;

use super::{CommandContext, CommandExit, print, standard_input};
use docmill_core::config::ConfigNeeds;
use docmill_core::model::{IngestionStatus, Priority};
use docmill_operations::submit::{
    self, SkippedPath, Submission, SubmitContext, SubmitLine, SubmitOptions, SubmitSearch,
    SubmitStatus,
};

/// Maximum lines of the table; of more, only documents that need review, and counts.
const SHOWN: usize = 200;
/// Found and not yet examined.
const AHEAD: usize = 1024;

/// Arguments of `submit`.
#[derive(Debug, clap::Args)]
pub(super) struct SubmitArgs {
    /// Files, folders, quoted patterns (`'in/*.pdf'`), `s3://bucket/prefix`; `-`: read paths from
    /// standard input, one per line
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Paths on standard input are separated by NUL bytes (`find -print0`)
    #[arg(long, short = '0')]
    null: bool,
    /// Create a new ingestion even for known content
    #[arg(long, alias = "again")]
    force: bool,
    /// Document kind
    #[arg(long)]
    kind: Option<String>,
    /// Tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Priority: critical, high, normal, low or background
    #[arg(long, default_value_t)]
    priority: Priority,
    /// Label, or label and value
    #[arg(long = "tag", value_name = "NAME[=VALUE]")]
    tags: Vec<String>,
}

pub(super) async fn run(
    context: &CommandContext,
    arguments: SubmitArgs,
) -> anyhow::Result<CommandExit> {
    standard_input::check_null(arguments.null, &arguments.paths)?;
    let app = context.build_app(ConfigNeeds::WORKER)?;
    let traces = context.quiet_logs_and_traces(app.config())?;
    let kind = arguments.kind.as_deref();
    if let Some(note) = kind.and_then(|it| submit::describe_unknown_kind(&app.config().kinds, it)) {
        print::note(&note);
    }
    let destination = app.config().queue_destination();
    let parts = Box::pin(app.open_backends()).await?;
    let desk = SubmitContext {
        db: &parts.db,
        store: parts.store.as_ref(),
        queue: parts.queue.as_ref(),
        largest: app.config().limits.document_bytes.0,
        destination: &destination,
    };
    let terms = SubmitOptions {
        again: arguments.force,
        kind: arguments.kind,
        tenant: arguments.tenant,
        priority: arguments.priority,
        tags: arguments.tags.iter().map(|tag| parse_label(tag)).collect::<BTreeMap<_, _>>(),
        identity: None,
    };
    let (steps, found) = mpsc::channel(AHEAD);
    let search = async {
        let mut search = SubmitSearch::new(steps, Some(desk.store));
        for path in &arguments.paths {
            match standard_input::is_dash(path) {
                true => search_listed(&mut search, arguments.null).await,
                false => search.search_path(path).await,
            }
        }
    };
    let mut report = SubmitReporter::new(context.result_output())?;
    let (handed_in, ()) =
        tokio::join!(submit::submit_all(desk, found, &terms, |line| report.add_line(line)), search);
    if let Some(traces) = traces {
        traces.shutdown().await;
    }
    // Results are printed even if the rest failed.
    let ended = report.finish();
    handed_in?;
    ended
}

/// A label and its value.
pub(super) fn parse_label(tag: &str) -> (String, String) {
    let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
    (name.to_owned(), value.to_owned())
}

/// Looks through the paths on standard input while they come in.
async fn search_listed(search: &mut SubmitSearch<'_>, null: bool) {
    let mut inbox = standard_input::read_paths(null);
    while let Some(path) = inbox.recv().await {
        search.search_path(&path).await;
    }
}

/// Prints the paths that were not submitted.
pub(super) fn print_skipped(skipped: &[SkippedPath]) {
    for skip in skipped {
        print::note(&format!("skipped {}: {}", skip.file.display(), skip.problem));
    }
}

/// Reports progress and results of a submission.
struct SubmitReporter {
    out: print::ResultOutput,
    bar: ProgressBar,
    /// Lines for the table; beyond `SHOWN` only those that need a person.
    lines: Vec<Submission>,
    /// By fate, in the order of `FATES`.
    counts: [u64; FATES.len()],
    skipped_by_name: bool,
    /// The reader of our output has gone, or the like.
    failed: Option<std::io::Error>,
}

const FATES: [(SubmitStatus, &str); 4] = [
    (SubmitStatus::Submitted, "submitted"),
    (SubmitStatus::Known, "known already"),
    (SubmitStatus::NotSent, "stored, not sent"),
    (SubmitStatus::Refused, "refused"),
];

impl SubmitReporter {
    fn new(out: print::ResultOutput) -> anyhow::Result<Self> {
        let bar = ProgressBar::new_spinner().with_style(ProgressStyle::with_template(
            "{spinner} {pos} documents, {per_sec}, {elapsed}",
        )?);
        if !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if out.json {
            print::piece("[")?;
        }
        let (lines, counts) = (Vec::new(), [0; FATES.len()]);
        Ok(Self { out, bar, lines, counts, skipped_by_name: false, failed: None })
    }

    fn add_line(&mut self, line: SubmitLine) {
        match line {
            SubmitLine::Skipped(skip) => {
                self.skipped_by_name |= skip.named;
                self.bar.suspend(|| print_skipped(&[skip]));
            }
            SubmitLine::Done(done) => {
                self.bar.inc(1);
                let first = self.total() == 0;
                for ((fate, _), count) in FATES.iter().zip(&mut self.counts) {
                    *count += u64::from(*fate == done.fate);
                }
                if self.out.json {
                    self.stream_json(&done, first);
                } else if self.lines.len() < SHOWN || done.problem.is_some() {
                    self.lines.push(done);
                }
            }
        }
    }

    /// Writes one element of the JSON array.
    fn stream_json(&mut self, done: &Submission, first: bool) {
        let text = match print::json_line(done) {
            Ok(text) => text,
            Err(error) => format!("{{\"problem\":\"{error}\"}}"),
        };
        let separator = if first { "\n  " } else { ",\n  " };
        if let Err(error) = print::piece(&format!("{separator}{text}")) {
            self.failed.get_or_insert(error);
        }
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn finish(self) -> anyhow::Result<CommandExit> {
        self.bar.finish_and_clear();
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        let total = self.total();
        if self.out.json {
            print::print("\n]")?;
        } else if total > 0 {
            print::print(&self.summary_text(total))?;
        }
        anyhow::ensure!(total > 0, "there is nothing to hand in");
        let [.., refused] = self.counts;
        Ok(CommandExit::from_success(refused == 0 && !self.skipped_by_name))
    }

    fn summary_text(&self, total: u64) -> String {
        let all = u64::try_from(self.lines.len()).is_ok_and(|shown| shown == total);
        if all {
            return format_submissions(self.lines.iter());
        }
        let mut text = String::new();
        if self.lines.iter().any(|line| line.problem.is_some()) {
            text = format_submissions(self.lines.iter().filter(|line| line.problem.is_some()));
        }
        let counts = FATES.iter().zip(self.counts).filter(|(_, count)| *count > 0);
        let counts: Vec<_> = counts.map(|((_, name), count)| format!("{count} {name}")).collect();
        format!("{text}{total} documents: {}\n", counts.join(", "))
    }
}

fn format_submissions<'a>(lines: impl Iterator<Item = &'a Submission>) -> String {
    let rows: Vec<_> = lines
        .map(|line| {
            let fate = FATES.iter().find(|(fate, _)| *fate == line.fate).map(|(_, name)| *name);
            [
                line.file.display().to_string(),
                print::or_dash(fate),
                line.ingestion_id.map_or("-".to_owned(), |id| id.to_string()),
                print::or_dash(line.status.map(IngestionStatus::code)),
                print::or_dash(line.problem.as_deref()),
            ]
        })
        .collect();
    print::table(["file", "result", "ingestion", "status", "problem"], &rows)
}
