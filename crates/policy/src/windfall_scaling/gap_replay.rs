//! Replays a gap of known length under a plan and computes what it costs.
//!
//! ```text
//!   released ──tick──tick──tick── ... ──tick── next need          ticks are multiples of the tick length
//!   warm:  stays while the plan holds, or begins within the next cold start and tick
//!   cold:  starts in the second case, is ready one cold start later
//!   end:   no wait if ready; the remainder of the start if starting; a full cold start if there is no instance
//! ```
//!
//! Plans use the policy's costs for a function that is not busy and a pool that is not full. The outcome keeps seconds
//! held, starts ahead and the weighted wait separate, so that any price can be applied to them.

use windfall_core::{Duration, Timestamp};

use super::WindfallScalingSettings;
use super::level_gap::LevelGap;
use super::level_plan::{Costs, LevelPlan, Programme};
use super::weighted_wait::{rarity, weighted_wait};

/// Parameters of one function that determine the costs of its gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GapStakes {
    /// Memory of an idle instance, MiB.
    pub memory_mib: f64,
    /// Cold start of a new instance, seconds.
    pub cold_start_seconds: f64,
    /// Mean run time of a call, seconds.
    pub run_seconds: f64,
    /// Mean rate of calls.
    pub calls_per_second: f64,
}

/// Outcome of one gap.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GapOutcome {
    /// Seconds for which an instance was idle or starting.
    pub held_seconds: f64,
    /// Instances started ahead of a call.
    pub starts_ahead: u32,
    /// Weighted wait of the call that ended the gap, from 0 to 1.
    pub weighted_wait: f64,
}

impl GapStakes {
    /// Weighted wait for the instance of `level`: a tenth of the run time counts in full, and a wait that another
    /// instance ends sooner counts less.
    fn weighted_wait(&self, level: usize, wait: f64) -> f64 {
        let wait = if level == 0 { wait } else { wait.min(self.run_seconds / level as f64) };
        weighted_wait(wait, self.run_seconds)
    }

    fn costs(&self, level: usize, settings: &WindfallScalingSettings) -> Costs {
        let (hold, cold) = (settings.price * self.memory_mib, self.cold_start_seconds);
        let start = hold * (cold + settings.start_charge_seconds);
        let fairness =
            if level == 0 { rarity(self.calls_per_second, settings.fairness) } else { 1.0 };
        let misses = 1.0 + cold * self.calls_per_second;
        let miss = self.weighted_wait(level, cold) * fairness * misses + start;
        Costs { hold: hold as f32, start: start as f32, miss: miss as f32 }
    }
}

/// Replays gaps with a fixed time between ticks.
#[derive(Clone, Debug)]
pub struct GapReplay {
    tick: Duration,
    programme: Programme,
}

impl GapReplay {
    /// Creates a replay with this time between two ticks.
    pub fn new(tick: Duration) -> Self {
        Self { tick, programme: Programme::default() }
    }

    /// Outcome of `gap` under the best plan for `chances` at the price of `settings`.
    pub fn outcome(
        &self,
        gap: &LevelGap,
        chances: &[f32],
        stakes: &GapStakes,
        settings: &WindfallScalingSettings,
    ) -> GapOutcome {
        let plan = self.programme.best(chances, stakes.costs(gap.level, settings));
        self.follow(gap, &plan, stakes)
    }

    fn follow(&self, gap: &LevelGap, plan: &LevelPlan, stakes: &GapStakes) -> GapOutcome {
        let (lead, tick) = (stakes.cold_start_seconds, self.tick.as_secs_f64());
        let age_at = |at: Timestamp| at.since(gap.from).as_secs_f64();
        let end = gap.seconds();
        let mut outcome = GapOutcome::default();
        // Ages of the gap at which the instance was acquired and at which it is ready.
        let mut there = Some((age_at(gap.released), age_at(gap.released)));
        let mut at = self.first_tick(gap.released);
        while at < gap.until {
            let age = age_at(at);
            let begins = plan.begins(age + lead, age + lead + tick);
            match there {
                Some((since, ready)) if ready <= age && !begins && !plan.holds(age) => {
                    outcome.held_seconds += age - since;
                    there = None;
                }
                None if begins => {
                    outcome.starts_ahead += 1;
                    there = Some((age, age + lead));
                }
                Some(_) | None => {}
            }
            at += self.tick;
        }
        if gap.is_cut {
            outcome.held_seconds += there.map_or(0.0, |(since, _)| end - since);
            return outcome;
        }
        let (since, ready) = there.unwrap_or((end, end + lead));
        outcome.held_seconds += ready.max(end) - since;
        outcome.weighted_wait = stakes.weighted_wait(gap.level, (ready - end).max(0.0));
        outcome
    }

