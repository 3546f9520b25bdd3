//! The table of policies by name, in the order in which reports list them. Adding a policy is one entry here.

mod admission;
mod incumbents;

use windfall_control::call_safeguards::{
    Faasrm, Floor, Preference, ReservedMemory, SlackBudget, SlackSettings, SurgeSettings,
};
use windfall_control::safeguards::{
    Capacity, FlapBudget, Limits, RateOfChange, StaleObservation, StartsPerTick,
};
use windfall_control::{AdmissionSettings, CallLoop};
use windfall_core::peak_range::PeakSettings;
use windfall_core::{
    AdmitBy, CallPolicy, CallSafeguard, CallSafeguardChain, Duration, Needs, Policy,
    SafeguardChain, Seed,
};
use windfall_policy::{
    Autothrottle, Ensure, EnsureScaling, Fixed, Greedy, Histogram, HybridHistogram, KeepAlive,
    Libra, Oracle, Queueing, SafeguardRandom, Shabari, SlackParameters, WindfallScaling,
    WindfallSizing, WindfallSizingSettings,
};

use crate::checkpoint_policy::trained_faasrm;

pub use incumbents::read_manifest;

/// Settings of one policy as written in a scenario, or `None` for its defaults.
pub type PolicyTable = Option<toml::Table>;

/// A policy with its safeguards, ready to run.
pub struct Assembled {
    /// The policy that decides per call.
    pub call: Box<dyn CallPolicy>,
    /// Safeguards that review its decisions, in this order.
    pub call_safeguards: Vec<Box<dyn CallSafeguard>>,
    /// The policy that decides per tick, if there is one.
    pub tick: Option<Box<dyn Policy>>,
    /// Safeguards that review the decisions per tick.
    pub tick_safeguards: SafeguardChain,
    /// Whether it needs to know the future: for reports only.
    pub foresight: bool,
    /// How nodes take calls; by what is granted, if nothing is said.
    pub admission: Option<Admission>,
    /// How often calls are looked at on nodes that are short of CPU; as each asks for itself, if nothing is said.
    pub looks_while_short: Option<Duration>,
    /// Whether CPU is guaranteed by weight, so that a call may use more than its guarantee.
    pub by_weight: bool,
    /// Whether the tick policy only resizes instances. It is not used with per-call sizing, where every call
    /// brings its own size.
    pub ticks_resize_only: bool,
}

impl Assembled {
    /// Combines the call policy of `self` with the tick policy of `other`, each behind its own safeguards.
    #[must_use]
    pub fn with_ticks_of(self, other: Self) -> Self {
        Self {
            tick: other.tick,
            tick_safeguards: other.tick_safeguards,
            ticks_resize_only: other.ticks_resize_only,
            foresight: self.foresight || other.foresight,
            ..self
        }
    }

    /// What the observations of its ticks must contain.
    pub fn needs(&self) -> Needs {
        self.tick.as_ref().map_or_else(Needs::default, |tick| tick.needs())
    }

    /// Who decides whether a node can take a call.
    pub fn admit_by(&self) -> AdmitBy {
        match self.admission {
            None => AdmitBy::Grants,
            Some(Admission::ExpectedUse(_)) => AdmitBy::Control,
            Some(Admission::FuturePeak) => AdmitBy::FuturePeak,
        }
    }

    /// The loop that sizes calls with this policy behind its safeguards.
    pub fn call_loop(self) -> CallLoop {
        let control = CallLoop::new(self.call, CallSafeguardChain::new(self.call_safeguards));
        let control = match self.looks_while_short {
            Some(every) => control.looking_while_short(every),
            None => control,
        };
        match self.admission {
            None => control,
            Some(Admission::ExpectedUse(settings)) => control.with_admission(settings),
            Some(Admission::FuturePeak) => control.admitted_by_future_peak(),
        }
    }
}

/// How nodes take calls where that is not a matter of what is granted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Admission {
    /// By what running calls are expected to use.
    ExpectedUse(AdmissionSettings),
    /// By what they will use, which only a simulator knows: for reports.
    FuturePeak,
}

/// One name in the registry.
pub struct PolicyEntry {
    /// Name on the command line and in scenarios.
    pub name: &'static str,
    /// One-line summary for lists.
    pub summary: &'static str,
    /// Whether it receives the demand of each call in advance; for reports only.
    pub foresight: bool,
    /// Whether it is included if a scenario lists no policies.
    pub by_default: bool,
    /// Whether it chooses a size for each call, which requires a platform with per-call sizing.
    pub sizes_calls: bool,
    build: fn(&Parts<'_>) -> Result<Assembled, toml::de::Error>,
}

/// Inputs from which a policy is built.
struct Parts<'a> {
    table: &'a PolicyTable,
    seed: Seed,
}

