//! A running console over a database of its own, and browsers of several people.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::net::SocketAddr;
use std::sync::Arc;

use docmill::app::App;
use docmill_console::{ConsolePages, ConsoleParts, UploadLimits};
use docmill_core::config::{
    Config, ConfinementMode, CpuConfig, OcrConfig, OcrEngineChoice, ProcessSharing, QueueBackend,
    StoreBackend, WebRole, WebToken,
};
use docmill_core::model::digest::encode_hex;
use docmill_core::model::{DocumentId, IngestionId, Priority};
use docmill_documents::sandbox::{ProcessPool, ProcessProgram, ProcessSetup};
use docmill_gate::kinds::KindSet;
use docmill_ledger::db::Db;
use docmill_operations::page_drawing::PageDrawer;
use docmill_pipeline::shutdown::Shutdown;
use docmill_storage::ObjectStore;
use reqwest::header::{HeaderMap, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use sha2::Digest as _;
use sqlx::{AssertSqlSafe, Executor as _};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::page_processes::{docmill, recipe};
use crate::support::postgres::TestDatabase;

/// Everybody who has a token: name (the token is `token of NAME`), role, tenant.
const PEOPLE: [(&str, WebRole, &str); 8] = [
    ("producer", WebRole::Producer, "acme"),
    ("viewer", WebRole::Viewer, ""),
    ("ann", WebRole::Reviewer, ""),
    ("bob", WebRole::Reviewer, ""),
    ("operator", WebRole::Operator, ""),
    ("admin", WebRole::Administrator, ""),
    ("acme", WebRole::Operator, "acme"),
    ("rival", WebRole::Operator, "rival"),
];

/// The pages, served until dropped.
pub(super) struct WebConsole {
    pub(super) database: TestDatabase,
    pub(super) address: SocketAddr,
    pub(super) base: String,
    pub(super) folder: TempDir,
    config: Config,
    serving: JoinHandle<()>,
}

impl Drop for WebConsole {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct PageAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl PageAnswer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    pub(super) fn location(&self) -> &str {
        self.header(LOCATION.as_str())
    }
}

pub(super) async fn send(request: RequestBuilder) -> PageAnswer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    PageAnswer { status, headers, body: response.text().await.unwrap() }
}

/// All fields of an invoice.
pub(super) fn invoice(total: f64) -> Value {
    json!({
        "supplier_name": "Acme", "supplier_address": null, "supplier_vat_id": null,
        "invoice_number": "7", "invoice_date": null, "due_date": null, "currency": "EUR",
        "line_items": [
            { "description": "Screws", "quantity": 2, "unit_price": 5, "amount": 10 },
            { "description": "Nails", "quantity": null, "unit_price": null, "amount": 3 }
        ],
        "subtotal": null, "vat_amount": null, "total": total
    })
}

/// The token of a visitor.
pub(super) fn token_of(name: &str) -> String {
    format!("token of {name}")
}

pub(super) fn tokens() -> Vec<WebToken> {
    let token = |(name, role, tenant): (&str, WebRole, &str)| WebToken {
        name: name.to_owned(),
        sha256: encode_hex(sha2::Sha256::digest(token_of(name))),
        role,
        tenant: tenant.to_owned(),
        highest_priority: Priority::Critical,
    };
    PEOPLE.into_iter().map(token).collect()
}

/// Pages over `database`, with queue and store in `folder`, on a port of their own choice.
pub(super) fn console_config(database: &TestDatabase, folder: &std::path::Path) -> Config {
    let mut config = Config { database: database.config(), ..Config::default() };
    config.queue.backend = QueueBackend::Folder;
    config.queue.path = folder.join("queue");
    config.store.backend = StoreBackend::Folder;
    config.store.path = folder.join("store");
    config.web.address = ([127, 0, 0, 1], 0).into();
    config.cpu.program = docmill();
    config
}

/// Draws pages of what lies in this store.
fn draw_from(store: &Arc<dyn ObjectStore>, config: &Config) -> Arc<PageDrawer> {
    let ocr = OcrConfig { engine: OcrEngineChoice::Tesseract, ..config.ocr.clone() };
    let (confine, shared) = (ConfinementMode::Off, ProcessSharing::None);
    let cpu = CpuConfig { confine, shared, ..config.cpu.clone() };
    let setup = ProcessSetup::new(&cpu, &config.limits, &ocr, recipe(), 1);
    let processes = ProcessPool::new(ProcessProgram::Binary(docmill()), setup, 1);
    let largest = config.limits.document_bytes.0;
    Arc::new(PageDrawer::new(Arc::clone(store), config.store.clone(), largest, processes))
}

/// Pages by these settings: their address, and their task.
async fn serve(config: &Config) -> (SocketAddr, JoinHandle<()>) {
    let console = Box::pin(App::new(config.clone()).open_console()).await.unwrap();
    let address = console.address().unwrap();
    (address, tokio::spawn(console.serve(Shutdown::default())))
}

