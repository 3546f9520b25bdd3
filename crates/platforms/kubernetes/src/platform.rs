//! The cluster as a [`Platform`]: workloads of one kind that the same policy decides about. `observe` reads the index
//! and the measurements, `submit` notes what is desired; the controller closes the difference afterwards.
//!
//! In mode Recommend nothing is sent, and a workload is shown at the size that was last recommended for it. Otherwise a
//! rule that allows one step from the present size would hold the recommendation one step away from the user's size.

mod settle;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use windfall_core::{
    Allocation, Answer, Capabilities, ColdStart, Duration, FunctionId, FunctionProfile,
    Observation, Outcome, Plan, PlanId, PlannedTarget, Platform, PlatformError, Receipt, Refusal,
    Settled, Support, Timestamp, Trigger,
};

use crate::actuators::ActionError;
use crate::cluster::{Cluster, Key, TargetFacts};
use crate::desired::{Desired, Scope};
use crate::harm::Change;
use crate::metrics::{Signals, Wanted, WantedPod};
use crate::resource_policy::{ResourcePolicy, TargetKind};
use crate::world::World;

/// Readings older than this are no measurement of the present.
pub const MAX_AGE: Duration = Duration::from_secs(60);
/// A change that is not in force after this is reported as what it is by then.
const SETTLES_WITHIN: Duration = Duration::from_secs(60);

/// One policy of a group.
#[derive(Clone, Debug)]
pub struct Membership {
    /// Its key.
    pub key: Key,
    /// The object.
    pub policy: Arc<ResourcePolicy>,
    /// What is changed.
    pub scope: Scope,
    /// Whether plans are recorded and not carried out for now.
    pub is_paused: bool,
}

/// Workloads of one kind under one policy.
pub struct KubernetesPlatform {
    world: Arc<World>,
    kind: TargetKind,
    members: Vec<Member>,
    profiles: Vec<FunctionProfile>,
    places: BTreeMap<Key, FunctionId>,
    settled: Vec<Settled>,
}

/// One ResourcePolicy.
pub(crate) struct Member {
    pub(crate) key: Key,
    pub(crate) policy: Arc<ResourcePolicy>,
    /// False once the policy is gone, off, or decided by another group.
    pub(crate) is_active: bool,
    pub(crate) scope: Scope,
    /// Whether plans are recorded and not carried out for now.
    pub(crate) is_paused: bool,
    /// Whether it was read what an earlier controller set.
    pub(crate) is_adopted: bool,
    /// What should be in force.
    pub(crate) desired: Desired,
    /// What the plans say, whether or not it is carried out.
    pub(crate) recommended: Desired,
    /// The last measurement.
    pub(crate) signals: Option<Signals>,
    /// Measurements so far.
    pub(crate) samples: u64,
    open: Vec<Open>,
    /// Why the last action had no effect, until one has.
    pub(crate) refused: Option<ActionError>,
}

/// An accepted change that has not settled.
#[derive(Clone, Debug)]
struct Open {
    plan: PlanId,
    since: Timestamp,
    target: PlannedTarget,
}

impl KubernetesPlatform {
    /// A group of workloads of this kind, without members.
    pub fn new(world: Arc<World>, kind: TargetKind) -> Self {
        Self {
            world,
            kind,
            members: Vec::new(),
            profiles: Vec::new(),
            places: BTreeMap::new(),
            settled: Vec::new(),
        }
    }

    /// The members from now on. Members that are not named become inactive and keep their number, because numbers are
    /// places in a list.
    pub fn set_members(&mut self, now: Timestamp, named: &[Membership]) {
        for member in &mut self.members {
            member.is_active = false;
        }
        for Membership { key, policy, scope, is_paused } in named {
            let id = self.place(key, policy);
            let member = &mut self.members[id.index()];
            member.is_active = true;
            member.policy = Arc::clone(policy);
            if (member.scope, member.is_paused) != (*scope, *is_paused) {
                (member.scope, member.is_paused) = (*scope, *is_paused);
                supersede(&mut self.settled, member, id, now);
            }
        }
        for (place, member) in self.members.iter_mut().enumerate() {
            if !member.is_active {
                supersede(&mut self.settled, member, FunctionId(place as u32), now);
            }
        }
    }

