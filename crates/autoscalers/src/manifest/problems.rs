//! Problems of a manifest, collected and reported together, each with its line.

use std::fmt;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line from 1; `None` if the problem concerns the whole text.
    pub line: Option<usize>,
    /// Description, with the value and what is allowed.
    pub what: String,
}

/// Fatal: a manifest that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ManifestError {
    /// All problems, in order of lines.
    pub problems: Vec<Problem>,
}

impl ManifestError {
    pub(super) fn one(line: Option<usize>, what: impl Into<String>) -> Self {
        Self { problems: vec![Problem { line, what: what.into() }] }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        write!(f, "{count} problem{}", if count == 1 { "" } else { "s" })?;
        for Problem { line, what } in &self.problems {
            match line {
                Some(line) => write!(f, "\n  line {line}: {what}")?,
                None => write!(f, "\n  {what}")?,
            }
        }
        Ok(())
    }
}

/// Collects problems.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    pub(super) fn add(&mut self, line: usize, what: impl Into<String>) {
        self.found.push(Problem { line: Some(line), what: what.into() });
    }

    /// Number of problems so far.
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// Adds a problem unless a more specific one was added since the count was `before`.
    pub(super) fn add_unless_reported(
        &mut self,
        before: usize,
        line: usize,
        what: impl Into<String>,
    ) {
        if self.count() == before {
            self.add(line, what);
        }
    }

    /// Returns the value if there are no problems.
    pub(super) fn or<T>(mut self, value: T) -> Result<T, ManifestError> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort_by_key(|problem| problem.line);
        Err(ManifestError { problems: self.found })
    }
}
