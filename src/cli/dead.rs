//! `docmill dead`: messages that were received too often.

use clap::Subcommand;

use super::{CommandContext, CommandExit, DATABASE_AND_QUEUE, jobs, print};
use docmill_core::fault::Fault;
use docmill_operations::dead::{self, DeadLetterView, LetterChoice};
use docmill_operations::inspect;

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(super) enum DeadCommand {
    /// List dead letters and the status of their ingestions
    List {
        /// Maximum number of results
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show one dead letter
    Show {
        /// Message id or ingestion id
        id: String,
    },
    /// Reopen the ingestions of dead letters and send them again
    Redrive {
        /// Message ids or ingestion ids; none: all
        #[arg(conflicts_with = "reason")]
        ids: Vec<String>,
        /// Filter by the ingestion's failure reason
        #[arg(long, value_name = "CODE", value_parser = jobs::parse_reason)]
        reason: Option<String>,
        /// Dry run: list the affected messages
        #[arg(long)]
        dry_run: bool,
        /// Comment for the audit log
        #[arg(long, default_value = "")]
        why: String,
    },
}

pub(super) async fn run(
    context: &CommandContext,
    what: DeadCommand,
) -> anyhow::Result<CommandExit> {
    let app = context.build_app(DATABASE_AND_QUEUE)?;
    context.quiet_logs()?;
    let db = app.connect_database().await?;
    db.require_schema().await?;
    let queue = app.open_queue().await?;
    match what {
        DeadCommand::List { limit } => {
            let letters = dead::list_letters(&db, queue.as_ref(), limit).await?;
            context.result_output().show(&letters, || format_letters(&letters))?;
        }
        DeadCommand::Show { id } => {
            let letters = dead::list_letters(&db, queue.as_ref(), usize::MAX).await?;
            let found = letters.iter().find(|letter| {
                letter.message_id == id || letter.ingestion.is_some_and(|of| of.to_string() == id)
            });
            let Some(letter) = found else {
                anyhow::bail!(
                    "no dead letter has the id `{id}`; one that somebody is bringing back at this \
                     moment is not shown"
                );
            };
            let story = match letter.ingestion {
                Some(of) => match inspect::load_histories(&db, &of.to_string()).await {
                    Err(error) if error.fault == Fault::Missing => Vec::new(),
                    found => found?,
                },
                None => Vec::new(),
            };
            let both = serde_json::json!({ "letter": letter, "ingestion": story.first() });
            context.result_output().show(&both, || {
                let stories: Vec<_> = story.iter().map(jobs::format_history).collect();
                format!("{}\n{}", format_letters(std::slice::from_ref(letter)), stories.join("\n"))
            })?;
        }
        DeadCommand::Redrive { ids, reason, dry_run: true, .. } => {
            let choice = choice_of(ids, reason);
            let mut letters = dead::list_letters(&db, queue.as_ref(), usize::MAX).await?;
            letters.retain(|letter| letter.would_be_sent(&choice));
            context.result_output().show(&letters, || {
                format!("{}{} would be sent again", format_letters(&letters), letters.len())
            })?;
        }
        DeadCommand::Redrive { ids, reason, dry_run: false, why } => {
            let (by, choice) = (jobs::audit_note(why), choice_of(ids, reason));
            let done = dead::redrive_letters(&db, queue.as_ref(), &choice, &by).await?;
            context.result_output().show(&done, || {
                format!(
                    "sent again: {}\nsent again as they were: {}\n\
                     deleted, their ingestions are completed or cancelled: {}\nleft: {}",
                    done.sent.len(),
                    done.as_they_were,
                    done.cleared,
                    done.left
                )
            })?;
        }
    }
    Ok(CommandExit::Done)
}

fn choice_of(ids: Vec<String>, reason: Option<String>) -> LetterChoice {
    match reason {
        Some(reason) => LetterChoice::Reason(reason),
        None if ids.is_empty() => LetterChoice::All,
        None => LetterChoice::Named(ids.into_iter().collect()),
    }
}

fn format_letters(letters: &[DeadLetterView]) -> String {
    let rows: Vec<_> = letters
        .iter()
        .map(|letter| {
            [
                letter.message_id.clone(),
                letter.ingestion.map_or("-".to_owned(), |id| id.to_string()),
                letter.state.clone(),
                print::or_dash(letter.reason.as_deref()),
                letter.receive_count.to_string(),
                print::or_dash(letter.sent_at.as_deref()),
            ]
        })
        .collect();
    print::table(["message", "ingestion", "state", "reason", "receives", "sent"], &rows)
}
