//! Mails: attachments and attached mails are members; the text is one only if nothing else is a
//! document and it states an amount. A part is known by its bytes, whatever type it names. Of
//! alternatives, HTML counts before plain text, as mail programs show it; its page is doubtful
//! where the plain text states other amounts. Mails of a mailbox file are members each.

use std::collections::BTreeSet;

use docmill_office::OfficeFormat;
use mail_parser::{
    Encoding, HeaderName, Message, MessageParser, MessagePart, MimeHeaders as _, PartType,
};

use super::{MemberCollector, mail_text};
use crate::envelope;
use crate::image::format::DocumentFormat;
use crate::refusal::PageRefusal;
use docmill_core::model::OutcomeReason;

/// How long the headers of a mail may be; later ones do not count.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Lines that may separate parts: a part takes some hundred bytes of memory.
const MAX_SEPARATORS: usize = 20_000;
/// Mails within mails as they lie there, and digests: each is parsed within the one around it.
const MAX_NESTED_MAILS: usize = 64;
/// Pictures in the text below this size are decoration: logos, icons, counters.
const MAX_DECORATION_BYTES: usize = 64 << 10;

/// Header fields of a mail; two of them, one of the first [`OF_MAIL`], make one.
const KNOWN: [&[u8]; 14] = [
    b"from",
    b"received",
    b"return-path",
    b"delivered-to",
    b"message-id",
    b"to",
    b"subject",
    b"date",
    b"mime-version",
    b"content-type",
    b"reply-to",
    b"cc",
    b"content-transfer-encoding",
    b"content-disposition",
];
const OF_MAIL: usize = 5;
/// The beginning of a mail within a mailbox file.
const BOX_LINE: &[u8] = b"\nFrom ";
/// Header fields of a part of a mail, which has no others.
const OF_PART: [&[u8]; 2] = [b"content-transfer-encoding", b"content-disposition"];

/// Header fields that describe a part's content.
const OF_CONTENT: [HeaderName<'static>; 3] =
    [HeaderName::ContentType, HeaderName::ContentTransferEncoding, HeaderName::ContentDisposition];

/// Parts that are no documents: signatures, appointments, cards, reports of delivery.
const IGNORED: [(&str, &str); 11] = [
    ("application", "pkcs7-signature"),
    ("application", "x-pkcs7-signature"),
    ("application", "pgp-signature"),
    ("application", "pgp-keys"),
    ("application", "applefile"),
    ("text", "calendar"),
    ("text", "vcard"),
    ("text", "x-vcard"),
    ("text", "rfc822-headers"),
    ("message", "delivery-status"),
    ("message", "disposition-notification"),
];

/// Whether it begins with the header of a mail, or of a part of one.
pub(super) fn is_mail(bytes: &[u8]) -> bool {
    let window = bytes.get(..MAX_HEADER_BYTES).unwrap_or(bytes);
    let window = window.strip_prefix(b"\xef\xbb\xbf").unwrap_or(window);
    let (mut known, mut is_multipart) = ([false; KNOWN.len()], false);
    for (number, line) in window.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        // The first line of a mailbox, and a line that continues the one before.
        if (number == 0 && line.starts_with(b"From "))
            || line.starts_with(b" ")
            || line.starts_with(b"\t")
        {
            continue;
        }
        let Some(colon) = memchr::memchr(b':', line) else { return false };
        let (name, value) = line.split_at(colon);
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return false;
        }
        let name = name.to_ascii_lowercase();
        if let Some(at) = KNOWN.iter().position(|known| *known == name.as_slice())
            && let Some(seen) = known.get_mut(at)
        {
            *seen = true;
        }
        let value = value.to_ascii_lowercase();
        is_multipart |=
            name == b"content-type" && memchr::memmem::find(&value, b"multipart/").is_some();
    }
    let has = |name: &[u8]| KNOWN.iter().zip(known).any(|(field, seen)| seen && *field == name);
    let of_mail = known.iter().take(OF_MAIL).any(|seen| *seen);
    let count = known.iter().filter(|seen| **seen).count();
    let is_part = has(b"content-type") && OF_PART.iter().any(|name| has(name));
    (of_mail && count > 1) || is_multipart || is_part
}

