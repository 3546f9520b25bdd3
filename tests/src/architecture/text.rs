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

/// Words of an old private dialect; docs and comments use the field's own (`reported`, `decision`, `weighted`).
const DIALECT: &[&str] = &[
    concat!("to", "ld"),
    concat!("wi", "sh"),
    concat!("wi", "shes"),
    concat!("wi", "shed"),
    concat!("fe", "lt"),
    concat!("dea", "rest"),
];

/// Endings of files that people read.
const READ_BY_PEOPLE: &[&str] = &[".rs", ".md", ".py", ".js", ".html"];

/// Also inside names of functions and tests: `what_was_decided` is three words.
pub(crate) fn dialect(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_read = |file: &&TextFile| READ_BY_PEOPLE.iter().any(|end| file.path.ends_with(end));
    for file in repository.files.iter().filter(is_read) {
        for (line, text) in file.lines() {
            findings.extend(dialect_words(text).map(|word| Finding {
                file: file.path.clone(),
                line: Some(line),
                found: format!("`{word}`"),
                allowed: "plain words: reported, passed, decision, weighted, largest".to_owned(),
                remedy: "say what happens in the field's own words",
            }));
        }
    }
    findings
}

fn dialect_words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphabetic())
        .filter(|word| DIALECT.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

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
    fn dialect_is_found_in_sentences_and_in_names() {
        let [first, second, ..] = DIALECT else { panic!("there are two") };
        let line = format!("fn what_is_{first}() {{}} // {}wise", second.to_uppercase());
        assert_eq!(dialect_words(&line).collect::<Vec<_>>(), [*first]);
    }

    #[test]
    fn a_path_of_an_address_is_not_one_of_a_machine() {
        let folder = PRIVATE_FOLDERS[0];
        assert!(is_root(&format!("open(\"{folder}me\")"), folder));
        assert!(!is_root(&format!("https://example.org{folder}me"), folder));
    }
}
