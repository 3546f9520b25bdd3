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
        ..HonestSizing::default()
    };
    let result = benchmark.play(&Nobody).unwrap();
    assert!(result.is_generated);
    assert_eq!(result.comparison.aggregates.len(), POLICIES.len());
    assert_eq!(result.gap_closed.len(), 1);
    assert!(result.gap_closed[0].share <= 1.0, "nobody grants less than is used");
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
