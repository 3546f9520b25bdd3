//! A violation, in words that let the reader mend it without opening the test.

use std::fmt;

/// One violation of one rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, from the root of the repository.
    pub(crate) file: String,
    /// The line, counted from 1; nothing if the file as a whole is meant.
    pub(crate) line: Option<usize>,
    /// What was found.
    pub(crate) found: String,
    /// What is allowed.
    pub(crate) allowed: String,
    /// What to do.
    pub(crate) remedy: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, found, allowed, remedy } = self;
        match line {
            Some(line) => write!(f, "{file}:{line}: {found}")?,
            None => write!(f, "{file}: {found}")?,
        }
        write!(f, "\n    allowed: {allowed}\n    to do:   {remedy}")
    }
}

/// Passes if nothing was found, else fails with everything.
pub(crate) fn none(findings: Vec<Finding>) {
    let report: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(findings.is_empty(), "{} problem(s)\n\n{}\n", findings.len(), report.join("\n\n"));
}
