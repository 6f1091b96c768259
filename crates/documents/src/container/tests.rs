//! Containers as they arrive, drawn by generators, and hostile ones.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lopdf::{Document, Object, Stream, dictionary};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::*;
use crate::document::open_with_members;

const PDF: &[u8] = b"%PDF-1.4 an invoice";
/// The first bytes of a picture.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn limits() -> LimitsConfig {
    LimitsConfig::default()
}

/// The members of a container: names and contents.
fn opened(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, PageRefusal> {
    let found = find_members(&bytes.to_vec().into(), &limits())?.unwrap_or_default();
    let numbered = (0..).zip(&found.members);
    let members = numbered.map(|(index, member)| {
        let content = found.content(index)?;
        assert_eq!(content.len() as u64, member.size);
        Ok((member.name.clone().unwrap_or_default(), content))
    });
    members.collect()
}

fn names(bytes: &[u8]) -> Vec<String> {
    opened(bytes).unwrap().into_iter().map(|(name, _)| name).collect()
}

fn refused(bytes: &[u8]) -> OutcomeReason {
    opened(bytes).unwrap_err().reason
}

/// A part of a mail in base64.
fn part(media: &str, headers: &str, content: &[u8]) -> String {
    format!(
        "Content-Type: {media}\r\nContent-Transfer-Encoding: base64\r\n{headers}\r\n{}\r\n",
        BASE64_STANDARD.encode(content)
    )
}

fn attached(name: &str, content: &[u8]) -> String {
    let disposition = format!("Content-Disposition: attachment; filename=\"{name}\"\r\n");
    part("application/octet-stream", &disposition, content)
}

/// A mail of these parts.
fn mail(sort: &str, parts: &[String]) -> Vec<u8> {
    mail_cut("cut", sort, parts)
}

/// The same with this line between its parts.
fn mail_cut(line: &str, sort: &str, parts: &[String]) -> Vec<u8> {
    let mut text = format!(
        "From: Seller <s@example.com>\r\nTo: b@example.com\r\nSubject: Ihre Rechnung\r\n\
         MIME-Version: 1.0\r\nContent-Type: multipart/{sort}; boundary=\"{line}\"\r\n\r\n"
    );
    for part in parts {
        write!(text, "--{line}\r\n{part}\r\n").unwrap();
    }
    write!(text, "--{line}--\r\n").unwrap();
    text.into_bytes()
}

fn text(content: &str) -> String {
    format!("Content-Type: text/plain; charset=utf-8\r\n\r\n{content}\r\n")
}

fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn attachments_are_members_and_text_logos_signatures_and_appointments_are_none() {
    let logo = part("image/png", "Content-ID: <logo>\r\nContent-Disposition: inline\r\n", PNG);
    let photo = vec![0xff_u8; MAX_PHOTO];
    let large = part("image/jpeg", "Content-ID: <photo>\r\n", &photo);
    let parts = [
        text("Total 12.00 EUR, see attachment"),
        attached("R-1.pdf", PDF),
        logo,
        large,
        part("application/pkcs7-signature; name=\"smime.p7s\"", "", b"signature"),
        part("text/calendar; name=\"invite.ics\"", "", b"BEGIN:VCALENDAR"),
        part("application/pdf", "", b"%PDF-1.4 second"),
    ];
    let members = opened(&mail("mixed", &parts)).unwrap();
    let found: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, ["R-1.pdf", "attachment.jpg", "attachment.pdf"]);
    assert_eq!((members[0].1.as_slice(), members[1].1.len()), (PDF, MAX_PHOTO));
}

const MAX_PHOTO: usize = 100 << 10;

