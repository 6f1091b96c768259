//! Reads the corpus with predicates taken out; scripts/corpus/ablate.py copies this file into the crate.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use docmill_core::config::KindsConfig;
use docmill_core::model::Transcript;
use docmill_formats::notation::fold_text;
use docmill_gate::kinds::KindSet;
use docmill_gate::{GateLookups, judge_extraction};
use serde_json::{Map, Value};

use super::extract_by_rules;
use crate::ablation::{OFF, PASSED};

/// How far F1 of a family may fall, and the share of its documents that may become flagged.
const MAX_F1_LOSS: f64 = 0.0095;
const MAX_NEWLY_FLAGGED: f64 = 0.02;

struct LabelledPage {
    family: String,
    kind: String,
    transcript: Transcript,
    truth: Map<String, Value>,
}

/// How one document was read.
#[derive(Clone, Default)]
struct Reading {
    correct: f64,
    wrong: f64,
    missed: f64,
    flagged: bool,
    passed: Vec<usize>,
}

impl Reading {
    fn is_right(&self) -> bool {
        self.wrong + self.missed == 0.0
    }

    fn is_silent_error(&self) -> bool {
        !self.flagged && !self.is_right()
    }
}

#[derive(Clone, Copy, Default)]
struct FamilyFigures {
    correct: f64,
    faults: f64,
    unflagged: f64,
    count: f64,
}

impl FamilyFigures {
    fn add(&mut self, one: &Reading) {
        self.correct += one.correct;
        self.faults += one.wrong + one.missed;
        self.unflagged += f64::from(u8::from(one.is_right() && !one.flagged));
        self.count += 1.0;
    }

    fn f1(&self) -> f64 {
        2.0 * self.correct / (2.0 * self.correct + self.faults).max(1.0)
    }
}

fn setting(name: &str) -> String {
    std::env::var(name).unwrap()
}

fn load_pages(kinds: &KindSet) -> Vec<LabelledPage> {
    let mut files: Vec<_> =
        fs::read_dir(setting("ABLATION_TRANSCRIPTS")).unwrap().collect::<Result<_, _>>().unwrap();
    files.sort_by_key(fs::DirEntry::file_name);
    let mut pages = Vec::new();
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let (family, rest) = name.split_once("__").unwrap();
        let stem = rest.trim_end_matches(".json").trim_end_matches(".pdf");
        let truth = format!("{}/{family}/truth/{stem}.json", setting("ABLATION_TRUTH"));
        let Ok(truth) = fs::read_to_string(truth) else { continue };
        let mut truth: Map<String, Value> = serde_json::from_str(&truth).unwrap();
        truth.retain(|_, value| value.is_string() || value.is_number());
        let transcript: Transcript =
            serde_json::from_str(&fs::read_to_string(file.path()).unwrap()).unwrap();
        let kind = kinds.classify(&transcript).unwrap().kind.name.clone();
        pages.push(LabelledPage { family: family.to_owned(), kind, transcript, truth });
    }
    pages
}

fn is_same(known: &Value, given: &Value) -> bool {
    match (known, given) {
        (Value::Number(_), Value::Number(_)) => {
            (known.as_f64().unwrap() - given.as_f64().unwrap()).abs() < 0.005
        }
        (Value::String(known), Value::String(given)) => {
            fold_text(known).replace(' ', "") == fold_text(given).replace(' ', "")
        }
        _ => false,
    }
}

fn read(page: &LabelledPage, kinds: &KindSet) -> Reading {
    PASSED.iter().for_each(|one| one.store(false, Relaxed));
    let kind = kinds.get(&page.kind).unwrap();
    // Code that a predicate guarded may panic without it: then the page needs the predicate.
    let extracted = catch_unwind(AssertUnwindSafe(|| extract_by_rules(&page.transcript, kind)));
    let Ok(read) = extracted else {
        return Reading {
            missed: page.truth.len().max(1) as f64,
            passed: passed(),
            ..Reading::default()
        };
    };
    let day = time::macros::date!(2026 - 11 - 28);
    let lookups = GateLookups { quality_threshold: 0.7, ..GateLookups::on_day(day) };
    let verdict = judge_extraction(&read, &page.transcript, kind, &lookups);
    let mut reading =
        Reading { flagged: verdict.needs_review() || verdict.is_refused(), ..Reading::default() };
    for (field, known) in &page.truth {
        let given = read.data.get(field).unwrap_or(&Value::Null);
        if is_same(known, given) {
            reading.correct += 1.0;
        } else {
            reading.missed += 1.0;
            reading.wrong += f64::from(u8::from(!given.is_null()));
        }
    }
    reading.passed = passed();
    reading
}

