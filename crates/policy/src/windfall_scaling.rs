//! Windfall scaling: decides per level of concurrency, by the hazard of its next use and the price of memory.
//!
//! ```text
//!   presence ─► levels ─► gaps ─► hazard (own gaps + pooled prior) ─► hold | release | start ahead
//!                                price of a MiB-second in weighted waits ──┤        │
//!   busy functions: what arrivals find above the mean ─► headroom ─────────┘        ├─► instances
//!                                                            └──────────────────────┘
//!   full pool: the shadow price rises, the lowest hazard per MiB is evicted first
//! ```
//!
//! The only parameter to tune is the price of a MiB-second in weighted waits. At 3e-5 an idle instance of 100 MiB may be
//! held for 333 s to avoid one weighted wait. Each part is documented in its own file. A call that finds no free
//! slot starts an instance regardless of the plan, so a wrong forecast costs at most a cold start.

mod blend;
mod gap_bins;
mod gap_history;
mod gap_prior;
mod gap_replay;
mod gap_trial;
mod headroom;
mod level_gap;
mod level_plan;
mod prior_fit;
mod scaled_function;
mod shadow_price;
mod weighted_wait;

use serde::{Deserialize, Serialize};
use windfall_core::{
    Decision, Duration, FunctionView, Needs, Observation, PlanId, Policy, PolicyError, Setting,
    Target, TickRecord, Timestamp,
};

use self::gap_prior::GapPrior;
use self::level_plan::Programme;
use self::scaled_function::{Reasons, ScaledFunction, Shared, Want};
use self::shadow_price::ShadowPrice;
use crate::per_function::PerFunction;

pub use self::gap_replay::{GapOutcome, GapReplay, GapStakes};
pub use self::gap_trial::{GapTables, GapTrial};
pub use self::level_gap::LevelGap;
pub use self::prior_fit::GapCounts;
pub use self::shadow_price::ShadowLaw;

/// Settings of [`WindfallScaling`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WindfallScalingSettings {
    /// Price of a MiB-second in weighted waits: the trade-off between waiting and holding.
    pub price: f64,
    /// Exponent of the extra weight (1 + 60 / calls per hour) on waits for the first instance of a rarely called
    /// function.
    pub fairness: f64,
    /// Cost of a start in seconds of holding, for its CPU and the churn it causes.
    pub start_charge_seconds: f64,
    /// Cost of a start in seconds of holding for busy functions, which start rarely in relation to their calls.
    pub busy_start_charge_seconds: f64,
    /// Price in weighted waits of a core-second used by a start, with per-call sizing, where all functions share the
    /// cores of a node.
    pub core_price: f64,
    /// Weight of the pooled prior, in gaps; each level learns whether to use a fifth, all or four times of it.
    pub prior_gaps: f64,
    /// How the price reacts to a full pool.
    pub shadow: ShadowLaw,
    /// Keep-alive while gaps are unknown or after the clock has jumped, seconds.
    pub fallback_keep_alive_seconds: f64,
}

impl Default for WindfallScalingSettings {
    /// Fairness, charges, the price of cores and the weight of the prior are fitted on training functions only: see
    /// `experiments/scaling_frontier`.
    fn default() -> Self {
        Self {
            price: 3e-5,
            fairness: 0.3,
            start_charge_seconds: 52.0,
            busy_start_charge_seconds: 30.0,
            core_price: 0.3,
            prior_gaps: 5.0,
            shadow: ShadowLaw::default(),
            fallback_keep_alive_seconds: 600.0,
        }
    }
}

/// A window longer than this, or a clock that goes back, counts as a jump.
const LONGEST_WINDOW: Duration = Duration::from_secs(60);

/// The settings of a function that the platform accepted last.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Standing {
    instances: Option<u32>,
    keep_alive: Option<Duration>,
    /// The plan that set them.
    plan: PlanId,
}

