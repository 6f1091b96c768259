//! The command line: arguments, and the function that handles each command.
//!
//! Results go to standard output (tables, or JSON with `--json`), everything else to standard
//! error. Exit codes: 0 done, 1 failed, 2 wrong use. Configuration errors are wrong use too; all of
//! them are reported together, before anything connects. Not promised: the format of tables.

mod audit;
mod block;
mod bucket;
mod companies;
mod costs;
mod dashboard;
mod dead;
mod dev;
mod doctor;
mod document;
mod erase;
mod export;
mod inbox;
mod jobs;
mod kinds;
mod master;
mod people;
mod print;
mod quality;
mod redis;
mod replay;
mod reprioritize;
mod review;
mod run;
mod scheduler;
mod search;
mod settings;
mod shell;
mod standard_input;
mod submit;
mod web;
mod webhooks;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::app::App;
use docmill_client::telemetry::{self, TraceExporter};
use docmill_core::config::{Config, ConfigNeeds, InvalidConfig, LogFormat};
use docmill_documents::sandbox::{COMMAND, confine, process_memory};
use master::MasterTable;

/// Read documents named by queue messages and record structured data in Postgres, exactly once
#[derive(Debug, Parser)]
#[command(name = "docmill", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

/// Global options.
#[derive(Debug, Clone, clap::Args)]
struct GlobalArgs {
    /// Configuration file (TOML); `DOCMILL__SECTION__KEY` variables override it
    #[arg(long, global = true, env = "DOCMILL_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long, global = true)]
    json: bool,
    /// Print more on standard error: log lines, causes of errors
    #[arg(long, short, global = true)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a worker (SIGTERM: drain; twice: abort)
    Worker,
    /// Migrate the database schema
    Migrate(run::MigrateArgs),
    /// Run all parts locally: private Postgres, folders as store and queue, one worker
    Dev(dev::DevArgs),
    /// Submit documents: files, folders, patterns, bucket prefixes, lists of these
    Submit(submit::SubmitArgs),
    /// Take mails and files from mailboxes and folders (`inbox.sources`) and mark them
    Inbox(inbox::InboxArgs),
    /// Show an ingestion's status and attempts
    Status(jobs::StatusArgs),
    /// List ingestions, newest first
    List(jobs::ListArgs),
    /// Search documents by parts of names, labels, hashes, suppliers, numbers
    Search(search::SearchArgs),
    /// Find documents by content hash or path
    Lookup(search::LookupArgs),
    /// Write all documents as JSON lines
    Manifest(search::ManifestArgs),
    /// Export extracted data as CSV or UBL
    Export(export::ExportArgs),
    /// Retry ingestions
    Retry(jobs::RetryArgs),
    /// Change the priority of unfinished ingestions
    Reprioritize(reprioritize::ReprioritizeArgs),
    /// Cancel unfinished ingestions
    Cancel(jobs::ChangeArgs),
    /// Review documents flagged for manual review
    #[command(subcommand)]
    Review(review::ReviewCommand),
    /// Pause all work, or one kind, tenant or provider
    Pause(jobs::PauseArgs),
    /// Resume paused work
    Resume(jobs::PauseArgs),
    /// Check the audit: rows changed or removed after they were written
    Audit(audit::AuditArgs),
    /// Block a content hash: cancel its documents unread
    Block(block::BlockArgs),
    /// Unblock a content hash
    Unblock(block::BlockArgs),
    /// Erase a tenant's data permanently: rows, objects, messages
    Erase(erase::EraseArgs),
    /// Manage how long tenants' documents are kept
    #[command(subcommand)]
    Retention(erase::RetentionCommand),
    /// Show and forget what is remembered of a tenant's suppliers
    #[command(subcommand)]
    Memory(erase::MemoryCommand),
    /// Manage own companies: never the supplier, always a sign of the buyer
    #[command(subcommand)]
    Companies(companies::CompaniesCommand),
    /// Manage suppliers of the ERP: documents are matched with them
    #[command(subcommand)]
    Suppliers(master::MasterCommand),
    /// Manage purchase orders of the ERP: documents are matched with them
    #[command(subcommand)]
    Orders(master::MasterCommand),
    /// Manage users of the console and of the HTTP API
    #[command(subcommand)]
    Users(people::UsersCommand),
    /// Make, list and revoke users' tokens
    #[command(subcommand)]
    Tokens(people::TokensCommand),
    /// List and redrive dead letters
    #[command(subcommand)]
    Dead(dead::DeadCommand),
    /// Manage a Redis queue
    #[command(subcommand)]
    Redis(redis::RedisCommand),
    /// Run one maintenance pass: lost messages, dead letters, old rows
    Janitor(run::JanitorArgs),
    /// Process one document without database or queue
    Process(document::ProcessArgs),
    /// Transcribe one document, without extraction
    Transcribe(document::TranscribeArgs),
    /// Evaluate a folder of documents against truth/NAME.json and truth/NAME.txt
    Eval(document::EvalArgs),
    /// List and check document kinds
    #[command(subcommand)]
    Kinds(kinds::KindsCommand),
    /// Replay decided documents with these kinds and models; fails if too many get worse
    Replay(replay::ReplayArgs),
    /// Show quality: bounds on silent errors, straight-through share, corrections
    Quality(quality::QualityArgs),
    /// Show costs by day, tenant, model or document
    Costs(costs::CostsArgs),
    /// Show local models: loaded, idle, or waiting for memory
    Scheduler,
    /// Run and manage a BlobForge bucket (or folder) without a database
    #[command(subcommand)]
    Bucket(bucket::BucketCommand),
    /// Run and manage an olmOCR workspace (folder or s3:// prefix) without a database
    #[command(subcommand)]
    Workspace(workspace::WorkspaceCommand),
    /// Check or print the configuration
    #[command(subcommand)]
    Config(settings::ConfigCommand),
    /// Show service status: messages, jobs, throughput, failures
    Dashboard(dashboard::DashboardArgs),
    /// Serve the web console and the HTTP API
    Web(web::WebArgs),
    /// List, test and replay webhook deliveries
    #[command(subcommand)]
    Webhooks(webhooks::WebhooksCommand),
    /// Check everything a worker needs and list required fixes; read-only
    Doctor(doctor::DoctorArgs),
    /// Check the health of the worker on this machine
    Healthcheck,
    /// Print a shell completion script
    Completions(shell::CompletionsArgs),
    /// Write man pages, one per command
    Man(shell::ManArgs),
    /// Run a page process over standard input and output; started by docmill itself
    #[command(name = COMMAND, hide = true)]
    PageProcess,
}

