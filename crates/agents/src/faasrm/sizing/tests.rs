use super::*;
use windfall_core::{CallCapabilities, Duration, FunctionId, NodeId, Room};

const USER: Allocation = Allocation::new(4000, 512);
const CEILING: Allocation = Allocation::new(8000, 65_536);

fn call(id: u64) -> CallView {
    CallView {
        id: CallId(id),
        function: FunctionId(0),
        now: Timestamp::from_secs(10 + id),
        arrived_at: Timestamp::from_secs(10 + id),
        input: None,
        reservation: USER,
        ceiling: CEILING,
        free_in_cluster: Room { cores: 64.0, mib: 65_536.0 },
        capabilities: CallCapabilities::QUOTA,
        waiting: 0,
        foresight: None,
    }
}

fn end(id: u64, grant: Allocation, peak: f64, seconds: u64) -> CallOutcome {
    CallOutcome {
        id: CallId(id),
        function: FunctionId(0),
        node: NodeId(0),
        input: None,
        reservation: USER,
        first_grant: grant,
        last_grant: grant,
        arrived_at: Timestamp::from_secs(10 + id),
        started_at: Timestamp::from_secs(10 + id),
        ended_at: Timestamp::from_secs(10 + id + seconds),
        was_killed: false,
        cpu_peak_cores: peak,
        memory_peak_mib: 100.0,
        cpu_mean_cores: peak,
        throttled: Duration::ZERO,
        delayed: Duration::ZERO,
    }
}

fn policy() -> FaasrmSizing {
    FaasrmSizing::new(ScoreAgent::new(Seed::new(1)))
}

#[test]
fn the_first_call_has_one_candidate_the_users_size() {
    let mut policy = policy();
    let (seen, ..) = policy.candidates(&call(0));
    assert_eq!(seen.count_allowed(), 1);
    let decision = policy.size(&call(0)).unwrap();
    assert_eq!((decision.cpu_cores, decision.memory_mib), (4.0, 512.0));
}

#[test]
fn the_worked_grid() {
    let mut policy = policy();
    policy.learn(&end(0, USER, 1.23, 2));
    let (seen, cpu, memory) = policy.candidates(&call(1));
    assert_eq!(cpu, [500, 1000, 1500, 2000, 2500, 3000, 3500, 4000]);
    assert_eq!(seen.cpu_allowed, 0b1111_1100);
    assert_eq!((memory[0], seen.memory_allowed), (64, 0b1111_1110));

    policy.learn(&end(1, USER, 3.9, 2));
    let (seen, cpu, _) = policy.candidates(&call(2));
    assert_eq!((cpu[0], cpu[7], seen.cpu_allowed), (1000, 8000, 0b1111_1000));
}

#[test]
fn a_lost_call_is_no_longer_in_flight_and_brings_no_lesson() {
    let lessons = Lessons::default();
    let agent = ScoreAgent::new(Seed::new(1));
    let mut policy = FaasrmSizing::learning(agent, Seed::new(5), Arc::clone(&lessons), 0.0);
    policy.size(&call(0)).unwrap();
    policy.lost(CallId(0));
    assert_eq!(policy.in_flight, 0);
    let Pick::Draw(learning) = &policy.pick else { panic!("it learns") };
    assert!(learning.pending.is_empty() && lessons.lock().unwrap().is_empty());
}

#[test]
fn a_reward_goes_to_the_call_that_earned_it() {
    let lessons = Lessons::default();
    let agent = ScoreAgent::new(Seed::new(1));
    let mut policy = FaasrmSizing::learning(agent, Seed::new(5), Arc::clone(&lessons), 0.0);
    for id in 0..3 {
        policy.size(&call(id)).unwrap();
    }
    // The last call ends first, and fast; the first one, at the user's size, sets the baseline.
    policy.learn(&end(0, USER, 1.0, 4));
    policy.learn(&end(2, USER, 1.0, 2));
    policy.learn(&end(1, USER, 1.0, 4));
    let rewards: Vec<f32> = lessons.lock().unwrap().iter().map(|lesson| lesson.reward).collect();
    // No baseline yet: slowdown 1. Then 2 s of 4: -0.5 + 0.5. Then 4 s of the mean of 4 and 2: 1.333,
    // with a reservation of 4 + 4 levels: -1.333 - 0.333 x 8 = -4.
    assert_eq!(rewards[..2], [-1.0, 0.0]);
    assert!((rewards[2] + 4.0).abs() < 1e-5, "{rewards:?}");
}

#[test]
fn a_price_counts_the_cores_that_are_held() {
    let half = end(0, Allocation::new(2000, 512), 1.0, 4);
    let free = reward(&half, 4.0, 0.0);
    assert!((free - reward(&half, 4.0, 3.0) - 1.5).abs() < 1e-6);
}
