//! Whether a node can take a call where that is not a matter of its book alone: the control says so, or the simulator
//! looks into the future for the peak oracle.
//!
//! ```text
//!   cores    ┌─────────────── limit ───────────────
//!            │      ██                                 call A: works twice
//!            │  ██  ██  ░░░░                           call B: works once
//!            │  ██  ██▒▒▒▒░░                           the new call fits if the highest sum stays below the limit
//!            └──────────────────────► time
//! ```
//!
//! The peak oracle counts what calls would use at their reservations, because that is what weights guarantee. It only
//! looks as far as the new call runs: before it came, the others fitted without it.

use windfall_core::demand::Segment;
use windfall_core::{AdmitBy, CallDemand, CallPlan, CallView, MilliCpu, NodeId, NodeOffer};

use crate::instance::Stage;
use crate::placement::Place;
use crate::progress::Progress;
use crate::simulator::Simulator;

/// A change of what is used, so many nanoseconds from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UseChange {
    after: u64,
    /// Millicores more or less.
    change: i64,
}

impl Simulator<'_> {
    /// How full `node` would be with this call, if it may take it.
    pub(crate) fn admits(&mut self, node: u32, call: &CallView, plan: &CallPlan) -> Option<f64> {
        let state = &self.nodes[node as usize];
        if !state.book.has_room(plan.least()) {
            return None;
        }
        let offer = NodeOffer {
            node: NodeId(node),
            cores: state.cpu.cores(),
            over_commit: self.settings.cluster.over_commit_cpu,
        };
        match self.admit_by {
            AdmitBy::Grants => Some(0.0),
            AdmitBy::Control => self.control.admit(call, plan, &offer),
            AdmitBy::FuturePeak => self.fits_the_future(&offer, call),
        }
    }

    /// The emptiest of the nodes that may take the call: of those with a warm instance, else of all.
    pub(crate) fn choose_admitting(&mut self, call: &CallView, plan: &CallPlan) -> Option<Place> {
        let function = call.function.0;
        let mut warm: Vec<u32> = self.functions[function as usize]
            .idle
            .tops()
            .map(|top| self.instances[top].node)
            .collect();
        warm.sort_unstable();
        let node = self
            .emptiest(warm.into_iter(), call, plan)
            .or_else(|| self.emptiest(0..self.nodes.len() as u32, call, plan))?;
        Some(self.place_of(function, node))
    }

    fn emptiest(
        &mut self,
        nodes: impl Iterator<Item = u32>,
        call: &CallView,
        plan: &CallPlan,
    ) -> Option<u32> {
        let kept = self.kept_node.map(|(node, _)| node);
        let full = nodes
            .filter(|&node| Some(node) != kept)
            .filter_map(|node| Some((self.admits(node, call, plan)?, node)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        full.map(|(_, node)| node)
    }

    /// How full the node would be at the highest moment of the call, if all of it fits.
    fn fits_the_future(&mut self, offer: &NodeOffer, call: &CallView) -> Option<f64> {
        let demand = call.foresight?.demand;
        let mut changes = std::mem::take(&mut self.use_changes);
        changes.clear();
        let reserved = call.reservation.cpu;
        let horizon = demand.run_time(reserved).as_nanos();
        let start = Progress::start(&demand);
        add_future(&demand, start, reserved, horizon, &mut changes);
        let mine = changes.len();
        self.add_running(offer.node.0, horizon, &mut changes);
        let is_alone = changes.len() == mine;
        changes.sort_unstable();
        let (mut level, mut highest) = (0i64, 0i64);
        for change in &changes {
            level += change.change;
            highest = highest.max(level);
        }
        self.use_changes = changes;
        let full = highest as f64 * 1e-3 / (offer.cores * offer.over_commit).max(1e-9);
        (full <= 1.0 || is_alone).then_some(full)
    }

    /// What the calls on `node` will use; those whose instance is on its way up begin at once.
    fn add_running(&self, node: u32, horizon: u64, changes: &mut Vec<UseChange>) {
        let state = &self.nodes[node as usize];
        let starting = state.instances.iter().map(|&instance| &self.instances[instance]);
        let starting = starting.filter(|instance| instance.stage == Stage::Starting);
        let waiting = starting.flat_map(|instance| instance.calls.iter());
        for &slot in state.running.iter().chain(waiting) {
            let call = &self.calls[slot];
            let progress = match call.is_running {
                true => call.progress_now(self.now),
                false => Progress::start(&call.demand),
            };
            add_future(&call.demand, progress, call.record.reservation.cpu, horizon, changes);
        }
    }
}

/// What a call uses from `progress` on at its reservation, within the next `horizon` nanoseconds.
fn add_future(
    demand: &CallDemand,
    progress: Progress,
    reserved: MilliCpu,
    horizon: u64,
    changes: &mut Vec<UseChange>,
) {
    let mut after = 0u64;
    let mut left = Some(progress.left);
    for segment in progress.segment..demand.segments() {
        if after >= horizon {
            return;
        }
        let (amount, rate) = match demand.segment(segment) {
            Segment::Idle(idle) => (idle.as_nanos(), 0),
            Segment::Work { work, parallelism } => (work, parallelism.min(reserved).get().max(1)),
        };
        let amount = left.take().unwrap_or(amount);
        let nanos = if rate == 0 { amount } else { amount.div_ceil(u64::from(rate)) };
        if rate > 0 && nanos > 0 {
            changes.push(UseChange { after, change: i64::from(rate) });
            changes.push(UseChange { after: after + nanos, change: -i64::from(rate) });
        }
        after += nanos;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_core::{Duration, Mebibytes};

    #[test]
    fn the_future_of_a_call_is_its_segments_at_its_reservation() {
        // 1 s idle in all, 2 core-seconds on up to 4 cores, of which 2 are reserved: 0.5 s, 1 s of work, 0.5 s.
        let demand = CallDemand {
            work: 2_000_000_000_000,
            fixed: Duration::from_secs(1),
            parallelism: MilliCpu::new(4000),
            memory_peak: Mebibytes::new(1),
            cycles: 1,
            ..CallDemand::default()
        };
        let mut changes = Vec::new();
        let start = Progress::start(&demand);
        add_future(&demand, start, MilliCpu::new(2000), u64::MAX, &mut changes);
        let half = 500_000_000;
        assert_eq!(
            changes,
            [UseChange { after: half, change: 2000 }, UseChange { after: 3 * half, change: -2000 }]
        );
        changes.clear();
        add_future(&demand, start, MilliCpu::new(2000), half, &mut changes);
        assert!(changes.is_empty(), "nothing is used before the horizon");
    }
}
