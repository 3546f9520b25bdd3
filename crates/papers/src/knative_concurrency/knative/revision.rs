//! One revision: its pods on their nodes, its activator, and where each request is.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use windfall_core::Seed;
use windfall_sim::noise::Noise;

use super::outcome::{End, Tally};
use super::pod::{Joining, Memory, Pod, Stage};
use super::request::RequestWork;
use super::settings::KnativeSettings;

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The next request comes.
    Arrives,
    /// A pod can serve; stale if its generation has moved on.
    PodReady(u32, u32),
    /// Something ends in a pod.
    PodTurns(u32, u32),
    /// A request wakes up.
    Wakes(u32),
    /// A whole second.
    Second(u64),
}

#[derive(Clone, Copy, Debug)]
struct Request {
    arrived_ns: u64,
    started_ns: Option<u64>,
    pod: u32,
    has_computed: bool,
    has_slept: bool,
    has_ended: bool,
}

/// The state of a load test.
pub(super) struct Revision<'a> {
    pub(super) settings: &'a KnativeSettings,
    work: RequestWork,
    limit: u32,
    noise: Noise,
    pub(super) now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    pushed: u64,
    requests: Vec<Request>,
    pods: Vec<Pod>,
    /// When each node can start its next pod.
    nodes_free_ns: Vec<u64>,
    activator: VecDeque<u32>,
    turn: usize,
    pub(super) is_proxied: bool,
    pub(super) in_system: u32,
    pub(super) ready: u32,
    pub(super) tally: Tally,
}

impl<'a> Revision<'a> {
    pub(super) fn new(
        settings: &'a KnativeSettings,
        work: RequestWork,
        limit: u32,
        seed: Seed,
    ) -> Self {
        Self {
            settings,
            work,
            limit,
            noise: Noise::new(seed),
            now: 0,
            events: BinaryHeap::new(),
            pushed: 0,
            requests: Vec::new(),
            pods: Vec::new(),
            nodes_free_ns: vec![0; settings.nodes as usize],
            activator: VecDeque::new(),
            turn: 0,
            is_proxied: true,
            in_system: 0,
            ready: 0,
            tally: Tally::default(),
        }
    }

    pub(super) fn push(&mut self, at: u64, event: Event) {
        self.pushed += 1;
        self.events.push(Reverse((at, self.pushed, event)));
    }

    /// The next event, with the time moved on to it.
    pub(super) fn next_event(&mut self) -> Option<Event> {
        let Reverse((at, _, event)) = self.events.pop()?;
        self.tally.ready_ns += (at - self.now) as f64 * f64::from(self.ready);
        self.now = at;
        Some(event)
    }

    /// A request comes in.
    pub(super) fn arrive(&mut self) {
        let request = self.requests.len() as u32;
        self.requests.push(Request {
            arrived_ns: self.now,
            started_ns: None,
            pod: 0,
            has_computed: false,
            has_slept: false,
            has_ended: false,
        });
        self.in_system += 1;
        if self.is_proxied || self.ready == 0 {
            return match self.pod_with_place() {
                Some(pod) => self.start(pod, request),
                None if self.activator.len() < self.settings.activator_queue => {
                    self.activator.push_back(request);
                }
                None => self.end(request, End::Refused),
            };
        }
        let pod = self.next_ready_pod();
        let depth = (self.settings.queue_depth * self.limit) as usize;
        if self.has_place(pod) {
            self.start(pod, request);
        } else if self.pods[pod].waiting.len() < depth {
            self.pods[pod].waiting.push_back(request);
        } else {
            self.end(request, End::Refused);
        }
    }

    fn has_place(&self, pod: usize) -> bool {
        let pod = &self.pods[pod];
        pod.stage == Stage::Ready && pod.in_service.len() < self.limit as usize
    }

    /// The next pod in turn that has a place, as the activator chooses.
    fn pod_with_place(&mut self) -> Option<usize> {
        let count = self.pods.len();
        let found = (1..=count).map(|step| (self.turn + step) % count);
        let found = found.into_iter().find(|pod| self.has_place(*pod))?;
        self.turn = found;
        Some(found)
    }

