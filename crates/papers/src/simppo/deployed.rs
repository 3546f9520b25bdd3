//! Trained agents on a platform that is no environment: pods of a cluster whose replicas and size they turn together.
//!
//! ```text
//!   view of a function, its objective and latency ─► own row (7) ─┐
//!   mean of the other functions' rows (7), coverage ──────────────┼─► the network for all ─► one of seven moves
//!   objective, run time, cold start (3) ──────────────────────────┘
//! ```
//!
//! What environments know and a platform does not is replaced. SLO preservation is the objective over the latency at the
//! objective's percentile, at most 1; in training it is the mean of the same ratio over all calls, so agents here see misses
//! sooner. A function that has no neighbours is shown itself as its neighbours: training knows no empty world, and zeros
//! would stand for neighbours that fail in everything.
//!
//! *Worked example.* Two pods of 500m use 0.6 cores together, p95 is 250 ms and the objective 200 ms: the row begins with 0.8
//! and 0.6. A move `out` makes it three pods, `up` two pods of 628m.

use std::collections::BTreeMap;

use windfall_core::{Duration, FunctionId, FunctionView, Observation, Setting, Target};
pub use windfall_gym::moves::Range;
use windfall_gym::moves::{Deployment, Moves};
use windfall_gym::multi::{FEATURES, FunctionRow};
use windfall_gym::reward::Earned;
use windfall_gym::scaling::target_of;
use windfall_gym::world::Rates;
use windfall_rl::{Checkpoint, CheckpointError, Decide, Feature, NetworkPolicy, Spec};

use super::auxiliary::{Auxiliary, Field, OWN, Report};
use super::context::{CONTEXT, CONTEXT_NAMES, write_times};

/// The kind of checkpoint that holds such a network.
pub const KIND: &str = "windfall/MultiScaling-v1/mean-field";
/// What it reads of the others.
const AUXILIARY: Auxiliary = Auxiliary::MeanField;
/// A pod keeps so much more memory than was seen in use.
const MEMORY_ROOM: f64 = 1.1;

/// What the network reads and what it may do.
pub fn spec() -> Spec {
    let own = FEATURES.iter().map(|name| (*name).to_owned());
    let others = FEATURES.iter().map(|name| format!("others_{name}"));
    let rest = ["coverage".to_owned()].into_iter().chain(CONTEXT_NAMES.map(str::to_owned));
    let names = own.chain(others).chain(rest);
    Spec {
        id: KIND.to_owned(),
        features: names.map(|name| Feature::new(&name, -10.0, 10.0)).collect(),
        actions: Moves::paper().names(),
    }
}

/// What a function should achieve, and does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// The latency that calls are to stay below.
    pub latency: Duration,
    /// The latency at the same percentile, as measured; nothing without calls.
    pub measured: Option<Duration>,
    /// Calls per second, as measured.
    pub per_second: f64,
    /// What its user allows.
    pub range: Range,
}

/// What is remembered of a function from one tick to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    instances: u32,
    turned: i32,
    per_second: f64,
    memory_highest: f64,
}

/// One network that decides for all functions.
#[derive(Debug)]
pub struct Agents {
    network: NetworkPolicy,
    moves: Moves,
    pasts: BTreeMap<FunctionId, Past>,
}

/// A function in one tick.
struct Seen<'a> {
    view: &'a FunctionView,
    objective: Objective,
    deployment: Deployment,
    past: Past,
    row: [f32; OWN],
}

