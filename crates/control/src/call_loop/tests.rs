use super::*;
use proptest::prelude::*;
use windfall_core::conformance::{calls, outcome_of, running_calls};
use windfall_core::{CallClose, CallId, CpuCeiling, DecidedBy, PlainSize, PolicyError, Sensed};

use crate::call_safeguards::{Floor, NAMES, SlackBudget};

const NODE: NodeId = NodeId(0);

/// Decisions in turn, at dispatch and at looks alike; `None` means that it fails.
struct Script {
    decisions: Vec<Option<CallDecision>>,
    asked: usize,
}

impl Script {
    fn next(&mut self) -> Result<CallDecision, PolicyError> {
        let decision = self.decisions[self.asked % self.decisions.len()].clone();
        self.asked += 1;
        decision.ok_or_else(|| PolicyError { policy: "script".into(), problem: "no idea".into() })
    }
}

impl CallPolicy for Script {
    fn name(&self) -> &str {
        "script"
    }
    fn size(&mut self, _call: &CallView) -> Result<CallDecision, PolicyError> {
        self.next()
    }
    fn supervise(&mut self, _running: &RunningCall) -> Result<CallDecision, PolicyError> {
        self.next()
    }
}

fn script(decisions: Vec<Option<CallDecision>>) -> Box<Script> {
    Box::new(Script { decisions, asked: 0 })
}

fn looped(decisions: Vec<Option<CallDecision>>) -> CallLoop {
    CallLoop::new(script(decisions), CallSafeguardChain::default())
}

/// A decision that borrows from the pool and expects to run for 10 s.
fn pooled(cpu_cores: f64) -> Option<CallDecision> {
    let base = CallDecision::exactly(Allocation::new(1, 256), "scripted");
    let expected_run = Some(Duration::from_secs(10));
    Some(CallDecision { cpu_cores, beyond: Beyond::HarvestPool, expected_run, ..base })
}

fn call(id: u64) -> CallView {
    CallView { id: CallId(id), ..calls().swap_remove(0) }
}

fn running(id: u64, grant: Allocation) -> RunningCall {
    running_calls(&call(id), grant).swap_remove(1)
}

const ROOM: Allocation = Allocation::new(16_000, 16_384);

fn begin(control: &mut CallLoop, id: u64) -> Allocation {
    let plan = control.size(&call(id));
    control.start(&call(id), &plan, NODE, ROOM).grant
}

#[test]
fn a_call_at_its_reservation_leaves_no_trace() {
    let mut control = looped(vec![Some(CallDecision::exactly(call(0).reservation, "fixed"))]);
    assert_eq!(begin(&mut control, 0), call(0).reservation);
    let mut changes = Vec::new();
    let outcome = outcome_of(&call(0), call(0).reservation, false);
    control.close(CallClose::Measured(&outcome), &mut changes);
    assert!(changes.is_empty() && control.pool(NODE).is_none());
}

#[test]
fn failure_and_nonsense_get_the_users_size_and_then_a_rest() {
    let mut decisions = vec![None, pooled(f64::NAN), pooled(-2.0)];
    decisions.push(pooled(0.5));
    let mut control = looped(decisions).with_quarantine(Quarantine::new(3, 2));
    for id in 0..5 {
        let plan = control.size(&call(id));
        assert_eq!(plan.grant(), call(id).reservation);
        assert!(matches!(plan.decided_by(), DecidedBy::Fallback(_)));
    }
    assert_eq!(*control.size(&call(5)).decided_by(), DecidedBy::Policy);
    let counters = control.counters();
    assert_eq!((counters.sized, counters.fallbacks, counters.quarantines), (6, 5, 1));
}

#[test]
fn a_failing_look_never_leaves_a_call_below_its_reservation() {
    let mut control = looped(vec![None]);
    let look = control.look(&running(0, Allocation::new(200, 64)), &mut Vec::new());
    assert_eq!(look.grant, call(0).reservation);
    let look = control.look(&running(0, Allocation::new(2000, 64)), &mut Vec::new());
    assert_eq!(look.grant, Allocation::new(2000, 256));
}

