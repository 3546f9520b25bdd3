//! The shared nodes of `windfall/MultiScaling-v1` as processes of this machine.
//!
//! ```text
//!   deployments ─► instances, weights, memory limits ─► one tick of real calls ─► what every function earned
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinHandle;
use windfall_control::{CallLoop, ControlLoop};
use windfall_core::{
    Allocation, CallDemand, CallSafeguardChain, CpuCeiling, Decision, FunctionId, Observation,
    Platform, Policy, SafeguardChain, Seed, Setting, Target,
};
use windfall_embedded::pool::{ScaleOut, SizedBy};
use windfall_embedded::{AgentSettings, EmbeddedPlatform};
use windfall_functions::Builtin;
use windfall_gym::SharedSettings;
use windfall_gym::moves::{Deployment, Range};
use windfall_gym::multi::FunctionRow;
use windfall_gym::profile::ServiceProfile;
use windfall_gym::reward::Earned;
use windfall_gym::shared_nodes::function_load::{CallStream, FunctionLoad};
use windfall_gym::shared_nodes::rules::{RuleSettings, Staffing};
use windfall_gym::shared_nodes::world::{TICK, first_deployment};
use windfall_gym::world::Rates;
use windfall_openwhisk::Ran;
use windfall_papers::simppo::arena::Arena;
use windfall_policy::{Fixed, Queueing, QueueingSettings};
use windfall_sandbox::Host;

use super::tally::Tally;
use crate::error::ExperimentError;
use crate::live_scaling::Nobody;
use crate::stand::Stand;

/// Real cores for one of the environment.
pub(super) const CORE: f64 = 0.25;
/// Memory of the environment for one MiB here.
const MEMORY_SCALE: f64 = 8.0;
/// What a process needs beside its calls, MiB.
const PROCESS_MIB: f64 = 8.0;
/// Weight of 1024 shares, cores. Only proportions count; the most shares (2048) stay below every ceiling, the fewest (128)
/// above what the kernel takes.
const SHARE_CORES: f64 = 0.4 * CORE;
const _: () = assert!(2.0 * SHARE_CORES < 0.85 * CORE && 0.125 * SHARE_CORES > 0.01);
/// Shorter periods make a quota of a quarter core smoother.
const PERIOD: Duration = Duration::from_millis(20);
/// Instances must stand ready within this at the beginning.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// A call under way.
struct Waiting {
    due: Instant,
    handle: JoinHandle<Ran>,
}

/// Processes, calls and what was counted of one episode.
struct Episode {
    // Before the stand, whose agent they share.
    platform: EmbeddedPlatform,
    control: ControlLoop,
    stand: Stand,
    loads: Vec<FunctionLoad>,
    calls: Vec<CallStream>,
    waiting: Vec<Vec<Waiting>>,
    begin: Instant,
    /// Time of the environment, seconds.
    now: f64,
    /// Memory of a process that has served no call, MiB.
    idle_mib: f64,
}

/// What is known of one function.
#[derive(Clone, Copy, Debug)]
struct Known {
    deployment: Deployment,
    turned: i32,
    is_reversal: bool,
    earned: Earned,
    rates: Rates,
    memory_highest: f64,
}

pub(super) struct LiveArena {
    host: Arc<Host>,
    settings: SharedSettings,
    /// Which rule [`Arena::propose`] follows.
    rule: RuleSettings,
    /// Seconds of the environment in one here.
    speed: f64,
    /// Nanoseconds of CPU per thousand steps of the function.
    per_thousand: f64,
    episode: Option<Episode>,
    known: Vec<Known>,
    ticks: u64,
    seen: Observation,
    pub(super) tally: Tally,
    /// Why the episode cannot go on.
    pub(super) problem: Option<String>,
}

