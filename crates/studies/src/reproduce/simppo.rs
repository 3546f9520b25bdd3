//! SIMPPO: many agents on shared nodes, what they learn, and how they grow.

mod page;

use serde::Serialize;
use windfall_core::Seed;
use windfall_gym::Split;
use windfall_gym::multi::MultiScaling;
use windfall_papers::simppo::online::{LOAD, world_of};
use windfall_papers::simppo::{
    Auxiliary, Method, ReproduceSettings, Results, Team, TeamSettings, reproduce as play,
};

use super::{ReproduceError, Reproduced, Request, Stage, Watcher};

/// What a training tick of many agents takes.
#[derive(Clone, Copy, Debug, Serialize)]
struct Cost {
    agents: usize,
    learner_ms_per_tick: f64,
    simulator_ms_per_tick: f64,
    bytes_per_agent: usize,
}

#[derive(Serialize)]
struct Numbers {
    #[serde(flatten)]
    results: Results,
    cost: Cost,
}

/// Reads seconds on a clock of the caller's; only differences between two readings matter.
pub type Stopwatch<'a> = &'a dyn Fn() -> f64;

/// Trains and tests every method, lets a team grow, and measures with `stopwatch` what a training tick takes.
pub fn reproduce(
    request: &Request<'_>,
    stopwatch: Stopwatch<'_>,
    watcher: &dyn Watcher,
) -> Result<Reproduced, ReproduceError> {
    let mut settings =
        if request.quick { ReproduceSettings::quick() } else { ReproduceSettings::new(5) };
    if let Some(seeds) = request.seeds {
        settings.seeds = (1..=u64::from(seeds.max(1))).collect();
    }
    settings.threads = request.threads;
    watcher.begin(Stage::AgentEpisodes(settings.units()));
    let results = play(&settings, &|units| watcher.advance(units));
    watcher.end();
    let numbers = Numbers { cost: cost(110, stopwatch), results };
    let page = page::page(request, &numbers.results, numbers.cost, &settings);
    Reproduced::new(page, page::text(&numbers.results), &numbers)
}

/// The learner's own time and the simulator's, tick by tick of one episode with `agents`.
fn cost(agents: usize, stopwatch: Stopwatch<'_>) -> Cost {
    let world = world_of(1, (0..agents as u64).collect(), Split::Training, LOAD);
    let method = Method::Simppo(Auxiliary::MeanField);
    let mut team = Team::new(TeamSettings::new(method, 10), agents, Seed::new(1));
    let mut env = MultiScaling::new(world.clone(), Seed::new(2));
    let ticks = world.ticks as usize;
    let start = stopwatch();
    team.rehearse(&env, ticks);
    let learner = stopwatch() - start;
    let start = stopwatch();
    let nobody = vec![None; agents];
    while !env.is_over() {
        env.step(&nobody);
    }
    let simulator = stopwatch() - start;
    Cost {
        agents,
        learner_ms_per_tick: learner * 1000.0 / ticks as f64,
        simulator_ms_per_tick: simulator * 1000.0 / ticks as f64,
        bytes_per_agent: team.bytes() / agents,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windfall_papers::simppo::online::OnlineRow;

    fn row(policy: &str, reward: f64, p99_ms: f64) -> OnlineRow {
        OnlineRow {
            policy: policy.to_owned(),
            function: "ocr".to_owned(),
            seed: 1,
            reward,
            p99_ms,
            slo_ms: 1000.0,
            slo_preserved: 0.9,
            utilisation: 0.4,
            core_seconds_granted: 100.0,
        }
    }

    #[test]
    fn heuristics_that_win_come_first_and_one_seed_has_no_deviation() {
        let online = vec![
            row("simppo", 150.0, 2000.0),
            row("isolated", 160.0, 1000.0),
            row("queueing", 155.0, 3000.0),
            row("fixed", 120.0, 900.0),
        ];
        let results = Results { online, ..Results::default() };
        let text = page::text(&results);
        let first = text.lines().next().unwrap_or_default();
        assert!(first.contains("is beaten by queueing (155.0)"), "{first}");
        assert!(first.contains("A lower p99 than its 2.00 objectives: fixed (0.90)"), "{first}");
        assert!(text.contains("simppo             150.0     - "), "{text}");
        let mut settings = ReproduceSettings::quick();
        settings.seeds = vec![1];
        let cost = Cost {
            agents: 110,
            learner_ms_per_tick: 1.0,
            simulator_ms_per_tick: 1.0,
            bytes_per_agent: 1024,
        };
        let request = Request {
            command: "windfall reproduce simppo",
            quick: true,
            seeds: Some(1),
            threads: 1,
            folder: "runs".as_ref(),
        };
        let html = page::page(&request, &results, cost, &settings).html();
        assert!(html.contains("12 functions, 1 seed, 60 episodes of training"));
        assert!(!html.contains("sd 0.0"));
    }
}
