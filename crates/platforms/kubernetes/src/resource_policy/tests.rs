use kube::CustomResourceExt;
use serde_json::json;

use super::*;

fn spec(value: serde_json::Value) -> Result<ResourcePolicySpec, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[test]
fn the_shortest_policy_recommends_with_windfall() {
    let read = spec(json!({"targetRef": {"kind": "Deployment", "name": "hello"}})).unwrap();
    assert_eq!(read.mode, Mode::Recommend);
    assert_eq!(read.policy.spelling(), "windfall");
    assert_eq!(read.target_ref.api_version, "apps/v1");
    assert!(!read.actuation.new_revisions && !read.paused);
}

#[test]
fn a_misspelled_key_is_named() {
    let problem = spec(json!({"targetRef": {"kind": "Deployment", "name": "a"}, "moed": "Auto"}));
    assert!(problem.unwrap_err().contains("moed"));
}

#[test]
fn columns_end_in_ready_and_age() {
    let crd = ResourcePolicy::crd();
    let columns = crd.spec.versions[0].additional_printer_columns.as_ref().unwrap();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names[names.len() - 2..], ["Ready", "Age"]);
}

#[test]
fn rules_are_part_of_the_schema() {
    let crd = serde_json::to_string(&ResourcePolicy::crd()).unwrap();
    for message in [
        "mode Canary needs canary.sharePercent",
        "targetRef cannot be changed",
        "minAllowed.cpu is above maxAllowed.cpu",
        "replicas.min is above replicas.max",
        "policy has either a name or a checkpoint",
    ] {
        assert!(crd.contains(message), "{message}");
    }
}

/// One row per field: path, type, default, description.
fn rows(path: &str, schema: &serde_json::Value, into: &mut Vec<String>) {
    let Some(properties) = schema.get("properties").and_then(|all| all.as_object()) else {
        return;
    };
    for (name, inner) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let kind = inner.get("type").and_then(|kind| kind.as_str()).unwrap_or("any");
        let default = inner.get("default").filter(|value| !value.is_object());
        let default = default.map_or_else(String::new, |value| format!("`{value}`"));
        let words = inner.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        into.push(format!("| `{path}` | {kind} | {default} | {words} |"));
        rows(&path, inner, into);
        if let Some(items) = inner.get("items") {
            rows(&format!("{path}[]"), items, into);
        }
    }
}

#[test]
fn golden_reference_of_the_definition() {
    let crd = serde_json::to_value(ResourcePolicy::crd()).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let mut page = String::from(
        "# ResourcePolicy\n\nFields of `windfall.dev/v1alpha1`, written by `cargo xtask bless` from \
         `crates/platforms/kubernetes/src/resource_policy.rs`.\nThe [guide](../guide/kubernetes.md) says how they are used.\n",
    );
    for part in ["spec", "status"] {
        let mut found = Vec::new();
        rows("", &schema[part], &mut found);
        page.push_str(&format!(
            "\n## {part}\n\n| Field | Type | Default | Meaning |\n|---|---|---|---|\n"
        ));
        page.push_str(&found.join("\n"));
        page.push('\n');
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/resource-policy.md");
    if std::env::var_os("WINDFALL_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "run `cargo xtask bless` and read the difference");
}
