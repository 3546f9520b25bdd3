//! Tests against a real cluster. `cargo xtask kubernetes` starts one and runs them inside its network; with KUBECONFIG
//! set they run against that one.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests say where they stopped")]

#[path = "cluster/bed.rs"]
mod bed;
#[path = "cluster/chart.rs"]
mod chart;
#[path = "cluster/class.rs"]
mod class;
#[path = "cluster/control_groups.rs"]
mod control_groups;
#[path = "cluster/controller.rs"]
mod controller;
#[path = "cluster/definition.rs"]
mod definition;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/kpa_beside.rs"]
mod kpa_beside;
#[path = "cluster/resize.rs"]
mod resize;
#[path = "cluster/scale_from_zero.rs"]
mod scale_from_zero;
#[path = "cluster/story.rs"]
mod story;
