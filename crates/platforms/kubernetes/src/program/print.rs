//! What the program prints. Logs go to standard error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use kube::CustomResourceExt;
use serde_json::Value;
use windfall_kubernetes::resource_policy::ResourcePolicy;
use windfall_kubernetes::{rbac, yaml};

pub(super) fn crds() {
    let crd = serde_json::to_value(ResourcePolicy::crd()).expect("a definition is plain data");
    documents(&[crd]);
}

pub(super) fn rbac(namespace: &str) {
    documents(&rbac::roles(namespace));
}

fn documents(all: &[Value]) {
    for one in all {
        print!("---\n{}", yaml::document(one));
    }
}

pub(super) fn line(text: &str) {
    println!("{text}");
}

pub(super) fn note(text: &str) {
    eprintln!("{text}");
}

pub(super) fn problem(text: &str) {
    eprintln!("error: {text}");
}
