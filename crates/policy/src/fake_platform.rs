//! A platform for tests that runs one call at a time: sizes it, samples it, kills and retries it, closes it.

use windfall_core::{
    Allocation, CallCapabilities, CallDecision, CallDemand, CallId, CallOutcome, CallPolicy,
    CallView, Duration, Foresight, FunctionId, Mebibytes, MilliCpu, NodeId, Room, RunningCall,
    Sensed, Timestamp,
};

/// A platform with one function that is called once per minute.
pub(crate) struct FakePlatform {
    pub(crate) reservation: Allocation,
    pub(crate) ceiling: Allocation,
    pub(crate) knows_the_future: bool,
    calls: u64,
}

/// What one call was granted and how long it took.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FakeCall {
    pub(crate) decision: CallDecision,
    pub(crate) first_grant: Allocation,
    pub(crate) last_grant: Allocation,
    pub(crate) run: Duration,
    pub(crate) looks: u32,
    pub(crate) was_killed: bool,
}

impl FakePlatform {
    pub(crate) fn new(reservation: Allocation, ceiling: Allocation) -> Self {
        Self { reservation, ceiling, knows_the_future: false, calls: 0 }
    }

    /// Runs one call of `demand` under `policy`; a kill is followed by a run at the user's size.
    pub(crate) fn call(&mut self, policy: &mut dyn CallPolicy, demand: CallDemand) -> FakeCall {
        let started_at = Timestamp::from_secs(60 * self.calls);
        let foresight = self.knows_the_future.then_some(Foresight { demand });
        let view = CallView {
            id: CallId(self.calls),
            now: started_at,
            arrived_at: started_at,
            input: demand.input,
            foresight,
            ..view(self.reservation, self.ceiling)
        };
        self.calls += 1;
        let decision = policy.size(&view).expect("the policy can size this call");
        let first_grant = granted(&decision, self.ceiling);
        let (run, last_grant, looks, was_killed) =
            self.attempt(policy, &view, demand, first_grant, decision.look_after);
        let mut outcome = closed(&view, first_grant, last_grant, demand, run);
        outcome.was_killed = was_killed;
        policy.learn(&outcome);
        if was_killed {
            let again = started_at + run;
            let run = demand.run_time(self.reservation.cpu);
            let retry = CallOutcome {
                started_at: again,
                ended_at: again + run,
                ..closed(&view, self.reservation, self.reservation, demand, run)
            };
            policy.learn(&retry);
        }
        FakeCall { decision, first_grant, last_grant, run, looks, was_killed }
    }

    /// Advances the call from look to look, with the mean progress rate of its whole run.
    fn attempt(
        &self,
        policy: &mut dyn CallPolicy,
        view: &CallView,
        demand: CallDemand,
        mut grant: Allocation,
        mut look_after: Option<Duration>,
    ) -> (Duration, Allocation, u32, bool) {
        let (mut elapsed, mut done, mut looks) = (Duration::ZERO, 0.0, 0);
        loop {
            let whole = demand.run_time(grant.cpu);
            let left = whole.scaled(1.0 - done);
            let window = look_after.map_or(left, |after| after.min(left));
            if let Some(crossed) = demand.crosses(grant.memory).filter(|at| *at < elapsed + window)
            {
                return (crossed.max(elapsed), grant, looks, true);
            }
            elapsed += window;
            done += window.as_secs_f64() / whole.as_secs_f64();
            if window == left {
                return (elapsed, grant, looks, false);
            }
            looks += 1;
            let decision = policy
                .supervise(&self.sample(view, demand, grant, elapsed, window))
                .expect("the policy can supervise this call");
            (grant, look_after) = (granted(&decision, self.ceiling), decision.look_after);
        }
    }

