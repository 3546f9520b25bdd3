//! Calls as Python policies see them: plain numbers in cores, MiB and seconds.

use pyo3::prelude::*;
use windfall_core::{
    self as core, Allocation, CallCapabilities, CallId, CallView, Duration, FunctionId, Mebibytes,
    MilliCpu, Room, Timestamp,
};

use crate::faults::refused;

/// A call about to start.
#[pyclass(frozen, get_all, module = "windfall")]
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Its number in order of arrival.
    id: u64,
    /// The number of its function.
    function: u32,
    /// When the policy is asked, in seconds.
    now: f64,
    /// When the call arrived, in seconds.
    arrived_at: f64,
    /// Its input size, where the function has one that can be seen.
    input: Option<f32>,
    /// CPU that the user reserves, cores.
    reserved_cores: f64,
    /// Memory that the user reserves, MiB.
    reserved_mib: f64,
    /// The most CPU that a call may be granted, cores.
    ceiling_cores: f64,
    /// The most memory that a call may be granted, MiB.
    ceiling_mib: f64,
    /// CPU that is free on all nodes together, cores.
    free_cores: f64,
    /// Memory that is free on all nodes together, MiB.
    free_mib: f64,
    /// Calls that wait in the cluster.
    waiting: u64,
}

#[pymethods]
impl Call {
    #[new]
    #[pyo3(signature = (function, reserved_cores, reserved_mib, *, id = 0, now = 0.0, arrived_at = 0.0, input = None,
        ceiling_cores = 8.0, ceiling_mib = 65536.0, free_cores = 0.0, free_mib = 0.0, waiting = 0))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        function: u32,
        reserved_cores: f64,
        reserved_mib: f64,
        id: u64,
        now: f64,
        arrived_at: f64,
        input: Option<f32>,
        ceiling_cores: f64,
        ceiling_mib: f64,
        free_cores: f64,
        free_mib: f64,
        waiting: u64,
    ) -> PyResult<Self> {
        let call = Self {
            id,
            function,
            now,
            arrived_at,
            input,
            reserved_cores,
            reserved_mib,
            ceiling_cores,
            ceiling_mib,
            free_cores,
            free_mib,
            waiting,
        };
        call.view().map(|_| call)
    }

    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl Call {
    pub(crate) fn of(view: &CallView) -> Self {
        Self {
            id: view.id.0,
            function: view.function.0,
            now: view.now.as_secs_f64(),
            arrived_at: view.arrived_at.as_secs_f64(),
            input: view.input,
            reserved_cores: view.reservation.cpu.cores(),
            reserved_mib: view.reservation.memory.mib(),
            ceiling_cores: view.ceiling.cpu.cores(),
            ceiling_mib: view.ceiling.memory.mib(),
            free_cores: view.free_in_cluster.cores,
            free_mib: view.free_in_cluster.mib,
            waiting: view.waiting,
        }
    }

    /// The same for a policy of ours.
    pub(crate) fn view(&self) -> PyResult<CallView> {
        let size = |cores: f64, mib: f64| -> PyResult<Allocation> {
            Ok(Allocation {
                cpu: MilliCpu::from_cores(cores).map_err(refused)?,
                memory: Mebibytes::from_mib(mib).map_err(refused)?,
            })
        };
        for (name, seconds) in [("now", self.now), ("arrived_at", self.arrived_at)] {
            if !(0.0..=1e9).contains(&seconds) {
                return Err(refused(format!("{name} is {seconds}, allowed is 0 to 1e9 seconds")));
            }
        }
        Ok(CallView {
            id: CallId(self.id),
            function: FunctionId(self.function),
            now: Timestamp::ZERO + Duration::from_secs_f64(self.now),
            arrived_at: Timestamp::ZERO + Duration::from_secs_f64(self.arrived_at),
            input: self.input,
            reservation: size(self.reserved_cores, self.reserved_mib)?,
            ceiling: size(self.ceiling_cores, self.ceiling_mib)?,
            free_in_cluster: Room { cores: self.free_cores, mib: self.free_mib },
            waiting: self.waiting,
            capabilities: CallCapabilities::QUOTA,
            foresight: None,
        })
    }
}

