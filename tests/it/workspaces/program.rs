//! The program itself on a workspace in a folder, with real documents.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::process::{Command, Output, Stdio};

use docmill_compat::objects::olmocr::{all_lock_keys, group_hash};
use serde_json::Value;

use crate::support::documents::{form, invoice, pdf};
use crate::support::process::Process;
use crate::support::world::{SOON, until};

fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docmill"));
    for (name, _) in std::env::vars() {
        if name.starts_with("DOCMILL") {
            command.env_remove(name);
        }
    }
    command.arg("workspace").args(arguments).stdin(Stdio::null());
    command
}

fn json(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {said}"))
}

#[test]
fn a_folder_of_papers_becomes_dolma_and_a_second_populate_adds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::create_dir(at("papers")).unwrap();
    std::fs::write(at("papers/in, voice.pdf"), invoice("4711")).unwrap();
    std::fs::write(at("papers/note.pdf"), pdf(&[(72.0, 700.0, "Hello from a note")])).unwrap();
    std::fs::write(at("papers/broken.pdf"), "%PDF-1.7 and nothing else").unwrap();
    let (place, papers) = (at("ws"), at("papers"));
    let added = json(&["populate", &place, &papers]);
    assert_eq!((&added["added"], &added["groups"]), (&3.into(), &1.into()), "{added}");
    assert_eq!(added["items_per_group"], 500, "one page each");
    let tally = json(&["work", &place]);
    assert_eq!((&tally["documents"], &tally["unread"]), (&2.into(), &1.into()), "{tally}");
    assert_eq!(json(&["populate", &place, &papers, "--items-per-group", "1"])["added"], 0);
    let stats = json(&["stats", &place]);
    assert_eq!((&stats["groups_done"], &stats["pages"]), (&1.into(), &2.into()), "{stats}");
    assert_eq!(stats["unread"][0]["reason"], "corrupt");
    let results = std::fs::read_dir(at("ws/results")).unwrap();
    let texts: Vec<_> =
        results.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    let lines: Vec<Value> =
        texts[0].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let invoice = lines.iter().find(|line| line["text"].as_str().unwrap().contains("4711"));
    let metadata = &invoice.unwrap()["metadata"];
    assert_eq!(metadata["Source-File"], at("papers/in, voice.pdf"));
    assert_eq!(metadata["docmill"]["data"]["invoice_number"], "4711");
    assert_eq!(json(&["populate", &place, "--failed"])["reopened"].as_array().unwrap().len(), 1);
    assert_eq!(json(&["work", &place])["unread"], 1);
}

/// A page of `words` words, by one of the makers of documents.
fn page(make: impl Fn(&[(f32, f32, &str)]) -> Vec<u8>, text: &str) -> Vec<u8> {
    let words: Vec<&str> = text.split(' ').collect();
    let lines: Vec<String> = words.chunks(10).map(|words| words.join(" ")).collect();
    let place = |at: usize| 80.0 + 20.0 * f32::from(u8::try_from(at).unwrap());
    let placed: Vec<_> =
        lines.iter().enumerate().map(|(at, line)| (72.0, place(at), line.as_str())).collect();
    make(&placed)
}