/// Chooses instance counts by the hazard of their next use and the price of memory.
#[derive(Clone, Debug)]
pub struct WindfallScaling {
    settings: WindfallScalingSettings,
    prior: GapPrior,
    programme: Programme,
    functions: PerFunction<ScaledFunction>,
    standing: PerFunction<Standing>,
    shadow: ShadowPrice,
    last: Option<Timestamp>,
    /// Until when only keep-alive applies, because the clock has jumped.
    falls_back_until: Timestamp,
}

impl Default for WindfallScaling {
    fn default() -> Self {
        Self::new(WindfallScalingSettings::default())
    }
}

impl WindfallScaling {
    /// Creates a policy that knows only its fitted prior.
    pub fn new(settings: WindfallScalingSettings) -> Self {
        Self {
            settings,
            prior: GapPrior::fitted(),
            programme: Programme::default(),
            functions: PerFunction::default(),
            standing: PerFunction::default(),
            shadow: ShadowPrice::new(settings.shadow),
            last: None,
            falls_back_until: Timestamp::ZERO,
        }
    }

    /// Memory used by the state of all functions seen so far, in bytes, without the shared tables.
    pub fn bytes_of_functions(&self, functions: u32) -> usize {
        let known =
            (0..functions).filter_map(|id| self.functions.known(windfall_core::FunctionId(id)));
        let each = size_of::<ScaledFunction>() + size_of::<Standing>();
        known.map(|function| each + function.heap_bytes()).sum()
    }

    /// Memory used by the tables that all functions share, in bytes.
    pub fn shared_bytes(&self) -> usize {
        self.prior.heap_bytes()
    }

    /// Checks whether the clock has jumped since the last tick. If so, discards all running gaps.
    fn detect_jump(&mut self, seen: &Observation) {
        let last = self.last.replace(seen.now);
        let Some(last) = last else { return };
        let jumped = seen.now < last
            || seen.now.since(last) > LONGEST_WINDOW
            || seen.window > LONGEST_WINDOW
            || seen.age() > LONGEST_WINDOW;
        if jumped {
            for view in &seen.functions {
                self.functions.state(view.function).break_off();
            }
            let fallback = Duration::from_secs_f64(self.settings.fallback_keep_alive_seconds);
            self.falls_back_until = seen.now + fallback;
        }
    }

    /// Target with keep-alive only, for a function whose gaps are unknown.
    fn fall_back(&mut self, view: &FunctionView, why: &str) -> Option<Target> {
        let keep_alive = Duration::from_secs_f64(self.settings.fallback_keep_alive_seconds);
        let standing = *self.standing.state(view.function);
        if standing.instances == Some(0) && standing.keep_alive == Some(keep_alive) {
            return None;
        }
        Some(Target {
            instances: Setting::Set(0.0),
            keep_alive: Setting::Set(keep_alive),
            why: format!("keep-alive of {keep_alive}, because {why}"),
            ..Target::keep(view.function)
        })
    }

    fn target(&mut self, view: &FunctionView, seen: &Observation) -> Option<Target> {
        let mut shared = Shared {
            settings: &self.settings,
            prior: &self.prior,
            programme: &mut self.programme,
            now: seen.now,
            window: seen.window,
            factor: self.shadow.factor(),
        };
        let function = self.functions.state(view.function);
        function.follow(view, &shared);
        if !function.arrivals_known {
            return self.fall_back(view, "the platform does not report when calls arrive");
        }
        if seen.now < self.falls_back_until {
            return self.fall_back(view, "time has jumped");
        }
        let want = function.want(view, &mut shared);
        let standing = *self.standing.state(view.function);
        let have = (view.ready + view.starting).get();
        let instances = want.instances as u32;
        let worth = (self.shadow.is_tight() && have > 0)
            .then(|| worth(function, have as usize - 1, view, &mut shared));
        // Idle instances stay until the next tick, which decides again.
        let keep_alive = seen.window;
        let is_new =
            standing.keep_alive != Some(keep_alive) || standing.instances != Some(instances);
        let lacks = have < instances;
        if !is_new && !lacks && worth.is_none() {
            return None;
        }
        let why = if is_new || lacks {
            let level = want.instances.max(have as usize).saturating_sub(1);
            let reasons = function.reasons(level, view, &mut shared);
            describe(want, have, reasons, function.is_known())
        } else {
            String::new()
        };
        Some(Target {
            instances: Setting::Set(f64::from(instances)),
            keep_alive: Setting::Set(keep_alive),
            worth: worth.map_or(Setting::Keep, Setting::Set),
            why,
            ..Target::keep(view.function)
        })
    }
}

