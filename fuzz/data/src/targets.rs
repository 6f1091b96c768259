//! Properties under arbitrary bytes: no input ends the process or keeps it busy for long, and each
//! target asserts its own. Nothing here opens a document.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use docmill_compat::objects::blobforge::records::{
    DeadMarker, FailedMarker, MarkerLock, QueueMarker, append_failure,
};
use docmill_compat::objects::blobforge::{hash_in, is_hash, marker_in};
use docmill_compat::objects::olmocr::archive::{
    ArchiveLimits, ArchiveStep, MemberContent, list_members, member_path, split_member,
};
use docmill_compat::objects::olmocr::index::{WorkIndex, path_problem};
use docmill_compat::objects::olmocr::{finished_group, group_in_ledger};
use docmill_core::config::{Config, ConfigNeeds, KindsConfig};
use docmill_core::model::message::{MAX_ENTRIES, MessageBody};
use docmill_core::model::{
    BoundingBox, Extraction, ExtractionMethod, ModelUsage, PageSource, PageText, StatedConfidence,
    TextLine, TextWord, Transcript,
};
use docmill_extract::printed::PrintedNumbers;
use docmill_extract::reply::{parse_json_object, read_reply};
use docmill_extract::rules::extract_by_rules;
use docmill_extract::schema::ReplySchema;
use docmill_extract::{RecordedReplies, einvoice::extract_einvoice};
use docmill_formats::einvoice::{EinvoiceFinding, parse_einvoice};
use docmill_formats::notation::number::DecimalSeparator;
use docmill_formats::notation::{
    account, currency, date, fold_text, number, printed_vat_id, vat_digits, vat_id,
};
use docmill_formats::xml::{XmlText, tree_lines};
use docmill_gate::kinds::{Kind, KindSet};
use docmill_gate::{GateLookups, judge_extraction};
use docmill_layout::{read_layout, render_markdown, render_text, split_chunks};
use docmill_llm::anthropic::AnthropicClient;
use docmill_llm::openai::OpenAiClient;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A target by its name.
type NamedTarget = (&'static str, fn(&[u8]));

/// All of them.
pub(crate) const TARGETS: [NamedTarget; 15] = [
    ("message_body", read_message_body),
    ("s3_event", read_s3_event),
    ("einvoice", read_einvoice),
    ("model_reply", read_model_reply),
    ("judged_reply", judge_reply),
    ("vendor_body", read_vendor_body),
    ("stored_artefact", read_stored_artefact),
    ("olmocr_index", read_olmocr_index),
    ("olmocr_archive", read_olmocr_archive),
    ("blobforge_marker", read_blobforge_marker),
    ("notation", read_notation),
    ("configuration", read_configuration),
    ("kind_files", read_kind_files),
    ("layout", read_page_layout),
    ("rules_reader", read_by_rules),
];

static KINDS: LazyLock<KindSet> =
    LazyLock::new(|| KindSet::load(&KindsConfig::default()).expect("built-in kinds are sound"));

fn kind(number: u8) -> Arc<Kind> {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name.as_str()).collect();
    let name = names[usize::from(number) % names.len()];
    Arc::clone(KINDS.get(name).expect("it is one of its own"))
}

fn lookups() -> GateLookups {
    let today = date::parse_iso("2026-03-20").expect("a day");
    GateLookups { quality_threshold: 0.7, ..GateLookups::on_day(today) }
}

/// A written value reads back unchanged.
fn assert_reads_back<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let bytes = serde_json::to_vec(value).expect("what was read can be written");
    let again: T = serde_json::from_slice(&bytes).expect("what was written can be read");
    assert_eq!(&again, value, "written and read again");
}

fn read_message_body(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match MessageBody::parse(text) {
        MessageBody::Ingestion(_) | MessageBody::NoWork(_) | MessageBody::Malformed(_) => {}
        MessageBody::Group(ids) => {
            assert!((1..=MAX_ENTRIES).contains(&ids.len()));
            let different: std::collections::HashSet<_> = ids.iter().collect();
            assert_eq!(different.len(), ids.len(), "none twice");
        }
        MessageBody::Objects(objects) => {
            assert!((1..=MAX_ENTRIES).contains(&objects.len()));
            for object in objects {
                assert!(!object.bucket.is_empty() && !object.key.is_empty());
                // One of several is sent again by itself.
                let again = MessageBody::parse(&object.to_event());
                assert_eq!(again, MessageBody::Objects(vec![object]));
            }
        }
    }
}

