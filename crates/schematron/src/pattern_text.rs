//! Regular expressions of XPath as those of the `regex` crate, which match in linear time.
//!
//! The differences that matter: `.` excludes a carriage return too, `\s` and `\w` are those of XML
//! Schema, `\i` and `\c` are signs of names, a class may take another away (`[a-z-[aeiou]]`).

use regex::{Regex, RegexBuilder};

/// Most bytes of a compiled pattern.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// Deepest nesting of groups.
const MAX_NESTED_GROUPS: u32 = 50;

/// Compiles a pattern with its flags; `None`: it is none, or too large.
pub(crate) fn compile_pattern(pattern: &str, flags: &str) -> Option<Regex> {
    let is_literal = flags.contains('q');
    let translated =
        if is_literal { regex::escape(pattern) } else { translate_pattern(pattern, flags)? };
    let mut builder = RegexBuilder::new(&translated);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'x' => builder.ignore_whitespace(true),
            'q' => &mut builder,
            _ => return None,
        };
    }
    builder.size_limit(MAX_COMPILED_BYTES).nest_limit(MAX_NESTED_GROUPS).build().ok()
}

/// The class that an escape stands for, without brackets.
fn escape_class(escape: char) -> Option<&'static str> {
    Some(match escape {
        's' => r" \t\n\r",
        'i' => r"\p{L}\p{Nl}:_",
        'c' => r"\p{L}\p{N}\p{M}\-._:\u{B7}",
        _ => return None,
    })
}

fn translate_pattern(pattern: &str, flags: &str) -> Option<String> {
    let mut translated = String::with_capacity(pattern.len().saturating_mul(2));
    let mut signs = pattern.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => translate_escape(signs.next()?, &mut translated),
            '[' => translate_class(&mut signs, &mut translated)?,
            '.' if !flags.contains('s') => translated.push_str(r"[^\n\r]"),
            sign => translated.push(sign),
        }
    }
    Some(translated)
}

fn translate_escape(escape: char, translated: &mut String) {
    if let Some(class) = escape_class(escape) {
        translated.extend(["[", class, "]"]);
        return;
    }
    if let Some(class) = escape_class(escape.to_ascii_lowercase()) {
        translated.extend(["[^", class, "]"]);
        return;
    }
    match escape {
        'w' => translated.push_str(r"[^\p{P}\p{Z}\p{C}]"),
        'W' => translated.push_str(r"[\p{P}\p{Z}\p{C}]"),
        escape => translated.extend(['\\', escape]),
    }
}

/// A class behind its opening bracket.
fn translate_class(
    signs: &mut std::iter::Peekable<std::str::Chars<'_>>,
    translated: &mut String,
) -> Option<()> {
    translated.push('[');
    if signs.next_if_eq(&'^').is_some() {
        translated.push('^');
    }
    let mut is_first = true;
    loop {
        let sign = signs.next()?;
        match sign {
            ']' if !is_first => break,
            '\\' => {
                let escape = signs.next()?;
                match escape_class(escape) {
                    Some(class) => translated.push_str(class),
                    None => translate_escape(escape, translated),
                }
            }
            '-' if signs.peek() == Some(&'[') => {
                signs.next();
                translated.push_str("--");
                translate_class(signs, translated)?;
            }
            '-' if is_first || signs.peek() == Some(&']') => translated.push_str(r"\-"),
            '[' | '&' | '~' => translated.extend(['\\', sign]),
            sign => translated.push(sign),
        }
        is_first = false;
    }
    translated.push(']');
    Some(())
}

/// The replacement of XPath as one of the `regex` crate: `$1` is a group, `\$` a dollar; of several
/// digits as many belong to the group as there are groups for.
pub(crate) fn translate_replacement(replacement: &str, groups: usize) -> Option<String> {
    let mut translated = String::new();
    let mut signs = replacement.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' => match signs.next()? {
                '$' => translated.push_str("$$"),
                '\\' => translated.push('\\'),
                _ => return None,
            },
            '$' => {
                let digit = signs.next()?.to_digit(10)?;
                let mut group = usize::try_from(digit).ok()?;
                while let Some(digit) = signs.peek().and_then(|it| it.to_digit(10)) {
                    let longer =
                        group.saturating_mul(10).saturating_add(usize::try_from(digit).ok()?);
                    if longer >= groups {
                        break;
                    }
                    group = longer;
                    signs.next();
                }
                translated.push_str(&format!("${{{group}}}"));
            }
            sign => translated.push(sign),
        }
    }
    Some(translated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_those_of_xml_schema_do() {
        for (pattern, text, matches) in [
            ("^.$", "\r", false),
            (r"^\s$", "\u{a0}", false),
            (r"^\s$", "\n", true),
            (r"^\w$", "-", false),
            ("^[a-z-[aeiou]]+$", "bcd", true),
            ("^[a-z-[aeiou]]+$", "bad", false),
            ("^[+.-]+$", "-.+", true),
            ("^[-a]+$", "-a", true),
            (r"^[^@\s]+@([^@.\s]+\.)+[^@.\s]+$", "a@b.c", true),
            ("^a$", "a\n", false),
            (r"^\c+$", "a-b.1", true),
        ] {
            let found = compile_pattern(pattern, "").unwrap().is_match(text);
            assert_eq!(found, matches, "{pattern} on {text:?}");
        }
        assert!(compile_pattern("(", "").is_none());
        assert!(compile_pattern("a", "z").is_none());
        assert!(compile_pattern(&"(".repeat(100), "").is_none());
        assert!(compile_pattern("((a{1000}){1000}){1000}", "").is_none(), "too large");
    }

    #[test]
    fn a_replacement_names_the_groups_there_are() {
        assert_eq!(translate_replacement(r"$1-\$", 2).as_deref(), Some("${1}-$$"));
        assert_eq!(translate_replacement("$12", 2).as_deref(), Some("${1}2"));
        assert_eq!(translate_replacement("$", 2), None);
    }
}
