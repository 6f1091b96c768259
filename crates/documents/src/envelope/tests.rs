//! Every envelope around the same document, and envelopes that lie.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use zip::write::SimpleFileOptions;

use super::*;
use crate::image::format::DocumentFormat;

const DOCUMENT: &[u8] = b"<?xml version='1.0'?><Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'><!-- long enough for base64 --></Invoice>";

const MAX_BYTES: u64 = 1 << 20;

/// An element of definite length.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x84], &length[..], content].concat()
}

/// An element of indefinite length.
fn ber(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag, 0x80], content, &[0, 0]].concat()
}

/// How an element is written.
type Writer = fn(u8, &[u8]) -> Vec<u8>;

/// Signed data around an octet string, in the order of RFC 5652 §5.1.
fn cms(write: Writer, kind: u8, octets: &[u8]) -> Vec<u8> {
    let oid = |number: u8| {
        der(0x06, &[&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07][..], &[number]].concat())
    };
    let content = if octets.is_empty() { Vec::new() } else { write(0xa0, octets) };
    let inner = write(0x30, &[oid(1), content].concat());
    let algorithm = write(0x30, &der(0x06, &[0x60, 0x86, 0x48]));
    let parts = [der(0x02, &[1]), write(0x31, &algorithm), inner, write(0x31, &[])].concat();
    write(0x30, &[oid(kind), write(0xa0, &write(0x30, &parts))].concat())
}

