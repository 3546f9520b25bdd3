//! The server of one episode: containers, co-tenants and requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinHandle;
use windfall_control::{CallLoop, ControlLoop};
use windfall_core::{
    Allocation, CallSafeguardChain, CpuCeiling, Decision, FunctionId, Observation, Platform,
    Policy, PolicyError, SafeguardChain, Seed, Setting, Target,
};
use windfall_embedded::pool::{ScaleOut, SizedBy};
use windfall_embedded::{AgentSettings, EmbeddedPlatform};
use windfall_functions::Builtin;
use windfall_openwhisk::Ran;
use windfall_papers::ece471::Row;
use windfall_papers::ece471::table::{SERVICE_RATE, SLO_SECONDS};
use windfall_policy::Fixed;
use windfall_rl::random::Draw;
use windfall_sandbox::Host;

use crate::error::ExperimentError;
use crate::stand::Stand;

/// How much faster than in the exercise time runs.
const SPEED: f64 = 20.0;
/// Real cores for one of the exercise.
const CORE: f64 = 0.25;
/// Real cores that the server is taken to have; those of the exercise times [`CORE`].
const CORES: f64 = 2.0;
/// Shares of a container with a core of its own.
const SHARES: f64 = 1024.0;
/// The containers' function.
const CONTAINER: FunctionId = FunctionId(0);
/// The co-tenants' function.
const OTHERS: FunctionId = FunctionId(1);
/// Shorter periods make a quota of a quarter core smoother.
const PERIOD: Duration = Duration::from_millis(20);
/// Containers must stand ready within this at the beginning.
const READY_WITHIN: Duration = Duration::from_secs(3);

/// What the server is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Setup {
    pub(super) containers: u32,
    pub(super) shares: u32,
    pub(super) others: u32,
    pub(super) rate: u32,
}

impl Setup {
    /// What all containers may use together, cores: each its quota, or their part by weight if that is less.
    fn entitled_cores(&self) -> f64 {
        let own = f64::from(self.containers * self.shares);
        let by_weight = CORES * own / (own + f64::from(self.others)).max(1.0);
        (CORE * f64::from(self.containers)).min(by_weight)
    }
}

/// A call under way.
struct Waiting {
    due: Instant,
    handle: JoinHandle<Ran>,
}

pub(super) struct Server {
    // Before the stand, whose agent they share.
    platform: EmbeddedPlatform,
    control: ControlLoop,
    stand: Stand,
    draw: Draw,
    /// Nanoseconds of CPU per number that is sieved.
    per_number: f64,
    waiting: Vec<Waiting>,
    hungry: Option<JoinHandle<Ran>>,
    in_force: Option<Setup>,
}

impl Server {
    pub(super) fn start(
        host: &Arc<Host>,
        setup: Setup,
        seed: Seed,
    ) -> Result<Self, ExperimentError> {
        let mut settings = AgentSettings::new(Allocation::new(20_000, 8192));
        settings.pool.sized_by = SizedBy::Instance;
        settings.pool.scale_out = ScaleOut::OnTick;
        settings.pool.pause_after = None;
        settings.quota_period = PERIOD;
        let calls = CallLoop::new(Box::new(Fixed), CallSafeguardChain::default());
        let mut stand = Stand::new(host, settings, Box::new(calls))?;
        for name in ["autoscale", "arithmetic"] {
            if let Some(builtin) = Builtin::named(name) {
                stand.deploy(builtin, 1);
            }
        }
        let platform = EmbeddedPlatform::new(Arc::clone(&stand.agent));
        let control = ControlLoop::new(Box::new(Nobody), SafeguardChain::default());
        let mut server = Self {
            platform,
            control,
            stand,
            draw: Draw::new(seed.stream("live requests")),
            per_number: per_number(),
            waiting: Vec::new(),
            hungry: None,
            in_force: None,
        };
        server.set(setup);
        server.wait_for(setup.containers);
        Ok(server)
    }

    /// Has the platform carry out what differs from what is in force.
    fn set(&mut self, setup: Setup) {
        if self.in_force == Some(setup) {
            return;
        }
        self.in_force = Some(setup);
        // Half of what they stand for, so that the most shares (2048) guarantee no more than the quota: only their
        // proportions count.
        let cores = |shares: u32| f64::from(shares) / SHARES * CORE / 2.0;
        let container = Target {
            instances: Setting::Set(f64::from(setup.containers)),
            cpu_cores: Setting::Set(cores(setup.shares)),
            cpu_ceiling: Setting::Set(CpuCeiling::At(CORE)),
            keep_alive: Setting::Set(windfall_core::Duration::from_millis(1)),
            ..Target::keep(CONTAINER)
        };
        let others = Target {
            instances: Setting::Set(1.0),
            cpu_cores: Setting::Set(cores(setup.others)),
            cpu_ceiling: Setting::Set(CpuCeiling::Unlimited),
            ..Target::keep(OTHERS)
        };
        let decision = Decision { targets: vec![container, others], reason: String::new() };
        if let Some(seen) = self.see() {
            self.control.carry_out(&mut self.platform, seen, decision);
        }
    }

