//! The index of a workspace: one work group per line, as rows of comma-separated values, in one
//! zstd frame that declares its content's size.
//!
//! olmOCR splits into lines before it interprets quotes, strips each line, and decodes exactly one
//! frame of known size. Content that it would misread is refused both ways: such a path is not
//! written, such an index is not read.

use std::collections::{BTreeMap, BTreeSet};

use super::group_hash;
use docmill_core::fault::{Error, Fault, Result};

/// The largest index; bytes before compression.
pub(crate) const MAX_INDEX_BYTES: u64 = 1 << 30;
/// The zstd compression level that olmOCR uses.
const LEVEL: i32 = 3;

/// Documents that are worked on together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkGroup {
    /// SHA-1 over the paths.
    pub hash: String,
    /// Local paths and `s3://` addresses.
    pub paths: Vec<String>,
}

/// All groups, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkIndex {
    /// The groups; no two have one hash.
    pub groups: Vec<WorkGroup>,
}

/// The reason why a path cannot be in an index, if there is one.
pub fn path_problem(path: &str) -> Option<&'static str> {
    // Where Python splits lines, locally or on S3.
    const BREAKS: [char; 10] = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}',
        '\u{2029}',
    ];
    if path.is_empty() {
        Some("an empty path")
    } else if path.contains(BREAKS) {
        Some("it has a line break, which olmOCR's index cannot hold")
    } else if path.ends_with(char::is_whitespace) {
        Some("it ends in white space, which olmOCR's index loses")
    } else {
        None
    }
}

impl WorkIndex {
    /// Reads an index.
    ///
    /// # Errors
    /// Rejected, with what is wrong: torn, of no stated size, more than one frame, above
    /// `MAX_INDEX_BYTES`, no UTF-8, a line without a hash.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let text = decompress_index(bytes)?;
        let mut groups: Vec<WorkGroup> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for (number, line) in text.split('\n').enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let mut fields = fields_of(line).into_iter();
            let hash = fields.next().filter(|hash| is_hash(hash));
            let hash = hash.ok_or_else(|| {
                broken_index_error(&format!(
                    "line {} does not begin with a group's hash",
                    number + 1
                ))
            })?;
            let group = WorkGroup { hash: hash.clone(), paths: fields.collect() };
            // Of two lines with one hash olmOCR takes the last, at the position of the first.
            match places.get(&hash).and_then(|place| groups.get_mut(*place)) {
                Some(earlier) => *earlier = group,
                None => {
                    places.insert(hash, groups.len());
                    groups.push(group);
                }
            }
        }
        Ok(Self { groups })
    }

    /// The bytes of this index.
    ///
    /// # Errors
    /// Internal: it cannot be compressed.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let rows: Vec<String> = self.groups.iter().map(row_of).collect();
        zstd::bulk::compress(rows.join("\n").as_bytes(), LEVEL)
            .map_err(|error| Error::internal("the index cannot be compressed").with_source(error))
    }

    /// Adds the paths that are in no group yet, sorted, in groups of `at_once`; returns how many
    /// that were. Two groups that would get one hash (see [`group_hash`]) are set apart by leaving
    /// documents to a group of their own.
    pub fn add_paths(&mut self, paths: impl IntoIterator<Item = String>, at_once: usize) -> usize {
        let known: BTreeSet<&String> = self.groups.iter().flat_map(|group| &group.paths).collect();
        let fresh: BTreeSet<String> =
            paths.into_iter().filter(|path| !known.contains(path)).collect();
        let fresh: Vec<String> = fresh.into_iter().collect();
        let mut hashes: BTreeSet<String> =
            self.groups.iter().map(|group| group.hash.clone()).collect();
        let mut added = 0;
        for chunk in fresh.chunks(at_once.max(1)) {
            added += self.add_group(chunk, &mut hashes);
        }
        added
    }

    /// One group, or single documents if the group's hash is taken. A single one whose hash is
    /// taken as well has no place in this layout and is left out.
    fn add_group(&mut self, paths: &[String], hashes: &mut BTreeSet<String>) -> usize {
        let hash = group_hash(paths);
        if hashes.insert(hash.clone()) {
            self.groups.push(WorkGroup { hash, paths: paths.to_vec() });
            return paths.len();
        }
        match paths {
            [] | [_] => 0,
            several => several.chunks(1).map(|one| self.add_group(one, hashes)).sum(),
        }
    }
}

fn broken_index_error(what: &str) -> Error {
    let text = format!(
        "{} cannot be used: {what}; put a good copy in its place, or remove it and populate again",
        super::INDEX
    );
    Error::new(Fault::Rejected, text)
}

fn decompress_index(bytes: &[u8]) -> Result<String> {
    use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};
    let frame = find_frame_compressed_size(bytes)
        .map_err(|_| broken_index_error("it is torn, or no zstd frame at all"))?;
    let size = get_frame_content_size(bytes)
        .map_err(|_| broken_index_error("it is torn, or no zstd frame at all"))?
        .ok_or_else(|| {
            broken_index_error("its frame does not tell its size, so that olmOCR cannot read it")
        })?;
    if frame != bytes.len() {
        return Err(broken_index_error(
            "it goes on after its first zstd frame, where olmOCR stops reading",
        ));
    }
    if size > MAX_INDEX_BYTES {
        return Err(broken_index_error("it is larger than any index"));
    }
    let size =
        usize::try_from(size).map_err(|_| broken_index_error("it is larger than any index"))?;
    let bytes = zstd::bulk::decompress(bytes, size)
        .map_err(|error| broken_index_error("it is torn").with_source(error))?;
    if bytes.len() != size {
        return Err(broken_index_error("it is torn"));
    }
    String::from_utf8(bytes).map_err(|_| broken_index_error("it is no UTF-8"))
}

