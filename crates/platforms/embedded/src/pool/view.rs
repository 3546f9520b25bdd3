//! What ticks see of the pool.

use windfall_core::{Allocation, ClusterView, Duration, FunctionId, Instances, Timestamp};

use super::function::Window;
use super::{Pool, SizedBy};

/// What was counted of one function since the last time, and how it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionCounts {
    /// What its user reserves.
    pub reservation: Allocation,
    /// What a new instance gets.
    pub allocation: Allocation,
    /// What an instance begins with, where calls bring their size.
    pub begins_with: Option<Allocation>,
    /// Calls per instance.
    pub concurrency: u32,
    /// Instances that can serve.
    pub ready: Instances,
    /// Of these, with a call.
    pub busy: Instances,
    /// Instances on their way up.
    pub starting: Instances,
    /// Calls that have an instance.
    pub in_flight: u32,
    /// Calls that wait.
    pub queued: u32,
    /// Calls in the system on average.
    pub mean_concurrency: f64,
    /// Calls that arrived.
    pub arrivals: u32,
    /// Calls that ended.
    pub completions: u32,
    /// Instances that calls had to wait for.
    pub cold_starts: u32,
    /// Run time of the calls that ended, in total.
    pub run: Duration,
    /// Time until they started, in total.
    pub wait: Duration,
}

impl Pool {
    /// A call ended that had waited and run so long.
    pub fn count_completion(&mut self, function: FunctionId, wait: Duration, run: Duration) {
        let Some(state) = self.functions.get_mut(function.index()) else { return };
        state.window.completions += 1;
        state.window.wait += wait;
        state.window.run += run;
    }

    /// The counts of every function over a window that ends now; they start again.
    pub fn take_counts(&mut self, now: Timestamp, window: Duration) -> Vec<FunctionCounts> {
        let nanos = window.as_nanos().max(1) as f64;
        let count = self.functions.len() as u32;
        (0..count).map(|place| self.counts_of(now, FunctionId(place), nanos)).collect()
    }

    fn counts_of(&mut self, now: Timestamp, function: FunctionId, nanos: f64) -> FunctionCounts {
        let begins_with = (self.settings.sized_by == SizedBy::Call).then(|| {
            let begun_with = self.state(function).begun_with;
            let reservation = self.state(function).settings.reservation;
            let memory = self.memory_ahead(function);
            Allocation { cpu: begun_with.unwrap_or(reservation).cpu, memory }
        });
        let state = &mut self.functions[function.index()];
        state.count_presence(now);
        let Window { arrivals, completions, cold_starts, run, wait, presence } =
            std::mem::take(&mut state.window);
        FunctionCounts {
            reservation: state.settings.reservation,
            allocation: state.allocation,
            begins_with,
            concurrency: state.concurrency,
            ready: Instances::new(state.ready),
            busy: Instances::new(state.busy),
            starting: Instances::new(state.starting),
            in_flight: state.seated,
            queued: state.queue.len() as u32,
            mean_concurrency: presence as f64 / nanos,
            arrivals,
            completions,
            cold_starts,
            run,
            wait,
        }
    }

    /// The node as a whole.
    pub fn cluster_view(&self) -> ClusterView {
        let (limit, granted) = (self.book.limit(), self.book.in_force());
        ClusterView {
            nodes: 1,
            capacity_cores: limit.cpu.cores(),
            capacity_mib: limit.memory.mib(),
            granted_cores: granted.cpu.cores(),
            granted_mib: granted.memory.mib(),
            queued: self.waiting(),
        }
    }
}
