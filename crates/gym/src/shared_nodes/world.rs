//! Functions on a fixed set of nodes, in steps of 50 ms.
//!
//! ```text
//!   every 50 ms   calls arrive ─► idle instances take them ─► every node shares its cores out by weight ─► calls work
//!   every 100 ms  use and throttling of each function, for a controller that caps it ([`Captains`])
//!   every 1 s     instances that found no memory are tried again
//!   every 5 s     decisions are carried out, everything is observed
//! ```
//!
//! Calls are followed one by one, with their ends at their exact times; only a node's division of cores stays the same
//! for a step. CPU is a weight and never a cap ([`super::cpu_shares`]); memory is hard: an instance that finds no node
//! with room is not started, and a call above its instance's memory is lost.

use windfall_core::{Observation, Seed};
use windfall_rl::random::Draw;

use super::NodeSettings;
use super::captains::Captains;
use super::cpu_shares::{Claim, share_out};
use super::function_load::{CallStream, FunctionLoad};
use super::tenant::{Instance, Tenant};
use crate::moves::{Deployment, Range};
use crate::profile::{RESERVED_CPU, ServiceProfile};
use crate::reward::Earned;
use crate::world::Rates;

/// Length of a step, seconds.
const STEP: f64 = 0.05;
/// Steps of a tick of 5 s.
const STEPS: u64 = 100;
/// Seconds of a tick.
pub const TICK: f64 = 5.0;

/// What a function has in the beginning.
pub fn first_deployment(profile: &ServiceProfile) -> Deployment {
    Deployment { instances: 2, cpu: RESERVED_CPU, memory: profile.reserved_mib }
}

/// How one function fared since latencies are kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fared {
    /// 99th percentile of latency, milliseconds.
    pub p99_ms: f64,
    /// Calls with an objective, and those of them that missed it.
    pub judged: u64,
    /// See above.
    pub violations: u64,
    /// Core-seconds held: instances times shares over 1024.
    pub core_seconds: f64,
    /// GiB-seconds held.
    pub gib_seconds: f64,
}

/// The nodes with their functions.
#[derive(Clone, Debug)]
pub struct SharedWorld {
    nodes: NodeSettings,
    range: Range,
    tenants: Vec<Tenant>,
    free_mib: Vec<i64>,
    step: u64,
    ticks: u64,
    seen: Observation,
    earned: Vec<Earned>,
    rates: Vec<Rates>,
    turned: Vec<i32>,
    is_reversal: Vec<bool>,
    memory_highest: Vec<f64>,
    held: Vec<(f64, f64)>,
    captains: Option<Captains>,
    claims: Vec<Vec<Claim>>,
    owners: Vec<Vec<(usize, usize)>>,
    /// Calls that wanted CPU on each node in the last step.
    running: Vec<usize>,
    order: Vec<usize>,
    onward: Vec<(usize, f64, f64)>,
}

impl SharedWorld {
    /// The world of an episode. It has warmed up for two ticks, every function with two instances of its reservation.
    pub fn new(nodes: NodeSettings, range: Range, loads: Vec<FunctionLoad>, episode: Seed) -> Self {
        let count = loads.len();
        let starts = episode.stream("shared-world").stream("cold-starts");
        let tenant = |(index, load): (usize, FunctionLoad)| {
            let wanted = first_deployment(&load.profile);
            let calls = CallStream::new(&load, episode, index);
            Tenant::new(load, wanted, calls, Draw::new(starts.member(index as u64)))
        };
        let mut world = Self {
            nodes,
            range,
            tenants: loads.into_iter().enumerate().map(tenant).collect(),
            free_mib: vec![i64::from(nodes.memory_mib); nodes.count],
            step: 0,
            ticks: 0,
            seen: Observation::default(),
            earned: vec![Earned { preserved: 1.0, ..Earned::default() }; count],
            rates: vec![Rates::default(); count],
            turned: vec![0; count],
            is_reversal: vec![false; count],
            memory_highest: vec![0.0; count],
            held: vec![(0.0, 0.0); count],
            captains: None,
            claims: vec![Vec::new(); nodes.count],
            owners: vec![Vec::new(); nodes.count],
            running: vec![0; nodes.count],
            order: Vec::new(),
            onward: Vec::new(),
        };
        let first: Vec<Deployment> = world.tenants.iter().map(|tenant| tenant.wanted).collect();
        world.act(&first);
        world.act(&first);
        (world.ticks, world.turned) = (0, vec![0; count]);
        world
    }

