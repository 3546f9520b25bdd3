use super::*;

fn plan(experiments: Vec<Experiment>, seeds: u64, threads: usize) -> Plan {
    let first_seed = 1;
    Plan {
        experiments,
        first_seed,
        seeds,
        evaluate_every: 5,
        design_iterations: 2,
        continued_iterations: 4,
        threads,
    }
}

fn experiment(algorithm: Algorithm, features: Features, iterations: u64) -> Experiment {
    Experiment { algorithm, features, design: Design::Authors, iterations }
}

#[test]
fn a_small_reproduction_is_complete_and_independent_of_threads() {
    let small = |threads| {
        let all = [Algorithm::Ppo, Algorithm::Dqn, Algorithm::QLearning, Algorithm::Reinforce]
            .map(|algorithm| experiment(algorithm, Features::Course, 2));
        reproduce(&plan(all.to_vec(), 2, threads), &|_| ())
    };
    let result = small(2);
    assert_eq!(result, small(1));
    let all = ["ppo", "dqn", "q-learning", "reinforce"];
    let names: Vec<&str> = result.algorithms.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, all.map(|name| format!("{name}-six-features")));
    assert!(result.continued.identical && result.continued.interrupted_at == 2);
    assert!(result.algorithms.iter().all(|row| row.curves.len() == 2 && row.steps == 2000));
    let json = serde_json::to_value(&result).unwrap();
    assert!(json["golden"]["dp"].as_f64().is_some());
    assert!(json["algorithms"][0]["sd"].as_f64().is_some());
}

#[test]
fn ppo_learns_most_of_it_in_thirty_iterations() {
    let plan = plan(Vec::new(), 1, 1);
    let (_, curve) =
        train(&plan, experiment(Algorithm::Ppo, Features::WithDirection, 30), 77, &|_| ());
    let reached = curve.last().and_then(|point| point.greedy).unwrap();
    assert!(reached > 180.0, "{reached}");
}

#[test]
#[ignore = "trains 10 seeds of every learner for some minutes; run with --release"]
fn targets_are_met() {
    let result = reproduce(&Plan::full(2), &|_| ());
    let mean = |name: &str, features, iterations| {
        let row = result.algorithms.iter().find(|row| {
            (row.name.as_str(), row.features, row.iterations) == (name, features, iterations)
        });
        row.map(|row| row.mean).unwrap()
    };
    assert!(mean("ppo", Features::WithDirection, 50) >= 187.0);
    assert!(mean("ppo", Features::WithDirection, 500) >= 189.5);
    assert!(mean("dqn", Features::WithDirection, 50) >= 186.0);
    assert!(mean("q-learning", Features::WithDirection, 50) >= 186.0);
    assert!(mean("reinforce", Features::WithDirection, 300) >= 180.0);
    assert!(result.duel.trained > result.duel.random);
    assert!(result.continued.identical);
    let long =
        result.algorithms.iter().find(|row| (row.name.as_str(), row.iterations) == ("ppo", 500));
    let long = long.unwrap();
    assert!(long.min >= REACHED && long.worst_late >= REACHED, "{} {}", long.min, long.worst_late);
}
