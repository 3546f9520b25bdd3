//! Which node takes a call.

use windfall_core::{Allocation, CallPlan, NodeId};

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

impl Simulator<'_> {
    /// The node for a call with this plan: one that can give all of it, else one that can give the
    /// least it may start with, else none.
    #[inline(always)]
    pub(crate) fn choose_node(&self, function: u32, plan: &CallPlan) -> Option<u32> {
        let (grant, least) = (plan.grant(), plan.least());
        self.choose_for(function, grant, plan)
            .or_else(|| if least == grant { None } else { self.choose_for(function, least, plan) })
    }

    #[inline(always)]
    fn choose_for(&self, function: u32, need: Allocation, plan: &CallPlan) -> Option<u32> {
        match self.settings.placement {
            Placement::HomeInvoker => self.home_walk(function, need),
            Placement::LeastLoaded => {
                self.warm_node(function, need).or_else(|| self.least_loaded(need))
            }
            Placement::CoverageAware => {
                if plan.grant().fits(self.functions[function as usize].reservation) {
                    self.home_walk(function, need)
                } else {
                    self.best_covered(function, need, plan)
                }
            }
        }
    }

    /// From the function's home on, the first node that has room.
    #[inline(always)]
    pub(crate) fn home_walk(&self, function: u32, need: Allocation) -> Option<u32> {
        let count = self.nodes.len() as u32;
        let mut node = self.functions[function as usize].home;
        for _ in 0..count {
            if self.nodes[node as usize].has_room(need) {
                return Some(node);
            }
            node += self.stride;
            if node >= count {
                node -= count;
            }
        }
        None
    }

    /// The node of the last used idle instance that has room.
    fn warm_node(&self, function: u32, need: Allocation) -> Option<u32> {
        let has_room = |node: u32| self.nodes[node as usize].has_room(need);
        let idle = &self.functions[function as usize].idle;
        idle.last_where(&self.instances, has_room).map(|instance| self.instances[instance].node)
    }

    /// The node with the smallest share of its CPU granted, the first of equals.
    pub(crate) fn least_loaded(&self, need: Allocation) -> Option<u32> {
        let with_room = |&node: &u32| self.nodes[node as usize].has_room(need);
        (0..self.nodes.len() as u32)
            .filter(with_room)
            .min_by_key(|&node| self.nodes[node as usize].granted().cpu)
    }

    /// The node whose harvest pool covers most of what the call would like, the home walk's choice
    /// among equals.
    fn best_covered(&self, function: u32, need: Allocation, plan: &CallPlan) -> Option<u32> {
        let mut best = self.home_walk(function, need)?;
        let coverage = |node: u32| self.control.coverage(NodeId(node), plan, self.now);
        let mut covered = coverage(best);
        for node in 0..self.nodes.len() as u32 {
            if self.nodes[node as usize].has_room(need) && coverage(node) > covered {
                (best, covered) = (node, coverage(node));
            }
        }
        Some(best)
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
        }
    }
}
