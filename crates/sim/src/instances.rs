//! Instances: how they start, when they are idle, and when they go. What they hold meanwhile depends on the kind of
//! platform (`kind`).

use windfall_core::{Allocation, Duration, Worth};

use crate::event_queue::{Event, Token};
use crate::function::remove_item;
use crate::gauges::Gauge;
use crate::idle::Rest;
use crate::instance::{Instance, Stage};
use crate::kind::by_kind;
use crate::node::Node;
use crate::placement::Place;
use crate::settings::{Placement, ScaleOut};
use crate::simulator::Simulator;

/// Compared between idle instances when one must go: the smallest claim goes. What ticks say they are worth,
/// among equals how long they have been idle.
type Claim = (Worth, Rest);

impl Simulator<'_> {
    /// A new instance on its way up. The caller sees to its reminder and to what it holds.
    pub(crate) fn begin_instance(&mut self, function: u32, at: Place, held: Allocation) -> u32 {
        self.functions[function as usize].starting += 1;
        self.gauges.add(Gauge::Instances, 1);
        self.gauges.instance_changes += 1;
        let instance = self.instances.insert(Instance::starting(function, at, held, self.now));
        self.nodes[at.node as usize].instances.push(instance);
        instance
    }

    /// The last used idle instance of `function` so many `steps` from home, taken out of its rest.
    #[inline(always)]
    pub(crate) fn take_idle(&mut self, function: u32, steps: u32) -> Option<u32> {
        let instance = self.functions[function as usize].idle.take_at(&self.instances, steps)?;
        self.leave_node_idle(instance);
        Some(instance)
    }

    pub(crate) fn end_idling(&mut self, instance: u32) {
        let function = self.instances[instance].function;
        self.functions[function as usize].idle.remove(&mut self.instances, instance);
        self.leave_node_idle(instance);
    }

    /// What an instance kept on its node while it rested is no longer idle.
    #[inline(always)]
    fn leave_node_idle(&mut self, instance: u32) {
        let state = &mut self.instances[instance];
        state.rest = Rest::NONE;
        by_kind!(self => end_idle(instance));
    }

    #[inline(always)]
    pub(crate) fn begin_idling(&mut self, instance: u32) {
        self.rest = self.rest.next();
        let state = &mut self.instances[instance];
        state.idle_since = self.now;
        state.rest = self.rest;
        let function = state.function;
        self.functions[function as usize].idle.push(&mut self.instances, instance);
        by_kind!(self => begin_idle(instance));
        self.watch_keep_alive(function);
    }

    /// Stops idle instances on `node`, longest idle first, until `need` fits beside the rest.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, node: u32, need: Allocation) {
        while !self.nodes[node as usize].fits_beside_idle(need) && self.stop_least_worth(node) {}
    }

    #[cold]
    fn stop_least_worth(&mut self, node: u32) -> bool {
        self.least_worth(node).map(|(_, instance)| self.stop_instance(instance)).is_some()
    }

    /// The idle instance of `node` that goes first, with its claim to stay. Looking at all of them is rare
    /// work, and keeping them in order would be work for every call.
    fn least_worth(&self, node: u32) -> Option<(Claim, u32)> {
        let here = self.nodes[node as usize].instances.iter().copied();
        here.filter(|&instance| self.instances[instance].is_idle())
            .map(|instance| (self.claim_to_stay(instance), instance))
            .min()
    }

    fn claim_to_stay(&self, instance: u32) -> Claim {
        let state = &self.instances[instance];
        (self.functions[state.function as usize].worth, state.rest)
    }

    /// An instance is gone with everything it held; its calls have left before.
    pub(crate) fn stop_instance(&mut self, instance: u32) {
        debug_assert!(self.instances[instance].calls.is_empty());
        let Instance { function, node, stage, rest, held, .. } = self.instances[instance];
        if stage == Stage::Ready {
            if rest != Rest::NONE {
                self.functions[function as usize].kept = held.memory;
                self.end_idling(instance);
            }
            remove_item(&mut self.functions[function as usize].open, instance);
            self.functions[function as usize].ready -= 1;
        } else {
            self.end_prewarming(instance);
            self.functions[function as usize].starting -= 1;
        }
        by_kind!(self => stop(instance));
        self.gauges.sub(Gauge::Instances, 1);
        self.gauges.instance_changes += 1;
        remove_item(&mut self.nodes[node as usize].instances, instance);
        self.instances.free(instance);
    }

    /// An instance can serve.
    pub(crate) fn on_ready(&mut self, instance: u32, token: Token) {
        let Some(state) = self.instances.get_mut(instance).filter(|state| state.token == token)
        else {
            return;
        };
        let (function, node) = (state.function, state.node);
        let call = state.calls.first().copied();
        self.end_prewarming(instance);
        self.instances[instance].stage = Stage::Ready;
        self.instances[instance].start.1 = self.now;
        self.functions[function as usize].starting -= 1;
        self.functions[function as usize].ready += 1;
        match call {
            Some(call) => self.begin_run(call),
            None => by_kind!(self => place_is_free(function, instance)),
        }
        self.settle(node);
    }

    /// Sets the reminder of the end of the longest idle instance's keep-alive, if none is set.
    #[inline(always)]
    fn watch_keep_alive(&mut self, function: u32) {
        let state = &self.functions[function as usize];
        if state.expiry == Token::NONE && state.keep_alive != Duration::MAX {
            self.remind_of_keep_alive(function);
        }
    }

    fn remind_of_keep_alive(&mut self, function: u32) {
        let state = &self.functions[function as usize];
        if let Some(longest) = state.idle.first(&self.instances) {
            let at = self.instances[longest].idle_since + state.keep_alive;
            let token = self.queue.push(at.max(self.now), Event::KeepAliveEnds(function));
            self.functions[function as usize].expiry = token;
        }
    }

    /// Idle instances whose keep-alive has passed go, down to the number that is to stand ready.
    pub(crate) fn on_keep_alive_end(&mut self, function: u32, token: Token) {
        if self.functions[function as usize].expiry != token {
            return;
        }
        self.functions[function as usize].expiry = Token::NONE;
        self.stop_expired(function);
        if self.functions[function as usize].idle.len() > self.kept(function) {
            self.watch_keep_alive(function);
        }
    }

    /// Idle instances that stay whatever their age, because a tick wants them.
    fn kept(&self, function: u32) -> u32 {
        let state = &self.functions[function as usize];
        let busy = state.ready - state.idle.len();
        state.target_instances.unwrap_or(0).saturating_sub(busy + state.starting)
    }

    fn stop_expired(&mut self, function: u32) {
        let keep_alive = self.functions[function as usize].keep_alive;
        while self.functions[function as usize].idle.len() > self.kept(function) {
            let Some(longest) = self.functions[function as usize].idle.first(&self.instances)
            else {
                return;
            };
            let (since, node) = (self.instances[longest].idle_since, self.instances[longest].node);
            if since + keep_alive > self.now {
                return;
            }
            self.stop_instance(longest);
            self.settle(node);
        }
    }

    /// Brings the number of instances to the target of the last tick.
    pub(crate) fn follow_target(&mut self, function: u32) {
        let Some(target_instances) = self.functions[function as usize].target_instances else {
            return;
        };
        let present = |state: &crate::function::Function| state.ready + state.starting;
        while present(&self.functions[function as usize]) < target_instances {
            if !self.start_without_call(function, false) {
                break;
            }
        }
        if self.settings.scale_out == ScaleOut::OnTick {
            while present(&self.functions[function as usize]) > target_instances {
                let Some(longest) = self.functions[function as usize].idle.first(&self.instances)
                else {
                    break;
                };
                let node = self.instances[longest].node;
                self.stop_instance(longest);
                self.settle(node);
            }
        }
        self.watch_keep_alive(function);
    }

    /// Starts an instance that no call is bound to; false if no node has room. Idle instances give way
    /// to one that a call waits for. One that is only expected to be needed must not push out what
    /// another function needs a second later: pre-warming that evicts feeds on itself.
    pub(crate) fn start_without_call(&mut self, function: u32, is_awaited: bool) -> bool {
        let held = by_kind!(self => size_ahead(function));
        let evicts = is_awaited || by_kind!(self => evicts_ahead());
        let Some(node) = self.node_for_instance(function, held, evicts) else { return false };
        let at = self.place_of(function, node);
        let instance = self.begin_instance(function, at, held);
        by_kind!(self => hold_ahead(instance));
        self.instances[instance].ceiling = self.functions[function as usize].begun_under;
        let cold = self.cold_start_of(function);
        let cold = self.start_under_limit(cold, instance);
        let token = self.queue.push(self.now + cold, Event::InstanceReady(instance));
        self.instances[instance].token = token;
        true
    }

    fn cold_start_of(&mut self, function: u32) -> Duration {
        if !self.settings.cold_starts {
            return Duration::ZERO;
        }
        // Numbers far above any call's, so that the draws differ from those of calls.
        self.prewarmed += 1;
        let law = self.functions[function as usize].cold_start;
        self.cold_noise.cold_start(law, u64::MAX - self.prewarmed)
    }

    fn node_for_instance(&mut self, function: u32, held: Allocation, evicts: bool) -> Option<u32> {
        loop {
            let node = match self.settings.placement {
                Placement::LeastLoaded => self.least_loaded(held),
                Placement::WarmFirst => self.node_without_idle(function, held, evicts),
                Placement::HomeInvoker | Placement::CoverageAware => {
                    self.home_walk(function, held).map(|place| place.node)
                }
            };
            if !evicts {
                return node.filter(|&node| self.nodes[node as usize].fits_beside_idle(held));
            }
            if node.is_some() || !by_kind!(self => stops_idle_for_instances()) {
                return node;
            }
            let nodes = 0..self.nodes.len() as u32;
            let (_, least) = nodes.filter_map(|node| self.least_worth(node)).min()?;
            self.stop_instance(least);
        }
    }

    /// The least loaded node with room for one more instance, one without an idle instance of the function if there
    /// is such a node: what a full node keeps from calls two instances there are kept from alike.
    fn node_without_idle(&self, function: u32, held: Allocation, evicts: bool) -> Option<u32> {
        let idle = &self.functions[function as usize].idle;
        let has_idle = |node| idle.tops().any(|top| self.instances[top].node == node);
        let all = || 0..self.nodes.len() as u32;
        let fits =
            |node: &Node| node.book.has_room(held) && (evicts || node.fits_beside_idle(held));
        let others = all().filter(|&node| !has_idle(node));
        self.least_loaded_of(others, fits).or_else(|| self.least_loaded_of(all(), fits))
    }
}
