use super::super::baselines::{Ensure, EnsureDefects, Fixed, Greedy, Oracle};
use super::super::safeguard::SafeguardOnly;
use super::*;

/// Run times from 1 to 10 s, ideal at 4 cores and 256 MB, the user reserves 2 and 2: 8 s at the user's
/// size, 2 s at the ideal.
const SHORT: FunctionModel = FunctionModel {
    user: Levels::both(2),
    ideal_cpu: 4,
    ideal_mb: 256,
    shortest: 1,
    longest: 10,
    cold_start: 1,
    timeout: 600,
};

/// One call each in steps 0, 10, 20, 30: by then the one before has ended (8 s, 1 s cold).
fn four_calls() -> Calls {
    Calls { functions: vec![SHORT], events: (0..4).map(|call| (call * 10, 0)).collect() }
}

fn seconds(sizer: &mut dyn Sizer, quirks: &Quirks) -> Vec<u32> {
    replay(&four_calls(), quirks, sizer).calls.iter().map(|call| call.seconds).collect()
}

const ALL_RUN: Quirks = Quirks { last_call_is_lost: false, ..Quirks::FAITHFUL };
const IN_TIME: Quirks = Quirks { choice_one_call_late: false, ..ALL_RUN };

#[test]
fn a_choice_sizes_the_next_call_or_its_own() {
    // Call 1 has nothing to go by. At call 2 the first has ended at its peak of 2 out of 2, so the safeguard
    // allows 3 to 8 and the top is taken: by call 3 if late, by call 2 itself if not.
    assert_eq!(seconds(&mut SafeguardOnly::top(), &ALL_RUN), [8, 8, 2, 2]);
    assert_eq!(seconds(&mut SafeguardOnly::top(), &IN_TIME), [8, 2, 2, 2]);
    // The bottom climbs level by level: 2, 3 (5 s), 4 (2 s).
    assert_eq!(seconds(&mut SafeguardOnly::bottom(), &IN_TIME), [8, 5, 2, 2]);
    assert_eq!(seconds(&mut Fixed, &ALL_RUN), [8, 8, 8, 8]);
    assert_eq!(seconds(&mut Oracle, &IN_TIME), [2, 2, 2, 2]);
}

#[test]
fn greedy_steps_from_the_last_finished_call() {
    // 2 used of 2: up to 4. Then 4 of 4 cores and 4 of 4 levels used: up to 6. There 4 of 6: down to 4.
    assert_eq!(seconds(&mut Greedy { step: 2 }, &IN_TIME), [8, 2, 2, 2]);
    let replayed = replay(&four_calls(), &IN_TIME, &mut Greedy { step: 2 });
    let cores: Vec<u32> = replayed.calls.iter().map(|call| call.size.cpu).collect();
    assert_eq!(cores, [2, 4, 6, 4]);
}

#[test]
fn the_last_call_is_lost_where_it_was() {
    assert_eq!(seconds(&mut Fixed, &Quirks::FAITHFUL).len(), 3);
}

#[test]
fn arrivals_move_the_clock() {
    // Ten calls in one step: with the quirk the first (8 s and 1 s cold) has ended after nine arrivals, and
    // at the tenth the safeguard already knows it.
    let calls = Calls { functions: vec![SHORT], events: vec![(0, 0); 10] };
    let top = |quirks: &Quirks| {
        let replayed = replay(&calls, quirks, &mut SafeguardOnly::top());
        replayed.calls.iter().filter(|call| call.size.cpu == 8).count()
    };
    assert_eq!(top(&IN_TIME), 1);
    assert_eq!(top(&Quirks { arrivals_move_the_clock: false, ..IN_TIME }), 0);
}

#[test]
fn ensure_as_coded_gives_one_functions_action_to_the_next() {
    // Function 1 is never late (21 s are 1.05 times its shortest run), yet gets the cores meant for 0. One
    // counter for both falls due at every sixth call, which is function 0's where it comes second.
    let calm = FunctionModel { shortest: 20, longest: 20, ideal_cpu: 1, ..SHORT };
    let events = (0..16).flat_map(|call| [(call * 10, 1), (call * 10 + 1, 0)]).collect();
    let calls = Calls { functions: vec![SHORT, calm], events };
    let raised = |defects| {
        let replayed = replay(&calls, &ALL_RUN, &mut Ensure::new(defects));
        let raised = replayed.calls.iter().filter(|call| call.size.cpu > 2);
        raised.map(|call| call.baseline).collect::<Vec<_>>()
    };
    let baselines = raised(EnsureDefects::AS_CODED);
    assert!(baselines.contains(&8) && baselines.contains(&21), "{baselines:?}");
    let mended = EnsureDefects {
        one_counter_for_all: false,
        action_is_applied_again: false,
        ..EnsureDefects::AS_CODED
    };
    assert!(!raised(mended).contains(&21));
}

#[test]
fn every_call_is_accounted_for_and_servers_end_empty() {
    let replayed = replay(&four_calls(), &ALL_RUN, &mut Fixed);
    let summary = replayed.summary();
    assert_eq!((summary.calls, summary.rfet_mean, summary.without_room), (4, 1.0, 0));
    assert_eq!(summary.core_seconds, 4.0 * 2.0 * 8.0);
}
