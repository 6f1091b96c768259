//! The line of each value of a JSON text, by JSON Pointer.
//!
//! Only for texts that the JSON reader has accepted: it skips, it does not check.

use std::collections::BTreeMap;

/// Lines counted from 1, by pointer. A member has the line of its name.
pub(super) fn lines_by_pointer(text: &str) -> BTreeMap<String, usize> {
    let mut scan = LineScanner { rest: text, line: 1, found: BTreeMap::new() };
    scan.scan_value("");
    scan.found
}

struct LineScanner<'a> {
    rest: &'a str,
    line: usize,
    found: BTreeMap<String, usize>,
}

impl<'a> LineScanner<'a> {
    fn skip_bytes(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    /// The next character that is not white space.
    fn next_token(&mut self) -> Option<char> {
        let blank = self.rest.len() - self.rest.trim_start().len();
        self.skip_bytes(blank);
        self.rest.chars().next()
    }

    fn scan_value(&mut self, pointer: &str) {
        let first = self.next_token();
        self.found.entry(pointer.to_owned()).or_insert(self.line);
        match first {
            Some('{') => self.scan_members(pointer),
            Some('[') => self.scan_elements(pointer),
            Some('"') => _ = self.scan_string(),
            _ => {
                let end = self.rest.find([',', ']', '}']).unwrap_or(self.rest.len());
                self.skip_bytes(end);
            }
        }
    }

    fn scan_members(&mut self, pointer: &str) {
        self.skip_bytes(1);
        while let Some(c) = self.next_token() {
            match c {
                '"' => {
                    let line = self.line;
                    let name = self.scan_string().replace('~', "~0").replace('/', "~1");
                    let inner = format!("{pointer}/{name}");
                    self.found.insert(inner.clone(), line);
                    self.next_token();
                    self.skip_bytes(1); // the colon
                    self.scan_value(&inner);
                }
                '}' => {
                    self.skip_bytes(1);
                    return;
                }
                _ => _ = self.skip_bytes(c.len_utf8()),
            }
        }
    }

    fn scan_elements(&mut self, pointer: &str) {
        self.skip_bytes(1);
        let mut index = 0;
        while let Some(c) = self.next_token() {
            match c {
                ',' => _ = self.skip_bytes(1),
                ']' => {
                    self.skip_bytes(1);
                    return;
                }
                _ => {
                    self.scan_value(&format!("{pointer}/{index}"));
                    index += 1;
                }
            }
        }
    }

    fn scan_string(&mut self) -> String {
        let mut escaped = false;
        let inner = self.rest.get(1..).unwrap_or_default();
        let end = inner.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let text = self.skip_bytes(end.map_or(self.rest.len(), |end| end + 2));
        serde_json::from_str(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_placed() {
        let text = "{\n \"a\\\"/b\": [1,\n  {\"c\":\n true}, \"x,]\"],\n \"d\": null }";
        let found = lines_by_pointer(text);
        let place = |pointer: &str| found.get(pointer).copied();
        assert_eq!(place(""), Some(1));
        assert_eq!(place("/a\"~1b"), Some(2));
        assert_eq!(place("/a\"~1b/0"), Some(2));
        assert_eq!(place("/a\"~1b/1/c"), Some(3));
        assert_eq!(place("/a\"~1b/2"), Some(4));
        assert_eq!(place("/d"), Some(5));
        assert_eq!(found.len(), 7);
    }
}
