//! Whatever the policy does: no call is lost, no node is over-committed beyond its factor, nothing is
//! granted less than is used, and one seed gives one story.

use proptest::prelude::*;
use rand::RngExt;
use windfall_core::{Allocation, CallDemand, Duration, Mebibytes, Seed};
use windfall_sim::{CpuModel, KernelCpu, Placement, ScaleOut, Settings, Simulator};

use crate::stage::{Everything, Script, Scripted, at, function, work};

/// A random cluster under a control that resizes at random.
#[derive(Clone, Debug)]
struct World {
    seed: u64,
    calls: usize,
    nodes: u32,
    over_commit: f64,
    concurrency: u32,
    on_tick: bool,
    placement: Placement,
    delay_ms: u64,
    telemetry_loss: f64,
    node_loss: bool,
    cpu: CpuModel,
}

/// The kernel's CPU with every round and period as an event.
fn followed() -> CpuModel {
    CpuModel::Kernel(KernelCpu { follows_rounds: true, ..KernelCpu::default() })
}

fn worlds() -> impl Strategy<Value = World> {
    let placement = prop_oneof![
        Just(Placement::HomeInvoker),
        Just(Placement::LeastLoaded),
        Just(Placement::WarmFirst),
        Just(Placement::CoverageAware)
    ];
    let shape = (any::<u64>(), 1usize..120, 1u32..5, 1.0f64..3.0, 1u32..4, any::<bool>());
    let cpu = prop_oneof![Just(CpuModel::Fluid), Just(CpuModel::kernel()), Just(followed())];
    (shape, placement, 0u64..50, 0.0f64..0.5, any::<bool>(), cpu).prop_map(
        |(shape, placement, delay_ms, telemetry_loss, node_loss, cpu)| {
            let (seed, calls, nodes, over_commit, concurrency, on_tick) = shape;
            World {
                seed,
                calls,
                nodes,
                over_commit,
                concurrency,
                on_tick,
                placement,
                delay_ms,
                telemetry_loss,
                node_loss,
                cpu,
            }
        },
    )
}

