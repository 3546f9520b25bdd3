use super::*;
use windfall_rl::checkpoint::Tensor;
use windfall_trace::AzureLikeSettings;

fn quick() -> WindfallTraining {
    let source = Source::AzureLike(AzureLikeSettings {
        functions: 40,
        duration: Duration::from_mins(2),
        calls_per_hour: 20_000.0,
        ..AzureLikeSettings::default()
    });
    let quick = WindfallTraining::on(source, 7);
    WindfallTraining { loads: vec![0.8], seeds: vec![7], steps: vec![1.6], ..quick }
}

#[test]
fn the_search_is_the_same_every_time_and_never_makes_it_worse() {
    let first = quick().run(&mut |_| ()).unwrap();
    let second = WindfallTraining { threads: 2, ..quick() }.run(&mut |_| ()).unwrap();
    assert_eq!(first.checkpoint.to_bytes().unwrap(), second.checkpoint.to_bytes().unwrap());
    let kept = first.turns.iter().filter(|turn| turn.kept);
    assert!(kept.clone().all(|turn| turn.cost_after < turn.cost_before));
    assert!(first.turns.len() >= PARAMETERS.len());
}

#[test]
fn a_search_from_scratch_begins_within_the_ranges() {
    let start = parameters::scratch();
    assert!(
        PARAMETERS
            .iter()
            .all(|parameter| (parameter.low..=parameter.high).contains(&(parameter.read)(&start)))
    );
}

#[test]
fn a_p99_above_the_heuristics_is_dear_up_to_a_hundredth() {
    let row = |slowdown_p99: f64| RunSummary {
        slowdown_p99,
        bounded_slowdown_p99: 1.0,
        core_seconds_granted: 1.3,
        core_seconds_used: 1.0,
        ..RunSummary::default()
    };
    let dear = |p99: f64, rival: f64| cost_of(&row(p99), rival) - 1.3f64.ln();
    assert_eq!(dear(1.002, 1.002), 0.0);
    // 10 x ln(1.0059 / 1.0020), as much as 4 % of all cores.
    assert!((dear(1.0059, 1.0020) - 0.0388).abs() < 1e-3, "{}", dear(1.0059, 1.0020));
    assert!((dear(12.0, 10.0) - 0.1).abs() < 1e-9);
    assert_eq!(dear(5.0, 10.0), 0.0);
}

#[test]
fn parameters_have_two_digits_and_stay_within_their_range() {
    let beta = &PARAMETERS[0];
    assert_eq!(rounded(0.004_166, beta), 0.0042);
    assert_eq!(rounded(0.05, beta), beta.high);
    let seconds = &PARAMETERS[4];
    assert_eq!((rounded(13.37, seconds), rounded(2.449, seconds)), (13.0, 2.4));
}

#[test]
fn a_file_gives_the_same_parameters_back_and_others_are_refused() {
    let trained = quick();
    let mut settings = trained.start;
    settings.slack.beta = 0.1 / 30.0;
    let checkpoint = parameters::checkpoint(&settings, 1, 0);
    let again = Checkpoint::from_bytes(&checkpoint.to_bytes().unwrap()).unwrap();
    assert_eq!(parameters::settings_from(&again).unwrap(), settings);

    let refused = |values: Vec<f64>| {
        let mut odd = checkpoint.clone();
        odd.tensors.insert("dials".into(), Tensor::F64(values));
        parameters::settings_from(&odd).unwrap_err().to_string()
    };
    assert!(refused(vec![0.01]).starts_with("number of parameters is 1"));
    let mut values: Vec<f64> = PARAMETERS.iter().map(|parameter| parameter.low).collect();
    values[0] = f64::NAN;
    assert!(refused(values).starts_with("slack.beta is NaN, expected 0.001 to 0.009"));
}
