//! What every call policy and every call safeguard must do.

use super::{calls, check_name, outcome_of, running_calls};
use crate::call::{CallDecision, CallPolicy, CallView, RunningCall};
use crate::call_safeguard::{CallPlan, CallSafeguard, CallSafeguardChain};
use crate::units::Allocation;

/// Same calls, same decisions; survives extreme calls and kills; never asks for nonsense, for nothing, or
/// for more than the ceiling. A policy that lives on foresight may refuse calls without it; one that need
/// not be asked would have said what it is taken to say.
pub fn call_policy_suite(make: &dyn Fn() -> Box<dyn CallPolicy>) {
    let (mut one, mut other) = (make(), make());
    check_name(one.name());
    let name = one.name().to_owned();
    for (place, call) in calls().into_iter().enumerate() {
        let decision = one.size(&call);
        assert_eq!(decision, other.size(&call), "{name}: the same call brought another answer");
        let Ok(decision) = decision else { continue };
        check_decision(&name, &decision, call.ceiling);
        if one.leaves_calls_alone() {
            assert_eq!(decision, reserved(&call), "{name}: does not leave calls alone");
        }
        let grant = permitted(&name, &call, &decision);
        for running in running_calls(&call, grant) {
            let decision = one.supervise(&running);
            assert_eq!(decision, other.supervise(&running), "{name}: another answer at a look");
            if let Ok(decision) = decision {
                check_decision(&name, &decision, running.ceiling);
            }
        }
        let outcome = outcome_of(&call, grant, place % 5 == 4);
        one.learn(&outcome);
        other.learn(&outcome);
    }
}

fn reserved(call: &CallView) -> CallDecision {
    CallDecision::exactly(call.reservation, "the user's size")
}

fn check_decision(name: &str, decision: &CallDecision, ceiling: Allocation) {
    let CallDecision { cpu_cores, memory_mib, .. } = *decision;
    let (most_cores, most_mib) = (ceiling.cpu.cores(), ceiling.memory.mib());
    let hair = 1.0 + 1e-9;
    assert!(
        cpu_cores > 0.0 && cpu_cores <= most_cores * hair,
        "{name}: asks for {cpu_cores} cores; allowed is more than 0 and up to {most_cores}"
    );
    assert!(
        memory_mib > 0.0 && memory_mib <= most_mib * hair,
        "{name}: asks for {memory_mib} MiB; allowed is more than 0 and up to {most_mib}"
    );
}

fn permitted(name: &str, call: &CallView, decision: &CallDecision) -> Allocation {
    let plan = CallSafeguardChain::default().at_dispatch(call, decision);
    plan.unwrap_or_else(|nonsense| panic!("{name}: {nonsense}")).grant()
}

/// Never raises above the ceiling (nor above what was proposed, if that is more), names its amendments, is
/// content with its own answer, and lets a function it knows nothing of have its reservation.
pub fn call_safeguard_suite(make: &dyn Fn() -> Box<dyn CallSafeguard>) {
    let name = make().name();
    check_name(name);
    for call in calls() {
        let reserved = dispatch(make(), &call, call.reservation);
        assert!(reserved.amendments().is_empty(), "{name}: refuses an unknown call's reservation");
        for proposed in decisions(&call) {
            let plan = dispatch(make(), &call, proposed);
            check_plan(name, &plan, call.ceiling);
            let again = dispatch(make(), &call, plan.grant());
            assert_eq!(again.grant(), plan.grant(), "{name}: amends its own answer at dispatch");
            for running in running_calls(&call, plan.grant()) {
                let plan = look(make(), &running, proposed);
                check_plan(name, &plan, running.ceiling);
                let again = look(make(), &running, plan.grant());
                assert_eq!(again.grant(), plan.grant(), "{name}: amends its own answer at a look");
            }
            let mut rule = make();
            rule.at_end(&outcome_of(&call, plan.grant(), true));
            check_plan(name, &dispatch(rule, &call, proposed), call.ceiling);
        }
    }
}

fn decisions(call: &CallView) -> [Allocation; 5] {
    let half = Allocation::new(call.reservation.cpu.get() / 2, call.reservation.memory.get() / 2);
    [Allocation::ZERO, Allocation::new(1, 1), half, call.reservation, call.ceiling]
}

fn dispatch(rule: Box<dyn CallSafeguard>, call: &CallView, proposed: Allocation) -> CallPlan {
    let decision = CallDecision::exactly(proposed, "conformance");
    let plan = CallSafeguardChain::new(vec![rule]).at_dispatch(call, &decision);
    plan.expect("an allocation is an amount")
}

fn look(rule: Box<dyn CallSafeguard>, running: &RunningCall, proposed: Allocation) -> CallPlan {
    let decision = CallDecision::exactly(proposed, "conformance");
    let plan = CallSafeguardChain::new(vec![rule]).while_running(running, &decision);
    plan.expect("an allocation is an amount")
}

/// The chain's own last word would show as an amendment named `ceiling` that lowers a grant.
fn check_plan(name: &str, plan: &CallPlan, ceiling: Allocation) {
    assert!(plan.grant().fits(ceiling), "{name}: {} is above the ceiling", plan.grant());
    for amendment in plan.amendments() {
        let is_own = amendment.rule == name;
        let lowers = amendment.allowed < amendment.proposed;
        assert!(is_own || !lowers, "{name}: raised {amendment:?} above the ceiling");
    }
}
