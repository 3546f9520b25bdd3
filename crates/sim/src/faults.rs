//! What goes wrong with nodes. Lost telemetry and slow actuation are drawn where they strike.

use windfall_core::{CallEnd, Duration};

use crate::event_queue::Event;
use crate::gauges::Gauge;
use crate::simulator::Simulator;

impl Simulator<'_> {
    /// Sets the first loss of every node.
    pub(crate) fn plan_faults(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            self.plan_loss(node);
        }
    }

    /// The next loss of `node`: exponential, so that a node that has lasted is no safer for it.
    fn plan_loss(&mut self, node: u32) {
        let Some(mean) = self.settings.faults.node_loss_every else { return };
        let draw = self.fault_noise.uniform(u64::MAX - u64::from(node), self.now.as_nanos());
        let after = mean.scaled(-(1.0 - draw).ln());
        // Losses after the last arrival would only keep an empty cluster busy.
        if self.now + after <= self.workload.horizon() {
            self.queue.push(self.now + after, Event::NodeFails(node));
        }
    }

    /// A node is lost with all its calls and instances.
    pub(crate) fn on_node_failure(&mut self, node: u32) {
        let on_node: Vec<u32> =
            self.calls.places().filter(|&slot| self.calls[slot].record.node.0 == node).collect();
        for slot in on_node {
            self.leave(slot);
            self.report_loss(slot);
            self.close_record(slot, CallEnd::NodeLost);
        }
        let instances: Vec<u32> = self
            .instances
            .places()
            .filter(|&instance| self.instances[instance].node == node)
            .collect();
        for instance in instances {
            self.stop_instance(instance);
        }
        let state = &mut self.nodes[node as usize];
        state.book.set_open(false);
        self.gauges.sub(Gauge::Capacity, state.cpu.get());
        self.report_resized();
        self.reshare_if_needed(node);
        let away = self.settings.faults.node_away.max(Duration::from_secs(1));
        self.queue.push(self.now + away, Event::NodeReturns(node));
    }

    /// A node is back, empty.
    pub(crate) fn on_node_return(&mut self, node: u32) {
        let state = &mut self.nodes[node as usize];
        state.book.set_open(true);
        self.gauges.add(Gauge::Capacity, state.cpu.get());
        self.plan_loss(node);
        self.settle(node);
    }
}