#[test]
fn loans_follow_their_donor() {
    // Donor 1 leaves 700m; borrower 2 wants 2 cores more than it reserves and gets those 700m.
    let mut control = looped(vec![pooled(0.3), pooled(3.0), pooled(0.8), pooled(1.0)]);
    assert_eq!(begin(&mut control, 1).cpu.get(), 300);
    assert_eq!(begin(&mut control, 2).cpu.get(), 1700);

    // The donor wants 500m back: the borrower keeps 200m of the loan.
    let mut changes = Vec::new();
    let look = control.look(&running(1, Allocation::new(300, 256)), &mut changes);
    assert_eq!(look.grant.cpu.get(), 800);
    let grants: Vec<_> = changes.iter().map(|c| (c.call, c.grant.cpu.get())).collect();
    assert_eq!(grants, [(CallId(2), 1200)]);

    // The donor ends: the borrower is back at its own reservation.
    changes.clear();
    let outcome = outcome_of(&call(1), look.grant, false);
    control.close(CallClose::Measured(&outcome), &mut changes);
    let grants: Vec<_> = changes.iter().map(|c| (c.call, c.grant.cpu.get())).collect();
    assert_eq!(grants, [(CallId(2), 1000)]);
    assert!(control.pool(NODE).unwrap().is_empty());
    assert_eq!(control.counters().recalls, 2);
}

#[test]
fn without_a_pool_nothing_beyond_the_reservation_is_pooled() {
    let mut control = looped(vec![pooled(3.0)]);
    let plan = control.size(&call(1));
    assert_eq!(control.coverage(NODE, &plan, call(1).now), 0.0);
    assert_eq!(control.start(&call(1), &plan, NODE, ROOM).grant.cpu.get(), 1000);
}

#[test]
fn a_start_is_limited_to_the_room_but_never_below_the_least() {
    let decision = CallDecision::exactly(Allocation::new(3000, 256), "more");
    let mut control = looped(vec![Some(decision)]);
    let plan = control.size(&call(0));
    let start = |control: &mut CallLoop, room| control.start(&call(0), &plan, NODE, room).grant;
    assert_eq!(start(&mut control, Allocation::new(2500, 256)).cpu.get(), 2500);
    assert_eq!(start(&mut control, Allocation::new(1000, 256)).cpu.get(), 1000);
}

#[test]
fn coverage_counts_only_what_is_wanted() {
    let mut control = looped(vec![pooled(0.5), pooled(2.0)]);
    begin(&mut control, 1);
    let plan = control.size(&call(2));
    // 500m of the 1000m wanted, for the whole expected run.
    assert!((control.coverage(NODE, &plan, call(2).now) - 0.5).abs() < 1e-9);
}

#[test]
fn a_shadow_is_recorded_and_never_obeyed() {
    let shadow = script(vec![pooled(0.1), None, pooled(f64::NAN)]);
    let mut control = looped(vec![pooled(0.5)]).with_shadow(shadow);
    let plan = control.size(&call(0));
    assert_eq!(
        (plan.grant().cpu.get(), plan.shadow()),
        (500, Some(PlainSize { cores: 0.1, mib: 256.0 }))
    );
    assert_eq!(control.size(&call(1)).shadow(), None);
    assert_eq!(control.size(&call(2)).shadow(), None);
}

#[test]
fn a_look_after_no_time_does_not_stop_time() {
    let decision = pooled(0.5).map(|w| CallDecision { look_after: Some(Duration::ZERO), ..w });
    let mut control = looped(vec![decision]);
    let plan = control.size(&call(0));
    assert_eq!(control.start(&call(0), &plan, NODE, ROOM).look_after, Some(SHORTEST_LOOK));
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0..12.0f64,
        1 => prop::sample::select(vec![f64::NAN, -1.0, f64::INFINITY, 1e300, 0.0]),
    ]
}

fn any_decision() -> impl Strategy<Value = Option<CallDecision>> {
    let decision = (number(), number(), any::<bool>(), prop::option::of(0u64..200));
    prop::option::weighted(0.95, decision).prop_map(|decision| {
        decision.map(|(cpu_cores, mib, pools, look)| CallDecision {
            cpu_cores,
            cpu_ceiling: CpuCeiling::AtGrant,
            memory_mib: mib * 100.0,
            beyond: if pools { Beyond::HarvestPool } else { Beyond::FreeCapacity },
            demand: None,
            expected_run: look.map(Duration::from_secs),
            look_after: look.map(Duration::from_millis),
            why: "any",
        })
    })
}

/// A node of 32 cores and 16 GiB with the calls that run on it.
struct Node {
    control: CallLoop,
    held: Vec<(u64, Allocation)>,
    begun: u64,
}

const WHOLE: Allocation = Allocation::new(32_000, 16_384);

impl Node {
    fn room(&self) -> Allocation {
        let granted = self.held.iter().fold(Allocation::ZERO, |sum, (_, grant)| sum + *grant);
        WHOLE.saturating_sub(granted)
    }

