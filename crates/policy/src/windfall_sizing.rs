//! Windfall's own sizing: start a call at a calibrated quantile, supervise it, reclaim what it does not use,
//! and restore it as soon as the call is throttled.
//!
//! ```text
//!   START   cpu    = Q_.99(peak | input) x experience x (1 + margin)     above the reservation: on loan
//!           memory = Q_.999(peak | input) x 1.15                         at most the reservation
//!   LOOK    idle                      ->  the floor
//!           use settled at u ± e      ->  1.01 u + 2 e
//!           throttled                 ->  the slack budget restores what was reclaimed; above the
//!                                         reservation a loan, while no call is queued
//!   END     learn the peaks; a call that lost time at its first size widens the margin
//! ```
//!
//! The depth of a trim and the time of the next look are decided by the slack budget behind the policy. It
//! tracks how much time the call has lost and limits each decision so that the loss stays a small share of
//! the time the call has run. So even if every estimate of this policy is wrong for a call, its slowdown
//! stays bounded.
//!
//! Worked example: reserved 2 cores, Q_.99 is 1.3, margin 5 %. The call starts with 1.365 cores. After 40 ms it
//! has used none, so the decision is 0.05 cores. Its function never ran shorter than 2 s, so 16 ms may be lost,
//! and the budget allows the full trim if the next look comes after 16 ms. The call becomes active, is throttled,
//! and has 1.365 cores back at that look. Two windows of 1.0 cores later it holds 1.06, then 1.03.

mod conditional_quantile;
mod experience;
mod function_profile;
mod settings;
mod usage_level;
mod watched_call;

use std::collections::BTreeMap;

use windfall_core::call::Beyond;
use windfall_core::{
    CallDecision, CallId, CallOutcome, CallPolicy, CallView, CpuCeiling, Duration, FunctionId,
    PolicyError, RunningCall,
};

pub use settings::{SlackParameters, WindfallSizingSettings};

use self::conditional_quantile::log_input;
use self::experience::Experience;
use self::function_profile::FunctionProfile;
use self::watched_call::WatchedCall;
use crate::per_function::PerFunction;

/// Smallest relative trim that is worth a change.
const MIN_TRIM: f64 = 0.03;
/// Factor applied to a peak that reached its limit.
const CENSORED_GROWTH: f64 = 1.25;
/// Quantile of run times that a call is expected to last at least: the shortest of a hundred.
const RUN_QUANTILE: f64 = 0.01;

/// The default policy for per-call sizing.
#[derive(Clone, Debug)]
pub struct WindfallSizing {
    settings: WindfallSizingSettings,
    functions: PerFunction<Option<FunctionProfile>>,
    cpu_experience: Experience,
    memory_experience: Experience,
    calls: BTreeMap<CallId, WatchedCall>,
}

impl Default for WindfallSizing {
    fn default() -> Self {
        Self::new(WindfallSizingSettings::default())
    }
}

impl WindfallSizing {
    /// Creates a policy without history.
    pub fn new(settings: WindfallSizingSettings) -> Self {
        Self {
            settings,
            functions: PerFunction::default(),
            cpu_experience: Experience::new(settings.cpu_quantile),
            memory_experience: Experience::new(settings.memory_quantile),
            calls: BTreeMap::new(),
        }
    }

    fn function(&mut self, function: FunctionId) -> &mut FunctionProfile {
        let settings = &self.settings;
        self.functions.state(function).get_or_insert_with(|| FunctionProfile::new(settings))
    }

    fn visible(&self, input: Option<f32>) -> Option<f64> {
        log_input(input).filter(|_| self.settings.uses_input)
    }

    /// Predicts cores, MiB and minimum run time of a call on this input.
    fn predict(&mut self, function: FunctionId, input: Option<f32>) -> Option<Prediction> {
        let (settings, x) = (self.settings, self.visible(input));
        let (cpu_pool, memory_pool) = (&self.cpu_experience, &self.memory_experience);
        let known = self.functions.known(function)?.as_ref()?;
        let (mut cpu, mut memory) = known
            .cpu
            .at(x, settings.cpu_quantile)
            .zip(known.memory.at(x, settings.memory_quantile))?;
        if settings.pools_experience {
            cpu *= cpu_pool.factor(known.finished);
            memory *= memory_pool.factor(known.finished);
        }
        Some(Prediction {
            cpu: cpu * (1.0 + known.margin),
            memory: (memory * (1.0 + settings.memory_margin)).max(known.memory_floor),
            shortest: known.run.at(x, RUN_QUANTILE)?,
            is_warm: known.finished >= settings.warm_calls,
        })
    }

