use super::*;
use windfall_rl::env::check_environment;

fn at(rate: u32) -> Ece471 {
    let mut environment = Ece471::new(Settings { rate: Some(rate), ..Settings::default() });
    environment.start(Seed::new(1));
    environment
}

const HOLD: Action = Action { vertical: 0, horizontal: 0 };
const OUT: Action = Action { vertical: 0, horizontal: 1 };
const IN: Action = Action { vertical: 0, horizontal: -1 };
const DOWN: Action = Action { vertical: -128, horizontal: 0 };

#[test]
fn it_keeps_the_contract_of_environments_in_all_forms() {
    for mode in [Mode::Faithful, Mode::FixedQuirks] {
        for features in [Features::Course, Features::WithDirection] {
            let settings = Settings { mode, features, ..Settings::default() };
            check_environment(|| Ece471::new(settings), 1000);
        }
    }
}

#[test]
fn an_episode_starts_with_four_containers_and_the_course_state() {
    let mut environment = at(5);
    let mut state = [0.0; 6];
    environment.observe(&mut state);
    // 5 / 6 utilisation, latency 1 / (1.5 - 1.25) = 4.
    let expected = [5.0 / 6.0, 1.0, 0.2, 0.0, 0.2, 0.5];
    assert!(state.iter().zip(expected).all(|(a, b): (&f32, f32)| (a - b).abs() < 1e-6));
    assert!((environment.act(HOLD).reward - 0.95).abs() < 1e-12);
}

#[test]
fn an_immediate_scale_in_is_a_reversal_and_one_after_a_hold_is_not() {
    assert_eq!(at(5).act(IN).reward, -1.0);
    let mut environment = at(3);
    environment.act(HOLD);
    let outcome = environment.act(IN);
    assert!((outcome.reward - 0.9).abs() < 1e-12);
    assert_eq!(environment.act(OUT).reward, -1.0);
    assert_eq!(environment.containers(), 4);
}

#[test]
fn illegal_actions_change_nothing() {
    let mut environment = at(8);
    for _ in 0..6 {
        assert!(!environment.act(OUT).conduct.illegal);
    }
    let outcome = environment.act(OUT);
    assert!(outcome.conduct.illegal && outcome.reward == -1.0);
    assert_eq!(environment.containers(), 10);
    // The refused step is not a last action: going in is still a reversal.
    assert!(environment.act(IN).conduct.reversal);
    let too_many = Action { vertical: 0, horizontal: -20 };
    assert!(environment.act(too_many).conduct.illegal);
}

#[test]
fn without_containers_only_scaling_out_and_holding_are_legal() {
    let mut environment = at(1);
    environment.act(HOLD);
    let last = (0..4).map(|_| environment.act(IN)).last().unwrap();
    assert!(last.conduct.abandoned && last.reward == -1.0);
    let mut allowed = [true; 5];
    environment.mask(&mut allowed);
    assert_eq!(allowed, [true, true, false, false, false]);
}

#[test]
fn shares_leak_across_episodes_in_the_faithful_mode_only() {
    for (mode, expected) in [(Mode::Faithful, 128), (Mode::FixedQuirks, 1024)] {
        let mut environment = Ece471::new(Settings { mode, ..Settings::default() });
        environment.start(Seed::new(1));
        for _ in 0..7 {
            assert!(!environment.act(DOWN).conduct.illegal);
        }
        assert!(environment.act(DOWN).conduct.illegal);
        environment.start(Seed::new(2));
        assert_eq!(environment.shares(), expected);
    }
}

#[test]
fn a_vertical_part_makes_the_horizontal_one_void() {
    let mut environment = at(4);
    environment.act(Action { vertical: 128, horizontal: -3 });
    assert_eq!((environment.containers(), environment.shares()), (4, 1152));
}

#[test]
fn the_mask_is_what_is_legal() {
    for mode in [Mode::Faithful, Mode::FixedQuirks] {
        let mut environment = Ece471::new(Settings { mode, ..Settings::default() });
        environment.start(Seed::new(1));
        for containers in 0..=MOST_CONTAINERS {
            for shares in (FEWEST_SHARES..=MOST_SHARES).step_by(SHARES_STEP as usize) {
                (environment.containers, environment.shares) = (containers, shares);
                let mut allowed = [false; ACTIONS.len()];
                environment.mask(&mut allowed);
                assert_eq!(allowed, ACTIONS.map(|(_, action)| environment.is_legal(action)));
            }
        }
    }
}
