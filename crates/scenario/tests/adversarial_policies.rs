//! Whatever a policy answers, in the real simulator behind the real loop: no call holds less than its
//! safeguards' floor or weight, no node is committed beyond its factor, and every loan is repaid.

use std::collections::BTreeMap;

use proptest::prelude::*;
use windfall_control::call_safeguards::{
    Faasrm, Floor, FloorShare, SlackBudget, SlackSettings, SlackWeights, SlackWeightsSettings,
};
use windfall_control::{AdmissionSettings, CallLoop};
use windfall_core::call::Beyond;
use windfall_core::peak_range::{PeakRange, PeakSettings};
use windfall_core::{
    Allocation, CallClose, CallControl, CallDecision, CallHints, CallId, CallPlan, CallPolicy,
    CallSafeguardChain, CallView, CpuCeiling, CpuDemand, Duration, GrantChange, IntervalRecord,
    Look, NodeId, NodeOffer, PolicyError, RunningCall, Seed, Start, TelemetrySink,
};
use windfall_rl::random::Draw;
use windfall_sim::{CpuModel, QueueOrder, Settings, Simulator};
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
            demand: (self.0.below(2) == 0)
                .then(|| CpuDemand { mean_cores: self.number(), variance: self.number() }),
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

/// The loop that fills nodes by expected use, with the account of every call's slack kept a second time.
struct Weighed {
    control: CallLoop,
    settings: SlackWeightsSettings,
    bound: f64,
    /// Seconds lost and gained by running calls.
    accounts: BTreeMap<CallId, (f64, f64)>,
}

impl CallControl for Weighed {
    fn size(&mut self, call: &CallView) -> CallPlan {
        let plan = self.control.size(call);
        let guaranteed = call.reservation.cpu.min(call.ceiling.cpu);
        assert!(plan.grant().cpu >= guaranteed, "{} below its weight", plan.grant());
        plan
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        self.control.start(call, plan, node, room)
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        let look = self.control.look(running, changes);
        let sensed = &running.sensed;
        let (seconds, reserved) = (sensed.window.as_secs_f64(), running.reservation.cpu.cores());
        let (lost, gained) = self.accounts.entry(running.id).or_default();
        *lost += if sensed.is_lost() { seconds } else { sensed.delayed_share * seconds };
        *gained += (sensed.cpu_used_cores / reserved.max(1e-3) - 1.0).max(0.0) * seconds;
        let alone = running.elapsed().as_secs_f64() - *lost + *gained;
        let slack = self.settings.beta * alone - *lost + *gained;
        let guaranteed = running.reservation.cpu.min(running.ceiling.cpu);
        let has_none = sensed.is_lost() || slack < self.settings.margin_seconds - 1e-9;
        if !running.node_is_short || has_none {
            assert!(look.grant.cpu >= guaranteed, "{} with a slack of {slack} s", look.grant);
        }
        look
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        self.accounts.remove(&end.call());
        self.control.close(end, changes);
    }

    fn admit(&self, call: &CallView, plan: &CallPlan, offer: &NodeOffer) -> Option<f64> {
        let full = self.control.admit(call, plan, offer)?;
        let book = self.control.admission().expect("nodes are filled by expected use");
        let before = book.guaranteed(offer.node);
        let after = before + call.reservation.cpu.cores();
        let is_bounded = before == 0.0 || after <= self.bound * offer.cores + 1e-6;
        assert!(is_bounded, "{after} cores guaranteed on {}", offer.cores);
        Some(full)
    }

    fn hints(&self) -> CallHints {
        self.control.hints()
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

/// Plays a minute where sizes are grants; nothing is granted beyond the over-commit.
fn play(world: World, control: &mut dyn CallControl) -> Result<(), TestCaseError> {
    let mut settings = Settings::new(world.nodes, NODE);
    settings.cluster.over_commit_cpu = world.over_commit;
    play_on(settings, world, world.over_commit, control)
}

/// Plays a minute; every call ends, and no more than `bound` cores are granted for each core there is.
fn play_on(
    mut settings: Settings,
    world: World,
    bound: f64,
    control: &mut dyn CallControl,
) -> Result<(), TestCaseError> {
    let World { seed, nodes, .. } = world;
    let source = Source::AzureLike(AzureLikeSettings {
        functions: 6,
        duration: Duration::from_mins(1),
        calls_per_hour: 6000.0,
        ..AzureLikeSettings::default()
    });
    let mut workload = source.open(Seed::new(seed >> 11)).expect("a generated workload opens");
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
    prop_assert!(committed.cores <= room * NODE.cpu.cores() * bound + 1e-9);
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

    #[test]
    fn where_weights_guarantee_no_call_is_below_its_weight_and_no_node_beyond_its_bound(
        world in worlds(),
        on_kernel in any::<bool>(),
        ordered in any::<bool>(),
        bound in 1.0f64..9.0,
    ) {
        let settings = SlackWeightsSettings::default();
        let chain = CallSafeguardChain::new(vec![Box::new(SlackWeights::new(settings))]);
        let admission = AdmissionSettings { bound, z: -1.0, ..AdmissionSettings::default() };
        let control = adversary(world, chain)
            .with_admission(admission)
            .looking_while_short(Duration::from_millis(5));
        let accounts = BTreeMap::new();
        let mut watched = Weighed { control, settings, bound, accounts };
        let mut platform = Settings::new(world.nodes, NODE);
        platform.cluster.over_commit_cpu = world.over_commit;
        platform.cpu_weights = true;
        if on_kernel {
            platform.cpu = CpuModel::kernel();
        }
        if ordered {
            platform.queue_order = QueueOrder::SHORTEST_FIRST;
        }
        let declared = platform.guarantee_bound;
        play_on(platform, world, declared, &mut watched)?;
        all_loans_are_repaid(&watched.control, world.nodes)?;
        let book = watched.control.admission().expect("nodes are filled by expected use");
        prop_assert!(book.is_empty(), "all calls have ended and one still counts");
        prop_assert!((0..world.nodes).all(|node| book.guaranteed(NodeId(node)) == 0.0));
    }
}