    /// Carries `wanted` out, one deployment per function, and lets a tick pass.
    pub fn act(&mut self, wanted: &[Deployment]) {
        for (index, &wanted) in wanted.iter().enumerate() {
            let wanted = self.within(wanted);
            let before = self.tenants[index].wanted.instances;
            let went = wanted.instances.cmp(&before) as i32;
            self.is_reversal[index] = went * self.turned[index] < 0;
            self.turned[index] = went;
            self.tenants[index].wanted = wanted;
            self.settle(index);
        }
        for step in 0..STEPS {
            if step.is_multiple_of(20) {
                (0..self.tenants.len()).for_each(|index| self.settle(index));
            }
            self.pass();
        }
        self.ticks += 1;
        self.observe();
    }

    fn within(&self, wanted: Deployment) -> Deployment {
        let Range { instances, cpu, memory } = self.range;
        Deployment {
            instances: wanted.instances.clamp(instances.0, instances.1),
            cpu: wanted.cpu.clamp(cpu.0, cpu.1),
            memory: wanted.memory.clamp(memory.0, memory.1),
        }
    }

    /// Brings the instances of a function to what it is to have, as far as memory lasts.
    fn settle(&mut self, index: usize) {
        let now = self.now();
        let tenant = &mut self.tenants[index];
        let free = &mut self.free_mib;
        let wanted = if tenant.is_active { tenant.wanted.instances as usize } else { 0 };
        let memory = tenant.wanted.memory;
        tenant.instances.retain(|one| {
            let goes = one.is_leaving && one.call.is_none();
            free[one.node] += if goes { i64::from(one.memory) } else { 0 };
            !goes
        });
        for instance in &mut tenant.instances {
            let more = i64::from(memory) - i64::from(instance.memory);
            if more <= free[instance.node] {
                free[instance.node] -= more;
                instance.memory = memory;
            }
        }
        let mut standing = tenant.standing();
        while standing > wanted {
            // Starting and idle ones first, which have least to lose.
            let staying = |one: &Instance| !one.is_leaving;
            let idle = tenant.instances.iter().rposition(|one| staying(one) && one.call.is_none());
            let place = idle.or_else(|| tenant.instances.iter().rposition(staying));
            let Some(place) = place else { break };
            tenant.instances[place].is_leaving = true;
            standing -= 1;
        }
        while standing < wanted {
            let weight = |node: usize| -> usize {
                self.owners[node].len()
                    + tenant.instances.iter().filter(|one| one.node == node).count()
            };
            let open = (0..free.len()).filter(|&node| free[node] >= i64::from(memory));
            let Some(node) = open.min_by_key(|&node| (weight(node), -free[node])) else { break };
            free[node] -= i64::from(memory);
            let ready_at = now + tenant.draw_start();
            let (call, is_leaving, rate) = (None, false, 0.0);
            tenant.instances.push(Instance { node, memory, ready_at, call, is_leaving, rate });
            tenant.window.cold_starts += 1;
            standing += 1;
        }
    }

    /// One step of all functions.
    fn pass(&mut self) {
        let now = self.now();
        for (running, owners) in self.running.iter_mut().zip(&self.owners) {
            *running = owners.len();
        }
        self.claims.iter_mut().for_each(Vec::clear);
        self.owners.iter_mut().for_each(Vec::clear);
        for (index, tenant) in self.tenants.iter_mut().enumerate() {
            tenant.arrive(now + STEP);
            tenant.dispatch(now, &self.running);
            let busy = tenant.instances.iter().filter(|one| one.call.is_some()).count();
            tenant.window.presence_seconds += (busy + tenant.queue.len()) as f64 * STEP;
            let able = f64::from(tenant.load.profile.parallelism) * 1e-3;
            let most = tenant.quota.map_or(able, |quota| able.min(quota / busy.max(1) as f64));
            let weight = f64::from(tenant.wanted.cpu);
            for (place, instance) in tenant.instances.iter_mut().enumerate() {
                instance.rate = 0.0;
                let is_near = instance.call.as_ref().is_some_and(|call| call.fixed < STEP);
                if is_near {
                    self.claims[instance.node].push(Claim { weight, most, got: 0.0 });
                    self.owners[instance.node].push((index, place));
                }
            }
        }
        for (claims, owners) in self.claims.iter_mut().zip(&self.owners) {
            share_out(self.nodes.cores, claims, &mut self.order);
            for (claim, &(index, place)) in claims.iter().zip(owners) {
                self.tenants[index].instances[place].rate = claim.got;
            }
        }
        for tenant in &mut self.tenants {
            for place in 0..tenant.instances.len() {
                tenant.work(place, now, STEP, &mut self.onward);
            }
        }
        for (index, at, born) in std::mem::take(&mut self.onward) {
            self.tenants[index].take_in(at, born);
        }
        self.step += 1;
        if let Some(captains) = &mut self.captains
            && self.step.is_multiple_of(2)
        {
            captains.pass(&mut self.tenants);
        }
    }

    fn now(&self) -> f64 {
        self.step as f64 * STEP
    }
}

mod sensed;
