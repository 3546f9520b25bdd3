//! The worlds in which load is raised: the same calls on machines that shrink.
//!
//! The number of nodes stays, their cores shrink: 75 reserved cores are a load of 1 on four nodes of 18.75 cores and a
//! load of 1.5 on four nodes of 12.5. Where a node would become smaller than the largest reservation, there are fewer.

use std::path::Path;

use windfall_core::statistics::Interval;
use windfall_core::{Allocation, Duration};
use windfall_scenario::cluster::Reserved;
use windfall_scenario::settings::Scenario;
use windfall_sim::{Cluster, CpuModel, Placement};
use windfall_trace::{AzureLikeSettings, Caps, Fold, ReadOptions, Source};

/// MiB for each core of a node where memory is not scarce, and where it is.
const USUAL_MIB_PER_CORE: f64 = 4096.0;
const SCARCE_MIB_PER_CORE: f64 = 100.0;
/// Nodes of a cluster, unless they would be too small.
const NODES: u32 = 4;
/// The large world: so many stretches of the trace at once, on twice the nodes, so that a node has twice the cores beside
/// the same reservations.
const LARGE_STRETCHES: u32 = 4;
const LARGE_NODES: u32 = 8;

/// A world by its name.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityWorld {
    /// What tables call it.
    pub name: String,
    /// Which calls come, and how the platform behaves.
    pub scenario: Scenario,
    /// Nodes, unless they would be too small.
    pub nodes: u32,
    /// MiB for each core of a node.
    pub mib_per_core: f64,
    /// How many of the largest functions are left out.
    pub without_largest: usize,
}

/// Names of the worlds, and one line for lists.
pub const NAMES: [(&str, &str); 12] = [
    ("generated", "Generated functions: needs no data"),
    ("trace", "Azure's 500 functions, held-out half, thinned where one would decide"),
    ("trace-large", "The same with four stretches of time at once, on eight nodes"),
    ("trace-uncapped", "Azure's 500 functions, held-out half, as they are"),
    ("trace-awake", "`trace` without functions that sleep"),
    ("trace-tail", "`trace` without its three largest functions"),
    ("trace-memory", "`trace` on nodes with 100 MiB for each core"),
    ("others", "Azure's other 1,000 functions"),
    ("huawei", "Huawei's busiest functions, held-out half"),
    ("generated-memory", "Generated functions on nodes with 100 MiB for each core"),
    ("trace-train", "The other half of the 500 functions, earlier hours: for tuning"),
    ("huawei-train", "Huawei's other functions, ten days earlier: for tuning"),
];

impl CapacityWorld {
    /// Calls of `scenario` on machines of the usual kind, whose CPU is the kernel's.
    pub fn new(name: &str, scenario: Scenario) -> Self {
        let mut scenario = Scenario { name: name.to_owned(), ..scenario };
        // Weights and over-commit need calls spread over nodes, and warm instances are worth more than balance.
        scenario.platform.placement = Placement::WarmFirst;
        // What a scenario says of the kernel stays; whoever wants the fluid model says so afterwards.
        if scenario.cpu.is_fluid() {
            scenario.cpu = CpuModel::kernel();
        }
        Self {
            name: name.to_owned(),
            scenario,
            nodes: NODES,
            mib_per_core: USUAL_MIB_PER_CORE,
            without_largest: 0,
        }
    }

    /// The world of this name over `minutes` minutes of its calls; traces lie below `data`.
    pub fn named(name: &str, data: &Path, minutes: u32) -> Option<Self> {
        let world = match name {
            "generated" | "generated-memory" => Self::new(name, generated(minutes)),
            "others" => Self::new(name, others(data, minutes)),
            "huawei" => Self::new(name, huawei(data, minutes, Fold::Test, 20)),
            "huawei-train" => Self::new(name, huawei(data, minutes, Fold::Train, 10)),
            _ => Self::new(name, trace(name, data, minutes)?),
        };
        let is_scarce = name.ends_with("-memory");
        let mib_per_core = if is_scarce { SCARCE_MIB_PER_CORE } else { world.mib_per_core };
        let without_largest = if name == "trace-tail" { 3 } else { 0 };
        let nodes = if name == "trace-large" { LARGE_NODES } else { world.nodes };
        Some(Self { mib_per_core, without_largest, nodes, ..world })
    }

    /// Shares CPU at constant rates instead, as published simulations do.
    pub fn use_fluid_cpu(&mut self) {
        self.scenario.cpu = CpuModel::Fluid;
    }

    /// Whether memory may bind.
    pub fn memory_is_scarce(&self) -> bool {
        self.mib_per_core < USUAL_MIB_PER_CORE
    }

    /// The machines on which `reserved` is a load of `load`.
    pub fn cluster(&self, reserved: &Reserved, load: f64) -> Cluster {
        let nanos = reserved.span.as_nanos().max(1) as f64;
        let millis = reserved.cpu / nanos / load.max(1e-9);
        let largest = f64::from(reserved.largest.cpu.get()).max(1.0);
        let nodes = (millis / largest).floor().clamp(1.0, f64::from(self.nodes.max(1)));
        let cpu = (millis / nodes).max(largest).ceil();
        let memory = (cpu * 1e-3 * self.mib_per_core).ceil();
        let memory = memory.max(1.5 * f64::from(reserved.largest.memory.get()));
        Cluster {
            nodes: nodes as u32,
            node: Allocation::new(cpu as u32, memory as u32),
            over_commit_cpu: 1.0,
            over_commit_memory: 1.0,
        }
    }
}

