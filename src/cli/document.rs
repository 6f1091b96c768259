//! Commands on documents alone: no database, no queue, no store.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use clap::ValueEnum;
use serde_json::json;

use super::{Context, Exit, NOTHING, print};
use crate::app::App;
use crate::config::LlmProvider;
use crate::eval::baseline::{Comparison, Earlier};
use crate::eval::inject::{InjectReport, Injector};
use crate::eval::limits::{self, Limit};
use crate::eval::{self, Report, Sample};
use crate::gate::{Einvoice, Lookups};
use crate::model::{Status, Transcript};
use crate::ops::process::{LocalPipeline, Processed};
use crate::pipeline::StepError;

/// Arguments of `process`.
#[derive(Debug, clap::Args)]
pub(super) struct Process {
    /// The document
    file: PathBuf,
}

/// Arguments of `transcribe`.
#[derive(Debug, clap::Args)]
pub(super) struct Transcribe {
    /// The document
    file: PathBuf,
    /// How to print what was read
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The lines, pages divided by form feeds
    Text,
    /// A heading for every page
    Markdown,
    /// Lines and words with boxes and confidences
    Json,
}

/// Arguments of `eval`.
#[derive(Debug, clap::Args)]
pub(super) struct Eval {
    /// Documents, with truth/NAME.json or truth/NAME.txt below
    dir: PathBuf,
    /// Score what is read from the pages alone, without XML that a document may carry
    #[arg(long)]
    ignore_xml: bool,
    /// Hold the run against an earlier one: what --json printed then
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Fail if a figure is below: a field's F1 (total=0.95, inv:total=0.95) or another of the
    /// names in the JSON's `measures`
    #[arg(long, value_name = "NAME=VALUE")]
    fail_under: Vec<Limit>,
    /// Fail if a figure is above, e.g. `silent_errors=0`
    #[arg(long, value_name = "NAME=VALUE")]
    fail_over: Vec<Limit>,
    /// Write a report with plots and the values that differ: it holds document content
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Put errors into the known truth instead, and tell how many of them the gate sees
    #[arg(long)]
    inject: bool,
    /// With --inject: the same seed gives the same errors
    #[arg(long, default_value_t = 1, requires = "inject")]
    seed: u64,
    /// Read everything once more without repair, and print that beside it
    #[arg(long)]
    no_repair: bool,
}

pub(super) async fn process(context: &Context, arguments: Process) -> anyhow::Result<Exit> {
    let app = context.app(NOTHING)?;
    context.quiet_logs()?;
    let bytes = read(&arguments.file, &app).await?;
    let pipeline = app.local_pipeline().await?;
    let processed = pipeline.process(&arguments.file, bytes).await?;
    context.out().show(&processed, || describe(&processed))?;
    Ok(Exit::of(processed.status == Status::Completed))
}

/// One byte more than allowed is enough to be refused for it.
async fn read(path: &Path, app: &App) -> anyhow::Result<Bytes> {
    use tokio::io::AsyncReadExt;
    let limit = app.config().limits.document_bytes.0;
    let file = tokio::fs::File::open(path).await;
    let file = file.with_context(|| format!("cannot read {}", path.display()))?;
    let mut bytes = Vec::new();
    let done = file.take(limit.saturating_add(1)).read_to_end(&mut bytes).await;
    done.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes.into())
}

fn describe(processed: &Processed) -> String {
    let mut lines = vec![match processed.reason {
        Some(reason) => format!("{}: {} ({})", processed.file, reason.code(), processed.detail),
        None => {
            let reader = processed.reader.as_deref().unwrap_or("-");
            format!("{}: completed by {reader}", processed.file)
        }
    }];
    for (field, value) in processed.data.iter().flatten() {
        match value {
            serde_json::Value::Null => {}
            serde_json::Value::Array(items) => {
                lines.push(format!("  {field}:"));
                lines.extend(items.iter().map(|item| format!("    {item}")));
            }
            serde_json::Value::String(text) => {
                lines.push(format!("  {field}: {}", text.replace('\n', ", ")));
            }
            other => lines.push(format!("  {field}: {other}")),
        }
    }
    if !processed.review_reasons.is_empty() {
        lines.push(format!("  to review: {}", processed.review_reasons.join(", ")));
    }
    if let Some(read) = &processed.transcription {
        lines.push(format!("  pages: {}, quality {:.2}", read.pages.len(), read.quality));
    }
    lines.join("\n")
}