#[test]
fn the_text_of_a_mail_is_a_document_only_beside_none_but_small_pictures_and_if_it_states_an_amount()
{
    let html = "Content-Type: text/html\r\n\r\n<p>Total: <b>9.90 EUR</b></p>\r\n".to_owned();
    let receipt = mail("alternative", &[text("Total: 9.90 EUR"), html]);
    let members = opened(&receipt).unwrap();
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].0, "Ihre Rechnung.html");
    assert!(members[0].1.starts_with("\u{feff}<p>".as_bytes()));
    let plain = b"From: a@example.com\nSubject: Beleg\n\nSumme 5,00 \xe2\x82\xac\n";
    assert_eq!(names(plain), ["Beleg.txt"]);
    let logo = attached("logo.png", PNG);
    let html = "Content-Type: text/html\r\n\r\n<p>Total: <b>9.90 EUR</b></p>\r\n".to_owned();
    assert_eq!(names(&mail("mixed", &[html, logo])), ["logo.png", "Ihre Rechnung.html"]);
    let quoted = b"From: a@example.com\nSubject: Beleg\n\nFwd:\n> Adler KG\n> > Summe   5,00 EUR\n";
    let members = opened(quoted).unwrap();
    assert_eq!(members[0].1, "\u{feff}Fwd:\nAdler KG\nSumme   5,00 EUR".as_bytes());
    let chat = b"From: a@example.com\nSubject: Hallo\n\nBis morgen um 10.30\n";
    assert_eq!(refused(chat), OutcomeReason::Empty);
}

#[test]
fn a_part_is_known_by_its_bytes_and_text_that_no_program_shows_is_none() {
    #[rustfmt::skip]
    let table = [
        ("a PDF as a signature",    mail("mixed", &[text("x"), part("application/pgp-signature", "", PDF)]), true),
        ("a PDF as an appointment", mail("mixed", &[text("x"), part("text/calendar", "Content-Disposition: attachment\r\n", PDF)]), true),
        ("a PDF as attached text",  mail("mixed", &[text("x"), part("text/plain", "Content-Disposition: attachment\r\n", PDF)]), true),
        ("a PDF as text",           mail("mixed", &[text("x"), part("text/plain", "", PDF)]), true),
        ("a PDF beside another",    mail("mixed", &[attached("a.txt", b"note"), part("text/plain", "", PDF)]), true),
        ("an appointment",          mail("mixed", &[text("x"), part("text/calendar", "", b"BEGIN:VCALENDAR")]), false),
        ("plain text beside HTML",  mail("alternative", &[text("Total: 9900.00 EUR"), part("text/html", "", b"<p>Please see our site</p>")]), false),
    ];
    for (name, bytes, is_found) in table {
        let members = opened(&bytes).unwrap_or_default();
        assert_eq!(members.iter().any(|(_, content)| content == PDF), is_found, "{name}");
        assert_eq!(members.is_empty(), !is_found, "{name}");
    }
}

#[test]
fn a_text_whose_plain_form_states_another_amount_is_marked_as_doubtful() {
    for (plain, is_doubtful) in [("Total: 9.90 EUR", false), ("Total: 99.90 EUR", true)] {
        let forms = [text(plain), part("text/html", "", b"<p>Total: <b>9.90 EUR</b></p>")];
        let members = opened(&mail("alternative", &forms)).unwrap();
        let content = String::from_utf8(members[0].1.clone()).unwrap();
        assert_eq!(content.contains(docmill_office::OTHER_TEXT_MARK), is_doubtful, "{plain}");
        // A note beside a receipt is no other form of it.
        let members = opened(&mail("mixed", &forms)).unwrap();
        let content = String::from_utf8(members[0].1.clone()).unwrap();
        assert!(content.contains(plain) && content.contains("<b>9.90 EUR</b>"), "{content}");
        assert!(!content.contains(docmill_office::OTHER_TEXT_MARK), "{content}");
    }
    let pieces = [text("Paper 5.00 EUR"), part("image/png", "", PNG), text("Total 5.00 EUR")];
    let members = opened(&mail("mixed", &pieces)).unwrap();
    let whole = String::from_utf8(members[0].1.clone()).unwrap();
    assert!(whole.contains("Paper 5.00 EUR") && whole.contains("Total 5.00 EUR"), "{whole}");
}

