//! Stories of platforms whose instances are sized and shared, worked out by hand.

use windfall_core::{
    Allocation, Decision, Duration, Episodic, FunctionId, Platform, SafeguardChain, Seed, Setting,
    Target, Timestamp,
};
use windfall_sim::{ScaleOut, Settings, Simulator};

use crate::stage::{Everything, Script, Scripted, at, function, play, secs, work};

fn on_tick() -> Settings {
    let node = Allocation::new(8000, 1000);
    Settings { scale_out: ScaleOut::OnTick, ..Settings::new(1, node) }
}

#[test]
fn waiting_for_a_new_instance_is_recorded_as_its_cold_start() {
    let calls = vec![at(0.0, 0, work(1.0, 1.0)), at(0.5, 0, work(1.0, 1.0))];
    let script = Script::new(vec![function(1000, 100)], calls);
    let calls = play(on_tick(), script, Scripted::default()).calls;
    // The instance starts from 0 to 1 s. The first call waits for all of it; the second from 0.5 s on, and
    // then another second for the first.
    assert_eq!(calls[0].cold_start, Duration::from_secs(1));
    assert_eq!(calls[1].cold_start, Duration::from_millis(500));
    assert_eq!(secs(calls[1].started_at), 2.0);
}

#[test]
fn a_new_size_takes_the_platforms_delay() {
    let end = |delay: u64| {
        let settings = Settings {
            cold_starts: false,
            actuation_delay: Duration::from_secs(delay),
            ..on_tick()
        };
        let script = Script::new(vec![function(1000, 100)], vec![at(0.0, 0, work(4.0, 2.0))]);
        let mut seen = Everything::default();
        let control = Scripted::default();
        let mut simulator = Simulator::new(settings, script, control, &mut seen, Seed::new(1));
        simulator.advance_to(Timestamp::from_secs(1)).unwrap();
        let target = Target { cpu_cores: Setting::Set(2.0), ..Target::keep(FunctionId(0)) };
        let decision = Decision { targets: vec![target], reason: String::new() };
        let observation = simulator.observe(simulator.now()).unwrap();
        let plan = SafeguardChain::default().review(&observation, &decision).unwrap();
        simulator.submit(simulator.now(), &plan);
        simulator.run_to_end();
        drop(simulator);
        secs(seen.calls[0].ended_at)
    };
    // One core-second by 1 s; three are left for two cores. With a delay of 1 s two are left at 2 s.
    assert_eq!(end(0), 2.5);
    assert_eq!(end(1), 3.0);
}