/// A running call at a sample of its sensors.
#[pyclass(frozen, get_all, module = "windfall")]
#[derive(Clone, Debug)]
pub(crate) struct RunningCall {
    /// Its number in order of arrival.
    id: u64,
    /// The number of its function.
    function: u32,
    /// The time of this sample, in seconds.
    now: f64,
    /// How long it has been running, in seconds.
    elapsed: f64,
    /// Its input size, where the function has one that can be seen.
    input: Option<f32>,
    /// CPU that the user reserves, cores.
    reserved_cores: f64,
    /// Memory that the user reserves, MiB.
    reserved_mib: f64,
    /// CPU that it holds, cores.
    granted_cores: f64,
    /// Memory that it holds, MiB.
    granted_mib: f64,
    /// Cores in use, averaged since the last sample; NaN if the measurement was lost.
    used_cores: f64,
    /// Share of the time in which it could have used more CPU than it had.
    throttled_share: f64,
    /// Memory in use, MiB.
    used_mib: f64,
    /// Calls that wait in the cluster.
    waiting: u64,
}

#[pymethods]
impl RunningCall {
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl RunningCall {
    pub(crate) fn of(running: &core::RunningCall) -> Self {
        Self {
            id: running.id.0,
            function: running.function.0,
            now: running.now.as_secs_f64(),
            elapsed: running.elapsed().as_secs_f64(),
            input: running.input,
            reserved_cores: running.reservation.cpu.cores(),
            reserved_mib: running.reservation.memory.mib(),
            granted_cores: running.grant.cpu.cores(),
            granted_mib: running.grant.memory.mib(),
            used_cores: running.sensed.cpu_used_cores,
            throttled_share: running.sensed.throttled_share,
            used_mib: running.sensed.memory_mib,
            waiting: running.waiting,
        }
    }
}

/// A finished attempt of a call, as it can be measured from outside.
#[pyclass(frozen, get_all, module = "windfall")]
#[derive(Clone, Debug)]
pub(crate) struct CallOutcome {
    /// Its number in order of arrival.
    id: u64,
    /// The number of its function.
    function: u32,
    /// Its input size, where the function has one that can be seen.
    input: Option<f32>,
    /// CPU that the user reserves, cores.
    reserved_cores: f64,
    /// Memory that the user reserves, MiB.
    reserved_mib: f64,
    /// CPU that it started with, cores.
    granted_cores: f64,
    /// Memory that it started with, MiB.
    granted_mib: f64,
    /// How long it waited before it started, in seconds.
    wait: f64,
    /// How long it ran, in seconds.
    run: f64,
    /// Whether it was killed because memory crossed its limit; it is tried once more at the user's size.
    was_killed: bool,
    /// Highest CPU use, cores; never above what was granted.
    cpu_peak_cores: f64,
    /// Mean CPU use, cores.
    cpu_mean_cores: f64,
    /// Highest memory use, MiB.
    memory_peak_mib: f64,
    /// Time in which it could have used more CPU than it had, in seconds.
    throttled: f64,
}

#[pymethods]
impl CallOutcome {
    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl CallOutcome {
    pub(crate) fn of(outcome: &core::CallOutcome) -> Self {
        Self {
            id: outcome.id.0,
            function: outcome.function.0,
            input: outcome.input,
            reserved_cores: outcome.reservation.cpu.cores(),
            reserved_mib: outcome.reservation.memory.mib(),
            granted_cores: outcome.first_grant.cpu.cores(),
            granted_mib: outcome.first_grant.memory.mib(),
            wait: outcome.started_at.since(outcome.arrived_at).as_secs_f64(),
            run: outcome.run().as_secs_f64(),
            was_killed: outcome.was_killed,
            cpu_peak_cores: outcome.cpu_peak_cores,
            cpu_mean_cores: outcome.cpu_mean_cores,
            memory_peak_mib: outcome.memory_peak_mib,
            throttled: outcome.throttled.as_secs_f64(),
        }
    }
}
