//! Computes the desired count from two averages and the number of ready pods.
//!
//! ```text
//!   stable average ─► ceil(s / target) ─┐                        ┌─ calm: stable count
//!                                        ├─ into [down, up] ─ … ─┤
//!   panic average ──► ceil(p / target) ─┘                        └─ panic: the larger, never less than
//!          │                                                              the maximum during this panic
//!          └─ / ready >= panic threshold: panic begins or is renewed; it ends a stable window later
//!
//!   up = ceil(max-scale-up-rate · ready)      down = floor(ready / max-scale-down-rate)
//!   excess burst capacity = floor(ready · total - target-burst-capacity - panic average)
//! ```
//!
//! One ready pod, target 70, total 100, 300 requests in flight in both windows: ceil(300 / 70) = 5 pods;
//! 5 / 1 >= 2, so panic; the desired count is 5, and 100 - 211 - 300 = -411 means that activators must stay in the
//! path.

use super::delay_window::DelayWindow;

/// Seconds between decisions, `tickInterval` upstream.
pub const TICK_SECONDS: u32 = 2;

/// Settings of a revision's decider, `DeciderSpec` upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct DeciderSettings {
    /// `MaxScaleUpRate`, key `max-scale-up-rate`.
    pub max_scale_up_rate: f64,
    /// `MaxScaleDownRate`, key `max-scale-down-rate`.
    pub max_scale_down_rate: f64,
    /// `TargetValue`: target of the metric per pod.
    pub target_value: f64,
    /// `TotalValue`: capacity of one pod.
    pub total_value: f64,
    /// `TargetBurstCapacity`, key `target-burst-capacity`; -1 for unlimited, 0 for none.
    pub target_burst_capacity: f64,
    /// `PanicThreshold`, key `panic-threshold-percentage` divided by 100.
    pub panic_threshold: f64,
    /// `StableWindow`, key `stable-window`.
    pub stable_window_seconds: u32,
    /// `ScaleDownDelay`, key `scale-down-delay`; fixed when the decider is created.
    pub scale_down_delay_seconds: u32,
    /// `ActivationScale`, annotation `activation-scale`; below 2 it has no effect.
    pub activation_scale: i32,
    /// `Reachable`: whether a route points at the revision.
    pub reachable: bool,
}

/// The two window averages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Averages {
    /// Over the stable window.
    pub stable: f64,
    /// Over the panic window.
    pub panic: f64,
}

/// `ScaleResult` upstream; without data there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// `DesiredPodCount`.
    pub desired: i32,
    /// `ExcessBurstCapacity`.
    pub excess_burst_capacity: i32,
}

/// Computes decisions, with the state of panic mode and of the scale-down delay.
#[derive(Clone, Debug)]
pub struct Decider {
    settings: DeciderSettings,
    panic_since: Option<u64>,
    most_in_panic: i32,
    delay: Option<DelayWindow>,
}

impl Decider {
    /// Creates a decider at second `now` with `ready` pods. With more than one pod it starts in panic mode: this may be a
    /// restart, and missing metrics must not scale down a running revision.
    pub fn new(settings: DeciderSettings, now: u64, ready: u32) -> Self {
        let delay = settings.scale_down_delay_seconds;
        Self {
            panic_since: (ready > 1).then_some(now),
            most_in_panic: whole(f64::from(ready)),
            delay: (delay > 0).then(|| DelayWindow::new(delay, TICK_SECONDS)),
            settings,
        }
    }

    /// Applies new settings; panic mode and the delay window are unchanged.
    pub fn update(&mut self, settings: DeciderSettings) {
        self.settings = settings;
    }

    /// Its settings.
    pub fn settings(&self) -> &DeciderSettings {
        &self.settings
    }

    /// Whether it is in panic mode.
    pub fn is_in_panic(&self) -> bool {
        self.panic_since.is_some()
    }

    /// Decides at second `now`. Without averages it returns `None` and leaves panic mode unchanged.
    pub fn scale(&mut self, now: u64, ready: u32, seen: Option<Averages>) -> Option<Scale> {
        let seen = seen?;
        let pods = f64::from(ready).max(1.0);
        let raw_stable = (seen.stable / self.settings.target_value).ceil();
        let raw_panic = (seen.panic / self.settings.target_value).ceil();
        self.panic_or_calm(now, raw_panic / pods >= self.settings.panic_threshold);

        let mut desired = self.bounded(raw_stable, pods);
        if self.is_in_panic() {
            desired = desired.max(self.bounded(raw_panic, pods)).max(self.most_in_panic);
            self.most_in_panic = desired;
        }
        if self.settings.reachable
            && let Some(delay) = &mut self.delay
        {
            desired = delay.record(now, desired);
        }
        Some(Scale {
            desired,
            excess_burst_capacity: self.excess_burst_capacity(ready, seen.panic),
        })
    }

