//! The simulator as a platform that runs calls: what it owes the control, with and without faults.

use windfall_control::CallLoop;
use windfall_control::call_safeguards::{Floor, SlackBudget};
use windfall_core::call::Beyond;
use windfall_core::conformance::{CallTally, CheckedCalls, call_platform_suite};
use windfall_core::seed::mix;
use windfall_core::{
    Allocation, CallControl, CallDecision, CallDemand, CallPolicy, CallSafeguardChain, CallView,
    CpuCeiling, Duration, Mebibytes, PolicyError, Resource, RunningCall, Seed,
};
use windfall_sim::{CpuModel, Faults, KernelCpu, Settings, Simulator};

use crate::stage::{Everything, Script, at, function, work};

const NODE: Allocation = Allocation::new(4000, 2048);

/// A minute of calls on two functions, some of which outgrow the memory they are left with.
fn script() -> Script {
    let mut arrivals = Vec::new();
    for n in 0..240u32 {
        let seconds = f64::from(n) * 0.25;
        let usual = work(0.2 + f64::from(n % 7) * 0.3, 2.0);
        let demand = CallDemand { memory_peak: Mebibytes::new(150 + 10 * (n % 9)), ..usual };
        arrivals.push(at(seconds, n % 2, demand));
    }
    Script::new(vec![function(1000, 256), function(2000, 256)], arrivals)
}

fn faults() -> Faults {
    Faults {
        node_loss_every: Some(Duration::from_secs(15)),
        node_away: Duration::from_secs(2),
        telemetry_loss: 0.2,
        slow_actuation: 0.3,
    }
}

fn keeps_its_promises(settings: Settings) -> CallTally {
    let seed = Seed::new(3);
    call_platform_suite(NODE, &mut |control: &mut dyn CallControl| {
        let mut simulator =
            Simulator::new(settings, script(), control, Everything::default(), seed);
        simulator.run_to_end();
        assert!(simulator.is_at_rest());
    })
}

#[test]
fn every_start_is_closed_and_every_change_answered() {
    for delay in [0, 20] {
        let settings =
            Settings { actuation_delay: Duration::from_millis(delay), ..Settings::new(2, NODE) };
        let tally = keeps_its_promises(settings);
        assert!(tally.changes > 1000 && tally.measured > 500, "{tally:?}");
        assert_eq!((tally.lost, tally.refused), (0, 0), "{tally:?}");
    }
}

#[test]
fn the_same_holds_when_nodes_are_lost_changes_are_slow_and_measurements_vanish() {
    for delay in [0, 20] {
        let settings = Settings {
            actuation_delay: Duration::from_millis(delay),
            faults: faults(),
            ..Settings::new(2, NODE)
        };
        let tally = keeps_its_promises(settings);
        assert!(tally.lost > 10 && tally.superseded > 10 && tally.lapsed > 0, "{tally:?}");
    }
}

#[test]
fn the_same_holds_under_the_kernels_cpu_which_refuses_to_shrink_memory_in_use() {
    for cpu in [
        CpuModel::kernel(),
        CpuModel::Kernel(KernelCpu { follows_rounds: true, ..KernelCpu::default() }),
    ] {
        let settings = Settings { cpu, ..Settings::new(2, NODE) };
        let tally = keeps_its_promises(settings);
        assert!(tally.changes > 1000 && tally.measured > 500, "{tally:?}");
        assert!(tally.refused > 10, "{tally:?}");
        let tally = keeps_its_promises(Settings { faults: faults(), ..settings });
        assert!(tally.lost > 10, "{tally:?}");
    }
}

/// Lends, borrows and asks for what the simulator cannot do.
struct Lender(u64);

impl CallPolicy for Lender {
    fn name(&self) -> &str {
        "lender"
    }
    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        self.0 += 1;
        let share = (mix(self.0) % 20) as f64 * 0.1;
        Ok(CallDecision {
            cpu_cores: call.reservation.cpu.cores() * share,
            cpu_ceiling: CpuCeiling::Unlimited,
            memory_mib: call.reservation.memory.mib(),
            beyond: Beyond::HarvestPool,
            demand: None,
            expected_run: Some(Duration::from_secs(1)),
            look_after: Some(Duration::from_millis(20)),
            why: "lends",
        })
    }
    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        let size = CallDecision::exactly(running.reservation, "whole");
        self.0 += 1;
        let share = (mix(self.0) % 20) as f64 * 0.1;
        let look_after = Some(Duration::from_millis(20));
        let beyond = Beyond::HarvestPool;
        Ok(CallDecision { cpu_cores: size.cpu_cores * share, look_after, beyond, ..size })
    }
}

#[test]
fn the_loop_keeps_no_loan_and_no_call_after_a_run_with_losses() {
    let rules: Vec<Box<dyn windfall_core::CallSafeguard>> =
        vec![Box::new(Floor::default()), Box::new(SlackBudget::default())];
    let control = CallLoop::new(Box::new(Lender(1)), CallSafeguardChain::new(rules));
    let mut control = CheckedCalls::new(control, NODE);
    let settings = Settings { faults: faults(), ..Settings::new(2, NODE) };
    let mut seen = Everything::default();
    Simulator::new(settings, script(), &mut control, &mut seen, Seed::new(3)).run_to_end();
    let tally = control.finish().unwrap_or_else(|problems| panic!("{problems}"));
    let counters = control.inner().counters();
    assert!(tally.lost > 0 && counters.lost == tally.lost, "{tally:?} {counters:?}");
    assert!(counters.recalls > 10, "{counters:?}");
    for node in 0..2 {
        let pool = control.inner().pool(windfall_core::NodeId(node)).expect("something was lent");
        assert!(pool.is_empty() && pool.balances());
    }
    // The simulator's quota is guarantee and ceiling in one; a ceiling beyond it is cut and noted.
    let cut = seen.calls.iter().flat_map(|call| &call.amendments);
    assert!(cut.filter(|note| note.resource == Resource::CpuCeiling).count() > 100);
    assert!(seen.calls.iter().all(|call| call.cpu_ceiling == CpuCeiling::AtGrant));
}
