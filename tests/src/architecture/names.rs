//! Names that say nothing, for files and for types.

use super::finding::Finding;
use super::repository::{Repository, TextFile};

/// Words that could stand over anything.
const EMPTY_WORDS: &[&str] =
    &["base", "common", "helper", "helpers", "impl", "manager", "misc", "types", "util", "utils"];

const DECLARES_TYPE: &[&str] = &["struct", "enum", "trait", "type", "union"];

pub(crate) fn findings(repository: &Repository) -> Vec<Finding> {
    repository
        .rust_files()
        .flat_map(|file| in_path(file).into_iter().chain(in_types(file)))
        .collect()
}

fn in_path(file: &TextFile) -> Option<Finding> {
    let path = file.path.strip_suffix(".rs").unwrap_or(&file.path);
    let bad = path.split('/').find(|part| {
        *part == "mod" || part.split(['_', '-']).any(|word| EMPTY_WORDS.contains(&word))
    })?;
    Some(Finding {
        file: file.path.clone(),
        line: None,
        found: format!("`{bad}` says nothing about what is inside"),
        allowed: "names a reader would look for; a module file lies beside its folder".to_owned(),
        remedy: "name it after the one concept it holds, or split it",
    })
}

fn in_types(file: &TextFile) -> Vec<Finding> {
    file.lines()
        .filter_map(|(line, text)| Some((line, declared_type(text)?)))
        .filter(|(_, name)| words(name).iter().any(|word| EMPTY_WORDS.contains(&word.as_str())))
        .map(|(line, name)| Finding {
            file: file.path.clone(),
            line: Some(line),
            found: format!("type `{name}` has a word that says nothing"),
            allowed: format!("anything without {}", EMPTY_WORDS.join(", ")),
            remedy: "name it after what it holds or does",
        })
        .collect()
}

/// The type a line declares, if it does.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().peekable();
    words.next_if(|word| *word == "pub" || word.starts_with("pub("));
    words.next_if(|word| *word == "unsafe");
    words.next_if(|word| DECLARES_TYPE.contains(word))?;
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end])
}

/// `HarvestPool` as `harvest`, `pool`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for letter in name.chars() {
        match words.last_mut() {
            Some(word) if !letter.is_uppercase() => word.push(letter),
            _ => words.push(letter.to_lowercase().to_string()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_is_found_behind_its_visibility() {
        assert_eq!(declared_type("pub(crate) struct Pool<T> {"), Some("Pool"));
        assert_eq!(declared_type("    type Output = Self;"), Some("Output"));
        assert_eq!(declared_type("// the struct Pool"), None);
    }

    #[test]
    fn only_whole_words_count() {
        let file = |path: &str, text: &str| TextFile { path: path.into(), text: text.into() };
        assert!(in_path(&file("crates/sim/src/baseline.rs", "")).is_none());
        assert!(in_path(&file("crates/sim/src/node_utils.rs", "")).is_some());
        assert!(in_path(&file("crates/sim/src/node/mod.rs", "")).is_some());
        assert!(in_types(&file("a.rs", "struct Baseline;")).is_empty());
        assert_eq!(in_types(&file("a.rs", "\npub struct PoolManager;"))[0].line, Some(2));
    }
}