/// Worth per MiB of the idle instance of `level`: the weighted waits it avoids per second.
fn worth(
    function: &ScaledFunction,
    level: usize,
    view: &FunctionView,
    shared: &mut Shared<'_>,
) -> f64 {
    let reasons = function.reasons(level, view, shared);
    let spared = reasons.map_or(0.0, |reasons| {
        reasons.hazard * f64::from(reasons.costs.miss - reasons.costs.start)
    });
    (spared / view.idle_size().memory.mib().max(1.0)).clamp(0.0, 1e6)
}

/// Describes the decision for the journal: gap, hazard, price and savings. The gap is left out if calls need
/// the instance right now.
fn describe(want: Want, have: u32, reasons: Option<Reasons>, is_known: bool) -> String {
    if !is_known {
        return "never called".to_owned();
    }
    let Want { instances, needed, headroom } = want;
    let action = match instances.cmp(&(have as usize)) {
        std::cmp::Ordering::Less => "release",
        std::cmp::Ordering::Equal => "hold",
        std::cmp::Ordering::Greater if instances <= needed => "start for calls that are there",
        std::cmp::Ordering::Greater => "start ahead",
    };
    let mut text = format!("{action}: {needed} needed, {have} there");
    if headroom > 0 {
        text += &format!(", {headroom} for what arrivals find above the mean");
    }
    let in_gap = reasons.filter(|reasons| reasons.level >= needed);
    if let Some(Reasons { level, age, usual_gap, hazard, costs }) = in_gap {
        let gap =
            usual_gap.map_or("no gap seen yet".to_owned(), |gap| format!("usual gap {gap:.1} s"));
        let spared = hazard * f64::from(costs.miss - costs.start) - f64::from(costs.hold);
        text += &format!(
            "; level {level} {age:.1} s into its gap, {gap}, hazard {hazard:.4}/s, holding costs {:.5}/s, \
             a miss {:.2}, a start {:.3}; one more second saves {spared:.5} weighted waits",
            costs.hold, costs.miss, costs.start
        );
    }
    text
}

impl Policy for WindfallScaling {
    fn name(&self) -> &str {
        "windfall-scaling"
    }

    fn needs(&self) -> Needs {
        Needs { presence: true }
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        if seen.window.is_zero() {
            return Err(PolicyError {
                policy: self.name().to_owned(),
                problem: "the observation has a window of 0 s; it must be longer".to_owned(),
            });
        }
        self.detect_jump(seen);
        self.shadow.follow(seen);
        let mut targets = Vec::new();
        for view in &seen.functions {
            targets.extend(self.target(view, seen));
        }
        let reason = format!(
            "price {:e} per MiB-second, times {:.2} for the pool",
            self.settings.price,
            self.shadow.factor()
        );
        Ok(Decision { targets, reason })
    }

    /// Records the targets that the platform accepted. A target that a safeguard removed, the platform refused or that failed
    /// later is proposed again.
    fn feedback(&mut self, tick: &TickRecord) {
        for settled in tick.observation.settled.iter().filter(|one| one.has_failed()) {
            let standing = self.standing.state(settled.function);
            if standing.plan == settled.plan {
                *standing = Standing::default();
            }
        }
        for target in tick.accepted() {
            let standing = self.standing.state(target.function);
            standing.plan = tick.plan.id();
            if let Setting::Set(count) = target.instances {
                standing.instances = Some(count.get());
            }
            if let Setting::Set(keep_alive) = target.keep_alive {
                standing.keep_alive = Some(keep_alive);
            }
        }
    }
}

#[cfg(test)]
mod tests;
