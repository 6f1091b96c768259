//! E-invoices through every step: the reader of a document with XML, the handling of broken,
//! hostile or contradicting XML, and the costs.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docmill::app::App;
use docmill_core::config::Config;
use docmill_formats::einvoice::EinvoiceDefect;
use docmill_formats::xml::XmlError;
use docmill_operations::process::{LocalPipeline, ProcessReport};
use docmill_testkit::openai::{Answer, Script};

use crate::support::documents::{cii, drawn_carrying, drawn_invoice_carrying, invoice_carrying};
use crate::support::world::World;

fn app() -> App {
    let mut config = Config::default();
    config.cpu.program = env!("CARGO_BIN_EXE_docmill").into();
    App::new(config)
}

async fn local_pipeline() -> LocalPipeline {
    app().local_pipeline().await.unwrap()
}

async fn process(pipeline: &LocalPipeline, bytes: Vec<u8>) -> ProcessReport {
    pipeline.process_file(Path::new("document"), bytes.into()).await.unwrap()
}

/// How a document ended: reader, reason, and why a person should look.
fn end(processed: &ProcessReport) -> (&str, &str, Vec<&str>) {
    let reader = processed.reader.as_deref().unwrap_or("-");
    let reason = processed.reason.map_or("-", |reason| reason.code());
    (reader, reason, processed.review_reasons.iter().map(String::as_str).collect())
}

/// The invoice's XML with one thing changed.
fn changed(from: &str, to: &str) -> String {
    let whole = cii("N-1");
    assert!(whole.contains(from), "{from}");
    whole.replacen(from, to, 1)
}

fn bomb() -> String {
    let entities: String = (1..9)
        .map(|n| format!("<!ENTITY e{n} '{}'>", format!("&e{};", n - 1).repeat(10)))
        .collect();
    let head = format!("<!DOCTYPE x [<!ENTITY e0 'lol'>{entities}]><rsm:Cross");
    changed("<rsm:Cross", &head).replacen(">N-1<", ">&e8;<", 1)
}

