//! Watches: each kind is listed once and then followed; what comes is read into facts and the object is dropped. kube's
//! watcher lists again after `410 Gone` and after a break; until the new list is complete the old facts stay.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::cluster::{
    Cluster, DeploymentFacts, Key, NodeFacts, PodAutoscalerFacts, PodFacts, RevisionFacts, Rival,
    ServiceFacts, Table,
};
use crate::discovery::Offers;
use crate::resource_policy::ResourcePolicy;
use crate::world::World;

/// Objects per page of a list: ten thousand pods come in twenty pages instead of one of 100 MB.
const PAGE: u32 = 500;
/// After a break a watch is tried again at least this often, so that a restarted API server is found within seconds.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How each watch fares.
#[derive(Debug, Default)]
pub struct WatchHealth {
    failing: Mutex<BTreeMap<&'static str, (Instant, String)>>,
}

impl WatchHealth {
    fn table(&self) -> std::sync::MutexGuard<'_, BTreeMap<&'static str, (Instant, String)>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn works(&self, kind: &'static str) {
        self.table().remove(kind);
    }

    fn fails(&self, kind: &'static str, problem: String) {
        self.table().entry(kind).or_insert_with(|| (Instant::now(), String::new())).1 = problem;
    }

    /// The first watch that has failed for longer than `patience`, with what the server said.
    pub fn failing(&self, patience: Duration) -> Option<String> {
        let table = self.table();
        let late = table.iter().find(|(_, (since, _))| since.elapsed() > patience);
        late.map(|(kind, (since, problem))| {
            format!("the watch of {kind} has failed for {} s: {problem}", since.elapsed().as_secs())
        })
    }
}

/// Starts a watch of every kind that the cluster has, in all namespaces.
pub fn start(
    client: &Client,
    offers: &Offers,
    world: &Arc<World>,
    health: &Arc<WatchHealth>,
    tasks: &mut JoinSet<()>,
) {
    let follow = Follow { client, world, health };
    follow.typed::<ResourcePolicy, _>(
        tasks,
        "resourcepolicies",
        |all| &mut all.policies,
        |one| {
            let mut kept = one.clone();
            kept.metadata.managed_fields = None;
            Some((Key::new(one.namespace()?, one.name_any()), Arc::new(kept)))
        },
    );
    follow.typed::<Deployment, _>(
        tasks,
        "deployments",
        |all| &mut all.deployments,
        DeploymentFacts::read,
    );
    follow.typed::<Pod, _>(tasks, "pods", |all| &mut all.pods, PodFacts::read);
    follow.typed::<Node, _>(tasks, "nodes", |all| &mut all.nodes, NodeFacts::read);
    follow.typed::<HorizontalPodAutoscaler, _>(
        tasks,
        "horizontalpodautoscalers",
        |all| &mut all.horizontal,
        Rival::of_horizontal,
    );
    if offers.knative {
        watch_knative(&follow, tasks);
    }
    if offers.vertical {
        let kind = ("VerticalPodAutoscaler", "verticalpodautoscalers");
        let group = ("autoscaling.k8s.io", "v1");
        follow.dynamic(tasks, group, kind, |all| &mut all.vertical, Rival::of_vertical);
    }
    if offers.keda {
        let kind = ("ScaledObject", "scaledobjects");
        follow.dynamic(
            tasks,
            ("keda.sh", "v1alpha1"),
            kind,
            |all| &mut all.scaled_objects,
            Rival::of_scaled_object,
        );
    }
}

fn watch_knative(follow: &Follow<'_>, tasks: &mut JoinSet<()>) {
    let serving = ("serving.knative.dev", "v1");
    follow.dynamic(
        tasks,
        serving,
        ("Service", "services"),
        |all| &mut all.services,
        ServiceFacts::read,
    );
    follow.dynamic(
        tasks,
        serving,
        ("Revision", "revisions"),
        |all| &mut all.revisions,
        RevisionFacts::read,
    );
    follow.dynamic(
        tasks,
        ("autoscaling.internal.knative.dev", "v1alpha1"),
        ("PodAutoscaler", "podautoscalers"),
        |all| &mut all.pod_autoscalers,
        PodAutoscalerFacts::read,
    );
}

/// Growing pauses between tries: 0.2, 0.4, 0.8 s and so on up to five.
#[derive(Debug, Default)]
struct Pauses {
    tries: u32,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = Duration::from_millis(200 << self.tries.min(5));
        self.tries += 1;
        Some(pause.min(LONGEST_PAUSE))
    }
}

struct Follow<'a> {
    client: &'a Client,
    world: &'a Arc<World>,
    health: &'a Arc<WatchHealth>,
}

impl Follow<'_> {
    fn typed<K, T>(
        &self,
        tasks: &mut JoinSet<()>,
        name: &'static str,
        table: fn(&mut Cluster) -> &mut Table<T>,
        read: fn(&K) -> Option<(Key, T)>,
    ) where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
        T: 'static,
    {
        let api: Api<K> = Api::all(self.client.clone());
        tasks.spawn(follow(
            api,
            name,
            Arc::clone(self.world),
            Arc::clone(self.health),
            table,
            read,
        ));
    }

    fn dynamic<T: 'static>(
        &self,
        tasks: &mut JoinSet<()>,
        (group, version): (&str, &str),
        (kind, plural): (&str, &'static str),
        table: fn(&mut Cluster) -> &mut Table<T>,
        read: fn(&DynamicObject) -> Option<(Key, T)>,
    ) {
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        tasks.spawn(follow(
            api,
            plural,
            Arc::clone(self.world),
            Arc::clone(self.health),
            table,
            read,
        ));
    }
}

