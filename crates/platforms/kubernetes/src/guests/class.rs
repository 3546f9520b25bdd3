//! An autoscaler class of Knative: Revisions with the annotation `autoscaling.knative.dev/class: windfall.dev` are
//! scaled by this controller instead of Knative's own, scale to and from zero included.
//!
//! ```text
//!   1 s   activators, queue-proxies ─► requests in flight ─► window
//!   2 s   window ─► exact KPA ─► bounds, scale to zero ─► Deployment scale
//!                                                      ─► ServerlessService mode ─► PodAutoscaler status
//! ```
//!
//! Activators report waiting requests only to Knative's autoscaler, which drops those of other classes. So the
//! activators' metrics page is read once a second: a Revision at zero wakes up at most a second later than with
//! Knative's own class.

mod annotations;
mod duties;
mod sensors;

use std::collections::BTreeMap;
use std::time::Instant;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use windfall_autoscalers::kpa::{
    Autoscaler, ClusterSettings, Outcome, Reconciler, RevisionSettings, Seen, TICK_SECONDS,
};

use super::{FIELD_MANAGER, GuestError};
use duties::Autoscaled;
use sensors::Sensors;

/// The value of the annotation.
pub const CLASS: &str = "windfall.dev";
const CLASS_ANNOTATION: &str = "autoscaling.knative.dev/class";
const REVISION_LABEL: &str = "serving.knative.dev/revision";
const KNATIVE: &str = "knative-serving";
/// Seconds between two readings of Knative's settings and of the activators' addresses.
const SLOW_SECONDS: u64 = 10;

/// The API of PodAutoscalers.
pub fn pod_autoscalers() -> ApiResource {
    internal("autoscaling", "v1alpha1", "PodAutoscaler", "podautoscalers")
}

/// The API of ServerlessServices.
pub fn serverless_services() -> ApiResource {
    internal("networking", "v1alpha1", "ServerlessService", "serverlessservices")
}

fn internal(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let group = format!("{group}.internal.knative.dev");
    ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Scales all Revisions of our class.
pub struct ClassController {
    client: Client,
    sensors: Sensors,
    settings: ClusterSettings,
    revisions: BTreeMap<String, Revision>,
    began: Instant,
    next_slow: u64,
}

/// One Revision under our control, by the uid of its PodAutoscaler.
struct Revision {
    settings: RevisionSettings,
    autoscaler: Autoscaler,
    reconciler: Reconciler,
    /// What was decided last, and at which second.
    last: Option<(u64, Outcome)>,
    /// Whether the pods that the first start asks for were ever there.
    is_initialized: bool,
}

impl ClassController {
    /// One that has seen nothing yet.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            sensors: Sensors::default(),
            settings: ClusterSettings::default(),
            revisions: BTreeMap::new(),
            began: Instant::now(),
            next_slow: 0,
        }
    }

    /// Runs one second: reads load, decides where a decision is due, and carries it out. Returns how many Revisions
    /// are of our class.
    pub async fn pass(&mut self) -> Result<usize, GuestError> {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // Second 0 would be before the first bucket of a window.
        let second = now_ms / 1000 + 1;
        if second >= self.next_slow {
            self.next_slow = second + SLOW_SECONDS;
            self.read_settings().await?;
        }
        let resource = pod_autoscalers();
        let all = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
        let cached = ListParams::default().match_any();
        let listed = all.list(&cached).await.map_err(GuestError::api("listing PodAutoscalers"))?;
        let ours: Vec<DynamicObject> = listed.items.into_iter().filter(is_ours).collect();
        let present: Vec<String> = ours.iter().filter_map(ResourceExt::uid).collect();
        self.revisions.retain(|uid, _| present.contains(uid));
        if ours.is_empty() {
            return Ok(0);
        }
        let proxied = self.sensors.proxied().await;
        for object in &ours {
            let key = (object.namespace().unwrap_or_default(), object.name_any());
            let waiting = proxied.get(&key).copied().unwrap_or(0.0);
            self.serve(object, waiting, second, now_ms).await?;
        }
        Ok(ours.len())
    }

    async fn read_settings(&mut self) -> Result<(), GuestError> {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), KNATIVE);
        let map = maps.get_opt("config-autoscaler").await;
        if let Some(map) = map.map_err(GuestError::api("reading config-autoscaler"))? {
            // JSON is YAML, so the reader of manifests takes it as it is.
            let text = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "config-autoscaler"}, "data": map.data})
            .to_string();
            match ClusterSettings::from_yaml(&text) {
                Ok(settings) => self.settings = settings,
                Err(problem) => tracing::warn!(%problem, "config-autoscaler is not used"),
            }
        }
        let pods = Api::<Pod>::namespaced(self.client.clone(), KNATIVE);
        let activators =
            pods.list(&ListParams::default().labels("app=activator").match_any()).await;
        let activators = activators.map_err(GuestError::api("listing activators"))?;
        self.sensors.activators = activators.items.iter().filter_map(sensors::address).collect();
        Ok(())
    }

    /// One Revision: load, decision, duties.
    async fn serve(
        &mut self,
        object: &DynamicObject,
        waiting: f64,
        second: u64,
        now_ms: u64,
    ) -> Result<(), GuestError> {
        let Some(autoscaled) = Autoscaled::read(object) else { return Ok(()) };
        let pods = Api::<Pod>::namespaced(self.client.clone(), &autoscaled.namespace);
        let chosen = ListParams::default().labels(&format!("{REVISION_LABEL}={}", autoscaled.name));
        let pods = pods.list(&chosen.match_any()).await.map_err(GuestError::api("listing pods"))?;
        let addresses: Vec<String> = pods.items.iter().filter_map(sensors::address).collect();
        let ready = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        let direct = self.sensors.direct(&addresses).await;
        let settings = annotations::settings(&autoscaled);
        let cluster = self.settings.clone();
        let revision = self.revisions.entry(autoscaled.uid.clone()).or_insert_with(|| {
            Revision::new(&cluster, settings.clone(), &autoscaled, second, now_ms, ready)
        });
        revision.update(&cluster, settings, second, now_ms);
        revision.autoscaler.record(second, waiting + direct);
        let due = revision.last.is_none_or(|(at, _)| second >= at + u64::from(TICK_SECONDS));
        // A Revision at zero does not wait for the next decision.
        let wakes = waiting > 0.0 && revision.last.is_some_and(|(_, last)| last.want == Some(0));
        if !due && !wakes {
            return Ok(());
        }
        let path = self.path_state(&autoscaled).await?;
        let revision = self.revisions.get_mut(&autoscaled.uid).expect("it was inserted above");
        let outcome = revision.decide(second, now_ms, ready, path.activators_answer);
        let is_initialized = revision.is_initialized;
        let activity = revision.reconciler.activity();
        let mode = duties::serverless_service(&autoscaled, &outcome);
        self.apply_path(&autoscaled, &mode).await?;
        self.apply_scale(&autoscaled, &outcome).await?;
        let now = jiff::Timestamp::now().to_string();
        let status =
            duties::Facts { outcome, activity, ready, is_initialized, path }.status(object, &now);
        if object.data["status"] != status {
            let api = Api::<DynamicObject>::namespaced_with(
                self.client.clone(),
                &autoscaled.namespace,
                &pod_autoscalers(),
            );
            api.patch_status(
                &autoscaled.name,
                &PatchParams::default(),
                &Patch::Merge(&json!({"status": status})),
            )
            .await
            .map_err(GuestError::api("writing the status of a PodAutoscaler"))?;
        }
        Ok(())
    }

    fn paths(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &serverless_services())
    }

    async fn path_state(&self, of: &Autoscaled) -> Result<duties::Path, GuestError> {
        let object = self.paths(&of.namespace).get_opt(&of.name).await;
        let object = object.map_err(GuestError::api("reading a ServerlessService"))?;
        Ok(object.map(|object| duties::Path::read(&object.data)).unwrap_or_default())
    }

    async fn apply_path(
        &self,
        of: &Autoscaled,
        object: &serde_json::Value,
    ) -> Result<(), GuestError> {
        let apply = PatchParams::apply(FIELD_MANAGER).force();
        self.paths(&of.namespace)
            .patch(&of.name, &apply, &Patch::Apply(object))
            .await
            .map_err(GuestError::api("writing a ServerlessService"))?;
        Ok(())
    }

    async fn apply_scale(&self, of: &Autoscaled, outcome: &Outcome) -> Result<(), GuestError> {
        let Some(wanted) = outcome.apply else { return Ok(()) };
        let api = Api::<Deployment>::namespaced(self.client.clone(), &of.namespace);
        let there =
            api.get_scale(&of.deployment).await.map_err(GuestError::api("reading a scale"))?;
        if there.spec.and_then(|spec| spec.replicas).unwrap_or(0) == wanted {
            return Ok(());
        }
        let patch = json!({"spec": {"replicas": wanted}});
        api.patch_scale(&of.deployment, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .map_err(GuestError::api("scaling a Deployment"))?;
        tracing::info!(revision = %of.name, replicas = wanted, "scaled");
        Ok(())
    }
}