impl LiveArena {
    pub(super) fn new(
        host: Arc<Host>,
        settings: SharedSettings,
        rule: RuleSettings,
        tick_seconds: f64,
    ) -> Self {
        Self {
            host,
            rule,
            speed: TICK / tick_seconds,
            per_thousand: per_thousand(),
            episode: None,
            known: Vec::new(),
            ticks: 0,
            seen: Observation::default(),
            tally: Tally::new(settings.functions.len()),
            problem: None,
            settings,
        }
    }

    fn carry_out(&mut self, wanted: &[Deployment]) {
        let range = self.range();
        for (known, wanted) in self.known.iter_mut().zip(wanted) {
            let wanted = within(*wanted, range);
            let went = wanted.instances.cmp(&known.deployment.instances) as i32;
            known.is_reversal = went * known.turned < 0;
            (known.turned, known.deployment) = (went, wanted);
        }
        if let Some(episode) = &mut self.episode {
            let wanted: Vec<Deployment> = self.known.iter().map(|one| one.deployment).collect();
            episode.set(&wanted);
            episode.pass(self.speed, self.per_thousand);
        }
        self.count();
    }

    /// What the tick that has just passed came to.
    fn count(&mut self) {
        let Some(episode) = &mut self.episode else { return };
        let Some(seen) = episode.see() else {
            self.problem = Some("the agent does not answer".to_owned());
            return;
        };
        let preserved = episode.preserved(self.speed, &mut self.tally);
        for (place, view) in seen.functions.iter().enumerate() {
            let known = &mut self.known[place];
            let Deployment { cpu, memory, .. } = known.deployment;
            let standing = view.ready.get() + view.starting.get();
            let held = f64::from(standing * cpu) / 1024.0;
            let used = view.cpu_used_cores / CORE;
            let memory_used = (view.memory_peak_mib - episode.idle_mib).max(0.0) * MEMORY_SCALE;
            known.memory_highest = known.memory_highest.max(memory_used);
            let share = |used: f64, of: f64| if of > 0.0 { (used / of).min(1.0) } else { 0.0 };
            known.earned = Earned {
                preserved: preserved[place],
                cpu_utilisation: share(used, held),
                memory_utilisation: share(known.memory_highest, f64::from(memory)),
                is_without_instances: standing == 0 && (view.arrivals > 0 || view.queued > 0),
                is_reversal: known.is_reversal,
            };
            let now = f64::from(view.arrivals) / TICK;
            known.rates = Rates { now, before: known.rates.now };
            self.tally.tick(place, held * TICK, &known.earned);
        }
        self.seen = in_its_own_time(seen, episode, self.speed);
    }
}

impl Episode {
    fn start(
        host: &Arc<Host>,
        settings: &SharedSettings,
        seed: Seed,
    ) -> Result<Self, ExperimentError> {
        let mut agent = AgentSettings::new(Allocation::new(40_000, 65_536));
        agent.pool.sized_by = SizedBy::Instance;
        agent.pool.scale_out = ScaleOut::OnTick;
        agent.pool.pause_after = None;
        agent.quota_period = PERIOD;
        let calls = CallLoop::new(Box::new(Fixed), CallSafeguardChain::default());
        let mut stand = Stand::new(host, agent, Box::new(calls))?;
        let loads = settings.loads(seed);
        let service = Builtin::named("service").expect("it is built in");
        for load in &loads {
            let first = first_deployment(&load.profile);
            let size = Allocation::new((SHARE_CORES * 1e3) as u32, memory_limit(first) as u32);
            stand.deploy_as(load.profile.name, service, 1, size);
        }
        let platform = EmbeddedPlatform::new(Arc::clone(&stand.agent));
        let control = ControlLoop::new(Box::new(Nobody), SafeguardChain::default());
        let stream = |(index, load)| CallStream::new(load, seed, index);
        let mut episode = Self {
            calls: loads.iter().enumerate().map(stream).collect(),
            waiting: loads.iter().map(|_| Vec::new()).collect(),
            loads,
            platform,
            control,
            stand,
            begin: Instant::now(),
            now: 0.0,
            idle_mib: 0.0,
        };
        let first: Vec<Deployment> =
            episode.loads.iter().map(|load| first_deployment(&load.profile)).collect();
        episode.set(&first);
        episode.wait_until_ready();
        episode.begin = Instant::now();
        Ok(episode)
    }