/// The end of a command that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandExit {
    /// 0: all is well.
    Done,
    /// 1: it ran, and what it found is not well.
    Failed,
}

impl CommandExit {
    fn from_success(well: bool) -> Self {
        if well { Self::Done } else { Self::Failed }
    }
}

/// The context of a command.
struct CommandContext {
    global: GlobalArgs,
}

impl CommandContext {
    /// The checked configuration, as far as the command needs it.
    fn load_config(&self, needs: ConfigNeeds) -> Result<Config, InvalidConfig> {
        Config::load_for(self.global.config.as_deref(), needs)
    }

    fn build_app(&self, needs: ConfigNeeds) -> Result<App, InvalidConfig> {
        Ok(App::new(self.load_config(needs)?))
    }

    /// Log lines for commands that are not services: warnings only, unless more is asked for.
    fn quiet_logs(&self) -> anyhow::Result<()> {
        Ok(telemetry::init_at(LogFormat::Text, self.log_level())?)
    }

    /// The same for a command that begins traces; they are to be ended with it.
    fn quiet_logs_and_traces(&self, config: &Config) -> anyhow::Result<Option<TraceExporter>> {
        Ok(telemetry::init_with(LogFormat::Text, self.log_level(), &config.telemetry)?)
    }

    fn log_level(&self) -> &'static str {
        if self.global.verbose {
            "warn,docmill=debug,lopdf=off"
        } else {
            "warn,docmill=warn,lopdf=off"
        }
    }

    fn result_output(&self) -> print::ResultOutput {
        print::ResultOutput { json: self.global.json }
    }
}