impl Revision {
    fn new(
        cluster: &ClusterSettings,
        settings: RevisionSettings,
        of: &Autoscaled,
        second: u64,
        now_ms: u64,
        ready: u32,
    ) -> Self {
        let (windows, decider) = (cluster.windows(&settings), cluster.decider(&settings));
        // After a restart of this controller the Revision goes on where it was.
        let reconciler = match of.was_active {
            true => Reconciler::running(cluster.clone(), settings.clone(), now_ms),
            false => Reconciler::new(cluster.clone(), settings.clone(), now_ms),
        };
        Self {
            autoscaler: Autoscaler::new(windows, decider, second, ready),
            reconciler,
            settings,
            last: None,
            is_initialized: of.was_initialized,
        }
    }

    /// Takes up changed annotations without forgetting the load.
    fn update(
        &mut self,
        cluster: &ClusterSettings,
        settings: RevisionSettings,
        second: u64,
        now_ms: u64,
    ) {
        if settings == self.settings {
            return;
        }
        self.autoscaler.update(cluster.windows(&settings), cluster.decider(&settings), second);
        self.reconciler = Reconciler::running(cluster.clone(), settings.clone(), now_ms);
        self.settings = settings;
    }

    fn decide(&mut self, second: u64, now_ms: u64, ready: u32, activator_answers: bool) -> Outcome {
        let scale = self.autoscaler.scale(second, ready);
        let outcome = self.reconciler.reconcile(Seen {
            now_ms,
            desired: scale.map(|scale| scale.desired),
            excess_burst_capacity: scale.map_or(0, |scale| scale.excess_burst_capacity),
            ready: i32::try_from(ready).unwrap_or(i32::MAX),
            activator_answers,
        });
        let first =
            self.settings.initial_scale.unwrap_or(1).max(self.settings.min_scale.unwrap_or(0));
        self.is_initialized |= i64::from(ready) >= i64::from(first);
        self.last = Some((second, outcome));
        outcome
    }
}

fn is_ours(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_none()
        && object.annotations().get(CLASS_ANNOTATION).is_some_and(|class| class == CLASS)
}
