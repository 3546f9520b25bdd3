use super::*;
use crate::policy::evaluate;
use crate::toy::{Corridor, Identity};
use crate::value_loss::ValueError;

fn settings() -> DqnSettings {
    DqnSettings {
        iterations: 20,
        steps: 200,
        capacity: 700,
        warm_up: 100,
        target_every: 50,
        batch: 32,
        hidden: vec![16],
        ..DqnSettings::default()
    }
}

#[test]
fn the_loss_of_huber_worked_by_hand() {
    let of = |value| ValueLoss::SmoothL1.evaluate(value, value, 0.0);
    assert_eq!(of(0.5), ValueError { loss: 0.125, by_value: 0.5 });
    assert_eq!(of(-3.0), ValueError { loss: 2.5, by_value: -1.0 });
}

#[test]
fn the_corridor_and_the_identity_are_learned() {
    let mut learner = Dqn::new(settings(), Corridor::new(), Seed::new(1));
    (0..20).for_each(|_| drop(learner.iterate()));
    let totals = evaluate(&mut [Corridor::new()], learner.policy().as_mut(), true, Seed::new(1));
    assert!((totals[0] - 0.98).abs() < 1e-6, "{totals:?}");

    let mut learner = Dqn::new(settings(), Identity::new(), Seed::new(1));
    (0..20).for_each(|_| drop(learner.iterate()));
    let totals = evaluate(&mut [Identity::new()], learner.policy().as_mut(), true, Seed::new(1));
    assert_eq!(totals, [8.0]);
}

#[test]
fn values_approach_the_discounted_return() {
    // Two steps right of the middle the task pays 0.99 and ends; one step earlier that is worth
    // -0.01 + 0.95 * 0.99.
    let mut learner = Dqn::new(settings(), Corridor::new(), Seed::new(3));
    (0..20).for_each(|_| drop(learner.iterate()));
    let mut policy = NetworkPolicy::new(learner.network.clone(), learner.observations.scaling());
    assert!((policy.scores(&[0.75])[1] - 0.99).abs() < 0.05);
    assert!((policy.scores(&[0.5])[1] - 0.9305).abs() < 0.05);
}

#[test]
fn resuming_equals_going_on() {
    let mut whole = Dqn::new(settings(), Corridor::new(), Seed::new(2));
    // Past the point at which the ring overwrites its oldest steps.
    (0..5).for_each(|_| drop(whole.iterate()));
    let bytes = whole.checkpoint().to_bytes().unwrap();
    let kept = Checkpoint::from_bytes(&bytes).unwrap();
    let mut resumed = Dqn::resume(&kept, Corridor::new()).unwrap();
    for _ in 0..3 {
        assert_eq!(whole.iterate(), resumed.iterate());
    }
    assert_eq!(whole.checkpoint(), resumed.checkpoint());
}