fn is_hash(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn row_of(group: &WorkGroup) -> String {
    let mut row = group.hash.clone();
    for path in &group.paths {
        row.push(',');
        if path.contains([',', '"', '\r', '\n']) {
            row.push('"');
            row.push_str(&path.replace('"', "\"\""));
            row.push('"');
        } else {
            row.push_str(path);
        }
    }
    row
}

/// The fields of a row, quotes understood as Python's `csv` does.
fn fields_of(row: &str) -> Vec<String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let (mut quoted, mut fresh) = (false, true);
    let mut characters = row.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, quoted) {
            ('"', true) if characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            ('"', true) => quoted = false,
            ('"', false) if fresh => (quoted, fresh) = (true, false),
            (',', false) => {
                fields.push(std::mem::take(&mut field));
                fresh = true;
            }
            (other, _) => {
                field.push(other);
                fresh = false;
            }
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(groups: &[&[&str]]) -> WorkIndex {
        let group = |paths: &&[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            WorkGroup { hash: group_hash(&paths), paths }
        };
        WorkIndex { groups: groups.iter().map(group).collect() }
    }

    fn text(index: &WorkIndex) -> String {
        decompress_index(&index.encode().unwrap()).unwrap()
    }

    #[test]
    fn odd_paths_come_back_as_they_were() {
        let long = "x".repeat(1000);
        let odd = index(&[
            &["a,b.pdf", "q\"uote\".pdf", "\"", " leading.pdf", "#.pdf", "'.pdf", "tab\t.pdf"],
            &["é/发票 😀.pdf", &long],
        ]);
        assert_eq!(WorkIndex::decode(&odd.encode().unwrap()).unwrap(), odd);
        let one = index(&[&["b,c.pdf", "d\"q.pdf"]]);
        let expected = "40fc51e0264a566a1a9274d4c92d4861fcedcbf1,\"b,c.pdf\",\"d\"\"q.pdf\"";
        assert_eq!(text(&one), expected, "as Python writes it, no line break at the end");
    }

    #[test]
    fn paths_that_olmocr_cannot_read_are_refused_with_the_reason() {
        let good = index(&[&["a.pdf"], &["b.pdf"]]).encode().unwrap();
        let two = [good.clone(), good.clone()].concat();
        let mut compressor = zstd::bulk::Compressor::new(3).unwrap();
        compressor.set_parameter(zstd::zstd_safe::CParameter::ContentSizeFlag(false)).unwrap();
        let sizeless = compressor.compress(b"0123").unwrap();
        let rubbish = zstd::bulk::compress(b"not a hash,a.pdf", 3).unwrap();
        for (bytes, expected) in [
            (good[..good.len() - 3].to_vec(), "torn"),
            (b"plain text".to_vec(), "no zstd frame"),
            (Vec::new(), "torn"),
            (two, "first zstd frame"),
            (sizeless, "size"),
            (rubbish, "line 1"),
        ] {
            let error = WorkIndex::decode(&bytes).unwrap_err();
            assert_eq!(error.fault, Fault::Rejected);
            assert!(error.context.contains(expected), "{expected}: {}", error.context);
        }
    }

    #[test]
    fn the_last_of_two_lines_of_one_group_counts() {
        let hash = "0".repeat(40);
        let lines = format!("{hash},a\n\n{},x\r\n{hash},b", "1".repeat(40));
        let read = WorkIndex::decode(&zstd::bulk::compress(lines.as_bytes(), 3).unwrap()).unwrap();
        let paths: Vec<_> = read.groups.iter().map(|group| group.paths.concat()).collect();
        assert_eq!(paths, ["b", "x"]);
    }

    #[test]
    fn a_path_that_a_line_cannot_hold_is_refused() {
        for path in ["a\nb", "a\rb", "a\u{2028}b", "a\u{85}", "", "a.pdf ", "a\u{c}b"] {
            assert!(path_problem(path).is_some(), "{path:?}");
        }
        for path in ["a, \"b\".pdf", " a", "é", "s3://b/k+%20"] {
            assert_eq!(path_problem(path), None, "{path:?}");
        }
    }

    #[test]
    fn a_path_in_a_group_is_not_added_again() {
        let mut index = WorkIndex::default();
        let paths =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(index.add_paths(paths(&["c", "a", "b", "a"]), 2), 3);
        assert_eq!(index.groups.len(), 2);
        assert_eq!(index.add_paths(paths(&["a", "b", "c"]), 50), 0);
        assert_eq!(index.add_paths(paths(&["d", "a"]), 50), 1);
        let sizes: Vec<_> = index.groups.iter().map(|group| group.paths.len()).collect();
        assert_eq!(sizes, [2, 1, 1]);
    }

    #[test]
    fn two_groups_of_one_hash_are_set_apart() {
        let mut index = WorkIndex::default();
        index.add_paths(["a.pdfb.pdf".to_owned()], 2);
        assert_eq!(index.add_paths(["a.pdf".to_owned(), "b.pdf".to_owned()], 2), 2);
        let hashes: BTreeSet<_> = index.groups.iter().map(|group| &group.hash).collect();
        assert_eq!((index.groups.len(), hashes.len()), (3, 3));
    }
}