/// The members of a mail.
pub(super) fn add_members(
    bytes: &[u8],
    found: &mut MemberCollector<'_>,
) -> Result<(), PageRefusal> {
    let stored = mails_of_box(bytes);
    if stored.len() > 1 {
        return stored.into_iter().try_for_each(|it| found.add(Some("message.eml"), it.to_vec()));
    }
    check_bounds(bytes)?;
    let mail = MessageParser::default().parse(bytes);
    let mail =
        mail.ok_or_else(|| PageRefusal::new(OutcomeReason::Corrupt, "a mail that is damaged"))?;
    refuse_two_declarations(bytes, &mail)?;
    for id in &mail.attachments {
        if let Some(part) = mail.part(*id) {
            add_part(bytes, part, found)?;
        }
    }
    for id in mail.text_body.iter().chain(&mail.html_body).collect::<BTreeSet<_>>() {
        let part = mail.part(*id).filter(|_| !mail.attachments.contains(id));
        if let Some((part, content)) = part.and_then(|part| Some((part, signed_text(bytes, part)?)))
        {
            found.add(part.attachment_name(), content)?;
        }
    }
    if found.has_pictures_alone() { add_text(&mail, found) } else { Ok(()) }
}

/// The mails of a mailbox file (RFC 4155): each behind a line of its sender and time.
fn mails_of_box(bytes: &[u8]) -> Vec<&[u8]> {
    let mut mails = Vec::new();
    let mut rest = bytes;
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(rest.get(from..).unwrap_or_default(), BOX_LINE) {
        let (mail, next) = rest.split_at(from + at + 1);
        let line = next.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_behind_blank = mail.ends_with(b"\n\n") || mail.ends_with(b"\n\r\n");
        if is_behind_blank && line.contains(&b':') && is_mail(next) {
            mails.push(mail);
            (rest, from) = (next, 0);
        } else {
            from += at + 1;
        }
    }
    mails.push(rest);
    if bytes.starts_with(b"From ") { mails } else { Vec::new() }
}

/// The bytes of a part declared as text that contains another format.
fn signed_text(mail: &[u8], part: &MessagePart<'_>) -> Option<Vec<u8>> {
    let (PartType::Text(text) | PartType::Html(text)) = &part.body else { return None };
    Some(raw_text(mail, part, text)).filter(|content| is_signed_document(content))
}

/// Whether the bytes have the signature of a document format; text and web pages have none.
fn is_signed_document(bytes: &[u8]) -> bool {
    let form = DocumentFormat::sniff_bare(bytes);
    form.is_some_and(|form| {
        use OfficeFormat::{Csv, Html, Text};
        !matches!(form, DocumentFormat::Office(Html | Csv | Text))
    })
}

/// The parser is asked for no more than it takes with little memory.
fn check_bounds(bytes: &[u8]) -> Result<(), PageRefusal> {
    let separators = memchr::memmem::find_iter(bytes, b"\n--").take(MAX_SEPARATORS + 1).count();
    let lower = bytes.to_ascii_lowercase();
    let mut nested = 0;
    for word in [&b"rfc822"[..], b"/global", b"/digest"] {
        nested += memchr::memmem::find_iter(&lower, word).take(MAX_NESTED_MAILS + 1).count();
    }
    if separators > MAX_SEPARATORS || nested > MAX_NESTED_MAILS {
        let detail = format!(
            "a mail of more than {MAX_SEPARATORS} parts, or with more than {MAX_NESTED_MAILS} mails in it"
        );
        return Err(PageRefusal::new(OutcomeReason::TooLarge, detail));
    }
    Ok(())
}

