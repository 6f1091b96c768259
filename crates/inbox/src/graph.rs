//! A mailbox of Microsoft 365, through Microsoft Graph v1.0.
//!
//! Mails are read as MIME (`$value`) and named by immutable ids, which a move within the mailbox does
//! not change. Exchange writes a mail's MIME anew at every reading, perhaps in other bytes, so the id is
//! the mail's identity. Rights of the application: `Mail.ReadWrite`. Not promised: an order of mails;
//! categories as marks, since Graph documents no search for mails without one.

mod calls;

use std::time::Duration;

use async_trait::async_trait;
use docmill_client::access_token::AccessTokenCache;
use docmill_client::http;
use docmill_core::config::{InboxMark, InboxSourceConfig};
use docmill_core::fault::{Error, Fault, Result};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use tokio::fs::File;

use self::calls::GraphCalls;
use super::{ArrivedItem, InboxSource, ItemMark, ItemReading, MAX_LISTED_ITEMS, write_piece};

/// Graph in the public cloud.
const ENDPOINT: &str = "https://graph.microsoft.com/v1.0";
/// Mails of one page.
const PAGE_MAILS: &str = "100";
/// Most pages of one list: an answer may have few mails or none.
const MAX_PAGES: usize = 50;

/// A mailbox.
pub struct GraphSource {
    config: InboxSourceConfig,
    calls: GraphCalls,
    folders: Option<GraphFolders>,
}

/// The ids of folders.
struct GraphFolders {
    watched: String,
    /// Where mails are moved; empty with other marks.
    done: String,
    failed: String,
}

/// A page of a collection.
#[derive(Deserialize)]
struct GraphPage {
    value: Vec<GraphEntity>,
    #[serde(rename = "@odata.nextLink")]
    next_link: Option<String>,
}

/// A message or a folder.
#[derive(Deserialize)]
struct GraphEntity {
    id: String,
}

impl GraphSource {
    /// The resource that tokens must be for.
    ///
    /// # Errors
    /// The endpoint is no address.
    pub fn token_resource(config: &InboxSourceConfig) -> Result<String> {
        Ok(endpoint_url(config)?.origin().ascii_serialization())
    }

    /// Nothing is sent.
    ///
    /// # Errors
    /// The endpoint is no address; no TLS on this machine.
    pub fn new(
        config: InboxSourceConfig,
        request_timeout: Duration,
        tokens: AccessTokenCache,
    ) -> Result<Self> {
        let endpoint = endpoint_url(&config)?;
        let client = http::build_client(&endpoint, request_timeout)?;
        let calls = GraphCalls { client, endpoint, user: config.user.clone(), tokens };
        Ok(Self { config, calls, folders: None })
    }

    async fn find_folders(&self) -> Result<GraphFolders> {
        let mailbox = self.config.mailbox.as_str();
        let watched = if mailbox.eq_ignore_ascii_case("inbox") {
            "inbox".to_owned()
        } else {
            // Else it is an id, or a name that Graph gives a folder, such as `archive`.
            self.find_folder(mailbox).await?.unwrap_or_else(|| mailbox.to_owned())
        };
        let url = self.calls.url(&["mailFolders", &watched], &[("$select", "id")]);
        self.calls.get_json::<GraphEntity>(url, "the watched folder").await?;
        let (mut done, mut failed) = (String::new(), String::new());
        if self.config.mark == InboxMark::Move {
            done = self.require_folder(self.config.done_name()).await?;
            failed = self.require_folder(self.config.failed_name()).await?;
        }
        Ok(GraphFolders { watched, done, failed })
    }

    /// The id of the folder that people see under this name, beside the inbox.
    async fn find_folder(&self, name: &str) -> Result<Option<String>> {
        let filter = format!("displayName eq '{}'", name.replace('\'', "''"));
        let query = [("$filter", filter.as_str()), ("$select", "id"), ("$top", "1")];
        let url = self.calls.url(&["mailFolders"], &query);
        let page: GraphPage = self.calls.get_json(url, "a folder").await?;
        Ok(page.value.into_iter().next().map(|folder| folder.id))
    }

    async fn require_folder(&self, name: &str) -> Result<String> {
        if let Some(id) = self.find_folder(name).await? {
            return Ok(id);
        }
        let url = self.calls.url(&["mailFolders"], &[]);
        let made = self.calls.post_json(url, &json!({"displayName": name}), "a new folder").await?;
        let made: GraphEntity = serde_json::from_slice(&made).map_err(|_quotes| {
            Error::transient("Graph: a new folder: an answer of another form")
        })?;
        Ok(made.id)
    }

