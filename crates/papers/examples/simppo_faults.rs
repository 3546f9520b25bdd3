//! Where the reward goes when agents fall silent and transitions are lost: validation hours, seeds that no table has.
//! `cargo run --release -p windfall-papers --example simppo_faults [seeds] [episodes] [episodes with faults]`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use windfall_core::statistics;
use windfall_gym::Split;
use windfall_papers::simppo::fault_run::FaultRun;
use windfall_papers::simppo::faults::FaultSettings;
use windfall_papers::simppo::online::trained;
use windfall_papers::simppo::team::Play;
use windfall_papers::simppo::{Auxiliary, Method, TeamSettings};

const LOST: FaultSettings = FaultSettings { lost: 0.2, ..FaultSettings::NONE };
const AWAY: FaultSettings = FaultSettings { lost: 0.0, ..FaultSettings::PUBLISHED };

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let mut next = |usual| numbers.next().unwrap_or(usual);
    let (seeds, episodes, faulty) = (next(2), next(120), next(20));
    for seed in 11..11 + seeds {
        for method in [Method::Simppo(Auxiliary::MeanField), Method::Single] {
            let settings = TeamSettings::new(method, episodes).shared();
            let who = (seed, (0..12).collect::<Vec<u64>>());
            let (team, _) = trained("simppo", settings, who, episodes, &|_| {});
            println!("seed {seed}, {method:?}");
            for learns in [false, true] {
                let run = FaultRun { seed, split: Split::Validation, episodes: faulty, learns };
                let whole = run.play(&team, FaultSettings::NONE, &|_| {});
                println!("  learns {learns:5}  {:28} {:7.1}", "no faults", mean(&whole));
                for (name, faults) in [
                    ("lost transitions", LOST),
                    ("cut off", AWAY),
                    ("both", FaultSettings::PUBLISHED),
                ] {
                    let found = run.play(&team, faults, &|_| {});
                    print_row(name, learns, &whole, &found);
                }
            }
        }
    }
}

fn mean(plays: &[Play]) -> f64 {
    statistics::mean(plays.iter().map(Play::mean)).unwrap_or(0.0)
}

fn of_agents(plays: &[Play], is_one: impl Fn(usize) -> bool) -> f64 {
    let all = plays.iter().flat_map(|play| play.rewards.iter().enumerate());
    all.filter(|(agent, _)| is_one(*agent)).map(|(_, reward)| reward).sum()
}

fn print_row(name: &str, learns: bool, whole: &[Play], found: &[Play]) {
    let loss = |from: f64, to: f64| 100.0 * (from - to) / from;
    let (first, last) = (..whole.len() / 2, whole.len() / 2..);
    let part = |is_one: fn(usize) -> bool| loss(of_agents(whole, is_one), of_agents(found, is_one));
    println!(
        "  learns {learns:5}  {name:28} {:7.1}  loss {:5.2} %  first half {:5.2}  second {:5.2}  cut off {:5.2}  others {:5.2}",
        mean(found),
        loss(mean(whole), mean(found)),
        loss(mean(&whole[first]), mean(&found[first])),
        loss(mean(&whole[last.clone()]), mean(&found[last])),
        part(|agent| agent % 5 == 1),
        part(|agent| agent % 5 != 1),
    );
}