    fn place(&mut self, key: &Key, policy: &Arc<ResourcePolicy>) -> FunctionId {
        if let Some(id) = self.places.get(key) {
            return *id;
        }
        let id = FunctionId(u32::try_from(self.members.len()).unwrap_or(u32::MAX));
        self.places.insert(key.clone(), id);
        self.members.push(Member::new(key, policy));
        self.profiles.push(FunctionProfile {
            name: key.to_string(),
            application: key.namespace.clone(),
            trigger: Trigger::Http,
            runtime: "container".to_owned(),
            reservation: Allocation::ZERO,
            cold_start: ColdStart { median: Duration::from_secs(1), sigma: 0.5 },
        });
        id
    }

    /// The member for a policy.
    pub(crate) fn member(&mut self, key: &Key) -> Option<&mut Member> {
        let id = self.places.get(key)?;
        self.members.get_mut(id.index())
    }

    /// The number of a policy.
    pub(crate) fn id_of(&self, key: &Key) -> Option<FunctionId> {
        self.places.get(key).copied()
    }

    /// Members that are decided about.
    pub(crate) fn active(&self) -> impl Iterator<Item = (FunctionId, &Member)> {
        let numbered = self.members.iter().enumerate();
        numbered
            .filter(|(_, member)| member.is_active)
            .map(|(place, member)| (FunctionId(place as u32), member))
    }

    /// Gives a workload back to its user: what was desired is forgotten and what is under way ends.
    pub(crate) fn let_go(&mut self, key: &Key, now: Timestamp) {
        let Some(id) = self.id_of(key) else { return };
        let member = &mut self.members[id.index()];
        member.desired = Desired::default();
        supersede(&mut self.settled, member, id, now);
    }

    /// Takes in how an action for a policy ended.
    pub(crate) fn acted(&mut self, key: &Key, outcome: Result<(), ActionError>) {
        if let Some(member) = self.member(key) {
            member.refused = outcome.err().filter(|error| *error != ActionError::Gone);
        }
    }
}

/// Ends everything that is under way for a member: something else took its place.
fn supersede(settled: &mut Vec<Settled>, member: &mut Member, id: FunctionId, now: Timestamp) {
    settled.extend(member.open.drain(..).map(|open| Settled {
        plan: open.plan,
        function: id,
        at: now,
        outcome: Outcome::Failed(Refusal::Superseded),
    }));
}

impl Member {
    fn new(key: &Key, policy: &Arc<ResourcePolicy>) -> Self {
        Self {
            key: key.clone(),
            policy: Arc::clone(policy),
            is_active: true,
            scope: Scope::Nothing,
            is_paused: false,
            is_adopted: false,
            desired: Desired::default(),
            recommended: Desired::default(),
            signals: None,
            samples: 0,
            open: Vec::new(),
            refused: None,
        }
    }

    /// Whether plans are carried out.
    pub(crate) fn carries_out(&self) -> bool {
        self.scope.acts() && !self.is_paused
    }

    /// What is desired beyond the user's own settings. The user's own size is none of it: that is what a size in doubt goes
    /// back to.
    pub(crate) fn change(&self, target: &TargetFacts<'_>) -> Change {
        let users = target.container.size.allocation();
        let size = self.desired.size.filter(|size| Some(*size) != users);
        if (Desired { size, ..self.desired }) == Desired::default() {
            return Change::Nothing;
        }
        let is_smaller = size
            .zip(users)
            .is_some_and(|(size, users)| size.cpu < users.cpu || size.memory < users.memory);
        let users_pods = target.deployment.1.original_replicas;
        let is_fewer =
            self.desired.replicas.zip(users_pods).is_some_and(|(pods, users)| pods < users);
        let is_fuller =
            self.desired.concurrency.is_some_and(|calls| calls > view::users_concurrency(target));
        if is_smaller || is_fewer || is_fuller { Change::Less } else { Change::NoLess }
    }
}

/// What metrics sources are asked about a workload.
pub fn wanted(policy: &Key, spec: &ResourcePolicy, target: &TargetFacts<'_>) -> Wanted {
    Wanted {
        policy: policy.clone(),
        container: target.container.name.clone(),
        revision: target.revision.map(|(key, _)| key.name.clone()),
        goals: spec.spec.goals.clone(),
        pods: target
            .pods
            .iter()
            .filter(|(_, pod)| pod.is_running)
            .map(|(key, pod)| WantedPod {
                key: (*key).clone(),
                node: pod.node.clone(),
                address: pod.address.clone(),
            })
            .collect(),
    }
}

impl Platform for KubernetesPlatform {
    fn functions(&self) -> &[FunctionProfile] {
        &self.profiles
    }