#[test]
fn no_document_is_lost_for_want_of_a_name_for_stray_characters_or_behind_another_mail() {
    let kept = "Content-Disposition: attachment\r\n";
    let parts = [
        text("x"),
        attached("R-1.pdf", PDF),
        part("text/html", kept, b"<p>Total 5.00 EUR"),
        part("text/csv", kept, b"Total;5.00"),
        part("text/plain", kept, b"a note"),
    ];
    let found = names(&mail("mixed", &parts));
    assert_eq!(found, ["R-1.pdf", "attachment.html", "attachment.csv"]);
    let encoded = BASE64_STANDARD.encode(PDF);
    let (start, end) = encoded.split_at(8);
    for body in [format!("{start}!\r\n*{end}"), format!("{encoded}\r\n\r\nScanned, no virus.")] {
        let stray = attached("R-2.pdf", PDF).replace(&encoded, &body);
        let members = opened(&mail("mixed", &[text("x"), stray])).unwrap();
        assert_eq!(members, [("R-2.pdf".to_owned(), PDF.to_vec())], "{body}");
    }
    let one = String::from_utf8(mail("mixed", &[attached("R-3.pdf", PDF)])).unwrap();
    let line = "From s@example.com Fri Nov 20 10:00:00 2026\r\n";
    let both = opened(format!("{line}{one}\r\n{line}{one}").as_bytes()).unwrap();
    assert_eq!(both.len(), 2);
    assert!(both.iter().all(|(_, mail)| names(mail) == ["R-3.pdf"]));
}

#[test]
fn a_part_that_is_declared_in_two_ways_is_refused() {
    for (headers, is_refused) in [
        ("Content-Disposition: attachment\r\n", false),
        ("Content-Disposition: attachment\r\nContent-Disposition: attachment\r\n", false),
        ("Content-Disposition: attachment\r\nContent-Disposition: inline\r\n", true),
        ("Content-Type: text/html\r\n", true),
        ("Content-Transfer-Encoding: quoted-printable\r\n", true),
    ] {
        let bytes = mail("mixed", &[text("x"), part("application/pdf", headers, PDF)]);
        match opened(&bytes) {
            Ok(members) => assert!(!is_refused && members.len() == 1, "{headers}"),
            Err(refusal) => {
                assert!(is_refused && refusal.reason == OutcomeReason::Corrupt, "{headers}");
            }
        }
    }
}

#[test]
fn names_of_members_are_decoded_and_harmless() {
    let parts = [
        attached("=?utf-8?B?UmVjaG51bmcgTsOkaGUucGRm?=", PDF),
        attached("../../etc/cron.d/x.pdf", PDF),
        attached("invoice\u{202e}fdp.exe", PDF),
        format!(
            "Content-Type: application/pdf\r\nContent-Disposition: attachment; \
             filename*=utf-8''%D9%81%D8%A7%D8%AA%D9%88%D8%B1%D8%A9.pdf\r\n\r\n{}\r\n",
            String::from_utf8_lossy(PDF)
        ),
    ];
    let found = names(&mail("mixed", &parts));
    assert_eq!(found, ["Rechnung Nähe.pdf", "x.pdf", "invoicefdp.exe", "فاتورة.pdf"]);
}

#[test]
fn a_mail_within_a_mail_is_one_member_however_it_is_encoded() {
    let inner = mail("mixed", &[attached("R-2.pdf", PDF)]);
    let plain = format!("Content-Type: message/rfc822\r\n\r\n{}", String::from_utf8_lossy(&inner));
    for part in [plain, part("message/rfc822", "", &inner), attached("inner.eml", &inner)] {
        let members = opened(&mail_cut("out", "mixed", &[part])).unwrap();
        assert_eq!(members.len(), 1);
        assert!(members[0].0.ends_with(".eml"), "{}", members[0].0);
        assert_eq!(names(&members[0].1), ["R-2.pdf"]);
    }
}

