//! Problems of a kind's file, with their line.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindProblem {
    /// The file, or the folder that lacks one.
    pub file: PathBuf,
    /// Counted from 1; none if it is about the file as a whole.
    pub line: Option<usize>,
    /// What, and what would be right.
    pub text: String,
}

impl fmt::Display for KindProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.text)
    }
}

/// Problems of one file while it is read; lines are found from byte offsets.
pub(super) struct ProblemReport<'a> {
    file: &'a Path,
    text: &'a str,
    pub(super) problems: Vec<KindProblem>,
}

impl<'a> ProblemReport<'a> {
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, text, problems: Vec::new() }
    }

    /// About the text at this offset.
    pub(super) fn report_at(&mut self, offset: usize, problem: impl Into<String>) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        self.add(Some(before.matches('\n').count() + 1), problem);
    }

    /// About the file as a whole.
    pub(super) fn report_file(&mut self, problem: impl Into<String>) {
        self.add(None, problem);
    }

    pub(super) fn add(&mut self, line: Option<usize>, problem: impl Into<String>) {
        let (file, text) = (self.file.to_owned(), problem.into());
        self.problems.push(KindProblem { file, line, text });
    }

    /// The TOML reader's message, without its drawing of the position.
    pub(super) fn report_toml(&mut self, error: &toml::de::Error) {
        self.report_at(error.span().map_or(0, |span| span.start), error.message());
    }

    /// About the first mention of `name` in quotes within a part of the file.
    pub(super) fn report_mention(&mut self, within: &Range<usize>, name: &str, problem: String) {
        let part = self.text.get(within.clone()).unwrap_or_default();
        let quoted = [format!("\"{name}\""), format!("'{name}'")];
        let found = quoted.iter().find_map(|quoted| part.find(quoted));
        self.report_at(within.start + found.unwrap_or(0), problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_said_with_file_and_line() {
        let text = "one\ntwo \"x\"\nthree";
        let mut report = ProblemReport::new(Path::new("kinds/a/rules.toml"), text);
        report.report_at(5, "here");
        report.report_mention(&(4..text.len()), "x", "there".to_owned());
        report.report_file("everywhere");
        let said: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "kinds/a/rules.toml:2: here",
                "kinds/a/rules.toml:2: there",
                "kinds/a/rules.toml: everywhere"
            ]
        );
    }
}
