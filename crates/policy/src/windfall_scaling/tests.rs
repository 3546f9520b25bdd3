//! Scenario tests with whole functions.

use super::*;
use crate::fake_tick::{function, observation};
use windfall_core::{
    Answer, FunctionId, Instances, Mebibytes, MilliCpu, Outcome, Plan, PresenceStep, Receipt,
    Refusal, SafeguardChain, Settled,
};

/// A function under the policy, with instances that are ready one second after the decision.
struct Story {
    policy: WindfallScaling,
    second: u64,
    instances: u32,
    kept: Option<Mebibytes>,
    start_cpu: Option<MilliCpu>,
    whys: Vec<String>,
}

impl Story {
    fn new(price: f64) -> Self {
        let settings = WindfallScalingSettings { price, ..WindfallScalingSettings::default() };
        Self {
            policy: WindfallScaling::new(settings),
            second: 0,
            instances: 0,
            kept: None,
            start_cpu: None,
            whys: Vec::new(),
        }
    }

    /// Advances two seconds with calls of half a second that start at these times (seconds).
    fn tick(&mut self, calls: &[f64]) -> u32 {
        self.second += 2;
        let at = |seconds: f64| Timestamp::ZERO + Duration::from_secs_f64(seconds);
        let steps = calls.iter().flat_map(|begin| {
            [
                PresenceStep { at: at(*begin), calls: 1, passed_over: 0 },
                PresenceStep { at: at(begin + 0.5), calls: 0, passed_over: 0 },
            ]
        });
        let view = FunctionView {
            ready: Instances::new(self.instances.max(u32::from(!calls.is_empty()))),
            kept: self.kept,
            start_cpu: self.start_cpu,
            presence: steps.collect(),
            arrivals: calls.len() as u32,
            mean_run: (!calls.is_empty()).then_some(Duration::from_millis(500)),
            ..function(0)
        };
        let now = Timestamp::from_secs(self.second);
        let seen = Observation { now, taken_at: now, ..observation(vec![view]) };
        let decision = self.policy.decide(&seen).unwrap();
        let plan = SafeguardChain::default().review(&seen, &decision).unwrap();
        for target in plan.targets() {
            self.instances = target.instances.value().map_or(self.instances, Instances::get);
        }
        self.whys.extend(decision.targets.iter().map(|target| target.why.clone()));
        let receipt = Receipt::of(&plan, |_| Answer::Queued);
        self.policy.feedback(&TickRecord { plan, receipt, ..TickRecord::default() });
        self.instances
    }

    /// Runs a timer of 60 s for half an hour. Returns in how many ticks of the last ten minutes it had an
    /// instance, and whether it had one whenever the timer fired.
    fn timer(&mut self) -> (u32, bool) {
        let (mut held, mut warm) = (0, true);
        for tick in 0..900u64 {
            let begin = self.second as f64 + 0.7;
            let calls: &[f64] = if tick % 30 == 29 { &[begin] } else { &[] };
            if tick >= 600 {
                held += u32::from(self.instances > 0);
                warm &= calls.is_empty() || self.instances > 0;
            }
            self.tick(calls);
        }
        (held, warm)
    }
}

#[test]
fn a_timer_has_an_instance_when_it_fires_and_none_in_between() {
    let (held, warm) = Story::new(1e-4).timer();
    assert!(warm);
    assert!((10..=60).contains(&held), "{held} of 300 ticks");
}

#[test]
fn nearly_free_memory_is_held() {
    let (held, warm) = Story::new(1e-9).timer();
    assert!(warm && held == 300, "{held} of 300 ticks");
}

#[test]
fn memory_is_priced_by_what_an_idle_instance_keeps() {
    // 256 MiB at 1e-2 cost 2.6 weighted waits per second; 1 MiB is worth a start, which costs 53 s of holding.
    let (held, warm) = Story::new(1e-2).timer();
    assert!(held == 0 && !warm, "{held} of 300 ticks");
    let mut small = Story { kept: Some(Mebibytes::new(1)), ..Story::new(1e-2) };
    let (held, warm) = small.timer();
    assert!(warm && held < 60, "{held} of 300 ticks");
}

