//! The simulator as a platform, and which policies receive foresight.

use std::sync::Mutex;

use windfall_core::conformance::episodic_suite;
use windfall_core::{
    Allocation, CallClose, CallControl, CallPlan, CallView, Duration, GrantChange, Look, NodeId,
    RunningCall, Seed, Start,
};
use windfall_sim::{Faults, ScaleOut, Settings, Simulator};

use crate::stage::{Everything, Script, Scripted, at, function, work};

/// Two functions whose calls come every second or two, for a minute and a half.
fn script() -> Script {
    let mut arrivals = Vec::new();
    for second in 0..90 {
        arrivals.push(at(f64::from(second), 0, work(1.5, 2.0)));
        if second % 2 == 0 {
            arrivals.push(at(f64::from(second) + 0.25, 1, work(0.5, 1.0)));
        }
    }
    let mut functions = vec![function(2000, 256), function(1000, 512)];
    functions[1].name = "g".into();
    Script::new(functions, arrivals)
}

fn conforms(settings: Settings) {
    episodic_suite(&|| {
        let control = Scripted::default();
        Box::new(Simulator::new(settings, script(), control, Everything::default(), Seed::new(1)))
    });
}

#[test]
fn the_simulator_is_a_platform_like_any_other() {
    conforms(Settings::new(2, Allocation::new(4000, 4096)));
}

#[test]
fn it_stays_one_when_cpu_is_contended_and_things_go_wrong() {
    let mut settings = Settings::new(2, Allocation::new(2000, 4096));
    settings.cluster.over_commit_cpu = 2.0;
    settings.faults = Faults { telemetry_loss: 0.3, slow_actuation: 0.3, ..settings.faults };
    conforms(settings);
}

#[test]
fn it_is_one_where_instances_are_sized_and_changes_take_time() {
    for delay in [0, 3, 25] {
        let mut settings = Settings::new(2, Allocation::new(4000, 4096));
        settings.scale_out = ScaleOut::OnTick;
        settings.actuation_delay = Duration::from_secs(delay);
        conforms(settings);
        settings.scale_out = ScaleOut::OnMiss;
        settings.concurrency = 4;
        settings.faults.telemetry_loss = 0.3;
        conforms(settings);
    }
}

/// Notes whether each call came with its future.
struct Spy<'a> {
    control: Scripted,
    seen_foresight: &'a Mutex<Vec<bool>>,
}

impl CallControl for Spy<'_> {
    fn size(&mut self, call: &CallView) -> CallPlan {
        self.seen_foresight.lock().expect("nobody panics with it").push(call.foresight.is_some());
        self.control.size(call)
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, on: NodeId, room: Allocation) -> Start {
        self.seen_foresight.lock().expect("nobody panics with it").push(call.foresight.is_some());
        self.control.start(call, plan, on, room)
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        self.control.look(running, changes)
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        self.control.close(end, changes);
    }
}

#[test]
fn the_future_is_shown_only_where_the_settings_say_so() {
    for foresight in [false, true] {
        let seen_foresight = Mutex::default();
        let settings = Settings { foresight, ..Settings::new(1, Allocation::new(4000, 4096)) };
        let spy = Spy { control: Scripted::default(), seen_foresight: &seen_foresight };
        let seen = Everything::default();
        Simulator::new(settings, script(), spy, seen, Seed::new(1)).run_to_end();
        let seen_foresight = seen_foresight.lock().unwrap();
        assert!(seen_foresight.len() >= 135, "{} questions", seen_foresight.len());
        assert!(seen_foresight.iter().all(|future| *future == foresight));
    }
}
