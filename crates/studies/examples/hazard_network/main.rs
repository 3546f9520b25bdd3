//! Is the hazard of a small network better than the class tables of windfall scaling? On the functions that are set aside
//! for fitting, half of the applications for training, the other half for judging, and both ways:
//!
//! ```text
//! cargo run --profile quick -p windfall-studies --example hazard_network -- [bursty] [seeds=N]
//! ```
//!
//! Tables and networks are fitted on the same gaps, uniform and bursty, drawn with three seeds; judged is the first seed,
//! uniform or bursty, after the first hour. Networks are trained with N seeds (3) of their first weights. They see the
//! last gaps of the level, and with `context` the trigger, the time since a sibling of the application was called, and the
//! minute of the hour. All are blended with own gaps as in the policy, except for `tables alone`.
//!
//! Costs are weighted waits + price x MiB-seconds per gap, of idle and starting instances; what busy instances hold and the
//! very first start of a level are the same for all and left out. One gap is judged at a time, as if the function had
//! nothing but this level: the count of instances that the policy makes of all levels together is not part of it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it prints a table, and how far it is"
)]

mod gaps;
mod judge;
mod network;

use std::path::PathBuf;

use windfall_core::{Seed, Timestamp};
use windfall_policy::{GapCounts, GapTables};
use windfall_rl::Spread;
use windfall_scenario::settings::Scenario;
use windfall_studies::frontier::Question;
use windfall_studies::frontier::worlds::World;
use windfall_trace::Source;

use gaps::{FunctionGaps, KnownGap, all_gaps};
use judge::{Judge, PRICES, Prior, Verdict};
use network::{HazardNetwork, Sight};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let (mut is_bursty, mut seeds) = (false, 3);
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            None if word == "bursty" => is_bursty = true,
            Some(("seeds", count)) => seeds = count.parse()?,
            _ => return Err(format!("{word}: expected bursty or seeds=N").into()),
        }
    }
    if seeds == 0 {
        return Err("seeds=0: expected at least 1".into());
    }
    let data = std::env::var_os("WINDFALL_DATA").map_or("../shared/data".into(), PathBuf::from);
    let mut scenario = World::SparseTrain.scenario(&data, Question::Scaling.needs());
    let drawn = [read(&mut scenario, false)?, read(&mut scenario, true)?];
    let judged = &drawn[usize::from(is_bursty)][0];
    let all: Vec<&FunctionGaps> = drawn.iter().flatten().flatten().collect();
    print_head();
    for half in 0..2 {
        let (train, _): (Vec<&FunctionGaps>, Vec<_>) =
            all.iter().partition(|function| function.half() != half);
        let tables = fitted(&train);
        let functions = judged.iter().filter(|function| function.half() == half).collect();
        let from = Timestamp::ZERO + scenario.warm_up;
        let judge = Judge { functions, tables: &tables, tick: scenario.tick, from };
        print_half(half, &judge, &train, seeds);
    }
    Ok(())
}

/// The functions with their gaps, once for every seed of the scenario.
fn read(scenario: &mut Scenario, is_bursty: bool) -> Result<Vec<Vec<FunctionGaps>>, Failure> {
    if let (true, Source::File { options, .. }) = (is_bursty, &mut scenario.trace) {
        options.placement = World::SparseTrain.bursts();
    }
    let open = |seed: &u64| -> Result<Vec<FunctionGaps>, Failure> {
        Ok(all_gaps(&mut *scenario.trace.open(Seed::new(*seed))?))
    };
    scenario.seeds.iter().map(open).collect()
}

fn fitted(train: &[&FunctionGaps]) -> GapTables {
    let mut counts = GapCounts::default();
    train.iter().for_each(|function| counts.count(&function.calls, function.horizon));
    GapTables::fitted_on(&counts)
}

/// One network for each seed, judged.
fn networks(judge: &Judge<'_>, train: &[&FunctionGaps], sight: Sight, seeds: u64) -> Vec<Verdict> {
    let gaps_of = |is_for_stopping: bool| -> Vec<&KnownGap> {
        let some = train.iter().filter(|function| function.is_for_stopping() == is_for_stopping);
        some.flat_map(|function| &function.gaps).collect()
    };
    let (learned, stopping) = (gaps_of(false), gaps_of(true));
    (0..seeds)
        .map(|seed| {
            let (network, training) =
                HazardNetwork::train(&learned, &stopping, sight, Seed::new(seed));
            eprintln!(
                "{sight:?}, seed {seed}: {} gaps, {} to stop by, best after {} epochs, loss {:.4}",
                learned.len(),
                stopping.len(),
                training.epochs,
                training.best_loss
            );
            judge.verdict(&Prior::Network(&network))
        })
        .collect()
}

fn print_half(half: usize, judge: &Judge<'_>, train: &[&FunctionGaps], seeds: u64) {
    let tables = judge.verdict(&Prior::Tables);
    let name = ["A", "B"][half];
    println!("# half {name}: {} functions, {} gaps", judge.functions.len(), tables.gaps());
    let print = |what: &str, verdicts: &[Verdict]| {
        println!("{name:4}  {what:24}{}", row(verdicts, &tables))
    };
    print("tables", std::slice::from_ref(&tables));
    print("tables alone", &[judge.verdict(&Prior::TablesAlone)]);
    print("network", &networks(judge, train, Sight::History, seeds));
    print("network with context", &networks(judge, train, Sight::Everything, seeds));
}

fn print_head() {
    let prices: Vec<String> = PRICES.iter().map(|price| format!("{price:>8.0e}")).collect();
    println!(
        "half  prior                   log-likelihood    J at {}   mean J  sd      over tables  starts",
        prices.join("")
    );
}

/// Means over seeds; the spread is that of the mean cost.
fn row(verdicts: &[Verdict], tables: &Verdict) -> String {
    let of = |number: &dyn Fn(&Verdict) -> f64| {
        Spread::of(&verdicts.iter().map(number).collect::<Vec<f64>>())
    };
    let likelihood = of(&Verdict::log_likelihood);
    let cost = of(&Verdict::cost);
    let costs: Vec<String> = (0..PRICES.len())
        .map(|at| format!("{:8.5}", of(&|verdict: &Verdict| verdict.costs()[at]).mean))
        .collect();
    format!(
        "{:7.4} sd {:.4}      {}  {:.5} {:.5}  {:11.4}  {:6.1}",
        likelihood.mean,
        likelihood.sd,
        costs.join(""),
        cost.mean,
        cost.sd,
        cost.mean / tables.cost(),
        of(&Verdict::starts).mean,
    )
}
