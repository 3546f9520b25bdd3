//! A YAML document as a tree with line numbers. Built from the parser's events, so that what does not belong in a
//! manifest (aliases, deep nesting, duplicate keys) is rejected with its line.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::problems::ManifestError;

/// Maximum nesting; an HPA needs eight levels.
const DEPTH_LIMIT: usize = 32;
/// Maximum length of the text; etcd stores no larger object.
const SIZE_LIMIT: usize = 1 << 20;

/// A value and the line where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// Text, and whether it was written without quotes.
    Scalar(String, bool),
    List(Vec<Node>),
    /// Keys with their lines, in order, without duplicates.
    Map(Vec<(String, usize, Node)>),
}

impl Node {
    /// Whether it is null: `null`, `~`, or empty.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(text, true) if ["", "~", "null"].contains(&text.as_str()))
    }
}

/// A collection that is being built.
enum Open {
    List(usize, Vec<Node>),
    Map(usize, Vec<(String, usize, Node)>, Option<(String, usize)>),
}

/// Parses the documents of `text` that are not null.
pub(super) fn documents(text: &str) -> Result<Vec<Node>, ManifestError> {
    if text.len() > SIZE_LIMIT {
        let problem = format!("has {} bytes, allowed are {SIZE_LIMIT}", text.len());
        return Err(ManifestError::one(None, problem));
    }
    let mut documents = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            ManifestError::one(
                Some(error.marker().line()),
                format!("is not YAML: {}", error.info()),
            )
        })?;
        let line = span.start.line();
        let done = match event {
            Event::Scalar(text, style, ..) => {
                let is_plain = style == ScalarStyle::Plain;
                Some(Node { line, value: Value::Scalar(text.into_owned(), is_plain) })
            }
            Event::SequenceStart(..) => {
                open.push(Open::List(line, Vec::new()));
                None
            }
            Event::MappingStart(..) => {
                open.push(Open::Map(line, Vec::new(), None));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(Open::close),
            Event::Alias(_) => {
                let problem = "is an alias; write the value out instead";
                return Err(ManifestError::one(Some(line), problem));
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => None,
        };
        if open.len() > DEPTH_LIMIT {
            let problem = format!("is nested deeper than {DEPTH_LIMIT} levels");
            return Err(ManifestError::one(Some(line), problem));
        }
        if let Some(node) = done {
            place(node, &mut open, &mut documents)?;
        }
    }
    Ok(documents.into_iter().filter(|node: &Node| !node.is_null()).collect())
}

/// Adds a finished node to its parent.
fn place(node: Node, open: &mut [Open], documents: &mut Vec<Node>) -> Result<(), ManifestError> {
    match open.last_mut() {
        None => documents.push(node),
        Some(Open::List(_, nodes)) => nodes.push(node),
        Some(Open::Map(_, entries, key)) => match key.take() {
            Some((name, line)) => entries.push((name, line, node)),
            None => {
                let Value::Scalar(name, _) = node.value else {
                    return Err(ManifestError::one(Some(node.line), "is a key that is not text"));
                };
                if entries.iter().any(|(other, ..)| *other == name) {
                    let problem = format!("key {name} appears twice");
                    return Err(ManifestError::one(Some(node.line), problem));
                }
                *key = Some((name, node.line));
            }
        },
    }
    Ok(())
}

impl Open {
    fn close(self) -> Node {
        match self {
            Self::List(line, nodes) => Node { line, value: Value::List(nodes) },
            Self::Map(line, entries, _) => Node { line, value: Value::Map(entries) },
        }
    }
}
