//! A real browser, driven by `WebDriver` (JSON over HTTP): Debian's Chromium and its driver. Every
//! key and click is counted.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::{SOON, until};

/// How `WebDriver` writes a reference to an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys by the names that people have for them, as `WebDriver` writes them.
const KEYS: [(&str, char); 9] = [
    ("Tab", '\u{e004}'),
    ("Enter", '\u{e007}'),
    ("Shift", '\u{e008}'),
    ("Ctrl", '\u{e009}'),
    ("Alt", '\u{e00a}'),
    ("Space", ' '),
    ("Up", '\u{e013}'),
    ("Down", '\u{e015}'),
    ("Backspace", '\u{e003}'),
];

/// A screen in CSS pixels.
#[derive(Clone, Copy)]
pub(crate) struct ScreenSize {
    width: u32,
    height: u32,
}

impl ScreenSize {
    pub(crate) const DESK: Self = Self { width: 1280, height: 1000 };
    pub(crate) const PHONE: Self = Self { width: 390, height: 844 };
}

/// An action of the pointer: it goes to a place of the window.
fn move_pointer(place: &Value) -> Value {
    json!({ "type": "pointerMove", "duration": 0, "origin": "viewport", "x": place[0], "y": place[1] })
}

/// An action of the pointer's first button.
fn press_button(kind: &str) -> Value {
    json!({ "type": kind, "button": 0 })
}

/// One window of one person; closed when dropped.
pub(crate) struct DrivenBrowser {
    driver: Child,
    port: u16,
    session: String,
    client: Client,
    strokes: AtomicUsize,
    clicks: AtomicUsize,
    /// The browser's files, and the driver's; dropped last.
    _folder: TempDir,
}

impl Drop for DrivenBrowser {
    fn drop(&mut self) {
        // The browser ends with its session, not with its driver.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let session = &self.session;
            let ask = format!(
                "DELETE /session/{session} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            );
            drop(stream.set_read_timeout(Some(Duration::from_secs(10))));
            drop(stream.write_all(ask.as_bytes()));
            drop(stream.read(&mut [0; 64]));
        }
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}

/// The driver, whose files and whose browser's are in `folder`, and the port that it chose.
fn start_driver(folder: &Path) -> (Child, u16) {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("chromedriver does not start ({error}): run `scripts/setup.sh test`")
        });
    let mut said = BufReader::new(driver.stdout.take().unwrap());
    let port = said.by_ref().lines().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.split_once("started successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    // A writer to a closed pipe is killed.
    driver.stdout = Some(said.into_inner());
    (driver, port.unwrap())
}

impl DrivenBrowser {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (driver, port) = start_driver(folder.path());
        let mut browser = Self {
            driver,
            port,
            session: String::new(),
            client: Client::builder().build().unwrap(),
            strokes: AtomicUsize::new(0),
            clicks: AtomicUsize::new(0),
            _folder: folder,
        };
        let options = json!({ "args": [
            "--headless=new",
            // Root may start it in no other way.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--window-size=1280,1000",
        ] });
        // Rules over a large page take half a minute beside other builds.
        let wanted = json!({ "browserName": "chrome", "goog:chromeOptions": options,
            "timeouts": { "script": 300_000 },
            "goog:loggingPrefs": { "performance": "ALL", "browser": "ALL" } });
        let session = json!({ "capabilities": { "alwaysMatch": wanted } });
        let opened = browser.send(Method::POST, "/session", session).await;
        browser.session = opened["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Value {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        let request = self.client.request(method.clone(), url);
        let request = if method == Method::GET { request } else { request.json(&body) };
        let answer = request.send().await.unwrap();
        let (status, mut told) = (answer.status(), answer.json::<Value>().await.unwrap());
        assert!(status.is_success(), "{path}: {told}");
        told["value"].take()
    }

