//! A reference that knows the count of every minute and nothing about times inside: what a perfect
//! forecast of counts would be worth to the price rule. It is no strict bound; a cleverer use of the counts
//! could do better, and where arrivals inside a minute are not Poisson it does worse than it could.
//!
//! ```text
//!   minute with n calls   arrivals are taken for Poisson of rate n / 60 s
//!     level k             held while rate x P(at least k C in the system) x weight > price x MiB
//!   minutes without       held over if that costs less than starting again, else started one lead ahead
//! ```

use windfall_core::{
    Decision, Duration, FunctionView, Needs, Observation, Policy, PolicyError, SafeguardChain,
    Seed, Setting, Target, Workload,
};
use windfall_policy::Fixed;
use windfall_registry::Assembled;
use windfall_scenario::run::RunError;
use windfall_scenario::settings::Scenario;

/// What the family is called.
pub const NAME: &str = "minute-oracle";

/// Knows counts per minute.
struct MinuteOracle {
    price: f64,
    /// By function and minute.
    counts: Vec<Vec<u32>>,
    /// Mean run time by function, seconds.
    runs: Vec<f64>,
}

/// The oracle for a scenario and a seed, with everything counted.
pub(super) fn assemble(scenario: &Scenario, seed: u64) -> Result<Assembled, RunError> {
    let mut workload = scenario.trace.open(Seed::new(seed))?;
    let table = scenario.policy_settings.get(NAME);
    let price = table.and_then(|table| table.get("price")).and_then(toml::Value::as_float);
    Ok(Assembled {
        call: Box::new(Fixed),
        call_safeguards: Vec::new(),
        tick: Some(Box::new(MinuteOracle::count(workload.as_mut(), price.unwrap_or(1e-4)))),
        tick_safeguards: SafeguardChain::default(),
        foresight: false,
        admission: None,
        looks_while_short: None,
        by_weight: false,
        ticks_resize_only: false,
    })
}

impl MinuteOracle {
    fn count(workload: &mut dyn Workload, price: f64) -> Self {
        let minutes = workload.horizon().as_nanos().div_ceil(60_000_000_000) as usize;
        let sizes: Vec<_> = workload.functions().iter().map(|one| one.reservation.cpu).collect();
        let mut counts = vec![vec![0; minutes]; sizes.len()];
        let mut runs = vec![0.0; sizes.len()];
        while let Some(arrival) = workload.next_arrival() {
            let place = arrival.function.index();
            let minute = (arrival.at.as_nanos() / 60_000_000_000) as usize;
            counts[place][minute.min(minutes - 1)] += 1;
            runs[place] += arrival.demand.run_time(sizes[place]).as_secs_f64();
        }
        for (run, counts) in runs.iter_mut().zip(&counts) {
            *run /= f64::from(counts.iter().sum::<u32>().max(1));
        }
        Self { price, counts, runs }
    }

    fn instances(&self, view: &FunctionView, seen: &Observation) -> usize {
        let place = view.function.index();
        let (counts, run) = (&self.counts[place], self.runs[place]);
        let now = seen.now.as_nanos() as f64 * 1e-9;
        let lead = view.cold_start.as_secs_f64() + seen.window.as_secs_f64();
        let hold = self.price * view.allocation.memory.mib();
        let places = view.concurrency.max(1) as usize;
        let needed = (view.in_flight + view.queued).div_ceil(places as u32) as usize;
        let count_at = |seconds: f64| counts.get((seconds / 60.0) as usize).copied().unwrap_or(0);
        let soon = count_at(now).max(count_at(now + lead));
        if soon > 0 {
            return needed.max(self.levels(f64::from(soon) / 60.0, run, hold, (view, places)));
        }
        let minute = (now / 60.0) as usize;
        let next = (minute..counts.len()).find(|&minute| counts[minute] > 0);
        let has_one = (view.ready + view.starting).get() > 0;
        let is_worth = next.is_some_and(|next| {
            let away = 60.0 * next as f64 - now;
            has_one && hold * away < hold * lead
        });
        needed.max(usize::from(is_worth))
    }

    /// Instances that pay at Poisson arrivals of this rate.
    fn levels(
        &self,
        rate: f64,
        run: f64,
        hold: f64,
        (view, places): (&FunctionView, usize),
    ) -> usize {
        let cold = view.cold_start.as_secs_f64();
        let load = rate * run;
        let (mut term, mut below, mut found) = ((-load).exp(), 0.0, 0usize);
        let mut level = 0;
        loop {
            // The share of arrivals that find at least `level x places` calls.
            while found < level * places {
                below += term;
                found += 1;
                term *= load / found as f64;
            }
            let wait = if level == 0 { cold } else { cold.min(run / (level * places) as f64) };
            let weight = (wait / (0.1 * run.max(0.1))).min(1.0);
            if level >= 1000 || rate * (1.0 - below).max(0.0) * weight <= hold {
                return level;
            }
            level += 1;
        }
    }
}

impl Policy for MinuteOracle {
    fn name(&self) -> &str {
        NAME
    }

    fn needs(&self) -> Needs {
        Needs { presence: true }
    }

    fn decide(&mut self, seen: &Observation) -> Result<Decision, PolicyError> {
        let target = |view: &FunctionView| Target {
            instances: Setting::Set(self.instances(view, seen) as f64),
            keep_alive: Setting::Set(seen.window.max(Duration::from_secs(1))),
            ..Target::keep(view.function)
        };
        let targets = seen.functions.iter().map(target).collect();
        Ok(Decision { targets, reason: "counts of all minutes are known".to_owned() })
    }
}
