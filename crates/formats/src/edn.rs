//! EDN (the notation of Clojure's data), read into JSON values and written from them.
//!
//! Read strictly and within bounds: one value, nothing after it, no key twice, not nested without
//! end. Keywords and symbols become texts without their colon and namespace, sets and lists become
//! lists, tagged elements their value. Not promised: that what was read is written the same again.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// Deeper nesting is refused.
const MAX_DEPTH: u32 = 64;

/// Why a text is not one EDN value; never quotes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct EdnDefect {
    /// The problem.
    what: &'static str,
    /// Where in the text.
    at: usize,
}

/// Reads the one value that the text is.
///
/// # Errors
/// The first defect.
pub fn parse_edn(text: &str) -> Result<Value, EdnDefect> {
    let mut reader = EdnReader { text, at: 0 };
    let value = reader.read_value(0)?;
    match reader.skip_blank(0)? {
        None => Ok(value),
        Some(_) => Err(reader.defect("text after the value")),
    }
}

/// Writes a value on one line: keys of maps as keywords with dashes for underscores, where that can
/// be one, texts otherwise.
pub fn write_edn(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

struct EdnReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> EdnReader<'a> {
    fn defect(&self, what: &'static str) -> EdnDefect {
        EdnDefect { what, at: self.at }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Passes over blanks, commas, comments and discarded values; the next character.
    fn skip_blank(&mut self, depth: u32) -> Result<Option<char>, EdnDefect> {
        loop {
            let rest = self.rest();
            match rest.chars().next() {
                Some(c) if c.is_whitespace() || c == ',' => self.at += c.len_utf8(),
                Some(';') => self.at += rest.find('\n').unwrap_or(rest.len()),
                Some('#') if rest.starts_with("#_") => {
                    self.at += 2;
                    self.read_value(depth + 1)?;
                }
                next => return Ok(next),
            }
        }
    }

    fn read_value(&mut self, depth: u32) -> Result<Value, EdnDefect> {
        if depth > MAX_DEPTH {
            return Err(self.defect("nested too deep"));
        }
        let Some(first) = self.skip_blank(depth)? else { return Err(self.defect("no value")) };
        match first {
            '{' => self.read_map(depth),
            '(' => self.read_list(')', depth),
            '[' => self.read_list(']', depth),
            '"' => self.read_text().map(Value::String),
            '\\' => self.read_character(),
            '#' => self.read_dispatch(depth),
            ')' | ']' | '}' => Err(self.defect("a closing bracket too many")),
            _ => self.read_token(),
        }
    }

    fn read_list(&mut self, end: char, depth: u32) -> Result<Value, EdnDefect> {
        self.take();
        let mut list = Vec::new();
        loop {
            match self.skip_blank(depth)? {
                None => return Err(self.defect("a list without an end")),
                Some(next) if next == end => break,
                Some(_) => list.push(self.read_value(depth + 1)?),
            }
        }
        self.take();
        Ok(Value::Array(list))
    }

    fn read_map(&mut self, depth: u32) -> Result<Value, EdnDefect> {
        self.take();
        let mut map = Map::new();
        loop {
            match self.skip_blank(depth)? {
                None => return Err(self.defect("a map without an end")),
                Some('}') => break,
                Some(_) => {}
            }
            let name = match self.read_value(depth + 1)? {
                Value::String(name) => name,
                Value::Number(number) => number.to_string(),
                _ => return Err(self.defect("a key that is no name")),
            };
            if self.skip_blank(depth)? == Some('}') {
                return Err(self.defect("a key without a value"));
            }
            let value = self.read_value(depth + 1)?;
            if map.insert(name, value).is_some() {
                return Err(self.defect("a key twice"));
            }
        }
        self.take();
        Ok(Value::Object(map))
    }

    /// A set, or a tag and its value.
    fn read_dispatch(&mut self, depth: u32) -> Result<Value, EdnDefect> {
        self.take();
        match self.peek() {
            Some('{') => self.read_list('}', depth),
            Some('#') => {
                self.take();
                match self.take_token() {
                    "Inf" | "-Inf" | "NaN" => Ok(Value::Null),
                    _ => Err(self.defect("an unknown symbolic value")),
                }
            }
            Some(c) if c.is_alphabetic() => {
                self.take_token();
                self.read_value(depth + 1)
            }
            _ => Err(self.defect("an unknown dispatch")),
        }
    }

    fn read_text(&mut self) -> Result<String, EdnDefect> {
        self.take();
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(self.defect("a text without an end")),
                Some('"') => return Ok(text),
                Some('\\') => text.push(self.read_escape()?),
                Some(c) => text.push(c),
            }
        }
    }

    fn read_escape(&mut self) -> Result<char, EdnDefect> {
        Ok(match self.take() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some(c @ ('"' | '\\')) => c,
            Some('u') => return self.read_unicode(),
            _ => return Err(self.defect("an unknown escape")),
        })
    }

    /// Four digits; two halves of a character beyond them as Java writes it.
    fn read_unicode(&mut self) -> Result<char, EdnDefect> {
        let first = self.read_unit()?;
        let units = if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            self.at += 2;
            vec![first, self.read_unit()?]
        } else {
            vec![first]
        };
        match char::decode_utf16(units).next() {
            Some(Ok(c)) => Ok(c),
            _ => Err(self.defect("half a character")),
        }
    }

    fn read_unit(&mut self) -> Result<u16, EdnDefect> {
        let digits = self.rest().get(..4).filter(|it| it.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        let unit = unit.ok_or_else(|| self.defect("an escape that is no number"))?;
        self.at += 4;
        Ok(unit)
    }

    fn read_character(&mut self) -> Result<Value, EdnDefect> {
        self.take();
        let Some(first) = self.take() else { return Err(self.defect("no character")) };
        let start = self.at - first.len_utf8();
        self.take_token();
        let name = self.text.get(start..self.at).unwrap_or_default();
        let c = match name {
            "newline" => '\n',
            "return" => '\r',
            "space" => ' ',
            "tab" => '\t',
            _ if name.len() == first.len_utf8() => first,
            _ => {
                let code = name.strip_prefix('u').and_then(|it| u32::from_str_radix(it, 16).ok());
                let c = code.and_then(char::from_u32);
                c.ok_or_else(|| self.defect("an unknown character"))?
            }
        };
        Ok(Value::String(c.into()))
    }

    fn take_token(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || ",;\"()[]{}\\".contains(c));
        let token = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        self.at += token.len();
        token
    }

    /// A keyword, a symbol, a number, or one of the three names.
    fn read_token(&mut self) -> Result<Value, EdnDefect> {
        let token = self.take_token();
        let (first, second) = {
            let mut letters = token.chars();
            (letters.next(), letters.next())
        };
        let signed = matches!(first, Some('+' | '-')) && second.is_some_and(|c| c.is_ascii_digit());
        if signed || first.is_some_and(|c| c.is_ascii_digit()) {
            return read_number(token).ok_or_else(|| self.defect("a number that is none"));
        }
        Ok(match token {
            "nil" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => {
                let name = token.strip_prefix(':').unwrap_or(token);
                let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
                if name.is_empty() || name.starts_with(':') {
                    return Err(self.defect("a name without letters"));
                }
                Value::String(name.to_owned())
            }
        })
    }
}