/// The values of an event's record, each as long as its share of the input.
fn read_s3_event(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split('\u{1}');
    let mut part = || parts.next().unwrap_or_default();
    let (name, bucket, key) = (part(), part(), part());
    let (version, etag, sequencer, size) = (part(), part(), part(), part());
    let size: serde_json::Value = serde_json::from_str(size).unwrap_or_default();
    let event = serde_json::json!({"Records": [{
        "eventName": format!("ObjectCreated:{name}"),
        "s3": {"bucket": {"name": bucket}, "object": {
            "key": key, "versionId": version, "eTag": etag, "sequencer": sequencer, "size": size,
        }},
    }]});
    let event = event.to_string();
    let bare = MessageBody::parse(&event);
    let wrapped = serde_json::json!({"Type": "Notification", "Message": event}).to_string();
    assert_eq!(MessageBody::parse(&wrapped), bare, "SNS changes nothing");
    read_message_body(event.as_bytes());
}

fn read_einvoice(data: &[u8]) {
    if let Ok(invoice) = parse_einvoice(data) {
        assert!(invoice.is_sound(), "what was read passes as an answer of a page process");
        assert!(invoice.agrees_with(&invoice), "an invoice agrees with itself");
        let extraction = extract_einvoice(&invoice, &kind(0));
        let kind = Arc::clone(KINDS.get("invoice").expect("a built-in kind"));
        let whole = extract_einvoice(&invoice, &kind);
        judge_extraction(&whole, &empty_transcript(), &kind, &lookups());
        assert_reads_back(&extraction);
        assert_reads_back(&invoice);
    }
    let finding = EinvoiceFinding::from_files(&[data.to_vec(), data.to_vec()], false);
    assert_reads_back(&finding);
    if let Ok(text) = XmlText::decode(data)
        && let Ok(tree) = text.parse_tree()
    {
        let lines = tree_lines(&tree, 1000);
        assert!(lines.iter().map(|line| line.words.len()).sum::<usize>() <= 1000);
    }
}

fn read_model_reply(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let kind = kind(*first);
    let form = ReplySchema::for_kind(&kind).expect("built-in kinds have schemas");
    if let Ok(object) = parse_json_object(text) {
        assert!(object.is_object());
        let salvaged = form.salvage_fields(&object);
        assert!(!serde_json::to_string(&salvaged).expect("JSON").contains("\\u0000"));
    }
    match read_reply(text, &form, &PrintedNumbers::default()) {
        Ok(reply) => {
            for name in kind.required_fields() {
                assert!(reply.fields.contains_key(name), "every required field is there");
            }
        }
        Err(defect) => {
            // It goes back to the model and into logs: its words are ours.
            assert!(defect.to_string().len() < 20_000);
        }
    }
}

/// A model's reply about a page, up to the first of the bytes 1, judged beside the page behind it.
fn judge_reply(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let at = rest.iter().position(|byte| *byte == 1).unwrap_or(rest.len());
    let (reply, page) = rest.split_at(at);
    let Ok(serde_json::Value::Object(fields)) = serde_json::from_slice(reply) else { return };
    let (kind, transcript) = (kind(*first), draw_transcript(page));
    let extraction = Extraction {
        reader: ExtractionMethod::Llm,
        model: None,
        kind: kind.name.clone(),
        data: fields,
        missing_fields: Vec::new(),
        successful: true,
        confidence: StatedConfidence::High,
        evidence: Vec::new(),
        certainties: Vec::new(),
        usage: ModelUsage::default(),
    };
    let verdict = judge_extraction(&extraction, &transcript, &kind, &lookups());
    assert_eq!(verdict.needs_review(), !verdict.review_reasons().is_empty());
}

fn read_vendor_body(data: &[u8]) {
    for reply in [
        OpenAiClient::parse_completion(data, "asked"),
        AnthropicClient::parse_message(data, "asked"),
    ] {
        assert!(reply.is_none_or(|reply| !reply.model.is_empty()));
    }
}

fn read_stored_artefact(data: &[u8]) {
    if let Ok(transcript) = serde_json::from_slice::<Transcript>(data) {
        show_transcript(&transcript);
    }
    if let Ok(replies) = serde_json::from_slice::<RecordedReplies>(data) {
        assert_reads_back(&replies);
        replies.total_usage();
    }
}

fn read_olmocr_index(data: &[u8]) {
    // As it is, and as the text of a sound frame.
    drop(WorkIndex::decode(data));
    let Ok(mut index) = WorkIndex::decode(&plain_frame(data)) else { return };
    let paths = String::from_utf8_lossy(data);
    let paths = paths.split(',').filter(|path| path_problem(path).is_none()).map(str::to_owned);
    index.add_paths(paths.take(50), 7);
    let writable = |path: &String| path_problem(path).is_none();
    if index.groups.iter().all(|group| group.paths.iter().all(writable)) {
        let written = index.encode().expect("it is compressed in memory");
        assert_eq!(WorkIndex::decode(&written).expect("what was written"), index);
    }
}

