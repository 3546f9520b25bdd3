//! The worlds in which scaling policies are compared: calls that need time and nothing else, one node that
//! takes everything, half of the functions held out, and the first hours for learning only.

use std::path::Path;

use windfall_core::statistics::Interval;
use windfall_core::{Duration, Seed};
use windfall_scenario::settings::Scenario;
use windfall_trace::{
    AzureLikeSettings, Caps, Fold, FoldBy, Needs, Placement, ReadOptions, Source,
};

/// A world by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    /// Azure's 500 functions over 8 hours: held-out functions, measured on the last 4 hours.
    Sparse,
    /// The other half of those functions, their first 4 hours: what constants are fitted on.
    SparseTrain,
    /// Azure's other 1,000 functions over one hour, measured on the last 40 minutes.
    Confirm,
    /// Huawei's busiest functions of one region: held-out users, 2.5 hours of day 20.
    Dense,
    /// The busiest functions of another region on day 5: what constants are fitted on.
    DenseTrain,
    /// Generated functions, for machines without the traces.
    Generated,
}

/// Limits that keep one function from deciding a whole run.
const CAPS: Caps = Caps { busy: 4.0, busy_in_a_minute: 8.0, calls_per_second: Some(5.0) };
/// Busy functions are the point of the dense world: between so many calls of each run at once.
const DENSE_CALLS: Interval = Interval { low: 1.5, high: 18.0 };
const DAY_MINUTES: u32 = 1440;

impl World {
    /// All worlds.
    pub const ALL: [Self; 6] = [
        Self::Sparse,
        Self::SparseTrain,
        Self::Confirm,
        Self::Dense,
        Self::DenseTrain,
        Self::Generated,
    ];

    /// What users type, and one line for lists.
    pub fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Sparse => ("sparse", "Azure's 500 functions, held-out half, last four hours"),
            Self::SparseTrain => ("sparse-train", "The other half, first four hours: for fitting"),
            Self::Confirm => ("confirm", "Azure's other 1,000 functions"),
            Self::Dense => ("dense", "Huawei's busiest functions, held-out half"),
            Self::DenseTrain => ("dense-train", "Those of another region: for fitting"),
            Self::Generated => ("generated", "Generated functions"),
        }
    }

    /// The world of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|world| world.name().0 == name)
    }

    /// What bursty means here. Azure records counts per minute, and calls of a minute come in clusters. Huawei
    /// records counts of five minutes of functions that are busy all the time: there the rate wanders and
    /// spikes.
    pub fn bursts(self) -> Placement {
        match self {
            Self::Dense | Self::DenseTrain => Placement::Gusty,
            _ => Placement::Bursty,
        }
    }

    /// The world to take where none is named: held-out functions of Azure's trace, or generated ones where the
    /// trace is not below `data`.
    pub fn usual(data: &Path, needs: Needs) -> Self {
        let sparse = Self::Sparse.scenario(data, needs);
        if sparse.trace.open(Seed::new(1)).is_ok() { Self::Sparse } else { Self::Generated }
    }

    /// The scenario of this world, in which calls need so much; traces lie below `data`.
    pub fn scenario(self, data: &Path, needs: Needs) -> Scenario {
        let read = |folder: &str, options: ReadOptions, warm_up: u64, name: &str| Scenario {
            name: name.to_owned(),
            trace: Source::File { path: data.join(folder), options },
            warm_up: Duration::from_mins(warm_up),
            seeds: vec![1, 2, 3, 4, 5],
            ..Scenario::default()
        };
        let times = ReadOptions { needs, fold_by: FoldBy::Application, ..ReadOptions::default() };
        let sparse = ReadOptions { caps: Some(CAPS), fold: Some(Fold::Test), ..times };
        let hours = |day: u32, fold: Option<Fold>| ReadOptions {
            calls_at_once: Some(DENSE_CALLS),
            fold,
            window_minutes: Some((day * DAY_MINUTES + 600, day * DAY_MINUTES + 750)),
            ..times
        };
        let (azure, huawei) = ("azure2019-joint-500fn-8h", "huawei2025-requests-5min");
        let region = |number: u32| format!("{huawei}/datacentre_{number}.csv.gz");
        match self {
            Self::Sparse => read(azure, sparse, 240, "sparse"),
            Self::SparseTrain => {
                let window_minutes = Some((0, 240));
                let train = ReadOptions { fold: Some(Fold::Train), window_minutes, ..sparse };
                Scenario {
                    seeds: vec![101, 102, 103],
                    ..read(azure, train, 60, "sparse, functions to fit on")
                }
            }
            Self::Confirm => {
                let all = ReadOptions { fold: None, ..sparse };
                read("azure2019-joint-1000fn-60min", all, 20, "sparse, 1,000 other functions")
            }
            Self::Dense => read(&region(1), hours(20, Some(Fold::Test)), 30, "dense"),
            Self::DenseTrain => Scenario {
                seeds: vec![101, 102, 103],
                ..read(&region(2), hours(5, None), 30, "dense, functions to fit on")
            },
            Self::Generated => Scenario {
                name: "generated".to_owned(),
                trace: Source::AzureLike(AzureLikeSettings {
                    duration: Duration::from_mins(120),
                    ..AzureLikeSettings::default()
                }),
                warm_up: Duration::from_mins(60),
                seeds: vec![1, 2, 3],
                ..Scenario::default()
            },
        }
    }
}
