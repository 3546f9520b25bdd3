use super::*;
use proptest::prelude::*;
use windfall_core::Duration;

const OFFER: NodeOffer = NodeOffer { node: NodeId(0), cores: 8.0, over_commit: 1.0 };
const FOUR: Allocation = Allocation::new(4000, 256);

fn half_of_two() -> CpuDemand {
    CpuDemand { mean_cores: 1.0, variance: 1.0 }
}

fn started(call: u64, function: u32, demand: Option<CpuDemand>) -> StartedCall {
    StartedCall {
        node: NodeId(0),
        call: CallId(call),
        function: FunctionId(function),
        reservation: FOUR,
        demand,
        now: Timestamp::ZERO,
    }
}

fn outcome(call: u64, function: u32, delayed: Duration) -> CallOutcome {
    CallOutcome {
        id: CallId(call),
        function: FunctionId(function),
        node: NodeId(0),
        input: None,
        reservation: FOUR,
        first_grant: FOUR,
        last_grant: FOUR,
        arrived_at: Timestamp::ZERO,
        started_at: Timestamp::ZERO,
        ended_at: Timestamp::from_secs(1),
        was_killed: false,
        cpu_peak_cores: 2.0,
        memory_peak_mib: 100.0,
        cpu_mean_cores: 1.0,
        throttled: delayed,
        delayed,
    }
}

fn book(z: f64) -> AdmissionBook {
    AdmissionBook::new(AdmissionSettings { z, ..AdmissionSettings::default() })
}

#[test]
fn expected_use_decides_and_the_worked_numbers_hold() {
    let mut book = book(1.0);
    let demand = Some(half_of_two());
    for call in 0..2 {
        book.start(started(call, 0, demand));
    }
    let full = book.admit(&OFFER, FunctionId(0), FOUR, demand).expect("it fits");
    assert!((full - (3.0 + 3f64.sqrt()) / 8.0).abs() < 1e-9, "{full}");
    // Without an estimate it counts with its reservation: 2 + 4 + sqrt(2) of 8 cores, then 6 + 4.
    assert!(book.admit(&OFFER, FunctionId(0), FOUR, None).is_some());
    book.start(started(2, 0, None));
    assert_eq!(book.admit(&OFFER, FunctionId(0), FOUR, None), None);
    let nonsense = Some(CpuDemand { mean_cores: f64::NAN, variance: 0.0 });
    assert_eq!(book.admit(&OFFER, FunctionId(0), FOUR, nonsense), None);
}

#[test]
fn an_empty_node_takes_any_call() {
    let small = NodeOffer { cores: 1.0, ..OFFER };
    assert!(book(1.0).admit(&small, FunctionId(0), FOUR, None).is_some());
}

#[test]
fn a_harmed_function_counts_with_its_reservation_until_it_has_recovered() {
    let mut book = book(0.0);
    let demand = Some(half_of_two());
    let mut pass = |call: u64, delayed: Duration| {
        book.start(started(call, 7, demand));
        let counted = book.nodes[0].mean;
        book.end(&CallClose::Measured(&outcome(call, 7, delayed)));
        assert!(book.is_empty());
        (counted, book.is_guarded(FunctionId(7)))
    };
    let harmful = Duration::from_millis(100);
    assert_eq!(pass(0, harmful), (1.0, false), "one call of fifty");
    assert_eq!(pass(1, harmful), (1.0, false));
    assert_eq!(pass(2, harmful), (1.0, true), "three in a row");
    // 5.9 % fall below 1 % after 88 calls that were not harmed.
    for call in 3..90 {
        assert_eq!(pass(call, Duration::ZERO), (4.0, true), "call {call}: its reservation");
    }
    assert_eq!(pass(90, Duration::ZERO), (4.0, false));
    assert_eq!(pass(91, Duration::ZERO), (1.0, false));
}

#[test]
fn every_harmed_call_makes_the_book_keep_more_free_and_what_it_gained_makes_up_for_it() {
    let caution = CautionSettings { allowed: 0.0, step: 0.5, least: 0.0, most: 0.6 };
    // Without the guard, which would count the function with its reservation after three harmed calls.
    let settings =
        AdmissionSettings { harm_share: 1.0, caution: Some(caution), ..book(0.0).settings };
    let mut book = AdmissionBook::new(settings);
    let demand = Some(half_of_two());
    let mut full_after = |delayed: u64, gained: f64| {
        book.start(started(0, 0, demand));
        let node = book.node(NodeId(0));
        node.calls.get_mut(&CallId(0)).expect("it runs").gained = gained;
        let delayed = Duration::from_millis(delayed);
        book.end(&CallClose::Measured(&outcome(0, 0, delayed)));
        book.admit(&OFFER, FunctionId(0), FOUR, demand).expect("an empty node") * 8.0
    };
    assert!((full_after(0, 0.0) - 1.0).abs() < 1e-9);
    assert!((full_after(100, 0.1) - 1.0).abs() < 1e-9, "it was not slower than at its reservation");
    assert!((full_after(100, 0.0) - 1.5).abs() < 1e-9);
    assert!((full_after(100, 0.0) - 1.6).abs() < 1e-9, "never more than the most");
}

proptest! {
    /// Whatever a policy expects, guarantees stay within the declared bound, and an empty book holds nothing.
    #[test]
    fn no_node_is_admitted_beyond_its_declared_bound(
        steps in proptest::collection::vec((0u32..4, -1.0f64..9.0, -1.0f64..9.0, 1u32..6000), 1..200),
        bound in 1.0f64..9.0,
    ) {
        let settings = AdmissionSettings { bound, z: -2.0, ..AdmissionSettings::default() };
        let mut book = AdmissionBook::new(settings);
        let offer = NodeOffer { over_commit: 1000.0, ..OFFER };
        let mut running = Vec::new();
        for (call, (kind, mean_cores, variance, millis)) in steps.into_iter().enumerate() {
            let reservation = Allocation::new(millis, 1);
            let demand = Some(CpuDemand { mean_cores, variance });
            if kind == 0 && !running.is_empty() {
                let call: u64 = running.swap_remove(0);
                book.end(&CallClose::Lost { call: CallId(call), node: NodeId(0) });
            } else if book.admit(&offer, FunctionId(kind), reservation, demand).is_some() {
                book.start(StartedCall { reservation, demand, ..started(call as u64, kind, None) });
                running.push(call as u64);
            }
            let alone = if running.len() == 1 { 6.0 } else { 0.0 };
            prop_assert!(book.guaranteed(NodeId(0)) <= (bound * 8.0).max(alone) + 1e-6);
        }
        for call in running {
            book.end(&CallClose::Lost { call: CallId(call), node: NodeId(0) });
        }
        prop_assert!(book.is_empty() && book.guaranteed(NodeId(0)) == 0.0);
    }
}
