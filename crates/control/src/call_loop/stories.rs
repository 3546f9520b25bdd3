//! Single answers of a platform worked by hand, and ten thousand stories on one that refuses, delays and loses.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use windfall_core::conformance::CheckedCalls;
use windfall_core::seed::mix;
use windfall_core::{
    CallId, CallOutcome, CallSafeguard, CpuCeiling, PolicyError, Proposal, RunningCall,
};

use super::scripted_platform::{LIMIT, ScriptedPlatform, Trouble};
use super::*;
use crate::call_safeguards::{Floor, SlackBudget, SlackSettings};

/// Answers at random between nothing and twice the reservation, fails now and then, and panics rarely.
struct Capricious(u64);

impl Capricious {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0) % limit
    }

    fn answer(&mut self, reservation: Allocation) -> Result<CallDecision, PolicyError> {
        assert!(self.below(50) > 0, "a bug of the policy");
        if self.below(20) == 0 {
            return Err(PolicyError { policy: "capricious".into(), problem: "no idea".into() });
        }
        let share = |tenths: u64| tenths as f64 * 0.1;
        Ok(CallDecision {
            cpu_cores: reservation.cpu.cores() * share(self.below(21)),
            cpu_ceiling: if self.below(2) == 0 {
                CpuCeiling::AtGrant
            } else {
                CpuCeiling::Unlimited
            },
            memory_mib: reservation.memory.mib() * share(5 + self.below(11)),
            beyond: if self.below(3) == 0 { Beyond::FreeCapacity } else { Beyond::HarvestPool },
            demand: None,
            expected_run: (self.below(2) == 0).then(|| Duration::from_millis(100)),
            look_after: (self.below(6) > 0).then(|| Duration::from_millis(5 + self.below(60))),
            why: "at random",
        })
    }
}

impl CallPolicy for Capricious {
    fn name(&self) -> &str {
        "capricious"
    }
    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        self.answer(call.reservation)
    }
    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        self.answer(running.reservation)
    }
}

/// The slack budget, where a test can look into it afterwards.
struct Shared(Arc<Mutex<SlackBudget>>);

impl Shared {
    fn budget(&self) -> std::sync::MutexGuard<'_, SlackBudget> {
        self.0.lock().expect("nobody panics with it")
    }
}

impl CallSafeguard for Shared {
    fn name(&self) -> &'static str {
        self.budget().name()
    }
    fn at_dispatch(&mut self, call: &CallView, proposal: &mut Proposal) {
        self.budget().at_dispatch(call, proposal);
    }
    fn while_running(&mut self, running: &RunningCall, proposal: &mut Proposal) {
        self.budget().while_running(running, proposal);
    }
    fn resized(&mut self, change: &Resized) {
        self.budget().resized(change);
    }
    fn at_end(&mut self, outcome: &CallOutcome) {
        self.budget().at_end(outcome);
    }
    fn lost(&mut self, call: CallId) {
        self.budget().lost(call);
    }
}

fn troubles() -> impl Strategy<Value = Trouble> {
    let often = || prop_oneof![Just(0u64), 1u64..6];
    (often(), often(), often(), often(), often(), often()).prop_map(
        |(refuses, delays, loses_calls, loses_nodes, kills, loses_measurements)| Trouble {
            refuses,
            delays,
            loses_calls,
            loses_nodes: loses_nodes * 4,
            kills,
            loses_measurements,
        },
    )
}

/// What holds for every call without a change under way: nothing of what it still holds is in the pool, and what it
/// has borrowed it holds.
fn check_pools(platform: &ScriptedPlatform<'_>) {
    let control = platform.control.inner();
    for book in platform.books() {
        assert!(book.in_force().fits(LIMIT), "{} is in force", book.in_force());
    }
    for (node, view, in_force) in platform.settled() {
        let Some(pool) = control.pool(node) else { continue };
        assert!(pool.balances(), "{pool:?}");
        let left = view.reservation.saturating_sub(in_force);
        let put = pool.put_by(view.id);
        assert!(put.fits(left), "call {}: {put} lent, {left} left", view.id.0);
        let above = in_force.saturating_sub(view.reservation);
        let borrowed = pool.borrowed_by(view.id);
        assert!(borrowed.fits(above), "call {}: borrowed {borrowed}, holds {above}", view.id.0);
    }
}

/// Wants as much CPU of its one core as the list says, in turn, from the pool.
struct InTurn(Vec<f64>);

impl CallPolicy for InTurn {
    fn name(&self) -> &str {
        "in-turn"
    }
    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let size = CallDecision::exactly(call.reservation, "in turn");
        let expected_run = Some(Duration::from_secs(10));
        let beyond = Beyond::HarvestPool;
        Ok(CallDecision { cpu_cores: self.0.remove(0), beyond, expected_run, ..size })
    }
}

/// A loop with two calls of one core: call 0 leaves 700m, call 1 has borrowed 600m of it.
fn lender_and_borrower() -> CallLoop {
    let policy = Box::new(InTurn(vec![0.3, 1.6]));
    let mut control = CallLoop::new(policy, CallSafeguardChain::default());
    let mut begin = |id| {
        let call =
            CallView { id: CallId(id), ..windfall_core::conformance::calls().swap_remove(0) };
        let plan = control.size(&call);
        control.start(&call, &plan, NodeId(0), Allocation::new(16_000, 16_384)).grant.cpu.get()
    };
    assert_eq!((begin(0), begin(1)), (300, 1600));
    control
}

fn answer(call: u64, asked: u32, in_force: u32) -> Resized {
    Resized {
        call: CallId(call),
        node: NodeId(0),
        at: Timestamp::from_secs(11),
        reservation: Allocation::new(1000, 256),
        asked: Allocation::new(asked, 256),
        in_force: Allocation::new(in_force, 256),
        refused: (asked != in_force).then_some(Refusal::NoRoom),
    }
}

