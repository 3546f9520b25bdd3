//! What SIMPPO's settings were chosen by: training hours to learn on, validation hours to judge on, seeds that no table has.
//! `cargo run --release -p windfall-papers --example simppo_choices [seeds] [episodes]`
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use windfall_core::statistics;
use windfall_gym::Split;
use windfall_papers::simppo::online::{Exam, LOAD, OnlineRow, Sizes, isolated, tested, trained};
use windfall_papers::simppo::{Auxiliary, Method, TeamSettings};

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (seeds, episodes) = (numbers.next().unwrap_or(2), numbers.next().unwrap_or(60));
    println!("seed  choice                                reward  p99/slo    slo   util");
    for seed in 11..11 + seeds {
        for discount in [0.95, 0.9, 0.8, 0.6] {
            for is_shared in [true, false] {
                let rows = simppo(seed, episodes, discount, is_shared);
                let networks = if is_shared { "one network" } else { "one each" };
                print_row(&format!("simppo, discount {discount}, {networks}"), &rows);
            }
            let mut team = TeamSettings::new(Method::Single, episodes);
            team.ppo.discount = discount;
            let sizes = Sizes { functions: 12, episodes, tests: EXAM.episodes };
            let (rows, _) = isolated(&team, (seed, EXAM), sizes, &|_| {});
            print_row(&format!("isolated, discount {discount}"), &rows);
        }
    }
}

const EXAM: Exam = Exam { split: Split::Validation, load: LOAD, episodes: 4 };

fn simppo(seed: u64, episodes: u64, discount: f32, is_shared: bool) -> Vec<OnlineRow> {
    let mut team = TeamSettings::new(Method::Simppo(Auxiliary::MeanField), episodes);
    if is_shared {
        team = team.shared();
    }
    team.ppo.discount = discount;
    let who = (seed, (0..12).collect::<Vec<u64>>());
    let (mut team, _) = trained("simppo", team, who.clone(), episodes, &|_| {});
    tested("simppo", &mut team, who, EXAM)
}

fn print_row(choice: &str, rows: &[OnlineRow]) {
    let mean =
        |of: &dyn Fn(&OnlineRow) -> f64| statistics::mean(rows.iter().map(of)).unwrap_or(0.0);
    println!(
        "{:4}  {choice:36} {:7.1} {:8.2} {:6.3} {:6.3}",
        rows[0].seed,
        mean(&|row| row.reward),
        mean(&|row| (row.p99_ms / row.slo_ms).ln()).exp(),
        mean(&|row| row.slo_preserved),
        mean(&|row| row.utilisation)
    );
}