#[test]
fn an_instance_is_held_if_its_start_takes_cores_and_restarted_otherwise() {
    // 16 MiB at 1e-4: a minute costs 0.096 weighted waits, a start 0.085, and 0.6 more if it takes two cores for a second.
    let keeps = Some(Mebibytes::new(16));
    let (held, warm) = Story { kept: keeps, ..Story::new(1e-4) }.timer();
    assert!(warm && held < 60, "{held} of 300 ticks");
    let start_cpu = Some(MilliCpu::new(2000));
    let (held, warm) = Story { kept: keeps, start_cpu, ..Story::new(1e-4) }.timer();
    assert!(warm && held == 300, "{held} of 300 ticks");
}

#[test]
fn the_reason_of_a_change_names_gap_hazard_price_and_saving() {
    let mut story = Story::new(1e-4);
    story.timer();
    let start = story.whys.iter().rev().find(|why| why.starts_with("start ahead")).unwrap();
    for word in ["usual gap 60.0 s", "hazard", "holding costs", "a miss", "saves"] {
        assert!(start.contains(word), "{start}");
    }
}

#[test]
fn after_a_clock_jump_only_keep_alive_applies() {
    let mut story = Story::new(1e-4);
    story.timer();
    story.second += 4000;
    story.tick(&[]);
    let standing = *story.policy.standing.state(FunctionId(0));
    assert_eq!(standing.keep_alive, Some(Duration::from_mins(10)));
    assert!(story.whys.last().unwrap().contains("time has jumped"));
}

/// A tick at `second` at which nothing happens; the targets and the plan they become.
fn quiet_tick(
    policy: &mut WindfallScaling,
    second: u64,
    settled: Vec<Settled>,
) -> (Observation, Plan) {
    let now = Timestamp::from_secs(second);
    let standing = FunctionView { ready: Instances::new(1), ..function(0) };
    let seen = Observation { now, taken_at: now, settled, ..observation(vec![standing]) };
    let decision = policy.decide(&seen).unwrap();
    let plan = SafeguardChain::default().review(&seen, &decision).unwrap();
    (seen, plan.numbered(PlanId(second)))
}

fn feed(policy: &mut WindfallScaling, (observation, plan): (Observation, Plan), answer: &Answer) {
    let receipt = Receipt::of(&plan, |_| answer.clone());
    policy.feedback(&TickRecord { observation, plan, receipt, ..TickRecord::default() });
}

#[test]
fn a_release_that_was_refused_or_failed_is_asked_for_again() {
    // A function that was never called has an instance too many.
    let mut policy = WindfallScaling::default();
    let released = |tick: &(Observation, Plan)| {
        tick.1.targets().first().and_then(|target| target.instances.value())
    };
    let refused = Answer::Refused(Refusal::Unreachable);
    for second in [2, 4] {
        let tick = quiet_tick(&mut policy, second, vec![]);
        assert_eq!(released(&tick), Some(Instances::ZERO), "second {second}");
        feed(&mut policy, tick, &refused);
    }
    let tick = quiet_tick(&mut policy, 6, vec![]);
    assert_eq!(released(&tick), Some(Instances::ZERO));
    feed(&mut policy, tick, &Answer::Queued);
    let tick = quiet_tick(&mut policy, 8, vec![]);
    assert_eq!(released(&tick), None, "it is under way");
    feed(&mut policy, tick, &Answer::Queued);
    let failed = Settled {
        plan: PlanId(6),
        function: FunctionId(0),
        at: Timestamp::from_secs(9),
        outcome: Outcome::Failed(Refusal::System("busy".into())),
    };
    let tick = quiet_tick(&mut policy, 10, vec![failed]);
    feed(&mut policy, tick, &Answer::Queued);
    let tick = quiet_tick(&mut policy, 12, vec![]);
    assert_eq!(released(&tick), Some(Instances::ZERO), "what failed is asked for again");
}

#[test]
fn a_platform_that_does_not_report_arrival_times_gets_keep_alive() {
    let mut policy = WindfallScaling::default();
    let silent = FunctionView { arrivals: 3, ..function(0) };
    let decision = policy.decide(&observation(vec![silent])).unwrap();
    assert_eq!(decision.targets[0].keep_alive, Setting::Set(Duration::from_mins(10)));
    assert_eq!(decision.targets[0].instances, Setting::Set(0.0));
}

#[test]
fn a_function_that_was_never_called_takes_little_memory() {
    let mut policy = WindfallScaling::default();
    let functions = (0..100).map(function).collect();
    policy.decide(&observation(functions)).unwrap();
    assert!(policy.bytes_of_functions(100) < 100 * 500, "{}", policy.bytes_of_functions(100));
}