    /// The first tick at which the instance is idle.
    fn first_tick(&self, released: Timestamp) -> Timestamp {
        let tick = self.tick.as_nanos().max(1);
        Timestamp::from_nanos(released.as_nanos().div_ceil(tick) * tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 MiB, a cold start of 1 s, calls of 1 s every minute.
    const STAKES: GapStakes = GapStakes {
        memory_mib: 100.0,
        cold_start_seconds: 1.0,
        run_seconds: 1.0,
        calls_per_second: 1.0 / 60.0,
    };

    fn gap(seconds: u64, is_cut: bool) -> LevelGap {
        let until = Timestamp::from_secs(seconds);
        let released = Timestamp::from_secs(1);
        LevelGap { level: 0, from: Timestamp::ZERO, released, until, is_cut }
    }

    /// Seconds held, starts ahead and the weighted wait, to a thousandth, of a gap for which 60 s were predicted.
    fn timer_then(
        actual: LevelGap,
        stakes: GapStakes,
        settings: WindfallScalingSettings,
    ) -> (f64, u32, f64) {
        let mut chances = vec![0.0; LevelGap::BINS];
        chances[gap(60, false).bin()] = 1.0;
        let replay = GapReplay::new(Duration::from_secs(2));
        let found = replay.outcome(&actual, &chances, &stakes, &settings);
        let rounded = |number: f64| (number * 1e3).round() / 1e3;
        (rounded(found.held_seconds), found.starts_ahead, rounded(found.weighted_wait))
    }

    fn usual() -> WindfallScalingSettings {
        WindfallScalingSettings::default()
    }

    #[test]
    fn a_timer_is_released_and_started_ahead() {
        // 100 MiB at 3e-5 cost .003 per second: .177 for the 59 s, .159 for a start with its charge. The instance is
        // released at the tick at 2 s. The bin of 60 s begins at 59.4 s, which is within one cold start and one tick of
        // 58 s: held from 1 to 2 s and from 58 to 60 s.
        assert_eq!(timer_then(gap(60, false), STAKES, usual()), (3.0, 1, 0.0));
    }

    #[test]
    fn a_gap_that_ends_sooner_is_a_miss_and_a_cut_one_costs_memory_only() {
        // Ends at 30 s: one second held, and one for the start that the call triggers.
        assert_eq!(timer_then(gap(30, false), STAKES, usual()), (2.0, 0, 1.0));
        assert_eq!(timer_then(gap(30, true), STAKES, usual()), (1.0, 0, 0.0));
    }

    #[test]
    fn a_call_that_arrives_during_a_start_waits_for_the_remainder() {
        // With a cold start of 1.5 s it begins at 56 s and is ready at 57.5 s. Needed at 57 s: .5 s are left, with a
        // weight of 1 for a call of 1 s and .5 for one of 10 s.
        let stakes = GapStakes { cold_start_seconds: 1.5, ..STAKES };
        assert_eq!(timer_then(gap(57, false), stakes, usual()), (2.5, 1, 1.0));
        let long = GapStakes { run_seconds: 10.0, ..stakes };
        assert_eq!(timer_then(gap(57, false), long, usual()), (2.5, 1, 0.5));
    }

    #[test]
    fn expensive_starts_hold_the_whole_gap_and_expensive_memory_none_of_it() {
        let expensive_starts = WindfallScalingSettings { start_charge_seconds: 100.0, ..usual() };
        assert_eq!(timer_then(gap(60, false), STAKES, expensive_starts), (59.0, 0, 0.0));
        let expensive_memory = WindfallScalingSettings { price: 1.0, ..usual() };
        assert_eq!(timer_then(gap(60, false), STAKES, expensive_memory), (2.0, 0, 1.0));
    }

    #[test]
    fn the_worked_costs() {
        // 60 calls per hour: fairness 2^.3 = 1.231; 1 + 1/60 calls are missed; a start is 53 x .003 = .159.
        let costs = STAKES.costs(0, &WindfallScalingSettings::default());
        assert!((costs.hold - 0.003).abs() < 1e-6 && (costs.start - 0.159).abs() < 1e-6);
        assert!((costs.miss - (1.2311 * (1.0 + 1.0 / 60.0) + 0.159)).abs() < 1e-3, "{costs:?}");
        // The third instance is one of three: a wait lasts half a run at most.
        assert_eq!(STAKES.weighted_wait(2, 1.0), 1.0);
        assert!((STAKES.weighted_wait(20, 1.0) - 0.5).abs() < 1e-12);
    }
}
