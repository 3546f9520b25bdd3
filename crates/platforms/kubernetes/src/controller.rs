//! One pass over all policies.
//!
//! ```text
//!   sort policies ─► measure ─► tick every group ─► look for harm ─► close differences ─► finalizers, status, Events
//!   (cases.rs)                  (control loop)      (harm.rs)        (actuators)          (status.rs, writes.rs)
//! ```
//!
//! A pass makes at most as many requests as its two budgets allow, one for measurements and one for writes; what is left
//! over is done at the next pass. So more policies make passes longer-winded, never more expensive.

mod adopt;
mod cases;
mod status;
mod writes;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use kube::Client;
use kube::runtime::events::Recorder;
use windfall_control::ControlLoop;
use windfall_core::{Duration, FunctionId, TickRecord, Timestamp};

use crate::actuators::{self, Action};
use crate::cluster::Key;
use crate::guard::{Guard, Guards, lock};
use crate::harm::{self, Watchman};
use crate::instruments::Instruments;
use crate::leader::Leadership;
use crate::metrics::{Budget, MetricsSource, Wanted};
use crate::platform::{KubernetesPlatform, Membership, wanted};
use crate::policies::{PolicyProblem, control_loop};
use crate::resource_policy::{ResourcePolicy, ResourcePolicyStatus, Reverted, TargetKind};
use crate::watch::WatchHealth;
use crate::world::World;

pub use cases::{Case, FINALIZER, Sorted, sizes_pods};
pub use status::CONDITIONS;
use writes::Write;

/// Without a watch for longer than this nothing is changed.
const WATCH_PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
/// Readings of pods that are gone are forgotten after this.
const FORGET_AFTER: Duration = Duration::from_mins(15);

/// How the controller works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Writes per pass.
    pub writes: u32,
    /// Requests for measurements per pass.
    pub reads: u32,
    /// How long a workload is left alone after it was given back.
    pub cooldown: Duration,
    /// Whether actions are logged instead of sent.
    pub dry_run: bool,
    /// Whether every workload is given back, whatever its policy says: before the controller is removed.
    pub give_back: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            writes: 200,
            reads: 60,
            cooldown: Duration::from_mins(10),
            dry_run: false,
            give_back: false,
        }
    }
}

/// Policies that one loop decides about.
struct Group {
    control: Result<ControlLoop, PolicyProblem>,
    platform: KubernetesPlatform,
    guards: Arc<Mutex<Guards>>,
    last: Option<TickRecord>,
}

/// The name of the policy and the kind of target: what can be set differs by kind.
type GroupKey = (String, TargetKind);

/// The controller.
pub struct Controller {
    client: Client,
    world: Arc<World>,
    health: Arc<WatchHealth>,
    sources: Vec<Box<dyn MetricsSource>>,
    settings: Settings,
    recorder: Recorder,
    instruments: Arc<Instruments>,
    leadership: Arc<Leadership>,
    groups: BTreeMap<GroupKey, Group>,
    watchmen: BTreeMap<Key, Watchman>,
    /// Returns of this and earlier controllers.
    reverts: BTreeMap<Key, Reverted>,
    /// What sources said when they failed.
    source_problem: Option<String>,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassReport {
    /// Policies that were decided about.
    pub policies: usize,
    /// Requests for measurements.
    pub reads: u64,
    /// Writes: actions, finalizers, statuses, Events.
    pub writes: u64,
    /// Work that did not fit the budgets.
    pub put_off: u64,
    /// Seconds from begin to end.
    pub seconds: f64,
    /// Actions among the writes that were planned.
    pub actions: usize,
    /// Seconds of it that were spent deciding, without waiting for anyone.
    pub deciding: f64,
}

impl Controller {
    /// A controller that has seen nothing yet.
    pub fn new(
        client: Client,
        world: Arc<World>,
        health: Arc<WatchHealth>,
        sources: Vec<Box<dyn MetricsSource>>,
        settings: Settings,
        (instruments, leadership): (Arc<Instruments>, Arc<Leadership>),
    ) -> Self {
        let recorder = writes::recorder(&client);
        Self {
            client,
            world,
            health,
            sources,
            settings,
            recorder,
            instruments,
            leadership,
            groups: BTreeMap::new(),
            watchmen: BTreeMap::new(),
            reverts: BTreeMap::new(),
            source_problem: None,
        }
    }

