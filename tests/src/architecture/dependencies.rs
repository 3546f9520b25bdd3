//! What we depend on, held against `deny.toml`. The same file steers cargo-deny where it is installed;
//! these tests need nothing but cargo.

use serde_json::Value;

use super::finding::Finding;
use super::repository::Repository;
use super::spdx;

pub(crate) fn findings(repository: &Repository) -> Vec<Finding> {
    let rules = Rules::read(repository);
    let metadata = repository.metadata();
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    packages.iter().flat_map(|package| rules.judge(package)).collect()
}

struct Rules {
    licences: Vec<String>,
    /// Crates that may have these licences on top.
    excepted: Vec<(String, Vec<String>)>,
    banned: Vec<String>,
}

impl Rules {
    fn read(repository: &Repository) -> Self {
        let rules: toml::Table =
            repository.text("deny.toml").parse().expect("deny.toml is valid TOML");
        let licences = &rules["licenses"];
        let excepted = licences.get("exceptions").and_then(toml::Value::as_array);
        let banned = rules["bans"]["deny"].as_array().expect("[bans] deny is a list");
        Self {
            licences: strings(licences.get("allow")),
            excepted: excepted
                .into_iter()
                .flatten()
                .map(|entry| (name(entry), strings(entry.get("allow"))))
                .collect(),
            banned: banned.iter().map(name).collect(),
        }
    }

    fn judge(&self, package: &Value) -> Vec<Finding> {
        let name = package["name"].as_str().unwrap_or_default();
        let version = package["version"].as_str().unwrap_or_default();
        let finding = |found: String, allowed: String, remedy| Finding {
            file: format!("{name} {version}"),
            line: None,
            found,
            allowed,
            remedy,
        };
        let mut findings = Vec::new();
        let allowed: Vec<&str> = self
            .excepted
            .iter()
            .filter(|(excepted, _)| excepted == name)
            .flat_map(|(_, licences)| licences)
            .chain(&self.licences)
            .map(String::as_str)
            .collect();
        let licence = package["license"].as_str().unwrap_or_default();
        if !spdx::is_allowed(licence, &allowed) {
            findings.push(finding(
                format!("licence `{licence}`"),
                allowed.join(", "),
                "choose another crate, or extend [licenses] of deny.toml with a sentence why",
            ));
        }
        if self.banned.iter().any(|banned| banned == name) {
            findings.push(finding(
                "is banned".to_owned(),
                "anything that is not in [bans] of deny.toml".to_owned(),
                "`cargo tree -i` shows who asks for it; switch that feature off",
            ));
        }
        if !is_from_default_registry(package) {
            findings.push(finding(
                format!("comes from {}", package["source"]),
                "the default registry and paths inside this repository".to_owned(),
                "depend on a published version",
            ));
        }
        findings
    }
}

/// Whether this package and all it asks for lie in this repository or in cargo's default registry,
/// which is the one that manifests do not name.
fn is_from_default_registry(package: &Value) -> bool {
    let own = match package["source"].as_str() {
        None => true,
        Some(source) => source.starts_with("registry+"),
    };
    let mut asked = package["dependencies"].as_array().into_iter().flatten();
    own && asked.all(|dependency| dependency["registry"].is_null())
}

fn name(entry: &toml::Value) -> String {
    let name = entry.get("crate").or_else(|| entry.get("name")).unwrap_or(entry);
    name.as_str().expect("entries of deny.toml name a crate").to_owned()
}

fn strings(list: Option<&toml::Value>) -> Vec<String> {
    let entries = list.and_then(toml::Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.as_str()?.to_owned())).collect()
}
