//! Which concurrency limit a service should have, on real processes: load tests over HTTP, with Knative's own autoscaler
//! deciding on the number of instances.
//!
//! ```text
//!   windfall-load ── HTTP ──► OpenWhisk's API ─► gateway ─► up to 8 processes of 0.2 cores, `limit` calls each
//!                                                  ▲
//!       once a second: calls in the system ─► Knative's autoscaler ─► instances
//! ```
//!
//! The paper has 63 pods on 144 cores; here are 8 of the same 0.2 cores. Load stays at 500 requests a second and each
//! request is an eighth: of the memory it allocates, of the numbers it sieves, of the time it sleeps. So requests in the
//! system per place, memory per pod and CPU per pod keep their proportions. A pod has 416 MiB: an eighth of
//! the simulated 6656, and half of that again because nothing here keeps garbage.

mod autoscale;
mod load_test;
mod on_knative;

use windfall_papers::knative_concurrency::knative::{
    KnativeSettings, LoadTestOutcome, RequestShape,
};
use windfall_papers::knative_concurrency::reproduce::{
    Plan, WorkloadTests, conclude, tested_limits,
};
use windfall_papers::knative_concurrency::workloads::MOST_TELLING;
use windfall_papers::knative_concurrency::{LIMITS, Workload};
use windfall_studies::reproduce::knative_concurrency::{Place, present};
use windfall_studies::reproduce::{Reproduced, Request, Stage, Watcher};

use crate::error::ExperimentError;
use crate::host::host;

/// Every request is the paper's, divided by this.
const SMALLER: u32 = 8;
/// Instances at most.
const PODS: u32 = 8;
/// CPU of an instance, thousandths of a core.
const POD_CPU: u32 = 200;
/// Memory of an instance, MiB.
const POD_MEMORY: u32 = 416;
/// Requests per second.
const RATE: f64 = 500.0;

/// How the experiment is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Load tests per limit. With two, one judges and the other is for the learners; with one both use the same.
    pub repetitions: u32,
    /// Seconds of a load test.
    pub seconds: f64,
    /// Runs per learner.
    pub runs: u32,
    /// Only the limits 10, 70 and 310, on one workload.
    pub is_quick: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { repetitions: 2, seconds: 10.0, runs: 10, is_quick: false }
    }
}

impl Settings {
    /// One short test of three limits: shows that everything works.
    pub fn quick() -> Self {
        Self { repetitions: 1, seconds: 1.5, runs: 2, is_quick: true }
    }

    fn check(&self) -> Result<(), ExperimentError> {
        let refuse = |name, value: f64, allowed| {
            Err(ExperimentError::Setting { name, value: value.to_string(), allowed })
        };
        match self {
            _ if !(1..=20).contains(&self.repetitions) => {
                refuse("--repetitions", self.repetitions.into(), "1 to 20")
            }
            _ if !(1.0..=300.0).contains(&self.seconds) => {
                refuse("--seconds", self.seconds, "1 to 300")
            }
            _ => Ok(()),
        }
    }

    /// The workloads with requests of an eighth.
    fn workloads(&self) -> Vec<Workload> {
        let all = windfall_papers::knative_concurrency::workloads::WORKLOADS.iter();
        let telling = all.filter(|workload| MOST_TELLING.contains(&workload.name));
        let smaller = telling.map(|workload| {
            let RequestShape { bloat_mib, prime, sleep_ms } = workload.shape;
            let part = |amount: u32| amount.div_ceil(SMALLER);
            let shape = RequestShape {
                bloat_mib: part(bloat_mib),
                prime: part(prime),
                sleep_ms: part(sleep_ms),
            };
            Workload { shape, ..*workload }
        });
        smaller.take(if self.is_quick { 1 } else { usize::MAX }).collect()
    }

    /// Whether a limit is tested; in the quick form the others repeat the nearest one below that is.
    fn tests(&self, limit: u32) -> bool {
        !self.is_quick || [LIMITS[0], LIMITS[3], LIMITS[15]].contains(&limit)
    }
}

