//! The worlds in which scaling policies are compared: calls that need time and nothing else, one node that
//! takes everything, half of the functions held out, and the first hours for learning only.

use std::path::Path;

use windfall_core::Duration;
use windfall_trace::{AzureLikeSettings, Caps, Needs, Part, ReadOptions, Source};

use crate::settings::Scenario;

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
    /// The other half of those functions on day 5.
    DenseTrain,
    /// Generated functions, for machines without the traces.
    Generated,
}

/// Limits that keep one function from deciding a whole run.
const CAPS: Caps = Caps { busy: 4.0, busy_in_a_minute: 8.0, calls_per_second: Some(5.0) };
/// Busy functions are the point of the dense world.
const DENSE_CAPS: Caps = Caps { busy: 18.0, busy_in_a_minute: 64.0, calls_per_second: None };
const DAY_MINUTES: u32 = 1440;

impl World {
    /// The scenario of this world; traces lie below `data`.
    pub fn scenario(self, data: &Path) -> Scenario {
        let read = |folder: &str, options: ReadOptions, warm_up: u64, name: &str| Scenario {
            name: name.to_owned(),
            trace: Source::File { path: data.join(folder), options },
            warm_up: Duration::from_mins(warm_up),
            seeds: vec![1, 2, 3, 4, 5],
            ..Scenario::default()
        };
        let times = ReadOptions { needs: Needs::TimesOnly, ..ReadOptions::default() };
        let sparse = ReadOptions { caps: Some(CAPS), part: Some(Part::Test), ..times };
        let hours = |day: u32, part: Part| ReadOptions {
            caps: Some(DENSE_CAPS),
            part: Some(part),
            huawei_scale: 0.05,
            window_minutes: Some((day * DAY_MINUTES + 600, day * DAY_MINUTES + 750)),
            ..times
        };
        let (azure, huawei) = ("azure2019-joint-500fn-8h", "huawei2025-requests-5min");
        let region = format!("{huawei}/datacentre_1.csv.gz");
        match self {
            Self::Sparse => read(azure, sparse, 240, "sparse"),
            Self::SparseTrain => {
                let window_minutes = Some((0, 240));
                let train = ReadOptions { part: Some(Part::Train), window_minutes, ..sparse };
                Scenario {
                    seeds: vec![101, 102, 103],
                    ..read(azure, train, 60, "sparse, functions to fit on")
                }
            }
            Self::Confirm => {
                let all = ReadOptions { part: None, ..sparse };
                read("azure2019-joint-1000fn-60min", all, 20, "sparse, 1,000 other functions")
            }
            Self::Dense => read(&region, hours(20, Part::Test), 30, "dense"),
            Self::DenseTrain => Scenario {
                seeds: vec![101, 102, 103],
                ..read(&region, hours(5, Part::Train), 30, "dense, functions to fit on")
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
