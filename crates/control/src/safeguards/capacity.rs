//! The sum of all plans must fit the cluster.

use std::collections::BTreeMap;

use windfall_core::{
    Allocation, ClusterView, FunctionId, FunctionView, Instances, Observation, PlannedTarget,
    Safeguard, Setting, Verdict,
};

use super::{Review, refuse, standing};

pub(super) const NAME: &str = "capacity";

/// Keeps instances times what each holds, over all functions, within the cluster.
///
/// Where calls are sized one by one an instance is counted with the memory it keeps and without CPU, which calls bring
/// with them: 260 idle instances of a core each fit 64 cores, or nothing could ever be started ahead.
///
/// Targets are served in the order of the decision, each with what the ones before have left; functions
/// without a target count as they stand. What does not fit is first trimmed in number, down to the
/// instances that stand already; if that is not enough the old size is kept too. A target that takes no
/// more than the function has now always passes, even on a cluster that has shrunk below its load.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// How much may be promised per unit that exists; 1 promises nothing twice.
    pub overcommit: f64,
    /// What each function reviewed in this tick may take.
    promised: BTreeMap<FunctionId, Need>,
    /// What all functions together take so far, once computed in this tick.
    total: Option<Need>,
}

impl Capacity {
    /// A cluster on which `overcommit` times what exists may be promised.
    pub fn new(overcommit: f64) -> Self {
        Self { overcommit, promised: BTreeMap::new(), total: None }
    }
}

impl Default for Capacity {
    /// Nothing is promised twice.
    fn default() -> Self {
        Self::new(1.0)
    }
}

/// Millicores and MiB; sums of `u32` products need the room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Need {
    cpu: u64,
    memory: u64,
}

impl Need {
    fn of(instances: Instances, size: Allocation) -> Self {
        let count = u64::from(instances.get());
        Self {
            cpu: count * u64::from(size.cpu.get()),
            memory: count * u64::from(size.memory.get()),
        }
    }

    fn now(view: &FunctionView) -> Self {
        Self::of(standing(view), view.idle_size())
    }

    fn within(cluster: &ClusterView, overcommit: f64) -> Self {
        Self {
            cpu: (cluster.capacity_cores * 1000.0 * overcommit) as u64,
            memory: (cluster.capacity_mib * overcommit) as u64,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_add(other.cpu),
            memory: self.memory.saturating_add(other.memory),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(other.cpu),
            memory: self.memory.saturating_sub(other.memory),
        }
    }

    fn fits(self, room: Self) -> bool {
        self.cpu <= room.cpu && self.memory <= room.memory
    }

    /// How many instances of `size` fit into this room.
    fn holds(self, size: Allocation) -> u32 {
        let cpu = self.cpu / u64::from(size.cpu.get().max(1));
        let memory = self.memory / u64::from(size.memory.get().max(1));
        u32::try_from(cpu.min(memory)).unwrap_or(u32::MAX)
    }
}

impl Safeguard for Capacity {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Every tick counts anew from what stands: a change that was refused takes nothing from the next tick.
    fn begin(&mut self, _seen: &Observation) -> Vec<FunctionId> {
        self.promised.clear();
        self.total = None;
        Vec::new()
    }

    fn review(&mut self, seen: &Observation, proposed: &PlannedTarget) -> Verdict {
        let Some(view) = seen.function(proposed.function) else {
            return refuse(proposed, "the function was not measured");
        };
        let total = *self.total.get_or_insert_with(|| {
            seen.functions.iter().map(Need::now).fold(Need::default(), Need::plus)
        });
        let own = self.promised.get(&proposed.function).copied();
        let others = total.minus(own.unwrap_or_else(|| Need::now(view)));
        let room = Need::within(&seen.cluster, self.overcommit).minus(others);
        let (review, need) = fit(view, proposed, room);
        self.promised.insert(proposed.function, need);
        self.total = Some(others.plus(need));
        review.verdict()
    }
}

/// The part of `proposed` that fits into `room`, and what it takes.
fn fit(view: &FunctionView, proposed: &PlannedTarget, room: Need) -> (Review, Need) {
    let mut review = Review::of(proposed);
    let wanted = proposed.instances.value().unwrap_or(standing(view));
    let now = view.idle_size();
    let mut size = Allocation {
        cpu: proposed.cpu.value().unwrap_or(now.cpu),
        memory: proposed.memory.value().unwrap_or(now.memory),
    };
    let need = Need::of(wanted, size);
    if need.fits(room) || need.fits(Need::now(view)) {
        return (review, need);
    }
    let least = wanted.min(standing(view));
    if room.holds(size) < least.get() {
        size = now;
        let said = || format!("no room for {least} instances of another size");
        review.cpu(Setting::Keep, said);
        review.memory(Setting::Keep, said);
    }
    let allowed = Instances::new(room.holds(size)).max(least).min(wanted);
    if allowed != wanted {
        review.instances(Setting::Set(allowed), || {
            format!("{wanted} instances of {size} do not fit; {allowed} do or stand already")
        });
    }
    (review, Need::of(allowed, size))
}
