//! The keystroke model of a person at a page: keys, pointings, thoughts and notches of the wheel, in
//! seconds of a practised user; and the most that a task may cost.
//!
//! A click is a pointing and a key; a drag has two pointings. A thought comes before each click,
//! drag, text and chord, but for a key that ends what was begun. Notches are what brings a thing
//! into the window. Seconds of the machine are not counted.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::PathBuf;

use crate::support::browser::DrivenBrowser;

/// Seconds of each operator.
pub(super) const KEY_S: f64 = 0.28;
const POINTING_S: f64 = 1.1;
const THOUGHT_S: f64 = 1.35;
const NOTCH_S: f64 = 0.1;
/// A click on a thing that is seen without scrolling; less than with a notch.
pub(super) const ONE_CLICK_S: f64 = THOUGHT_S + POINTING_S + KEY_S + NOTCH_S / 2.0;
/// Pixels that a notch of the wheel scrolls.
const NOTCH_PIXELS: f64 = 100.0;

/// The effort of a task for a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct KeystrokeTally {
    keys: usize,
    pointings: usize,
    thoughts: usize,
    notches: usize,
}

impl KeystrokeTally {
    fn seconds(self) -> f64 {
        [
            (self.keys, KEY_S),
            (self.pointings, POINTING_S),
            (self.thoughts, THOUGHT_S),
            (self.notches, NOTCH_S),
        ]
        .into_iter()
        .map(|(count, each)| f64::from(u32::try_from(count).unwrap()) * each)
        .sum()
    }
}

/// One task of a person at a browser.
pub(super) struct TaskWalk<'a> {
    browser: &'a DrivenBrowser,
    name: &'static str,
    max_seconds: f64,
    tally: KeystrokeTally,
}

impl<'a> TaskWalk<'a> {
    /// The task of this number and name, which may cost so many seconds.
    pub(super) fn begin(browser: &'a DrivenBrowser, name: &'static str, max_seconds: f64) -> Self {
        Self { browser, name, max_seconds, tally: KeystrokeTally::default() }
    }

    /// Reads what is seen without moving: a thought. The words have to be in the window.
    pub(super) async fn read(&mut self, css: &str, words: &str) {
        let script = format!(
            "return [...document.querySelectorAll(\"{css}\")].some((it) => {{
                 const area = it.getBoundingClientRect();
                 return area.height > 0 && area.top >= 0 && area.bottom <= innerHeight
                     && it.innerText.includes(\"{words}\");
             }})"
        );
        let is_seen = self.browser.run(&script).await == true;
        assert!(is_seen, "{}: {css} with {words:?} is not seen", self.name);
        self.tally.thoughts += 1;
    }

    /// Notches that bring the middle of what matches into the window.
    async fn scroll_to(&mut self, css: &str) {
        let script = format!(
            "const it = document.querySelector(\"{css}\"), before = it.getBoundingClientRect().top;
             it.scrollIntoView({{ block: 'nearest' }});
             return Math.abs(it.getBoundingClientRect().top - before)"
        );
        let moved = self.browser.run(&script).await.as_f64().unwrap();
        self.count_notches(moved);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few")]
    fn count_notches(&mut self, pixels: f64) {
        self.tally.notches += (pixels / NOTCH_PIXELS).ceil() as usize;
    }

    pub(super) async fn click(&mut self, css: &str) {
        self.scroll_to(css).await;
        self.browser.click(css).await;
        self.tally.thoughts += 1;
        self.tally.pointings += 1;
        self.tally.keys += 1;
    }

    /// Presses the mouse on one place and releases it on another, as shares of what matches.
    pub(super) async fn drag(&mut self, css: &str, from: (f64, f64), to: (f64, f64)) {
        let moved = self.browser.drag(css, from, to).await;
        self.count_notches(moved);
        self.tally.thoughts += 1;
        self.tally.pointings += 2;
        self.tally.keys += 1;
    }

    /// Clicks on one place of what matches.
    pub(super) async fn click_at(&mut self, css: &str, place: (f64, f64)) {
        let moved = self.browser.drag(css, place, place).await;
        self.count_notches(moved);
        self.tally.thoughts += 1;
        self.tally.pointings += 1;
        self.tally.keys += 1;
    }

    pub(super) async fn write(&mut self, text: &str) {
        self.browser.write(text).await;
        self.tally.thoughts += 1;
        self.tally.keys += text.chars().count();
    }

    pub(super) async fn press(&mut self, chord: &str) {
        self.tally.thoughts += 1;
        self.end_with(chord).await;
    }

    /// A key that ends what was begun: no thought.
    pub(super) async fn end_with(&mut self, chord: &str) {
        self.browser.press(chord).await;
        self.tally.keys += chord.split('+').count();
    }

    /// Opens a list and chooses the option that begins with these letters: two clicks and a thought.
    pub(super) async fn choose(&mut self, css: &str, letters: &str) {
        self.scroll_to(css).await;
        self.browser.run(&format!("document.querySelector(\"{css}\").focus()")).await;
        self.browser.write(letters).await;
        self.tally.thoughts += 1;
        self.tally.pointings += 2;
        self.tally.keys += 2;
    }

    pub(super) async fn until_at(&self, part: &str) {
        self.browser.until_at(part).await;
    }

    /// Compares the tally with the ceiling and with the row of the laboratory note.
    pub(super) fn end(self) {
        let KeystrokeTally { keys, pointings, thoughts, notches } = self.tally;
        let seconds = self.tally.seconds();
        let row = format!(
            "| {} | {keys} | {pointings} | {thoughts} | {notches} | {seconds:.1} |",
            self.name
        );
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let kept = root.join("target/screens/tasks");
        std::fs::create_dir_all(&kept).unwrap();
        let number = self.name.split(' ').next().unwrap();
        std::fs::write(kept.join(number), format!("{row}\n")).unwrap();
        assert!(seconds <= self.max_seconds, "over {} s: {row}", self.max_seconds);
        let note = std::fs::read_to_string(root.join("docs/lab/2026-11-29-console.md")).unwrap();
        assert!(note.contains(&row), "docs/lab/2026-11-29-console.md lacks\n{row}");
    }
}
