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