#[test]
fn of_an_archive_forms_spam_and_other_languages_are_left_out_if_the_filter_is_asked_for() {
    let dir = tempfile::Builder::new().prefix("desk").tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let english = "The committee met on the first day of the month to consider whether the bridge \
        over the river should be repaired before winter, and it was agreed that the work could \
        begin as soon as the money had been found. Nobody objected to this.";
    let german = "Der Ausschuss trat am ersten Tag des Monats zusammen, um zu beraten, ob die \
        alte Holzbr\u{fc}cke noch vor dem Winter ausgebessert werden sollte, und man war sich \
        einig, dass die Arbeiten beginnen sollten, sobald das Geld daf\u{fc}r gefunden sei.";
    let spam = format!("{english} Free download, free ebook, free pdf.");
    let archive = super::archives::pack(&[
        ("english.pdf", &page(pdf, english)),
        ("german.pdf", &page(pdf, &german.replace('\u{fc}', "ue"))),
        ("form.pdf", &page(form, english)),
        ("spam.pdf", &page(pdf, &spam)),
        ("short.pdf", &page(pdf, "Ein kurzer Text")),
    ]);
    std::fs::create_dir(at("papers")).unwrap();
    std::fs::write(at("papers/may.tar.gz"), archive).unwrap();
    let (place, papers) = (at("ws"), at("papers"));
    assert_eq!(json(&["populate", &place, &papers])["added"], 1, "found in its folder");
    let tally = json(&["work", &place, "--apply_filter", "--markdown"]);
    assert_eq!((&tally["documents"], &tally["unread"]), (&2.into(), &3.into()), "{tally}");
    let stats = json(&["stats", &place]);
    let mut left: Vec<String> = stats["unread"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let path = one["path"].as_str().unwrap().rsplit("::").next().unwrap();
            format!(
                "{path} {}: {}",
                one["reason"].as_str().unwrap(),
                one["detail"].as_str().unwrap()
            )
        })
        .collect();
    left.sort();
    assert_eq!(
        left,
        [
            "form.pdf filtered: a form",
            "german.pdf filtered: not in English (deu)",
            "spam.pdf filtered: search engine spam",
        ]
    );
    let mut written: Vec<_> = std::fs::read_dir(at("ws/markdown/may"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    written.sort();
    assert_eq!(written, ["english.md", "short.md"]);
    let other = at("other");
    json(&["populate", &other, &papers]);
    assert_eq!(json(&["work", &other])["documents"], 5, "nobody asked for the filter");
}

#[test]
fn markdown_is_written_under_a_documents_own_path_if_it_is_asked_for() {
    // A name that begins with a full stop would be written in another way.
    let dir = tempfile::Builder::new().prefix("desk").tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::create_dir(at("papers")).unwrap();
    let table = [
        (72.0, 192.0, "Berth"),
        (200.0, 192.0, "Fee"),
        (72.0, 208.0, "North"),
        (200.0, 208.0, "12.50"),
    ];
    std::fs::write(at("papers/fees 2026.pdf"), pdf(&table)).unwrap();
    let (place, papers) = (at("ws"), at("papers"));
    assert_eq!(json(&["populate", &place, &papers, "--items-per-group", "1"])["added"], 1);
    assert_eq!(json(&["work", &place, "--markdown"])["documents"], 1);
    let written = at(&format!("ws/markdown{papers}/fees 2026.md"));
    let written = std::fs::read_to_string(written).unwrap();
    assert_eq!(written, "| Berth | Fee |\n| --- | --- |\n| North | 12.50 |\n");
    let other = at("other");
    assert_eq!(json(&["populate", &other, &papers, "--items-per-group", "1"])["added"], 1);
    assert_eq!(json(&["work", &other])["documents"], 1);
    assert!(!std::path::Path::new(&at("other/markdown")).exists(), "nobody asked");
}

#[test]
fn a_path_with_a_line_break_is_skipped_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("line\nbreak.pdf");
    std::fs::write(&odd, "%PDF-1.7").unwrap();
    let place = dir.path().join("ws").display().to_string();
    let output =
        run(&["populate", &place, odd.to_str().unwrap(), "--items-per-group", "1", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["added"], report["refused"].as_array().unwrap().len()), (&0.into(), 1));
}

#[test]
fn arguments_that_make_no_sense_are_wrong_use() {
    for wrong in [
        vec!["populate", "ws"],
        vec!["populate", "ws", "a.pdf", "--items-per-group", "0"],
        vec!["work", "ws", "--timeout", "1s"],
        vec!["work", "ws", "--max-page-error-rate", "2"],
        vec!["stats", "ws", "--format", "olmocr-9"],
    ] {
        assert_eq!(run(&wrong).status.code(), Some(2), "{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_a_worker_show_its_groups_while_it_waits_for_one_of_anothers() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::create_dir(at("papers")).unwrap();
    std::fs::write(at("papers/ours.pdf"), invoice("4713")).unwrap();
    std::fs::write(at("papers/theirs.pdf"), invoice("4714")).unwrap();
    let place = at("ws");
    json(&["populate", &place, &at("papers"), "--items-per-group", "1"]);
    let lock = all_lock_keys(&group_hash(&[at("papers/theirs.pdf")]))[0].clone();
    std::fs::create_dir_all(std::path::Path::new(&at("ws")).join(&lock).parent().unwrap()).unwrap();
    std::fs::write(dir.path().join("ws").join(lock), "").unwrap();
    let mut command = command(&["work", &place]);
    command.env("DOCMILL__WORKER__ADDRESS", "127.0.0.1:0");
    let mut worker = Process::spawn(command, "warn,docmill=info", dir.path());
    until(SOON, || async { worker.log().contains("health pages on ") }).await;
    let page = |path: &'static str| {
        let address = format!("http://{}{path}", worker.pages());
        async move { reqwest::get(address).await.unwrap().text().await.unwrap() }
    };
    until(SOON, || async {
        let text = page("/metrics").await;
        text.contains("docmill_attempts_total{outcome=\"completed\"} 1")
            && text.contains("docmill_deliveries_total{answer=\"busy\"} 1")
    })
    .await;
    assert!(page("/livez").await.contains("\"alive\":true"));
    assert!(page("/readyz").await.contains("\"store\":true"));
    worker.terminate();
    assert!(worker.ended(SOON).await.success());
}
