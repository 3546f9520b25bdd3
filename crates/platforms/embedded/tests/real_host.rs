//! The platform on the real kernel: every suite and a few stories with real processes under real limits.
//!
//! ```text
//! cargo test -p windfall-embedded --features trial --test real_host             the best driver of this machine
//! WINDFALL_DRIVER=emulated cargo test ... --test real_host                      without cgroups, as without root
//! ```
//!
//! Root runs all of them again as an unprivileged user.
#![allow(clippy::print_stdout, reason = "this is a program")]

#[path = "as_nobody/again.rs"]
mod nobody;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration as Time;

use libtest_mimic::{Arguments, Trial};
use serde_json::json;
use windfall_control::CallLoop;
use windfall_core::conformance::{call_platform_suite, platform_suite};
use windfall_core::{
    Allocation, CallControl, CallDecision, CallPolicy, CallSafeguardChain, CallView, Duration,
    PolicyError,
};
use windfall_embedded::pool::SizedBy;
use windfall_embedded::trial::{Elsewhere, Rig};
use windfall_embedded::{AgentSettings, EmbeddedPlatform};
use windfall_openwhisk::{Outcome, StartKind};
use windfall_sandbox::{DriverChoice, Host, HostOptions};

const NODE: Allocation = Allocation::new(2000, 2048);

/// Gives every call so much.
struct Constant(Option<Allocation>);

impl CallPolicy for Constant {
    fn name(&self) -> &str {
        "constant"
    }
    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        Ok(CallDecision::exactly(self.0.unwrap_or(call.reservation), "constant"))
    }
    fn leaves_calls_alone(&self) -> bool {
        self.0.is_none()
    }
    fn learns(&self) -> bool {
        self.0.is_some()
    }
}

fn control(grant: Option<Allocation>) -> Box<dyn CallControl> {
    Box::new(CallLoop::new(Box::new(Constant(grant)), CallSafeguardChain::default()))
}

fn rig(host: &Arc<Host>, control: Box<dyn CallControl>) -> Rig {
    let mut settings = AgentSettings::new(NODE);
    // Other programs may keep this machine's cores for a while.
    settings.decision_budget = Duration::from_secs(60);
    Rig::new(settings, Arc::clone(host) as _, control)
}

fn main() -> ExitCode {
    windfall_functions::serve_if_function();
    let driver = match std::env::var("WINDFALL_DRIVER").as_deref() {
        Ok("emulated") => DriverChoice::Emulated,
        _ => DriverChoice::Best,
    };
    let host = Host::start(&HostOptions { driver, ..HostOptions::default() });
    let host = Arc::new(host.unwrap_or_else(|error| panic!("no host: {error}")));
    // One at a time: each story has the node for itself.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let story = |name: &str, story: fn(&Arc<Host>)| {
        let host = Arc::clone(&host);
        Trial::test(format!("{name} ({})", host.capabilities().driver), move || {
            story(&host);
            Ok(())
        })
    };
    let mut trials = vec![
        story("cold_then_warm", cold_then_warm),
        story("memory_below_the_users_is_retried", memory_below_the_users_is_retried),
        story("calls_are_served_as_promised", calls_are_served_as_promised),
        story("ticks_are_served_as_promised", ticks_are_served_as_promised),
        story("many_instances_start_together", many_instances_start_together),
    ];
    trials.extend(nobody::trial());
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn cold_then_warm(host: &Arc<Host>) {
    let rig = rig(host, control(None));
    rig.deploy("hello", Allocation::new(500, 64), Time::from_secs(20));
    let first = rig.call("hello", json!({"name": "Ada"}));
    assert_eq!(first.outcome, Outcome::Success(r#"{"greeting":"Hello, Ada!"}"#.into()));
    assert_eq!(first.start_kind, StartKind::Cold);
    let second = rig.call("hello", json!({"name": "Ada"}));
    assert_eq!(second.start_kind, StartKind::Warm);
    assert_eq!(rig.agent().status().expect("it runs").sensor_reads, 0);
}

/// The function writes to 128 MiB; 48 are too few, the user's 256 are enough.
fn memory_below_the_users_is_retried(host: &Arc<Host>) {
    if host.capabilities().driver == "emulated" {
        return; // A limit of address space kills nobody: allocations fail inside the function.
    }
    let rig = rig(host, control(Some(Allocation::new(1000, 48))));
    rig.deploy("autoscale", Allocation::new(1000, 256), Time::from_secs(20));
    let ran = rig.call("autoscale", json!({"bloat": 128}));
    assert_eq!(ran.outcome.status_code(), 0, "{:?}", ran.outcome);
    assert_eq!(ran.annotations.value("memoryKills"), Some(&json!(1)), "{ran:?}");
}

fn calls_are_served_as_promised(host: &Arc<Host>) {
    let tally = call_platform_suite(NODE, &mut |control| {
        let (elsewhere, questions) = Elsewhere::new();
        let host = Arc::clone(host);
        let player = std::thread::spawn(move || {
            let rig = rig(&host, Box::new(elsewhere));
            rig.deploy("autoscale-1", Allocation::new(500, 128), Time::from_secs(30));
            rig.deploy("autoscale-2", Allocation::new(900, 128), Time::from_secs(30));
            let call = |number: u64| match number % 2 {
                0 => ("autoscale-1", json!({"sleep": 20 + number * 11 % 200})),
                _ => ("autoscale-2", json!({"prime": 20_000 + 1000 * number})),
            };
            rig.call_all((0..30).map(call));
        });
        while let Ok(question) = questions.recv() {
            question(control);
        }
        player.join().expect("the player does not panic");
    });
    println!("     {tally:?}");
    assert!(tally.looks > 0 && tally.changes > 0, "{tally:?}");
}

fn ticks_are_served_as_promised(host: &Arc<Host>) {
    for sized_by in [SizedBy::Call, SizedBy::Instance] {
        let make = || {
            let mut settings = AgentSettings::new(NODE);
            settings.pool.sized_by = sized_by;
            let mut rig = Rig::new(settings, Arc::clone(host) as _, control(None));
            rig.deploy("hello", Allocation::new(500, 64), Time::from_secs(20));
            rig.call("hello", json!({}));
            let agent = Arc::new(rig.agent.take().expect("it was just started"));
            // The runtime must outlive the agent, and a suite ends when it ends.
            std::mem::forget(rig);
            Box::new(EmbeddedPlatform::new(agent))
        };
        platform_suite(&make, &|platform: &mut EmbeddedPlatform| {
            std::thread::sleep(Time::from_millis(10));
            platform.agent().clock().now()
        });
    }
}

fn many_instances_start_together(host: &Arc<Host>) {
    let mut settings = AgentSettings::new(Allocation::new(100_000, 16_384));
    settings.decision_budget = Duration::from_secs(60);
    let rig = Rig::new(settings, Arc::clone(host) as _, control(None));
    rig.deploy("autoscale", Allocation::new(500, 64), Time::from_secs(60));
    let ran = rig.call_all((0..50).map(|_| ("autoscale", json!({"sleep": 500}))));
    assert!(ran.iter().all(|one| one.outcome.status_code() == 0), "{:?}", ran[0].outcome);
    let status = rig.agent().status().expect("it runs");
    println!("     {} instances", status.instances);
}
