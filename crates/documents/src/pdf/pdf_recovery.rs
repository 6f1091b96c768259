//! Recovery of a damaged PDF: bytes that the parser can open.
//!
//! Nothing is decoded and nothing before the damage moves, so every other check of the file still
//! holds. Three repairs, each linear in the file: an end for a stream that is cut off, an empty
//! array in place of one that nests too deep, and a new page tree over the remaining page objects.
//! Not covered: pages inside object streams or of encrypted files; anything inherited from a lost
//! page tree.

use bytes::Bytes;
use memchr::memmem;

/// Keyword after the objects of a complete file (PDF 32000-1 §7.5.5).
const END_MARKS: [&[u8]; 3] = [b"trailer", b"startxref", b"%%EOF"];
/// The keyword that begins an object.
const OBJECT: &[u8] = b" obj";
/// More brackets than this that open at once are no data; the parser gives up at twice as many.
const MAX_NESTING: usize = 256;
/// How much of an object is taken for a page's dictionary.
const MAX_DICTIONARY_BYTES: usize = 16 << 10;
/// Trailers of a file that are searched for its encryption.
const MAX_TRAILERS: usize = 16;
/// Object numbers of the new tree: the largest that are allowed (PDF 32000-1 annex C).
const NEW_TREE: u32 = 8_388_606;
const NEW_ROOT: u32 = 8_388_607;

/// Whether the file ends among its objects. (A file without any object ends nowhere.)
pub(crate) fn is_cut_off(bytes: &[u8]) -> bool {
    let last_mark = END_MARKS.iter().filter_map(|mark| memmem::rfind(bytes, mark)).max();
    memmem::rfind(bytes, b" obj").is_some_and(|object| last_mark < Some(object))
}

/// Closes the stream that the file ends in, so that as much of it can be decoded as is there.
/// `None` if it does not end in one.
pub(crate) fn close_last_stream(bytes: &[u8]) -> Option<Bytes> {
    let opened = memmem::rfind_iter(bytes, b"stream").next()?;
    let closes = bytes.get(..opened).is_some_and(|before| before.ends_with(b"end"));
    (!closes).then(|| [bytes, b"\nendstream\nendobj\n"].concat().into())
}

/// Empties arrays that nest too deep for the parser, blank for bracket. `None` if there are none,
/// or if one is never closed.
pub(crate) fn flatten_arrays(bytes: &[u8]) -> Option<Bytes> {
    let too_deep = vec![b'['; MAX_NESTING];
    let mut flat = Vec::with_capacity(bytes.len());
    while let Some(found) = bytes.get(flat.len()..).and_then(|rest| memmem::find(rest, &too_deep)) {
        let start = flat.len() + found;
        let mut open = 0_usize;
        let length = bytes.get(start..)?.iter().position(|byte| {
            match byte {
                b'[' => open += 1,
                b']' => open -= 1,
                _ => {}
            }
            open == 0
        })?;
        flat.extend_from_slice(bytes.get(flat.len()..=start)?);
        flat.resize(start + length, b' ');
        flat.push(b']');
    }
    if flat.is_empty() {
        return None;
    }
    flat.extend_from_slice(bytes.get(flat.len()..)?);
    Some(flat.into())
}