/// Makes the experiment on this machine. Call it before any thread exists.
pub fn reproduce(
    request: &Request<'_>,
    settings: &Settings,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ExperimentError> {
    settings.check()?;
    let host = host("the concurrency experiment")?;
    let mut test = |shape, limit| load_test::run(&host, shape, limit, settings.seconds);
    reproduce_with(request, settings, watcher, &mut test, &place(settings))
}

/// Makes the experiment on the Knative of the cluster that `KUBECONFIG` names, at `rate` requests a second.
pub fn reproduce_on_knative(
    request: &Request<'_>,
    settings: &Settings,
    rate: f64,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ExperimentError> {
    settings.check()?;
    if !(1.0..=10_000.0).contains(&rate) {
        let (value, allowed) = (rate.to_string(), "1 to 10000");
        return Err(ExperimentError::Setting { name: "--rate", value, allowed });
    }
    let mut knative = on_knative::OnKnative::start(rate)?;
    let mut test = |shape, limit| knative.test(shape, limit, settings.seconds);
    reproduce_with(request, settings, watcher, &mut test, &place_on_knative(settings, rate))
}

/// Runs one load test.
type Tester<'a> = dyn FnMut(RequestShape, u32) -> Result<LoadTestOutcome, ExperimentError> + 'a;

fn reproduce_with(
    request: &Request<'_>,
    settings: &Settings,
    watcher: &dyn Watcher,
    test: &mut Tester<'_>,
    place: &Place,
) -> Result<Reproduced, ExperimentError> {
    let plan = Plan {
        repetitions: settings.repetitions,
        seeds: settings.runs,
        workloads: settings.workloads(),
        ..Plan::full()
    };
    let limits = tested_limits().into_iter().filter(|limit| settings.tests(*limit)).count() as u64;
    let all = limits * plan.workloads.len() as u64 * u64::from(settings.repetitions);
    watcher.begin(Stage::LoadTests(all));
    let mut tests = Vec::new();
    for workload in &plan.workloads {
        tests.push(test_all(settings, workload, test, watcher)?);
    }
    watcher.end();
    let result = conclude(&plan, platform(), &tests);
    Ok(present(request, &plan, &result, place)?)
}

/// All limits of a workload, forwards in odd repetitions and backwards in even ones.
fn test_all(
    settings: &Settings,
    workload: &Workload,
    test: &mut Tester<'_>,
    watcher: &dyn Watcher,
) -> Result<WorkloadTests, ExperimentError> {
    let limits = tested_limits();
    let mut made = vec![Vec::new(); limits.len()];
    for repetition in 0..settings.repetitions {
        let mut order: Vec<usize> = (0..limits.len()).collect();
        if repetition % 2 == 1 {
            order.reverse();
        }
        for place in order {
            if settings.tests(limits[place]) {
                made[place].push(test(workload.shape, limits[place])?);
                watcher.advance(1);
            }
        }
    }
    for place in 1..made.len() {
        if made[place].is_empty() {
            made[place] = made[place - 1].clone();
        }
    }
    // Half of the tests judge and the other half is for the learners, where there are two halves.
    let half = (settings.repetitions as usize).div_ceil(2);
    let judging = made.iter().map(|tests| tests[..half.min(tests.len())].to_vec()).collect();
    let rest = |tests: &Vec<_>| match tests.len() > half {
        true => tests[half..].to_vec(),
        false => tests.clone(),
    };
    Ok(WorkloadTests { workload: *workload, judging, learning: made.iter().map(rest).collect() })
}

/// What of the simulated platform's settings has a counterpart here.
fn platform() -> KnativeSettings {
    KnativeSettings {
        nodes: 1,
        pods_per_node: PODS,
        pod_cores: f64::from(POD_CPU) / 1e3,
        pod_memory_mib: f64::from(POD_MEMORY),
        ..KnativeSettings::default()
    }
}

fn place(settings: &Settings) -> Place {
    let row = |what: &str, value: String, from: &str| [what.to_owned(), value, from.to_owned()];
    Place {
        subtitle: format!(
            "{} load tests per limit on real processes, {} runs per learner, {RATE} requests a second for {} s each",
            settings.repetitions, settings.runs, settings.seconds
        ),
        made: vec![
            row("requests", format!("an eighth of the simulated ones, {RATE} a second for {} s over HTTP", settings.seconds), "chosen"),
            row("pods", format!("at most {PODS} processes with {POD_CPU}m and {POD_MEMORY} MiB each"), "chosen"),
            row("start of a pod", "some milliseconds: a real process, one at once".to_owned(), "this machine"),
            row("autoscaler", "Knative's, exact, with its defaults; it sees what the platform counts every second".to_owned(), "recorded decisions"),
            row("queue", "one per function, in order of arrival; no limit per pod".to_owned(), "this platform"),
            row("memory above the limit", "the kernel kills the process with all its requests".to_owned(), "this machine"),
            row("learners' tests", "drawn from the tests that were made, as in simulation".to_owned(), "chosen"),
        ],
        lead: "Everything but the learners' draws was measured on this machine. What differs from the simulated \
               platform: pods start a thousand times as fast, and the platform has one queue before all pods."
            .to_owned(),
    }
}

fn place_on_knative(settings: &Settings, rate: f64) -> Place {
    let row = |what: &str, value: String, from: &str| [what.to_owned(), value, from.to_owned()];
    Place {
        subtitle: format!(
            "{} load tests per limit on Knative, {} runs per learner, {rate} requests a second for {} s each",
            settings.repetitions, settings.runs, settings.seconds
        ),
        made: vec![
            row(
                "requests",
                format!(
                    "an eighth of the simulated ones, {rate} a second for {} s over HTTP",
                    settings.seconds
                ),
                "chosen",
            ),
            row(
                "pods",
                format!("at most {PODS} pods with limits of {POD_CPU}m and {POD_MEMORY}Mi"),
                "chosen",
            ),
            row(
                "limit",
                "containerConcurrency of a new Revision per test".to_owned(),
                "as published",
            ),
            row(
                "autoscaler, activator, queue-proxy",
                "Knative's own, with the cluster's settings".to_owned(),
                "the cluster",
            ),
            row(
                "CPU and memory",
                "the kubelets' summaries, twice a second".to_owned(),
                "the cluster",
            ),
            row(
                "learners' tests",
                "drawn from the tests that were made, as in simulation".to_owned(),
                "chosen",
            ),
        ],
        lead: "Everything but the learners' draws was measured on the cluster.".to_owned(),
    }
}