fn stranger(path: &Path) -> String {
    let head = format!("<!DOCTYPE x [<!ENTITY e SYSTEM 'file://{}'>]><rsm:Cross", path.display());
    changed("<rsm:Cross", &head).replacen(">N-1<", ">&e;<", 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invoice_that_is_xml_alone_contradicts_no_page() {
    let pipeline = local_pipeline().await;
    let xml = std::fs::read("samples/einvoice_ubl.xml").unwrap();
    let processed = process(&pipeline, xml).await;
    assert_eq!(end(&processed), ("einvoice", "-", Vec::new()));
}

/// Reader, reason and review reasons.
type End<'a> = (&'a str, &'a str, Vec<&'a str>);
/// Names and contents of the files.
type Files<'a> = Vec<(&'a str, String)>;

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_the_attached_xml_decides_who_reads_and_a_person_learns_why() {
    let (x, z) = ("factur-x.xml", "ZUGFeRD-invoice.xml");
    let (sound, digits) = (cii("N-1"), format!(">{}<", "9".repeat(30)));
    let other = cii("N-2");
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let cut = sound.get(..sound.len() / 2).unwrap().to_owned();
    let latin = sound.replace("UTF-8", "EBCDIC-US");
    let foreign = sound.replace("CrossIndustryInvoice:100", "CrossIndustryInvoice:mine");
    let order = sound.replace("CrossIndustryInvoice", "SCRDMCCBDACIOMessageStructure");
    let less = changed("<ram:BilledQuantity unitCode='XBX'>4<", "<ram:BilledQuantity>-4<");
    #[rustfmt::skip]
    let table: Vec<(&str, Files<'_>, End<'_>)> = vec![
        ("sound",               vec![(x, sound.clone())],                    ("einvoice", "-", vec![])),
        ("under its old name",  vec![(z, sound.clone())],                    ("einvoice", "-", vec![])),
        ("under a name of its own", vec![("Rechnung-4711.xml", sound.clone())], ("einvoice", "-", vec![])),
        ("beside an order",     vec![("order-x.xml", order.clone()), ("a.dat", sound.clone())], ("einvoice", "-", vec![])),
        ("two names that differ", vec![(x, sound.clone()), ("Rechnung-4711.xml", other.clone())],
            ("rules", "-", vec!["einvoice_unusable:several"])),
        ("another total",       vec![(x, sound.replace("120.00", "150.00").replace("20.00<", "50.00<"))],
            ("einvoice", "-", vec!["tax_above_rate:vat_amount", "einvoice_contradicts_page:total", "einvoice_contradicts_page:amount_due", "einvoice_contradicts_page:vat_amount"])),
        ("another number",      vec![(x, other.clone())],
            ("einvoice", "-", vec!["einvoice_contradicts_page:invoice_number"])),
        ("another date",        vec![(x, changed("20260314", "20260313"))],
            ("einvoice", "-", vec!["einvoice_contradicts_page:invoice_date"])),
        ("a negative quantity", vec![(x, less)],                             ("einvoice", "-", vec!["einvoice_doubtful:product.line_items"])),
        ("no known currency",   vec![(x, sound.replace("GBP", "XQZ"))],       ("einvoice", "gate_refused", vec!["unknown_currency:currency", "currency_not_on_document:currency"])),
        ("its own sums wrong",  vec![(x, changed("GrandTotalAmount>120.00", "GrandTotalAmount>100.00"))],
            ("einvoice", "-", vec!["net_and_vat_are_not_total:total", "amount_due_is_not_rest:amount_due"])),
        ("a bomb",              vec![(x, bomb())],                           ("rules", "-", vec!["einvoice_unusable:entities"])),
        ("cut off",             vec![(x, cut.clone())],                      ("rules", "-", vec!["einvoice_unusable:malformed"])),
        ("too deep",            vec![(x, deep)],                             ("rules", "-", vec!["einvoice_unusable:too_large"])),
        ("foreign namespaces",  vec![(x, foreign)],                          ("rules", "-", vec!["einvoice_unusable:no_invoice"])),
        ("30 digits",           vec![(x, changed(">120.00<", &digits))],     ("einvoice", "-", vec!["einvoice_doubtful:total_from_due", "einvoice_doubtful:unread.total"])),
        ("no day",              vec![(x, changed("20260314", "20260399"))],  ("rules", "-", vec!["einvoice_unusable:incomplete"])),
        ("an unread encoding",  vec![(x, latin)],                            ("rules", "-", vec!["einvoice_unusable:encoding"])),
        ("without a number",    vec![(x, changed(">N-1<", "><"))],           ("rules", "-", vec!["einvoice_unusable:incomplete"])),
        ("an order",            vec![("order-x.xml", order)],                ("rules", "-", vec![])),
        ("two that differ",     vec![(x, sound.clone()), (z, other)],        ("rules", "-", vec!["einvoice_unusable:several"])),
        ("two that agree",      vec![(x, sound.clone()), ("xrechnung.xml", format!("{sound}\n"))], ("einvoice", "-", vec![])),
        ("one sound, one not",  vec![(x, cut), (z, sound)],                  ("einvoice", "-", vec![])),
    ];
    let pipeline = local_pipeline().await;
    for (name, files, expected) in table {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, xml)| (*name, xml.as_str())).collect();
        let processed = process(&pipeline, invoice_carrying("N-1", &files)).await;
        assert_eq!(end(&processed), expected, "{name}: {}", processed.detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_only_xml_is_read_or_refused_as_xml() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "a-secret-of-this-machine").unwrap();
    let order = cii("N-1").replace("CrossIndustryInvoice", "SCRDMCCBDACIOMessageStructure");
    #[rustfmt::skip]
    let table: Vec<(&str, Vec<u8>, (&str, &str))> = vec![
        ("sound",          cii("N-1").into(),                                  ("einvoice", "-")),
        ("no declaration", cii("N-1").split_once("?>").unwrap().1.into(),      ("einvoice", "-")),
        ("with a mark",    [b"\xef\xbb\xbf", cii("N-1").as_bytes()].concat(),  ("einvoice", "-")),
        ("incomplete",     changed(">N-1<", "><").into(),                      ("einvoice", "gate_refused")),
        ("a bomb",         bomb().into(),                                      ("-", "corrupt")),
        ("an outside file", stranger(secret.path()).into(),                    ("-", "corrupt")),
        ("30 digits",      changed(">120.00<", &format!(">{}<", "9".repeat(30))).into(), ("einvoice", "-")),
        ("an order",       order.into(),                                       ("-", "unsupported_type")),
        ("a picture",      b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(), ("-", "unsupported_type")),
        ("not its UTF-8",  [b"<?xml version='1.0'?><a>\xff</a>".as_slice()].concat(), ("-", "unsupported_type")),
        ("too deep",       format!("<?xml version='1.0'?>{}", "<a>".repeat(100_000)).into(), ("-", "too_large")),
    ];
    let pipeline = local_pipeline().await;
    for (name, bytes, expected) in table {
        let wrapped = process(&pipeline, STANDARD.encode(&bytes).into()).await;
        let processed = process(&pipeline, bytes).await;
        let (reader, reason, _) = end(&processed);
        assert_eq!((reader, reason), expected, "{name}: {}", processed.detail);
        assert_eq!(end(&wrapped), end(&processed), "{name} in base64");
        assert_eq!(wrapped.detail, processed.detail, "{name} in base64");
        assert_eq!(processed.format.as_deref(), Some("xml"), "{name}");
        let shown = serde_json::to_string(&processed).unwrap();
        assert!(!shown.contains("a-secret-of-this-machine"), "{name}");
    }
}