fn add_part(
    mail: &[u8],
    part: &MessagePart<'_>,
    found: &mut MemberCollector<'_>,
) -> Result<(), PageRefusal> {
    let name = part.attachment_name();
    if IGNORED.iter().any(|(kind, sort)| part.is_content_type(kind, sort))
        && !is_signed_document(part.contents())
    {
        return Ok(());
    }
    if let Some(content) = mended_base64(mail, part) {
        return found.add(name.or(usual_name(part)), content);
    }
    match &part.body {
        PartType::Message(nested) => {
            let own = nested.subject().map(|subject| format!("{subject}.eml"));
            let content = match part.encoding {
                Encoding::None => raw_part(mail, part).to_vec(),
                _ => nested.raw_message.to_vec(),
            };
            found.add(name.or(own.as_deref()).or(Some("message.eml")), content)
        }
        // Other text without a name belongs to the text of the mail.
        PartType::Text(text) | PartType::Html(text) => match name {
            Some(name) => found.add(Some(name), raw_text(mail, part, text)),
            None if is_attached_text(part, text) => {
                found.add(usual_name(part), raw_text(mail, part, text))
            }
            None => signed_text(mail, part).map_or(Ok(()), |content| found.add(None, content)),
        },
        PartType::Binary(content) | PartType::InlineBinary(content) => {
            if is_decoration(part, content.len()) {
                return Ok(());
            }
            let usual = usual_name(part);
            found.add(name.or(usual), content.to_vec())
        }
        PartType::Multipart(_) => Ok(()),
    }
}

/// The bytes of a part as they lie in the mail.
fn raw_part<'a>(mail: &'a [u8], part: &MessagePart<'_>) -> &'a [u8] {
    let [start, end] = [part.raw_body_offset(), part.raw_end_offset()]
        .map(|offset| usize::try_from(offset).unwrap_or(usize::MAX));
    mail.get(start..end.max(start)).unwrap_or_default()
}

/// Whether a text without a name was attached as a document: a table, or one that states an amount.
fn is_attached_text(part: &MessagePart<'_>, text: &str) -> bool {
    part.content_disposition().is_some_and(|it| it.is_attachment())
        && (part.is_content_type("text", "csv") || mail_text::states_amount(text))
}