fn changes_after(control: &mut CallLoop, change: &Resized) -> Vec<(u64, u32)> {
    let mut changes = Vec::new();
    control.resized(change, &mut changes);
    changes.iter().map(|change| (change.call.0, change.grant.cpu.get())).collect()
}

#[test]
fn what_a_call_did_not_give_up_is_not_lent() {
    // 800m of 1000m turn out to be in force still: 200m are there to be lent, so 400m of the 600m come back.
    let mut control = lender_and_borrower();
    assert_eq!(changes_after(&mut control, &answer(0, 300, 800)), [(1, 1200)]);
    let pool = control.pool(NodeId(0)).unwrap();
    assert_eq!((pool.lent().cpu.get(), pool.free().cpu.get()), (200, 0));
    assert!(pool.balances());
    assert_eq!((control.counters().refused_changes, control.counters().recalls), (1, 1));
}

#[test]
fn a_loan_that_did_not_come_goes_back_to_the_pool() {
    let mut control = lender_and_borrower();
    assert_eq!(changes_after(&mut control, &answer(1, 1600, 1250)), []);
    let pool = control.pool(NodeId(0)).unwrap();
    assert_eq!((pool.lent().cpu.get(), pool.free().cpu.get()), (250, 450));
}

#[test]
fn a_call_short_of_its_own_recalls_loans_and_asks_again_until_there_are_none() {
    let mut control = lender_and_borrower();
    // A third call was to have its whole core and got 500m of it.
    let short = answer(2, 1000, 500);
    assert_eq!(changes_after(&mut control, &short), [(1, 1100), (2, 1000)]);
    assert_eq!(changes_after(&mut control, &short), [(1, 1000), (2, 1000)]);
    assert_eq!(changes_after(&mut control, &short), []);
}

#[test]
fn a_lost_donor_ends_its_loans_once() {
    let mut control = lender_and_borrower();
    let lost = CallClose::Lost { call: CallId(0), node: NodeId(0) };
    let mut changes = Vec::new();
    control.close(lost, &mut changes);
    control.close(lost, &mut changes);
    assert_eq!(changes.len(), 1);
    assert_eq!((changes[0].call, changes[0].grant.cpu.get()), (CallId(1), 1000));
    assert!(control.pool(NodeId(0)).unwrap().is_empty());
}

/// Panics whatever it is asked.
struct Broken;

impl CallPolicy for Broken {
    fn name(&self) -> &str {
        "broken"
    }
    fn size(&mut self, _: &CallView) -> Result<CallDecision, PolicyError> {
        panic!("no size")
    }
    fn supervise(&mut self, _: &RunningCall) -> Result<CallDecision, PolicyError> {
        panic!("no look")
    }
    fn learn(&mut self, _: &CallOutcome) {
        panic!("no lesson")
    }
    fn lost(&mut self, _: CallId) {
        panic!("no loss")
    }
}

#[test]
fn a_policy_that_panics_gets_the_users_size_for_its_calls_and_is_quarantined() {
    use windfall_core::DecidedBy;
    use windfall_core::conformance::{calls, outcome_of, running_calls};
    let mut control = CallLoop::new(Box::new(Broken), CallSafeguardChain::default())
        .with_shadow(Box::new(Broken))
        .with_quarantine(Quarantine::new(4, 8));
    let call = calls().swap_remove(0);
    let plan = control.size(&call);
    assert_eq!((plan.grant(), plan.shadow()), (call.reservation, None));
    assert_eq!(*plan.decided_by(), DecidedBy::Fallback("it panicked: no size".to_owned()));
    control.start(&call, &plan, NodeId(0), LIMIT);
    let running = running_calls(&call, Allocation::new(200, 64)).swap_remove(0);
    assert_eq!(control.look(&running, &mut Vec::new()).grant, call.reservation);
    let outcome = outcome_of(&call, call.reservation, false);
    control.close(CallClose::Measured(&outcome), &mut Vec::new());
    assert!(!control.is_quarantined());
    control.close(CallClose::Lost { call: call.id, node: NodeId(0) }, &mut Vec::new());
    assert!(control.is_quarantined());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn whatever_goes_wrong_every_start_is_closed_and_every_change_answered(
        seed: u64, trouble in troubles(), calls in 1u64..16, reserve in prop_oneof![Just(0.0), Just(1.0)],
    ) {
        let settings = SlackSettings { reserve, ..SlackSettings::default() };
        let budget = Arc::new(Mutex::new(SlackBudget::new(settings)));
        let chain = CallSafeguardChain::new(vec![
            Box::new(Floor::default()),
            Box::new(Shared(Arc::clone(&budget))),
        ]);
        let control = CallLoop::new(Box::new(Capricious(mix(seed))), chain);
        let mut control = CheckedCalls::new(control, LIMIT);
        ScriptedPlatform::new(&mut control, trouble, seed, calls).play(check_pools);
        let tally = control.finish();
        prop_assert!(tally.is_ok(), "{}", tally.unwrap_err());
        let tally = tally.unwrap();
        prop_assert_eq!(tally.starts, tally.measured + tally.lost);
        prop_assert_eq!(tally.changes, tally.answered + tally.superseded + tally.lapsed);
        prop_assert_eq!(budget.lock().unwrap().watched(), 0, "a call that is gone is still watched");
        for node in 0..2 {
            let pool = control.inner().pool(NodeId(node));
            prop_assert!(pool.is_none_or(|pool| pool.is_empty() && pool.lent() == Allocation::ZERO));
        }
    }
}