    async fn ask(&self, path: &str, body: Value) -> Value {
        self.send(Method::POST, &format!("/session/{}{path}", self.session), body).await
    }

    async fn look(&self, path: &str) -> Value {
        self.send(Method::GET, &format!("/session/{}{path}", self.session), Value::Null).await
    }

    /// Runs a script in each page that is opened from now on, before the page's own.
    pub(crate) async fn run_before_pages(&self, script: &str) {
        let params = json!({ "source": script });
        let add = json!({ "cmd": "Page.addScriptToEvaluateOnNewDocument", "params": params });
        self.ask("/goog/cdp/execute", add).await;
    }

    /// Opens an address.
    pub(crate) async fn open(&self, url: &str) {
        self.ask("/url", json!({ "url": url })).await;
    }

    /// Where it is.
    pub(crate) async fn url(&self) -> String {
        self.look("/url").await.as_str().unwrap().to_owned()
    }

    /// The result of a function's body on the page.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.ask("/execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// The same of a body that calls its last argument when it is done.
    pub(crate) async fn run_until_done(&self, script: &str) -> Value {
        self.ask("/execute/async", json!({ "script": script, "args": [] })).await
    }

    /// All text that a person sees.
    pub(crate) async fn text(&self) -> String {
        self.run("return document.body.innerText").await.as_str().unwrap().to_owned()
    }

    /// A field's value.
    pub(crate) async fn value(&self, css: &str) -> String {
        let script = format!("return document.querySelector({}).value", json!(css));
        self.run(&script).await.as_str().unwrap().to_owned()
    }

    /// Id and name of what has the focus.
    pub(crate) async fn focus(&self) -> String {
        let script = "const it = document.activeElement; return it.id || it.name || it.tagName";
        self.run(script).await.as_str().unwrap().to_owned()
    }

    /// Waits until the address has this in it, and the page is there.
    pub(crate) async fn until_at(&self, part: &str) {
        until(SOON, || async {
            self.url().await.contains(part)
                && self.run("return document.readyState").await == "complete"
        })
        .await;
    }

    /// Clicks on the first element that a selector finds.
    pub(crate) async fn click(&self, css: &str) {
        let found = self.ask("/element", json!({ "using": "css selector", "value": css })).await;
        let id = found[ELEMENT].as_str().unwrap();
        self.ask(&format!("/element/{id}/click"), json!({})).await;
        self.clicks.fetch_add(1, Ordering::Relaxed);
    }

    /// Presses the mouse on one place of what matches and releases it on another, as shares of its
    /// width and height. Pages are scrolled in their frame to bring both into sight: by so many
    /// pixels.
    pub(crate) async fn drag(&self, css: &str, from: (f64, f64), to: (f64, f64)) -> f64 {
        let script = format!(
            "const it = document.querySelector({}), frame = it.closest('.sheets');
             const places = () => {{
                 const area = it.getBoundingClientRect();
                 return [[{}, {}], [{}, {}]].map(([x, y]) =>
                     [Math.round(area.left + x * area.width), Math.round(area.top + y * area.height)]);
             }};
             const [seen, [first, last]] = [frame.getBoundingClientRect(), places()];
             const before = frame.scrollTop;
             if (last[1] > seen.bottom - 20) frame.scrollBy(0, last[1] - seen.bottom + 40);
             if (first[1] < seen.top + 20) frame.scrollBy(0, first[1] - seen.top - 40);
             return [...places(), Math.abs(frame.scrollTop - before)]",
            json!(css),
            from.0,
            from.1,
            to.0,
            to.1
        );
        let places = self.run(&script).await;
        let mouse = json!({ "type": "pointer", "id": "mouse",
            "parameters": { "pointerType": "mouse" },
            "actions": [move_pointer(&places[0]), press_button("pointerDown"),
                move_pointer(&places[1]), press_button("pointerUp")] });
        self.ask("/actions", json!({ "actions": [mouse] })).await;
        self.clicks.fetch_add(1, Ordering::Relaxed);
        places[2].as_f64().unwrap()
    }