/// Follows one kind until the task is stopped.
async fn follow<K, T>(
    api: Api<K>,
    name: &'static str,
    world: Arc<World>,
    health: Arc<WatchHealth>,
    table: fn(&mut Cluster) -> &mut Table<T>,
    read: fn(&K) -> Option<(Key, T)>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let config = watcher::Config::default().page_size(PAGE);
    let mut events = pin!(kube::runtime::watcher(api, config));
    let mut pauses = Pauses::default();
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                // That a list begins says nothing: one that is refused begins as well.
                if !matches!(event, Event::Init) {
                    health.works(name);
                    pauses = Pauses::default();
                }
                take_in(event, table(&mut world.cluster()), read);
            }
            Err(error) => {
                let error = said(&error);
                tracing::warn!(kind = name, error, "watch failed; it is tried again");
                health.fails(name, error);
                tokio::time::sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
            }
        }
    }
}

/// What the API server said, without the debugging output around it.
fn said(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.message.clone(),
        watcher::Error::WatchError(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn take_in<K: Resource, T>(
    event: Event<K>,
    table: &mut Table<T>,
    read: fn(&K) -> Option<(Key, T)>,
) {
    match event {
        Event::Init => table.begin_list(),
        Event::InitApply(object) | Event::Apply(object) => {
            let facts = read(&object);
            match facts {
                Some((key, facts)) => table.put(key, facts),
                // An object that no longer has what is read of it, such as a pod without its owner.
                None => table.remove(&key_of(&object)),
            }
        }
        Event::Delete(object) => table.remove(&key_of(&object)),
        Event::InitDone => table.end_list(),
    }
}

fn key_of<K: Resource>(object: &K) -> Key {
    Key::new(object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{self, Answered};
    use serde_json::json;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn pods(name: &str) -> Answered {
        Answered::ok(&json!({
            "apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "7"},
            "items": [{
                "metadata": {
                    "name": name, "namespace": "n", "labels": {"pod-template-hash": "1"}, "resourceVersion": "7",
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "hello-1", "uid": "u"}],
                },
                "spec": {"containers": [{"name": "app"}]},
            }],
        }))
    }

    async fn until(what: impl Fn() -> bool) {
        while !what() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn after_410_gone_the_new_list_replaces_the_old_one() {
        let lists = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&lists);
        let client = fake_api::client(move |asked| match asked.path.contains("watch=true") {
            false if counted.fetch_add(1, Ordering::Relaxed) == 0 => pods("hello-1-a"),
            false => pods("hello-1-b"),
            true if counted.load(Ordering::Relaxed) == 1 => {
                let gone = json!({"type": "ERROR", "object": fake_api::status(410)});
                Answered::With(200, format!("{gone}\n"))
            }
            true => Answered::Never,
        });
        let (world, health) = (Arc::<World>::default(), Arc::<WatchHealth>::default());
        let api: Api<Pod> = Api::all(client);
        let task = tokio::spawn(follow(
            api,
            "pods",
            Arc::clone(&world),
            Arc::clone(&health),
            |all| &mut all.pods,
            PodFacts::read,
        ));
        until(|| world.cluster().pods.get(&Key::new("n", "hello-1-b")).is_some()).await;
        until(|| world.cluster().pods.len() == 1).await;
        until(|| health.failing(Duration::ZERO).is_none()).await;
        assert_eq!(lists.load(Ordering::Relaxed), 2);
        task.abort();
    }

    #[tokio::test]
    async fn a_role_that_was_taken_away_is_known_and_the_watch_goes_on_trying() {
        let asked = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&asked);
        let client = fake_api::client(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Answered::failure(403)
        });
        let (world, health) = (Arc::<World>::default(), Arc::<WatchHealth>::default());
        let api: Api<Pod> = Api::all(client);
        let watched = Arc::clone(&health);
        let task =
            tokio::spawn(follow(api, "pods", world, watched, |all| &mut all.pods, PodFacts::read));
        until(|| asked.load(Ordering::Relaxed) >= 3).await;
        // Three tries are two pauses, and each began a list: that did not count as working.
        let failing = health.failing(Duration::from_millis(500)).unwrap();
        assert!(failing.contains("the watch of pods has failed"), "{failing}");
        task.abort();
    }

    #[test]
    fn a_watch_that_works_again_is_forgotten() {
        let health = WatchHealth::default();
        assert_eq!(health.failing(Duration::ZERO), None);
        health.fails("pods", "403".into());
        std::thread::sleep(Duration::from_millis(2));
        assert!(
            health.failing(Duration::ZERO).unwrap().starts_with("the watch of pods has failed")
        );
        assert_eq!(health.failing(Duration::from_secs(60)), None);
        health.works("pods");
        assert_eq!(health.failing(Duration::ZERO), None);
    }
}
