//! Whatever a policy answers, in the real simulator behind the real loop: no call holds less than its
//! safeguards' floor, no node is committed beyond its factor, and every loan is repaid.

use proptest::prelude::*;
use windfall_control::CallLoop;
use windfall_control::call_safeguards::{Faasrm, Floor, FloorShare, SlackBudget, SlackSettings};
use windfall_core::call::Beyond;
use windfall_core::peak_range::{PeakRange, PeakSettings};
use windfall_core::{
    Allocation, CallClose, CallControl, CallDecision, CallPlan, CallPolicy, CallSafeguardChain,
    CallView, CpuCeiling, Duration, GrantChange, IntervalRecord, Look, NodeId, PolicyError,
    RunningCall, Seed, Start, TelemetrySink,
};
use windfall_rl::random::Draw;
use windfall_sim::{Settings, Simulator};
use windfall_trace::{AzureLikeSettings, Source};

const NODE: Allocation = Allocation::new(8000, 16_384);

/// Answers with anything: nonsense, errors, next to nothing, far too much, loans, looks at once.
struct Adversary(Draw);

impl Adversary {
    fn number(&mut self) -> f64 {
        let extremes = [
            f64::NAN,
            f64::INFINITY,
            -1.0,
            0.0,
            1e-9,
            1e300,
            f64::MIN_POSITIVE,
            1.0,
            64.0,
            100_000.0,
        ];
        match self.0.below(3) {
            0 => extremes[self.0.below(extremes.len())],
            1 => self.0.unit(),
            _ => 10_000.0 * self.0.unit() * self.0.unit(),
        }
    }

    fn answer(&mut self) -> Result<CallDecision, PolicyError> {
        if self.0.below(10) == 0 {
            return Err(PolicyError { policy: "adversary".into(), problem: "no answer".into() });
        }
        let millis = self.0.below(400) as u64;
        Ok(CallDecision {
            cpu_cores: self.number(),
            cpu_ceiling: match self.0.below(3) {
                0 => CpuCeiling::AtGrant,
                1 => CpuCeiling::At(self.number()),
                _ => CpuCeiling::Unlimited,
            },
            memory_mib: self.number(),
            beyond: if self.0.below(2) == 0 { Beyond::FreeCapacity } else { Beyond::HarvestPool },
            demand: None,
            expected_run: (self.0.below(2) == 0).then(|| Duration::from_millis(millis * 7)),
            look_after: (self.0.below(2) == 0).then(|| Duration::from_millis(millis)),
            why: "anything",
        })
    }
}

impl CallPolicy for Adversary {
    fn name(&self) -> &str {
        "adversary"
    }

    fn size(&mut self, _: &CallView) -> Result<CallDecision, PolicyError> {
        self.answer()
    }

    fn supervise(&mut self, _: &RunningCall) -> Result<CallDecision, PolicyError> {
        self.answer()
    }
}

/// The loop, with what its safeguards promise worked out a second time beside it.
struct Watched {
    control: CallLoop,
    ranges: PeakRange,
    share: FloorShare,
}

impl Watched {
    fn floor(&self, reservation: Allocation) -> Allocation {
        let part = |whole: u32, share: f64| ((f64::from(whole) * share).ceil() as u32).min(whole);
        Allocation::new(
            part(reservation.cpu.get(), self.share.cpu),
            part(reservation.memory.get(), self.share.memory),
        )
    }
}

impl CallControl for Watched {
    fn size(&mut self, call: &CallView) -> CallPlan {
        let plan = self.control.size(call);
        let (least, _) = self.ranges.range(call.function, call.reservation, call.ceiling);
        let least = least.max(self.floor(call.reservation)).min(call.ceiling);
        assert!(least.fits(plan.grant()), "{} planned, {least} is the least", plan.grant());
        assert!(plan.grant().fits(call.ceiling), "{} is above the ceiling", plan.grant());
        plan
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        let start = self.control.start(call, plan, node, room);
        // What lies above the user's own size needs room; what lies below is certain. The range is that of
        // the moment of sizing: while a call waits, others may end and move it.
        let certain = plan.least();
        assert!(certain.fits(start.grant), "{} at the start, {certain} is certain", start.grant);
        start
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        let look = self.control.look(running, changes);
        let floor = self.floor(running.reservation);
        assert!(floor.fits(look.grant), "{} at a look, the floor is {floor}", look.grant);
        look
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        if let CallClose::Measured(outcome) = end {
            self.ranges.observe(outcome);
        }
        self.control.close(end, changes);
    }
}

/// Watches what is granted on the whole cluster.
#[derive(Default)]
struct Commitment {
    cores: f64,
    mib: f64,
}

impl TelemetrySink for Commitment {
    fn interval(&mut self, interval: &IntervalRecord) {
        self.cores = self.cores.max(interval.granted_cores);
        self.mib = self.mib.max(interval.granted_mib);
    }
}

/// The loop behind the slack budget, with the budget's own promise worked out a second time.
struct Budgeted {
    control: CallLoop,
    saturated: f64,
}