#[test]
fn every_word_for_an_e_invoice_of_no_use_is_explained_to_the_operator() {
    let page = include_str!("../../docs/guides/operations.md");
    let (_, table) = page.split_once("### Documents with an e-invoice").unwrap();
    for flaw in [
        EinvoiceDefect::Attachment,
        EinvoiceDefect::Xml(XmlError::Encoding),
        EinvoiceDefect::Xml(XmlError::Malformed),
        EinvoiceDefect::Xml(XmlError::Entities),
        EinvoiceDefect::Xml(XmlError::TooLarge),
        EinvoiceDefect::NotAnInvoice,
        EinvoiceDefect::Incomplete,
        EinvoiceDefect::Several,
    ] {
        assert!(table.contains(&format!("`{}`", flaw.code())), "{}", flaw.code());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_content_of_an_xml_file_is_shown_to_reviewers() {
    let transcript = local_pipeline().await.transcribe_file(cii("N-1").into()).await.unwrap();
    assert!(
        transcript.full_text().contains("\nGrandTotalAmount 120.00\n"),
        "{}",
        transcript.full_text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn visible_text_beside_an_e_invoice_that_was_not_compared_is_flagged() {
    let letters: String = (0..600)
        .map(|at| {
            let (x, y) = (60 + at % 60 * 8, 60 + at / 60 * 14);
            format!(
                "{x} {y} m {x} {0} {1} {0} {1} {y} c {1} {2} {x} {2} {x} {y} c f\n",
                y + 6,
                x + 5,
                y - 3
            )
        })
        .collect();
    let letter = "BT /F1 11 Tf 60 700 Td (Please find our invoice enclosed) Tj ET\n";
    let image = "q 595 0 0 842 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID a EI Q\n";
    let files = [("factur-x.xml", cii("N-1"))];
    let files = files.each_ref().map(|(name, xml)| (*name, xml.as_str()));
    #[rustfmt::skip]
    let table = [
        ("shapes alone",                 drawn_carrying("60 60 400 30 re f", &files)),
        ("a picture of another invoice", drawn_carrying(image, &files)),
        ("an empty page",                drawn_carrying("", &files)),
        ("a letter without an amount",   drawn_carrying(letter, &files)),
        ("letters drawn beside text",    drawn_invoice_carrying(&letters, &files)),
    ];
    let pipeline = local_pipeline().await;
    for (name, bytes) in table {
        let processed = process(&pipeline, bytes).await;
        assert_eq!(end(&processed), ("einvoice", "-", vec!["einvoice_unseen"]), "{name}");
        assert_eq!(processed.transcript.unwrap().pages.len(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invisible_text_confirms_no_e_invoice() {
    let print = "BT /F1 11 Tf 1 0 0 1 60 500 Tm (N-2) Tj ET";
    let contradicts = vec!["einvoice_contradicts_page:invoice_number"];
    #[rustfmt::skip]
    let table = [
        ("not there",               String::new(),                                                contradicts.clone()),
        ("black on a black box",    format!("0 g 50 490 80 30 re f {print}"),                     contradicts.clone()),
        ("white over a sliver",     format!("0 g 50 490 m 130 520 l 130 521 l 50 491 l f 1 g {print}"), contradicts.clone()),
        ("outside of a triangle",   format!("q 400 490 m 400 800 l 40 800 l h W n {print} Q"),    contradicts),
        ("on paper",                print.to_owned(),                                             vec![]),
        ("black on a grey box",     format!("0.9 g 50 490 80 30 re f 0 g {print}"),               vec![]),
        ("white on a black box",    format!("0 g 50 490 80 30 re f 1 g {print}"),                 vec![]),
        ("within a clipping box",   format!("q 50 490 80 30 re W n {print} Q"),                   vec![]),
    ];
    let pipeline = local_pipeline().await;
    for (name, operations, reasons) in table {
        let bytes = drawn_invoice_carrying(&operations, &[("factur-x.xml", &cii("N-2"))]);
        assert_eq!(end(&process(&pipeline, bytes).await), ("einvoice", "-", reasons), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn xml_is_left_alone_on_request() {
    let mut services = app().pipeline_services().await.unwrap();
    services.ignore_xml = true;
    let pipeline = LocalPipeline::new(services);
    for xml in [cii("N-1"), "<broken".to_owned()] {
        let carrying = invoice_carrying("N-1", &[("factur-x.xml", &xml)]);
        assert_eq!(end(&process(&pipeline, carrying).await), ("rules", "-", vec![]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reads_an_e_invoice_without_asking_the_model() {
    let world = World::with_model(Script::always(Answer::Read)).await;
    let xml =
        world.submit("a.pdf", invoice_carrying("N-1", &[("factur-x.xml", &cii("N-1"))])).await;
    // Another day: the same again would be a near duplicate.
    let of_another_day = cii("N-2").replacen("20260314", "20260315", 1);
    let bare = world.submit("b.xml", of_another_day.into()).await;
    let broken = world.submit("c.pdf", invoice_carrying("N-3", &[("factur-x.xml", "<a>")])).await;
    let worker = world.worker().await;
    for id in [xml, bare, broken] {
        world.until(id, "status", "completed").await;
    }
    worker.stop().await;
    let model = world.llm.as_ref().unwrap();
    assert!(model.arrived(1, Duration::from_secs(1)).await);
    assert_eq!(model.calls().len(), 1, "the model was asked about the broken one alone");
    for (id, reader, reasons) in [
        (xml, "einvoice", "{}"),
        (bare, "einvoice", "{}"),
        (broken, "llm", "{einvoice_unusable:malformed}"),
    ] {
        assert_eq!(world.column(id, "reader").await.as_deref(), Some(reader));
        // Two of the three have the supplier, day and total in common.
        let known = "array_remove(review_reasons, 'near_duplicate')::text";
        assert_eq!(world.column(id, known).await.as_deref(), Some(reasons));
    }
    let total = world.column(bare, "structured_data -> 'total'").await;
    assert_eq!(total.as_deref(), Some("120"));
    let stored = world.column(xml, "transcription_file_path").await;
    assert!(stored.is_some(), "the text of the pages is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_on_text_waits_for_a_core_and_never_takes_a_thread_that_keeps_leases() {
    let mut config = Config::default();
    config.cpu.program = env!("CARGO_BIN_EXE_docmill").into();
    config.worker.cpu_threads = 1;
    let services = App::new(config).pipeline_services().await.unwrap();
    let pool = std::sync::Arc::clone(&services.pool);
    let pipeline = LocalPipeline::new(services);
    let (release, held) = std::sync::mpsc::channel::<()>();
    let busy = tokio::spawn(async move { pool.run(move || held.recv().is_ok()).await });
    let mut whole = Box::pin(process(&pipeline, cii("N-1").into()));
    // Reading takes a moment; the gate waits while the only core is busy.
    assert!(tokio::time::timeout(Duration::from_secs(3), whole.as_mut()).await.is_err());
    release.send(()).unwrap();
    assert_eq!(end(&whole.await), ("einvoice", "-", vec![]));
    assert!(busy.await.unwrap().unwrap());
}

/// Rules for CII: the buyer has a name; and a severe word about the number.
const RULES: &str = r#"{"format": 1, "sets": [{"name": "House rules", "version": "2",
    "applies": "exists(/*:CrossIndustryInvoice)", "schematron":
    "<schema xmlns='http://purl.oclc.org/dsdl/schematron'><ns prefix='rsm' uri='urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100'/><pattern><rule context='/rsm:CrossIndustryInvoice'><assert id='HR-1' flag='fatal' test=\"exists(.//*:BuyerTradeParty/*:Name)\">A buyer is named.</assert></rule></pattern></schema>"}]}"#;

/// A kind for e-invoices that sends a broken rule to a person.
const STRICT_RULES: &str = "[[rule]]\nname = 'einvoice_rules'\ncheck = 'einvoice_rules'\n\
                            consequence = 'review'\n";

#[tokio::test(flavor = "multi_thread")]
async fn official_rules_are_told_by_id_with_the_result_and_refuse_only_where_the_kind_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.json");
    std::fs::write(&rules, RULES).unwrap();
    let kinds = folder.path().join("kinds");
    let strict = kinds.join("invoice");
    copy_kind("invoice", &strict);
    let own = strict.join("rules.toml");
    let shipped = std::fs::read_to_string(&own).unwrap();
    std::fs::write(&own, format!("{shipped}\n{STRICT_RULES}")).unwrap();
    for (is_strict, expected) in [
        (false, ("einvoice", "-", vec![])),
        (true, ("einvoice", "gate_refused", vec!["einvoice_rules:HR-1"])),
    ] {
        let mut config = Config::default();
        config.cpu.program = env!("CARGO_BIN_EXE_docmill").into();
        config.einvoice.rules.clone_from(&rules);
        if is_strict {
            config.kinds.path.clone_from(&kinds);
        }
        let pipeline = App::new(config).local_pipeline().await.unwrap();
        for bytes in
            [cii("N-1").into_bytes(), invoice_carrying("N-1", &[("factur-x.xml", &cii("N-1"))])]
        {
            let processed = process(&pipeline, bytes).await;
            assert_eq!(end(&processed), expected);
            let report = processed.einvoice_rules.unwrap();
            let found: Vec<_> = report.findings.iter().map(|it| it.rule.as_str()).collect();
            assert_eq!((report.sets, found), (vec!["House rules 2".to_owned()], vec!["HR-1"]));
        }
    }
}

fn copy_kind(name: &str, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/kinds").join(name);
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
