use super::*;

fn env(count: usize) -> SharedScaling {
    SharedScaling::new(SharedSettings::new(count, Seed::new(1)), Seed::new(2))
}

fn play(env: &mut SharedScaling, ticks: u64, wanted: impl Fn(usize) -> Deployment) -> Vec<f64> {
    env.world_mut().keep_latencies();
    let wanted: Vec<Deployment> = (0..env.agents()).map(wanted).collect();
    let mut rewards = vec![0.0; env.agents()];
    for _ in 0..ticks {
        for (sum, step) in rewards.iter_mut().zip(env.step_freely(&wanted)) {
            *sum += step.paid.total();
        }
    }
    rewards
}

#[test]
fn the_same_seed_gives_the_same_episode() {
    let rows = || {
        let mut env = env(5);
        let mut rows = Vec::new();
        for tick in 0..30 {
            let moves: Vec<Option<usize>> = (0..5).map(|agent| Some((agent + tick) % 7)).collect();
            env.step(&moves);
            for agent in 0..5 {
                let mut row = [0.0; 7];
                env.write_row(agent, &mut row);
                rows.extend(row);
            }
        }
        rows
    };
    assert_eq!(rows(), rows());
}

#[test]
fn moves_have_their_effect_and_illegal_ones_none() {
    let mut env = env(2);
    let steps = env.step(&[Some(1), None]).to_vec();
    assert_eq!(env.world().deployment(0).instances, 3);
    assert_eq!((steps[0].done, steps[1].done), (1, 0));
    // Turning back at once is not among the allowed moves.
    assert!(env.step(&[Some(2), Some(0)])[0].is_illegal);
    env.step(&[Some(2), Some(0)]);
    assert_eq!(env.world().deployment(0).instances, 2);
}

#[test]
fn masks_know_nothing_of_the_others() {
    let mut env = env(12);
    let most = Deployment { instances: 10, cpu: 2048, memory: 2048 };
    let mut wanted = vec![most; 12];
    wanted[0] = env.world().deployment(0);
    for _ in 0..4 {
        env.step_freely(&wanted);
    }
    let mut allowed = [false; 7];
    env.write_mask(0, &mut allowed);
    assert!(allowed[1], "another instance may be asked for although no node has room");
}

#[test]
fn an_instance_without_room_does_not_start_until_there_is_some() {
    let nodes = NodeSettings { memory_mib: 16_384, ..NodeSettings::default() };
    let settings = SharedSettings { nodes, ..SharedSettings::new(12, Seed::new(1)) };
    let mut env = SharedScaling::new(settings, Seed::new(2));
    play(&mut env, 4, |_| Deployment { instances: 10, cpu: 1024, memory: 2048 });
    let standing: usize = (0..12).map(|agent| env.world().standing(agent)).sum();
    assert!(standing < 60, "{standing} on 32 GiB");
    play(&mut env, 8, |_| Deployment { instances: 2, cpu: 1024, memory: 512 });
    assert!((0..12).all(|agent| env.world().standing(agent) == 2));
}

#[test]
fn shares_decide_only_where_cores_are_short() {
    let p99 = |functions: usize, load: f64, cpu: u32| {
        let settings = SharedSettings { load, ..SharedSettings::new(functions, Seed::new(3)) };
        let mut env = SharedScaling::new(settings, Seed::new(4));
        play(&mut env, 60, |agent| Deployment {
            instances: 6,
            cpu: if agent == 0 { cpu } else { 1024 },
            memory: 640,
        });
        env.world().fared(0).p99_ms
    };
    let (alone, small) = (p99(1, 0.05, 1024), p99(1, 0.05, 128));
    assert_eq!(alone, small, "alone a weight means nothing");
    assert!(p99(12, 1.4, 128) > 1.5 * p99(12, 1.4, 2048), "on full nodes it does");
}

#[test]
fn no_call_is_forgotten() {
    let mut env = env(6);
    env.world_mut().keep_latencies();
    let wanted: Vec<Deployment> = (0..6).map(|agent| env.world().deployment(agent)).collect();
    let (mut arrived, mut done) = (0, 0);
    let before: u32 =
        env.world().seen().functions.iter().map(|one| one.queued + one.in_flight).sum();
    for _ in 0..50 {
        env.step_freely(&wanted);
        for view in &env.world().seen().functions {
            arrived += view.arrivals;
            done += view.completions;
        }
    }
    let open: u32 = env.world().seen().functions.iter().map(|one| one.queued + one.in_flight).sum();
    let lost: u64 = (0..6).map(|agent| env.world().lost(agent)).sum();
    assert_eq!(before + arrived, done + open + lost as u32);
}

#[test]
fn a_call_above_its_memory_is_lost() {
    let mut env = env(1);
    play(&mut env, 40, |_| Deployment { instances: 3, cpu: 1024, memory: 128 });
    // ocr needs 210 MiB.
    assert!(env.world().lost(0) > 0 && env.world().earned(0).preserved < 0.2);
}
