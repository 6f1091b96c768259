//! The tokens of an XPath expression.

/// Why an expression of the rules is not read: the rules are refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SyntaxError(pub String);

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum XPathToken {
    /// A name, its prefix as written; `*` stands for any.
    Name {
        prefix: Option<String>,
        local: String,
    },
    /// A number as written.
    Number(String),
    /// The content of a literal.
    Text(String),
    Sign(&'static str),
}

/// The signs, longest first.
const SIGNS: [&str; 25] = [
    "//", "..", "::", "<=", ">=", "!=", "<<", ">>", "/", ".", "(", ")", "[", "]", "@", ",", "|",
    "+", "-", "*", "=", "<", ">", "$", "?",
];

fn starts_name(sign: char) -> bool {
    sign.is_alphabetic() || sign == '_'
}

fn is_in_name(sign: char) -> bool {
    sign.is_alphanumeric() || matches!(sign, '_' | '-' | '.')
}

/// The tokens of an expression.
///
/// # Errors
/// A sign that no expression has, an open literal or comment.
pub(crate) fn split_tokens(text: &str) -> Result<Vec<XPathToken>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, behind) = if let Some(inside) = rest.strip_prefix("(:") {
            rest = skip_comment(inside)?.trim_start();
            continue;
        } else if first == '"' || first == '\'' {
            split_literal(rest, first)?
        } else if starts_with_number(rest) {
            split_number(rest)
        } else if starts_name(first) || rest.starts_with("*:") {
            split_name(rest)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| SyntaxError(format!("`{first}` is not read")))?;
            (XPathToken::Sign(sign), rest.get(sign.len()..).unwrap_or_default())
        };
        tokens.push(token);
        rest = behind.trim_start();
    }
    Ok(tokens)
}

fn skip_comment(mut inside: &str) -> Result<&str, SyntaxError> {
    let mut depth = 1_usize;
    while depth > 0 {
        let at = inside.find([':', '(']);
        let from = at.and_then(|at| inside.get(at..));
        let from = from.ok_or_else(|| SyntaxError("a comment is open".to_owned()))?;
        if let Some(behind) = from.strip_prefix(":)") {
            (depth, inside) = (depth - 1, behind);
        } else if let Some(behind) = from.strip_prefix("(:") {
            (depth, inside) = (depth + 1, behind);
        } else {
            inside = from.get(1..).unwrap_or_default();
        }
    }
    Ok(inside)
}

/// A literal up to its closing quote; a doubled quote is one of its signs.
fn split_literal(text: &str, quote: char) -> Result<(XPathToken, &str), SyntaxError> {
    let mut content = String::new();
    let mut rest = text.strip_prefix(quote).unwrap_or_default();
    loop {
        let (before, behind) =
            rest.split_once(quote).ok_or_else(|| SyntaxError("a literal is open".to_owned()))?;
        content.push_str(before);
        match behind.strip_prefix(quote) {
            Some(more) => {
                content.push(quote);
                rest = more;
            }
            None => return Ok((XPathToken::Text(content), behind)),
        }
    }
}

fn starts_with_number(text: &str) -> bool {
    text.strip_prefix('.').unwrap_or(text).starts_with(|sign: char| sign.is_ascii_digit())
}

fn split_number(text: &str) -> (XPathToken, &str) {
    let is_part = |sign: char| sign.is_ascii_digit() || sign == '.';
    let mut end = text.find(|sign| !is_part(sign)).unwrap_or(text.len());
    let behind = text.get(end..).unwrap_or_default();
    if let Some(exponent) = behind.strip_prefix(['e', 'E']) {
        let signless = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let digits = signless.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(signless.len());
        end += 1 + (exponent.len() - signless.len()) + digits;
    }
    let (number, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    (XPathToken::Number(number.to_owned()), rest)
}

/// A name with its prefix: `a`, `a:b`, `a:*`, `*:b`.
fn split_name(text: &str) -> (XPathToken, &str) {
    let (first, rest) = split_part(text);
    let local = rest.strip_prefix(':').filter(|it| it.starts_with(|c| starts_name(c) || c == '*'));
    match local {
        Some(local) => {
            let (local, rest) = split_part(local);
            let prefix = Some(first.to_owned());
            (XPathToken::Name { prefix, local: local.to_owned() }, rest)
        }
        None => (XPathToken::Name { prefix: None, local: first.to_owned() }, rest),
    }
}

fn split_part(text: &str) -> (&str, &str) {
    let end = if text.starts_with('*') {
        1
    } else {
        text.find(|sign| !is_in_name(sign)).unwrap_or(text.len())
    };
    text.split_at_checked(end).unwrap_or((text, ""))
}
