use super::eight_choices::EightChoices;
use super::epochs::Sums;
use super::loss::{Loss, Normalisation};
use super::*;
use crate::net::Activations;
use crate::policy::evaluate;
use crate::toy::{Corridor, Identity};
use crate::value_loss::ValueLoss;

fn settings() -> PpoSettings {
    PpoSettings {
        iterations: 30,
        steps: 64,
        epochs: 4,
        minibatch: 32,
        learning_rate: Schedule::constant(1e-2),
        hidden: vec![16],
        ..PpoSettings::default()
    }
}

fn trained(settings: PpoSettings, iterations: u32, threads: usize) -> Ppo<Identity> {
    let mut ppo = Ppo::new(settings, vec![Identity::new(); 4], Seed::new(1), threads);
    (0..iterations).for_each(|_| drop(ppo.iterate()));
    ppo
}

#[test]
fn the_identity_is_learned_plain_and_with_all_switches() {
    let plain =
        PpoSettings { learning_rate: Schedule::constant(3e-3), steps: 64, ..PpoSettings::plain() };
    let all = PpoSettings { value_clip: Some(0.2), target_kl: Some(0.1), ..settings() };
    for settings in [plain, all] {
        let ppo = trained(settings, 30, 1);
        let totals = evaluate(&mut [Identity::new()], ppo.policy().as_mut(), true, Seed::new(9));
        assert_eq!(totals, [8.0]);
    }
}