    async fn folders(&mut self) -> Result<&GraphFolders> {
        self.open().await?;
        self.folders.as_ref().ok_or_else(|| Error::internal("no folder of the mailbox is open"))
    }
}

fn endpoint_url(config: &InboxSourceConfig) -> Result<Url> {
    let endpoint = if config.endpoint.is_empty() { ENDPOINT } else { &config.endpoint };
    Url::parse(endpoint)
        .ok()
        .filter(|url| !url.cannot_be_a_base())
        .ok_or_else(|| Error::new(Fault::Misconfigured, "the endpoint of Graph is no address"))
}

#[async_trait]
impl InboxSource for GraphSource {
    fn describe(&self) -> String {
        let origin = self.calls.endpoint.origin().ascii_serialization();
        format!("mailbox {} of {} at {origin}", self.config.mailbox, self.config.user)
    }

    async fn open(&mut self) -> Result<()> {
        if self.folders.is_none() {
            self.folders = Some(self.find_folders().await?);
        }
        Ok(())
    }

    async fn list_new(&mut self) -> Result<Vec<ArrivedItem>> {
        let watched = self.folders().await?.watched.clone();
        let mut query = vec![("$select", "id"), ("$top", PAGE_MAILS)];
        if self.config.mark == InboxMark::Seen {
            query.push(("$filter", "isRead eq false"));
        }
        let mut next = Some(self.calls.url(&["mailFolders", &watched, "messages"], &query));
        let mut items = Vec::new();
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take().filter(|_| items.len() < MAX_LISTED_ITEMS) else { break };
            let page: GraphPage = match self.calls.get_json(url, "the list of mails").await {
                Ok(page) => page,
                Err(error) => {
                    // The folder may have been replaced.
                    self.folders = None;
                    return Err(error);
                }
            };
            items.extend(page.value.into_iter().map(|mail| ArrivedItem {
                identity: Some(format!("graph {} {}", self.config.user.to_lowercase(), mail.id)),
                label: mail.id,
                size: None,
                file_name: format!("{}.eml", self.config.name),
            }));
            next = page.next_link.map(|link| self.calls.check_link(&link)).transpose()?;
        }
        items.truncate(MAX_LISTED_ITEMS);
        Ok(items)
    }

    async fn read_item(
        &mut self,
        item: &ArrivedItem,
        file: &mut File,
        max_bytes: u64,
    ) -> Result<ItemReading> {
        const WHAT: &str = "the content of a mail";
        let url = self.calls.url(&["messages", &item.label, "$value"], &[]);
        let mut response = match self.calls.get(url, WHAT).await {
            Ok(response) => response,
            Err(error) if error.fault == Fault::Missing => return Ok(ItemReading::Unsettled),
            Err(error) => return Err(error),
        };
        let mut read = 0_u64;
        while let Some(piece) =
            response.chunk().await.map_err(|error| http::no_answer_error(error, WHAT))?
        {
            read += u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if read > max_bytes {
                return Ok(ItemReading::TooLarge);
            }
            write_piece(file, &piece).await?;
        }
        Ok(ItemReading::Whole)
    }

    async fn mark_item(&mut self, item: &ArrivedItem, mark: ItemMark) -> Result<()> {
        let what = "the mark of a mail";
        let marked = match (self.config.mark, mark) {
            (InboxMark::Move, _) => {
                let folders = self.folders().await?;
                let target = if mark == ItemMark::Done { &folders.done } else { &folders.failed };
                let body = json!({"destinationId": target});
                let url = self.calls.url(&["messages", &item.label, "move"], &[]);
                self.calls.post_json(url, &body, what).await
            }
            (_, mark) => {
                let body = match mark {
                    ItemMark::Done => json!({"isRead": true}),
                    ItemMark::Failed => {
                        json!({"isRead": true, "flag": {"flagStatus": "flagged"}})
                    }
                };
                let url = self.calls.url(&["messages", &item.label], &[]);
                self.calls.patch_json(url, &body, what).await
            }
        };
        match marked {
            // Gone, so there is nothing to mark.
            Err(error) if error.fault == Fault::Missing => Ok(()),
            marked => marked.map(drop),
        }
    }

    async fn wait_for_items(&mut self, longest: Duration) -> Result<()> {
        tokio::time::sleep(longest).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
