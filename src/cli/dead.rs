//! `docmill dead`: messages that were received too often.

use clap::Subcommand;

use super::{Context, DATABASE_AND_QUEUE, Exit, jobs, print};
use crate::ops::dead::{self, Letter};
use crate::ops::inspect;

/// What to do.
#[derive(Debug, Subcommand)]
pub(super) enum Dead {
    /// List the messages in the dead-letter queue, and how their ingestions stand
    List {
        /// At most so many
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show one: by message id or ingestion id
    Show {
        /// Message id or ingestion id
        id: String,
    },
    /// Reopen the ingestions of dead messages and send them again
    Redrive {
        /// Only those whose ingestion failed for this reason
        #[arg(long, value_name = "CODE", value_parser = jobs::reason)]
        reason: Option<String>,
        /// Only say which
        #[arg(long)]
        dry_run: bool,
        /// For those who read it later
        #[arg(long, default_value = "")]
        why: String,
    },
}

pub(super) async fn run(context: &Context, what: Dead) -> anyhow::Result<Exit> {
    let app = context.app(DATABASE_AND_QUEUE)?;
    context.quiet_logs()?;
    let db = app.database().await?;
    db.require_schema().await?;
    let queue = app.queue().await?;
    match what {
        Dead::List { limit } => {
            let letters = dead::list(&db, queue.as_ref(), limit).await?;
            context.out().show(&letters, || listing(&letters))?;
        }
        Dead::Show { id } => {
            let letters = dead::list(&db, queue.as_ref(), usize::MAX).await?;
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
                Some(of) => inspect::status(&db, &of.to_string()).await.unwrap_or_default(),
                None => Vec::new(),
            };
            let both = serde_json::json!({ "letter": letter, "ingestion": story.first() });
            context.out().show(&both, || {
                let stories: Vec<_> = story.iter().map(jobs::story).collect();
                format!("{}\n{}", listing(std::slice::from_ref(letter)), stories.join("\n"))
            })?;
        }
        Dead::Redrive { reason, dry_run: true, .. } => {
            let mut letters = dead::list(&db, queue.as_ref(), usize::MAX).await?;
            letters.retain(|letter| reason.is_none() || letter.reason == reason);
            context.out().show(&letters, || {
                format!("{}{} would be sent again", listing(&letters), letters.len())
            })?;
        }
        Dead::Redrive { reason, dry_run: false, why } => {
            let by = jobs::by(why);
            let done = dead::redrive(&db, queue.as_ref(), reason.as_deref(), &by).await?;
            context.out().show(&done, || {
                format!(
                    "sent again: {}\nsent again as they were: {}\nleft: {}",
                    done.sent.len(),
                    done.as_they_were,
                    done.left
                )
            })?;
        }
    }
    Ok(Exit::Done)
}

fn listing(letters: &[Letter]) -> String {
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