    /// Presses keys together, e.g. `Alt+Down`, and lets them go.
    pub(crate) async fn press(&self, chord: &str) {
        let code = |name: &str| {
            let named = KEYS.iter().find(|(known, _)| *known == name).map(|(_, code)| *code);
            named.unwrap_or_else(|| name.chars().next().unwrap())
        };
        let codes: Vec<char> = chord.split('+').map(code).collect();
        let down = codes.iter().map(|code| json!({ "type": "keyDown", "value": code }));
        let up = codes.iter().rev().map(|code| json!({ "type": "keyUp", "value": code }));
        self.keys(down.chain(up).collect(), codes.len()).await;
    }

    /// Types a text where the focus is.
    pub(crate) async fn write(&self, text: &str) {
        let strokes = text.chars().flat_map(|sign| {
            ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": sign }))
        });
        self.keys(strokes.collect(), text.chars().count()).await;
    }

    async fn keys(&self, strokes: Vec<Value>, count: usize) {
        let keyboard = json!({ "type": "key", "id": "keyboard", "actions": strokes });
        self.ask("/actions", json!({ "actions": [keyboard] })).await;
        self.strokes.fetch_add(count, Ordering::Relaxed);
    }

    /// Keys pressed and clicks made since this was asked last.
    pub(crate) fn take_counts(&self) -> (usize, usize) {
        (self.strokes.swap(0, Ordering::Relaxed), self.clicks.swap(0, Ordering::Relaxed))
    }

    /// Shows pages as those see them who want `scheme`, `light` or `dark`, on this screen.
    pub(crate) async fn show_as(&self, scheme: &str, screen: ScreenSize) {
        let ScreenSize { width, height } = screen;
        let wanted = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        let emulate = json!({ "cmd": "Emulation.setEmulatedMedia", "params": wanted });
        self.ask("/goog/cdp/execute", emulate).await;
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        let resize = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size });
        self.ask("/goog/cdp/execute", resize).await;
    }

    /// Keeps a picture of the window as `target/screens/NAME.png`.
    pub(crate) async fn keep_screen(&self, name: &str) {
        use base64::Engine as _;
        let picture = self.look("/screenshot").await;
        let bytes = base64::engine::general_purpose::STANDARD.decode(picture.as_str().unwrap());
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/screens");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes.unwrap()).unwrap();
    }

    /// Signs out by losing the session.
    pub(crate) async fn forget_cookies(&self) {
        let path = format!("/session/{}/cookie", self.session);
        self.send(Method::DELETE, &path, json!({})).await;
    }

    /// Addresses that were asked for since this was asked last.
    pub(crate) async fn take_requests(&self) -> Vec<String> {
        let lines = self.ask("/se/log", json!({ "type": "performance" })).await;
        let request = |line: &Value| {
            let told: Value = serde_json::from_str(line["message"].as_str()?).ok()?;
            let is_request = told["message"]["method"] == "Network.requestWillBeSent";
            let url = told["message"]["params"]["request"]["url"].as_str()?;
            is_request.then(|| url.to_owned())
        };
        lines.as_array().unwrap().iter().filter_map(request).collect()
    }

    /// The browser's complaints since the last call: failed scripts, and violations of the
    /// Content-Security-Policy; ignores answers with another status than 200.
    pub(crate) async fn take_complaints(&self) -> Vec<String> {
        let lines = self.ask("/se/log", json!({ "type": "browser" })).await;
        let text = |line: &Value| line["message"].as_str().unwrap_or_default().to_owned();
        // Advice to authors of pages is no complaint.
        let severe = lines.as_array().unwrap().iter().filter(|line| line["level"] == "SEVERE");
        severe
            .map(text)
            .filter(|line| !line.contains("the server responded with a status of"))
            .collect()
    }
}
