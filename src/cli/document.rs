//! Commands on documents alone: no database, no queue, no store.

mod evidence;
mod transcript_form;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use clap::ValueEnum;
use serde_json::json;

use self::transcript_form::{TranscriptFormat, cut_document, join_blocks, render_document};
use super::{CommandContext, CommandExit, NOTHING, print};
use crate::app::App;
use docmill_core::config::LlmProvider;
use docmill_core::model::IngestionStatus;
use docmill_eval::baseline::{EarlierReport, RunComparison};
use docmill_eval::inject::{ErrorInjector, InjectReport};
use docmill_eval::limits::{self, MeasureLimit};
use docmill_eval::{self, EvalReport, EvalSample, FamilyPart};
use docmill_gate::GateLookups;
use docmill_layout::{PicturePaths, read_layout};
use docmill_operations::process::{FaultReport, LocalPipeline, ProcessReport, ProcessedChild};
use docmill_pipeline::{CutFigures, StepError, cut_figures};
use docmill_storage::folder::FolderStore;

/// Arguments of `process`.
#[derive(Debug, clap::Args)]
pub(super) struct ProcessArgs {
    /// Document to read; of a mail or archive the documents in it
    file: PathBuf,
}

/// Arguments of `transcribe`.
#[derive(Debug, clap::Args)]
pub(super) struct TranscribeArgs {
    /// Document to read
    file: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = TranscriptFormat::Lines)]
    format: TranscriptFormat,
    /// With --format chunks: maximum tokens per chunk, estimated as bytes / 4
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..=100_000))]
    chunk_tokens: u32,
    /// Also write a searchable PDF/A here
    #[arg(long, value_name = "PDF")]
    searchable: Option<PathBuf>,
    /// Write figure images into this folder and link them from the Markdown
    #[arg(long, value_name = "DIR")]
    assets: Option<PathBuf>,
}

/// Arguments of `eval`.
#[derive(Debug, clap::Args)]
pub(super) struct EvalArgs {
    /// Folder of documents, with truth/NAME.json or truth/NAME.txt below
    dir: PathBuf,
    /// Score pages only; ignore embedded XML
    #[arg(long)]
    ignore_xml: bool,
    /// Compare with an earlier run: a file of its --json output
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Fail if a figure is lower: a field's F1 (total=0.95, inv:total=0.95) or another name in the
    /// JSON's `measures`
    #[arg(long, value_name = "NAME=VALUE")]
    fail_under: Vec<MeasureLimit>,
    /// Fail if a figure is higher, e.g. `silent_errors=0`
    #[arg(long, value_name = "NAME=VALUE")]
    fail_over: Vec<MeasureLimit>,
    /// Write a report with plots and differing values; contains document content
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Inject errors into the known truth and count how many the gate catches
    #[arg(long)]
    inject: bool,
    /// With --inject: random seed
    #[arg(long, default_value_t = 1, requires = "inject")]
    seed: u64,
    /// Read all documents again without image repair, and print both
    #[arg(long)]
    no_repair: bool,
    /// Score one split of the families: fit on `tune`, report `check`
    #[arg(long, value_enum, value_name = "PART")]
    split: Option<SplitPart>,
    /// Cache transcripts and model replies in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "no_repair")]
    keep: Option<PathBuf>,
    /// Write the features of every candidate of the tune split, for `scripts/corpus/fit_reading.py`
    #[arg(long, value_name = "FILE", conflicts_with = "split")]
    evidence: Option<PathBuf>,
}

/// A split of a folder's families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SplitPart {
    /// For fitting weights and words
    Tune,
    /// For reported figures
    Check,
}

impl From<SplitPart> for FamilyPart {
    fn from(part: SplitPart) -> Self {
        match part {
            SplitPart::Tune => Self::Tune,
            SplitPart::Check => Self::Check,
        }
    }
}

pub(super) async fn process(
    context: &CommandContext,
    arguments: ProcessArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(NOTHING)?;
    context.quiet_logs()?;
    let bytes = read_input(&arguments.file, &app).await?;
    let pipeline = LocalPipeline::with_children(Box::pin(app.pipeline_services()).await?);
    let processed = match pipeline.process_file(&arguments.file, bytes).await {
        Ok(processed) => processed,
        Err(error) if context.global.json => {
            print::error(&error.to_string());
            let failed = FaultReport::new(arguments.file.display().to_string(), &error);
            context.result_output().show(&failed, String::new)?;
            return Ok(CommandExit::Failed);
        }
        Err(error) => return Err(error.into()),
    };
    context.result_output().show(&processed, || format_processed(&processed))?;
    Ok(CommandExit::from_success(processed.is_completed()))
}

/// One byte more than allowed is enough to be refused for it.
async fn read_input(path: &Path, app: &App) -> anyhow::Result<Bytes> {
    use tokio::io::AsyncReadExt;
    let limit = app.config().limits.document_bytes.0;
    let file = tokio::fs::File::open(path).await;
    let file = file.map_err(|error| unreadable_file(path, &error))?;
    let mut bytes = Vec::new();
    let done = file.take(limit.saturating_add(1)).read_to_end(&mut bytes).await;
    done.map_err(|error| unreadable_file(path, &error))?;
    Ok(bytes.into())
}

