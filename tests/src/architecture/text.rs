//! Lines that must not land. The patterns are glued together so that this file does not match itself.

use super::finding::Finding;
use super::repository::{Repository, TextFile};

/// Code that stands for code, or for a moment of debugging.
const PLACEHOLDERS: &[&str] =
    &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];

/// Promises in comments; allowed with the number of an issue.
const PROMISES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Tests that are switched off without a word.
const SILENCED: &[&str] = &[concat!("#[", "ignore]"), concat!("``", "`ignore")];

/// Where somebody's files lie.
const PRIVATE_FOLDERS: &[&str] = &[
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "work/"),
    concat!("/", "Users/"),
    concat!("\\", "Users\\"),
];

pub(crate) fn unfinished(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.rust_files() {
        for (line, text) in file.lines() {
            let found = |word: &&str, allowed: &str, remedy| Finding {
                file: file.path.clone(),
                line: Some(line),
                found: format!("`{word}`"),
                allowed: allowed.to_owned(),
                remedy,
            };
            findings.extend(
                PLACEHOLDERS.iter().filter(|word| text.contains(**word)).map(|word| {
                    found(word, "finished code", "write it, or leave the whole path out")
                }),
            );
            findings.extend(PROMISES.iter().filter(|word| is_empty_promise(text, word)).map(
                |word| {
                    found(word, "with an issue, as in #12", "do it, or open an issue and name it")
                },
            ));
            findings.extend(SILENCED.iter().filter(|word| text.contains(**word)).map(|word| {
                found(word, "#[ignore = \"reason\"] on tests", "say why, or make it run")
            }));
        }
    }
    findings
}

/// Whether `line` has the word `promise` and no issue number behind it.
fn is_empty_promise(line: &str, promise: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(promise).any(|(start, _)| {
        let rest = &line[start + promise.len()..];
        let is_word = !line[..start].ends_with(in_word) && !rest.starts_with(in_word);
        let names_issue =
            rest.split('#').skip(1).any(|after| after.starts_with(|c: char| c.is_ascii_digit()));
        is_word && !names_issue
    })
}

pub(crate) fn machine_paths(repository: &Repository) -> Vec<Finding> {
    repository.files.iter().flat_map(in_file).collect()
}

fn in_file(file: &TextFile) -> Vec<Finding> {
    file.lines()
        .filter_map(|(line, text)| Some((line, PRIVATE_FOLDERS.iter().find(|p| is_root(text, p))?)))
        .map(|(line, folder)| Finding {
            file: file.path.clone(),
            line: Some(line),
            found: format!("a path under `{folder}`"),
            allowed: "paths from the root of the repository".to_owned(),
            remedy: "make it relative, or a setting",
        })
        .collect()
}

/// Whether an absolute path through `folder` begins on this line; `https://a.b/c` is none.
fn is_root(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(start, _)| {
        !line[..start].ends_with(|c: char| c.is_alphanumeric() || ['_', '.', '-', '/'].contains(&c))
            || folder.starts_with('\\')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_needs_an_issue() {
        let word = PROMISES[0];
        assert!(is_empty_promise(&format!("// {word}: later"), word));
        assert!(!is_empty_promise(&format!("// {word} #12: later"), word));
        assert!(!is_empty_promise(&format!("const {word}_LIST"), word));
    }

    #[test]
    fn a_path_of_an_address_is_not_one_of_a_machine() {
        let folder = PRIVATE_FOLDERS[0];
        assert!(is_root(&format!("open(\"{folder}me\")"), folder));
        assert!(!is_root(&format!("https://example.org{folder}me"), folder));
    }
}
