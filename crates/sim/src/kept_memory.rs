//! Memory under the kernel's model: a warm process keeps what its last call allocated, and a limit below what is in use is
//! refused.
//!
//! A call that used 300 MiB leaves a process of 300 MiB behind. The next one begins with them, whatever it needs itself,
//! and a limit of 200 MiB for it is refused (`EBUSY`): the old one stays in force, and the answer to the control says so.

use windfall_core::{Allocation, Refusal, Resized, Start};

use crate::simulator::Simulator;

/// Why a limit was refused.
pub(crate) fn memory_in_use() -> Refusal {
    Refusal::System("EBUSY: the memory limit is below what is in use".to_owned())
}

impl Simulator<'_> {
    /// A call leaves: its process keeps what it allocated, and its group what is left of the quota.
    pub(crate) fn keep_in_instance(&mut self, slot: u32, instance: u32) {
        let call = &self.calls[slot];
        if !call.is_running {
            return;
        }
        let used = call.demand.memory_at(self.now.since(call.record.started_at));
        let state = &mut self.instances[instance];
        state.resident = state.resident.max(used);
        if call.kernel.bucket.refill_at > 0 {
            state.bucket = call.kernel.bucket;
        }
    }

    /// What a call starts with on a warm instance that keeps more memory than its limit: as much as is kept. Where the
    /// node has no room for that the instance is stopped, and a new one starts.
    pub(crate) fn fit_resident(
        &mut self,
        mut start: Start,
        warm: Option<u32>,
        node: u32,
    ) -> (Start, Option<u32>) {
        let Some(instance) = warm else { return (start, warm) };
        let resident = self.instances[instance].resident;
        if resident <= start.grant.memory {
            return (start, warm);
        }
        let needed = Allocation { memory: resident, ..start.grant };
        if needed.fits(self.nodes[node as usize].book.room()) {
            start.grant = needed;
            (start, warm)
        } else {
            self.stop_instance(instance);
            (start, None)
        }
    }

    /// Reports that a call holds more memory than it was to start with.
    pub(crate) fn report_start_refused(&mut self, slot: u32, asked: Allocation) {
        if self.leaves_calls_alone {
            return;
        }
        let call = &self.calls[slot];
        let change = Resized {
            call: call.record.id,
            node: call.record.node,
            at: self.now,
            reservation: call.record.reservation,
            asked,
            in_force: call.grant,
            refused: Some(memory_in_use()),
        };
        let mut changes = std::mem::take(&mut self.changes);
        self.control.resized(&change, &mut changes);
        self.carry_out_changes(change.node.0, &mut changes);
        self.changes = changes;
    }

    /// What comes into force of a grant that was asked for a running call: under the kernel's model a limit below what
    /// is in use is refused and the old one stays.
    pub(crate) fn accepted_memory(&mut self, slot: u32, wanted: Allocation) -> Allocation {
        if self.settings.cpu.is_fluid() {
            return wanted;
        }
        let now = self.now;
        let call = &mut self.calls[slot];
        call.kernel.refused = None;
        let in_use = call.demand.memory_at(now.since(call.record.started_at));
        if !call.is_running || wanted.memory >= in_use || wanted.memory >= call.grant.memory {
            return wanted;
        }
        call.kernel.refused = Some(wanted);
        let accepted = Allocation { memory: call.grant.memory, ..wanted };
        call.asked = Some(accepted);
        accepted
    }
}
