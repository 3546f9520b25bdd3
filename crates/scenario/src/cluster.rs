//! A cluster sized from the load it is to carry.

use windfall_core::{Allocation, Duration};
use windfall_sim::Cluster;

/// What users reserve over a whole workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reserved {
    /// Calls.
    pub calls: u64,
    /// Millicore-nanoseconds.
    pub cpu: f64,
    /// MiB-nanoseconds.
    pub memory: f64,
    /// The largest single reservation, in each resource.
    pub largest: Allocation,
    /// How long the workload lasts.
    pub span: Duration,
}

/// A cluster of nodes about like `shape` on which `reserved` makes a load of `load`: what users reserve
/// per second, of the scarcer resource, over what there is.
///
/// Whole nodes come first, then all of them shrink together to meet the load exactly: a workload that
/// reserves 40 cores on average at load 0.8 needs 50; with nodes of 16 that is 4 nodes of 12.5 cores. No
/// node becomes smaller than the largest reservation, so a tiny workload may run at a lower load.
pub fn size_cluster(reserved: &Reserved, load: f64, shape: Allocation) -> Cluster {
    let nanos = reserved.span.as_nanos().max(1) as f64;
    let cores = reserved.cpu / nanos / load / f64::from(shape.cpu.get().max(1));
    let memory = reserved.memory / nanos / load / f64::from(shape.memory.get().max(1));
    let exact = cores.max(memory).max(1e-9);
    // The smallest scale at which every reservation still fits one node.
    let fit = |largest: u32, shape: u32| f64::from(largest) / f64::from(shape.max(1));
    let smallest = fit(reserved.largest.cpu.get(), shape.cpu.get())
        .max(fit(reserved.largest.memory.get(), shape.memory.get()));
    let nodes = if smallest > 1.0 { exact / smallest } else { exact.ceil() };
    let nodes = nodes.floor().max(1.0).min((exact / smallest.max(1e-9)).floor().max(1.0));
    let scale = (exact / nodes).max(smallest);
    let scaled = |amount: u32| (f64::from(amount) * scale).ceil() as u32;
    Cluster {
        nodes: nodes as u32,
        node: Allocation::new(scaled(shape.cpu.get()), scaled(shape.memory.get())),
        over_commit_cpu: 1.0,
        over_commit_memory: 1.0,
    }
}

/// The load that `reserved` makes on `cluster`.
pub fn load_of(reserved: &Reserved, cluster: &Cluster) -> f64 {
    let nanos = reserved.span.as_nanos().max(1) as f64;
    let share = |amount: f64, node: u32| {
        amount / nanos / (f64::from(node.max(1)) * f64::from(cluster.nodes.max(1)))
    };
    share(reserved.cpu, cluster.node.cpu.get())
        .max(share(reserved.memory, cluster.node.memory.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reserved(cores: f64, mib: f64) -> Reserved {
        let span = Duration::from_secs(100);
        Reserved {
            calls: 1,
            cpu: cores * 1e3 * span.as_nanos() as f64,
            memory: mib * span.as_nanos() as f64,
            largest: Allocation::new(8000, 2000),
            span,
        }
    }

    #[test]
    fn whole_nodes_shrink_together_to_meet_the_load() {
        let cluster = size_cluster(&reserved(40.0, 1000.0), 0.8, Allocation::new(16_000, 64_000));
        assert_eq!((cluster.nodes, cluster.node.cpu.get()), (4, 12_500));
    }

    #[test]
    fn the_scarcer_resource_decides() {
        let cluster = size_cluster(&reserved(1.0, 64_000.0), 0.5, Allocation::new(16_000, 64_000));
        assert_eq!((cluster.nodes, cluster.node.memory.get()), (2, 64_000));
    }

    #[test]
    fn a_tiny_workload_still_gets_a_node_for_its_largest_reservation() {
        let reserved = reserved(0.1, 10.0);
        let cluster = size_cluster(&reserved, 0.8, Allocation::new(16_000, 64_000));
        assert_eq!((cluster.nodes, cluster.node.cpu.get()), (1, 8000));
        assert!(load_of(&reserved, &cluster) < 0.8);
    }

    proptest! {
        #[test]
        fn the_load_is_met_or_the_largest_reservation_stands_in_the_way(
            cores in 0.01f64..2000.0, mib in 1.0f64..1e6, load in 0.1f64..2.0,
        ) {
            let reserved = reserved(cores, mib);
            let cluster = size_cluster(&reserved, load, Allocation::new(16_000, 32_000));
            prop_assert!(reserved.largest.fits(cluster.node));
            let met = load_of(&reserved, &cluster);
            prop_assert!(met <= load + 1e-9);
            prop_assert!(met > 0.99 * load || cluster.nodes == 1, "{met} of {load}, {cluster:?}");
        }
    }
}