#[test]
fn the_corridor_is_walked_to_its_better_end() {
    let mut ppo = Ppo::new(settings(), vec![Corridor::new(); 2], Seed::new(4), 1);
    (0..30).for_each(|_| drop(ppo.iterate()));
    let totals = evaluate(&mut [Corridor::new()], ppo.policy().as_mut(), true, Seed::new(9));
    assert!((totals[0] - 0.98).abs() < 1e-6, "{totals:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let bytes = |threads| trained(settings(), 3, threads).checkpoint().to_bytes().unwrap();
    assert_eq!(bytes(1), bytes(1));
    assert_eq!(bytes(1), bytes(3));
}

#[test]
fn resuming_equals_going_on() {
    // 50 steps of episodes of 8: the rollout stops in the middle of one.
    let mut whole = trained(PpoSettings { steps: 50, ..settings() }, 3, 1);
    let kept = Checkpoint::from_bytes(&whole.checkpoint().to_bytes().unwrap()).unwrap();
    let mut resumed = Ppo::resume(&kept, vec![Identity::new(); 4], 2).unwrap();
    assert_eq!(resumed.checkpoint(), kept);
    for _ in 0..3 {
        assert_eq!(whole.iterate(), resumed.iterate());
    }
    assert_eq!(whole.checkpoint().to_bytes().unwrap(), resumed.checkpoint().to_bytes().unwrap());
}

/// A batch of two samples with three actions, the last forbidden in the second.
fn batch() -> Batch {
    Batch {
        rows: vec![],
        critic_rows: None,
        allowed: vec![true, true, true, true, true, false],
        actions: vec![0, 1],
        log_probabilities: vec![-1.0, -0.9],
        values: vec![0.5, -0.2],
        advantages: vec![1.5, -0.7],
        returns: vec![1.0, 0.3],
    }
}

fn loss(value_clip: Option<f32>) -> Loss {
    Loss {
        clip: 0.2,
        value: ValueLoss::HalfSquare { clip: value_clip },
        value_weight: 0.5,
        entropy: 0.03,
        advantages: Normalisation { centre: 0.1, scale: 2.0 },
    }
}

/// Networks whose outputs are their biases, so that outputs can be set.
fn outputs(count: usize) -> Mlp {
    let shape = Shape { inputs: 1, hidden: vec![], outputs: count, activation: Activation::Tanh };
    Mlp::new(shape, Initial::PerInput, Seed::new(0))
}

#[test]
fn derivatives_of_the_loss_agree_with_finite_differences() {
    let batch = batch();
    // Inputs 1 and -1 make the two samples' outputs differ.
    let input = [1.0, -1.0];
    for value_clip in [None, Some(0.1), Some(10.0)] {
        let loss = loss(value_clip);
        let (mut actor, mut critic) = (outputs(3), outputs(1));
        let mut rooms = (actor.activations(2), critic.activations(2));
        let mut choice = EightChoices::new(3);
        let mut total = |actor: &Mlp, critic: &Mlp, rooms: &mut (Activations, Activations)| {
            let mut sums = Sums::default();
            actor.forward(&input, &mut rooms.0);
            critic.forward(&input, &mut rooms.1);
            loss.write(&batch, &[0, 1], (&mut rooms.0, &mut rooms.1), &mut choice, &mut sums);
            (sums.policy_loss + 0.5 * sums.value_loss - f64::from(loss.entropy) * sums.entropy)
                / 2.0
        };
        total(&actor, &critic, &mut rooms);
        let mut gradients = (vec![0.0; actor.parameters().len()], vec![0.0; 16]);
        actor.backward(&input, &mut rooms.0, &mut gradients.0);
        critic.backward(&input, &mut rooms.1, &mut gradients.1);
        for index in [0, 1, 2, 8, 9, 10] {
            let kept = actor.parameters()[index];
            let mut at = |shift: f32| {
                actor.parameters_mut()[index] = kept + shift;
                total(&actor, &critic, &mut rooms)
            };
            let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
            actor.parameters_mut()[index] = kept;
            assert!((slope - f64::from(gradients.0[index])).abs() < 2e-3, "actor {index}: {slope}");
        }
        for index in [0, 8] {
            let kept = critic.parameters()[index];
            let mut at = |shift: f32| {
                critic.parameters_mut()[index] = kept + shift;
                total(&actor, &critic, &mut rooms)
            };
            let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
            critic.parameters_mut()[index] = kept;
            let gradient = f64::from(gradients.1[index]);
            assert!((slope - gradient).abs() < 2e-3, "critic {index}: {slope} {gradient}");
        }
    }
}

#[test]
fn the_clipped_objective_worked_by_hand() {
    // Uniform over three: log p = -1.0986. Old log p = -1.0986 - ln 2: the ratio is 2, beyond 1.2.
    let third = -libm::logf(3.0);
    let batch = Batch {
        allowed: vec![true; 6],
        actions: vec![0, 0],
        log_probabilities: vec![third - libm::logf(2.0); 2],
        values: vec![0.0; 2],
        advantages: vec![1.0, -1.0],
        returns: vec![0.0; 2],
        rows: vec![],
        critic_rows: None,
    };
    let loss = Loss { entropy: 0.0, advantages: Normalisation::default(), ..loss(None) };
    let (mut actor, critic) = (outputs(3), outputs(1));
    actor.parameters_mut().fill(0.0);
    let mut rooms = (actor.activations(2), critic.activations(2));
    actor.forward(&[1.0, 1.0], &mut rooms.0);
    critic.forward(&[1.0, 1.0], &mut rooms.1);
    let mut sums = Sums::default();
    loss.write(&batch, &[0, 1], (&mut rooms.0, &mut rooms.1), &mut EightChoices::new(3), &mut sums);
    // Gains stop at 1.2; losses count in full.
    assert!((sums.policy_loss - (-1.2 + 2.0)).abs() < 1e-5);
    assert_eq!(rooms.0.output_delta(0), [0.0; 3]);
    // The second sample: derivative 2 / 2 of log p, by the logits 1 - 1/3 and -1/3.
    let delta = rooms.0.output_delta(1).to_vec();
    assert!((delta[0] - 2.0 / 3.0).abs() < 1e-5 && (delta[1] + 1.0 / 3.0).abs() < 1e-5);
    assert!((sums.kl - 2.0 * (1.0 - 2.0_f64.ln())).abs() < 1e-5);
    assert_eq!(sums.clipped, 2.0);
}
