//! Properties of every policy in this crate: decisions are finite, non-negative amounts, and the same history
//! gives the same decision.

use proptest::prelude::*;
use windfall_core::{
    Allocation, CallDemand, CallId, CallOutcome, CallPolicy, CallView, Duration, Foresight,
    FunctionView, Mebibytes, MilliCpu, Policy, Room, RunningCall, Seed, Sensed, Timestamp,
};

use crate::fake_platform::{FakePlatform, one_core_second, outcome, running, view};
use crate::fake_tick::{function, observation};
use crate::{
    Ensure, EnsureScaling, Fixed, Greedy, Histogram, HybridHistogram, KeepAlive, Libra, Oracle,
    Queueing, SafeguardRandom, Shabari, WindfallScaling, WindfallSizing,
};

fn call_policies() -> Vec<Box<dyn CallPolicy>> {
    vec![
        Box::new(Fixed),
        Box::new(Greedy::default()),
        Box::new(Ensure::default()),
        Box::new(Histogram::default()),
        Box::new(Libra::default()),
        Box::new(Shabari::default()),
        Box::new(WindfallSizing::default()),
        Box::new(SafeguardRandom::new(windfall_core::PeakSettings::default(), Seed::new(1))),
        Box::new(Oracle),
    ]
}

fn tick_policies() -> Vec<Box<dyn Policy>> {
    vec![
        Box::new(KeepAlive::default()),
        Box::new(EnsureScaling::default()),
        Box::new(Queueing::default()),
        Box::new(HybridHistogram::default()),
        Box::new(WindfallScaling::default()),
    ]
}

fn is_amount(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

#[test]
fn ten_calls_are_served_the_same_way_twice() {
    let run = |mut policy: Box<dyn CallPolicy>| {
        let mut platform =
            FakePlatform::new(Allocation::new(2600, 512), Allocation::new(8000, 1024));
        platform.knows_the_future = true;
        let demand = |n: u32| CallDemand {
            parallelism: MilliCpu::new(800 + 300 * (n % 4)),
            memory_peak: Mebibytes::new(120 + 60 * (n % 3)),
            input: Some(n as f32),
            ..one_core_second()
        };
        (0..10).map(|n| platform.call(policy.as_mut(), demand(n))).collect::<Vec<_>>()
    };
    for (first, second) in call_policies().into_iter().zip(call_policies()) {
        let name = first.name().to_owned();
        let (first, second) = (run(first), run(second));
        assert_eq!(first, second, "{name}");
        assert!(first.iter().all(|call| call.run > Duration::ZERO), "{name}");
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<String> =
        call_policies().iter().map(|policy| policy.name().to_owned()).collect();
    names.extend(tick_policies().iter().map(|policy| policy.name().to_owned()));
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Peaks that sensors should never report, and some valid ones.
fn odd() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(-1.0),
        Just(0.0),
        Just(1e300),
        0.0..10.0f64,
        0.0..5000.0f64,
    ]
}

fn size() -> impl Strategy<Value = Allocation> {
    (prop_oneof![Just(1u32), 1..9000u32], prop_oneof![Just(1u32), 1..4096u32])
        .prop_map(|(cpu, memory)| Allocation::new(cpu, memory))
}

proptest! {
    /// Reservations of 1m and 1 MiB, ceilings below them, missing inputs, kills, absurd peaks.
    #[test]
    fn every_decision_for_a_call_is_an_amount(
        reservation in size(),
        ceiling in size(),
        past in prop::collection::vec((odd(), odd(), size(), any::<bool>(), any::<Option<f32>>()), 0..20),
        free in odd(),
        sensed in (odd(), odd()),
    ) {
        for mut policy in call_policies() {
            for (n, &(cpu, memory, grant, was_killed, input)) in past.iter().enumerate() {
                let call = CallView {
                    input,
                    free_in_cluster: Room { cores: free, mib: free },
                    foresight: Some(Foresight { demand: one_core_second() }),
                    ..view(reservation, ceiling)
                };
                let decision = policy.size(&call).unwrap();
                prop_assert!(is_amount(decision.cpu_cores), "{} {:?}", policy.name(), decision);
                prop_assert!(is_amount(decision.memory_mib), "{} {:?}", policy.name(), decision);
                let looked = RunningCall {
                    grant,
                    sensed: Sensed {
                        cpu_used_cores: sensed.0, memory_mib: sensed.1, ..Sensed::default()
                    },
                    ..running(&call)
                };
                let decision = policy.supervise(&looked).unwrap();
                prop_assert!(is_amount(decision.cpu_cores) && is_amount(decision.memory_mib));
                policy.learn(&CallOutcome {
                    id: CallId(n as u64),
                    input,
                    was_killed,
                    started_at: Timestamp::from_secs(n as u64),
                    ended_at: Timestamp::from_secs((n as u64) / 2),
                    ..outcome(reservation, grant, cpu, memory)
                });
            }
        }
    }

    #[test]
    fn every_decision_of_a_tick_is_an_amount(
        ticks in prop::collection::vec((any::<u32>(), any::<u32>(), odd(), any::<Option<u64>>()), 1..20),
        concurrency in any::<u32>(),
        capacity in odd(),
    ) {
        for mut policy in tick_policies() {
            for &(arrivals, queued, mean_concurrency, run) in &ticks {
                let mut seen = observation(vec![FunctionView {
                    arrivals,
                    queued,
                    mean_concurrency,
                    concurrency,
                    mean_run: run.map(Duration::from_nanos),
                    ..function(0)
                }]);
                seen.cluster.capacity_mib = capacity;
                for target in policy.decide(&seen).unwrap().targets {
                    if let Some(instances) = target.instances.value() {
                        prop_assert!(is_amount(instances), "{} {}", policy.name(), instances);
                    }
                }
            }
        }
    }
}