    fn see(&mut self) -> Option<Observation> {
        let now = self.platform.agent().clock().now();
        self.platform.observe(now).ok()
    }

    fn wait_for(&mut self, containers: u32) {
        let until = Instant::now() + READY_WITHIN;
        while Instant::now() < until {
            let ready = self.see().and_then(|seen| Some(seen.functions.first()?.ready.get()));
            if ready.is_some_and(|ready| ready >= containers) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lets `seconds` pass with requests at the rate of `setup`; what they came to, in the exercise's seconds.
    pub(super) fn pass(&mut self, setup: Setup, seconds: f64) -> Row {
        self.set(setup);
        self.feed_co_tenants();
        // What was used until now belongs to the step before.
        self.see();
        self.stand.heard.take();
        let begin = Instant::now();
        let end = begin + Duration::from_secs_f64(seconds);
        let rate = f64::from(setup.rate) * SPEED;
        let mut due = begin + self.gap(rate);
        while due < end {
            crate::faasrm::sleep_until(due);
            let prime = self.numbers();
            let handle = self.stand.send("autoscale", &json!({ "prime": prime }), due);
            self.waiting.push(Waiting { due, handle });
            due += self.gap(rate);
        }
        crate::faasrm::sleep_until(end);
        let used = self.see().and_then(|seen| Some(seen.functions.first()?.cpu_used_cores));
        let util = used.unwrap_or(0.0) / setup.entitled_cores().max(1e-9);
        let latency = self.latency(end) * SPEED;
        let slo = if setup.containers == 0 { 0.0 } else { (SLO_SECONDS / latency).min(1.0) };
        Row { util: util.min(1.0), slo, latency }
    }

    /// Seconds to the next request: exponential.
    fn gap(&mut self, rate: f64) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.draw.unit()).ln() / rate.max(1e-3))
    }

    /// Numbers to sieve by the next request: exponential work, 8.3 ms on average.
    fn numbers(&mut self) -> u32 {
        let mean = CORE / SERVICE_RATE / SPEED;
        let work = -(1.0 - self.draw.unit()).ln() * mean;
        (work * 1e9 / self.per_number).clamp(100.0, 50_000_000.0) as u32
    }

    /// Co-tenants are never idle.
    fn feed_co_tenants(&mut self) {
        if self.hungry.as_ref().is_none_or(JoinHandle::is_finished) {
            let endless = json!({ "million_steps": 100_000, "threads": 2 });
            self.hungry = Some(self.stand.send("arithmetic", &endless, Instant::now()));
        }
    }

    /// Mean latency of the calls that ended in this step, and of those that have waited longer than that already, seconds.
    fn latency(&mut self, end: Instant) -> f64 {
        self.stand.agent.status();
        let records = self.stand.heard.take();
        let own = records.iter().filter(|record| record.function == CONTAINER);
        let ended: Vec<f64> =
            own.map(|record| record.ended_at.since(record.arrived_at).as_secs_f64()).collect();
        self.waiting.retain(|call| !call.handle.is_finished());
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let typical = mean(&ended);
        let ages = self.waiting.iter().map(|call| end.duration_since(call.due).as_secs_f64());
        let long: Vec<f64> = ages.filter(|age| *age > typical).collect();
        mean(&[ended, long].concat()).max(1e-4)
    }
}

/// Nanoseconds of CPU per number, the best of some tries in this process.
fn per_number() -> f64 {
    const NUMBERS: u32 = 2_000_000;
    let Some(builtin) = Builtin::named("autoscale") else { return 2.0 };
    let tries = (0..7).map(|_| {
        let begin = Instant::now();
        // A failure would be instant and show in absurd latencies; there is none for this number.
        let _ = builtin.run(&json!({ "prime": NUMBERS }));
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(NUMBERS)
    });
    tries.fold(f64::INFINITY, f64::min).max(0.1)
}

/// Decisions come from the environment's steps.
pub(crate) struct Nobody;

impl Policy for Nobody {
    fn name(&self) -> &str {
        "nobody"
    }

    fn decide(&mut self, _seen: &Observation) -> Result<Decision, PolicyError> {
        Ok(Decision::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn co_tenants_take_what_their_weight_gives_them() {
        let alone = Setup { containers: 4, shares: 1024, others: 0, rate: 1 };
        assert!((alone.entitled_cores() - 1.0).abs() < 1e-9, "four quarters");
        let crowded = Setup { others: 9216, ..alone };
        assert!((crowded.entitled_cores() - 2.0 * 4.0 / 13.0).abs() < 1e-9);
        let more = Setup { shares: 2048, ..crowded };
        assert!(more.entitled_cores() > crowded.entitled_cores());
    }
}