    /// One pass at `now`.
    pub async fn pass(&mut self, now: Timestamp) -> PassReport {
        let begin = Instant::now();
        let sorted = cases::sort(&self.world.cluster(), self.settings.give_back);
        self.remember_reverts(&sorted);
        let reads = Budget::new(self.settings.reads);
        self.measure(&sorted, now, &reads).await;

        let deciding = Instant::now();
        self.regroup(&sorted, now);
        self.tick(now);
        let reverted = self.look_for_harm(&sorted, now);
        let writes = self.plan_writes(&sorted, &reverted, now);
        let deciding = deciding.elapsed().as_secs_f64();

        let actions = writes.iter().filter(|write| matches!(write, Write::Action(..))).count();
        let budget = Budget::new(self.settings.writes);
        self.send(writes, &budget).await;
        self.world
            .metrics()
            .forget(Timestamp::from_nanos(now.as_nanos().saturating_sub(FORGET_AFTER.as_nanos())));
        let report = PassReport {
            policies: sorted.len(),
            reads: reads.made(),
            writes: budget.made(),
            put_off: reads.put_off() + budget.put_off(),
            actions,
            seconds: begin.elapsed().as_secs_f64(),
            deciding,
        };
        self.instruments.passed(&report);
        report
    }

    /// Says why nothing is decided while a first list has never been complete. Nothing is known well enough to act on, and
    /// nothing but the condition is written.
    pub async fn pass_blind(&mut self, problem: &str, now: Timestamp) {
        let known: Vec<_> =
            self.world.cluster().policies.iter().map(|(_, one)| Arc::clone(one)).collect();
        let mut writes = Vec::new();
        for policy in known.iter().filter(|one| one.metadata.deletion_timestamp.is_none()) {
            let status = status::blind(policy, problem, now);
            writes.extend(news(policy, status));
        }
        let budget = Budget::new(self.settings.writes);
        self.send(writes, &budget).await;
    }

    /// What earlier controllers wrote about returns, so that a restart does not shorten a cooldown.
    fn remember_reverts(&mut self, sorted: &[Sorted]) {
        for one in sorted {
            let written = one.policy.status.as_ref().and_then(|status| status.reverted.clone());
            if let Some(written) = written {
                self.reverts.entry(one.key.clone()).or_insert(written);
            }
        }
        let present: std::collections::BTreeSet<&Key> = sorted.iter().map(|one| &one.key).collect();
        self.reverts.retain(|key, _| present.contains(key));
        self.watchmen.retain(|key, _| present.contains(key));
    }

    async fn measure(&mut self, sorted: &[Sorted], now: Timestamp, budget: &Budget) {
        let asked: Vec<Wanted> = {
            let cluster = self.world.cluster();
            let managed = sorted.iter().filter(|one| one.case.is_managed());
            managed
                .filter_map(|one| {
                    let reference = &one.policy.spec.target_ref;
                    let target = cluster.target(&one.key.namespace, reference).ok()?;
                    Some(wanted(&one.key, &one.policy, &target))
                })
                .collect()
        };
        let mut problems = Vec::new();
        for source in &self.sources {
            match source.collect(&asked, budget).await {
                Ok(readings) => self.world.metrics().put(now, readings),
                Err(error) => {
                    tracing::warn!(source = source.name(), %error, "no measurements");
                    self.instruments.source_failed(source.name());
                    problems.push(format!("{}: {error}", source.name()));
                }
            }
        }
        self.source_problem = (!problems.is_empty()).then(|| problems.join("; "));
    }

