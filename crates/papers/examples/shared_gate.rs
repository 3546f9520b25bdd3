//! The gate of `windfall/MultiScaling-v1`, and what the oracle and the usual rules do at every load.
//! `cargo run --release -p windfall-papers --example shared_gate [episodes]`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use windfall_gym::Split;
use windfall_gym::shared_nodes::function_load::Workload;
use windfall_gym::shared_nodes::rules::{CALIBRATED, RuleSettings};
use windfall_papers::simppo::online::{OnlineRow, mean_reward};
use windfall_papers::simppo::shared::gate::{GateRow, gate};
use windfall_papers::simppo::shared::trial::Trial;
use windfall_rl::parallel::Workers;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let episodes = numbers.next().unwrap_or(1);
    let gate = gate(&Workers::new(2), episodes);
    println!("load  functions  forced  in time  preserved  reward  others lose  by CPU alone");
    let print = |row: &GateRow| {
        println!(
            "{:.2}  {:8}  {:6}  {:7.4}  {:9.4} {:7.4}  {:9.1} %  {:10.1} %",
            row.load,
            row.functions,
            row.forced,
            row.oracle_in_time,
            row.oracle_preserved,
            row.oracle_reward,
            row.others_loss_percent,
            row.cpu_loss_percent
        );
    };
    gate.loads.iter().chain(&gate.influence).for_each(print);
    println!("meets {}, passed {}", gate.oracle_meets, gate.is_passed);
    for workload in [Workload::Azure].into_iter().chain(Workload::SIX) {
        for name in CALIBRATED.into_iter().chain(["fixed", "oracle"]) {
            let trial = Trial::new(101, 12, workload);
            let rule = RuleSettings::usual(name).expect("it is named");
            let rows = trial.rule_with(name, rule, (Split::Training, episodes));
            let sum = |of: &dyn Fn(&OnlineRow) -> f64| rows.iter().map(of).sum::<f64>();
            println!(
                "{:12} {name:20} reward {:6.1}  late {:6.2} %  cost {:7.0}",
                workload.name(),
                mean_reward(rows.iter()),
                100.0 * sum(&|row| row.violations) / sum(&|row| row.judged_calls).max(1.0),
                sum(&OnlineRow::cost)
            );
        }
    }
}
