//! The scenarios in the repository are read by every reader of the guide, so they must be readable.

use std::fs;
use std::path::Path;

use windfall_scenario::Scenario;

#[test]
fn every_scenario_file_is_accepted_and_has_a_name_of_its_own() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("its entries can be listed").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).expect("the file can be read");
            let file = path.display().to_string();
            let scenario = Scenario::parse(&text, &file).unwrap_or_else(|error| panic!("{error}"));
            names.push(scenario.name);
        }
    }
    let found = names.len();
    assert!(found >= 6, "{names:?}");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), found, "two scenarios share a name: {names:?}");
    assert!(!names.contains(&Scenario::default().name));
}

const PAGE: &str = include_str!("../../../docs/reference/scenario.md");

/// The rows of the reference page: the heading above each, and its key.
fn rows_of_the_page() -> Vec<(&'static str, &'static str)> {
    let mut heading = "";
    let mut rows = Vec::new();
    for line in PAGE.lines() {
        if let Some(text) = line.strip_prefix("## ") {
            heading = text;
        } else if let Some((key, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`'))
        {
            rows.push((heading, key));
        }
    }
    rows
}

#[test]
fn every_key_of_the_reference_page_is_known() {
    for (heading, key) in rows_of_the_page() {
        // Everything is optional and nothing is a table, so an empty table is complained about by name.
        let (header, full) = match heading.split(['[', ']']).nth(1) {
            Some(table) => (format!("[{table}]\n"), format!("{table}.{key}")),
            None => (String::new(), key.to_owned()),
        };
        let path =
            if heading.contains("from a file") && key != "path" { "path = \"a\"\n" } else { "" };
        let text = format!("{header}{path}{key} = {{}}\n");
        let message = Scenario::parse(&text, "page").expect_err("a table is no value").to_string();
        assert!(message.contains(&format!("{full} is ")), "{heading}, {key}: {message}");
    }
}

#[test]
fn every_key_that_is_read_is_on_the_reference_page() {
    let source = include_str!("../src/settings/read.rs");
    let mut found = 0;
    for read in [".number(", ".whole(", ".truth(", ".text(", ".choice(", ".list("] {
        for rest in source.split(read).skip(1) {
            // A key that is not written out there is one of a list beside it.
            let Some((key, _)) =
                rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'))
            else {
                continue;
            };
            assert!(PAGE.contains(&format!("\n| `{key}` |")), "{key} is missing on the page");
            found += 1;
        }
    }
    assert!(found > 30, "only {found} keys were found in the source");
}
