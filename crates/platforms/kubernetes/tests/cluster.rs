//! Tests against a real cluster. `cargo xtask kubernetes` starts one and runs them inside its network; with KUBECONFIG
//! set they run against that one.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests say where they stopped")]

#[path = "cluster/bed.rs"]
mod bed;
#[path = "cluster/chart.rs"]
mod chart;
#[path = "cluster/class.rs"]
mod class;
#[path = "cluster/compare.rs"]
mod compare;
#[path = "cluster/control_groups.rs"]
mod control_groups;
#[path = "cluster/controller.rs"]
mod controller;
#[path = "cluster/definition.rs"]
mod definition;
#[path = "cluster/door.rs"]
mod door;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/faults_of_the_server.rs"]
mod faults_of_the_server;
#[path = "cluster/guests.rs"]
mod guests;
#[path = "cluster/installed.rs"]
mod installed;
#[path = "cluster/knative_size.rs"]
mod knative_size;
#[path = "cluster/kpa_beside.rs"]
mod kpa_beside;
#[path = "cluster/permissions.rs"]
mod permissions;
#[path = "cluster/resize.rs"]
mod resize;
#[path = "cluster/scale_from_zero.rs"]
mod scale_from_zero;
#[path = "cluster/simppo.rs"]
mod simppo;
#[path = "cluster/skew.rs"]
mod skew;
#[path = "cluster/story.rs"]
mod story;