    /// The next ready pod in turn, as a service without an activator chooses.
    fn next_ready_pod(&mut self) -> usize {
        let count = self.pods.len();
        let mut steps = (1..=count).map(|step| (self.turn + step) % count);
        let found = steps.find(|pod| self.pods[*pod].stage == Stage::Ready);
        self.turn = found.unwrap_or(self.turn);
        self.turn
    }

    fn start(&mut self, pod: usize, request: u32) {
        let RequestWork { touch_ns, sieve_ns, sleep, spread, .. } = self.work;
        let subject = u64::from(request);
        let scale = |nanos: f64, draw: u64| {
            (nanos * (spread * self.noise.normal(subject, draw)).exp()).round() as u64
        };
        let joining = Joining { touch: scale(touch_ns, 0), sieve: scale(sieve_ns, 1).max(1) };
        let state = &mut self.requests[request as usize];
        state.started_ns = Some(self.now);
        state.pod = pod as u32;
        state.has_slept = sleep.is_zero();
        if !sleep.is_zero() {
            self.push(self.now + sleep.as_nanos(), Event::Wakes(request));
        }
        self.pods[pod].catch_up(self.now);
        self.pods[pod].join(request, joining);
        self.plan_turn(pod);
    }

    fn plan_turn(&mut self, pod: usize) {
        let state = &mut self.pods[pod];
        state.generation += 1;
        let generation = state.generation;
        if let Some(at) = state.next_turn() {
            self.push(at, Event::PodTurns(pod as u32, generation));
        }
    }

    /// Something ends in a pod: computing of requests, or all of it.
    pub(super) fn turn(&mut self, pod: u32, generation: u32) {
        let place = pod as usize;
        if self.pods[place].generation != generation {
            return;
        }
        self.pods[place].catch_up(self.now);
        if self.pods[place].is_out_of_memory() {
            return self.kill(place);
        }
        while let Some(request) = self.pods[place].next_computed() {
            self.requests[request as usize].has_computed = true;
            self.answer_if_done(request);
        }
        self.refill(place);
    }

    pub(super) fn wake(&mut self, request: u32) {
        let state = &mut self.requests[request as usize];
        if state.has_ended {
            return;
        }
        state.has_slept = true;
        let pod = state.pod as usize;
        if state.has_computed {
            self.pods[pod].catch_up(self.now);
            self.answer_if_done(request);
            self.refill(pod);
        }
    }

    fn answer_if_done(&mut self, request: u32) {
        let state = self.requests[request as usize];
        if state.has_computed && state.has_slept {
            self.pods[state.pod as usize].leave(request);
            let started = state.started_ns.unwrap_or(self.now);
            self.tally.in_service_ns += (self.now - started) as f64;
            self.end(request, End::Answered);
        }
    }

    /// A request leaves the system.
    fn end(&mut self, request: u32, end: End) {
        let state = &mut self.requests[request as usize];
        state.has_ended = true;
        let latency = self.now - state.arrived_ns + self.settings.network.as_nanos();
        let timeout = self.settings.client_timeout.as_nanos();
        let end = if latency > timeout { End::TimedOut } else { end };
        let latency = latency.min(timeout);
        self.in_system -= 1;
        self.tally.end(end, latency, state.arrived_ns + latency);
    }

    /// Free places of a pod go to those who wait at it, then to those at the activator.
    fn refill(&mut self, pod: usize) {
        while self.has_place(pod) {
            let own = self.pods[pod].waiting.pop_front();
            let Some(request) = own.or_else(|| self.activator.pop_front()) else { break };
            let waited = self.now - self.requests[request as usize].arrived_ns;
            if waited > self.settings.client_timeout.as_nanos() {
                self.end(request, End::TimedOut);
            } else {
                self.start(pod, request);
            }
        }
        self.plan_turn(pod);
        if self.pods[pod].stage == Stage::Draining && self.pods[pod].in_service.is_empty() {
            self.pods[pod].stage = Stage::Gone;
        }
    }