    /// Puts every managed policy into the group of its name and kind.
    fn regroup(&mut self, sorted: &[Sorted], now: Timestamp) {
        let mut members: BTreeMap<GroupKey, Vec<Membership>> = BTreeMap::new();
        for one in sorted.iter().filter(|one| one.case.is_managed()) {
            let spec = &one.policy.spec;
            let group = (spec.policy.spelling().to_owned(), spec.target_ref.kind);
            members.entry(group).or_default().push(Membership {
                key: one.key.clone(),
                policy: Arc::clone(&one.policy),
                scope: one.case.scope(),
                is_paused: spec.paused,
            });
        }
        for key in members.keys() {
            if !self.groups.contains_key(key) {
                self.groups.insert(key.clone(), Group::new(&self.world, key));
            }
        }
        let watch_problem = self.health.failing(WATCH_PATIENCE);
        for (key, group) in &mut self.groups {
            let named = members.remove(key).unwrap_or_default();
            group.platform.set_members(now, &named);
            group.fill_guards(&self.world, &self.reverts, watch_problem.as_deref(), now);
        }
        self.adopt(sorted);
    }

    fn tick(&mut self, now: Timestamp) {
        for group in self.groups.values_mut() {
            group.take_in_latencies(&self.world, now);
            if let Ok(control) = &mut group.control {
                group.last = Some(control.tick(now, &mut group.platform));
            }
        }
    }

    /// Gives back what did harm. Returns the policies that were given back at this pass.
    fn look_for_harm(&mut self, sorted: &[Sorted], now: Timestamp) -> BTreeMap<Key, String> {
        let world = Arc::clone(&self.world);
        let cluster = world.cluster();
        let mut reverted = BTreeMap::new();
        for one in sorted.iter().filter(|one| one.case.scope().acts()) {
            let Some(group) = self.groups.get_mut(&one.group()) else { continue };
            let Some(member) = group.platform.member(&one.key) else { continue };
            let reference = &one.policy.spec.target_ref;
            let Ok(target) = cluster.target(&one.key.namespace, reference) else { continue };
            let watchman = self.watchmen.entry(one.key.clone()).or_default();
            let goals = &one.policy.spec.goals;
            let (signals, change) = (member.signals.as_ref(), member.change(&target));
            let harm = watchman.look(&target, signals, goals, change, now);
            let Some(reason) = harm else { continue };
            group.platform.let_go(&one.key, now);
            *watchman = Watchman::default();
            let earlier = self.reverts.get(&one.key);
            let entry = harm::reverted(earlier, reason.clone(), self.settings.cooldown, now);
            tracing::warn!(policy = %one.key, reason, until = entry.until, "given back to its user");
            self.instruments.reverted();
            self.reverts.insert(one.key.clone(), entry);
            reverted.insert(one.key.clone(), reason);
        }
        reverted
    }

    /// Everything that has to be written, the most urgent first: actions, then finalizers, then statuses.
    fn plan_writes(
        &mut self,
        sorted: &[Sorted],
        reverted: &BTreeMap<Key, String>,
        now: Timestamp,
    ) -> Vec<Write> {
        let world = Arc::clone(&self.world);
        let cluster = world.cluster();
        let mut writes = Vec::new();
        let mut late = Vec::new();
        for one in sorted {
            let target = cluster.target(&one.key.namespace, &one.policy.spec.target_ref);
            let actions = target
                .as_ref()
                .map_or_else(|_| Vec::new(), |target| self.actions(one, target, now));
            let is_clean = actions.is_empty();
            let has_finalizer = one.has_finalizer();
            let needs_finalizer = one.case.scope().acts() && !one.case.is_leaving();
            if needs_finalizer && !has_finalizer {
                // Nothing is changed before it is certain that it can be given back.
                writes.push(Write::Finalizer { policy: Arc::clone(&one.policy), is_set: true });
            } else {
                writes.extend(
                    actions.into_iter().map(|action| Write::Action(one.key.clone(), action)),
                );
                if has_finalizer && !needs_finalizer && is_clean {
                    late.push(Write::Finalizer { policy: Arc::clone(&one.policy), is_set: false });
                }
            }
            if one.case.is_leaving() {
                continue;
            }
            if let Some(reason) = reverted.get(&one.key) {
                late.push(Write::event(&one.policy, true, "Reverted", reason));
            }
            let status = self.status_of(one, target.as_ref(), now);
            late.extend(news(&one.policy, status));
        }
        writes.extend(late);
        writes
    }

