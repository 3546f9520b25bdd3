//! Contended nodes under the kernel's CPU: what wants to run now shares the cores by weight, calls that are guaranteed
//! the least there is run in the idle class on what is left, and a call that has just woken up shares one core with what
//! runs there.
//!
//! Two cores, a call with one thread and weight 1 beside a group with two threads and weight 1: over the whole node the
//! call's share is a full core. But it wakes up on a core where one of the two threads runs, with half of its group's
//! weight, and gets 1 / (1 + 0.5) of that core until load balancing has moved the other thread away. Measured on
//! Linux 6.18: 0.67 for about 220 ms, then 0.98. With three times the weight it is 6 / 7 for about 80 ms.

use windfall_core::{Duration, MilliCpu};

use crate::bucket::{Quota, time_under_quota};
use crate::call::Pace;
use crate::cpu_model::{CpuModel, KernelCpu};
use crate::kernel_pace::Wakefulness;
use crate::simulator::Simulator;
use crate::water_filling::{Claim, share_out};

/// One core, millicores: what one thread can use.
const CORE: f64 = 1000.0;
/// A guarantee that is none: `cpu.idle`, a class below all weights.
const IDLE_CLASS: MilliCpu = MilliCpu::new(1);
/// The weight of a call in its first slice after it woke up: more than all others together.
const PREEMPTING: f64 = 1e12;

/// Everything with a weight that wants to run on a node.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    weight: f64,
    wanted: f64,
    /// The weights of the two lightest threads of different claims.
    lightest: [f64; 2],
}

impl Crowd {
    fn add(&mut self, claim: &Claim) {
        if claim.cap > 0.0 {
            self.weight += claim.weight;
            self.wanted += claim.cap;
            let thread = weight_per_thread(claim);
            let [first, second] = self.lightest;
            self.lightest = [first.min(thread), second.min(first.max(thread))];
        }
    }

    /// The weight of a claim's threads, and that of the thread beside which they wake up: heavy ones keep a core to
    /// themselves, so it is a light one.
    fn weights_where_woken(&self, claim: &Claim) -> (f64, f64) {
        let own = weight_per_thread(claim);
        let [first, second] = self.lightest;
        let other = if own <= first { second } else { first };
        (own, if other.is_finite() { other } else { 0.0 })
    }
}

fn weight_per_thread(claim: &Claim) -> f64 {
    claim.weight / threads(claim.cap)
}

fn threads(cap: f64) -> f64 {
    (cap / CORE).ceil().max(1.0)
}