const DATABASE: ConfigNeeds = ConfigNeeds { database: true, queue: false, store: false };
const DATABASE_AND_QUEUE: ConfigNeeds = ConfigNeeds { database: true, queue: true, store: false };
const QUEUE: ConfigNeeds = ConfigNeeds { database: false, queue: true, store: false };
const NOTHING: ConfigNeeds = ConfigNeeds { database: false, queue: false, store: false };

/// Runs the program.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|command| command == COMMAND) {
        // In a hidden process this file belongs to root and is no longer writable. Without it
        // memory limits still apply.
        drop(process_memory::volunteer_for_oom_kill());
    }
    // Before the first secret is read and the first thread is started.
    if let Err(error) = confine::hide_process() {
        print::error(&format!("cannot keep other processes out of this one: {error}"));
        return ExitCode::FAILURE;
    }
    let Cli { global, command } = Cli::parse();
    if matches!(command, Command::PageProcess) {
        // Before any thread is started, so that it can give up what it does not need.
        return run::run_page_process();
    }
    crate::app::raise_descriptor_limit();
    let verbose = global.verbose;
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print::error(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(Box::pin(dispatch(CommandContext { global }, command)));
    // Remaining background tasks hold no state.
    runtime.shutdown_background();
    match ended {
        Ok(CommandExit::Done) => ExitCode::SUCCESS,
        Ok(CommandExit::Failed) => ExitCode::FAILURE,
        Err(error) => report_error(&error, verbose),
    }
}

/// Prints an error, with its causes unless the text contains them. Without `verbose` only a refusal
/// of the system is one: it holds nothing of a document.
fn report_error(error: &anyhow::Error, verbose: bool) -> ExitCode {
    if print::is_closed(error) {
        return ExitCode::SUCCESS;
    }
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let said = cause.downcast_ref::<std::io::Error>();
        let is_told = verbose || said.is_some_and(|error| error.raw_os_error().is_some());
        let cause = cause.to_string();
        if is_told && !text.contains(&cause) {
            text = format!("{text}\n  because: {cause}");
        }
    }
    print::error(&text);
    ExitCode::from(if error.is::<InvalidConfig>() || error.is::<UsageError>() { 2 } else { 1 })
}

/// Arguments that make no sense together; exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