impl World {
    fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.nodes, Allocation::new(4000, 2000));
        settings.cluster.over_commit_cpu = self.over_commit;
        settings.cpu = self.cpu;
        settings.concurrency = self.concurrency;
        settings.scale_out = if self.on_tick { ScaleOut::OnTick } else { ScaleOut::PerCall };
        settings.placement = self.placement;
        settings.actuation_delay = Duration::from_millis(self.delay_ms);
        settings.faults.telemetry_loss = self.telemetry_loss;
        settings.faults.node_loss_every = self.node_loss.then_some(Duration::from_secs(20));
        settings.faults.node_away = Duration::from_secs(3);
        settings.keep_alive = Duration::from_secs(2);
        settings.keep_steps = true;
        settings
    }

    fn script(&self) -> Script {
        let mut random = Seed::new(self.seed).generator();
        let functions =
            (0..4).map(|_| function(random.random_range(100..3000), random.random_range(50..600)));
        let functions: Vec<_> = functions.collect();
        let arrivals = (0..self.calls)
            .map(|_| {
                let base = random.random_range(1..200);
                let demand = CallDemand {
                    fixed: Duration::from_millis(random.random_range(0..500)),
                    memory_base: Mebibytes::new(base),
                    memory_peak: Mebibytes::new(base + random.random_range(0..300)),
                    rise: Duration::from_millis(random.random_range(0..5)),
                    jumps: random.random(),
                    cycles: random.random_range(1..5),
                    shape: random.random(),
                    ..work(random.random_range(0.001..3.0), random.random_range(0.1..4.0))
                };
                at(random.random_range(0.0..20.0), random.random_range(0..4), demand)
            })
            .collect();
        Script::new(functions, arrivals)
    }

    /// Grants and resizes at random, memory sometimes below what is in use.
    fn control(&self) -> Scripted {
        let mut random = Seed::new(self.seed).stream("control").generator();
        Scripted {
            grant: Some(Allocation::new(
                random.random_range(50..3000),
                random.random_range(50..600),
            )),
            look_after: Some(Duration::from_millis(random.random_range(1..400))),
            on_look: Box::new(move |running| {
                let cpu = random.random_range(1..running.ceiling.cpu.get());
                let memory = random.random_range(1..600);
                let next = random.random_range(1..400);
                (Allocation::new(cpu, memory), Some(Duration::from_millis(next)))
            }),
            ..Scripted::default()
        }
    }

    fn play(&self) -> Everything {
        self.play_under(self.control())
    }

    fn play_under(&self, control: Scripted) -> Everything {
        let mut seen = Everything::default();
        let (settings, script) = (self.settings(), self.script());
        let mut simulator =
            Simulator::new(settings, script, control, &mut seen, Seed::new(self.seed));
        simulator.run_to_end();
        let ledger = simulator.ledger();
        assert!(ledger.balances(), "{ledger:?}");
        assert_eq!(ledger.arrived as usize, self.calls);
        assert_eq!(ledger.waiting + ledger.running, 0, "{ledger:?}");
        assert!(simulator.is_at_rest(), "something is still held");
        drop(simulator);
        seen
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_call_ends_once_and_everything_is_given_back(world in worlds()) {
        let seen = world.play();
        prop_assert_eq!(seen.calls.len(), world.calls);
        let mut ids: Vec<_> = seen.calls.iter().map(|call| call.id).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), world.calls);
        let capacity = f64::from(world.nodes) * 4.0;
        for stretch in &seen.intervals {
            prop_assert!(stretch.granted_cores <= capacity * world.over_commit + 1e-9);
            prop_assert!(stretch.used_cores <= capacity + 1e-9);
            // A period's quota may be used in advance.
            if world.cpu.is_fluid() {
                prop_assert!(stretch.used_cores <= stretch.granted_cores + 1e-6, "{:?}", stretch);
            }
        }
        for call in &seen.calls {
            prop_assert!(call.started_at >= call.arrived_at && call.ended_at >= call.started_at);
            let shares = u64::from(world.concurrency);
            let is_within = call.cpu_used <= shares * (call.cpu_granted + shares);
            prop_assert!(is_within || !world.cpu.is_fluid(), "{:?}", call);
        }
    }

    #[test]
    fn a_control_that_leaves_calls_alone_need_not_be_asked(world in worlds()) {
        let reserving = |leaves_calls_alone| Scripted { leaves_calls_alone, ..Scripted::default() };
        let (asked, spared) =
            (world.play_under(reserving(false)), world.play_under(reserving(true)));
        prop_assert_eq!(asked.calls, spared.calls);
        prop_assert_eq!(asked.intervals, spared.intervals);
    }

    #[test]
    fn what_is_held_back_fits_beside_what_is_granted_and_is_some_calls(world in worlds()) {
        let seen = world.play_under(Scripted { holds_back: true, ..world.control() });
        let capacity = f64::from(world.nodes) * 4.0;
        let mut kept = 0.0;
        for stretch in &seen.intervals {
            let held = stretch.granted_cores + stretch.held_back_cores;
            prop_assert!(held <= capacity * world.over_commit + 1e-9, "{:?}", stretch);
            kept += stretch.held_back_cores * stretch.until.since(stretch.from).as_secs_f64();
        }
        let of_calls: f64 = seen.calls.iter().map(|call| call.cpu_held_back as f64 * 1e-12).sum();
        prop_assert!((kept - of_calls).abs() <= 1e-9 * kept.max(1.0), "{kept} {of_calls}");
    }

    #[test]
    fn one_seed_gives_one_story(world in worlds()) {
        let (first, second) = (world.play(), world.play());
        prop_assert_eq!(first.calls, second.calls);
        prop_assert_eq!(first.intervals, second.intervals);
    }
}

#[test]
fn completed_calls_use_exactly_their_work() {
    for cpu in [CpuModel::Fluid, CpuModel::kernel(), followed()] {
        use_exactly_their_work(cpu);
    }
}

fn use_exactly_their_work(cpu: CpuModel) {
    let world = World {
        seed: 5,
        calls: 200,
        nodes: 3,
        over_commit: 2.5,
        concurrency: 1,
        on_tick: false,
        placement: Placement::LeastLoaded,
        delay_ms: 0,
        telemetry_loss: 0.0,
        node_loss: false,
        cpu,
    };
    let mut script = world.script();
    script.arrivals.iter_mut().for_each(|arrival| arrival.demand.memory_peak = Mebibytes::new(1));
    script.arrivals.iter_mut().for_each(|arrival| arrival.demand.memory_base = Mebibytes::new(1));
    let expected: Vec<u64> = script.arrivals.iter().map(|arrival| arrival.demand.work).collect();
    let seen = crate::stage::play(world.settings(), script, world.control());
    for (call, work) in seen.calls.iter().zip(expected) {
        assert_eq!(call.cpu_used, work);
    }
}
