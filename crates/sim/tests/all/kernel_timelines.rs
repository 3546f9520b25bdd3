//! Short stories under the kernel's CPU, worked out by hand.

use std::sync::{Arc, Mutex};

use windfall_core::{
    Allocation, CallDemand, ColdStart, CpuCeiling, Duration, FunctionProfile, Mebibytes,
};
use windfall_sim::{CpuModel, KernelCpu, Settings};

use crate::stage::{Script, Scripted, at, function, play, work};

fn one_node(cpu: u32, kernel: KernelCpu) -> Settings {
    Settings { cpu: CpuModel::Kernel(kernel), ..Settings::new(1, Allocation::new(cpu, 1000)) }
}

fn millis(run: Duration) -> f64 {
    run.as_millis_f64()
}

fn using(memory: u32, demand: CallDemand) -> CallDemand {
    let memory = Mebibytes::new(memory);
    CallDemand { memory_base: memory, memory_peak: memory, ..demand }
}

#[test]
fn a_quota_is_used_at_full_speed_and_then_throttles() {
    let quota = Scripted { grant: Some(Allocation::new(500, 100)), ..Scripted::default() };
    let settings = Settings { cold_starts: false, ..one_node(4000, KernelCpu::default()) };
    let script = Script::new(vec![function(500, 100)], vec![at(1.0, 0, work(0.5, 1.0))]);
    let run = millis(play(settings, script, quota).calls[0].run);
    // Half a core takes about twice as long; how much of a period is cut off depends on where it begins.
    assert!((900.0..=1000.0).contains(&run), "{run}");
    let short = Scripted { grant: Some(Allocation::new(500, 100)), ..Scripted::default() };
    let script = Script::new(vec![function(500, 100)], vec![at(1.0, 0, work(0.03, 1.0))]);
    // 30 ms fit into the 50 ms of one period: the fluid model would say 60 ms.
    assert_eq!(millis(play(settings, script, short).calls[0].run), 30.0);
}

#[test]
fn a_start_on_half_a_core_takes_twice_as_long() {
    let profile = FunctionProfile {
        cold_start: ColdStart { median: Duration::from_millis(500), sigma: 0.0 },
        ..function(500, 100)
    };
    let script = Script::new(vec![profile], vec![at(0.0, 0, work(0.01, 0.5))]);
    let seen = play(one_node(4000, KernelCpu::default()), script, Scripted::default());
    // Ten periods of 50 ms; the last ends when its 50 ms are used.
    assert_eq!(millis(seen.calls[0].cold_start), 950.0);
}

#[test]
fn a_warm_process_keeps_its_memory_and_a_smaller_limit_is_refused() {
    let calls = vec![at(0.0, 0, using(300, work(1.0, 1.0))), at(9.0, 0, using(50, work(1.0, 1.0)))];
    let script = Script::new(vec![function(1000, 400)], calls);
    let grants = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&grants);
    let control = Scripted {
        look_after: Some(Duration::from_millis(500)),
        on_look: Box::new(move |running| {
            noted.lock().unwrap().push((running.grant.memory, running.sensed.memory_mib));
            (Allocation::new(1000, 200), Some(Duration::from_millis(400)))
        }),
        ..Scripted::default()
    };
    let seen = play(one_node(4000, KernelCpu::default()), script, control);
    // 200 MiB are asked at each look and refused each time: 300 MiB are in use, also by the second call.
    let limit = Mebibytes::new(400);
    assert_eq!(*grants.lock().unwrap(), [(limit, 300.0); 4]);
    assert!(seen.calls.iter().all(|call| call.changes == 0 && call.oom_kills == 0));
    // The second call uses what the first left behind.
    assert_eq!(seen.calls[1].memory_used, 300 * 1_000_000_000);
}