impl WebConsole {
    /// With the tokens of everybody.
    pub(super) async fn open() -> Self {
        Self::open_with(|config| config.web.tokens = tokens()).await
    }

    /// The pages log in to Postgres as a documented deployment's do.
    pub(super) async fn open_with(change: impl FnOnce(&mut Config)) -> Self {
        Self::open_as("docmill_operator", change).await
    }

    /// The pages log in to Postgres as somebody who has this role and no other.
    pub(super) async fn open_in_role(role: &str) -> Self {
        Self::open_as(role, |config| config.web.tokens = tokens()).await
    }

    async fn open_as(role: &str, change: impl FnOnce(&mut Config)) -> Self {
        let database = TestDatabase::create().await;
        let url = database.login(role).await;
        let in_role = |config: &mut Config| {
            config.database.url = url.into();
            change(config);
        };
        Self::open_over(database, in_role).await
    }

    async fn open_over(database: TestDatabase, change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = console_config(&database, folder.path());
        std::fs::create_dir(&config.queue.path).unwrap();
        std::fs::create_dir(&config.store.path).unwrap();
        change(&mut config);
        let base = config.web.base_path.clone();
        let (address, serving) = serve(&config).await;
        Self { database, address, base, folder, config, serving }
    }

    /// Ends the pages as a deploy does, and serves them anew from other state of a process.
    pub(super) async fn restart(&mut self, change: impl FnOnce(&mut Config)) {
        self.serving.abort();
        change(&mut self.config);
        (self.address, self.serving) = serve(&self.config).await;
    }

    /// With the tokens of everybody, over a store that no settings lead to.
    pub(super) async fn open_over_store(
        store: Arc<dyn ObjectStore>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let (database, folder) = (TestDatabase::create().await, tempfile::tempdir().unwrap());
        let mut config = console_config(&database, folder.path());
        config.database.url = database.login("docmill_operator").await.into();
        std::fs::create_dir(&config.queue.path).unwrap();
        config.web.tokens = tokens();
        change(&mut config);
        let kept = config.clone();
        let parts = ConsoleParts {
            database: Db::connect(&config.database).await.unwrap(),
            queue: Box::pin(App::new(config.clone()).open_queue()).await.unwrap(),
            drawer: Some(draw_from(&store, &config)),
            store,
            kinds: KindSet::load(&config.kinds).unwrap(),
            limits: UploadLimits {
                largest: config.limits.document_bytes.0,
                destination: config.queue_destination(),
            },
            config: config.web,
            places: config.store,
            review: config.review,
            silent_errors: config.silent_errors,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = tokio::spawn(ConsolePages::new(parts).unwrap().serve(listener));
        Self { database, address, base: String::new(), folder, config: kept, serving }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{}{path}", self.address, self.base)
    }

    /// Nobody in particular.
    pub(super) fn stranger(&self) -> Browser<'_> {
        let client = Client::builder().redirect(reqwest::redirect::Policy::none());
        Browser { desk: self, client: client.build().unwrap(), cookie: None }
    }

    /// Somebody whose browser sends this cookie.
    pub(super) fn browser_with(&self, cookie: &str) -> Browser<'_> {
        Browser { cookie: Some(cookie.to_owned()), ..self.stranger() }
    }

    /// Somebody who has signed in by the form.
    pub(super) async fn browser(&self, name: &str) -> Browser<'_> {
        let mut browser = self.stranger();
        let answer = browser.post_raw("/sign-in", &format!("token=token+of+{name}")).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
        let cookie = answer.header(SET_COOKIE.as_str()).split(';').next().unwrap().to_owned();
        browser.cookie = Some(cookie);
        browser
    }

    /// A call of a program.
    pub(super) fn call(&self, method: Method, path: &str, name: &str) -> RequestBuilder {
        let url = self.url(&format!("/api/v1{path}"));
        Client::builder().build().unwrap().request(method, url).bearer_auth(token_of(name))
    }

    pub(super) async fn get(&self, path: &str, name: &str) -> PageAnswer {
        send(self.call(Method::GET, path, name)).await
    }

    pub(super) async fn execute(&self, sql: &str) {
        self.database.pool().execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    }

    pub(super) async fn scalar(&self, sql: &str) -> String {
        let sql = format!("SELECT ({sql})::text");
        let found: Option<String> =
            sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(self.database.pool()).await.unwrap();
        found.unwrap_or_default()
    }

    /// A document of this tenant whose ingestion waits.
    pub(super) async fn waiting(&self, tenant: &str, name: &str) -> (DocumentId, IngestionId) {
        let (document, ingestion) = (DocumentId::random(), IngestionId::random());
        let name = name.replace('\'', "''");
        self.execute(&format!(
            "INSERT INTO document (id, file_path, tenant, original_name, sha256)
                 VALUES ('{document}', 'documents/{document}.pdf', '{tenant}', '{name}',
                     encode(sha256('{document}'), 'hex'));
             INSERT INTO ingestion (id, document_id, tenant, kind)
                 VALUES ('{ingestion}', '{document}', '{tenant}', 'invoice')"
        ))
        .await;
        (document, ingestion)
    }

    /// Puts these bytes where the document's original lies, as those that were read.
    pub(super) async fn store_original(&self, document: DocumentId, bytes: &[u8]) {
        let path = self.folder.path().join(format!("store/documents/{document}.pdf"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        let sha256 = encode_hex(sha2::Sha256::digest(bytes));
        self.execute(&format!(
            "UPDATE document SET sha256 = '{sha256}' WHERE id = '{document}';
             UPDATE ingestion SET sha256 = '{sha256}' WHERE document_id = '{document}'"
        ))
        .await;
    }

    /// A document that a gate refused for its totals.
    pub(super) async fn refused(&self, tenant: &str, data: &Value) -> (DocumentId, IngestionId) {
        let (document, ingestion) = self.waiting(tenant, "a.pdf").await;
        let data = data.to_string().replace('\'', "''");
        self.execute(&format!(
            "UPDATE ingestion SET status = 'failed', reason = 'gate_refused',
                 completed_at = docmill_now(), valid_structured_data = false,
                 needs_human_review = true, review_reasons = ARRAY['net_and_vat_are_not_total', 'required:due_date'],
                 structured_data = '{data}', grounded =
                     '[{{\"field\": \"total\", \"page\": 2, \"confidence\": 0.5}}]'
             WHERE id = '{ingestion}'"
        ))
        .await;
        (document, ingestion)
    }
}

/// One person's browser: it keeps its cookie and follows no redirect by itself.
pub(super) struct Browser<'a> {
    desk: &'a WebConsole,
    client: Client,
    cookie: Option<String>,
}