#[test]
fn a_signed_mail_is_taken_apart_and_one_of_a_single_document_stays_an_envelope() {
    let content =
        String::from_utf8(mail("mixed", &[text("Hallo"), attached("R-3.pdf", PDF)])).unwrap();
    let entity = content.split_once("MIME-Version: 1.0\r\n").unwrap().1;
    let signature = part("application/pkcs7-signature; name=\"smime.p7s\"", "", b"signature");
    let signed = format!(
        "From: s@example.com\r\nTo: b@example.com\r\nContent-Type: multipart/signed; \
         boundary=\"sig\"\r\n\r\n--sig\r\n{entity}\r\n--sig\r\n{signature}\r\n--sig--\r\n"
    );
    assert_eq!(names(signed.as_bytes()), ["R-3.pdf"]);
    let single = format!(
        "From: s@example.com\r\nContent-Type: multipart/signed; boundary=\"sig\"\r\n\r\n--sig\r\n{}\r\n\
         --sig\r\n{signature}\r\n--sig--\r\n",
        part("application/pdf", "", PDF)
    );
    let found = find_members(&single.into_bytes().into(), &limits()).unwrap();
    assert!(found.is_none(), "the document itself is read");
}

#[test]
fn an_archive_is_known_by_its_own_names_and_loses_no_file_of_two_with_one_name() {
    let letter = archive(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"<w/>")]);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in [("letter.docx", letter.as_slice()), ("R-1.pdf", PDF)] {
        writer.start_file(name, stored).unwrap();
        writer.write_all(content).unwrap();
    }
    let of_two = writer.finish().unwrap().into_inner();
    assert_eq!(names(&of_two), ["letter.docx", "R-1.pdf"]);
    assert!(find_members(&letter.into(), &limits()).unwrap().is_none());
    let same = archive(&[("R-1.pdf", PDF), ("R-2.pdf", b"%PDF-1.4 another")]);
    let at = memchr::memmem::find_iter(&same, b"R-2.pdf").collect::<Vec<_>>();
    let mut same_names = same.clone();
    at.iter().for_each(|at| same_names[at + 2] = b'1');
    assert_eq!((names(&same).len(), refused(&same_names)), (2, OutcomeReason::Corrupt));
}

#[test]
#[rustfmt::skip]
fn files_of_an_archive_are_members_and_litter_and_office_documents_are_not() {
    let zip = archive(&[("a/b/1.pdf", PDF), ("__MACOSX/._1.pdf", b"x"), ("../../2.pdf", PDF), ("Thumbs.db", b"x")]);
    assert_eq!(names(&zip), ["1.pdf", "2.pdf"]);
    for office in ["[Content_Types].xml", "META-INF/manifest.xml"] {
        let office = archive(&[(office, b"<x/>"), ("word/document.xml", b"<x/>")]);
        assert!(find_members(&office.into(), &limits()).unwrap().is_none());
    }
    let invoices = archive(&[("1.xml", b"<?xml version=\"1.0\"?><a/>"), ("2.xml", b"<?xml version=\"1.0\"?><b/>")]);
    assert_eq!(names(&invoices), ["1.xml", "2.xml"], "several invoices are no envelope");
}

/// An attribute of a `winmail.dat`.
fn attribute(id: u32, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2];
    bytes.extend(id.to_le_bytes());
    bytes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
    bytes.extend(value);
    bytes.extend([0, 0]);
    bytes
}

fn winmail(attachments: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"\x78\x9f\x3e\x22\x01\x00".to_vec();
    for (name, content) in attachments {
        bytes.extend(attribute(0x0006_9002, &[0; 14]));
        bytes.extend(attribute(0x0001_8010, b"SHORT~1.PDF\0"));
        bytes.extend(attribute(0x0006_800f, content));
        let mut properties = 1_u32.to_le_bytes().to_vec();
        properties.extend(0x1f_u16.to_le_bytes());
        properties.extend(0x3707_u16.to_le_bytes());
        let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        properties.extend(1_u32.to_le_bytes());
        properties.extend(u32::try_from(wide.len()).unwrap().to_le_bytes());
        properties.extend(&wide);
        properties.resize(properties.len().next_multiple_of(4), 0);
        bytes.extend(attribute(0x0006_9005, &properties));
    }
    bytes
}