/// A zstd frame of one block that is not compressed (RFC 8878 §3.1.1).
fn plain_frame(content: &[u8]) -> Vec<u8> {
    let size = u32::try_from(content.len()).expect("inputs are short");
    let [low, middle, high, _] = (size << 3 | 1).to_le_bytes();
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    [&head, size.to_le_bytes().as_slice(), &[low, middle, high], content].concat()
}

/// An archive, packed or, so that not every input breaks at its sums, to be packed: the sum of a header
/// is put right where the first byte says so.
fn read_olmocr_archive(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let packed = match first % 4 {
        0 => rest.to_vec(),
        1 => pack_archive(rest),
        _ => pack_archive(&put_sums_right(rest)),
    };
    let limits = ArchiveLimits { bytes: 64 << 10, entries: 40, document: 8 << 10 };
    let (mut entries, mut told) = (0, 0);
    let ended = list_members(&packed, limits, |step| {
        let ArchiveStep::Document { member, content } = step else { panic!("told, not returned") };
        assert!(member.to_ascii_lowercase().ends_with(".pdf"));
        let path = member_path("a.tgz", &member);
        assert_eq!(split_member(&path), Some(("a.tgz", member.as_str())));
        entries += 1;
        if let MemberContent::Bytes(bytes) = content {
            assert!(bytes.len() as u64 <= limits.document);
            told += bytes.len() as u64;
        }
        true
    });
    assert!(entries <= limits.entries && told <= limits.bytes);
    if let Err(step) = ended {
        let ArchiveStep::Broken { code, .. } = step else { panic!("returned, not told") };
        assert!(["too_large", "corrupt"].contains(&code));
    }
}

fn pack_archive(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(bytes).expect("memory takes it");
    gzip.finish().expect("memory takes it")
}

/// Every block of an archive as a header whose sum is right, if it can be one.
fn put_sums_right(bytes: &[u8]) -> Vec<u8> {
    let mut archive = bytes.to_vec();
    archive.resize(archive.len().next_multiple_of(512), 0);
    for block in archive.chunks_exact_mut(512) {
        if block[0] != 0 {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    archive
}

fn read_blobforge_marker(data: &[u8]) {
    if let Ok(marker) = serde_json::from_slice::<QueueMarker>(data) {
        assert_reads_back(&marker);
        let mut history = marker.past.history;
        append_failure(&mut history, Default::default());
        assert!(history.len() <= 20);
    }
    if let Ok(lock) = serde_json::from_slice::<MarkerLock>(data) {
        lock.run_count();
        assert_reads_back(&lock);
    }
    if let Ok(failed) = serde_json::from_slice::<FailedMarker>(data) {
        failed.run_count();
        assert_reads_back(&failed);
    }
    if let Ok(dead) = serde_json::from_slice::<DeadMarker>(data) {
        assert_reads_back(&dead);
    }
    let Ok(key) = std::str::from_utf8(data) else { return };
    assert!(marker_in(key).is_none_or(|(_, hash)| is_hash(hash)));
    assert!(hash_in(key, "queue/dead/").is_none_or(is_hash));
    finished_group(key);
    group_in_ledger(key);
}

fn read_notation(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let words: Vec<&str> = text.split_whitespace().collect();
    let mark = DecimalSeparator::from_words(words.iter().copied());
    for mark in [None, mark, Some(DecimalSeparator::Comma), Some(DecimalSeparator::Point)] {
        number::parse_number(text, mark);
        for found in number::find_numbers(&words, mark) {
            assert!(!found.words.is_empty() && found.words.end <= words.len());
            found.is_money();
        }
    }
    let dates = date::find_dates(text);
    for found in &dates {
        assert!(text.get(found.range.clone()).is_some(), "whole characters of the text");
        let all = [found.day_first, found.month_first];
        for day in all.into_iter().flatten() {
            assert_eq!(date::parse_iso(&date::to_iso(day)), Some(day), "a date reads back");
        }
    }
    date::infer_order(dates.iter());
    for at in 0..words.len().min(40) {
        if let Some((iban, taken)) = words.get(at..).and_then(account::find_iban_at) {
            assert!(account::is_iban(&iban) && taken >= 1 && at + taken <= words.len());
        }
        if let Some((_, taken)) = words.get(at..).and_then(printed_vat_id::find_at) {
            assert!(taken >= 1 && at + taken <= words.len());
        }
    }
    for word in words.iter().take(40) {
        account::is_bic(word);
        vat_digits::check_digits_hold(word);
        vat_id::has_valid_form(&vat_id::normalise_vat_id(word));
        currency::exact_currency(word);
        currency::bracketed_currency(word);
        currency::is_also_word(word);
    }
    let folded = fold_text(text);
    assert_eq!(fold_text(&folded), folded, "what is folded stays as it is");
}

fn read_configuration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(config) = Config::parse_text(text) {
        drop(config.check(ConfigNeeds::WORKER));
        config.retry_terms();
        config.heartbeat_interval();
    }
}

/// The four files of a kind that a machine reads, one after the other, over those of `generic`.
fn read_kind_files(data: &[u8]) {
    const NAMES: [&str; 4] = ["rules.toml", "labels.toml", "schema.json", "kind.toml"];
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut files = BTreeMap::from(
        [
            ("kind.toml", include_str!("../../../config/kinds/generic/kind.toml")),
            ("labels.toml", include_str!("../../../config/kinds/generic/labels.toml")),
            ("prompt.md", include_str!("../../../config/kinds/generic/prompt.md")),
            ("rules.toml", include_str!("../../../config/kinds/generic/rules.toml")),
            ("schema.json", include_str!("../../../config/kinds/generic/schema.json")),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned())),
    );
    for (name, text) in NAMES.iter().zip(text.split('\u{1}')) {
        if !text.is_empty() {
            files.insert((*name).to_owned(), text.to_owned());
        }
    }
    for problem in KindSet::check_files("fuzzed", files) {
        assert!(!problem.to_string().is_empty());
    }
}

