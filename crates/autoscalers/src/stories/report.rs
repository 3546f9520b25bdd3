//! Result of a replay, and errors of story files.

use std::fmt;

/// Comparison of our decisions with the recorded ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of stories.
    pub stories: u64,
    /// Number of decisions in them.
    pub decisions: u64,
    /// Number of decisions that were equal in every field.
    pub equal: u64,
    /// The first decision that differed.
    pub first_difference: Option<Difference>,
}

/// A decision that differed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The story's id.
    pub story: String,
    /// Seconds since the start of the story.
    pub time: String,
    /// The recorded decision.
    pub expected: String,
    /// Our decision.
    pub ours: String,
    /// Inputs of the decision.
    pub seen: String,
}

impl Report {
    /// Whether all decisions were equal, and there was at least one.
    pub fn is_equal(&self) -> bool {
        self.decisions > 0 && self.equal == self.decisions
    }

    /// Counts one decision; `difference` is only called for the first difference.
    pub(super) fn count(&mut self, is_equal: bool, difference: impl FnOnce() -> Difference) {
        self.decisions += 1;
        if is_equal {
            self.equal += 1;
        } else if self.first_difference.is_none() {
            self.first_difference = Some(difference());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stories, decisions, equal, first_difference } = self;
        write!(f, "{stories} stories, {equal} of {decisions} decisions equal")?;
        if let Some(Difference { story, time, expected, ours, seen }) = first_difference {
            write!(
                f,
                "\nfirst difference: story {story} at {time} s\n  expected {expected}\n  ours     \
                 {ours}\n  seen     {seen}"
            )?;
        }
        Ok(())
    }
}

/// Why stories could not be replayed.
#[derive(Debug, thiserror::Error)]
#[error("{}line {line}: {problem}", file.as_ref().map(|name| format!("{name}: ")).unwrap_or_default())]
pub struct StoryError {
    /// The file, if the caller has set it.
    pub file: Option<String>,
    /// Counted from 1.
    pub line: u64,
    /// One sentence.
    pub problem: String,
}

impl StoryError {
    /// An error on `line`.
    pub(super) fn at(line: u64, problem: impl fmt::Display) -> Self {
        Self { file: None, line, problem: problem.to_string() }
    }

    /// Adds the name of the file.
    pub fn in_file(self, name: impl Into<String>) -> Self {
        Self { file: Some(name.into()), ..self }
    }
}
