//! The words of Markdown with HTML tables in it, as models write it: marks, tags and invented
//! descriptions of figures are dropped, printed words stay. This is no renderer: unusual syntax
//! stays, and is checked against the local reader like everything else.

/// The text, with a line for each line, row and heading.
pub(super) fn plain_text(markdown: &str) -> String {
    let text = without_tags(&without_figures(markdown));
    let lines = text.lines().map(|line| {
        let line = line.trim_start_matches(['#', '>', ' ']).replace("**", "");
        let line = line.strip_prefix("* ").unwrap_or(&line).to_owned();
        if is_rule(&line) { String::new() } else { line.replace('|', " ") }
    });
    let lines: Vec<String> = lines.collect();
    decode_entities(&lines.join("\n"))
}

/// The line below the head of a table, and a rule across the page.
fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// Descriptions of figures are the model's words, not the page's.
fn without_figures(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("![") {
        plain.push_str(before);
        let end = after.split_once("](").and_then(|(_, target)| target.split_once(')'));
        let Some((_, behind)) = end else {
            rest = after;
            continue;
        };
        rest = behind;
    }
    plain.push_str(rest);
    plain
}

/// A row of a table is a line, a cell is a word or more. `<` is a tag only where a name follows.
fn without_tags(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        plain.push_str(before);
        let name: String =
            after.trim_start_matches('/').chars().take_while(char::is_ascii_alphabetic).collect();
        match after.split_once('>') {
            Some((tag, behind)) if !name.is_empty() && !tag.contains(['<', '\n']) => {
                let is_row = matches!(name.as_str(), "tr" | "br" | "p" | "table" | "li");
                plain.push(if is_row { '\n' } else { ' ' });
                rest = behind;
            }
            _ => {
                plain.push('<');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn decode_entities(text: &str) -> String {
    const ENTITIES: [(&str, &str); 5] =
        [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")];
    ENTITIES.iter().fold(text.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_headings_are_lines_and_no_mark_or_figure_is_text() {
        let table = "<table><tr><th>Qty</th><td>1 &amp; 2</td></tr><tr><td>a < b</td></tr></table>";
        #[rustfmt::skip]
        let cases = [
            ("## Total **9,50**",                 vec!["Total 9,50"]),
            (table,                               vec!["Qty  1 & 2", "a < b"]),
            ("| a | b |\n|---|:--|\n| 1 | 2 |",   vec!["a   b", "1   2"]),
            ("x ![a red logo](page_1_2_3_4.png) y", vec!["x  y"]),
            ("![broken",                          vec!["broken"]),
            ("* one\n> two\n---",                 vec!["one", "two"]),
            ("-12,00",                            vec!["-12,00"]),
        ];
        for (markdown, expected) in cases {
            let plain = plain_text(markdown);
            let lines: Vec<&str> =
                plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            assert_eq!(lines, expected, "{markdown}");
        }
    }
}