    /// The requests that bring one workload closer to what it should have.
    fn actions(
        &mut self,
        one: &Sorted,
        target: &crate::cluster::TargetFacts<'_>,
        now: Timestamp,
    ) -> Vec<Action> {
        let offers = self.world.offers();
        let spec = &one.policy.spec;
        match &one.case {
            Case::Managed { scope, .. } if scope.acts() => {
                let is_cooling = harm::cools_down(self.reverts.get(&one.key), now).is_some();
                let group = self.groups.get_mut(&one.group());
                let member = group.and_then(|group| group.platform.member(&one.key));
                match member {
                    Some(member) if !is_cooling => {
                        actuators::pursue(target, &member.desired, *scope, &offers, spec)
                    }
                    Some(_) | None => actuators::restore(target, &offers, spec),
                }
            }
            Case::Managed { rivals, .. } if !rivals.is_empty() => {
                actuators::step_back(target, rivals, &offers)
            }
            Case::Managed { .. } | Case::Off | Case::Leaving => {
                actuators::restore(target, &offers, spec)
            }
            Case::Broken(_) => Vec::new(),
        }
    }
}

/// A status and its Events, if a reader would act on the difference.
fn news(policy: &Arc<ResourcePolicy>, status: ResourcePolicyStatus) -> Vec<Write> {
    let before = policy.status.clone().unwrap_or_default();
    if !status::differs(&before, &status) {
        return Vec::new();
    }
    let mut writes = status::events(policy, &before, &status);
    writes.insert(0, Write::Status { policy: Arc::clone(policy), status: Box::new(status) });
    writes
}

impl Group {
    fn new(world: &Arc<World>, (policy, kind): &GroupKey) -> Self {
        let guards: Arc<Mutex<Guards>> = Arc::default();
        Self {
            control: control_loop(policy, &guards),
            platform: KubernetesPlatform::new(Arc::clone(world), *kind),
            guards,
            last: None,
        }
    }

    /// Bounds, goals and reasons to hold, before the tick.
    fn fill_guards(
        &mut self,
        world: &World,
        reverts: &BTreeMap<Key, Reverted>,
        watch_problem: Option<&str>,
        now: Timestamp,
    ) {
        let cluster = world.cluster();
        let mut guards = lock(&self.guards);
        for (id, member) in self.platform.active() {
            let reference = &member.policy.spec.target_ref;
            let spec = &member.policy.spec;
            let guard = match cluster.target(&member.key.namespace, reference) {
                Ok(target) => Guard::of(spec, &target.container.name).at(spec, &target),
                Err(_) => Guard::of(spec, ""),
            };
            let cooling = harm::cools_down(reverts.get(&member.key), now);
            let held = watch_problem.map(str::to_owned).or_else(|| {
                let last = cooling?;
                Some(format!("given back until {}: {}", last.until, last.reason))
            });
            guards.set(id, Guard { held, ..guard });
        }
    }

    /// Latencies are needed by the policy at the same tick, so they are read before it.
    fn take_in_latencies(&mut self, world: &World, now: Timestamp) {
        let cluster = world.cluster();
        let metrics = world.metrics();
        let since = Timestamp::from_nanos(
            now.as_nanos().saturating_sub(crate::platform::MAX_AGE.as_nanos()),
        );
        let mut guards = lock(&self.guards);
        let active: Vec<(FunctionId, Wanted)> = self
            .platform
            .active()
            .filter_map(|(id, member)| {
                let reference = &member.policy.spec.target_ref;
                let target = cluster.target(&member.key.namespace, reference).ok()?;
                Some((id, wanted(&member.key, &member.policy, &target)))
            })
            .collect();
        for (id, asked) in active {
            let (Some(signals), Some(guard)) = (metrics.signals(&asked, since), guards.get(id))
            else {
                continue;
            };
            let (latency, per_second) = (signals.latency, signals.per_second);
            let guard = Guard { latency, per_second, ..guard.clone() };
            guards.set(id, guard);
        }
    }
}

#[cfg(test)]
mod tests;