impl CallControl for Budgeted {
    fn size(&mut self, call: &CallView) -> CallPlan {
        let plan = self.control.size(call);
        assert!(plan.grant().fits(call.ceiling), "{} is above the ceiling", plan.grant());
        let is_whole = call.reservation.min(call.ceiling).fits(plan.grant());
        assert!(is_whole || plan.look_after().is_some(), "below its size and never looked at");
        plan
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        self.control.start(call, plan, node, room)
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        let look = self.control.look(running, changes);
        let (sensed, user) = (&running.sensed, running.reservation.min(running.ceiling));
        if sensed.is_lost() || sensed.throttled_share > self.saturated {
            assert!(user.cpu <= look.grant.cpu, "{} for a call that is short", look.grant);
        }
        let used = if sensed.is_lost() { 0.0 } else { sensed.memory_mib };
        let kept = used.min(running.grant.memory.mib().max(user.memory.mib()));
        assert!(look.grant.memory.mib() + 1.0 >= kept, "{} with {used} MiB in use", look.grant);
        look
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        self.control.close(end, changes);
    }
}

/// A cluster and an enemy.
#[derive(Clone, Copy, Debug)]
struct World {
    seed: u64,
    over_commit: f64,
    delay_ms: u64,
    nodes: u32,
    telemetry_loss: f64,
}

fn worlds() -> impl Strategy<Value = World> {
    let loss = prop_oneof![Just(0.0), 0.0f64..0.5];
    (any::<u64>(), 1.0f64..2.5, 0u64..50, 1u32..4, loss).prop_map(
        |(seed, over_commit, delay_ms, nodes, telemetry_loss)| World {
            seed,
            over_commit,
            delay_ms,
            nodes,
            telemetry_loss,
        },
    )
}

fn adversary(world: World, chain: CallSafeguardChain) -> CallLoop {
    let enemy = Adversary(Draw::new(Seed::new(world.seed).stream("adversary")));
    CallLoop::new(Box::new(enemy), chain)
}

/// Plays a minute; every call ends, and nothing was granted that the cluster does not have.
fn play(world: World, control: &mut dyn CallControl) -> Result<(), TestCaseError> {
    let World { seed, over_commit, nodes, .. } = world;
    let source = Source::AzureLike(AzureLikeSettings {
        functions: 6,
        duration: Duration::from_mins(1),
        calls_per_hour: 6000.0,
        ..AzureLikeSettings::default()
    });
    let mut workload = source.open(Seed::new(seed >> 11)).expect("a generated workload opens");
    let mut settings = Settings::new(nodes, NODE);
    settings.cluster.over_commit_cpu = over_commit;
    settings.actuation_delay = Duration::from_millis(world.delay_ms);
    settings.faults.telemetry_loss = world.telemetry_loss;
    let mut committed = Commitment::default();
    let mut simulator =
        Simulator::new(settings, workload.as_mut(), control, &mut committed, Seed::new(seed));
    simulator.run_to_end();
    prop_assert!(simulator.ledger().balances() && simulator.is_at_rest());
    prop_assert!(simulator.ledger().arrived > 0);
    drop(simulator);
    // With one node the cluster is the node, so that the bound is the node's own.
    let room = f64::from(nodes);
    prop_assert!(committed.cores <= room * NODE.cpu.cores() * over_commit + 1e-9);
    prop_assert!(committed.mib <= room * NODE.memory.mib() + 1e-9);
    Ok(())
}

fn all_loans_are_repaid(control: &CallLoop, nodes: u32) -> Result<(), TestCaseError> {
    for pool in (0..nodes).filter_map(|node| control.pool(NodeId(node))) {
        prop_assert!(pool.balances() && pool.is_empty(), "all calls have ended and a loan has not");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_a_policy_answers_the_promises_hold(world in worlds()) {
        let (share, peaks) = (FloorShare::default(), PeakSettings::default());
        let chain = CallSafeguardChain::new(vec![
            Box::new(Faasrm::new(peaks)),
            Box::new(Floor { share, ..Floor::default() }),
        ]);
        let control = adversary(world, chain);
        let mut watched = Watched { control, ranges: PeakRange::new(peaks), share };
        play(world, &mut watched)?;
        all_loans_are_repaid(&watched.control, world.nodes)?;
    }

    #[test]
    fn behind_the_slack_budget_no_call_is_left_short(world in worlds(), early in any::<bool>()) {
        let usual = SlackSettings::default();
        let soonest = if early { Duration::from_millis(5) } else { usual.soonest_look };
        let settings = SlackSettings { soonest_look: soonest, reserve: 1.0, ..usual };
        let chain = CallSafeguardChain::new(vec![Box::new(SlackBudget::new(settings))]);
        let control = adversary(world, chain);
        let mut watched = Budgeted { control, saturated: settings.saturated };
        play(world, &mut watched)?;
        all_loans_are_repaid(&watched.control, world.nodes)?;
    }
}
