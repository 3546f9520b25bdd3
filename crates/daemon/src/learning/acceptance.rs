//! The check that a new version must pass: both are played over the recent calls, and the new one must hold less without
//! delaying or killing more.

use serde::Serialize;
use windfall_control::quarantine::catch;
use windfall_core::{CallPolicy, Mebibytes, MilliCpu};

use crate::switched_calls::FinishedCall;

/// Calls that are needed; the first half of them only warms both up.
const ENOUGH: usize = 100;
/// A call that would have taken longer than this times its run counts as delayed.
const DELAYED: f64 = 1.1;
/// A new version may delay so much more of the calls; less than what chance does to 2,000 calls.
const MORE_DELAYED: f64 = 0.005;
/// A new version may kill so much more of the calls.
const MORE_KILLED: f64 = 0.001;
/// A new version must hold less than this times what the present one holds.
const LESS_HELD: f64 = 0.98;

/// How a policy does on recent calls, with its decisions at dispatch alone: no safeguard, no live change helps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Calls it was judged by.
    pub calls: usize,
    /// Core-seconds that its first sizes would hold.
    pub core_seconds_held: f64,
    /// Share of calls that would take more than 1.1 times as long.
    pub delayed_share: f64,
    /// Share of calls whose memory would not suffice.
    pub killed_share: f64,
    /// Decisions that were errors, panics or no numbers.
    pub nonsense: usize,
}

/// The verdict about a candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Acceptance {
    /// Whether it may take over.
    pub is_accepted: bool,
    /// One sentence with the numbers.
    pub reason: String,
    /// The policy in charge.
    pub present: Score,
    /// The new one.
    pub candidate: Score,
}

/// Plays both policies over `calls` and compares them.
pub fn check(
    present: &mut dyn CallPolicy,
    candidate: &mut dyn CallPolicy,
    calls: &[FinishedCall],
) -> Acceptance {
    let (present, candidate) = (play(present, calls), play(candidate, calls));
    let (is_accepted, reason) = judge(&present, &candidate);
    Acceptance { is_accepted, reason, present, candidate }
}

fn judge(present: &Score, candidate: &Score) -> (bool, String) {
    let percent = |share: f64| share * 100.0;
    if candidate.calls < ENOUGH / 2 {
        let had = candidate.calls;
        return (false, format!("only {had} recent calls to judge by, {} are needed", ENOUGH / 2));
    }
    if candidate.nonsense > 0 {
        let (bad, all) = (candidate.nonsense, candidate.calls);
        return (false, format!("{bad} of {all} decisions were errors or no numbers"));
    }
    if candidate.delayed_share > present.delayed_share + MORE_DELAYED {
        let (new, old) = (percent(candidate.delayed_share), percent(present.delayed_share));
        return (
            false,
            format!("it would delay {new:.1} % of recent calls, the present {old:.1} %"),
        );
    }
    if candidate.killed_share > present.killed_share + MORE_KILLED {
        let (new, old) = (percent(candidate.killed_share), percent(present.killed_share));
        return (
            false,
            format!("it would kill {new:.1} % of recent calls, the present {old:.1} %"),
        );
    }
    let ratio = candidate.core_seconds_held / present.core_seconds_held.max(1e-9);
    if ratio > LESS_HELD {
        return (
            false,
            format!("it would hold {ratio:.2} times as much, at most {LESS_HELD} counts as better"),
        );
    }
    let reason = format!(
        "holds {ratio:.2} times as much and delays {:.1} % of {} recent calls (present {:.1} %)",
        percent(candidate.delayed_share),
        candidate.calls,
        percent(present.delayed_share),
    );
    (true, reason)
}

fn play(policy: &mut dyn CallPolicy, calls: &[FinishedCall]) -> Score {
    let mut score = Score::default();
    let (mut delayed, mut killed) = (0u32, 0u32);
    for (place, call) in calls.iter().enumerate() {
        let decided = catch(|| policy.size(&call.view));
        let grant = decided.ok().and_then(Result::ok).and_then(|decision| decision.grant().ok());
        // Whatever it answers, it learns from what really happened; a panic there shows at the next decision.
        let _ = catch(|| policy.learn(&call.outcome));
        if place < calls.len() / 2 {
            continue;
        }
        score.calls += 1;
        let Some(grant) = grant else {
            score.nonsense += 1;
            continue;
        };
        let grant = grant.min(call.view.ceiling);
        let run = call.outcome.run().as_secs_f64();
        let at_grant = run_at(call, grant.cpu);
        score.core_seconds_held += grant.cpu.cores() * at_grant;
        delayed += u32::from(at_grant > DELAYED * run.max(1e-3));
        killed += u32::from(grant.memory < peak(call));
    }
    let share = |count: u32| f64::from(count) / score.calls.max(1) as f64;
    (score.delayed_share, score.killed_share) = (share(delayed), share(killed));
    score
}