    fn set(&mut self, wanted: &[Deployment]) {
        let target = |(place, (wanted, load)): (usize, (&Deployment, &FunctionLoad))| {
            let parallel = f64::from(load.profile.parallelism) * 1e-3;
            Target {
                instances: Setting::Set(f64::from(wanted.instances)),
                cpu_cores: Setting::Set(f64::from(wanted.cpu) / 1024.0 * SHARE_CORES),
                cpu_ceiling: Setting::Set(CpuCeiling::At(CORE * parallel)),
                memory_mib: Setting::Set(memory_limit(*wanted)),
                keep_alive: Setting::Set(windfall_core::Duration::from_millis(1)),
                ..Target::keep(FunctionId(place as u32))
            }
        };
        let targets = wanted.iter().zip(&self.loads).enumerate().map(target).collect();
        if let Some(seen) = self.see() {
            let decision = Decision { targets, reason: String::new() };
            self.control.carry_out(&mut self.platform, seen, decision);
        }
    }

    fn see(&mut self) -> Option<Observation> {
        let now = self.platform.agent().clock().now();
        self.platform.observe(now).ok()
    }

    fn wait_until_ready(&mut self) {
        let until = Instant::now() + READY_WITHIN;
        while Instant::now() < until {
            if let Some(seen) = self.see()
                && seen.functions.iter().all(|view| view.ready.get() >= 2)
            {
                let idle = seen.functions.iter().map(|view| view.memory_peak_mib);
                self.idle_mib = idle.fold(f64::INFINITY, f64::min);
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn moment(&self, at: f64, speed: f64) -> Instant {
        self.begin + Duration::from_secs_f64(at / speed)
    }

    /// Lets a tick pass with its calls.
    fn pass(&mut self, speed: f64, per_thousand: f64) {
        let end = self.now + TICK;
        let mut due: Vec<(f64, usize, CallDemand)> = Vec::new();
        for (place, (calls, load)) in self.calls.iter_mut().zip(&self.loads).enumerate() {
            while let Some(at) = calls.next_before(end) {
                due.push((at, place, calls.demand(load)));
                calls.draw_next(load, at);
            }
        }
        due.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (at, place, demand) in due {
            let moment = self.moment(at, speed);
            crate::faasrm::sleep_until(moment);
            let parameters = parameters(&demand, speed, per_thousand);
            let name = self.loads[place].profile.name;
            let handle = self.stand.send(name, &parameters, moment);
            self.waiting[place].push(Waiting { due: moment, handle });
        }
        crate::faasrm::sleep_until(self.moment(end, speed));
        self.now = end;
    }

    /// SLO preservation of every function in the tick that has just ended: of calls that have ended, and of those that
    /// are too late already.
    fn preserved(&mut self, speed: f64, tally: &mut Tally) -> Vec<f64> {
        let now = Instant::now();
        let mut sums = vec![(0.0, 0.0); self.loads.len()];
        for record in self.stand.heard.take() {
            let place = record.function.index();
            let slo = self.loads[place].profile.slo_ms;
            let latency = record.ended_at.since(record.arrived_at).as_millis_f64() * speed;
            let is_answered = record.end == windfall_core::CallEnd::Completed;
            tally.call(place, is_answered.then_some(latency), slo);
            sums[place].0 += if is_answered { (slo / latency).min(1.0) } else { 0.0 };
            sums[place].1 += 1.0;
        }
        for (place, waiting) in self.waiting.iter_mut().enumerate() {
            let slo = self.loads[place].profile.slo_ms;
            waiting.retain(|call| !call.handle.is_finished());
            for call in waiting.iter() {
                let age = now.saturating_duration_since(call.due).as_secs_f64() * 1e3 * speed;
                if age > slo {
                    sums[place].0 += slo / age;
                    sums[place].1 += 1.0;
                }
            }
        }
        sums.into_iter().map(|(sum, count)| if count > 0.0 { sum / count } else { 1.0 }).collect()
    }
}

impl Arena for LiveArena {
    type Rule = Option<Queueing>;

    fn new_rule(&self) -> Option<Queueing> {
        let Staffing::Queueing { wait_share, half_life } = self.rule.staffing else { return None };
        Some(Queueing::new(QueueingSettings {
            wait_share,
            rate_half_life_seconds: half_life,
            ..QueueingSettings::default()
        }))
    }

    /// Four instances where the rule is no queueing rule; nobody turns back at once.
    fn propose(&self, rule: &mut Option<Queueing>) -> Vec<Deployment> {
        let mut counts = vec![4; self.known.len()];
        if let Some(rule) = rule {
            counts = self.known.iter().map(|known| known.deployment.instances).collect();
            for target in rule.decide(&self.seen).unwrap_or_default().targets {
                if let (Some(count), Setting::Set(instances)) =
                    (counts.get_mut(target.function.index()), target.instances)
                {
                    *count = instances.ceil().max(1.0) as u32;
                }
            }
        }
        let propose = |(count, known): (u32, &Known)| {
            let goes = count.cmp(&known.deployment.instances) as i32;
            let instances =
                if goes * known.turned < 0 { known.deployment.instances } else { count };
            Deployment { instances, ..known.deployment }
        };
        counts.into_iter().zip(&self.known).map(propose).collect()
    }

    fn agents(&self) -> usize {
        self.settings.functions.len()
    }

    fn episode_ticks(&self) -> u64 {
        self.settings.ticks
    }

    fn ticks(&self) -> u64 {
        self.ticks
    }

    fn is_over(&self) -> bool {
        self.ticks >= self.settings.ticks || self.problem.is_some()
    }

    fn is_active(&self, _agent: usize) -> bool {
        true
    }

    fn deployment(&self, agent: usize) -> Deployment {
        self.known[agent].deployment
    }

    fn turned(&self, agent: usize) -> i32 {
        self.known[agent].turned
    }

    fn memory_floor(&self, agent: usize) -> f64 {
        1.1 * self.known[agent].memory_highest
    }

    fn range(&self) -> Range {
        Range::default()
    }

    fn cores(&self) -> f64 {
        self.settings.nodes.count as f64 * self.settings.nodes.cores
    }

    fn profile(&self, agent: usize) -> ServiceProfile {
        windfall_gym::profile::TWELVE[self.settings.functions[agent] as usize % 12]
    }

    fn write_row(&self, agent: usize, row: &mut [f32]) {
        let Known { earned, deployment, rates, .. } = self.known[agent];
        FunctionRow { earned, deployment, range: self.range(), rates }.write(row);
    }

    fn write_mask(&self, agent: usize, allowed: &mut [bool]) {
        let known = &self.known[agent];
        let floor = self.memory_floor(agent);
        for (step, allowed) in self.settings.moves.list().iter().zip(allowed) {
            *allowed = step.is_allowed(known.deployment, self.range(), (known.turned, floor));
        }
    }

    fn reward(&self, agent: usize) -> f64 {
        self.settings.reward.pay(&self.known[agent].earned).total()
    }

    fn act(&mut self, wanted: &[Deployment]) {
        self.carry_out(wanted);
        self.ticks += 1;
    }

    /// Starts fresh processes and warms up for two ticks, as the environment does.
    fn reset(&mut self, seed: Seed) {
        self.episode = None;
        (self.ticks, self.problem) = (0, None);
        match Episode::start(&self.host, &self.settings, seed) {
            Ok(episode) => self.episode = Some(episode),
            Err(error) => self.problem = Some(error.to_string()),
        }
        let first: Vec<Deployment> =
            (0..self.agents()).map(|agent| first_deployment(&self.profile(agent))).collect();
        let known = |&deployment: &Deployment| Known {
            deployment,
            turned: 0,
            is_reversal: false,
            earned: Earned { preserved: 1.0, ..Earned::default() },
            rates: Rates::default(),
            memory_highest: 0.0,
        };
        self.known = first.iter().map(known).collect();
        self.carry_out(&first);
        self.carry_out(&first);
        self.tally = Tally::new(self.agents());
    }
}

fn within(wanted: Deployment, range: Range) -> Deployment {
    Deployment {
        instances: wanted.instances.clamp(range.instances.0, range.instances.1),
        cpu: wanted.cpu.clamp(range.cpu.0, range.cpu.1),
        memory: wanted.memory.clamp(range.memory.0, range.memory.1),
    }
}

/// The memory limit of an instance, MiB.
fn memory_limit(deployment: Deployment) -> f64 {
    PROCESS_MIB + f64::from(deployment.memory) / MEMORY_SCALE
}

/// The parameters of a call of the environment here.
fn parameters(demand: &CallDemand, speed: f64, per_thousand: f64) -> serde_json::Value {
    // A core-second is 1000 millicores times 1e9 ns.
    let cpu_ns = demand.work as f64 * 1e-3 * CORE / speed;
    json!({
        "wait_us": (demand.fixed.as_secs_f64() * 1e6 / speed) as u64,
        "thousand_steps": (cpu_ns / per_thousand) as u64,
        "memory_kib": (f64::from(demand.memory_peak.get()) * 1024.0 / MEMORY_SCALE) as u64,
    })
}

/// The observation in seconds and cores of the environment, for rules.
fn in_its_own_time(mut seen: Observation, episode: &Episode, speed: f64) -> Observation {
    let at = windfall_core::Timestamp::from_nanos((episode.now * 1e9) as u64);
    (seen.now, seen.taken_at) = (at, at);
    seen.window = windfall_core::Duration::from_secs_f64(TICK);
    for (view, load) in seen.functions.iter_mut().zip(&episode.loads) {
        view.mean_run = view.mean_run.map(|run| run.scaled(speed));
        view.mean_wait = view.mean_wait.map(|wait| wait.scaled(speed));
        view.cpu_used_cores /= CORE;
        view.cold_start = windfall_core::Duration::from_millis(load.profile.cold_start_ms);
    }
    seen
}

/// Nanoseconds of CPU per thousand steps, the best of some tries in this process.
fn per_thousand() -> f64 {
    const THOUSANDS: u32 = 5_000;
    let Some(service) = Builtin::named("service") else { return 1000.0 };
    let tries = (0..7).map(|_| {
        let begin = Instant::now();
        // A failure would be instant and show in absurd latencies; there is none for this number.
        let _ = service.run(&json!({ "thousand_steps": THOUSANDS }));
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(THOUSANDS)
    });
    tries.fold(f64::INFINITY, f64::min).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_scaled_in_time_cpu_and_memory() {
        let demand = CallDemand {
            // One core for one second.
            work: 1_000_000_000_000,
            fixed: windfall_core::Duration::from_millis(200),
            memory_peak: windfall_core::Mebibytes::new(80),
            ..windfall_gym::profile::TWELVE[0]
                .draw(&mut windfall_rl::random::Draw::new(Seed::new(1)))
        };
        // Five times as fast on a quarter of a core: 50 ms of CPU, at 2 us per thousand steps.
        let call = parameters(&demand, 5.0, 2000.0);
        assert_eq!(
            call,
            json!({"wait_us": 40_000, "thousand_steps": 25_000, "memory_kib": 10_240})
        );
        let most = Deployment { instances: 1, cpu: 2048, memory: 64 };
        assert_eq!(memory_limit(most), 16.0);
    }
}