#[test]
fn attachments_of_a_winmail_dat_are_members_with_their_long_names() {
    let stream = winmail(&[("Rechnung März.pdf", PDF), ("b.pdf", b"%PDF-1.4 b")]);
    let members = opened(&stream).unwrap();
    assert_eq!(members[0], ("Rechnung März.pdf".to_owned(), PDF.to_vec()));
    assert_eq!(members[1].0, "b.pdf");
    let in_mail = mail("mixed", &[part("application/ms-tnef; name=\"winmail.dat\"", "", &stream)]);
    assert_eq!(names(&in_mail), ["winmail.dat"]);
    assert_eq!(refused(&stream[..stream.len() - 5]), OutcomeReason::Corrupt);
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A message of Outlook's with an attachment, and a message attached to it with another.
fn outlook_message() -> Vec<u8> {
    let mut file = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    let nested = "/__attach_version1.0_#00000001/__substg1.0_3701000D";
    let folders = [
        "/__nameid_version1.0",
        "/__attach_version1.0_#00000000",
        "/__attach_version1.0_#00000001",
        nested,
        &format!("{nested}/__attach_version1.0_#00000000"),
    ];
    for folder in folders {
        file.create_storage(folder).unwrap();
    }
    let inner = format!("{nested}/__attach_version1.0_#00000000");
    for (path, content) in [
        ("/__attach_version1.0_#00000000/__substg1.0_37010102".to_owned(), PDF.to_vec()),
        ("/__attach_version1.0_#00000000/__substg1.0_3707001F".to_owned(), wide("Rechnung.pdf")),
        (format!("{inner}/__substg1.0_37010102"), b"%PDF-1.4 inner".to_vec()),
        (format!("{inner}/__substg1.0_3704001E"), b"inner.pdf".to_vec()),
    ] {
        file.create_stream(path).unwrap().write_all(&content).unwrap();
    }
    file.into_inner().into_inner()
}

#[test]
fn attachments_of_an_outlook_message_and_of_messages_in_it_are_members() {
    let message = outlook_message();
    assert_eq!(names(&message), ["Rechnung.pdf", "inner.pdf"]);
    let mut text = cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap();
    text.create_storage("/__nameid_version1.0").unwrap();
    for (path, content) in
        [("/__substg1.0_0037001F", wide("Beleg")), ("/__substg1.0_1000001F", wide("Summe: 5,00 €"))]
    {
        text.create_stream(path).unwrap().write_all(&content).unwrap();
    }
    assert_eq!(names(&text.into_inner().into_inner()), ["Beleg.txt"]);
    let other =
        cfb::CompoundFile::create(Cursor::new(Vec::new())).unwrap().into_inner().into_inner();
    assert_eq!(ContainerForm::sniff(&other), None, "an older Office document");
}

/// A PDF of one page with attached files: name, relation to the pages, content.
fn pdf_with(files: &[(&str, &str, &[u8])], is_portfolio: bool) -> Vec<u8> {
    let mut document = Document::with_version("1.7");
    let pages = document.new_object_id();
    let page = document.add_object(dictionary! {
        "Type" => "Page", "Parent" => pages,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
    });
    let tree = dictionary! { "Type" => "Pages", "Kids" => vec![page.into()], "Count" => 1 };
    document.objects.insert(pages, Object::Dictionary(tree));
    for (name, relation, content) in files {
        let stream = Stream::new(dictionary! { "Type" => "EmbeddedFile" }, content.to_vec());
        let stream = document.add_object(stream);
        document.add_object(dictionary! {
            "Type" => "Filespec", "UF" => Object::string_literal(*name),
            "AFRelationship" => Object::Name(relation.as_bytes().to_vec()),
            "EF" => dictionary! { "F" => stream },
        });
    }
    let mut catalog = dictionary! { "Type" => "Catalog", "Pages" => pages };
    if is_portfolio {
        catalog.set("Collection", dictionary! { "View" => "D" });
    }
    let catalog = document.add_object(catalog);
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn documents_attached_to_a_pdf_are_members_beside_its_pages_and_a_portfolio_has_no_pages() {
    let invoice = b"<?xml version=\"1.0\"?><Invoice xmlns=\"urn:oasis:names:specification:ubl:schema:xsd:Invoice-2\"/>";
    let files: [(&str, &str, &[u8]); 5] = [
        ("timesheet.pdf", "Supplement", PDF),
        ("letter.png", "Source", PNG),
        ("factur-x.xml", "Alternative", invoice),
        ("settings.joboptions", "Unspecified", b"<<"),
        ("again.pdf", "Supplement", PDF),
    ];
    for (is_portfolio, pages, expected) in [
        (false, 1, vec!["timesheet.pdf"]),
        (true, 0, vec!["timesheet.pdf", "letter.png", "factur-x.xml", "settings.joboptions"]),
    ] {
        let bytes = pdf_with(&files, is_portfolio);
        let document = open_with_members(bytes.into(), &limits(), 72, &[]).unwrap();
        let members = document.list_members();
        let mut found: Vec<&str> =
            members.iter().map(|member| member.name.as_deref().unwrap()).collect();
        found.sort_unstable();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!((document.page_count(), found), (pages, expected));
    }
    let many: Vec<Vec<u8>> = (0..=limits().container_members)
        .map(|number| format!("%PDF-1.4 {number}").into_bytes())
        .collect();
    for (count, taken) in [(many.len() - 1, many.len() - 1), (many.len(), 0)] {
        let attached: Vec<_> =
            many[..count].iter().map(|it| ("a.pdf", "Supplement", it.as_slice())).collect();
        let bytes = pdf_with(&attached, false).into();
        let document = open_with_members(bytes, &limits(), 72, &[]).unwrap();
        assert_eq!(
            (document.list_members().len(), document.leaves_members_out()),
            (taken, taken == 0)
        );
    }
    let plain = open_with_members(pdf_with(&[], false).into(), &limits(), 72, &[]).unwrap();
    assert_eq!((plain.page_count(), plain.list_members().len()), (1, 0));
}

#[test]
fn documents_within_an_e_invoice_are_members_beside_its_values() {
    let file = |id: &str, name: &str, content: &str| {
        format!(
            "<c:AdditionalDocumentReference><b:ID>{id}</b:ID><c:Attachment><b:EmbeddedDocumentBinaryObject filename='{name}'>\
             {content}</b:EmbeddedDocumentBinaryObject></c:Attachment></c:AdditionalDocumentReference>"
        )
    };
    let encoded = |content: &[u8]| BASE64_STANDARD.encode(content);
    let sound = [
        file("TS", "timesheet.pdf", &encoded(PDF)),
        file("R-1", "invoice.pdf", &encoded(PDF)),
        file("CSV", "rows.csv", &encoded(b"a;b")),
        file("XML", "same.xml", &encoded(b"<?xml version='1.0'?><a/>")),
        file("PIC", "../photo.png", &encoded(PNG)),
    ];
    let many: Vec<String> = (0..=limits().container_members)
        .map(|number| file("N", "n.pdf", &encoded(format!("%PDF-1.4 {number}").as_bytes())))
        .collect();
    for (files, expected, are_left_out) in [
        (String::new(), vec![], false),
        (sound.concat(), vec!["timesheet.pdf", "photo.png"], false),
        (
            format!("{}{}", sound.concat(), file("X", "cut.pdf", "JVBERi0x!")),
            vec!["timesheet.pdf", "photo.png"],
            true,
        ),
        (many.concat(), vec![], true),
    ] {
        let text = format!(
            "<?xml version='1.0'?><Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2' \
             xmlns:c='urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2' \
             xmlns:b='urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2'><b:ID>R-1</b:ID>{files}</Invoice>"
        );
        let document = open_with_members(text.into_bytes().into(), &limits(), 72, &[]).unwrap();
        let members = document.list_members();
        let found: Vec<&str> = members.iter().filter_map(|it| it.name.as_deref()).collect();
        assert_eq!((document.page_count(), found), (1, expected.clone()));
        assert_eq!(document.leaves_members_out(), are_left_out, "{expected:?}");
        if !expected.is_empty() {
            assert_eq!(document.member_content(0).unwrap(), PDF);
        }
    }
}

#[test]
fn a_container_over_a_limit_is_refused_as_a_whole_and_names_the_limit() {
    let many: Vec<(String, &[u8])> = (0..201).map(|n| (format!("{n}.pdf"), PDF)).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(name, pdf)| (name.as_str(), *pdf)).collect();
    let zeros = vec![0_u8; 40 << 20];
    let bomb = archive(&[("0.pdf", &zeros)]);
    let parts: Vec<String> = (0..201).map(|n| attached(&format!("{n}.pdf"), PDF)).collect();
    let separators = format!(
        "From: a@b\nTo: c@d\nContent-Type: multipart/mixed; boundary=x\n\n{}",
        "--x\n\n".repeat(100_000)
    );
    let nested = "Content-Type: message/rfc822\nMIME-Version: 1.0\nFrom: a@b\n\n".repeat(100_000);
    #[rustfmt::skip]
    let table = [
        ("an archive of 201 files",              archive(&many),            "container_members"),
        ("a mail with 201 attachments",          mail("mixed", &parts),     "container_members"),
        ("40 MiB of zeros in a small archive",   bomb,                      "100 times"),
        ("a mail of 100,000 parts",              separators.into_bytes(),   "20000 parts"),
        ("100,000 mails in each other",          nested.into_bytes(),       "64 mails"),
    ];
    for (name, bytes, limit) in table {
        let refusal = opened(&bytes).unwrap_err();
        assert_eq!(refusal.reason, OutcomeReason::TooLarge, "{name}: {}", refusal.detail);
        assert!(refusal.detail.contains(limit), "{name}: {}", refusal.detail);
    }
}

#[test]
fn an_archive_of_a_hundred_thousand_entries_is_not_read() {
    // Its end says so; nothing of the rest is true.
    let mut lying = archive(&[("1.pdf", PDF)]);
    let end = lying.len() - 22;
    lying[end + 8..end + 12].copy_from_slice(&[0xff; 4]);
    assert_eq!(refused(&lying), OutcomeReason::TooLarge);
}

#[test]
fn damaged_containers_are_refused_and_never_panic() {
    let whole = [
        mail("mixed", &[text("x"), attached("a.pdf", PDF)]),
        archive(&[("a.pdf", PDF), ("b.pdf", PDF)]),
        winmail(&[("a.pdf", PDF)]),
        outlook_message(),
    ];
    for bytes in whole {
        for cut in (0..bytes.len()).step_by(bytes.len().div_ceil(60)) {
            let outcome = std::panic::catch_unwind(|| opened(&bytes[..cut]));
            assert!(outcome.is_ok(), "cut at {cut} of {}", bytes.len());
        }
    }
}

#[test]
fn letters_tables_and_texts_are_no_mails() {
    for other in [
        &b"Total: 12 EUR\nDate: 2026-01-01\n"[..],
        b"name;amount\nx;1\n",
        b"Subject\n",
        PDF,
        PNG,
        b"",
    ] {
        assert_eq!(ContainerForm::sniff(other), None, "{}", String::from_utf8_lossy(other));
    }
    assert_eq!(
        ContainerForm::sniff(b"From x Thu Jan 1\nReceived: by a\nDate: x\n\n"),
        Some(ContainerForm::Mail)
    );
}