impl Simulator<'_> {
    /// Works out the pace of every call on a contended node.
    pub(crate) fn share_by_kernel(&mut self, node: u32, running: &[u32]) {
        let capacity = f64::from(self.nodes[node as usize].cpu.get());
        let mut claims = std::mem::take(&mut self.claims);
        let mut idle_class = std::mem::take(&mut self.inner_claims);
        claims.clear();
        idle_class.clear();
        let mut crowd = Crowd { weight: 0.0, wanted: 0.0, lightest: [f64::INFINITY; 2] };
        for &slot in running.iter().filter(|&&slot| self.is_first(slot)) {
            let (cap, weight) = self.claim_of(slot);
            let claim = Claim { cap, weight: weight.max(1.0), share: 0.0 };
            if self.is_idle_class(slot) {
                idle_class.push(claim);
            } else {
                crowd.add(&claim);
                claims.push(claim);
            }
        }
        self.note_shortage(node, crowd.wanted > capacity + 1e-6);
        if crowd.wanted <= capacity {
            claims.iter_mut().for_each(|claim| claim.share = claim.cap);
            self.nodes[node as usize].level = f64::INFINITY;
        } else {
            if self.nodes[node as usize].level == f64::INFINITY {
                self.settle_others(running);
            }
            if self.follows_rounds() {
                self.share_among_woken(running, capacity, crowd, &mut claims);
            } else {
                share_out(capacity, &mut claims);
            }
            self.nodes[node as usize].level = capacity / crowd.weight.max(1.0);
        }
        let left = capacity - claims.iter().map(|claim| claim.share).sum::<f64>();
        share_out(left.max(0.0), &mut idle_class);
        self.hand_out(running, &claims, &idle_class);
        (self.claims, self.inner_claims) = (claims, idle_class);
    }

    fn follows_rounds(&self) -> bool {
        matches!(self.settings.cpu, CpuModel::Kernel(KernelCpu { follows_rounds: true, .. }))
    }

    /// The node is full from now on: whoever has been running until now has its place.
    fn settle_others(&mut self, running: &[u32]) {
        for &slot in running {
            self.calls[slot].settle_before(self.now);
        }
    }

    /// Whether a call is the first of its instance, which claims for all of them.
    fn is_first(&self, slot: u32) -> bool {
        self.instances[self.calls[slot].instance].calls[0] == slot
    }

    /// What the instance of `slot` could use now, and its weight.
    fn claim_of(&self, slot: u32) -> (f64, f64) {
        let state = &self.instances[self.calls[slot].instance];
        let weight = f64::from(state.held.cpu.get());
        if state.calls.len() == 1 {
            return (self.calls[slot].wanted_on_kernel(), weight);
        }
        // Several calls in one instance share its quota as a mean rate.
        let wanted: f64 = state.calls.iter().map(|&slot| self.calls[slot].wanted_on_kernel()).sum();
        (wanted.min(state.cpu_limit() as f64), weight)
    }

    /// Shares by weight, with those that have just woken up held to what they get where they woke. What nobody uses then
    /// goes to whoever can use it.
    fn share_among_woken(
        &mut self,
        running: &[u32],
        capacity: f64,
        crowd: Crowd,
        claims: &mut [Claim],
    ) {
        let wanted: Vec<f64> = claims.iter().map(|claim| claim.cap).collect();
        let mut place = 0;
        for &slot in running {
            if !self.is_first(slot) || self.is_idle_class(slot) {
                continue;
            }
            let claim = &mut claims[place];
            place += 1;
            if claim.cap == 0.0 {
                continue;
            }
            let (own, other) = crowd.weights_where_woken(claim);
            match self.calls[slot].wakefulness(self.now, own, other) {
                Wakefulness::Preempts => claim.weight = PREEMPTING,
                Wakefulness::SharesItsCore => claim.cap *= own / (own + other),
                Wakefulness::Settled => {}
            }
        }
        share_out(capacity, claims);
        let left = capacity - claims.iter().map(|claim| claim.share).sum::<f64>();
        if left < 1.0 {
            return;
        }
        let more = claims.iter().zip(&wanted);
        let mut more: Vec<Claim> = more
            .map(|(claim, wanted)| Claim { cap: (wanted - claim.share).max(0.0), ..*claim })
            .collect();
        share_out(left, &mut more);
        for (claim, more) in claims.iter_mut().zip(&more) {
            claim.share += more.share;
        }
    }

    /// Whether a call is guaranteed no more than the least there is, and so runs in the idle class.
    fn is_idle_class(&self, slot: u32) -> bool {
        self.instances[self.calls[slot].instance].held.cpu <= IDLE_CLASS
    }

    fn hand_out(&mut self, running: &[u32], claims: &[Claim], idle_class: &[Claim]) {
        let (mut claims, mut idle_class) = (claims.iter(), idle_class.iter());
        for &slot in running {
            if !self.is_first(slot) {
                continue;
            }
            let claim = if self.is_idle_class(slot) { idle_class.next() } else { claims.next() };
            let share = claim.map_or(0.0, |claim| claim.share);
            let instance = self.calls[slot].instance;
            if self.instances[instance].calls.len() == 1 {
                self.calls[slot].pace = Pace::Shared(share);
            } else {
                self.share_instance(instance, share);
            }
        }
    }

    /// How long a start takes that would take `cold` with a core of its own. Starting a runtime and loading its modules
    /// is work for one thread: half a core as quota doubles what does not fit into the first period, and on a contended
    /// node the weight decides.
    pub(crate) fn start_under_limit(&self, cold: Duration, instance: u32) -> Duration {
        let CpuModel::Kernel(kernel) = self.settings.cpu else { return cold };
        let state = &self.instances[instance];
        let level = self.nodes[state.node as usize].level;
        let share = (level * f64::from(state.held.cpu.get())).clamp(1.0, CORE);
        let slowed = cold.scaled(CORE / share);
        let Some(limit) = state.ceiling.limit(state.held.cpu) else { return slowed };
        let period = kernel.period.as_nanos();
        let quota = Quota { rate: u64::from(limit.get().max(1)), period, saved: 0 };
        let limited = time_under_quota(cold.as_nanos() * 1000, CORE as u64, quota, period);
        slowed.max(Duration::from_nanos(limited))
    }
}