#[test]
fn use_beyond_the_mean_rate_shows_at_once_and_throttling_when_the_period_ends() {
    let looks = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&looks);
    let control = Scripted {
        look_after: Some(Duration::from_millis(5)),
        on_look: Box::new(move |running| {
            let sensed = running.sensed;
            noted.lock().unwrap().push((sensed.cpu_used_cores, sensed.throttled_share));
            (running.grant, Some(Duration::from_millis(5)))
        }),
        ..Scripted::default()
    };
    let mut settings = Settings { cold_starts: false, ..one_node(4000, KernelCpu::default()) };
    (settings.sensors.cpu_noise, settings.sensors.cpu_jitter) = (0.0, Duration::ZERO);
    let script = Script::new(vec![function(200, 100)], vec![at(1.0, 0, work(0.1, 1.0))]);
    play(settings, script, control);
    let looks = looks.lock().unwrap();
    // A fifth of a core, and a whole one in the first 20 ms; nothing is throttled that one could see.
    assert_eq!(looks[..4], [(1.0, 0.0); 4]);
    let shown = looks.iter().position(|(_, throttled)| *throttled > 0.0).unwrap();
    let before = looks[..shown].iter().filter(|(used, _)| *used == 0.0).count();
    assert!(before >= 1 && shown <= 25, "throttling shows at look {shown}");
}

#[test]
fn the_idle_class_gets_what_is_left_and_weights_share_the_rest() {
    let kernel =
        KernelCpu { follows_rounds: true, settling: Duration::ZERO, ..KernelCpu::default() };
    let mut settings = Settings { cold_starts: false, ..one_node(2000, kernel) };
    settings.cluster.over_commit_cpu = 10.0;
    let run = |weights: [u32; 2]| {
        let functions = weights.iter().map(|&weight| function(weight, 100)).collect();
        let script =
            Script::new(functions, vec![at(0.0, 0, work(2.0, 2.0)), at(0.0, 1, work(2.0, 2.0))]);
        let control = Scripted { ceiling: CpuCeiling::Unlimited, ..Scripted::default() };
        let calls = play(settings, script, control).calls;
        [millis(calls[0].run), millis(calls[1].run)]
    };
    // Both can use the whole node: alone each takes 1 s.
    let [first, lent] = run([1000, 1]);
    assert!((first - 1000.0).abs() < 3.0 && (lent - 2000.0).abs() < 3.0, "{first} and {lent}");
    let [heavy, light] = run([1500, 500]);
    // Three quarters until the heavy one ends at 4/3 s.
    assert!((heavy - 1333.3).abs() < 3.0 && (light - 2000.0).abs() < 3.0, "{heavy} and {light}");
}

#[test]
fn what_a_call_loses_against_its_reservation_is_counted() {
    // A reserved core and half of it as quota: 0.5 s of work take about 0.95 s.
    let control = Arc::new(Mutex::new(0.0));
    let noted = Arc::clone(&control);
    let half = Scripted {
        grant: Some(Allocation::new(500, 100)),
        look_after: Some(Duration::from_millis(50)),
        on_look: Box::new(move |running| {
            *noted.lock().unwrap() += running.sensed.delayed_share * 50.0;
            (running.grant, Some(Duration::from_millis(50)))
        }),
        ..Scripted::default()
    };
    let settings = Settings { cold_starts: false, ..one_node(4000, KernelCpu::default()) };
    let script = Script::new(vec![function(1000, 100)], vec![at(1.0, 0, work(0.5, 1.0))]);
    let run = millis(play(settings, script, half).calls[0].run);
    let delayed = *control.lock().unwrap();
    assert!((run - 500.0 - delayed).abs() <= 50.0, "{delayed} of {run} ms");
}

#[test]
fn the_mean_of_rounds_stands_for_them() {
    let mut settings = Settings { cold_starts: false, ..one_node(4000, KernelCpu::default()) };
    settings.cluster.over_commit_cpu = 10.0;
    // Twelve calls on four cores, each of 1 s of work with 0.6 s of waiting in it; they want 7.5 cores.
    let calls = |follows_rounds| {
        let usual = KernelCpu { round_waits: 1.0, follows_rounds, ..KernelCpu::default() };
        let kernel = KernelCpu { slice: Duration::ZERO, settling: Duration::ZERO, ..usual };
        let waiting = CallDemand { fixed: Duration::from_millis(600), ..work(1.0, 1.0) };
        let arrivals = (0..12).map(|n| at(0.013 * f64::from(n), 0, waiting)).collect();
        let script = Script::new(vec![function(500, 50)], arrivals);
        let control = Scripted { ceiling: CpuCeiling::Unlimited, ..Scripted::default() };
        let seen = play(Settings { cpu: CpuModel::Kernel(kernel), ..settings }, script, control);
        seen.calls.iter().map(|call| millis(call.run)).sum::<f64>() / 12.0
    };
    let (followed, averaged) = (calls(true), calls(false));
    assert!((followed / averaged - 1.0).abs() < 0.1, "{followed} and {averaged} ms");
}