impl Parts<'_> {
    /// The policy's settings: the defaults, overridden by the scenario.
    fn settings<S: serde::de::DeserializeOwned + Default>(&self) -> Result<S, toml::de::Error> {
        self.table.clone().map_or_else(|| Ok(S::default()), |table| table.try_into())
    }

    /// Rejects settings for a policy that has none.
    fn no_settings(&self) -> Result<(), toml::de::Error> {
        self.settings::<NoSettings>().map(|_| ())
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct NoSettings {}

/// Builds a policy that only sizes calls.
pub(crate) fn sizes_calls(call: impl CallPolicy + 'static) -> Assembled {
    Assembled {
        call: Box::new(call),
        call_safeguards: Vec::new(),
        tick: None,
        tick_safeguards: SafeguardChain::default(),
        foresight: false,
        admission: None,
        looks_while_short: None,
        by_weight: false,
        ticks_resize_only: false,
    }
}

/// Builds a policy that also decides at ticks, behind all tick safeguards.
fn also_ticks(call: impl CallPolicy + 'static, tick: impl Policy + 'static) -> Assembled {
    Assembled {
        tick: Some(Box::new(tick)),
        tick_safeguards: SafeguardChain::new(vec![
            Box::new(StaleObservation::default()),
            Box::new(Limits::default()),
            Box::new(RateOfChange::default()),
            Box::new(FlapBudget::default()),
            Box::new(Capacity::default()),
        ]),
        ..sizes_calls(call)
    }
}

/// Builds a policy that starts and stops single instances by the gaps between calls. Pre-warming a timer of a
/// minute changes direction 120 times an hour by design, so the flap budget is wide, and wider for functions with many
/// calls. The number of starts per tick is bounded over all functions.
fn scales_instances(call: impl CallPolicy + 'static, tick: impl Policy + 'static) -> Assembled {
    Assembled {
        tick: Some(Box::new(tick)),
        tick_safeguards: SafeguardChain::new(vec![
            Box::new(StaleObservation::default()),
            Box::new(Limits::default()),
            Box::new(StartsPerTick::default()),
            Box::new(FlapBudget::new(240).or_per_call(0.05)),
            Box::new(Capacity::default()),
        ]),
        ..sizes_calls(call)
    }
}

/// Windfall's own sizing behind its slack budget.
pub(crate) fn windfall(settings: WindfallSizingSettings) -> Assembled {
    Assembled {
        call_safeguards: vec![Box::new(SlackBudget::new(slack_settings(&settings)))],
        ..sizes_calls(WindfallSizing::new(settings))
    }
}

/// Settings of the slack budget from those of the policy.
fn slack_settings(settings: &WindfallSizingSettings) -> SlackSettings {
    let SlackParameters { beta, beta_queued, beta_long, long_share, soonest_look_millis, .. } =
        settings.slack;
    let millis = |millis: f64| Duration::from_secs_f64(millis.max(1.0) * 1e-3);
    let usual = SurgeSettings::default();
    let widen = if settings.slack.calibrates { usual.widen } else { 0.0 };
    SlackSettings {
        beta,
        beta_queued,
        beta_long,
        long_share,
        max_look: millis(settings.longest_look_millis.max(settings.first_look_millis)),
        soonest_look: millis(soonest_look_millis),
        expects_shortest_run: settings.slack.expects_shortest_run,
        preference: match settings.slack.expects_surges {
            true => Preference::Surges,
            false => Preference::Seen,
        },
        surges: SurgeSettings { widen, ..usual },
        restores_in_stages: true,
        reserve: settings.slack.reserve,
        reserve_seconds: settings.slack.reserve_seconds,
        ..SlackSettings::default()
    }
}

/// All policies.
pub const REGISTRY: &[PolicyEntry] = &[
    PolicyEntry {
        name: "fixed",
        summary: "always the size that the user reserves",
        foresight: false,
        by_default: true,
        sizes_calls: false,
        build: |parts| parts.no_settings().map(|()| sizes_calls(Fixed)),
    },
    PolicyEntry {
        name: "windfall",
        summary: "calibrated first sizes, live trimming within a slack budget, loans",
        foresight: false,
        by_default: true,
        sizes_calls: true,
        build: |parts| Ok(windfall(parts.settings()?)),
    },
    PolicyEntry {
        name: "safeguard-random",
        summary: "a random size within FaaSRM's safeguard: a baseline for learned policies",
        foresight: false,
        by_default: true,
        sizes_calls: true,
        build: |parts| {
            parts.no_settings()?;
            let settings = PeakSettings::default();
            Ok(Assembled {
                call_safeguards: vec![Box::new(Faasrm::new(settings))],
                ..sizes_calls(SafeguardRandom::new(settings, parts.seed))
            })
        },
    },
    PolicyEntry {
        name: "histogram",
        summary: "p99 of the function's peaks plus a margin, per resource",
        foresight: false,
        by_default: true,
        sizes_calls: true,
        build: |parts| Ok(sizes_calls(Histogram::new(parts.settings()?))),
    },
    PolicyEntry {
        name: "autothrottle",
        summary: "a quota per function by a target share of throttled periods",
        foresight: false,
        by_default: false,
        sizes_calls: true,
        build: |parts| Ok(sizes_calls(Autothrottle::new(parts.settings()?))),
    },
    PolicyEntry {
        name: "oracle",
        summary: "knows each call's demand and sets its size once; for reports only",
        foresight: true,
        by_default: true,
        sizes_calls: true,
        build: |parts| parts.no_settings().map(|()| sizes_calls(Oracle)),
    },
    PolicyEntry {
        name: "greedy",
        summary: "one step down when the last call used little, one step up when it used much",
        foresight: false,
        by_default: true,
        sizes_calls: true,
        build: |parts| Ok(sizes_calls(Greedy::new(parts.settings()?))),
    },
    PolicyEntry {
        name: "ensure",
        summary: "raises CPU of slow functions, lowers it when CPU is scarce; square-root staffing",
        foresight: false,
        by_default: true,
        sizes_calls: true,
        build: |parts| Ok(also_ticks(Ensure::new(parts.settings()?), EnsureScaling::default())),
    },
    PolicyEntry {
        name: "libra",
        summary: "harvest pool with predicted expiry and live reclaim",
        foresight: false,
        by_default: true,
        sizes_calls: true,
        build: |parts| Ok(sizes_calls(Libra::new(parts.settings()?))),
    },
    PolicyEntry {
        name: "shabari",
        summary: "size class with the lowest expected cost for the input, learned online",
        foresight: false,
        by_default: true,
        sizes_calls: true,
        build: |parts| Ok(sizes_calls(Shabari::new(parts.settings()?))),
    },
    PolicyEntry {
        name: "faasrm",
        summary: "FaaSRM's score network behind its safeguard, as trained here",
        foresight: false,
        by_default: false,
        sizes_calls: true,
        build: |parts| {
            parts.no_settings()?;
            trained_faasrm().map_err(serde::de::Error::custom)
        },
    },
    PolicyEntry {
        name: "queueing",
        summary: "square-root staffing of warm instances with a cold-start lead; fixed sizes",
        foresight: false,
        by_default: true,
        sizes_calls: false,
        build: |parts| Ok(also_ticks(Fixed, Queueing::new(parts.settings()?))),
    },
    PolicyEntry {
        name: "keep-alive",
        summary: "keeps idle instances for a fixed time; fixed sizes",
        foresight: false,
        by_default: false,
        sizes_calls: false,
        build: |parts| Ok(also_ticks(Fixed, KeepAlive::new(parts.settings()?))),
    },
    PolicyEntry {
        name: "hybrid-histogram",
        summary: "unloads after a call and loads before the next, by its idle times; fixed sizes",
        foresight: false,
        by_default: false,
        sizes_calls: false,
        build: |parts| Ok(scales_instances(Fixed, HybridHistogram::new(parts.settings()?))),
    },
    PolicyEntry {
        name: "windfall-scaling",
        summary: "holds, releases or starts ahead by hazard and price of memory; fixed sizes",
        foresight: false,
        by_default: false,
        sizes_calls: false,
        build: |parts| Ok(scales_instances(Fixed, WindfallScaling::new(parts.settings()?))),
    },
    incumbents::KPA,
    incumbents::HPA,
    incumbents::VPA,
    incumbents::AUTOPILOT,
    admission::WEIGHTS,
    admission::WEIGHTS_HISTOGRAM,
    admission::RC_LIKE,
    admission::N_SIGMA,
    admission::MAX_PREDICTOR,
    admission::WINDFALL_ADMISSION,
    admission::PEAK_ORACLE,
];

/// Safeguards that a scenario can add to every policy, with a one-line summary for lists.
pub const CALL_SAFEGUARDS: &[(&str, &str)] = &[
    ("faasrm", "recent peak plus a level; the user's size first and after a spike"),
    ("floor", "never less than a share of the reservation"),
    ("slack-budget", "a running call loses at most a small share of the time it has run"),
    ("reserved-memory", "never less memory than the user reserves"),
];

/// Builds a new safeguard by name.
pub fn call_safeguard(name: &str) -> Option<Box<dyn CallSafeguard>> {
    match name {
        "faasrm" => Some(Box::new(Faasrm::new(PeakSettings::default()))),
        "floor" => Some(Box::new(Floor::default())),
        "slack-budget" => Some(Box::new(SlackBudget::default())),
        "reserved-memory" => Some(Box::new(ReservedMemory)),
        _ => None,
    }
}

/// Looks up an entry by name.
pub fn entry(name: &str) -> Option<&'static PolicyEntry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}

/// Splits `CALLS+TICKS` into two entries: the first sizes calls, the second decides at ticks. Returns `None` unless
/// both exist and the second has a tick policy.
pub fn pair(name: &str) -> Option<(&'static PolicyEntry, &'static PolicyEntry)> {
    let (calls, ticks) = name.split_once('+')?;
    let (calls, ticks) = (entry(calls)?, entry(ticks)?);
    let has_ticks = ticks.assemble(&None, Seed::new(0)).is_ok_and(|built| built.tick.is_some());
    has_ticks.then_some((calls, ticks))
}

/// Whether `name` is a policy or a pair of policies.
pub fn is_known(name: &str) -> bool {
    entry(name).is_some() || pair(name).is_some()
}

/// Names of all policies, separated by commas, for messages.
pub fn names() -> String {
    REGISTRY.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

impl PolicyEntry {
    /// Builds a new policy with these settings.
    pub fn assemble(&self, table: &PolicyTable, seed: Seed) -> Result<Assembled, toml::de::Error> {
        let built = (self.build)(&Parts { table, seed })?;
        Ok(Assembled { foresight: self.foresight, ..built })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::conformance::{self, call_policy_suite, policy_suite};
    use windfall_core::{CallDemand, CallView, Duration, Foresight, Mebibytes, MilliCpu};

    #[test]
    fn every_name_is_unique_and_builds_with_its_defaults() {
        for (place, entry) in REGISTRY.iter().enumerate() {
            assert!(REGISTRY[..place].iter().all(|other| other.name != entry.name));
            assert!(entry.assemble(&None, Seed::new(1)).is_ok(), "{}", entry.name);
        }
    }

    #[test]
    fn a_pair_has_the_calls_of_one_and_the_ticks_of_the_other() {
        let (calls, ticks) = pair("histogram+windfall-scaling").expect("both are registered");
        assert_eq!((calls.name, ticks.name), ("histogram", "windfall-scaling"));
        let built = |entry: &PolicyEntry| entry.assemble(&None, Seed::new(1)).expect("defaults");
        let both = built(calls).with_ticks_of(built(ticks));
        assert_eq!(both.call.name(), "histogram");
        assert!(both.needs().presence);
        assert_eq!(both.tick.expect("it ticks").name(), "windfall-scaling");
        assert!(pair("histogram+fixed").is_none(), "fixed has no ticks");
        assert!(!is_known("histogram+nobody") && is_known("fixed"));
    }

    #[test]
    fn every_policy_without_foresight_conforms() {
        for entry in REGISTRY.iter().filter(|entry| !entry.foresight) {
            call_policy_suite(&|| entry.assemble(&None, Seed::new(1)).expect("defaults").call);
        }
    }

    #[test]
    fn every_policy_that_ticks_conforms() {
        let tick =
            |entry: &PolicyEntry| entry.assemble(&None, Seed::new(1)).expect("defaults").tick;
        let ticking: Vec<_> = REGISTRY.iter().filter(|entry| tick(entry).is_some()).collect();
        assert!(ticking.len() >= 9, "{} policies tick", ticking.len());
        for entry in ticking {
            policy_suite(&|| tick(entry).expect("it ticks"));
        }
    }

    #[test]
    fn every_listed_safeguard_can_be_built() {
        for (name, _) in CALL_SAFEGUARDS {
            assert_eq!(call_safeguard(name).expect("listed").name(), *name);
        }
    }

    #[test]
    fn only_policies_that_declare_foresight_use_it() {
        let demand = CallDemand {
            work: 1,
            fixed: Duration::ZERO,
            parallelism: MilliCpu::new(1),
            memory_base: Mebibytes::new(1),
            memory_peak: Mebibytes::new(1),
            rise: Duration::ZERO,
            jumps: false,
            cycles: 1,
            shape: 0,
            input: None,
        };
        for entry in REGISTRY.iter().filter(|entry| !entry.foresight) {
            let fresh = || entry.assemble(&None, Seed::new(1)).expect("defaults").call;
            let (mut informed, mut uninformed) = (fresh(), fresh());
            for call in conformance::calls() {
                let future = CallView { foresight: Some(Foresight { demand }), ..call.clone() };
                let (with, without) = (informed.size(&future).ok(), uninformed.size(&call).ok());
                assert_eq!(with, without, "{} uses foresight", entry.name);
            }
        }
    }

    #[test]
    fn an_unknown_setting_is_named_in_the_error() {
        let table: toml::Table = "quantil = 0.9".parse().expect("a table");
        let histogram = entry("histogram").expect("registered");
        let problem = histogram.assemble(&Some(table), Seed::new(1)).err().expect("refused");
        assert!(problem.to_string().contains("quantil"), "{problem}");
    }
}