/// Adds a page tree over all remaining page objects, in their order, at most one more than `limit`.
/// `None` if there are none or if the file is encrypted.
pub(crate) fn rebuild_page_tree(bytes: &[u8], limit: u32) -> Option<Bytes> {
    if memmem::find(bytes, b"/Encrypt").is_some() {
        return None;
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_add(1);
    let mut pages: Vec<(u32, u32)> = Vec::new();
    let mut known = std::collections::HashSet::new();
    for at in memmem::find_iter(bytes, OBJECT) {
        if pages.len() == most {
            break;
        }
        let name = bytes.get(..at).and_then(object_name);
        let body = object_body(bytes, at + OBJECT.len());
        match name {
            Some(name) if is_page(body) && known.insert(name) => pages.push(name),
            _ => {}
        }
    }
    if pages.is_empty() {
        return None;
    }
    let count = pages.len();
    let kids: Vec<String> =
        pages.iter().map(|(number, generation)| format!("{number} {generation} R")).collect();
    let kids = kids.join(" ");
    // A start of the table that leads nowhere makes the parser search the file for its objects. A4
    // is for pages that inherited their size.
    let tree = format!(
        "\n{NEW_TREE} 0 obj\n<</Type/Pages/Count {count}/Kids[{kids}]/MediaBox[0 0 595 842]>>\nendobj\n\
         {NEW_ROOT} 0 obj\n<</Type/Catalog/Pages {NEW_TREE} 0 R>>\nendobj\n\
         trailer\n<</Size {size}/Root {NEW_ROOT} 0 R>>\nstartxref\n0\n%%EOF\n",
        size = NEW_ROOT + 1,
    );
    Some([bytes, tree.as_bytes()].concat().into())
}

/// Whether the file is declared encrypted: by a dictionary that names a handler, or by a reference
/// to one.
pub(crate) fn names_encryption(bytes: &[u8]) -> bool {
    const KEY: &[u8] = b"/Encrypt";
    // One in each revision of the file; more are no trailers.
    memmem::find_iter(bytes, KEY).take(MAX_TRAILERS).any(|at| {
        let value = bytes.get(at + KEY.len()..).unwrap_or_default().trim_ascii_start();
        let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let Some(number) = value.get(..digits).filter(|number| !number.is_empty()) else {
            return names_handler(value.get(..MAX_DICTIONARY_BYTES).unwrap_or(value));
        };
        memmem::find_iter(bytes, b" 0 obj").any(|at| {
            let before = bytes.get(..at).unwrap_or_default();
            let own = before.len().checked_sub(1 + number.len()).and_then(|at| before.get(at));
            let is_named = before.ends_with(number) && !own.is_some_and(u8::is_ascii_digit);
            is_named && names_handler(object_body(bytes, at + b" 0 obj".len()))
        })
    })
}

/// As much of an object as is taken for its dictionary: up to the next object, so that looking at
/// all of them is looking at the file once.
fn object_body(bytes: &[u8], start: usize) -> &[u8] {
    let body = bytes.get(start..).unwrap_or_default();
    let body = body.get(..MAX_DICTIONARY_BYTES).unwrap_or(body);
    body.get(..memmem::find(body, OBJECT).unwrap_or(body.len())).unwrap_or_default()
}

/// Whether `from` begins with an encryption dictionary.
fn names_handler(from: &[u8]) -> bool {
    let from = from.trim_ascii_start();
    let end = memmem::find(from, b"endobj").unwrap_or(from.len());
    let filter = memmem::find(from.get(..end).unwrap_or_default(), b"/Filter");
    from.starts_with(b"<<") && filter.is_some()
}

/// The number and the generation at the end of `before`.
fn object_name(before: &[u8]) -> Option<(u32, u32)> {
    let line = before.get(before.len().saturating_sub(20)..)?;
    let mut numbers = line
        .rsplit(|byte| !byte.is_ascii_digit())
        .map(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
    let (generation, number) = (numbers.next()??, numbers.next()??);
    (number > 0 && number < NEW_TREE && generation <= 65_535).then_some((number, generation))
}

/// Whether an object that starts with `body` is a page: a dictionary of `/Type /Page`.
fn is_page(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    let end = memmem::find(body, b"endobj").unwrap_or(body.len());
    let body = body.get(..end).unwrap_or_default();
    let mut types = memmem::find_iter(body, b"/Type");
    body.starts_with(b"<<")
        && types.any(|at| {
            let value = body.get(at + b"/Type".len()..).unwrap_or_default().trim_ascii_start();
            let after = value.strip_prefix(b"/Page");
            after.is_some_and(|rest| !rest.first().is_some_and(u8::is_ascii_alphanumeric))
        })
}

#[cfg(test)]
mod tests {
    use crate::document::open_document;
    use crate::page::PageContent;
    use docmill_core::config::LimitsConfig;
    use docmill_core::model::OutcomeReason;

    const FONT: &str = "5 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>\nendobj\n";
    const TREE: &str = "1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n\
                        2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n";

    /// A page and its font, `extra` in its dictionary.
    fn page(number: u32, contents: u32, extra: &str) -> String {
        format!(
            "{number} 0 obj\n<</Type /Page/Parent 2 0 R/Contents {contents} 0 R\
             /Resources<</Font<</F1 5 0 R>>>>{extra}>>\nendobj\n"
        )
    }

    fn contents(number: u32, text: &str) -> String {
        let program = format!("BT /F1 12 Tf 60 700 Td ({text}) Tj ET");
        let length = program.len();
        format!("{number} 0 obj\n<</Length {length}>>\nstream\n{program}\nendstream\nendobj\n")
    }

    fn end() -> &'static str {
        "trailer\n<</Size 9/Root 1 0 R>>\nstartxref\n0\n%%EOF\n"
    }

    /// The text of each page, and whether the file is known to be cut.
    fn read(file: &str) -> Result<(Vec<String>, bool), OutcomeReason> {
        let document = open_document(file.to_owned().into(), &LimitsConfig::default(), 100)
            .map_err(|refused| refused.reason)?;
        let text = |index| match document.page_content(index).unwrap() {
            PageContent::Text { lines, .. } => {
                let words = lines.iter().flat_map(|line| &line.words);
                words.map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
            }
            other => format!("{other:?}"),
        };
        Ok(((0..document.page_count()).map(text).collect(), document.is_cut()))
    }

    #[test]
    fn the_rest_of_a_damaged_file_is_read_and_a_truncated_file_is_marked_cut() {
        let first = [page(3, 4, ""), contents(4, "Invoice 4711")].concat();
        let second = [page(6, 7, ""), contents(7, "Total 120.00")].concat();
        let media = "/MediaBox[0 0 595 842]";
        let whole = [TREE, FONT, &first, end()].concat();
        let in_stream = format!("{TREE}{FONT}{first}");
        let in_stream = in_stream.split("ET\nendstream").next().unwrap();
        let deep = |depth: usize| format!("/X {}{}", "[".repeat(depth), "]".repeat(depth));
        let deep_page = |depth| [page(3, 4, &[media, &deep(depth)].concat())].concat();
        let deep_file =
            |depth| [TREE, FONT, &deep_page(depth), &contents(4, "Invoice 4711"), end()].concat();
        let never_closed = deep_file(9000).replace(']', " ");
        let locked = format!("{FONT}{first}trailer\n<</Encrypt 8 0 R>>\n");
        let handler = "8 0 obj\n<</Filter/Adobe.PubSec/V 4>>\nendobj\n";
        let one = vec!["Invoice 4711".to_owned()];
        let two = vec!["Invoice 4711".to_owned(), "Total 120.00".to_owned()];
        #[rustfmt::skip]
        let table = [
            ("a whole file",               whole,                              Ok((one.clone(), false))),
            ("cut behind its objects",     [TREE, FONT, &first].concat(),      Ok((one.clone(), true))),
            ("cut inside a stream",        in_stream.to_owned(),               Ok((one.clone(), true))),
            ("the tree and the rest lost", [FONT, &first, &second].concat(),   Ok((two, true))),
            ("the tree lost, but an end",  [FONT, &first, end()].concat(),     Ok((one.clone(), true))),
            ("arrays nested too deep",     deep_file(9000),                    Ok((one.clone(), false))),
            ("arrays nested deep",         deep_file(100),                     Ok((one, false))),
            ("brackets never closed",      never_closed,                       Err(OutcomeReason::Corrupt)),
            ("encrypted, it says, but not how", locked.clone(),                Err(OutcomeReason::Corrupt)),
            ("encrypted, the tree lost",   [handler, &locked].concat(),        Err(OutcomeReason::Encrypted)),
            ("encrypted in the trailer",   locked.replace("8 0 R", "<</Filter/Standard>>"), Err(OutcomeReason::Encrypted)),
            ("objects but no page",        FONT.to_owned(),                    Err(OutcomeReason::Corrupt)),
        ];
        for (name, file, expected) in table {
            let file = format!("%PDF-1.7\n{file}");
            assert_eq!(read(&file), expected, "{name}");
        }
    }

    #[test]
    fn listing_pages_stops_at_one_more_than_the_limit() {
        let pages: String = (10..40).map(|number| page(number, 4, "")).collect();
        let limits = LimitsConfig { pages: 7, ..LimitsConfig::default() };
        let refused = open_document(format!("%PDF-1.7\n{pages}").into(), &limits, 100).unwrap_err();
        assert_eq!(refused.reason, OutcomeReason::TooLarge);
        assert_eq!(refused.detail, "8 pages, limits.pages is 7");
    }
}