impl Agents {
    /// The agents in a file; refused if it reads or does something else.
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        checkpoint.header.check_environment(&spec())?;
        let network = checkpoint.policy()?;
        Ok(Self { network, moves: Moves::paper(), pasts: BTreeMap::new() })
    }

    /// One move for every function that has an objective.
    pub fn decide(
        &mut self,
        seen: &Observation,
        objective_of: impl Fn(FunctionId) -> Option<Objective>,
    ) -> Vec<Target> {
        let known = seen.functions.iter().filter_map(|view| {
            let objective = objective_of(view.function)?;
            Some(self.look(view, objective))
        });
        let known: Vec<Seen<'_>> = known.collect();
        let mut field = Field::default();
        let report = |one: &Seen<'_>| Report { row: one.row, is_live: true, ..Report::default() };
        let mut reports: Vec<Report> = known.iter().map(report).collect();
        if reports.len() == 1 {
            reports.push(reports[0]);
        }
        field.gather(&reports, reports.len());
        let chosen = known.iter().enumerate();
        chosen.filter_map(|(agent, one)| self.choose(agent, one, &field)).collect()
    }

    fn look<'a>(&mut self, view: &'a FunctionView, objective: Objective) -> Seen<'a> {
        let instances = view.ready.get() + view.starting.get();
        let deployment = Deployment {
            instances,
            cpu: view.allocation.cpu.get(),
            memory: view.allocation.memory.get(),
        };
        let now = (instances, objective.per_second, view.memory_peak_mib);
        let (past, before) = self.remember(view.function, now);
        let share = |used: f64, held: f64| if held > 0.0 { (used / held).min(1.0) } else { 0.0 };
        let preserved = objective.measured.map_or(1.0, |measured| {
            (objective.latency.as_secs_f64() / measured.as_secs_f64().max(1e-9)).min(1.0)
        });
        let earned = Earned {
            preserved,
            cpu_utilisation: share(
                view.cpu_used_cores,
                f64::from(instances) * view.allocation.cpu.cores(),
            ),
            memory_utilisation: share(view.memory_peak_mib, view.allocation.memory.mib()),
            ..Earned::default()
        };
        let rates = Rates { now: objective.per_second, before };
        let mut row = [0.0; OWN];
        // In proportion to the ranges of the training, whatever the user allows.
        FunctionRow { earned, deployment, range: Range::default(), rates }.write(&mut row);
        Seen { view, objective, deployment, past, row }
    }

    /// Takes in what a function has now; also its rate before.
    fn remember(
        &mut self,
        function: FunctionId,
        (instances, per_second, memory): (u32, f64, f64),
    ) -> (Past, f64) {
        let first = Past { instances, per_second, ..Past::default() };
        let past = self.pasts.entry(function).or_insert(first);
        let went = instances.cmp(&past.instances) as i32;
        let before = past.per_second;
        *past = Past {
            instances,
            turned: went,
            per_second,
            memory_highest: past.memory_highest.max(memory),
        };
        (*past, before)
    }

    fn choose(&mut self, agent: usize, one: &Seen<'_>, field: &Field) -> Option<Target> {
        let Seen { view, objective, deployment, past, row } = one;
        // Without pods there is nothing to turn; what starts the first one is not the agent's business.
        if deployment.instances == 0 {
            return None;
        }
        let others = OWN + AUXILIARY.width();
        let mut input = vec![0.0; others + CONTEXT];
        input[..OWN].copy_from_slice(row);
        field.write(AUXILIARY, agent, &mut input[OWN..others]);
        let millis = |time: Duration| time.as_millis_f64();
        let run = view.mean_run.map_or(0.0, millis);
        write_times(millis(objective.latency), run, millis(view.cold_start), &mut input[others..]);
        let known = (past.turned, MEMORY_ROOM * past.memory_highest);
        let moves = self.moves.list();
        let is_allowed =
            |step: &windfall_gym::moves::Move| step.is_allowed(*deployment, objective.range, known);
        let allowed: Vec<bool> = moves.iter().map(is_allowed).collect();
        let place = self.network.decide(&input, &allowed);
        let step = self.moves.list()[place];
        let wanted = step.apply(*deployment, objective.range).filter(|_| !step.is_hold())?;
        let changed = target_of(view.function.index(), wanted);
        let only = |is_turned: bool, setting| if is_turned { setting } else { Setting::Keep };
        Some(Target {
            instances: only(step.instances != 0, changed.instances),
            cpu_cores: only(step.cpu != 0, changed.cpu_cores),
            memory_mib: only(step.memory != 0, changed.memory_mib),
            why: format!(
                "move {}: {:.0} % of the objective met, {:.0} % of the CPU used",
                self.moves.names()[place],
                row[0] * 100.0,
                row[1] * 100.0
            ),
            ..changed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simppo::{Method, Team, TeamSettings};
    use windfall_core::{Allocation, Instances, MilliCpu, Seed};

    /// Agents that always want this move where it is allowed, else hold.
    fn wanting(action: usize) -> Agents {
        let mut settings = TeamSettings::new(Method::Simppo(AUXILIARY), 1).shared();
        settings.hold_bias = 0.0;
        let mut checkpoint =
            Team::new(settings, 2, Seed::new(1)).deciding().expect("one network for all");
        let last = checkpoint.header.network.clone().expect("a network").hidden.len();
        let bias = (0..7).map(|place| match place {
            0 => 50.0,
            _ if place == action => 100.0,
            _ => 0.0,
        });
        let bias = windfall_rl::checkpoint::Tensor::F32(vec![7], bias.collect());
        checkpoint.put(&format!("actor.{last}.bias"), bias);
        Agents::from_checkpoint(&checkpoint).expect("the same kind")
    }

    fn view(pods: u32) -> FunctionView {
        let samples = windfall_core::conformance::observations();
        let mut view = samples.into_iter().flat_map(|seen| seen.functions).next().expect("one");
        view.function = FunctionId(0);
        view.allocation = Allocation::new(500, 256);
        view.ready = Instances::new(pods);
        view.starting = Instances::ZERO;
        view.cpu_used_cores = 0.6;
        view.memory_peak_mib = 100.0;
        view
    }

    fn decided(agents: &mut Agents, view: FunctionView) -> Option<Target> {
        let objective = Objective {
            latency: Duration::from_millis(200),
            measured: Some(Duration::from_millis(250)),
            per_second: 10.0,
            range: Range { instances: (1, 3), ..Range::default() },
        };
        let seen = Observation { functions: vec![view], ..Observation::default() };
        agents.decide(&seen, |_| Some(objective)).pop()
    }

    #[test]
    fn the_worked_moves_hold() {
        let out = decided(&mut wanting(1), view(2)).expect("a move");
        assert_eq!((out.instances, out.cpu_cores), (Setting::Set(3.0), Setting::Keep));
        assert!(out.why.contains("80 % of the objective met, 60 % of the CPU"), "{}", out.why);
        let up = decided(&mut wanting(3), view(2)).expect("a move");
        assert_eq!((up.instances, up.cpu_cores), (Setting::Keep, Setting::Set(0.628)));
    }

    #[test]
    fn what_the_user_forbids_and_a_return_at_once_are_no_moves() {
        assert!(decided(&mut wanting(1), view(3)).is_none(), "three pods are the most");
        let mut agents = wanting(2);
        assert!(decided(&mut agents, view(2)).is_some(), "one pod less");
        assert!(decided(&mut agents, view(3)).is_none(), "one was just added");
        assert!(decided(&mut wanting(6), view(2)).is_some(), "192 MiB are enough for 100");
        let full = FunctionView { memory_peak_mib: 200.0, ..view(2) };
        assert!(decided(&mut wanting(6), full).is_none(), "192 MiB are too few for 200");
    }

    #[test]
    fn without_pods_or_objective_nothing_is_turned() {
        assert!(decided(&mut wanting(1), view(0)).is_none());
        let seen = Observation { functions: vec![view(2)], ..Observation::default() };
        assert!(wanting(1).decide(&seen, |_| None).is_empty());
    }

    #[test]
    fn agents_on_a_platform_choose_as_in_training() {
        let team =
            Team::new(TeamSettings::new(Method::Simppo(AUXILIARY), 1).shared(), 2, Seed::new(1));
        let bytes = team.deciding().expect("one network").to_bytes().expect("written");
        let read = Checkpoint::from_bytes(&bytes).expect("read");
        assert_eq!(read.header.environment, spec());
        let own = TeamSettings::new(Method::Simppo(AUXILIARY), 1);
        assert!(Team::new(own, 2, Seed::new(1)).deciding().is_none(), "a network each");
        // A fresh network holds, as in training.
        let mut small = view(2);
        small.allocation.cpu = MilliCpu::new(500);
        assert!(decided(&mut Agents::from_checkpoint(&read).expect("known"), small).is_none());
    }
}
