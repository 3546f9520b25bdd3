//! A control without sense: it sizes, raises, lowers and calls back at random, to find out what a platform does with it.

use std::collections::BTreeMap;

use crate::call::{CallDecision, CallId, CallView, NodeId, RunningCall};
use crate::call_control::{CallClose, CallControl, GrantChange, Look, Resized, Start};
use crate::call_safeguard::{CallPlan, CallSafeguardChain};
use crate::seed::{Seed, mix};
use crate::time::Duration;
use crate::units::{Allocation, CpuCeiling, MilliCpu};

/// A call it has started.
#[derive(Clone, Copy, Debug)]
struct Known {
    node: NodeId,
    reservation: Allocation,
}

/// Answers at random, the same for the same seed. A temper of 0 leaves every call at its reservation.
#[derive(Clone, Debug)]
pub struct RestlessCalls {
    draws: u64,
    temper: u64,
    calls: BTreeMap<CallId, Known>,
}

impl RestlessCalls {
    /// A control of this `temper`: the higher, the more often it changes something.
    pub fn new(seed: Seed, temper: u64) -> Self {
        Self { draws: mix(seed.get()), temper, calls: BTreeMap::new() }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.draws = self.draws.wrapping_add(1);
        mix(self.draws) % limit.max(1)
    }

    /// Between a tenth of `of` and twice as much; mostly all of its memory, as less may be too little.
    fn some(&mut self, of: Allocation) -> Allocation {
        let share = |whole: u32, tenths: u64| (u64::from(whole) * tenths / 10).max(1) as u32;
        let cpu = share(of.cpu.get(), 1 + self.below(20));
        let tenths = if self.below(4) == 0 { 1 + self.below(20) } else { 10 };
        Allocation::new(cpu, share(of.memory.get(), tenths))
    }

    fn next_look(&mut self) -> Option<Duration> {
        (self.below(8) > 0).then(|| Duration::from_millis(1 + self.below(200)))
    }

    /// Now and then another call of the node goes back to its reservation.
    fn disturb(&mut self, node: NodeId, changes: &mut Vec<GrantChange>) {
        if self.below(4) >= self.temper {
            return;
        }
        let here: Vec<_> = self.calls.iter().filter(|(_, known)| known.node == node).collect();
        let Some(&(&call, known)) = here.get(self.draws as usize % here.len().max(1)) else {
            return;
        };
        changes.push(GrantChange { call, grant: known.reservation, why: "called back" });
    }
}

impl CallControl for RestlessCalls {
    fn size(&mut self, call: &CallView) -> CallPlan {
        let is_calm = self.temper == 0;
        let grant = if is_calm { call.reservation } else { self.some(call.reservation) };
        let look_after = if is_calm { None } else { self.next_look() };
        let decision = CallDecision { look_after, ..CallDecision::exactly(grant, "at random") };
        CallSafeguardChain::default().at_dispatch(call, &decision).expect("amounts make sense")
    }

    fn start(&mut self, call: &CallView, plan: &CallPlan, node: NodeId, room: Allocation) -> Start {
        self.calls.insert(call.id, Known { node, reservation: call.reservation });
        let grant = plan.grant().min(room).max(plan.least());
        Start { grant, cpu_ceiling: plan.cpu_ceiling(), look_after: plan.look_after() }
    }

    fn look(&mut self, running: &RunningCall, changes: &mut Vec<GrantChange>) -> Look {
        self.disturb(running.node, changes);
        let grant = if self.below(3) == 0 {
            running.grant
        } else {
            self.some(running.reservation).min(running.ceiling)
        };
        Look {
            grant,
            cpu_ceiling: CpuCeiling::AtGrant,
            look_after: self.next_look(),
            held_back: MilliCpu::new(
                self.below(1 + u64::from(running.reservation.cpu.get())) as u32
            ),
            amendments: Vec::new(),
            why: "at random",
        }
    }

    fn resized(&mut self, change: &Resized, changes: &mut Vec<GrantChange>) {
        // Rarely, as every change is answered and a change to each answer would never end.
        if self.below(16) == 0 {
            self.disturb(change.node, changes);
        }
    }

    fn close(&mut self, end: CallClose<'_>, changes: &mut Vec<GrantChange>) {
        self.calls.remove(&end.call());
        self.disturb(end.node(), changes);
    }
}