async fn dispatch(context: CommandContext, command: Command) -> anyhow::Result<CommandExit> {
    let context = &context;
    match command {
        Command::Worker => Box::pin(run::run_worker(context)).await,
        Command::Migrate(arguments) => run::migrate(context, arguments).await,
        Command::Dev(dev) => Box::pin(dev::run(context, dev)).await,
        Command::Submit(submit) => Box::pin(submit::run(context, submit)).await,
        Command::Inbox(inbox) => Box::pin(inbox::run(context, inbox)).await,
        Command::Status(which) => jobs::show_status(context, &which).await,
        Command::List(list) => jobs::list(context, list).await,
        Command::Search(asked) => search::search(context, asked).await,
        Command::Lookup(asked) => search::lookup(context, asked).await,
        Command::Manifest(asked) => search::print_manifest(context, asked).await,
        Command::Export(arguments) => Box::pin(export::export(context, arguments)).await,
        Command::Retry(change) => Box::pin(jobs::retry(context, change)).await,
        Command::Reprioritize(wish) => Box::pin(reprioritize::run(context, wish)).await,
        Command::Redis(what) => Box::pin(redis::run(context, what)).await,
        Command::Cancel(change) => jobs::cancel(context, change).await,
        Command::Review(what) => Box::pin(review::run(context, what)).await,
        Command::Pause(what) => jobs::pause(context, what).await,
        Command::Resume(what) => jobs::resume(context, what).await,
        Command::Audit(what) => audit::run(context, what).await,
        Command::Block(what) => block::run(context, what, true).await,
        Command::Unblock(what) => block::run(context, what, false).await,
        Command::Erase(what) => Box::pin(erase::erase(context, what)).await,
        Command::Retention(what) => erase::run_retention(context, what).await,
        Command::Memory(what) => erase::run_memory(context, what).await,
        Command::Companies(what) => erase::run_companies(context, &what).await,
        Command::Suppliers(what) => erase::run_master(context, MasterTable::Suppliers, &what).await,
        Command::Orders(what) => erase::run_master(context, MasterTable::Orders, &what).await,
        Command::Users(what) => Box::pin(web::run_users(context, what)).await,
        Command::Tokens(what) => web::run_tokens(context, what).await,
        Command::Dead(what) => dead::run(context, what).await,
        Command::Janitor(janitor) => Box::pin(run::run_janitor(context, janitor)).await,
        Command::Process(process) => Box::pin(document::process(context, process)).await,
        Command::Transcribe(file) => Box::pin(document::transcribe(context, file)).await,
        Command::Eval(eval) => Box::pin(document::eval(context, eval)).await,
        Command::Kinds(what) => kinds::run(context, what),
        Command::Bucket(what) => Box::pin(bucket::run(context, what)).await,
        Command::Workspace(what) => Box::pin(workspace::run(context, what)).await,
        Command::Config(what) => settings::run(context, what),
        Command::Replay(what) => Box::pin(replay::run(context, what)).await,
        Command::Quality(what) => quality::run(context, what).await,
        Command::Costs(what) => costs::run(context, what).await,
        Command::Dashboard(what) => Box::pin(dashboard::run(context, what)).await,
        Command::Web(what) => Box::pin(web::run(context, what)).await,
        Command::Webhooks(what) => webhooks::run(context, what).await,
        Command::Completions(what) => shell::print_completions(&what),
        Command::Man(what) => shell::write_man_pages(context, &what),
        Command::Doctor(args) => Box::pin(doctor::run(context, args)).await,
        Command::Scheduler => scheduler::run(context),
        Command::Healthcheck => run::check_health(context).await,
        // Answered before the runtime was started.
        Command::PageProcess => Ok(CommandExit::Failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn verify_cli() {
        Cli::command().debug_assert();
    }

    #[test]
    fn invalid_arguments_are_refused_before_anything_runs() {
        for wrong in [
            vec!["docmill"],
            vec!["docmill", "submit"],
            vec!["docmill", "pause"],
            vec!["docmill", "pause", "all", "--kind", "invoice"],
            vec!["docmill", "pause", "everything"],
            vec!["docmill", "list", "--status", "done"],
            vec!["docmill", "list", "--reason", "bad"],
            vec!["docmill", "list", "--since", "yesterday"],
            vec!["docmill", "list", "--since", "100000years"],
            vec!["docmill", "costs", "--since", "100000years"],
            vec!["docmill", "export", "--since", "100000years"],
            vec!["docmill", "retry"],
            vec!["docmill", "transcribe", "a.pdf", "--format", "html"],
        ] {
            let refused = Cli::try_parse_from(&wrong).unwrap_err();
            assert_eq!(refused.exit_code(), 2, "{wrong:?}");
        }
        for right in [
            vec!["docmill", "pause", "all"],
            vec!["docmill", "resume", "--tenant", "t", "--why", "because"],
            vec!["docmill", "list", "--status", "failed", "--reason", "no_text", "--since", "2h"],
            vec!["docmill", "dead", "redrive", "--json"],
            vec!["docmill", "dev", "--keep"],
        ] {
            assert!(Cli::try_parse_from(&right).is_ok(), "{right:?}");
        }
    }
}
