//! A checkpoint stands where a policy's name can, or is refused with the reason before anything runs.

use windfall_agents::faasrm::{ScoreAgent, sizing};
use windfall_core::Seed;

use super::program::{Place, SMALL};

/// An agent that has learned nothing yet, as a file.
fn save(place: &Place, name: &str, kind: &str) {
    let seed = Seed::new(1);
    let mut checkpoint = sizing::empty_checkpoint(seed, 0, 0, serde_json::json!({}));
    checkpoint.put_network("actor", ScoreAgent::new(seed).actor());
    checkpoint.header.environment.id = kind.to_owned();
    place.write(name, checkpoint.to_bytes().expect("a checkpoint has bytes"));
}

#[test]
fn a_file_runs_beside_the_names_and_is_called_by_its_own() {
    let place = Place::new();
    save(&place, "learned/night.safetensors", sizing::KIND);
    let line = "compare --policies fixed,learned/night.safetensors --loads 0.8 --seeds 1 --journals \
                --out o --format json";
    let json = place.run(line, &SMALL).json();
    let rows = json["rows"].as_array().expect("rows");
    let policies: Vec<&str> = rows.iter().filter_map(|row| row["policy"].as_str()).collect();
    assert_eq!(policies, ["fixed", "night.safetensors"]);
    assert!(place.files().contains(&"o/night.safetensors-load0.8-seed1.jsonl".to_owned()));
    let line = "simulate --policy learned/night.safetensors --out s --format json";
    let json = place.run(line, &SMALL).json();
    assert_eq!((&json["policy"], &json["fallbacks"]), (&"night.safetensors".into(), &0.into()));
}

#[test]
fn a_file_that_is_no_policy_is_refused_before_anything_runs() {
    let place = Place::new();
    let run = |file: &str| place.run(&format!("simulate --policy {file} --out s"), &SMALL);
    run("gone.safetensors").refused(&["checkpoint gone.safetensors: cannot open checkpoint"]);
    place.write("text.safetensors", "not a checkpoint at all");
    run("text.safetensors").refused(&["text.safetensors: damaged or no checkpoint"]);
    save(&place, "other.safetensors", "windfall/Weather-v0");
    run("other.safetensors").refused(&["kind is windfall/Weather-v0, expected", sizing::KIND]);
    save(&place, "a/same.safetensors", sizing::KIND);
    save(&place, "b/same.safetensors", sizing::KIND);
    let line = "compare --policies a/same.safetensors,b/same.safetensors";
    place.run(line, &SMALL).refused(&["policies holds \"same.safetensors\" twice"]);
    place.write(
        "s.toml",
        "[platform]\nconcurrency = 9\n[run]\npolicies = [\"a/same.safetensors\"]\n",
    );
    place.run("compare --scenario s.toml", &[]).refused(&["sizes single calls"]);
    assert!(!place.files().iter().any(|file| file.starts_with("s/")));
}
