use super::*;

struct Nobody;
impl Watcher for Nobody {}

#[test]
fn the_halves_share_no_function_and_no_hour() {
    let both = (0..500).filter(|&place| Fold::Train.holds(place) == Fold::Test.holds(place));
    assert_eq!(both.count(), 0);
    let train = (0..500).filter(|&place| Fold::Train.holds(place)).count();
    assert!((200..=300).contains(&train), "{train} of 500");
    assert!(TRAIN_MINUTES.1 <= TEST_MINUTES.0);
}

#[test]
fn a_short_generated_benchmark_has_every_part() {
    let benchmark = HonestSizing {
        loads: vec![0.8],
        seeds: vec![1],
        minutes: Some(3),
        with_ablation: false,
        with_over_commit: true,
        ..HonestSizing::default()
    };
    let result = benchmark.play(&Nobody).unwrap();
    assert!(result.is_generated);
    assert_eq!(result.comparison.aggregates.len(), POLICIES.len());
    assert_eq!(result.gap_closed.len(), 1);
    assert!(result.gap_closed[0].share <= 1.0, "nobody holds less than is used");
    let names: Vec<&str> = result.variants.iter().map(|variant| variant.name).collect();
    assert_eq!(names, ["full", "capped", "no-sleepers"]);
    for variant in &result.variants {
        assert!(variant.saving_low <= variant.saving_percent, "{variant:?}");
        assert!(variant.saving_percent <= variant.saving_high, "{variant:?}");
    }
    assert_eq!(result.over_commit.len(), FACTORS.len() * (1 + HEURISTICS.len()));
    let best = result.over_commit.iter().filter(|one| one.is_best).count();
    assert_eq!(best, 1 + HEURISTICS.len(), "each policy has one best factor");
    assert_eq!(result.bars.len(), 6);
}

#[test]
fn every_idea_but_the_first_changes_the_policy() {
    let usual = windfall_policy::WindfallSizingSettings::default();
    for (place, idea) in IDEAS.iter().enumerate() {
        let mut switched = usual;
        (idea.switch)(&mut switched);
        assert_eq!(switched == usual, place == 0, "{}", idea.name);
    }
}

#[test]
fn the_scenario_file_is_the_same_world() {
    for trace in [None, Some(PathBuf::from("a \"b\" \\ c"))] {
        let benchmark = HonestSizing { trace, minutes: Some(7), ..HonestSizing::default() };
        let policies = vec!["fixed".to_owned(), "windfall".to_owned()];
        let read = Scenario::parse(&benchmark.scenario_file(&policies), "test.toml").unwrap();
        assert_eq!(read.digest(), benchmark.scenario(policies).digest());
    }
}
