//! `submit`: what to hand in, and a report that costs no more memory for more documents.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::mpsc;

use super::{Context, Exit, print, standard_input};
use crate::config::Needs;
use crate::model::{Priority, Status};
use crate::ops::submit::{self, Desk, Fate, Line, Search, Skipped, Submission, Terms};

/// So many lines are shown as a table; of more, only what needs a person, and counts.
const SHOWN: usize = 200;
/// Found and not yet looked at.
const AHEAD: usize = 1024;

/// Arguments of `submit`.
#[derive(Debug, clap::Args)]
pub(super) struct Submit {
    /// Files, folders, quoted patterns (`'in/*.pdf'`), `s3://bucket/prefix`; `-` reads such paths
    /// from standard input, one a line
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Paths on standard input end with a NUL byte instead of a line break (`find -print0`)
    #[arg(long, short = '0')]
    null: bool,
    /// Make a new ingestion even of content that was handed in before
    #[arg(long, alias = "again")]
    force: bool,
    /// Kind of the documents
    #[arg(long)]
    kind: Option<String>,
    /// Whose they are
    #[arg(long)]
    tenant: Option<String>,
    /// How urgent they are: critical, high, normal, low or background
    #[arg(long, default_value_t)]
    priority: Priority,
    /// A label, or a label with a value
    #[arg(long = "tag", value_name = "NAME[=VALUE]")]
    tags: Vec<String>,
}

pub(super) async fn run(context: &Context, arguments: Submit) -> anyhow::Result<Exit> {
    standard_input::check(arguments.null, &arguments.paths)?;
    let app = context.app(Needs::WORKER)?;
    let traces = context.quiet_logs_and_traces(app.config())?;
    let destination = app.config().destination();
    let parts = Box::pin(app.parts()).await?;
    let desk = Desk {
        db: &parts.db,
        store: parts.store.as_ref(),
        queue: parts.queue.as_ref(),
        largest: app.config().limits.document_bytes.0,
        destination: &destination,
    };
    let terms = Terms {
        again: arguments.force,
        kind: arguments.kind,
        tenant: arguments.tenant,
        priority: arguments.priority,
        tags: arguments.tags.iter().map(|tag| label(tag)).collect::<BTreeMap<_, _>>(),
    };
    let (steps, found) = mpsc::channel(AHEAD);
    let search = async {
        let mut search = Search::new(steps, Some(desk.store));
        for path in &arguments.paths {
            match standard_input::is_meant(path) {
                true => listed(&mut search, arguments.null).await,
                false => search.path(path).await,
            }
        }
    };
    let mut report = Report::new(context.out())?;
    let (handed_in, ()) =
        tokio::join!(submit::submit_all(desk, found, &terms, |line| report.add(line)), search);
    if let Some(traces) = traces {
        traces.end().await;
    }
    // What was done is said, also if the rest could not be.
    let ended = report.end();
    handed_in?;
    ended
}

/// A label and its value.
pub(super) fn label(tag: &str) -> (String, String) {
    let (name, value) = tag.split_once('=').unwrap_or((tag, ""));
    (name.to_owned(), value.to_owned())
}

/// Looks through the paths on standard input while they come in.
async fn listed(search: &mut Search<'_>, null: bool) {
    let mut inbox = standard_input::paths(null);
    while let Some(path) = inbox.recv().await {
        search.path(&path).await;
    }
}

/// Says which paths were not handed in.
pub(super) fn skipped(skipped: &[Skipped]) {
    for skip in skipped {
        print::note(&format!("skipped {}: {}", skip.file.display(), skip.problem));
    }
}

/// What is said while documents are handed in, and at the end.
struct Report {
    out: print::Out,
    bar: ProgressBar,
    /// Lines for the table; beyond `SHOWN` only those that need a person.
    lines: Vec<Submission>,
    /// By fate, in the order of `FATES`.
    counts: [u64; FATES.len()],
    skipped_by_name: bool,
    /// The reader of our output has gone, or the like.
    failed: Option<std::io::Error>,
}

const FATES: [(Fate, &str); 4] = [
    (Fate::Submitted, "submitted"),
    (Fate::Known, "known already"),
    (Fate::NotSent, "stored, not sent"),
    (Fate::Refused, "refused"),
];

impl Report {
    fn new(out: print::Out) -> anyhow::Result<Self> {
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

    fn add(&mut self, line: Line) {
        match line {
            Line::Skipped(skip) => {
                self.skipped_by_name |= skip.named;
                self.bar.suspend(|| skipped(&[skip]));
            }
            Line::Done(done) => {
                self.bar.inc(1);
                let first = self.total() == 0;
                for ((fate, _), count) in FATES.iter().zip(&mut self.counts) {
                    *count += u64::from(*fate == done.fate);
                }
                if self.out.json {
                    self.stream(&done, first);
                } else if self.lines.len() < SHOWN || done.problem.is_some() {
                    self.lines.push(done);
                }
            }
        }
    }

    /// One element of the JSON array, as it comes.
    fn stream(&mut self, done: &Submission, first: bool) {
        let text = match serde_json::to_string(done) {
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

    fn end(self) -> anyhow::Result<Exit> {
        self.bar.finish_and_clear();
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        let total = self.total();
        if self.out.json {
            print::print("\n]")?;
        } else if total > 0 {
            print::print(&self.text(total))?;
        }
        anyhow::ensure!(total > 0, "there is nothing to hand in");
        let [.., refused] = self.counts;
        Ok(Exit::of(refused == 0 && !self.skipped_by_name))
    }

    fn text(&self, total: u64) -> String {
        let all = u64::try_from(self.lines.len()).is_ok_and(|shown| shown == total);
        if all {
            return table(self.lines.iter());
        }
        let mut text = String::new();
        if self.lines.iter().any(|line| line.problem.is_some()) {
            text = table(self.lines.iter().filter(|line| line.problem.is_some()));
        }
        let counts = FATES.iter().zip(self.counts).filter(|(_, count)| *count > 0);
        let counts: Vec<_> = counts.map(|((_, name), count)| format!("{count} {name}")).collect();
        format!("{text}{total} documents: {}\n", counts.join(", "))
    }
}

fn table<'a>(lines: impl Iterator<Item = &'a Submission>) -> String {
    let rows: Vec<_> = lines
        .map(|line| {
            let fate = FATES.iter().find(|(fate, _)| *fate == line.fate).map(|(_, name)| *name);
            [
                line.file.display().to_string(),
                print::or_dash(fate),
                line.ingestion_id.map_or("-".to_owned(), |id| id.to_string()),
                print::or_dash(line.status.map(Status::code)),
                print::or_dash(line.problem.as_deref()),
            ]
        })
        .collect();
    print::table(["file", "result", "ingestion", "status", "problem"], &rows)
}