    fn sample(
        &self,
        view: &CallView,
        demand: CallDemand,
        grant: Allocation,
        elapsed: Duration,
        window: Duration,
    ) -> RunningCall {
        let sensed = Sensed {
            window,
            cpu_used_cores: demand.parallelism.min(grant.cpu).cores(),
            throttled_share: f64::from(demand.parallelism > grant.cpu),
            delayed_share: 0.0,
            memory_mib: demand.memory_at(elapsed).mib(),
        };
        let now = view.now + elapsed;
        RunningCall { id: view.id, now, started_at: view.now, grant, sensed, ..running(view) }
    }
}

/// A running call at its start, before the first sample.
pub(crate) fn running(view: &CallView) -> RunningCall {
    RunningCall {
        id: view.id,
        function: view.function,
        node: NodeId(0),
        now: view.now,
        started_at: view.now,
        input: view.input,
        reservation: view.reservation,
        ceiling: view.ceiling,
        grant: view.reservation,
        owed: Allocation::ZERO,
        free_on_node: Allocation::new(64_000, 65_536),
        waiting: 0,
        node_is_short: false,
        actuation_delay: Duration::ZERO,
        capabilities: view.capabilities,
        sensed: Sensed::default(),
    }
}

/// A call about to start on a platform with plenty of room.
pub(crate) fn view(reservation: Allocation, ceiling: Allocation) -> CallView {
    CallView {
        id: CallId(0),
        function: FunctionId(0),
        now: Timestamp::ZERO,
        arrived_at: Timestamp::ZERO,
        input: None,
        reservation,
        ceiling,
        free_in_cluster: Room { cores: 64.0, mib: 65_536.0 },
        waiting: 0,
        capabilities: CallCapabilities::QUOTA,
        foresight: None,
    }
}

/// A call that ran for one second on `grant` with these peaks.
pub(crate) fn outcome(
    reservation: Allocation,
    grant: Allocation,
    cpu_peak_cores: f64,
    memory_peak_mib: f64,
) -> CallOutcome {
    CallOutcome {
        id: CallId(0),
        function: FunctionId(0),
        node: NodeId(0),
        input: None,
        reservation,
        first_grant: grant,
        last_grant: grant,
        arrived_at: Timestamp::ZERO,
        started_at: Timestamp::ZERO,
        ended_at: Timestamp::from_secs(1),
        was_killed: false,
        cpu_peak_cores,
        memory_peak_mib,
        cpu_mean_cores: cpu_peak_cores,
        throttled: Duration::ZERO,
        delayed: Duration::ZERO,
    }
}

/// One core-second on up to 1.5 cores, 0.2 s of waiting, memory from 100 to 300 MiB in 0.4 s.
pub(crate) fn one_core_second() -> CallDemand {
    CallDemand {
        work: 1_000_000_000_000,
        fixed: Duration::from_millis(200),
        parallelism: MilliCpu::new(1500),
        memory_base: Mebibytes::new(100),
        memory_peak: Mebibytes::new(300),
        rise: Duration::from_millis(400),
        jumps: false,
        cycles: 1,
        shape: 0,
        input: None,
    }
}

fn granted(decision: &CallDecision, ceiling: Allocation) -> Allocation {
    let grant = Allocation {
        cpu: MilliCpu::from_cores(decision.cpu_cores).expect("an amount of CPU"),
        memory: Mebibytes::from_mib(decision.memory_mib).expect("an amount of memory"),
    };
    grant.min(ceiling).max(Allocation::new(1, 1))
}

fn closed(
    view: &CallView,
    first_grant: Allocation,
    last_grant: Allocation,
    demand: CallDemand,
    run: Duration,
) -> CallOutcome {
    let most = first_grant.max(last_grant);
    let cpu = demand.parallelism.min(most.cpu).cores();
    let memory = demand.memory_peak.min(last_grant.memory).mib();
    let is_short = demand.parallelism > last_grant.cpu;
    CallOutcome {
        id: view.id,
        input: view.input,
        first_grant,
        last_grant,
        arrived_at: view.arrived_at,
        started_at: view.now,
        ended_at: view.now + run,
        throttled: if is_short { run.scaled(0.5) } else { Duration::ZERO },
        delayed: Duration::ZERO,
        ..outcome(view.reservation, last_grant, cpu, memory)
    }
}
