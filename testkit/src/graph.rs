//! Microsoft Graph v1.0 as far as mail is concerned: folders, messages, MIME content, marks, moves.
//!
//! Its contract is the published one: `$top` of 1 to 1000, pages by `@odata.nextLink`, 401 without a
//! valid token, 429 with `Retry-After`, ids that change with a move unless `Prefer:
//! IdType="ImmutableId"` is sent, 201 for what was made, `ErrorItemNotFound` for what is not there. A
//! query option or a field that it does not have is refused.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};

use crate::served::{Calls, Served, lock};

/// The token that is taken.
pub const TOKEN: &str = "entra-of-client-1";
/// The user whose mailbox there is.
pub const USER: &str = "invoices@example.com";

/// The fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFault {
    /// 429 with `Retry-After` in seconds.
    Throttled(u64),
    /// This status.
    Status(u16),
    /// No answer at all.
    Silence,
    /// The request is carried out, and no answer comes.
    SilenceAfter,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    number: usize,
    /// Id of its folder.
    pub folder: String,
    /// Whether it counts as read.
    pub is_read: bool,
    /// Whether it is flagged.
    pub is_flagged: bool,
    bytes: Vec<u8>,
}

impl StoredMessage {
    fn id(&self, is_immutable: bool) -> String {
        match is_immutable {
            true => format!("AAkALgAA-{}=", self.number),
            false => format!("AAMkAGVm-{}-{}=", self.folder, self.number),
        }
    }
}

#[derive(Default)]
struct Mailbox {
    /// Ids and names.
    folders: Vec<(String, String)>,
    messages: Vec<StoredMessage>,
    faults: Vec<(String, GraphFault, usize)>,
    readings: usize,
    rewrites: bool,
}

struct GraphState {
    mailbox: Mutex<Mailbox>,
    calls: Calls<String>,
    origin: Mutex<String>,
}

/// A running server; it stops when this is dropped.
pub struct Server {
    served: Served,
    desk: Arc<GraphState>,
}