/// A sixth of the minutes, at least five, is for learning only.
fn warm_up(minutes: u32) -> Duration {
    Duration::from_mins(u64::from((minutes / 6).max(5)))
}

fn generated(minutes: u32) -> Scenario {
    Scenario {
        trace: Source::AzureLike(AzureLikeSettings {
            functions: 200,
            duration: Duration::from_mins(u64::from(minutes)),
            start_hour: 16.0,
            ..AzureLikeSettings::default()
        }),
        warm_up: warm_up(minutes),
        ..Scenario::default()
    }
}

fn read(data: &Path, folder: &str, options: ReadOptions, minutes: u32) -> Scenario {
    Scenario {
        trace: Source::File { path: data.join(folder), options },
        warm_up: warm_up(minutes),
        ..Scenario::default()
    }
}

fn capped(fold: Option<Fold>, window: (u32, u32)) -> ReadOptions {
    ReadOptions {
        caps: Some(Caps::default()),
        window_minutes: Some(window),
        fold,
        ..ReadOptions::default()
    }
}

fn trace(name: &str, data: &Path, minutes: u32) -> Option<Scenario> {
    let test = capped(Some(Fold::Test), (240, 240 + minutes));
    let options = match name {
        "trace" | "trace-memory" | "trace-tail" => test,
        "trace-large" => large(minutes),
        "trace-uncapped" => ReadOptions { caps: None, ..test },
        "trace-awake" => ReadOptions { without_sleepers: true, ..test },
        "trace-train" => capped(Some(Fold::Train), (60, 60 + minutes)),
        _ => return None,
    };
    Some(read(data, "azure2019-joint-500fn-8h", options, minutes))
}

/// Four stretches at once. A function may keep as many times the calls busy, so that it is thinned as in one stretch.
fn large(minutes: u32) -> ReadOptions {
    let (usual, times) = (Caps::default(), f64::from(LARGE_STRETCHES));
    let caps = Caps {
        busy: usual.busy * times,
        busy_in_a_minute: usual.busy_in_a_minute * times,
        ..usual
    };
    ReadOptions {
        caps: Some(caps),
        overlay_minutes: Some(minutes),
        ..capped(Some(Fold::Test), (240, 240 + LARGE_STRETCHES * minutes))
    }
}

/// The last minutes of the hour. Half of these functions are called a few times an hour: with five minutes to warm up,
/// first starts alone made 0.94 to 1.03 % of the calls of one class slow at every load, of 1 % that are allowed.
fn others(data: &Path, minutes: u32) -> Scenario {
    const END: u32 = 60;
    const EARLIER: u32 = 15;
    let from = END.saturating_sub(minutes + EARLIER);
    let earlier = END.saturating_sub(minutes) - from;
    let options = capped(None, (from, END.min(from + minutes + EARLIER)));
    let scenario = read(data, "azure2019-joint-1000fn-60min", options, minutes);
    let warm_up = scenario.warm_up + Duration::from_mins(u64::from(earlier));
    Scenario { warm_up, ..scenario }
}

fn huawei(data: &Path, minutes: u32, fold: Fold, day: u32) -> Scenario {
    const DAY_MINUTES: u32 = 1440;
    let from = day * DAY_MINUTES + 600;
    let options = ReadOptions {
        calls_at_once: Some(Interval { low: 0.1, high: 2.0 }),
        fold: Some(fold),
        fold_by: windfall_trace::FoldBy::Application,
        window_minutes: Some((from, from + minutes)),
        ..ReadOptions::default()
    };
    read(data, "huawei2025-requests-5min/datacentre_1.csv.gz", options, minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserved(cores: f64) -> Reserved {
        let span = Duration::from_secs(100);
        Reserved {
            calls: 1,
            cpu: cores * 1e3 * span.as_nanos() as f64,
            memory: 0.0,
            largest: Allocation::new(8000, 2000),
            span,
        }
    }

    #[test]
    fn nodes_shrink_and_become_fewer_only_where_a_reservation_would_not_fit() {
        let world = CapacityWorld::new("any", Scenario::default());
        let at = |load: f64| {
            let Cluster { nodes, node, .. } = world.cluster(&reserved(75.0), load);
            (nodes, node.cpu.get())
        };
        assert_eq!([at(1.0), at(1.5)], [(4, 18_750), (4, 12_500)]);
        assert_eq!([at(3.0), at(8.0)], [(3, 8334), (1, 9375)]);
    }

    #[test]
    fn every_world_has_a_scenario() {
        for (name, _) in NAMES {
            let world = CapacityWorld::named(name, Path::new("data"), 30).expect(name);
            assert_eq!(world.memory_is_scarce(), name.ends_with("-memory"));
            assert!(world.scenario.check().is_ok(), "{name}");
        }
        assert_eq!(CapacityWorld::named("nowhere", Path::new("data"), 30), None);
    }
}