    fn panic_or_calm(&mut self, now: u64, over: bool) {
        if over {
            self.panic_since = Some(now);
            return;
        }
        // Strictly after: by then the stable window covers the surge.
        let window = u64::from(self.settings.stable_window_seconds);
        if self.panic_since.is_some_and(|since| since + window < now) {
            self.panic_since = None;
            self.most_in_panic = 0;
        }
    }

    /// Clamps a raw count to the rates, and raises it to the activation scale if there is any load.
    fn bounded(&self, raw: f64, pods: f64) -> i32 {
        let up = (self.settings.max_scale_up_rate * pods).ceil();
        let down = match self.settings.reachable {
            true => (pods / self.settings.max_scale_down_rate).floor(),
            false => 0.0,
        };
        let count = whole(raw.max(down).min(up));
        let activation = self.settings.activation_scale;
        if activation > 1 && raw > 0.0 { count.max(activation) } else { count }
    }

    fn excess_burst_capacity(&self, ready: u32, panic: f64) -> i32 {
        let wanted = self.settings.target_burst_capacity;
        if wanted == 0.0 {
            return 0;
        }
        if wanted < 0.0 {
            return -1;
        }
        whole((f64::from(ready) * self.settings.total_value - wanted - panic).floor())
    }
}

/// Saturates where Go's conversion is implementation-defined; no real revision is that large.
fn whole(count: f64) -> i32 {
    count as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> DeciderSettings {
        DeciderSettings {
            max_scale_up_rate: 1000.0,
            max_scale_down_rate: 2.0,
            target_value: 70.0,
            total_value: 100.0,
            target_burst_capacity: 211.0,
            panic_threshold: 2.0,
            stable_window_seconds: 60,
            scale_down_delay_seconds: 0,
            activation_scale: 0,
            reachable: true,
        }
    }

    fn both(value: f64) -> Option<Averages> {
        Some(Averages { stable: value, panic: value })
    }

    #[test]
    fn the_worked_number() {
        let mut decider = Decider::new(settings(), 0, 1);
        let scale = decider.scale(2, 1, both(300.0));
        assert_eq!(scale, Some(Scale { desired: 5, excess_burst_capacity: -411 }));
        assert!(decider.is_in_panic());
        decider.update(DeciderSettings { target_value: 21.0, total_value: 30.0, ..settings() });
        let scale = decider.scale(4, 1, both(300.0));
        assert_eq!(scale, Some(Scale { desired: 15, excess_burst_capacity: -481 }));
    }

    #[test]
    fn half_the_pods_may_be_removed_per_decision() {
        let mut decider = Decider::new(settings(), 0, 1);
        let scale = decider.scale(2, 10, both(350.0));
        assert_eq!(scale, Some(Scale { desired: 5, excess_burst_capacity: 439 }));
        for (ready, wanted) in [(8, 4), (4, 2), (2, 1), (1, 0)] {
            assert_eq!(decider.scale(4, ready, both(0.0)).map(|scale| scale.desired), Some(wanted));
        }
    }

    #[test]
    fn an_unreachable_revision_is_removed_without_rate_limit_or_delay() {
        let changed =
            DeciderSettings { reachable: false, scale_down_delay_seconds: 30, ..settings() };
        let mut decider = Decider::new(changed, 0, 1);
        decider.scale(2, 10, both(700.0));
        assert_eq!(decider.scale(4, 10, both(0.0)).map(|scale| scale.desired), Some(0));
    }

    #[test]
    fn a_small_rate_still_allows_one_more_pod() {
        let changed = DeciderSettings { max_scale_up_rate: 1.1, target_value: 1.0, ..settings() };
        let mut decider = Decider::new(changed, 0, 0);
        assert_eq!(decider.scale(2, 2, both(3.0)).map(|scale| scale.desired), Some(3));
    }

    #[test]
    fn activation_scale_applies_only_if_there_is_load() {
        let changed = DeciderSettings { activation_scale: 3, ..settings() };
        let mut decider = Decider::new(changed, 0, 0);
        assert_eq!(decider.scale(2, 1, both(0.01)).map(|scale| scale.desired), Some(3));
        let mut decider = Decider::new(DeciderSettings { activation_scale: 3, ..settings() }, 0, 0);
        assert_eq!(decider.scale(2, 1, both(0.0)).map(|scale| scale.desired), Some(0));
    }

    #[test]
    fn burst_capacity_can_be_none_unlimited_or_a_number() {
        for (capacity, wanted) in [(0.0, 0), (-1.0, -1), (70.0, 180)] {
            let changed = DeciderSettings { target_burst_capacity: capacity, ..settings() };
            let scale = Decider::new(changed, 0, 0).scale(2, 3, both(49.5));
            assert_eq!(scale.map(|scale| scale.excess_burst_capacity), Some(wanted));
        }
    }
}
