use windfall_core::{AdmitBy, CallCapabilities, FunctionId, NodeOffer, Room, Seed};
use windfall_registry::{PolicySettings, assemble};

use super::*;

const OWN: Allocation = Allocation::new(2000, 512);
const NODE: NodeId = NodeId(0);
/// Room for two calls at their reservations.
const OFFER: NodeOffer = NodeOffer { node: NODE, cores: 4.0, over_commit: 1.0 };

fn view(id: u64) -> CallView {
    let now = Timestamp::from_secs(id);
    CallView {
        id: CallId(id),
        function: FunctionId(0),
        now,
        arrived_at: now,
        input: None,
        reservation: OWN,
        ceiling: Allocation::new(8000, 4096),
        free_in_cluster: Room { cores: 4.0, mib: 4096.0 },
        waiting: 0,
        capabilities: CallCapabilities {
            cpu_weight: true,
            cpu_ceiling: true,
            cpu_live: false,
            memory_live: false,
        },
        foresight: None,
    }
}

fn named(policy: &str) -> CallLoop {
    assemble(policy, &PolicySettings::new(), Seed::new(1)).unwrap().call_loop()
}

fn switched(policy: &str) -> SwitchedCalls {
    SwitchedCalls::new(named(policy), Arc::default())
}

/// Starts a call if the node takes it.
fn begin(calls: &mut SwitchedCalls, id: u64) -> bool {
    let view = view(id);
    let plan = calls.size(&view);
    let is_taken = calls.admit(&view, &plan, &OFFER).is_some();
    if is_taken {
        calls.start(&view, &plan, NODE, OWN);
    } else {
        lose(calls, id);
    }
    is_taken
}

fn lose(calls: &mut SwitchedCalls, id: u64) {
    let end = CallClose::Lost { call: CallId(id), node: NODE };
    calls.close(end, &mut Vec::new());
}

#[test]
fn a_policy_that_fills_nodes_by_expected_use_does_so_behind_the_switch() {
    let calls = switched("windfall-admission");
    let alone = named("windfall-admission").hints();
    assert_eq!(calls.hints().admit_by, AdmitBy::Control);
    assert_eq!(calls.hints().looks_while_short, alone.looks_while_short);
    assert!(alone.looks_while_short.is_some());
    assert_eq!(switched("windfall").hints().admit_by, AdmitBy::Grants);
}

#[test]
fn a_full_node_refuses_calls_until_one_has_left() {
    // Nothing is known of the function yet, so its calls count with their reservations.
    let mut calls = switched("windfall-admission");
    assert!(begin(&mut calls, 1) && begin(&mut calls, 2));
    assert!(!begin(&mut calls, 3));
    lose(&mut calls, 1);
    assert!(begin(&mut calls, 4));
}

#[test]
fn calls_of_a_replaced_loop_count_until_they_leave() {
    let mut calls = switched("windfall-admission");
    assert!(begin(&mut calls, 1) && begin(&mut calls, 2));
    calls.slot.offer(named("windfall-admission"));
    assert!(!begin(&mut calls, 3), "both are still on the node");
    lose(&mut calls, 1);
    assert!(begin(&mut calls, 4));
    assert!(!begin(&mut calls, 5));
    lose(&mut calls, 2);
    lose(&mut calls, 4);
    assert!(calls.current.control.admission().unwrap().is_empty());
    assert!(calls.retiring.is_empty());
}