    fn capabilities(&self) -> Capabilities {
        let is_knative = self.kind == TargetKind::Service;
        let offers = self.world.offers();
        let size = if offers.resize { Support::Live } else { Support::AtStart };
        Capabilities {
            cpu: size,
            cpu_ceiling: size,
            memory: size,
            concurrency: if is_knative { Support::Live } else { Support::Absent },
            instances: true,
            keep_alive: is_knative,
            per_call: false,
            settles_within: SETTLES_WITHIN,
        }
    }

    fn observe(&mut self, now: Timestamp) -> Result<Observation, PlatformError> {
        let world = Arc::clone(&self.world);
        let cluster = world.cluster();
        if !(cluster.policies.is_complete()
            && cluster.deployments.is_complete()
            && cluster.pods.is_complete())
        {
            return Err(PlatformError::NotReady);
        }
        let metrics = world.metrics();
        let since = Timestamp::from_nanos(now.as_nanos().saturating_sub(MAX_AGE.as_nanos()));
        let mut functions = Vec::new();
        let mut taken_at = Timestamp::ZERO;
        for place in 0..self.members.len() {
            let id = FunctionId(place as u32);
            let member = &mut self.members[place];
            if !member.is_active {
                continue;
            }
            let Ok(target) = cluster.target(&member.key.namespace, &member.policy.spec.target_ref)
            else {
                continue;
            };
            settle::settle(&mut self.settled, member, id, &target, now);
            let asked = wanted(&member.key, &member.policy, &target);
            member.signals = view::signals(&metrics, &asked, &target, since, now);
            let Some(signals) = &member.signals else { continue };
            member.samples += 1;
            taken_at = taken_at.max(signals.taken_at);
            let view = view::function_view(id, member, &target, now);
            let profile = &mut self.profiles[place];
            profile.reservation = view.reservation;
            profile.cold_start.median = view.cold_start;
            functions.push(view);
        }
        if functions.is_empty() {
            taken_at = now;
        }
        Ok(Observation {
            now,
            taken_at: taken_at.min(now),
            window: Duration::from_secs(15),
            cluster: cluster_view(&cluster, &functions),
            functions,
            settled: std::mem::take(&mut self.settled),
        })
    }

    fn submit(&mut self, now: Timestamp, plan: &Plan) -> Receipt {
        let capabilities = self.capabilities();
        Receipt::of(plan, |target| {
            if let Some(resource) = capabilities.missing_for(target) {
                return Answer::Refused(Refusal::Unsupported(resource));
            }
            let known = self.members.get_mut(target.function.index()).filter(|one| one.is_active);
            let Some(member) = known else {
                return Answer::Refused(Refusal::System("there is no such workload".to_owned()));
            };
            let own = self.profiles[target.function.index()].reservation;
            if target.is_resize() {
                // Sizes replace each other; what else is under way goes on.
                let (replaced, kept) =
                    member.open.drain(..).partition(|open: &Open| open.target.is_resize());
                member.open = kept;
                self.settled.extend(replaced.into_iter().map(|open| Settled {
                    plan: open.plan,
                    function: target.function,
                    at: now,
                    outcome: Outcome::Failed(Refusal::Superseded),
                }));
            }
            member.recommended.follow(target, own);
            if member.carries_out() {
                member.desired.follow(target, own);
                member.desired.most_replicas =
                    member.policy.spec.bounds.replicas.map(|bounds| bounds.max);
            }
            member.open.push(Open { plan: plan.id(), since: now, target: target.clone() });
            Answer::Queued
        })
    }
}

fn cluster_view(
    cluster: &Cluster,
    functions: &[windfall_core::FunctionView],
) -> windfall_core::ClusterView {
    let ready: Vec<_> = cluster.nodes.iter().filter(|(_, node)| node.is_ready).collect();
    let granted =
        |amount: fn(&windfall_core::FunctionView) -> f64| functions.iter().map(amount).sum();
    windfall_core::ClusterView {
        nodes: ready.len() as u32,
        capacity_cores: ready.iter().map(|(_, node)| f64::from(node.millis) * 1e-3).sum(),
        capacity_mib: ready.iter().map(|(_, node)| node.bytes as f64 / 1_048_576.0).sum(),
        granted_cores: granted(|view| view.allocation.cpu.cores() * f64::from(view.ready.get())),
        granted_mib: granted(|view| view.allocation.memory.mib() * f64::from(view.ready.get())),
        queued: functions.iter().map(|view| u64::from(view.queued)).sum(),
    }
}

#[cfg(test)]
mod tests;
