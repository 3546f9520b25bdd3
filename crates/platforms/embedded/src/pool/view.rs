//! What ticks see of the pool.

use windfall_core::{
    Allocation, ClusterView, Duration, FunctionId, FunctionView, Instances, Timestamp,
};

use super::function::Window;
use super::{Pool, SizedBy};

impl Pool {
    /// A call ended that had waited and run so long.
    pub fn count_completion(&mut self, function: FunctionId, wait: Duration, run: Duration) {
        let Some(state) = self.functions.get_mut(function.index()) else { return };
        state.window.completions += 1;
        state.window.wait += wait;
        state.window.run += run;
        state.note_run(run);
    }

    /// Every function over a window that ends now; counting starts again. What sensors say, and how long starts take,
    /// is not the pool's to know: CPU, memory and cold start are zero.
    pub fn take_views(&mut self, now: Timestamp, window: Duration) -> Vec<FunctionView> {
        let count = self.functions.len() as u32;
        (0..count).map(|place| self.take_view(now, FunctionId(place), window)).collect()
    }

    fn take_view(
        &mut self,
        now: Timestamp,
        function: FunctionId,
        window: Duration,
    ) -> FunctionView {
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
        let mean = |total: Duration| {
            let count = u64::from(completions);
            (count > 0).then(|| Duration::from_nanos(total.as_nanos() / count.max(1)))
        };
        FunctionView {
            function,
            reservation: state.settings.reservation,
            allocation: state.allocation,
            kept: begins_with.map(|size| size.memory),
            start_cpu: begins_with.map(|size| size.cpu),
            concurrency: state.concurrency,
            ready: Instances::new(state.ready),
            busy: Instances::new(state.busy),
            starting: Instances::new(state.starting),
            in_flight: state.seated,
            queued: state.queue.len() as u32,
            mean_concurrency: presence as f64 / window.as_nanos().max(1) as f64,
            arrivals,
            completions,
            cold_starts,
            mean_run: mean(run),
            mean_wait: mean(wait),
            cpu_used_cores: 0.0,
            memory_peak_mib: 0.0,
            cold_start: Duration::ZERO,
            presence: Vec::new(),
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