    /// A call comes; it starts if the least it can start with fits.
    fn begin(&mut self) -> Result<(), TestCaseError> {
        let (room, call) = (self.room(), call(self.begun));
        let plan = self.control.size(&call);
        prop_assert!(plan.grant().fits(call.ceiling));
        if plan.least().fits(room) {
            let grant = self.control.start(&call, &plan, NODE, room).grant;
            prop_assert!(grant.fits(plan.grant()) && plan.least().fits(grant));
            prop_assert!(grant.fits(room));
            self.held.push((self.begun, grant));
            self.begun += 1;
        }
        Ok(())
    }

    /// A look at a call that uses `load` of what it has.
    fn look(&mut self, which: usize, load: f64) -> Result<Vec<GrantChange>, TestCaseError> {
        let (room, which) = (self.room(), which % self.held.len());
        let (id, grant) = self.held[which];
        let sensed = Sensed {
            window: Duration::from_millis(100),
            cpu_used_cores: grant.cpu.cores() * load.min(1.0),
            throttled_share: if load > 1.0 { 1.0 } else { 0.0 },
            delayed_share: 0.0,
            memory_mib: grant.memory.mib() * 0.5,
        };
        let look = RunningCall { free_on_node: room, sensed, ..running(id, grant) };
        let mut changes = Vec::new();
        let answer = self.control.look(&look, &mut changes);
        prop_assert!(answer.grant.fits(look.ceiling), "{answer:?}");
        let beyond_room = answer.grant.saturating_sub(grant.max(look.reservation));
        prop_assert!(beyond_room.fits(room), "{answer:?} with {room} free");
        self.held[which].1 = answer.grant;
        Ok(changes)
    }

    fn end(&mut self, which: usize) -> Vec<GrantChange> {
        let (id, grant) = self.held.swap_remove(which % self.held.len());
        let mut changes = Vec::new();
        let outcome = outcome_of(&call(id), grant, false);
        self.control.close(CallClose::Measured(&outcome), &mut changes);
        changes
    }

    /// Recalls lower, and never below what is the borrower's own.
    fn carry_out(&mut self, changes: Vec<GrantChange>) -> Result<(), TestCaseError> {
        let reservation = call(0).reservation;
        for change in changes {
            let borrower = self.held.iter_mut().find(|(id, _)| CallId(*id) == change.call).unwrap();
            let was = borrower.1;
            prop_assert!(change.grant.fits(was), "a recall raised {was} to {}", change.grant);
            prop_assert!(was.min(reservation).fits(change.grant), "below its own: {change:?}");
            borrower.1 = change.grant;
        }
        Ok(())
    }

    /// What a donor lacks is in the pool, and what a borrower owes it holds.
    fn keeps_its_promises(&self) -> Result<(), TestCaseError> {
        let Some(pool) = self.control.pool(NODE) else { return Ok(()) };
        prop_assert!(pool.balances(), "{pool:?}");
        let reservation = call(0).reservation;
        for (id, grant) in &self.held {
            prop_assert_eq!(pool.put_by(CallId(*id)), reservation.saturating_sub(*grant));
            let borrowed = pool.borrowed_by(CallId(*id));
            prop_assert!(borrowed.fits(grant.saturating_sub(reservation)));
        }
        Ok(())
    }
}

proptest! {
    /// Any policy: calls begin, are looked at, end, and give back.
    #[test]
    fn whatever_is_decided_the_promises_of_the_pool_hold(
        decisions in prop::collection::vec(any_decision(), 1..40),
        steps in prop::collection::vec((0u8..4, 0usize..16, 0.0..1.2f64), 1..120),
        guarded: bool,
    ) {
        let rules: Vec<Box<dyn windfall_core::CallSafeguard>> = if guarded {
            vec![Box::new(Floor::default()), Box::new(SlackBudget::default())]
        } else {
            Vec::new()
        };
        let control = CallLoop::new(script(decisions), CallSafeguardChain::new(rules));
        let mut node = Node { control, held: Vec::new(), begun: 0 };
        for (kind, which, load) in steps {
            let changes = match kind {
                _ if node.held.is_empty() => node.begin().map(|()| Vec::new())?,
                0 => node.begin().map(|()| Vec::new())?,
                1 | 2 => node.look(which, load)?,
                _ => node.end(which),
            };
            node.carry_out(changes)?;
            node.keeps_its_promises()?;
        }
        while !node.held.is_empty() {
            let changes = node.end(0);
            node.carry_out(changes)?;
        }
        let Node { control, .. } = node;
        prop_assert!(control.pool(NODE).is_none_or(|p| p.is_empty() && p.lent() == Allocation::ZERO));
        prop_assert!(control.counters().amendments.keys().all(|rule| NAMES.contains(&rule.as_ref())));
    }
}
