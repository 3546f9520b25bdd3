//! How long files and functions are. No parser is needed: formatted code closes a function with a
//! brace at the indentation of its `fn`.

use super::exceptions;
use super::finding::Finding;
use super::repository::{Repository, TextFile};

/// Lines of a file, its tests included.
const FILE_LIMIT: usize = 600;
/// Lines of a function, from `fn` to its closing brace.
const FUNCTION_LIMIT: usize = 60;

/// Something longer than its limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong {
    pub(crate) file: String,
    /// The function; nothing if the whole file is meant.
    pub(crate) function: Option<String>,
    line: usize,
    lines: usize,
}

pub(crate) fn findings(repository: &Repository) -> Vec<Finding> {
    too_long(repository)
        .into_iter()
        .filter(|long| !exceptions::is_excepted(&long.file, long.function.as_deref()))
        .map(|TooLong { file, function, line, lines }| {
            let (what, limit) = match function {
                Some(name) => (format!("function `{name}`"), FUNCTION_LIMIT),
                None => ("the file".to_owned(), FILE_LIMIT),
            };
            Finding {
                file,
                line: Some(line),
                found: format!("{what} has {lines} lines"),
                allowed: format!("{limit} lines"),
                remedy: "look for the second concept inside and move it out; if there is none, add an \
                         exception with its reason to tests/src/architecture/exceptions.rs",
            }
        })
        .collect()
}

/// Everything over its limit, exceptions included.
pub(crate) fn too_long(repository: &Repository) -> Vec<TooLong> {
    repository
        .rust_files()
        .flat_map(|file| long_file(file).into_iter().chain(long_functions(file)))
        .collect()
}

fn long_file(file: &TextFile) -> Option<TooLong> {
    let lines = file.lines().count();
    (lines > FILE_LIMIT).then(|| TooLong {
        file: file.path.clone(),
        function: None,
        line: 1,
        lines,
    })
}

fn long_functions(file: &TextFile) -> Vec<TooLong> {
    let lines: Vec<&str> = file.text.lines().collect();
    (0..lines.len())
        .filter_map(|start| {
            let name = function_name(lines[start])?;
            let length = function_length(&lines[start..])?;
            Some((start, name, length)).filter(|_| length > FUNCTION_LIMIT)
        })
        .map(|(start, name, lines)| TooLong {
            file: file.path.clone(),
            function: Some(name.to_owned()),
            line: start + 1,
            lines,
        })
        .collect()
}

/// The function whose signature begins on this line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let only_qualifiers = before.split_whitespace().all(|word| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"")
            || word.starts_with("pub(")
    });
    let end = after.find(['(', '<'])?;
    only_qualifiers.then_some(&after[..end])
}

/// Lines of the function that begins on the first of `lines`; nothing if it has no body.
fn function_length(lines: &[&str]) -> Option<usize> {
    let indent = indentation(lines.first()?);
    for (place, line) in lines.iter().enumerate() {
        if indentation(line) != indent || line.is_empty() {
            continue;
        }
        if line.ends_with(';') {
            return None;
        }
        if line.ends_with('}') {
            return Some(place + 1);
        }
    }
    None
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_body(lines: usize) -> TextFile {
        let body = "        step();\n".repeat(lines);
        let text = format!(
            "impl A {{\n    pub(crate) fn walk(\n        &self,\n    ) {{\n{body}    }}\n}}\n"
        );
        TextFile { path: "a.rs".into(), text }
    }

    #[test]
    fn a_function_is_measured_from_its_signature_to_its_brace() {
        assert_eq!(long_functions(&with_body(FUNCTION_LIMIT - 4)), []);
        let long = long_functions(&with_body(FUNCTION_LIMIT - 3));
        assert_eq!(long.len(), 1);
        assert_eq!((long[0].line, long[0].lines), (2, FUNCTION_LIMIT + 1));
        assert_eq!(long[0].function.as_deref(), Some("walk"));
    }

    #[test]
    fn a_signature_without_body_has_no_length() {
        assert_eq!(
            function_length(&["    fn name(&self) -> &str;", "    fn other() {", "    }"]),
            None
        );
        assert_eq!(function_length(&["    fn nothing(&mut self) {}"]), Some(1));
    }

    #[test]
    fn words_about_functions_are_not_functions() {
        assert_eq!(function_name("/// the fn that (almost) returns"), None);
        assert_eq!(function_name("    pub const fn new(millis: u32) -> Self {"), Some("new"));
    }
}