pub(super) async fn transcribe(context: &Context, arguments: Transcribe) -> anyhow::Result<Exit> {
    let mut config = context.config(NOTHING)?;
    // Reading needs no model: one that does not answer must not stand in the way.
    config.llm.provider = LlmProvider::None;
    let app = App::new(config);
    context.quiet_logs()?;
    let bytes = read(&arguments.file, &app).await?;
    let as_json = context.global.json || arguments.format == Format::Json;
    let out = print::Out { json: as_json };
    match app.local_pipeline().await?.transcribe(bytes).await {
        Ok(read) => {
            out.show(&read, || text_of(&read, arguments.format))?;
            Ok(Exit::Done)
        }
        Err(StepError::Rejected { reason, detail }) => {
            if as_json {
                let refused = json!({ "reason": reason.code(), "detail": detail });
                out.show(&refused, String::new)?;
            } else {
                print::error(&format!("{}: {detail}", reason.code()));
            }
            Ok(Exit::Failed)
        }
        Err(error) => Err(error.into()),
    }
}

fn text_of(read: &Transcript, format: Format) -> String {
    let page = |page: &crate::model::PageText| match format {
        Format::Markdown => format!("## Page {}\n\n{}\n", page.number, page.text().trim_end()),
        Format::Text | Format::Json => page.text(),
    };
    let pages: Vec<_> = read.pages.iter().map(page).collect();
    pages.join(if format == Format::Markdown { "\n" } else { "\u{c}\n" })
}

pub(super) async fn eval(context: &Context, arguments: Eval) -> anyhow::Result<Exit> {
    let app = context.app(NOTHING)?;
    context.quiet_logs()?;
    // Before an hour's work, not after it.
    let earlier = arguments.baseline.as_deref().map(earlier).transpose()?;
    if arguments.inject {
        let pipeline = app.local_pipeline().await?;
        let report = inject(&app, &pipeline, &arguments).await?;
        context.out().show(&report, || report.to_string())?;
        return Ok(Exit::Done);
    }
    let mut report = score(&app, &arguments).await?;
    if arguments.no_repair {
        report.beside(&score(&app.without_repair(), &arguments).await?);
    }
    let comparison = earlier.map(|earlier| Comparison::of(&earlier, &report));
    if let Some(path) = &arguments.html {
        let page = eval::page(&report, comparison.as_ref());
        std::fs::write(path, page)
            .with_context(|| format!("cannot write the report to {}", path.display()))?;
    }
    let broken = limits::broken(&report.measures, &arguments.fail_under, &arguments.fail_over);
    let run = Run { report, comparison };
    context.out().show(&run, || {
        let comparison = run.comparison.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{}{comparison}", run.report)
    })?;
    broken.iter().for_each(|problem| print::error(problem));
    Ok(Exit::of(broken.is_empty()))
}

/// The report and, where one was asked for, how it differs from an earlier one.
#[derive(serde::Serialize)]
struct Run {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<Comparison>,
}

/// What `eval --json` printed earlier.
fn earlier(path: &Path) -> anyhow::Result<Earlier> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read the earlier run {}", path.display()))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not what `docmill eval --json` prints", path.display()))
}

async fn score(app: &App, arguments: &Eval) -> anyhow::Result<Report> {
    let mut services = app.services().await?;
    services.ignore_xml = arguments.ignore_xml;
    let pipeline = &LocalPipeline::new(services);
    let at_once = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) + 1;
    let sample = |path, bytes| Box::pin(sample(pipeline, path, bytes));
    Ok(eval::run(&arguments.dir, at_once, sample).await?)
}

/// Judges the known truth of every document, with and without errors in it.
async fn inject(
    app: &App,
    pipeline: &LocalPipeline,
    arguments: &Eval,
) -> anyhow::Result<InjectReport> {
    let (labelled, _) = eval::find(&arguments.dir)?;
    let kind = pipeline.services().kinds.for_name(None).context("kinds.default names no kind")?;
    let lookups = Lookups {
        duplicate_of: None,
        today: time::OffsetDateTime::now_utc().date(),
        quality_threshold: app.config().ocr.quality_threshold,
        einvoice: Einvoice::Absent,
    };
    let mut injector = Injector::new(kind, lookups, arguments.seed);
    for document in &labelled {
        let Some(truth) = &document.data else { continue };
        match pipeline.transcribe(read(&document.path, app).await?).await {
            Ok(transcript) => injector.add(&document.name, truth, &transcript),
            Err(StepError::Fault(fault)) => return Err(fault.into()),
            Err(_) => injector.leave_out(),
        }
    }
    Ok(injector.finish())
}

/// What OCR or model could not do counts as a failure of its own name; the rest goes on.
async fn sample(pipeline: &LocalPipeline, path: PathBuf, bytes: Bytes) -> Sample {
    match pipeline.process(&path, bytes).await {
        Ok(done) => Sample {
            status: done.status.code().to_owned(),
            reason: done.reason.map(|reason| reason.code().to_owned()),
            data: done.data,
            text: done.transcript.map(|read| read.text()),
            needs_review: !done.review_reasons.is_empty(),
            score: done.score,
        },
        Err(error) => {
            print::error(&format!("{}: {error}", path.display()));
            Sample {
                status: Status::Failed.code().to_owned(),
                reason: Some(error.fault.code().to_owned()),
                ..Sample::default()
            }
        }
    }
}
