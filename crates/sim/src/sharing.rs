//! Contended nodes: the cores go to the instances by weighted max-min, and inside an instance to its
//! calls in equal parts. Weights are what the instances hold; an instance may
//! use more than that of what others leave idle if its ceiling lets it. Between two events of a node all rates
//! are constant, so only the end of the next segment needs a reminder.

use windfall_core::Duration;

use crate::call::Pace;
use crate::cpu_model::CpuModel;
use crate::event_queue::{Event, Token};
use crate::simulator::Simulator;
use crate::water_filling::{Claim, share_out};

impl Simulator<'_> {
    /// A segment of some call ends on a contended node.
    pub(crate) fn on_share_change(&mut self, node: u32, token: Token) {
        if self.nodes[node as usize].share_token != token {
            return;
        }
        let now = self.now;
        let mut done = std::mem::take(&mut self.done);
        for &slot in &self.nodes[node as usize].running {
            let call = &mut self.calls[slot];
            call.catch_up(now);
            if call.progress.is_done(&call.demand) {
                done.push(slot);
            }
        }
        let any_ended = !done.is_empty();
        for slot in done.drain(..) {
            self.end_call(slot);
        }
        self.done = done;
        if any_ended {
            self.settle(node);
        } else {
            self.reshare_if_needed(node);
        }
    }

    /// Works out the pace of every call on a node whose calls compete, or did until now.
    #[inline]
    pub(crate) fn reshare_if_needed(&mut self, node: u32) {
        let state = &self.nodes[node as usize];
        if state.competes() || state.is_shared {
            self.reshare(node);
        }
    }

    #[inline(never)]
    fn reshare(&mut self, node: u32) {
        let state = &mut self.nodes[node as usize];
        let (competes, did) = (state.competes(), state.is_shared);
        state.is_shared = competes;
        let running = std::mem::take(&mut state.running);
        for &slot in &running {
            self.calls[slot].catch_up(self.now);
        }
        if competes {
            if !did {
                self.change_pace(&running, Pace::Shared(0.0));
            }
            self.share_cores(node, &running);
            self.remind_of_next_change(node, &running);
        } else {
            self.nodes[node as usize].share_token = Token::NONE;
            self.note_shortage(node, false);
            self.nodes[node as usize].level = f64::INFINITY;
            self.change_pace(&running, Pace::Own);
        }
        self.nodes[node as usize].running = running;
    }

    fn change_pace(&mut self, running: &[u32], pace: Pace) {
        for &slot in running {
            self.calls[slot].set_pace(pace);
            self.schedule_turn(slot);
        }
    }

    fn share_cores(&mut self, node: u32, running: &[u32]) {
        if !self.settings.cpu.is_fluid() {
            return self.share_by_kernel(node, running);
        }
        let capacity = f64::from(self.nodes[node as usize].cpu.get());
        let mut claims = std::mem::take(&mut self.claims);
        claims.clear();
        for &slot in running {
            let instance = self.calls[slot].instance;
            let members = &self.instances[instance].calls;
            // An instance claims once, at the first of its calls.
            if members[0] != slot {
                continue;
            }
            let wanted: f64 = members
                .iter()
                .map(|&slot| &self.calls[slot])
                .map(|call| f64::from(call.progress.demand_now(&call.demand).get()))
                .sum();
            let state = &self.instances[instance];
            let weight = f64::from(state.held.cpu.get());
            let cap = wanted.min(state.cpu_limit() as f64);
            claims.push(Claim { cap, weight, share: 0.0 });
        }
        let wanted: f64 = claims.iter().map(|claim| claim.cap).sum();
        self.note_shortage(node, wanted > capacity + 1e-6);
        share_out(capacity, &mut claims);
        let mut shares = claims.iter().map(|claim| claim.share);
        for &slot in running {
            let instance = self.calls[slot].instance;
            let members = &self.instances[instance].calls;
            if members[0] != slot {
                continue;
            }
            let share = shares.next().unwrap_or(0.0);
            if members.len() == 1 {
                self.calls[slot].pace = Pace::Shared(share);
            } else {
                self.share_instance(instance, share);
            }
        }
        self.claims = claims;
    }

    /// Splits an instance's share among its calls in equal parts, none more than it can use.
    pub(crate) fn share_instance(&mut self, instance: u32, share: f64) {
        let mut claims = std::mem::take(&mut self.inner_claims);
        claims.clear();
        for &slot in self.instances[instance].calls.iter() {
            let call = &self.calls[slot];
            let cap = match self.settings.cpu {
                CpuModel::Fluid => f64::from(call.progress.demand_now(&call.demand).get()),
                CpuModel::Kernel(_) => call.wanted_on_kernel(),
            };
            claims.push(Claim { cap, weight: 1.0, share: 0.0 });
        }
        share_out(share, &mut claims);
        for (&slot, claim) in self.instances[instance].calls.iter().zip(&claims) {
            self.calls[slot].pace = Pace::Shared(claim.share);
        }
        self.inner_claims = claims;
    }

    fn remind_of_next_change(&mut self, node: u32, running: &[u32]) {
        let mut next = u64::MAX;
        for &slot in running {
            let call = &self.calls[slot];
            let Pace::Shared(rate) = call.pace else { continue };
            next = next.min(match self.settings.cpu {
                CpuModel::Fluid => call.progress.until_segment_ends(&call.demand, rate),
                CpuModel::Kernel(_) => call.until_change_on_kernel(rate),
            });
        }
        self.nodes[node as usize].share_token = if next == u64::MAX {
            Token::NONE
        } else {
            let at = self.now + Duration::from_nanos(next.max(1));
            self.queue.push(at, Event::ShareChanges(node))
        };
    }
}