impl Browser<'_> {
    /// The cookie of the session, with its name.
    pub(super) fn cookie(&self) -> &str {
        self.cookie.as_deref().unwrap_or_default()
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, self.desk.url(path));
        match &self.cookie {
            Some(cookie) => request.header("cookie", cookie),
            None => request,
        }
    }

    pub(super) async fn get(&self, path: &str) -> PageAnswer {
        send(self.request(Method::GET, path)).await
    }

    pub(super) async fn post_raw(&self, path: &str, form: &str) -> PageAnswer {
        send(self.post_request(path, form)).await
    }

    pub(super) fn post_request(&self, path: &str, form: &str) -> RequestBuilder {
        let kind = "application/x-www-form-urlencoded";
        self.request(Method::POST, path).header("content-type", kind).body(form.to_owned())
    }

    /// Loads a page, fills some inputs of its form to `action`, and sends it as a browser does.
    pub(super) async fn submit(
        &self,
        page: &str,
        action: &str,
        filled: &[(&str, &str)],
    ) -> PageAnswer {
        let shown = self.get(page).await;
        assert_eq!(shown.status, StatusCode::OK, "{page}: {shown:?}");
        self.send_form(&shown.body, action, filled).await
    }

    /// The same for a page that is there already.
    pub(super) async fn send_form(
        &self,
        page: &str,
        action: &str,
        filled: &[(&str, &str)],
    ) -> PageAnswer {
        let form = filled_form(page, &format!("{}{action}", self.desk.base), filled);
        self.post_raw(action, &form).await
    }
}

/// The first form to this address as a browser sends it, with these inputs filled.
pub(super) fn filled_form(page: &str, action: &str, filled: &[(&str, &str)]) -> String {
    let mut fields = form_fields(page, &action.replace('&', "&amp;"));
    for (name, value) in filled {
        fields.retain(|(known, _)| known != name);
        fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    let written = fields.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value)));
    written.collect::<Vec<_>>().join("&")
}

fn escape(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Names and values of the inputs of the first form to this address.
pub(super) fn form_fields(page: &str, action: &str) -> Vec<(String, String)> {
    let start = format!("action=\"{action}\"");
    let (_, form) =
        page.split_once(&start).unwrap_or_else(|| panic!("no form to {action}: {page}"));
    let form = form.split("</form>").next().unwrap();
    let inputs = form.split("<input ").skip(1).map(|tag| tag.split('>').next().unwrap());
    let inputs = inputs.filter(|tag| !tag.contains("type=\"checkbox\""));
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!("{name}=\""))?;
        Some(unescape(rest.split('"').next().unwrap()))
    };
    let input = |tag: &str| {
        Some((
            attribute(tag, " name").or_else(|| attribute(tag, "name"))?,
            attribute(tag, "value").unwrap_or_default(),
        ))
    };
    let mut fields: Vec<(String, String)> = inputs.filter_map(input).collect();
    for area in form.split("<textarea ").skip(1) {
        let (tag, rest) = area.split_once('>').unwrap();
        let text = rest.split("</textarea>").next().unwrap();
        let text = text.strip_prefix('\n').unwrap_or(text);
        fields.push((attribute(tag, "name").unwrap(), unescape(text)));
    }
    fields
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