fn chunks(content: &[u8]) -> Vec<u8> {
    let pieces: Vec<u8> = content.chunks(7).flat_map(|piece| der(0x04, piece)).collect();
    ber(0x24, &pieces)
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let text = STANDARD.encode(bytes).into_bytes();
    text.chunks(64).flat_map(|line| [line, b"\r\n"].concat()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn pem(label: &str, bytes: &[u8]) -> Vec<u8> {
    let (begin, end) = (format!("-----BEGIN {label}-----\n"), format!("-----END {label}-----\n"));
    [begin.as_bytes(), &base64(bytes), end.as_bytes()].concat()
}

fn mail(head: &str, body: &[u8]) -> Vec<u8> {
    [head.as_bytes(), b"\r\n\r\n", body].concat()
}

fn open(bytes: Vec<u8>) -> Result<Bytes, PageRefusal> {
    let is_known = is_envelope(&bytes, DocumentFormat::is_bare_document);
    let read = open_envelopes(bytes.clone().into(), MAX_BYTES, DocumentFormat::is_bare_document);
    assert!(is_known || read.as_ref() == Ok(&Bytes::from(bytes)), "opened, but not recognised");
    read
}

const SIGNATURES: &[u8] = b"<Signature xmlns='http://www.w3.org/2000/09/xmldsig#'/>";

#[test]
#[rustfmt::skip]
fn a_document_is_the_same_in_every_envelope() {
    let signed = cms(der, 2, &der(0x04, DOCUMENT));
    let pkcs7 = "MIME-Version: 1.0\r\nContent-Type: application/x-pkcs7-mime;\r\n smime-type=signed-data\r\nContent-Transfer-Encoding: base64";
    let large = [DOCUMENT, &[b' '; 20_000]].concat();
    let clear = "Content-Type: Multipart/Signed; protocol=\"x\"; boundary=\"--=b\"";
    let part = |head: &str, body: &[u8]| {
        [b"text\r\n----=b\r\n", head.as_bytes(), b"\r\n\r\n", body, b"\r\n----=b\r\nContent-Type: x\r\n\r\nMII\r\n----=b--\r\n"]
        .concat()
    };
    let quoted: Vec<u8> =
        DOCUMENT.iter().flat_map(|byte| format!("={byte:02X}=\r\n").into_bytes()).collect();
    let romania = zip(&[("17.xml", DOCUMENT), ("semnatura_17.xml", SIGNATURES)]);
    for (name, bytes) in [
        ("none", DOCUMENT.to_vec()),
        ("CMS in DER", signed.clone()),
        ("CMS in BER", cms(ber, 2, &ber(0x24, &der(0x04, DOCUMENT)))),
        ("CMS in BER, in chunks", cms(ber, 2, &chunks(DOCUMENT))),
        ("CMS in DER with chunks of known length", cms(der, 2, &der(0x24, &der(0x04, DOCUMENT)))),
        ("chunks of chunks", cms(ber, 2, &ber(0x24, &chunks(DOCUMENT)))),
        ("bytes behind a signature", [signed.clone(), vec![0; 9]].concat()),
        ("two signatures", cms(ber, 2, &chunks(&signed))),
        ("PEM", pem("PKCS7", &signed)),
        ("PEM behind an explanation", [b"Subject: CN=A\r\n", &pem("CMS", &signed)[..]].concat()),
        ("base64", base64(&signed)),
        ("base64 of what is longer than its first bytes", base64(&base64(&cms(der, 2, &der(0x04, &large))))),
        ("base64 without an end", STANDARD.encode(&signed).trim_end_matches('=').into()),
        ("base64 twice", base64(&base64(&signed))),
        ("base64 of XML", [b"\xef\xbb\xbf", &base64(DOCUMENT)[..]].concat()),
        ("gzip", gzip(DOCUMENT)),
        ("a signature in gzip", gzip(&signed)),
        ("S/MIME", mail(pkcs7, &base64(&signed))),
        ("S/MIME in clear", mail(clear, &part("Content-Type: application/xml", DOCUMENT))),
        ("in clear and base64", mail(clear, &part("Content-Transfer-Encoding: Base64", &base64(DOCUMENT)))),
        ("in clear and quoted", mail(clear, &part("Content-Transfer-Encoding: quoted-printable", &quoted))),
        ("a ZIP", romania.clone()),
        ("as many as are opened", base64(&base64(&base64(&gzip(&base64(&romania)))))),
    ] {
        let read = open(bytes).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        assert_eq!(read.trim_ascii(), DOCUMENT, "{name}");
    }
}

#[test]
fn an_envelope_that_lies_or_holds_no_document_is_refused_by_name() {
    let octets = der(0x04, DOCUMENT);
    let signed = cms(ber, 2, &octets);
    let cut = |bytes: &[u8], share: usize| bytes.get(..bytes.len() * share / 8).unwrap().to_vec();
    let at = memchr::memmem::find(&signed, &octets[..6]).unwrap();
    let mut long = signed.clone();
    long[at + 2] = 0x7f;
    let mut endless = cms(ber, 2, &chunks(DOCUMENT));
    endless.truncate(endless.len() - 15);
    let deep = (0..40).fold(der(0x04, DOCUMENT), |inner, _| ber(0x24, &inner));
    let clear = "Content-Type: multipart/signed; boundary=b";
    let parts = b"--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n--b--\n";
    let seven = (0..7).fold(DOCUMENT.to_vec(), |inner, _| base64(&inner));
    let bomb = vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 1];
    let bomb = [DOCUMENT, &bomb[..]].concat();
    let many: Vec<(String, &[u8])> =
        (0..20).map(|n| (format!("{n}.xml"), if n == 0 { DOCUMENT } else { SIGNATURES })).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(name, it)| (name.as_str(), *it)).collect();
    #[rustfmt::skip]
    let table: Vec<(&str, Vec<u8>, OutcomeReason, &str)> = vec![
        ("a length beyond the end",    long,                                         OutcomeReason::Corrupt, "cut off"),
        ("cut in the content",         cut(&signed, 4),                              OutcomeReason::Corrupt, "cut off"),
        ("chunks without an end",      endless,                                      OutcomeReason::Corrupt, "cut off"),
        ("chunks 40 deep",             cms(ber, 2, &deep),                           OutcomeReason::Corrupt, "cut off"),
        ("a chunk that is no octets",  cms(ber, 2, &ber(0x24, &der(0x02, &[1]))),    OutcomeReason::Corrupt, "cut off"),
        ("encrypted",                  cms(ber, 3, &octets),                         OutcomeReason::Encrypted, "encrypted"),
        ("a digest",                   cms(ber, 5, &octets),                         OutcomeReason::UnsupportedType, "neither signed"),
        ("a signature alone",          cms(der, 2, &[]),                             OutcomeReason::UnsupportedType, "without the document"),
        ("the same in BER",            cms(ber, 2, &[]),                             OutcomeReason::UnsupportedType, "without the document"),
        ("seven times base64",         seven,                                        OutcomeReason::TooLarge, "more than 6 envelopes"),
        ("more than a document in gzip", gzip(&bomb),                                OutcomeReason::TooLarge, "document_bytes"),
        ("and in a ZIP",               zip(&[("a.xml", &bomb)]),                     OutcomeReason::TooLarge, "document_bytes"),
        ("and signed",                 cms(der, 2, &der(0x04, &bomb)),               OutcomeReason::TooLarge, "document_bytes"),
        ("gzip cut off",               cut(&gzip(DOCUMENT), 7),                      OutcomeReason::Corrupt, "gzip"),
        ("a ZIP cut off",              cut(&zip(&[("a.xml", DOCUMENT)]), 7),         OutcomeReason::Corrupt, "ZIP"),
        ("a ZIP of two documents",     zip(&[("a.xml", DOCUMENT), ("b.xml", b"<b/>")]), OutcomeReason::UnsupportedType, "several"),
        ("a ZIP of signatures",        zip(&[("a.xml", SIGNATURES)]),                OutcomeReason::UnsupportedType, "without a document"),
        ("a ZIP of many files",        zip(&many),                                   OutcomeReason::UnsupportedType, "more than 16"),
        ("base64 that ends as text",   [&base64(&[DOCUMENT, &[b' '; 9000]].concat())[..], b"!"].concat(), OutcomeReason::Corrupt, "base64"),
        ("PEM without an end",         cut(&pem("CMS", &signed), 7),                 OutcomeReason::Corrupt, "PEM"),
        ("a mail of several parts",    mail(clear, parts),                           OutcomeReason::UnsupportedType, "several parts"),
        ("a mail without its parts",   mail(clear, b"--c\n\n--c\n"),                 OutcomeReason::Corrupt, "mail"),
    ];
    for (name, bytes, reason, words) in table {
        let refused = open(bytes).err().unwrap_or_else(|| panic!("{name} was opened"));
        assert_eq!(refused.reason, reason, "{name}: {refused}");
        assert!(refused.detail.contains(words), "{name}: {refused}");
    }
}

#[test]
fn files_that_only_resemble_an_envelope_are_left_as_they_are() {
    let mixed = b"From: a@b.example\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n";
    for (name, bytes) in [
        (
            "an Office document",
            zip(&[("[Content_Types].xml", DOCUMENT), ("word/document.xml", DOCUMENT)]),
        ),
        ("a folder in a ZIP", zip(&[("a/b.xml", DOCUMENT)])),
        ("a ZIP of a PDF", zip(&[("a.pdf", b"%PDF-1.7")])),
        ("an archive in gzip", gzip(&[b'a'; 600])),
        ("a word", b"Invoice".to_vec()),
        ("a text in the letters of base64", vec![b'A'; 400]),
        ("a certificate as PEM", pem("CERTIFICATE", DOCUMENT)),
        ("PEM far behind its first lines", [vec![b'\n'; 1024], pem("CMS", DOCUMENT)].concat()),
        ("a mail", mixed.to_vec()),
        ("another sequence", der(0x30, &der(0x06, &[0x55, 0x1d, 0x0e]))),
    ] {
        assert!(!is_envelope(&bytes, DocumentFormat::is_bare_document), "{name}");
        assert_eq!(open(bytes.clone()), Ok(bytes.into()), "{name}");
    }
}
