//! Autothrottle's captains on the shared nodes: one quota per function, followed every 100 ms.
//!
//! A function is a service and its instances are its threads: a call that waits is a thread that would run. A period counts
//! as throttled if calls, running or waiting, could have used more than the quota. The number of instances is the quota in
//! whole calls, so that what may be used can be.
//!
//! ```text
//!   quota 1.3 cores, calls of one core: 2 instances; two calls run and one waits: 3 cores wanted, throttled
//! ```

use windfall_policy::Captain;

use super::tenant::Tenant;
use crate::moves::Range;

/// One captain per function.
#[derive(Clone, Debug)]
pub struct Captains {
    captains: Vec<Captain>,
    targets: Vec<f64>,
    range: Range,
    used: Vec<f64>,
}

impl Captains {
    /// Captains of `count` functions that begin with one core and aim at `target`, the share of throttled periods.
    pub fn new(count: usize, target: f64, range: Range) -> Self {
        Self {
            captains: vec![Captain::of_service(1.0); count],
            targets: vec![target; count],
            range,
            used: vec![0.0; count],
        }
    }

    /// Another target for `function`.
    pub fn aim(&mut self, function: usize, target: f64) {
        self.targets[function] = target;
    }

    /// Cores that `function` may use.
    pub fn quota(&self, function: usize) -> f64 {
        self.captains[function].quota()
    }

    /// A period of 100 ms has passed.
    pub(super) fn pass(&mut self, tenants: &mut [Tenant]) {
        for (index, tenant) in tenants.iter_mut().enumerate() {
            let able = f64::from(tenant.load.profile.parallelism) * 1e-3;
            // The window begins anew with every tick.
            let total = tenant.window.core_seconds;
            let used = if total >= self.used[index] { total - self.used[index] } else { total };
            self.used[index] = total;
            let captain = &mut self.captains[index];
            let wanted = tenant.on_cpu() as f64 * able;
            captain.pass(used / 0.1, wanted > captain.quota() + 1e-9, self.targets[index]);
            let (least, most) = self.range.instances;
            captain.limit(f64::from(most) * able);
            let quota = captain.quota();
            tenant.quota = Some(quota);
            tenant.wanted.instances = ((quota / able).ceil() as u32).clamp(least, most);
        }
    }
}
