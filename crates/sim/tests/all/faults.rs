//! Seeded faults: what is lost is counted, and the platform passes the conformance suite.

use windfall_core::{Allocation, CallEnd, Duration, Episodic, Platform, Seed, Timestamp};
use windfall_sim::{Faults, Settings, Simulator};

use crate::stage::{Everything, Script, Scripted, at, function, play, work};

fn busy_script() -> Script {
    let arrivals = (0..200).map(|i| at(f64::from(i), 0, work(5.0, 1.0))).collect();
    Script::new(vec![function(1000, 100)], arrivals)
}

#[test]
fn calls_on_a_lost_node_are_counted_and_the_node_comes_back() {
    let faults = Faults {
        node_loss_every: Some(Duration::from_secs(60)),
        node_away: Duration::from_secs(10),
        ..Faults::default()
    };
    let settings = Settings { faults, ..Settings::new(2, Allocation::new(8000, 4000)) };
    let seen = play(settings, busy_script(), Scripted::default());
    let lost = seen.calls.iter().filter(|call| call.end == CallEnd::NodeLost).count();
    assert!(lost > 0 && lost < 100, "{lost} of 200 lost");
    let least = seen.intervals.iter().map(|stretch| stretch.capacity_cores).fold(16.0, f64::min);
    assert!(least < 16.0, "capacity never dropped");
}

#[test]
fn lost_telemetry_shows_as_age() {
    let faults = Faults { telemetry_loss: 0.5, ..Faults::default() };
    let settings = Settings { faults, ..Settings::new(2, Allocation::new(8000, 4000)) };
    let mut seen = Everything::default();
    let mut simulator =
        Simulator::new(settings, busy_script(), Scripted::default(), &mut seen, Seed::new(1));
    let mut stale = 0;
    for second in 1..100 {
        simulator.advance_to(Timestamp::from_secs(second)).unwrap();
        let picture = simulator.observe(simulator.now()).unwrap();
        assert_eq!(picture.now, Timestamp::from_secs(second));
        stale += u32::from(!picture.age().is_zero());
    }
    assert!((25..75).contains(&stale), "{stale} of 99 stale");
}

#[test]
fn time_does_not_go_back() {
    let mut seen = Everything::default();
    let settings = Settings::new(1, Allocation::new(8000, 4000));
    let mut simulator =
        Simulator::new(settings, busy_script(), Scripted::default(), &mut seen, Seed::new(1));
    simulator.advance_to(Timestamp::from_secs(5)).unwrap();
    assert!(simulator.advance_to(Timestamp::from_secs(4)).is_err());
}