    /// The container ran out of memory: all its requests are lost, and it comes back after a while.
    fn kill(&mut self, pod: usize) {
        let state = &mut self.pods[pod];
        let lost: Vec<u32> = state.in_service.drain(..).chain(state.waiting.drain(..)).collect();
        state.clear();
        state.kills += 1;
        state.generation += 1;
        let (kills, generation) = (state.kills, state.generation);
        let was_ready = state.stage == Stage::Ready;
        state.stage = if was_ready { Stage::Starting } else { Stage::Gone };
        for request in lost {
            let started = self.requests[request as usize].started_ns.unwrap_or(self.now);
            self.tally.in_service_ns += (self.now - started) as f64;
            self.end(request, End::Killed);
        }
        if was_ready {
            self.ready -= 1;
            let settings = self.settings;
            let backoff = match kills {
                1 => 0,
                more => settings.restart_backoff.as_nanos() << (more - 2).min(5),
            };
            let at = self.now + settings.restart.as_nanos() + backoff;
            self.push(at, Event::PodReady(pod as u32, generation));
        }
    }

    pub(super) fn pod_is_ready(&mut self, pod: u32, generation: u32) {
        let place = pod as usize;
        let state = &mut self.pods[place];
        if state.stage != Stage::Starting || state.generation != generation {
            return;
        }
        state.begin(self.now);
        self.ready += 1;
        self.refill(place);
    }

    /// Brings the number of pods to `wanted`, as far as the nodes have room.
    pub(super) fn scale_to(&mut self, wanted: u32) {
        let counts = |pod: &Pod| matches!(pod.stage, Stage::Starting | Stage::Ready);
        let present = self.pods.iter().filter(|pod| counts(pod)).count() as u32;
        for _ in present..wanted {
            if !self.start_pod() {
                break;
            }
        }
        // The youngest go first; what they have they end.
        for place in (0..self.pods.len()).rev().filter(|_| present > wanted) {
            let left = self.pods.iter().filter(|pod| counts(pod)).count() as u32;
            if left <= wanted || !counts(&self.pods[place]) {
                continue;
            }
            self.drain(place);
        }
    }

    fn drain(&mut self, place: usize) {
        let was_ready = self.pods[place].stage == Stage::Ready;
        self.ready -= u32::from(was_ready);
        let state = &mut self.pods[place];
        let is_idle = state.in_service.is_empty();
        state.stage = if is_idle { Stage::Gone } else { Stage::Draining };
        // Those who wait there are sent to others.
        let waiting: Vec<u32> = state.waiting.drain(..).collect();
        for request in waiting.into_iter().rev() {
            self.activator.push_front(request);
        }
    }

    /// Starts a pod on the node with the fewest; false if none has room.
    fn start_pod(&mut self) -> bool {
        let settings = self.settings;
        let on = |node: u32| {
            let lives = |pod: &&Pod| pod.node == node && pod.stage != Stage::Gone;
            self.pods.iter().filter(lives).count() as u32
        };
        let free = (0..settings.nodes).map(|node| (on(node), node)).min();
        let Some((_, node)) = free.filter(|(count, _)| *count < settings.pods_per_node) else {
            return false;
        };
        let subject = u64::MAX - self.pods.len() as u64;
        let turn = self.nodes_free_ns[node as usize].max(self.now);
        self.nodes_free_ns[node as usize] = turn + settings.start_spacing.as_nanos();
        let noise = (settings.cold_start_sigma * self.noise.normal(subject, 0)).exp();
        let at = turn + settings.cold_start.scaled(noise).as_nanos();
        let own = settings.pod_speed_sigma * self.noise.normal(subject, 1);
        let shared = settings.test_speed_sigma * self.noise.normal(u64::MAX, 2);
        let speed = (own + shared).exp();
        let memory = Memory {
            base: settings.pod_base_mib,
            limit: settings.pod_memory_mib,
            per_request: self.work.memory_mib,
        };
        self.pods.push(Pod::new(node, settings.pod_cores * speed, memory));
        self.push(at, Event::PodReady(self.pods.len() as u32 - 1, 0));
        true
    }

    /// The test is over: who still waits is given up by the client.
    pub(super) fn give_up(&mut self) {
        let now = self.now;
        for pod in &mut self.pods {
            if matches!(pod.stage, Stage::Ready | Stage::Draining) {
                pod.catch_up(now);
            }
            self.tally.used_cores_ns += pod.used_cores_ns;
            self.tally.used_mib_ns += pod.used_mib_ns;
        }
        for request in 0..self.requests.len() as u32 {
            if !self.requests[request as usize].has_ended {
                let state = self.requests[request as usize];
                self.now = self.now.max(state.arrived_ns + self.settings.client_timeout.as_nanos());
                self.end(request, End::TimedOut);
            }
        }
    }
}
