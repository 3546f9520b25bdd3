//! The pages, held against what can be typed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Parser};

use crate::arguments::Arguments;

const COMMANDS_PAGE: &str = "docs/reference/commands.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// All files below these folders whose names end so, with their paths from the root.
fn files(folders: &[&str], ending: &str) -> Vec<String> {
    let mut left: Vec<String> = folders.iter().map(|folder| (*folder).to_owned()).collect();
    let mut found = Vec::new();
    while let Some(folder) = left.pop() {
        for entry in
            fs::read_dir(root().join(&folder)).unwrap_or_else(|why| panic!("{folder}: {why}"))
        {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                left.push(path);
            } else if path.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every command that does something by itself, e.g. `trace inspect`.
fn runnable(command: &Command, path: &str, all: &mut BTreeSet<String>) {
    let is_for_users = |part: &&Command| part.get_name() != "help" && !part.is_hide_set();
    let mut parts = command.get_subcommands().filter(is_for_users).peekable();
    let runs = parts.peek().is_none() || !command.is_subcommand_required_set();
    if runs && !path.is_empty() {
        all.insert(path.to_owned());
    }
    for part in parts {
        runnable(part, format!("{path} {}", part.get_name()).trim(), all);
    }
}

/// The command that the words begin with, as far as they name one.
fn named(words: &str) -> String {
    let mut command = Arguments::command();
    let mut path = Vec::new();
    for word in words.split_whitespace() {
        let Some(part) = command.find_subcommand(word).cloned() else { break };
        path.push(word.to_owned());
        command = part;
    }
    path.join(" ")
}

/// Everything in backticks.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn the_page_of_commands_lists_every_command() {
    let page = read(COMMANDS_PAGE);
    let mut listed = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let first = line[2..].replace("\\|", "/");
        let cell = first.split('|').next().unwrap_or_default();
        // `explain <RUN> call 812` or `tick 12`: what is no command belongs to the one before.
        let names: Vec<String> =
            code_words(cell).map(named).filter(|name| !name.is_empty()).collect();
        assert!(!names.is_empty(), "{COMMANDS_PAGE} lists a command that is none: {cell}");
        listed.extend(names);
    }
    let mut all = BTreeSet::new();
    runnable(&Arguments::command(), "", &mut all);
    let missing: Vec<_> = all.difference(&listed).collect();
    assert!(missing.is_empty(), "add to the table of {COMMANDS_PAGE}: {missing:?}");
    let gone: Vec<_> = listed.difference(&all).collect();
    assert!(gone.is_empty(), "{COMMANDS_PAGE} lists what does nothing by itself: {gone:?}");
}

#[test]
fn every_option_on_the_page_of_commands_exists() {
    fn options(command: &Command, all: &mut BTreeSet<String>) {
        for argument in command.get_arguments() {
            let names = argument.get_long_and_visible_aliases().unwrap_or_default();
            all.extend(names.into_iter().map(|name| format!("--{name}")));
        }
        command.get_subcommands().for_each(|part| options(part, all));
    }
    let mut all = BTreeSet::from(["--help".to_owned()]);
    options(&Arguments::command(), &mut all);
    let page = read(COMMANDS_PAGE);
    let words = code_words(&page).flat_map(str::split_whitespace);
    let unknown: Vec<&str> =
        words.filter(|word| word.starts_with("--") && !all.contains(*word)).collect();
    assert!(unknown.is_empty(), "{COMMANDS_PAGE} names options that no command has: {unknown:?}");
}

/// What follows the name of the program on a line of a page, if the line calls it.
fn call(line: &str) -> Option<&str> {
    let line = line.trim().strip_prefix("$ ").unwrap_or(line.trim());
    let words = ["windfall ", "cargo run --release -- "]
        .into_iter()
        .find_map(|program| line.strip_prefix(program))?;
    // A table of results begins like a call: `windfall     0.5 ...`.
    let is_call = words.starts_with(|first: char| first.is_ascii_lowercase());
    // `<name>` and `…` are to be filled in by the reader.
    let is_whole = !words.contains(['<', '…', '[']);
    let words = words.split(" #").next().unwrap_or_default().trim();
    (is_call && is_whole).then_some(words)
}

/// The calls in the code blocks of a page.
fn calls(page: &str) -> Vec<String> {
    let joined = page.replace("\\\n", " ");
    let mut is_code = false;
    let mut calls = Vec::new();
    for line in joined.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code && let Some(words) = call(line) {
            calls.push(words.to_owned());
        }
    }
    calls
}

fn refusal(words: &str) -> Option<String> {
    let typed = std::iter::once("windfall").chain(words.split_whitespace());
    match Arguments::try_parse_from(typed) {
        Ok(_) => None,
        Err(error) if !error.use_stderr() => None,
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn every_command_of_a_page_is_understood() {
    let mut pages = files(&["docs", "experiments"], ".md");
    pages.extend(["README.md", "CONTRIBUTING.md"].map(str::to_owned));
    let mut seen = 0;
    for page in pages {
        for words in calls(&read(&page)) {
            seen += 1;
            if let Some(refusal) = refusal(&words) {
                panic!("{page}: `windfall {words}` is refused; mend the page\n{refusal}");
            }
        }
    }
    assert!(seen >= 15, "only {seen} calls were found: has the form of the pages changed?");
}

#[test]
fn every_command_of_an_experiment_is_understood() {
    for manifest in files(&["experiments"], "manifest.toml") {
        let table: toml::Table = read(&manifest).parse().unwrap();
        let commands = table.get("commands").and_then(toml::Value::as_array);
        let commands = commands.unwrap_or_else(|| panic!("{manifest} has no list `commands`"));
        for command in commands.iter().filter_map(toml::Value::as_str) {
            if let Some(words) = call(command) {
                let refusal = refusal(words).unwrap_or_default();
                assert!(refusal.is_empty(), "{manifest}: `{command}` is refused\n{refusal}");
            } else if let Some((_, test)) = command.split_once("cargo xtask kubernetes --test ") {
                let file = format!("tests/cluster/{test}.rs");
                let exists = files(&["crates/platforms/kubernetes"], &file).len() == 1;
                assert!(exists, "{manifest}: `{command}` runs a test that does not exist");
            } else {
                let is_example = command.starts_with("cargo run --release ");
                let name = command.split_once("--example ").map(|(_, rest)| rest);
                let name = name.and_then(|rest| rest.split_whitespace().next());
                let exists = |name: &str| {
                    let endings =
                        [format!("examples/{name}.rs"), format!("examples/{name}/main.rs")];
                    files(&["crates"], ".rs")
                        .iter()
                        .any(|file| endings.iter().any(|e| file.ends_with(e)))
                };
                assert!(
                    is_example && name.is_some_and(exists),
                    "{manifest}: `{command}` calls neither `windfall` nor an example that exists"
                );
            }
        }
    }
}

#[test]
fn calls_are_found_in_code_blocks_alone() {
    let page = "windfall policies\n```text\n$ windfall compare --seeds 2 \\\n  --loads 1  # twice\n\
                windfall    0.5 1\nwindfall trace inspect <PATH>\n```\n";
    let found = calls(page);
    assert_eq!(found.len(), 1);
    assert!(refusal(&found[0]).is_none(), "{found:?}");
    assert!(refusal("compare --seeeds 2").is_some());
    assert_eq!(named("trace inspect [PATH]"), "trace inspect");
    assert_eq!(named("nothing"), "");
}