    /// Delay until the first look: the time that the call may lose in its shortest run, within the limits.
    fn first_look(&self, shortest: f64) -> Duration {
        let settings = &self.settings;
        let affordable = settings.slack.beta * shortest * 1e3;
        let latest = settings.first_look_millis;
        millis(affordable.max(settings.slack.soonest_look_millis).min(latest))
    }

    fn next_look(&self, elapsed: Duration) -> Duration {
        let settings = &self.settings;
        let grown = settings.look_growth * elapsed.as_secs_f64() * 1e3;
        millis(grown.clamp(settings.shortest_look_millis, settings.longest_look_millis))
    }

    /// CPU that a call without throttling should hold from now on, in cores, and why.
    fn trimmed(&self, call: &WatchedCall, grant: f64) -> (f64, &'static str) {
        let settings = &self.settings;
        let level = &call.level;
        let used = level.cores();
        if used < settings.idle_share * grant || used < level.error() {
            return (settings.floor_cpu_cores, "idle");
        }
        let room =
            |used: f64| used * (1.0 + settings.use_margin) + settings.noise_room * level.error();
        if level.is_settled() {
            (room(used), "holds what it uses")
        } else if call.settled > 0.0 {
            (room(used.max(call.settled)), "holds what it used before")
        } else {
            (grant, "not settled yet")
        }
    }

    fn propose_cpu(&mut self, running: &RunningCall) -> (f64, &'static str) {
        let settings = self.settings;
        let (grant, user) = (running.grant.cpu.cores(), running.reservation.cpu.cores());
        let mut call =
            self.calls.get(&running.id).copied().unwrap_or_else(|| WatchedCall::new(running));
        let is_saturated = call.record(running);
        let is_queued = running.waiting > 0;
        let (cores, why) = if is_saturated && grant < user {
            (grant, "wants more than it has")
        } else if is_saturated && settings.lends && !is_queued {
            (1.5 * grant, "borrows")
        } else if is_saturated || !settings.trims_cpu {
            (if is_queued { grant.min(user) } else { grant }, "as it is")
        } else {
            let (cores, why) = self.trimmed(&call, grant);
            let most = if is_queued { grant.min(user) } else { grant };
            if cores < (1.0 - MIN_TRIM) * grant { (cores, why) } else { (most, "as it is") }
        };
        call.was_trimmed |= cores < grant;
        self.calls.insert(running.id, call);
        (cores.min(running.ceiling.cpu.cores()), why)
    }

    fn propose_memory(&mut self, running: &RunningCall) -> f64 {
        let settings = self.settings;
        let (grant, used) = (running.grant.memory.mib(), running.sensed.memory_mib);
        let jump = self.function(running.function).largest_jump();
        match jump.filter(|_| settings.trims_memory) {
            Some(jump) => {
                let enough = used * (1.08 * jump + 0.02);
                if enough < (1.0 - MIN_TRIM) * grant {
                    enough.max(settings.floor_memory_mib)
                } else {
                    grant
                }
            }
            None => grant,
        }
    }

    /// What a finished call says about its CPU.
    fn read_cpu(&self, outcome: &CallOutcome, watched: Option<&WatchedCall>) -> CpuReading {
        let run = outcome.run().as_secs_f64().max(1e-9);
        let peak = outcome.cpu_peak_cores;
        let sampled = watched.map_or(0.0, |call| call.throttled);
        let unsampled = (outcome.throttled.as_secs_f64() - sampled).max(0.0);
        let mut throttled_at = watched.map_or(0.0, |call| call.throttled_at);
        if unsampled > 0.01 * run {
            throttled_at = throttled_at.max(outcome.last_grant.cpu.cores());
        }
        let is_censored = throttled_at > 0.0 && throttled_at >= 0.97 * peak;
        let need = if is_censored { peak * CENSORED_GROWTH } else { peak };
        let (first, throttled) = match watched {
            Some(call) => (call.first, call.throttled_first),
            None => (outcome.first_grant.cpu.cores(), unsampled),
        };
        let missed = (1.0 - first / need.max(1e-9)).max(0.0);
        let below_user = first < outcome.reservation.cpu.cores();
        CpuReading { need, lost: if below_user { throttled * missed / run } else { 0.0 } }
    }
}