/// The error for a file that cannot be read.
fn unreadable_file(path: &Path, error: &std::io::Error) -> anyhow::Error {
    anyhow::anyhow!("cannot read {}: {error}", path.display())
}

fn format_processed(processed: &ProcessReport) -> String {
    let mut file = print::inline(&processed.file);
    if let Some(pages) = processed.pages {
        file = format!("{file}, pages {} to {}", pages.first, pages.last);
    }
    let mut lines = vec![match processed.reason {
        Some(reason) => format!("{file}: {} ({})", reason.code(), print::inline(&processed.detail)),
        None => {
            let reader = processed.reader.as_deref().unwrap_or("-");
            format!("{file}: completed by {reader}")
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
                let text = print::inline(&text.replace('\n', ", "));
                lines.push(format!("  {field}: {text}"));
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
    for child in &processed.children {
        let text = match child {
            ProcessedChild::Processed(child) => format_processed(child),
            ProcessedChild::Stopped(FaultReport { file, error }) => {
                let (file, message) = (print::inline(file), print::inline(&error.message));
                format!("{file}: {} ({message})", error.fault)
            }
        };
        lines.extend(text.lines().map(|line| format!("  {line}")));
    }
    lines.join("\n")
}

pub(super) async fn transcribe(
    context: &CommandContext,
    arguments: TranscribeArgs,
) -> anyhow::Result<CommandExit> {
    let mut config = context.load_config(NOTHING)?;
    // Reading needs no model, so an unreachable one must not fail it.
    config.llm.provider = LlmProvider::None;
    config.ocr.searchable_pdf = arguments.searchable.is_some();
    let app = App::new(config);
    context.quiet_logs()?;
    let bytes = read_input(&arguments.file, &app).await?;
    let is_data = matches!(arguments.format, TranscriptFormat::Json | TranscriptFormat::Chunks);
    let as_json = context.global.json || is_data;
    let out = print::ResultOutput { json: as_json };
    let pipeline = app.local_pipeline().await?;
    match pipeline.transcribe_with_copy(bytes.clone()).await {
        Ok((read, copy)) => {
            let written = arguments.searchable.as_deref().map(|path| write_copy(path, copy));
            let found = read_layout(&read);
            let pictures = match &arguments.assets {
                None => PicturePaths::new(),
                Some(folder) => {
                    let cut = cut_figures(pipeline.services(), bytes, &read, &found).await?;
                    write_figures(folder, &cut)?
                }
            };
            if arguments.format == TranscriptFormat::Chunks {
                let chunks = cut_document(&read, &found, arguments.chunk_tokens);
                out.show(&chunks, String::new)?;
            } else {
                let shown = join_blocks(&read, &found);
                out.show(&shown, || render_document(&read, &found, &pictures, arguments.format))?;
            }
            written.transpose()?;
            Ok(CommandExit::Done)
        }
        Err(StepError::Rejected { reason, detail }) => {
            if as_json {
                let refused = json!({ "reason": reason.code(), "detail": detail });
                out.show(&refused, String::new)?;
            } else {
                print::error(&format!("{}: {detail}", reason.code()));
            }
            Ok(CommandExit::Failed)
        }
        Err(error) => Err(error.into()),
    }
}

/// Writes the pictures of figures; the paths by which Markdown leads to them.
fn write_figures(folder: &Path, cut: &CutFigures) -> anyhow::Result<PicturePaths> {
    let name = folder.to_str().filter(|name| !name.contains(|c: char| "()<>\\\n\r\"".contains(c)));
    let name = name.context("--assets needs a folder name that is a valid Markdown path")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {name}"))?;
    for picture in &cut.pictures {
        let path = folder.join(&picture.name);
        std::fs::write(&path, &picture.bytes)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let paths = cut.paths_below(&name.replace(' ', "%20"));
    Ok(paths)
}

/// Writes the searchable copy.
fn write_copy(path: &Path, copy: Option<Bytes>) -> anyhow::Result<()> {
    let why =
        "no searchable copy is made: no page was read from its picture, or it would be too large";
    let copy = copy.context(why)?;
    std::fs::write(path, copy).with_context(|| format!("cannot write {}", path.display()))
}

pub(super) async fn eval(
    context: &CommandContext,
    arguments: EvalArgs,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(NOTHING)?;
    context.quiet_logs()?;
    // Before an hour's work, not after it.
    let earlier = arguments.baseline.as_deref().map(load_earlier).transpose()?;
    if arguments.inject {
        let pipeline = open_pipeline(&app, &arguments).await?;
        let report = inject_errors(&app, &pipeline, &arguments).await?;
        context.result_output().show(&report, || report.to_string())?;
        return Ok(CommandExit::Done);
    }
    if let Some(path) = &arguments.evidence {
        evidence::write_evidence(&app, &arguments, path).await?;
        return Ok(CommandExit::Done);
    }
    let mut report = score_documents(&app, &arguments).await?;
    if arguments.no_repair {
        report.add_unrepaired(&score_documents(&app.without_repair(), &arguments).await?);
    }
    let comparison = earlier.map(|earlier| RunComparison::from_reports(&earlier, &report));
    if let Some(path) = &arguments.html {
        let page = docmill_eval::html_page(&report, comparison.as_ref());
        std::fs::write(path, page)
            .with_context(|| format!("cannot write the report to {}", path.display()))?;
    }
    let broken =
        limits::broken_limits(&report.measures, &arguments.fail_under, &arguments.fail_over);
    let rules_reader = docmill_extract::rules::reader_identity();
    let run = EvalRun { rules_reader, report, comparison };
    context.result_output().show(&run, || {
        let comparison = run.comparison.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{}{comparison}", run.report)
    })?;
    broken.iter().for_each(|problem| print::error(problem));
    Ok(CommandExit::from_success(broken.is_empty()))
}

/// The report and, where one was asked for, how it differs from an earlier one.
#[derive(serde::Serialize)]
struct EvalRun {
    /// Identity of the rules reader.
    rules_reader: String,
    #[serde(flatten)]
    report: EvalReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<RunComparison>,
}

/// What `eval --json` printed earlier.
fn load_earlier(path: &Path) -> anyhow::Result<EarlierReport> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| unreadable_file(path, &error))?;
    serde_json::from_str(&text)
        .with_context(|| format!("{} is not the output of `docmill eval --json`", path.display()))
}

/// The pipeline as the arguments of `eval` have it.
async fn open_pipeline(app: &App, arguments: &EvalArgs) -> anyhow::Result<LocalPipeline> {
    let mut services = app.pipeline_services().await?;
    services.ignore_xml = arguments.ignore_xml;
    let pipeline = LocalPipeline::new(services);
    let Some(folder) = &arguments.keep else { return Ok(pipeline) };
    let store = FolderStore::open(folder).await;
    let store = store.with_context(|| format!("cannot write to {}", folder.display()))?;
    Ok(pipeline.keeping_artefacts(Arc::new(store)))
}

async fn score_documents(app: &App, arguments: &EvalArgs) -> anyhow::Result<EvalReport> {
    let pipeline = &open_pipeline(app, arguments).await?;
    let at_once = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) + 1;
    let part = arguments.split.map(FamilyPart::from);
    Ok(docmill_eval::run(&arguments.dir, part, at_once, |path, bytes| {
        Box::pin(score_sample(pipeline, path, bytes))
    })
    .await?)
}

/// Judges the known truth of every document, with and without errors in it.
async fn inject_errors(
    app: &App,
    pipeline: &LocalPipeline,
    arguments: &EvalArgs,
) -> anyhow::Result<InjectReport> {
    let part = arguments.split.map(FamilyPart::from);
    let (labelled, _) = docmill_eval::find_labelled(&arguments.dir, part)?;
    let kind = pipeline.services().kinds.for_name(None).context("kinds.default names no kind")?;
    let lookups = GateLookups {
        quality_threshold: app.config().ocr.quality_threshold,
        ..GateLookups::on_day(time::OffsetDateTime::now_utc().date())
    };
    let mut injector = ErrorInjector::new(kind, lookups, arguments.seed);
    for document in &labelled {
        let Some(truth) = &document.data else { continue };
        match pipeline.transcribe_file(read_input(&document.path, app).await?).await {
            Ok(transcript) => injector.add_document(&document.name, truth, &transcript),
            Err(StepError::Fault(fault)) => return Err(fault.into()),
            Err(_) => injector.count_left_out(),
        }
    }
    Ok(injector.finish())
}

/// Whether a reason is that of the rule that ships for certainty.
fn is_of_certainty(reason: &str) -> bool {
    reason.split(':').next() == Some("uncertain")
}

/// Failures of OCR or model are scored under their own name; the run continues.
async fn score_sample(pipeline: &LocalPipeline, path: PathBuf, bytes: Bytes) -> EvalSample {
    match pipeline.process_file(&path, bytes).await {
        Ok(done) => EvalSample {
            status: done.status.code().to_owned(),
            reason: done.reason.map(|reason| reason.code().to_owned()),
            data: done.data,
            text: done.transcript.map(|read| read.full_text()),
            needs_review: !done.review_reasons.is_empty(),
            score: done.score,
            certainty: done.certainty,
            flagged_otherwise: done.review_reasons.iter().any(|reason| !is_of_certainty(reason)),
            reasons: done.review_reasons,
        },
        Err(error) => {
            print::error(&format!("{}: {error}", path.display()));
            EvalSample {
                status: IngestionStatus::Failed.code().to_owned(),
                reason: Some(error.fault.code().to_owned()),
                ..EvalSample::default()
            }
        }
    }
}
