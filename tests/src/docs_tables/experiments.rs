//! Every experiment is a folder with three files: a README that can be read in five minutes, how it was run, and
//! its numbers as data.

use std::collections::BTreeSet;

use crate::architecture::finding::Finding;
use crate::architecture::repository::Repository;

const MOST_WORDS: usize = 800;

/// What a manifest must say.
const KEYS: &[&str] = &["title", "commands", "revision", "seeds", "machine", "results"];

pub(crate) fn findings(repository: &Repository) -> Vec<Finding> {
    let names: BTreeSet<&str> = repository
        .files
        .iter()
        .filter_map(|file| file.path.strip_prefix("experiments/")?.split_once('/'))
        .map(|(name, _)| name)
        .collect();
    names.into_iter().flat_map(|name| of_experiment(repository, name)).collect()
}

fn of_experiment(repository: &Repository, name: &str) -> Vec<Finding> {
    let path = |file: &str| format!("experiments/{name}/{file}");
    let mut findings = Vec::new();
    for file in ["README.md", "manifest.toml", "results.csv"] {
        if !repository.has(&path(file)) {
            findings.push(finding(
                path(file),
                "is missing".to_owned(),
                "README.md, manifest.toml and results.csv in every folder of experiments",
                "write it; the other experiments show its form",
            ));
        }
    }
    if findings.is_empty() {
        findings.extend(readme(&path("README.md"), &repository.text(&path("README.md"))));
        findings.extend(manifest(&path("manifest.toml"), &repository.text(&path("manifest.toml"))));
        findings.extend(results(&path("results.csv"), &repository.text(&path("results.csv"))));
    }
    findings
}

fn finding(file: String, found: String, allowed: &str, remedy: &'static str) -> Finding {
    Finding { file, line: None, found, allowed: allowed.to_owned(), remedy }
}

fn readme(file: &str, text: &str) -> Option<Finding> {
    let words = text.split_whitespace().count();
    (words > MOST_WORDS).then(|| {
        finding(
            file.to_owned(),
            format!("has {words} words"),
            &format!("at most {MOST_WORDS}"),
            "move numbers to results.csv and methods to docs/experiments",
        )
    })
}

fn manifest(file: &str, text: &str) -> Vec<Finding> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            let remedy = "mend its syntax";
            return vec![finding(file.to_owned(), error.to_string(), "a TOML table", remedy)];
        }
    };
    let missing = KEYS.iter().filter(|key| !table.contains_key(**key));
    missing
        .map(|key| {
            finding(
                file.to_owned(),
                format!("has no key `{key}`"),
                &KEYS.join(", "),
                "say how the numbers came about",
            )
        })
        .collect()
}

/// Every line has as many fields as the first.
fn results(file: &str, text: &str) -> Vec<Finding> {
    let mut lines = text.lines();
    let columns = lines.next().map_or(0, fields);
    lines
        .enumerate()
        .filter(|(_, line)| fields(line) != columns)
        .map(|(place, line)| Finding {
            line: Some(place + 2),
            ..finding(
                file.to_owned(),
                format!("{} fields", fields(line)),
                &format!("{columns}, as in the first line"),
                "quote fields that hold a comma",
            )
        })
        .collect()
}

/// Fields of a line of CSV; commas in quotes do not count.
fn fields(line: &str) -> usize {
    let outside = line.split('"').step_by(2);
    1 + outside.map(|part| part.matches(',').count()).sum::<usize>()
}

#[test]
fn long_pages_missing_keys_and_ragged_rows_are_found() {
    assert!(readme("a", &"word ".repeat(801)).is_some() && readme("a", "word").is_none());
    assert_eq!(manifest("a", "title = 1\ncommands = []\nseeds = 1\nmachine = 1").len(), 2);
    assert_eq!(results("a", "a,b\n1,\"2,3\"\n1\n")[0].line, Some(3));
}
