//! Reads the fields of a map one by one and reports those that remain.

use super::problems::{ManifestError, Problems};
use super::yaml_tree::{Node, Value, documents};
use crate::quantity::Quantity;

/// The fields of one map that have not been read yet.
pub(super) struct Fields<'a> {
    path: String,
    line: usize,
    left: Vec<(&'a str, usize, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// The fields of `node`; none, and a problem, if it is not a map.
    pub(super) fn of(node: &'a Node, path: impl Into<String>, problems: &mut Problems) -> Self {
        let path = path.into();
        let left = match &node.value {
            Value::Map(entries) => {
                entries.iter().map(|(key, line, node)| (key.as_str(), *line, node)).collect()
            }
            Value::Scalar(..) | Value::List(_) if node.is_null() => Vec::new(),
            Value::Scalar(..) | Value::List(_) => {
                problems.add(node.line, format!("{} must be a map of fields", shown(&path)));
                Vec::new()
            }
        };
        Self { path, line: node.line, left }
    }

    /// Line where the map begins.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Line where a field begins, or the map if the field is missing.
    pub(super) fn line_of(&self, key: &str) -> usize {
        self.left.iter().find(|(name, ..)| *name == key).map_or(self.line, |(_, line, _)| *line)
    }

    /// Path of one of its fields.
    pub(super) fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Removes and returns a field, if it is set and not null.
    pub(super) fn take(&mut self, key: &str) -> Option<(usize, &'a Node)> {
        let place = self.left.iter().position(|(name, ..)| *name == key)?;
        let (_, line, node) = self.left.remove(place);
        (!node.is_null()).then_some((line, node))
    }

    /// Discards fields that are not used here.
    pub(super) fn ignore(&mut self, keys: &[&str]) {
        self.left.retain(|(name, ..)| !keys.contains(name));
    }

    /// Removes and returns all remaining fields, in order.
    pub(super) fn take_all(&mut self) -> Vec<(&'a str, usize, &'a Node)> {
        std::mem::take(&mut self.left)
    }

    /// A map among the fields.
    pub(super) fn map(&mut self, key: &str, problems: &mut Problems) -> Option<Fields<'a>> {
        let (_, node) = self.take(key)?;
        Some(Fields::of(node, self.path(key), problems))
    }

    /// A list among the fields, with the line of its key.
    pub(super) fn list(
        &mut self,
        key: &str,
        problems: &mut Problems,
    ) -> Option<(usize, &'a [Node])> {
        let (line, node) = self.take(key)?;
        match &node.value {
            Value::List(nodes) => Some((line, nodes)),
            Value::Scalar(..) | Value::Map(_) => {
                problems.add(line, format!("{} must be a list", self.path(key)));
                None
            }
        }
    }

    /// A text among the fields.
    pub(super) fn text(&mut self, key: &str, problems: &mut Problems) -> Option<(usize, &'a str)> {
        let (line, node) = self.take(key)?;
        match &node.value {
            Value::Scalar(text, _) => Some((line, text)),
            Value::List(_) | Value::Map(_) => {
                problems.add(line, format!("{} must be a single value", self.path(key)));
                None
            }
        }
    }

    /// A whole number between `least` and `most`.
    pub(super) fn int(
        &mut self,
        key: &str,
        (least, most): (i64, i64),
        problems: &mut Problems,
    ) -> Option<i64> {
        let (line, text) = self.text(key, problems)?;
        let value = text.parse::<i64>().ok().filter(|value| (least..=most).contains(value));
        if value.is_none() {
            let path = self.path(key);
            let most = if most == i64::MAX { "any".to_owned() } else { most.to_string() };
            problems.add(line, format!("{path} is {text:?}, allowed is {least} to {most}"));
        }
        value
    }

    /// One of several words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &str,
        choices: &[(&str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let (line, text) = self.text(key, problems)?;
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let path = self.path(key);
            problems.add(line, format!("{path} is {text:?}, allowed is {}", words.join(", ")));
        }
        found
    }

    /// A quantity that is not negative, with its line.
    pub(super) fn quantity(
        &mut self,
        key: &str,
        problems: &mut Problems,
    ) -> Option<(usize, Quantity)> {
        let (line, text) = self.text(key, problems)?;
        match text.parse::<Quantity>() {
            Ok(quantity) if quantity.approximate() >= 0.0 => Some((line, quantity)),
            Ok(_) => {
                problems.add(line, format!("{} is {text}, allowed is 0 or more", self.path(key)));
                None
            }
            Err(error) => {
                problems.add(line, format!("{}: {error}", self.path(key)));
                None
            }
        }
    }

    /// Reports every field that was not read.
    pub(super) fn finish(self, problems: &mut Problems) {
        for (key, line, _) in &self.left {
            problems.add(*line, format!("{} is not a known field", self.path(key)));
        }
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "the document" } else { path }
}

/// Reads the one document of `kind` in `text` with `read`; fields that every object has are ignored.
pub(super) fn one_of_kind<T>(
    text: &str,
    kind: &str,
    read: impl FnOnce(&mut Fields<'_>, &mut Problems) -> T,
) -> Result<T, ManifestError> {
    let documents = documents(text)?;
    let mut problems = Problems::default();
    let of_kind = |node: &&Node| match &node.value {
        Value::Map(entries) => entries.iter().any(|(key, _, value)| {
            key == "kind" && matches!(&value.value, Value::Scalar(text, _) if text == kind)
        }),
        Value::Scalar(..) | Value::List(_) => false,
    };
    let found: Vec<&Node> = documents.iter().filter(of_kind).collect();
    let [document] = found[..] else {
        let problem = format!("has {} documents of kind {kind}, allowed is one", found.len());
        return Err(ManifestError::one(None, problem));
    };
    let mut fields = Fields::of(document, "", &mut problems);
    fields.ignore(&["kind", "status"]);
    let value = read(&mut fields, &mut problems);
    fields.ignore(&["apiVersion", "metadata"]);
    fields.finish(&mut problems);
    problems.or(value)
}