/// The document of a part in base64 that the parser does not decode: characters that are none of
/// base64, and what follows its end, do not count (RFC 2045 §6.8).
fn mended_base64(mail: &[u8], part: &MessagePart<'_>) -> Option<Vec<u8>> {
    let encoding = part.content_transfer_encoding().filter(|_| part.is_encoding_problem)?;
    if !encoding.eq_ignore_ascii_case("base64") {
        return None;
    }
    let mut letters = raw_part(mail, part).to_vec();
    letters.retain(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
    let body = letters.iter().take_while(|byte| **byte != b'=').count();
    let padding = letters.iter().skip(body).take_while(|byte| **byte == b'=').count();
    letters.truncate(body + padding);
    let is_whole = letters.len().is_multiple_of(4);
    let content = envelope::decode_base64(&letters).ok().filter(|_| is_whole)?;
    is_signed_document(&content).then_some(content)
}

/// An attached text as it was attached: what it states about its letters holds. `text`: as the parser
/// has decoded it.
fn raw_text(mail: &[u8], part: &MessagePart<'_>, text: &str) -> Vec<u8> {
    let raw = raw_part(mail, part);
    match part.encoding {
        Encoding::None => raw.to_vec(),
        Encoding::QuotedPrintable => envelope::decode_quoted(raw),
        Encoding::Base64 => {
            envelope::decode_base64(raw).unwrap_or_else(|_damaged| mail_text::as_file(text))
        }
    }
}

/// Whether bytes are those of a picture that is too small for a document.
pub(super) fn is_small_picture(bytes: &[u8]) -> bool {
    use DocumentFormat::{Avif, Bmp, Gif, Heic, Jpeg, JpegXl, Png, WebP};
    bytes.len() < MAX_DECORATION_BYTES
        && matches!(
            DocumentFormat::sniff_bare(bytes),
            Some(Avif | Bmp | Gif | Heic | Jpeg | JpegXl | Png | WebP)
        )
}

/// Whether it is a small picture within the text.
fn is_decoration(part: &MessagePart<'_>, bytes: usize) -> bool {
    let is_picture = part.content_type().is_some_and(|it| it.ctype().eq_ignore_ascii_case("image"));
    let disposition = part.content_disposition();
    let is_attached =
        disposition.is_some_and(|it| it.is_attachment()) && part.content_id().is_none();
    is_picture && !is_attached && bytes < MAX_DECORATION_BYTES
}

/// The name of a part without one.
fn usual_name(part: &MessagePart<'_>) -> Option<&'static str> {
    let subtype = part.content_type()?.subtype()?.to_ascii_lowercase();
    Some(match subtype.as_str() {
        "pdf" => "attachment.pdf",
        "png" => "attachment.png",
        "jpeg" | "jpg" => "attachment.jpg",
        "tiff" => "attachment.tif",
        "heic" | "heif" => "attachment.heic",
        "jxl" => "attachment.jxl",
        "xml" => "attachment.xml",
        "zip" | "x-zip-compressed" => "attachment.zip",
        "pkcs7-mime" | "x-pkcs7-mime" => "smime.p7m",
        "ms-tnef" | "vnd.ms-tnef" => "winmail.dat",
        "html" => "attachment.html",
        "csv" => "attachment.csv",
        "plain" => "attachment.txt",
        _ => return None,
    })
}

/// The text of the mail as programs show it: HTML, and plain text without an HTML beside it. Pieces
/// between which pictures stand are one text.
fn add_text(mail: &Message<'_>, found: &mut MemberCollector<'_>) -> Result<(), PageRefusal> {
    let name = mail.subject().unwrap_or("mail");
    let (mut shown, mut web, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for part in mail.html_bodies() {
        match &part.body {
            PartType::Html(text) => {
                shown.push(text.to_string());
                web.push(text.as_ref());
            }
            PartType::Text(text) => {
                shown.push(mail_text::as_web_text(text));
                plain.push(text.as_ref());
            }
            _ => {}
        }
    }
    let (shown, web, plain) = (shown.join("\n"), web.join("\n"), plain.join("\n"));
    if !mail_text::states_amount(&shown) {
        return Ok(());
    }
    if web.is_empty() {
        return found.add(Some(&format!("{name}.txt")), mail_text::as_plain_file(&plain));
    }
    let other = plain_forms(mail).collect::<Vec<_>>().join("\n");
    let content = match mail_text::contradicts(&other, &web) {
        true => mail_text::as_doubtful_file(&shown),
        false => mail_text::as_file(&shown),
    };
    found.add(Some(&format!("{name}.html")), content)
}

/// The plain texts, for programs that do not show HTML.
fn plain_forms<'m>(mail: &'m Message<'_>) -> impl Iterator<Item = &'m str> {
    let alone = mail.text_body.iter().filter(|id| !mail.html_body.contains(id));
    alone.filter_map(|id| match &mail.part(*id)?.body {
        PartType::Text(text) => Some(text.as_ref()),
        _ => None,
    })
}

/// Mail programs differ in which of two declarations of a part they follow, and so in the document
/// that they show.
fn refuse_two_declarations(bytes: &[u8], mail: &Message<'_>) -> Result<(), PageRefusal> {
    for part in &mail.parts {
        let mut declared: Vec<(&HeaderName<'_>, &[u8])> = Vec::new();
        for header in part.headers.iter().filter(|it| OF_CONTENT.contains(&it.name)) {
            let [start, end] = [header.offset_start, header.offset_end]
                .map(|offset| usize::try_from(offset).unwrap_or(usize::MAX));
            let value = bytes.get(start..end.max(start)).unwrap_or_default().trim_ascii();
            match declared.iter().find(|(name, _)| **name == header.name) {
                None => declared.push((&header.name, value)),
                Some((_, other)) if *other == value => {}
                Some(_) => {
                    let detail = format!("a mail with a part of two {}", header.name.as_str());
                    return Err(PageRefusal::new(OutcomeReason::Corrupt, detail));
                }
            }
        }
    }
    Ok(())
}
