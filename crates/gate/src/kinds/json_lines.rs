//! On which line of a JSON text each value stands, by JSON Pointer.
//!
//! Only for texts that the JSON reader has accepted: it skips, it does not check.

use std::collections::BTreeMap;

/// Lines counted from 1, by pointer. A member is placed where its name stands.
pub(super) fn lines(text: &str) -> BTreeMap<String, usize> {
    let mut scan = Scan { rest: text, line: 1, found: BTreeMap::new() };
    scan.value("");
    scan.found
}

struct Scan<'a> {
    rest: &'a str,
    line: usize,
    found: BTreeMap<String, usize>,
}

impl<'a> Scan<'a> {
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    /// The next character that is not white space.
    fn next(&mut self) -> Option<char> {
        let blank = self.rest.len() - self.rest.trim_start().len();
        self.skip(blank);
        self.rest.chars().next()
    }

    fn value(&mut self, pointer: &str) {
        let first = self.next();
        self.found.entry(pointer.to_owned()).or_insert(self.line);
        match first {
            Some('{') => self.members(pointer),
            Some('[') => self.elements(pointer),
            Some('"') => _ = self.string(),
            _ => {
                let end = self.rest.find([',', ']', '}']).unwrap_or(self.rest.len());
                self.skip(end);
            }
        }
    }

    fn members(&mut self, pointer: &str) {
        self.skip(1);
        while let Some(c) = self.next() {
            match c {
                '"' => {
                    let line = self.line;
                    let name = self.string().replace('~', "~0").replace('/', "~1");
                    let inner = format!("{pointer}/{name}");
                    self.found.insert(inner.clone(), line);
                    self.next();
                    self.skip(1); // the colon
                    self.value(&inner);
                }
                '}' => {
                    self.skip(1);
                    return;
                }
                _ => _ = self.skip(c.len_utf8()),
            }
        }
    }

    fn elements(&mut self, pointer: &str) {
        self.skip(1);
        let mut index = 0;
        while let Some(c) = self.next() {
            match c {
                ',' => _ = self.skip(1),
                ']' => {
                    self.skip(1);
                    return;
                }
                _ => {
                    self.value(&format!("{pointer}/{index}"));
                    index += 1;
                }
            }
        }
    }

    fn string(&mut self) -> String {
        let mut escaped = false;
        let inner = self.rest.get(1..).unwrap_or_default();
        let end = inner.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let text = self.skip(end.map_or(self.rest.len(), |end| end + 2));
        serde_json::from_str(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_placed() {
        let text = "{\n \"a\\\"/b\": [1,\n  {\"c\":\n true}, \"x,]\"],\n \"d\": null }";
        let found = lines(text);
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