impl Server {
    /// Starts on a free port of this machine, with an empty inbox.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> io::Result<Self> {
        let mailbox = Mailbox {
            folders: vec![("inbox".to_owned(), "Inbox".to_owned())],
            ..Mailbox::default()
        };
        let desk = Arc::new(GraphState {
            mailbox: Mutex::new(mailbox),
            calls: Calls::default(),
            origin: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1.0/users/{user}/mailFolders", get(list_folders).post(make_folder))
            .route("/v1.0/users/{user}/mailFolders/{folder}", get(show_folder))
            .route("/v1.0/users/{user}/mailFolders/{folder}/messages", get(list_messages))
            .route("/v1.0/users/{user}/messages/{id}", axum::routing::patch(change_message))
            .route("/v1.0/users/{user}/messages/{id}/$value", get(read_message))
            .route("/v1.0/users/{user}/messages/{id}/move", post(move_message))
            .layer(middleware::from_fn_with_state(Arc::clone(&desk), guard))
            .with_state(Arc::clone(&desk));
        let served = Served::start(router).await?;
        *lock(&desk.origin) = served.endpoint();
        Ok(Self { served, desk })
    }

    /// `http://ADDRESS/v1.0`.
    pub fn endpoint(&self) -> String {
        format!("{}/v1.0", self.served.endpoint())
    }

    /// Delivers a mail to the inbox.
    pub fn deliver(&self, bytes: impl Into<Vec<u8>>) {
        let mut mailbox = lock(&self.desk.mailbox);
        let number = mailbox.messages.len();
        mailbox.messages.push(StoredMessage {
            number,
            folder: "inbox".to_owned(),
            is_read: false,
            is_flagged: false,
            bytes: bytes.into(),
        });
    }

    /// From now on the MIME of a message differs from one reading to the next.
    pub fn rewrite_content(&self) {
        lock(&self.desk.mailbox).rewrites = true;
    }

    /// All messages in the order of their delivery.
    pub fn messages(&self) -> Vec<StoredMessage> {
        lock(&self.desk.mailbox).messages.clone()
    }

    /// The number of messages in the folder of this name.
    pub fn count_in(&self, name: &str) -> usize {
        let mailbox = lock(&self.desk.mailbox);
        let folder = mailbox.folders.iter().find(|(_, known)| known == name).map(|(id, _)| id);
        mailbox.messages.iter().filter(|message| Some(&message.folder) == folder).count()
    }

    /// The next `times` requests whose method and path contain the text fail like this.
    pub fn fail(&self, text: &str, fault: GraphFault, times: usize) {
        lock(&self.desk.mailbox).faults.push((text.to_owned(), fault, times));
    }

    /// Methods and paths so far, in order.
    pub fn calls(&self) -> Vec<String> {
        self.desk.calls.all()
    }

    /// Waits until requests that contain the text have come `count` times; `false` if they have not
    /// within `deadline`.
    pub async fn received(&self, text: &str, count: usize, deadline: Duration) -> bool {
        let waiting = async {
            loop {
                let all = self.desk.calls.all();
                if all.iter().filter(|call| call.contains(text)).count() >= count {
                    return;
                }
                self.desk.calls.arrived(all.len() + 1, deadline).await;
            }
        };
        tokio::time::timeout(deadline, waiting).await.is_ok()
    }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response
}

fn refused(status: u16, code: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let text = "The text of a refusal may quote a mail.";
    answer(status, &json!({"error": {"code": code, "message": text}}))
}

/// Checks tokens and users, notes the call, and answers with a planned fault.
async fn guard(State(desk): State<Arc<GraphState>>, request: Request, next: Next) -> Response {
    let call = format!("{} {}", request.method(), request.uri());
    let fault = take_fault(&mut lock(&desk.mailbox), &call);
    let bearer = request.headers().get("authorization").and_then(|value| value.to_str().ok());
    let is_known = bearer == Some(&format!("Bearer {TOKEN}"));
    let user = request.uri().path().split('/').nth(3).unwrap_or_default().replace("%40", "@");
    desk.calls.push(call);
    match fault {
        Some(GraphFault::Throttled(seconds)) => {
            let mut response = refused(429, "TooManyRequests");
            response.headers_mut().insert("retry-after", seconds.into());
            return response;
        }
        Some(GraphFault::Status(status)) => return refused(status, "UnknownError"),
        Some(GraphFault::Silence) => return std::future::pending().await,
        Some(GraphFault::SilenceAfter) => {
            drop(next.run(request).await);
            return std::future::pending().await;
        }
        None => {}
    }
    match (is_known, user == USER) {
        (false, _) => refused(401, "InvalidAuthenticationToken"),
        (true, false) => refused(404, "ErrorInvalidUser"),
        (true, true) => next.run(request).await,
    }
}

fn take_fault(mailbox: &mut Mailbox, call: &str) -> Option<GraphFault> {
    let mut planned = mailbox.faults.iter_mut();
    let (_, fault, times) = planned.find(|(text, _, times)| *times > 0 && call.contains(text))?;
    *times -= 1;
    Some(*fault)
}

/// The options of a query; `None` if one is not among those that are known here.
fn query_of(uri: &Uri, known: &[&str]) -> Option<Vec<(String, String)>> {
    let query = uri.query().unwrap_or_default();
    let all: Vec<_> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    all.iter().all(|(name, _)| known.contains(&name.as_str())).then_some(all)
}

fn option<'a>(all: &'a [(String, String)], name: &str) -> Option<&'a str> {
    all.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn wants_immutable(headers: &HeaderMap) -> bool {
    headers.get("prefer").is_some_and(|value| value == "IdType=\"ImmutableId\"")
}

async fn list_folders(State(desk): State<Arc<GraphState>>, uri: Uri) -> Response {
    let Some(query) = query_of(&uri, &["$filter", "$select", "$top"]) else {
        return refused(400, "BadRequest");
    };
    let filter = option(&query, "$filter").unwrap_or_default();
    let name = filter.strip_prefix("displayName eq '").and_then(|rest| rest.strip_suffix('\''));
    let Some(name) = name.map(|name| name.replace("''", "'")) else {
        return refused(400, "ErrorInvalidUrlQueryFilter");
    };
    let mailbox = lock(&desk.mailbox);
    let found = mailbox.folders.iter().filter(|(_, known)| *known == name);
    let found: Vec<_> = found.map(|(id, _)| json!({"id": id})).collect();
    answer(StatusCode::OK, &json!({"value": found}))
}

async fn make_folder(State(desk): State<Arc<GraphState>>, body: String) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let Some(name) = body.get("displayName").and_then(Value::as_str) else {
        return refused(400, "ErrorInvalidRequest");
    };
    let mut mailbox = lock(&desk.mailbox);
    if mailbox.folders.iter().any(|(_, known)| known == name) {
        return refused(409, "ErrorFolderExists");
    }
    let id = format!("AQMkADYA-{}", mailbox.folders.len());
    mailbox.folders.push((id.clone(), name.to_owned()));
    answer(StatusCode::CREATED, &json!({"id": id, "displayName": name}))
}