fn read_page_layout(data: &[u8]) {
    show_transcript(&draw_transcript(data));
}

fn read_by_rules(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let (kind, transcript) = (kind(*first), draw_transcript(rest));
    let extraction = extract_by_rules(&transcript, &kind);
    let verdict = judge_extraction(&extraction, &transcript, &kind, &lookups());
    assert!(verdict.certainty.is_none_or(|certainty| (0.0..=1.0).contains(&certainty)));
    KINDS.classify(&transcript);
    assert_reads_back(&extraction);
}

/// Everything that is made of a transcript whose text comes from a document.
fn show_transcript(transcript: &Transcript) {
    let layout = read_layout(transcript);
    assert_eq!(layout.pages.len(), transcript.pages.len());
    render_markdown(&layout);
    render_text(&layout);
    split_chunks(&layout, 64);
}

fn empty_transcript() -> Transcript {
    let (sha256, provider) = (String::new(), String::new());
    Transcript { format: Transcript::FORMAT, sha256, provider, pages: Vec::new(), quality: 1.0 }
}

/// Pages of the input's words. Bytes below a space put the pen elsewhere: the next line, so many
/// steps right, down, back up, the next page, larger letters; everything else is a word's.
fn draw_transcript(data: &[u8]) -> Transcript {
    let (mut pages, mut lines, mut words) = (Vec::new(), Vec::new(), Vec::new());
    let (mut x, mut y, mut size) = (40.0_f32, 40.0_f32, 10.0_f32);
    let text = String::from_utf8_lossy(data);
    for piece in text.split_inclusive(|c: char| c <= ' ') {
        let (word, pen) = match piece.char_indices().next_back() {
            Some((at, pen)) if pen <= ' ' => (piece.get(..at).unwrap_or_default(), pen),
            _ => (piece, ' '),
        };
        if !word.is_empty() {
            let width =
                size * 0.5 * f32::from(u16::try_from(word.chars().count()).unwrap_or(u16::MAX));
            let bounding_box = BoundingBox { x, y, w: width, h: size };
            let text = word.to_owned();
            words.push(TextWord {
                text: text.into(),
                bounding_box,
                confidence: 0.9,
                unwitnessed: false,
            });
            x += width + size * 0.5;
        }
        match pen {
            ' ' => {}
            '\n' => {
                lines.push(TextLine { words: std::mem::take(&mut words) });
                (x, y) = (40.0, y + 1.2 * size);
            }
            '\t' => x = (x / 100.0).floor() * 100.0 + 100.0,
            '\u{1}' => y += 40.0,
            '\u{2}' => (x, y) = (320.0, 40.0),
            '\u{3}' => size = if size > 30.0 { 6.0 } else { size * 1.5 },
            '\u{c}' => {
                lines.push(TextLine { words: std::mem::take(&mut words) });
                pages.push(std::mem::take(&mut lines));
                (x, y) = (40.0, 40.0);
            }
            other => {
                (x, y) = (x - 7.0 * u8::try_from(other).map_or(0.0, f32::from), y + 3.0);
            }
        }
    }
    lines.push(TextLine { words });
    pages.push(lines);
    let page = |(number, lines): (u32, Vec<TextLine>)| {
        let lines = lines.into_iter().filter(|line| !line.words.is_empty()).collect();
        let mut page = PageText::from_native(number, (595.0, 842.0), 0.9, lines);
        page.source = if number % 2 == 0 { PageSource::Ocr } else { PageSource::Native };
        page
    };
    let pages = (1..).zip(pages).map(page).collect();
    Transcript { pages, ..empty_transcript() }
}
