//! Which node takes a call.

use windfall_core::{Allocation, CallPlan, NodeId};

use crate::node::Node;
use crate::settings::Placement;
use crate::simulator::Simulator;

/// The stride of the home-invoker walk: the smallest number above a third of the cluster that shares no
/// factor with its size, so that the walk visits every node once and neighbours in the list do not
/// inherit each other's overflow.
pub(crate) fn stride(nodes: u32) -> u32 {
    (nodes / 3 + 1..=nodes).find(|&step| gcd(step, nodes) == 1).unwrap_or(1)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A node as a function sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) node: u32,
    /// Steps of the walk from the function's home.
    pub(crate) steps: u32,
}

/// How many steps of `stride` take a walk around `nodes` nodes one node ahead: the inverse of the stride.
///
/// Around 10 nodes with a stride of 7, three steps do: 7, 14, 21.
pub(crate) fn steps_to_next(stride: u32, nodes: u32) -> u32 {
    let ahead = |steps: &u32| u64::from(*steps) * u64::from(stride) % u64::from(nodes) == 1;
    (1..nodes).find(ahead).unwrap_or(1)
}

impl Simulator<'_> {
    /// `node` as `function` sees it.
    pub(crate) fn place_of(&self, function: u32, node: u32) -> Place {
        let nodes = self.nodes.len() as u32;
        let ahead = (node + nodes - self.functions[function as usize].home) % nodes;
        let steps = u64::from(ahead) * u64::from(self.steps_to_next) % u64::from(nodes);
        Place { node, steps: steps as u32 }
    }

    /// The node for a call with this plan: one that can give all of it, else one that can give the
    /// least it may start with, else none.
    #[inline(always)]
    pub(crate) fn choose_place(&self, function: u32, plan: &CallPlan) -> Option<Place> {
        let (grant, least) = (plan.grant(), plan.least());
        if self.settings.placement == Placement::WarmFirst {
            return self.warm_first(function, grant, least);
        }
        self.choose_for(function, grant, plan)
            .or_else(|| if least == grant { None } else { self.choose_for(function, least, plan) })
    }

    #[inline(always)]
    fn choose_for(&self, function: u32, need: Allocation, plan: &CallPlan) -> Option<Place> {
        let takes_more = || !plan.grant().fits(self.functions[function as usize].reservation);
        if self.settings.placement == Placement::CoverageAware && takes_more() {
            self.best_covered(function, need, plan)
        } else {
            self.choose_as_reserved(function, need)
        }
    }

    /// The node for a call that gets no more than its user reserves.
    #[inline(always)]
    pub(crate) fn choose_as_reserved(&self, function: u32, need: Allocation) -> Option<Place> {
        match self.settings.placement {
            Placement::HomeInvoker | Placement::CoverageAware => self.home_walk(function, need),
            Placement::WarmFirst => self.warm_first(function, need, need),
            Placement::LeastLoaded => {
                let warm = self.warm_node(function, need);
                let node = warm.or_else(|| self.least_loaded(need))?;
                Some(self.place_of(function, node))
            }
        }
    }

    /// From the function's home on, the first node that has room.
    #[inline(always)]
    pub(crate) fn home_walk(&self, function: u32, need: Allocation) -> Option<Place> {
        let count = self.nodes.len() as u32;
        let mut node = self.functions[function as usize].home;
        for steps in 0..count {
            let is_kept = self.kept_node.is_some_and(|(kept, _)| kept == node);
            if !is_kept && self.nodes[node as usize].book.has_room(need) {
                return Some(Place { node, steps });
            }
            node += self.stride;
            if node >= count {
                node -= count;
            }
        }
        None
    }

    /// The least loaded of the nodes with an idle instance, else of all. A smaller grant now is
    /// better than the whole grant after a cold start: a call that would like 8 cores starts on the 4 that its user
    /// reserves where an instance is warm.
    fn warm_first(&self, function: u32, grant: Allocation, least: Allocation) -> Option<Place> {
        let idle = &self.functions[function as usize].idle;
        let warm = |need: Allocation| {
            let nodes = idle.tops().map(|top| self.instances[top].node);
            self.least_loaded_of(nodes, |node| node.book.has_room(need))
        };
        let any = |need: Allocation| self.least_loaded(need);
        let node =
            warm(grant).or_else(|| warm(least)).or_else(|| any(grant)).or_else(|| any(least));
        node.map(|node| self.place_of(function, node))
    }

    /// The node of the last used idle instance that has room.
    fn warm_node(&self, function: u32, need: Allocation) -> Option<u32> {
        let has_room = |node: u32| self.nodes[node as usize].book.has_room(need);
        let idle = &self.functions[function as usize].idle;
        idle.last_where(&self.instances, has_room).map(|instance| self.instances[instance].node)
    }

    /// The node with the smallest share of its CPU granted, the first of equals.
    pub(crate) fn least_loaded(&self, need: Allocation) -> Option<u32> {
        self.least_loaded_of(0..self.nodes.len() as u32, |node| node.book.has_room(need))
    }

    /// The same among the `nodes` that are `fit`.
    pub(crate) fn least_loaded_of(
        &self,
        nodes: impl Iterator<Item = u32>,
        fit: impl Fn(&Node) -> bool,
    ) -> Option<u32> {
        let load = |node: u32| self.nodes[node as usize].book.in_force().cpu;
        let kept = self.kept_node.map(|(node, _)| node);
        nodes
            .filter(|&node| Some(node) != kept && fit(&self.nodes[node as usize]))
            .min_by_key(|&node| load(node))
    }

    /// The node whose harvest pool covers most of what the call would like, the home walk's choice
    /// among equals.
    fn best_covered(&self, function: u32, need: Allocation, plan: &CallPlan) -> Option<Place> {
        let mut best = self.home_walk(function, need)?.node;
        let coverage = |node: u32| self.control.coverage(NodeId(node), plan, self.now);
        let mut covered = coverage(best);
        for node in 0..self.nodes.len() as u32 {
            if self.nodes[node as usize].book.has_room(need) && coverage(node) > covered {
                (best, covered) = (node, coverage(node));
            }
        }
        Some(self.place_of(function, best))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_visits_every_node_once() {
        for nodes in 1..200 {
            let (step, mut node) = (stride(nodes), 0);
            let mut seen = vec![false; nodes as usize];
            for _ in 0..nodes {
                assert!(!std::mem::replace(&mut seen[node as usize], true), "{nodes} nodes");
                node = (node + step) % nodes;
            }
            let ahead = u64::from(steps_to_next(step, nodes)) * u64::from(step) % u64::from(nodes);
            assert_eq!(ahead, u64::from(nodes > 1), "{nodes} nodes");
        }
    }
}
