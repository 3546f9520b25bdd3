//! What a replay found, and what can be wrong with a file of stories.

use std::fmt;

/// Decisions compared with the recorded ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Stories played.
    pub stories: u64,
    /// Decisions in them.
    pub decisions: u64,
    /// Decisions that were equal in every field.
    pub equal: u64,
    /// The first that was not.
    pub first_difference: Option<Difference>,
}

/// A decision that was not equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The story's id.
    pub story: String,
    /// Seconds since it began.
    pub time: String,
    /// What was recorded.
    pub expected: String,
    /// What we say.
    pub ours: String,
    /// What the decision was made from.
    pub seen: String,
}

impl Report {
    /// Whether all decisions were equal, and there was at least one.
    pub fn is_equal(&self) -> bool {
        self.decisions > 0 && self.equal == self.decisions
    }

    /// Counts one decision; the sentence about it is only made for the first difference.
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
    /// The file, if the caller has named it.
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

    /// The same, naming the file.
    pub fn in_file(self, name: impl Into<String>) -> Self {
        Self { file: Some(name.into()), ..self }
    }
}
