//! Pages that must keep up with the code.

use super::finding::Finding;
use super::repository::Repository;

/// What a reader types first; everything else in the README comes after it.
const FIRST_COMMANDS: [&str; 2] = ["cargo run --release -- up --for 120s", "cargo xtask check"];

/// Folders that pages speak of by their path.
const TOP_FOLDERS: &[&str] = &["crates/", "docs/", "scenarios/", "tests/", "xtask/"];

pub(crate) fn readme(repository: &Repository) -> Vec<Finding> {
    let text = repository.text("README.md");
    let fence = |line: &str| line.starts_with("```");
    let opening = text.lines().position(fence);
    let block: Vec<&str> = opening
        .map(|line| text.lines().skip(line + 1).take_while(|line| !fence(line)).collect())
        .unwrap_or_default();
    if block == FIRST_COMMANDS {
        return Vec::new();
    }
    vec![Finding {
        file: "README.md".to_owned(),
        line: opening.map(|line| line + 1),
        found: format!("the first code block is {block:?}"),
        allowed: format!("exactly {FIRST_COMMANDS:?}"),
        remedy: "put the two commands first; others go into later blocks",
    }]
}

pub(crate) fn architecture(repository: &Repository) -> Vec<Finding> {
    const PAGE: &str = "ARCHITECTURE.md";
    let text = repository.text(PAGE);
    let mut findings = Vec::new();
    // The page describes the whole; it can be held to it once the topmost crate is there.
    let is_whole = repository.has("crates/cli/Cargo.toml");
    for (line, path) in spoken_paths(&text).into_iter().filter(|_| is_whole) {
        if !repository.has(path) {
            findings.push(Finding {
                file: PAGE.to_owned(),
                line: Some(line),
                found: format!("`{path}` does not exist"),
                allowed: "paths that exist, from the root of the repository".to_owned(),
                remedy: "say where it went",
            });
        }
    }
    for name in repository.files.iter().filter_map(|file| crate_folder(&file.path)) {
        if !text.contains(&format!("`{name}`")) {
            findings.push(Finding {
                file: PAGE.to_owned(),
                line: None,
                found: format!("`{name}` is not mentioned"),
                allowed: "a page that knows every crate".to_owned(),
                remedy: "add it to the layers and to the table of places",
            });
        }
    }
    findings
}

/// Paths in backticks, with their lines. A path with a gap to fill in, such as `<name>`, is none.
fn spoken_paths(text: &str) -> Vec<(usize, &str)> {
    let mut paths = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in line.split('`').skip(1).step_by(2) {
            let is_path = TOP_FOLDERS.iter().any(|folder| word.starts_with(folder));
            if is_path && !word.contains(['<', '*', ' ', '{']) {
                paths.push((index + 1, word));
            }
        }
    }
    paths
}

/// `crates/sim` of `crates/sim/Cargo.toml`.
fn crate_folder(path: &str) -> Option<&str> {
    path.strip_suffix("/Cargo.toml").filter(|folder| folder.starts_with("crates/"))
}

/// Tests that the specification names must be there, by the names it gives.
pub(crate) fn specification(repository: &Repository) -> Vec<Finding> {
    const PAGE: &str = "SPECIFICATION.md";
    let mut findings = Vec::new();
    for (index, text) in repository.text(PAGE).lines().enumerate() {
        for name in sentence_names(text) {
            if !repository.rust_files().any(|file| file.text.contains(name)) {
                findings.push(Finding {
                    file: PAGE.to_owned(),
                    line: Some(index + 1),
                    found: format!("there is no test `{name}`"),
                    allowed: "names of tests that are in the code".to_owned(),
                    remedy: "give its new name, or strike out the promise",
                });
            }
        }
    }
    findings
}

/// Names in backticks of three words or more: tests, which are named as sentences.
fn sentence_names(line: &str) -> impl Iterator<Item = &str> {
    let is_name = |name: &&str| {
        name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            && name.matches('_').count() >= 2
    };
    line.split('`').skip(1).step_by(2).filter(is_name)
}

pub(crate) fn links(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (line, text) in file.lines() {
            for target in link_targets(text) {
                if !repository.has(format!("{folder}/{target}").trim_start_matches('/')) {
                    findings.push(Finding {
                        file: file.path.clone(),
                        line: Some(line),
                        found: format!("the link to `{target}` leads nowhere"),
                        allowed: "paths from the folder of the page".to_owned(),
                        remedy: "mend the link",
                    });
                }
            }
        }
    }
    findings
}

/// Relative link targets of a line, without their anchors.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|target| !target.is_empty() && !target.contains(':'))
}

#[test]
fn paths_and_links_are_found_in_prose() {
    let text = "see `crates/sim/src/world.rs`, `crates/<name>` and `min(c, p)`";
    assert_eq!(spoken_paths(text), [(1, "crates/sim/src/world.rs")]);
    let row = "core: `a_b_c`, `peak_mb`; `cargo test -p x`, `d_e_f_1`";
    assert_eq!(sentence_names(row).collect::<Vec<_>>(), ["a_b_c", "d_e_f_1"]);
    let line = "[a](b/c.md#d) and [e](https://f.g) and [h](#i)";
    assert_eq!(link_targets(line).collect::<Vec<_>>(), ["b/c.md"]);
}