/// The switches that the last document passed.
fn passed() -> Vec<usize> {
    (0..PASSED.len()).filter(|site| PASSED[*site].load(Relaxed)).collect()
}

struct Ablation {
    kinds: KindSet,
    pages: Vec<LabelledPage>,
    before: Vec<Reading>,
    now: Vec<Reading>,
}

impl Ablation {
    fn figures(&self, readings: &[Reading]) -> BTreeMap<String, FamilyFigures> {
        let mut families: BTreeMap<String, FamilyFigures> = BTreeMap::new();
        for (page, one) in self.pages.iter().zip(readings) {
            families.entry(page.family.clone()).or_default().add(one);
        }
        families
    }

    fn is_silent(&self, at: usize, reading: &Reading) -> bool {
        reading.is_silent_error() && !self.before[at].is_silent_error()
    }

    fn is_worse(&self, at: usize, reading: &Reading) -> bool {
        let before = &self.before[at];
        reading.correct < before.correct
            || reading.wrong > before.wrong
            || before.is_right() && !before.flagged && reading.flagged
    }

    fn is_below_bar(&self, family: &str) -> bool {
        let (before, now) = (self.figures(&self.before)[family], self.figures(&self.now)[family]);
        let least = before.unflagged - (MAX_NEWLY_FLAGGED * now.count).max(1.0);
        now.f1() < before.f1() - MAX_F1_LOSS || now.unflagged < least
    }

    /// Puts back the predicates that a page needs, one after the other, each found by bisection.
    fn restore(
        &mut self,
        at: usize,
        sites: &[usize],
        is_wrong: fn(&Self, usize, &Reading) -> bool,
    ) {
        loop {
            self.now[at] = read(&self.pages[at], &self.kinds);
            let off: Vec<usize> =
                sites.iter().copied().filter(|site| OFF[*site].load(Relaxed)).collect();
            if off.is_empty() || !is_wrong(self, at, &self.now[at]) {
                return;
            }
            let (mut low, mut high) = (0, off.len());
            while high - low > 1 {
                let middle = (low + high) / 2;
                set(&off[..middle], false);
                let still = is_wrong(self, at, &read(&self.pages[at], &self.kinds));
                set(&off[..middle], true);
                if still { low = middle } else { high = middle }
            }
            set(&off[high - 1..high], false);
        }
    }

    /// One pass over all pages; whether every bar holds, else restores predicates.
    fn settle(&mut self, sites: &[usize]) -> bool {
        self.now = self.pages.iter().map(|page| read(page, &self.kinds)).collect();
        let silent: Vec<usize> =
            (0..self.pages.len()).filter(|at| self.is_silent(*at, &self.now[*at])).collect();
        for at in &silent {
            self.restore(*at, sites, Self::is_silent);
        }
        let mut below = 0;
        for at in 0..self.pages.len() {
            let family = self.pages[at].family.clone();
            if self.is_worse(at, &self.now[at]) && self.is_below_bar(&family) {
                self.restore(at, sites, Self::is_worse);
                below += 1;
            }
        }
        silent.is_empty() && below == 0
    }
}

fn set(sites: &[usize], off: bool) {
    sites.iter().for_each(|site| OFF[*site].store(off, Relaxed));
}

#[test]
fn ablate() {
    let work = setting("ABLATION_WORK");
    let sites: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(format!("{work}/sites.json")).unwrap()).unwrap();
    let kinds = KindSet::load(&KindsConfig::default()).unwrap();
    let pages = load_pages(&kinds);
    let before: Vec<Reading> = pages.iter().map(|page| read(page, &kinds)).collect();
    let mut ablation = Ablation { kinds, pages, now: before.clone(), before };
    let tried: Vec<usize> = (0..sites.len()).collect();
    set(&tried, true);
    let (started, seconds) = (Instant::now(), setting("ABLATION_SECONDS").parse().unwrap());
    while !ablation.settle(&tried) && started.elapsed().as_secs() < seconds {}
    let mut journal = fs::File::create(format!("{work}/journal.txt")).unwrap();
    for (site, place) in sites.iter().enumerate() {
        let end = if OFF[site].load(Relaxed) { "out" } else { "kept" };
        writeln!(journal, "{end} {site} {}:{}", place["file"], place["line"]).unwrap();
    }
    let (before, now) = (ablation.figures(&ablation.before), ablation.figures(&ablation.now));
    let mut report = String::from("family F1 before, after; right and unflagged before, after\n");
    for (family, now) in now {
        let before = before[&family];
        report += &format!(
            "{family} {:.4} {:.4} {} {}\n",
            before.f1(),
            now.f1(),
            before.unflagged,
            now.unflagged
        );
    }
    fs::write(format!("{work}/report.txt"), report).unwrap();
}
