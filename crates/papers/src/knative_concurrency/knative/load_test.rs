//! The load test: a steady stream of requests against a fresh revision that stands at zero.

use serde::{Deserialize, Serialize};
use windfall_core::Seed;

use super::outcome::LoadTestOutcome;
use super::request::RequestShape;
use super::revision::{Event, Revision};
use super::settings::KnativeSettings;
use super::{Autoscale, Scaling};

const SECOND_NS: u64 = 1_000_000_000;
/// Seconds between two decisions of the autoscaler.
const DECISION_SECONDS: u64 = 2;

/// What the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Requests per second, evenly spaced.
    pub requests_per_second: u32,
    /// For how long.
    pub seconds: u32,
}

impl Default for Load {
    /// The paper's: 500 a second for 30 s.
    fn default() -> Self {
        Self { requests_per_second: 500, seconds: 30 }
    }
}

/// Tests a revision that takes `limit` requests per pod at once. The same seed gives the same numbers.
pub fn load_test(
    settings: &KnativeSettings,
    shape: RequestShape,
    limit: u32,
    load: Load,
    autoscaler: &mut dyn Autoscale,
    seed: Seed,
) -> LoadTestOutcome {
    let mut revision = Revision::new(settings, shape.work(), limit.max(1), seed);
    let requests = u64::from(load.requests_per_second) * u64::from(load.seconds);
    let spacing = SECOND_NS / u64::from(load.requests_per_second.max(1));
    let last_arrival = requests.saturating_sub(1) * spacing;
    let give_up_at = last_arrival + settings.client_timeout.as_nanos();
    let mut sent = 0;
    let mut watch = Watch::default();
    if requests > 0 {
        revision.push(0, Event::Arrives);
        revision.push(SECOND_NS, Event::Second(1));
    }
    while let Some(event) = revision.next_event() {
        if revision.now > give_up_at {
            break;
        }
        watch.pass(&revision);
        match event {
            Event::Arrives => {
                revision.arrive();
                sent += 1;
                if sent == 1 {
                    // The activator does not wait for the second to end when a revision stands at zero.
                    autoscaler.record(0, 1.0);
                    obey(&mut revision, autoscaler.decide(0, 0));
                }
                if sent < requests {
                    revision.push(sent * spacing, Event::Arrives);
                }
            }
            Event::PodReady(pod, generation) => revision.pod_is_ready(pod, generation),
            Event::PodTurns(pod, generation) => revision.turn(pod, generation),
            Event::Wakes(request) => revision.wake(request),
            Event::Second(second) => {
                autoscaler.record(second, watch.mean_of_second());
                if second % DECISION_SECONDS == 0 {
                    let ready = revision.ready;
                    obey(&mut revision, autoscaler.decide(second, ready));
                }
                revision.push(revision.now + SECOND_NS, Event::Second(second + 1));
            }
        }
        watch.in_system = revision.in_system;
        if sent == requests && revision.in_system == 0 {
            break;
        }
    }
    revision.give_up();
    revision.tally.report(settings)
}

fn obey(revision: &mut Revision<'_>, scaling: Scaling) {
    revision.is_proxied = scaling.is_proxied;
    if let Some(replicas) = scaling.replicas {
        revision.scale_to(replicas);
    }
}

/// Requests in the system, added up over the second under way.
#[derive(Debug, Default)]
struct Watch {
    in_system: u32,
    since_ns: u64,
    area: f64,
}

impl Watch {
    fn pass(&mut self, revision: &Revision<'_>) {
        self.area += (revision.now - self.since_ns) as f64 * f64::from(self.in_system);
        self.since_ns = revision.now;
    }

    fn mean_of_second(&mut self) -> f64 {
        std::mem::take(&mut self.area) / SECOND_NS as f64
    }
}
