//! Reading the fields of a map one by one, naming what is left over.

use super::problems::{ManifestError, Problems};
use super::yaml_tree::{Node, Value, documents};
use crate::quantity::Quantity;

/// The fields of one map that have not been asked for yet.
pub(super) struct Fields<'a> {
    path: String,
    line: usize,
    left: Vec<(&'a str, usize, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// The fields of `node`; none, and a problem, if it is no map.
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

    /// Where the map begins.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Where a field begins, or the map if it is not there.
    pub(super) fn line_of(&self, key: &str) -> usize {
        self.left.iter().find(|(name, ..)| *name == key).map_or(self.line, |(_, line, _)| *line)
    }

    /// The path of one of its fields.
    pub(super) fn path(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Takes a field out, if it is there and says something.
    pub(super) fn take(&mut self, key: &str) -> Option<(usize, &'a Node)> {
        let place = self.left.iter().position(|(name, ..)| *name == key)?;
        let (_, line, node) = self.left.remove(place);
        (!node.is_null()).then_some((line, node))
    }

    /// Takes out and forgets fields that do not matter here.
    pub(super) fn pass_over(&mut self, keys: &[&str]) {
        self.left.retain(|(name, ..)| !keys.contains(name));
    }

    /// Everything that is left, in order.
    pub(super) fn rest(&mut self) -> Vec<(&'a str, usize, &'a Node)> {
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

    /// Names every field that nobody asked for.
    pub(super) fn finish(self, problems: &mut Problems) {
        for (key, line, _) in &self.left {
            problems.add(*line, format!("{} is not a known field", self.path(key)));
        }
    }
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "the document" } else { path }
}

/// Reads the one document of `kind` in `text` with `read`; fields every object has are passed over.
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
    fields.pass_over(&["kind", "status"]);
    let value = read(&mut fields, &mut problems);
    fields.pass_over(&["apiVersion", "metadata"]);
    fields.finish(&mut problems);
    problems.or(value)
}