async fn show_folder(
    State(desk): State<Arc<GraphState>>,
    Path((_, folder)): Path<(String, String)>,
) -> Response {
    match lock(&desk.mailbox).folders.iter().any(|(id, _)| *id == folder) {
        true => answer(StatusCode::OK, &json!({"id": folder})),
        false => refused(404, "ErrorItemNotFound"),
    }
}

async fn list_messages(
    State(desk): State<Arc<GraphState>>,
    Path((user, folder)): Path<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let Some(query) = query_of(&uri, &["$filter", "$select", "$top", "$skip"]) else {
        return refused(400, "BadRequest");
    };
    let number = |name, usual| option(&query, name).map_or(Some(usual), |text| text.parse().ok());
    let (Some(top @ 1..=1000), Some(skip)) = (number("$top", 10_usize), number("$skip", 0)) else {
        return refused(400, "ErrorInvalidUrlQuery");
    };
    let unread_only = match option(&query, "$filter") {
        None => false,
        Some("isRead eq false") => true,
        Some(_) => return refused(400, "ErrorInvalidUrlQueryFilter"),
    };
    let mailbox = lock(&desk.mailbox);
    if !mailbox.folders.iter().any(|(id, _)| *id == folder) {
        return refused(404, "ErrorItemNotFound");
    }
    let is_immutable = wants_immutable(&headers);
    let found = mailbox
        .messages
        .iter()
        .filter(|message| message.folder == folder && !(unread_only && message.is_read));
    let found: Vec<_> = found.map(|message| json!({"id": message.id(is_immutable)})).collect();
    let page: Vec<_> = found.iter().skip(skip).take(top).collect();
    let mut body = json!({"value": page});
    if skip + top < found.len()
        && let Some(fields) = body.as_object_mut()
    {
        let mut next: Vec<_> = query.iter().filter(|(name, _)| name != "$skip").cloned().collect();
        next.push(("$skip".to_owned(), (skip + top).to_string()));
        let next = form_urlencoded::Serializer::new(String::new()).extend_pairs(next).finish();
        let origin = lock(&desk.origin).clone();
        let link = format!("{origin}/v1.0/users/{user}/mailFolders/{folder}/messages?{next}");
        fields.insert("@odata.nextLink".to_owned(), link.into());
    }
    answer(StatusCode::OK, &body)
}

async fn read_message(
    State(desk): State<Arc<GraphState>>,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let mut mailbox = lock(&desk.mailbox);
    mailbox.readings += 1;
    let prefix = match mailbox.rewrites {
        true => format!("X-Reading: {}\r\n", mailbox.readings).into_bytes(),
        false => Vec::new(),
    };
    let is_immutable = wants_immutable(&headers);
    match mailbox.messages.iter().find(|message| message.id(is_immutable) == id) {
        Some(message) => Response::new(Body::from([prefix, message.bytes.clone()].concat())),
        None => refused(404, "ErrorItemNotFound"),
    }
}

async fn change_message(
    State(desk): State<Arc<GraphState>>,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let is_immutable = wants_immutable(&headers);
    let mut mailbox = lock(&desk.mailbox);
    let mut messages = mailbox.messages.iter_mut();
    let Some(message) = messages.find(|message| message.id(is_immutable) == id) else {
        return refused(404, "ErrorItemNotFound");
    };
    for (field, value) in body.as_object().into_iter().flatten() {
        match (field.as_str(), value) {
            ("isRead", Value::Bool(is_read)) => message.is_read = *is_read,
            ("flag", flag) if flag.get("flagStatus") == Some(&json!("flagged")) => {
                message.is_flagged = true;
            }
            _ => return refused(400, "ErrorInvalidRequest"),
        }
    }
    answer(StatusCode::OK, &json!({"id": id}))
}

async fn move_message(
    State(desk): State<Arc<GraphState>>,
    Path((_, id)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let target = body.get("destinationId").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_immutable = wants_immutable(&headers);
    let mut mailbox = lock(&desk.mailbox);
    let is_known = mailbox.folders.iter().any(|(id, _)| *id == target);
    let mut messages = mailbox.messages.iter_mut();
    match messages.find(|message| message.id(is_immutable) == id) {
        Some(message) if is_known => {
            message.folder = target;
            answer(StatusCode::CREATED, &json!({"id": message.id(is_immutable)}))
        }
        _ => refused(404, "ErrorItemNotFound"),
    }
}