fn peak(call: &FinishedCall) -> Mebibytes {
    Mebibytes::from_mib(call.outcome.memory_peak_mib).unwrap_or(call.outcome.last_grant.memory)
}

/// About how long the call would have run on `cpu`: its work at its peak rate, at the rate of `cpu` where that is less.
///
/// A call that ran 2 s and used 1 core on average with a peak of 2 did 2 core-seconds of work; on half a core that work
/// takes 4 s instead of 1 s, so the call takes 5 s.
fn run_at(call: &FinishedCall, cpu: MilliCpu) -> f64 {
    let run = call.outcome.run().as_secs_f64();
    let peak = call.outcome.cpu_peak_cores.max(call.outcome.cpu_mean_cores).max(1e-3);
    let cores = cpu.cores().max(1e-3);
    if cores >= peak {
        return run;
    }
    let work = call.outcome.cpu_mean_cores * run;
    run + work * (1.0 / cores - 1.0 / peak)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::{
        Allocation, CallCapabilities, CallDecision, CallId, CallOutcome, CallView, Duration,
        FunctionId, NodeId, PolicyError, Room, Timestamp,
    };

    /// Always the same size.
    struct Always(f64, f64);

    impl CallPolicy for Always {
        fn name(&self) -> &str {
            "always"
        }
        fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
            let (cpu_cores, memory_mib) = (self.0, self.1);
            let as_reserved = CallDecision::exactly(call.reservation, "test");
            Ok(CallDecision { cpu_cores, memory_mib, ..as_reserved })
        }
    }

    fn calls(count: u64) -> Vec<FinishedCall> {
        let own = Allocation::new(2000, 512);
        let one = |id: u64| FinishedCall {
            view: CallView {
                id: CallId(id),
                function: FunctionId(0),
                now: Timestamp::from_secs(id),
                arrived_at: Timestamp::from_secs(id),
                input: None,
                reservation: own,
                ceiling: Allocation::new(8000, 4096),
                free_in_cluster: Room::default(),
                waiting: 0,
                capabilities: CallCapabilities::QUOTA,
                foresight: None,
            },
            outcome: CallOutcome {
                id: CallId(id),
                function: FunctionId(0),
                node: NodeId(0),
                input: None,
                reservation: own,
                first_grant: own,
                last_grant: own,
                arrived_at: Timestamp::from_secs(id),
                started_at: Timestamp::from_secs(id),
                ended_at: Timestamp::from_secs(id) + Duration::from_secs(2),
                was_killed: false,
                cpu_peak_cores: 1.0,
                memory_peak_mib: 300.0,
                cpu_mean_cores: 0.5,
                throttled: Duration::ZERO,
                delayed: Duration::ZERO,
            },
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn a_smaller_size_that_suffices_is_accepted() {
        let verdict = check(&mut Always(2.0, 512.0), &mut Always(1.0, 320.0), &calls(400));
        assert!(verdict.is_accepted, "{}", verdict.reason);
        assert!(verdict.reason.starts_with("holds 0.50 times"), "{}", verdict.reason);
    }

    #[test]
    fn what_delays_kills_or_is_no_number_is_refused_with_its_reason() {
        let reason = |candidate: Always| {
            let verdict = check(&mut Always(2.0, 512.0), &mut { candidate }, &calls(400));
            assert!(!verdict.is_accepted);
            verdict.reason
        };
        assert!(reason(Always(0.2, 512.0)).starts_with("it would delay 100.0 %"));
        assert!(reason(Always(1.0, 128.0)).starts_with("it would kill 100.0 %"));
        assert!(reason(Always(f64::NAN, 512.0)).contains("no numbers"));
        assert!(reason(Always(2.0, 512.0)).starts_with("it would hold 1.00 times"));
    }

    #[test]
    fn few_calls_are_no_ground_to_change_anything() {
        let verdict = check(&mut Always(2.0, 512.0), &mut Always(1.0, 320.0), &calls(20));
        assert!(!verdict.is_accepted && verdict.reason.starts_with("only 10 recent calls"));
    }
}
