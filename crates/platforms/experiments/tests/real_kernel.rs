//! Short forms of the experiments on the real kernel. Says so where the machine does not permit them.
#![allow(clippy::print_stdout, reason = "this is a program")]

use windfall_core::Seed;
use windfall_experiments::live_scaling::{LiveScaling, Settings as LiveSettings};
use windfall_experiments::{ExperimentError, faasrm, knative_concurrency};
use windfall_functions::ExperimentInputs;
use windfall_rl::Environment;
use windfall_studies::reproduce::{Reproduced, Request, Unwatched};

type Story = fn() -> Result<(), ExperimentError>;

fn main() {
    windfall_functions::serve_if_function();
    let stories: [(&str, Story); 3] = [
        ("the_managers_take_turns_on_the_same_calls", managers),
        ("limits_are_tested_over_http", limits),
        ("containers_and_shares_are_real", scaling),
    ];
    for (name, story) in stories {
        match story() {
            Ok(()) => println!("test {name} ... ok"),
            Err(error @ ExperimentError::NotPermitted { .. }) => {
                println!("test {name} ... skipped: {error}");
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

fn request(folder: &std::path::Path) -> Request<'_> {
    Request { command: "a test", quick: true, seeds: None, threads: 1, folder }
}

fn json(reproduced: &Reproduced) -> serde_json::Value {
    serde_json::from_str(&reproduced.json).expect("numbers are JSON")
}

fn managers() -> Result<(), ExperimentError> {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = faasrm::Settings {
        calls: Some(24),
        speed: 8.0,
        inputs: ExperimentInputs { scale: 0.1, ..ExperimentInputs::default() },
        repetitions: 2,
        policies: vec!["fixed".into(), "ensure".into(), "windfall".into()],
        ..faasrm::Settings::default()
    };
    let reproduced = faasrm::reproduce(&request(folder.path()), &settings, &Unwatched)?;
    let numbers = json(&reproduced);
    let kernel = numbers["kernel"].as_array().expect("rows");
    let order: Vec<&str> = kernel.iter().filter_map(|row| row["policy"].as_str()).collect();
    assert_eq!(order, ["fixed", "ensure", "windfall", "windfall", "ensure", "fixed"], "A B B A");
    assert_eq!(numbers["simulated"].as_array().map(Vec::len), Some(6));
    for row in kernel {
        assert_eq!(row["calls"], 24, "{row}");
        let rfet = row["rfet_mean"].as_f64().expect("a number");
        assert!((0.1..20.0).contains(&rfet), "{row}");
        assert!(row["manager_cpu_share"].as_f64().is_some_and(|share| share < 1.0), "{row}");
    }
    let fixed = &kernel[0];
    assert_eq!(
        (fixed["harvested_share"].as_f64(), fixed["accelerated_share"].as_f64()),
        (Some(0.0), Some(0.0))
    );
    assert!(folder.path().join("alone.jsonl").exists() && folder.path().join("calls.csv").exists());
    Ok(())
}

fn limits() -> Result<(), ExperimentError> {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = knative_concurrency::Settings::quick();
    let reproduced =
        knative_concurrency::reproduce(&request(folder.path()), &settings, &Unwatched)?;
    let numbers = json(&reproduced);
    let sweep = numbers["sweep"].as_array().expect("points");
    assert_eq!(sweep.len(), 16);
    let best = numbers["best"][0]["throughput"].as_f64().expect("a number");
    assert!(best > 20.0, "{}", reproduced.text);
    let learners = numbers["learners"].as_array().expect("rows");
    assert_eq!(learners.len(), 2, "the paper's and ours");
    Ok(())
}

fn scaling() -> Result<(), ExperimentError> {
    let settings =
        LiveSettings { steps: 3, step_seconds: 0.5, rate: Some(4), ..LiveSettings::default() };
    let mut live = LiveScaling::start(settings)?;
    let mut row = [0.0; 7];
    live.reset(Seed::new(1), &mut row);
    assert_eq!(live.problem(), None);
    let mut rewards = Vec::new();
    // out, in (a reversal), up
    for action in [1, 2, 3] {
        rewards.push(live.step(action, &mut row).reward);
    }
    println!("     {rewards:?}, last {row:?}, {:?}", live.info());
    assert_eq!(rewards[1], -1.0, "a reversal is punished");
    assert!(rewards[0] > 0.0 && rewards[2] > 0.0);
    assert!(row[0] > 0.0 && row[1] > 0.0, "real calls were served");
    Ok(())
}
