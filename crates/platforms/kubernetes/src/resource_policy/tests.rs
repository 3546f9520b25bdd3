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
