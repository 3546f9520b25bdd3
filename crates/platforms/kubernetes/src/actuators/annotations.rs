//! Settings of Knative's autoscaler, as annotations of the live Revision. Knative copies them to the PodAutoscaler within
//! a second (since 1.21), without a new Revision and without restarting a pod. Its autoscaler keeps its own safety: it
//! still reacts to surges and still starts pods from zero.

use std::collections::BTreeMap;

use super::{Action, Actuator, Cost, is_knative};
use crate::cluster::{Key, RevisionFacts, TargetFacts};
use crate::desired::{Desired, Scope};
use crate::discovery::Offers;
use crate::resource_policy::ResourcePolicySpec;

pub(super) const NAME: &str = "revision-annotations";

pub(super) struct RevisionAnnotations;

/// Shortest and longest stable window that Knative accepts, seconds.
const WINDOW: (u64, u64) = (6, 3600);

/// The annotations that express `desired`, without their prefix.
///
/// The least number of pods is a floor under Knative's own decision. It is also the number that a first request starts,
/// so that a service which needs three pods does not begin with one. Room for bursts stays as it is: with less of it than
/// Knative's usual 211, requests of a small service bypass the activator, which spreads them over pods by what each holds.
pub fn settings_of(desired: &Desired) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut set = |key: &str, value: String| {
        settings.insert(key.to_owned(), value);
    };
    if let Some(least) = desired.replicas {
        let least = desired.most_replicas.map_or(least, |most| least.min(most));
        set("min-scale", least.to_string());
        if least >= 2 {
            set("activation-scale", least.to_string());
        }
    }
    if let Some(most) = desired.most_replicas {
        set("max-scale", most.to_string());
    }
    if let Some(calls) = desired.concurrency.filter(|calls| *calls > 0) {
        set("target", calls.to_string());
    }
    if let Some(time) = desired.keep_alive {
        let seconds = (time.as_secs_f64().ceil() as u64).clamp(WINDOW.0, WINDOW.1);
        set("window", format!("{seconds}s"));
    }
    settings
}

impl Actuator for RevisionAnnotations {
    fn name(&self) -> &'static str {
        NAME
    }

    fn cost(&self) -> Cost {
        Cost::Request
    }

    fn is_offered(&self, offers: &Offers, spec: &ResourcePolicySpec) -> bool {
        offers.knative && is_knative(spec)
    }

    fn pursue(&self, target: &TargetFacts<'_>, desired: &Desired, scope: Scope) -> Vec<Action> {
        let wanted = match scope {
            Scope::Everything => settings_of(desired),
            Scope::Share(_) | Scope::Nothing => BTreeMap::new(),
        };
        annotate(target, &wanted)
    }

    fn restore(&self, target: &TargetFacts<'_>) -> Vec<Action> {
        annotate(target, &BTreeMap::new())
    }
}

/// Sets what is wanted on the present Revision and gives back what is no longer wanted, on earlier ones everything.
fn annotate(target: &TargetFacts<'_>, wanted: &BTreeMap<String, String>) -> Vec<Action> {
    let nothing = BTreeMap::new();
    let earlier = target.noted_revisions.iter().map(|(key, facts)| (*key, *facts, &nothing));
    let present = target.revision.map(|(key, facts)| (key, facts, wanted));
    let action = |(key, revision, wanted): (&Key, &RevisionFacts, &BTreeMap<String, String>)| {
        let set = changes(revision, wanted);
        let original = originals(revision, wanted);
        let is_there = set.is_empty() && original == revision.original;
        (!is_there).then(|| Action::Annotate { revision: key.clone(), set, original })
    };
    present.into_iter().chain(earlier).filter_map(action).collect()
}

fn changes(
    revision: &RevisionFacts,
    wanted: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let given_back = revision
        .original
        .iter()
        .filter(|(key, _)| !wanted.contains_key(*key))
        .map(|(key, value)| (key.clone(), value.clone()));
    let set = wanted.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
    let differs =
        |(key, value): &(String, Option<String>)| revision.annotations.get(key) != value.as_ref();
    given_back.chain(set).filter(differs).collect()
}

/// What the user had of each key that is set now.
fn originals(
    revision: &RevisionFacts,
    wanted: &BTreeMap<String, String>,
) -> BTreeMap<String, Option<String>> {
    let users = |key: &String| match revision.original.get(key) {
        Some(noted) => noted.clone(),
        None => revision.annotations.get(key).cloned(),
    };
    wanted.keys().map(|key| (key.clone(), users(key))).collect()
}