/// Exact numbers (`M`, `N`, ratios) as near as JSON has them.
fn read_number(token: &str) -> Option<Value> {
    let plain = token.strip_prefix('+').unwrap_or(token);
    if let Some((above, below)) = plain.split_once('/') {
        let (above, below) = (above.parse::<f64>().ok()?, below.parse::<f64>().ok()?);
        return Number::from_f64(above / below).map(Value::Number);
    }
    if let Ok(whole) = plain.strip_suffix('N').unwrap_or(plain).parse::<i64>() {
        return Some(whole.into());
    }
    let plain = plain.trim_end_matches(['M', 'N']);
    let is_plain = plain.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let number = plain.parse::<f64>().ok().filter(|_| is_plain)?;
    Number::from_f64(number).map(Value::Number)
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("nil"),
        Value::Bool(yes) => text.push_str(if *yes { "true" } else { "false" }),
        // Writing to a string cannot fail.
        Value::Number(number) => _ = write!(text, "{number}"),
        Value::String(words) => write_text(words, text),
        Value::Array(list) => {
            text.push('[');
            for (at, value) in list.iter().enumerate() {
                if at > 0 {
                    text.push(' ');
                }
                write_value(value, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            text.push('{');
            for (at, (name, value)) in map.iter().enumerate() {
                if at > 0 {
                    text.push_str(", ");
                }
                write_key(name, text);
                text.push(' ');
                write_value(value, text);
            }
            text.push('}');
        }
    }
}

fn write_key(name: &str, text: &mut String) {
    let is_keyword = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if is_keyword {
        text.push(':');
        text.push_str(&name.replace('_', "-"));
    } else {
        write_text(name, text);
    }
}

fn write_text(words: &str, text: &mut String) {
    text.push('"');
    for c in words.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            // Clojure reads every other character literally.
            c => text.push(c),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_element_is_read() {
        #[rustfmt::skip]
        let table = [
            ("nil", json!(null)),
            (" true ; a remark", json!(true)),
            ("-12", json!(-12)),
            ("42N", json!(42)),
            ("0.93M", json!(0.93)),
            ("+1.5e2", json!(150.0)),
            ("1/4", json!(0.25)),
            (r#""a \"b\" \n é 😀""#, json!("a \"b\" \n é 😀")),
            (r#""\u00e9 \ud83d\ude00""#, json!("é 😀")),
            (r"[\a \newline \u00e9]", json!(["a", "\n", "é"])),
            ("[1, (2 3) #{4}]", json!([1, [2, 3], [4]])),
            ("{:text \"x\" :ocr/page-count 2, \"k\" sym, 7 nil}",
             json!({"text": "x", "page-count": 2, "k": "sym", "7": null})),
            ("{:at #inst \"2025-01-02\" :id #uuid \"a\" :n ##NaN}",
             json!({"at": "2025-01-02", "id": "a", "n": null})),
            ("[1 #_ {:a 2} #_#_ 3 4 5]", json!([1, 5])),
            ("-", json!("-")),
        ];
        for (text, expected) in table {
            assert_eq!(parse_edn(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_one_value_is_refused_and_not_quoted() {
        let deep = "[".repeat(100_000);
        let discarded = "#_".repeat(100_000);
        #[rustfmt::skip]
        let table = [
            "", " , ; only a remark", "1 secret", "{:a}", "{:a 1 :a 2}", "{[1] 2}", "[1", "{:a 1",
            "\"secret", "\"\\x\"", "\"\\ud800 \"", "\"\\u00g0\"", "]", "#", "##secret", "\\secret",
            "12secret", "1.2.3", "1/0", "0x10", ":", "::a", &deep, &discarded,
        ];
        for text in table {
            let defect = parse_edn(text).expect_err(text);
            assert!(!defect.to_string().contains("secret"), "{defect}");
        }
    }

    #[test]
    fn what_is_written_has_keywords_for_names() {
        let value = json!({"page_count": 2, "a b": [null, true, "x\"\\\n"], "quality": 0.5});
        assert_eq!(
            write_edn(&value),
            r#"{:page-count 2, "a b" [nil true "x\"\\\n"], :quality 0.5}"#
        );
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let values = json!([
            {}, [], {"a": {"b-c": [1, -2.5, null, true, "\u{1f600}\u{0}\t,;#{"]}, "7": "", "x y": [[]]},
            "\\\"\n", 1e300, i64::MIN, "nil", ":a", "#_",
        ]);
        for value in values.as_array().unwrap().iter().chain([&values]) {
            assert_eq!(parse_edn(&write_edn(value)).as_ref(), Ok(value));
        }
    }

    #[test]
    fn no_text_does_harm() {
        let letters: Vec<char> = "[](){}#_:;\\\"a1 ./,-u\u{e9}".chars().collect();
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        let mut read = 0;
        for _ in 0..20_000 {
            let length = next(12);
            let text: String = (0..length).map(|_| letters[next(letters.len())]).collect();
            read += usize::from(parse_edn(&text).is_ok());
        }
        assert!(read > 500, "{read}");
    }
}
