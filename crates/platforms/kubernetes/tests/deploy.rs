//! What is deployed is what the code says.

use std::path::Path;

use kube::CustomResourceExt;
use windfall_kubernetes::resource_policy::ResourcePolicy;
use windfall_kubernetes::yaml;

#[test]
fn the_chart_has_our_definition_golden() {
    let definition = serde_json::to_value(ResourcePolicy::crd()).unwrap();
    let wanted = format!("---\n{}", yaml::document(&definition));
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../deploy/helm/windfall/crds/resourcepolicies.yaml");
    if std::env::var_os("WINDFALL_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == wanted,
        "the chart's definition is another one; `cargo xtask bless` rewrites it"
    );
}