/// CPU of a finished call.
struct CpuReading {
    /// The peak that it would have had with enough CPU, in cores.
    need: f64,
    /// The share of its run that it lost at its first size.
    lost: f64,
}

/// Predicted needs of a call.
struct Prediction {
    cpu: f64,
    memory: f64,
    /// Minimum run time, seconds.
    shortest: f64,
    is_warm: bool,
}

fn millis(millis: f64) -> Duration {
    Duration::from_secs_f64(millis * 1e-3)
}

impl CallPolicy for WindfallSizing {
    fn name(&self) -> &str {
        "windfall"
    }

    fn size(&mut self, call: &CallView) -> Result<CallDecision, PolicyError> {
        let settings = self.settings;
        let prediction = self.predict(call.function, call.input);
        let shortest = prediction.as_ref().map_or(0.0, |known| known.shortest);
        let look_after = Some(self.first_look(shortest));
        let Some(prediction) = prediction.filter(|known| known.is_warm) else {
            let at_user_size = CallDecision::exactly(call.reservation, "too few calls seen");
            return Ok(CallDecision { look_after, beyond: Beyond::HarvestPool, ..at_user_size });
        };
        let user = call.reservation;
        let may_borrow = settings.lends && call.waiting == 0;
        let most = if may_borrow { call.ceiling.cpu } else { user.cpu.min(call.ceiling.cpu) };
        Ok(CallDecision {
            cpu_cores: prediction.cpu.max(settings.floor_cpu_cores).min(most.cores()),
            cpu_ceiling: CpuCeiling::AtGrant,
            memory_mib: prediction.memory.max(settings.floor_memory_mib).min(user.memory.mib()),
            beyond: Beyond::HarvestPool,
            demand: None,
            expected_run: Some(Duration::from_secs_f64(prediction.shortest.min(1e6))),
            look_after,
            why: "what its function needs at most, given its input",
        })
    }

    fn supervise(&mut self, running: &RunningCall) -> Result<CallDecision, PolicyError> {
        let (cpu_cores, why) = self.propose_cpu(running);
        let memory_mib = self.propose_memory(running);
        Ok(CallDecision {
            cpu_cores,
            cpu_ceiling: CpuCeiling::AtGrant,
            memory_mib,
            beyond: Beyond::HarvestPool,
            demand: None,
            expected_run: None,
            look_after: Some(self.next_look(running.elapsed())),
            why,
        })
    }

    fn lost(&mut self, call: CallId) {
        self.calls.remove(&call);
    }

    fn learn(&mut self, outcome: &CallOutcome) {
        let settings = self.settings;
        let watched = self.calls.remove(&outcome.id);
        if outcome.was_killed {
            let limit = outcome.last_grant.memory.mib();
            let known = self.function(outcome.function);
            known.memory_floor = known.memory_floor.max(limit * CENSORED_GROWTH);
            return;
        }
        let x = self.visible(outcome.input);
        let CpuReading { need: cpu, lost } = self.read_cpu(outcome, watched.as_ref());
        let memory = outcome.memory_peak_mib;
        let known = self.function(outcome.function);
        let age = known.finished;
        let raw_cpu = known.cpu.at(x, settings.cpu_quantile);
        let raw_memory = known.memory.at(x, settings.memory_quantile);
        known.cpu.push(x, cpu);
        known.memory.push(x, memory);
        known.run.push(x, outcome.run().as_secs_f64());
        known.finished = known.finished.saturating_add(1);
        if settings.calibrates {
            known.calibrate(lost);
        }
        if let Some(call) = watched {
            known.record_jump(call.jump);
        }
        if let Some(quantile) = raw_cpu {
            self.cpu_experience.learn(age, quantile, cpu);
        }
        if let Some(quantile) = raw_memory {
            self.memory_experience.learn(age, quantile, memory);
        }
    }
}

#[cfg(test)]
#[path = "windfall_sizing/story.rs"]
mod story;
