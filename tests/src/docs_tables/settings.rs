//! The settings of policies, held against the tables of their pages.
//!
//! Names come from the registry itself: a policy that is given a setting it does not have answers with those
//! it has. Defaults come from the settings types; a policy with settings whose type is not listed here fails.

use serde::Serialize;
use serde_json::Value;
use windfall_core::Seed;
use windfall_policy::{
    AutothrottleSettings, EnsureSettings, GreedySettings, HistogramSettings,
    HybridHistogramSettings, KeepAliveSettings, LibraSettings, PeakClaimsSettings,
    QueueingSettings, ShabariSettings, WindfallAdmissionSettings, WindfallScalingSettings,
    WindfallSizingSettings,
};
use windfall_registry::{PolicyEntry, REGISTRY};

use super::policies::page_of;
use super::table::{code_words, rows};
use crate::architecture::finding::Finding;
use crate::architecture::repository::Repository;

/// The settings of a policy as its type has them, or nothing if its page says more than a type can: manifests.
fn defaults(policy: &str) -> Option<Value> {
    fn of<S: Default + Serialize>() -> Option<Value> {
        Some(serde_json::to_value(S::default()).expect("settings are plain data"))
    }
    match policy {
        "autothrottle" => of::<AutothrottleSettings>(),
        "ensure" => of::<EnsureSettings>(),
        "greedy" => of::<GreedySettings>(),
        "histogram" => of::<HistogramSettings>(),
        "hybrid-histogram" => of::<HybridHistogramSettings>(),
        "keep-alive" => of::<KeepAliveSettings>(),
        "libra" => of::<LibraSettings>(),
        "queueing" => of::<QueueingSettings>(),
        "shabari" => of::<ShabariSettings>(),
        "windfall" => of::<WindfallSizingSettings>(),
        "weights-histogram" => of::<PeakClaimsSettings>(),
        "windfall-admission" => of::<WindfallAdmissionSettings>(),
        "windfall-scaling" => of::<WindfallScalingSettings>(),
        _ => None,
    }
}

pub(crate) fn findings(repository: &Repository) -> Vec<Finding> {
    REGISTRY.iter().flat_map(|entry| of_policy(repository, entry)).collect()
}

fn of_policy(repository: &Repository, entry: &PolicyEntry) -> Vec<Finding> {
    let page = page_of(entry.name);
    let listed = listed(&repository.text(&page));
    let finding = |found: String, allowed: &str, remedy| Finding {
        file: page.clone(),
        line: None,
        found,
        allowed: allowed.to_owned(),
        remedy,
    };
    let mut findings = Vec::new();
    for name in names(entry) {
        let is_there = |(key, _): &(String, String)| key.split('.').next() == Some(&name);
        if !listed.iter().any(is_there) {
            findings.push(finding(
                format!("setting `{name}` of `{}` is not in the table of settings", entry.name),
                "a row for every setting that the policy has",
                "add it with its default and one line of meaning",
            ));
        }
    }
    let Some(defaults) = defaults(entry.name) else { return findings };
    for (key, written) in &listed {
        let Some(value) = at(&defaults, key) else {
            findings.push(finding(
                format!("`{}` has no setting `{key}`", entry.name),
                "settings that the policy has; parts of one with a dot, such as `slack.beta`",
                "take it out, or mend its name",
            ));
            continue;
        };
        if !says(written, value) {
            findings.push(finding(
                format!("the default of `{key}` is written as {written}"),
                &value.to_string(),
                "write the default that the code has",
            ));
        }
    }
    for key in leaves(&defaults) {
        if !listed.iter().any(|(other, _)| *other == key) {
            findings.push(finding(
                format!("setting `{key}` of `{}` is not in the table of settings", entry.name),
                "a row for every setting that the policy has",
                "add it with its default and one line of meaning",
            ));
        }
    }
    findings
}

/// The names of a policy's settings, from its answer to one that it does not have.
fn names(entry: &PolicyEntry) -> Vec<String> {
    const NO_SETTING: &str = "there-is-no-such-setting";
    let table: toml::Table = format!("{NO_SETTING} = 1").parse().expect("a table");
    let Err(refusal) = entry.assemble(&Some(table), Seed::new(1)) else {
        panic!("{} takes settings that it does not have", entry.name);
    };
    let words: Vec<String> = code_words(refusal.message()).into_iter().map(str::to_owned).collect();
    let names: Vec<String> = words.into_iter().filter(|word| word != NO_SETTING).collect();
    let is_by_manifest = names.iter().any(|name| name == "manifest");
    assert!(
        names.is_empty()
            || is_by_manifest
            || entry.name == "autopilot"
            || defaults(entry.name).is_some(),
        "{} has settings; add their type to `defaults` in tests/src/docs_tables/settings.rs",
        entry.name
    );
    names
}

/// Keys and what stands as their default, from all tables of settings.
fn listed(page: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for row in rows(page, "setting") {
        let keys = code_words(&row[0]);
        let values: Vec<&str> = row[1].split(", ").collect();
        assert_eq!(keys.len(), values.len(), "a row of settings has one default for each: {row:?}");
        pairs
            .extend(keys.into_iter().map(str::to_owned).zip(values.into_iter().map(str::to_owned)));
    }
    pairs
}

fn at<'a>(settings: &'a Value, key: &str) -> Option<&'a Value> {
    key.split('.').try_fold(settings, |value, part| value.get(part))
}

/// Whether `written` is the default `value`, whatever number of zeros it has.
fn says(written: &str, value: &Value) -> bool {
    let written = written.trim_matches('`');
    match value {
        Value::Number(number) => {
            written.parse::<f64>().ok().zip(number.as_f64()).is_some_and(|(a, b)| a == b)
        }
        Value::String(word) => written.trim_matches('"') == word,
        Value::Null => written == "none",
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            serde_json::from_str::<Value>(written).is_ok_and(|written| written == *value)
        }
    }
}

/// The keys of all single values, those inside others with dots.
fn leaves(settings: &Value) -> Vec<String> {
    let Value::Object(fields) = settings else { return Vec::new() };
    let mut keys = Vec::new();
    for (key, value) in fields {
        match value {
            Value::Object(_) => {
                keys.extend(leaves(value).into_iter().map(|inner| format!("{key}.{inner}")));
            }
            _ => keys.push(key.clone()),
        }
    }
    keys
}

#[test]
fn keys_inside_others_have_dots_and_numbers_any_zeros() {
    let settings = serde_json::json!({ "a": 1, "b": { "c": 0.30 } });
    assert_eq!(leaves(&settings), ["a", "b.c"]);
    assert_eq!(at(&settings, "b.c"), Some(&serde_json::json!(0.3)));
    assert!(says("0.30", &settings["b"]["c"]) && says("1", &settings["a"]));
    assert!(!says("2", &settings["a"]) && says("3e-5", &serde_json::json!(0.00003)));
    let page = "| setting | default | |\n|---|---|---|\n| `a`, `b` | 1, true | |\n";
    assert_eq!(listed(page), [("a".into(), "1".into()), ("b".into(), "true".into())]);
}
