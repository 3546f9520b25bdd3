//! The whole story on real pods: recommend under load, act in place, scale, say so, and give everything back.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use windfall_kubernetes::cluster::ORIGINAL_REPLICAS;
use windfall_kubernetes::webhook::SIZED;

use super::bed::{Bed, Needs, Traffic, built, condition, is_ready, record, resource, run, until};
use super::control_groups::{ContainerGroup, Limits};
use super::controller::{Controller, install, policies, policy, seen, set_mode};
use super::resize::{container, deployment};

/// What `resize::deployment` asks for.
const USERS: Limits = Limits { cpu_quota: 50_000, memory: 128 << 20 };

async fn replicas(bed: &Bed, namespace: &str) -> (i32, bool) {
    let api = Api::<Deployment>::namespaced(bed.client.clone(), namespace);
    let object = api.get("function").await.unwrap();
    let is_noted = object.annotations().contains_key(ORIGINAL_REPLICAS);
    (object.spec.unwrap().replicas.unwrap_or(1), is_noted)
}

/// A function under load whose pod, container and control group are known.
struct Story {
    bed: Bed,
    namespace: String,
    pod: Pod,
    group: ContainerGroup,
}

impl Story {
    /// Mode Recommend says what it would do and does nothing.
    async fn recommends(&self) {
        policy(&self.bed, &self.namespace, "Recommend").await;
        let recommended = until(90, "a recommendation that differs", async || {
            let policy = seen(&self.bed, &self.namespace).await?;
            let first = &policy["status"]["recommendation"]["containers"][0];
            let differs = first["target"]["cpu"].is_string() && first["target"] != first["user"];
            (differs && condition(&policy, "Ready")).then(|| first.clone())
        })
        .await;
        record("story_recommended", &recommended.to_string());
        assert_eq!(self.group.limits(), USERS, "nothing is changed in mode Recommend");
        assert_eq!(replicas(&self.bed, &self.namespace).await, (1, false));
    }

    /// Mode Auto resizes the pod without a restart, and adds pods that have their size from the start.
    async fn acts(&self) {
        let Self { bed, namespace, pod, group } = self;
        let before = container(pod);
        set_mode(bed, namespace, "Auto").await;
        until(60, "the control group has another size", async || {
            (group.limits() != USERS).then_some(())
        })
        .await;
        record("story_resized", &format!("{:?}", group.limits()));
        until(60, "the Deployment has more pods", async || {
            let (count, is_noted) = replicas(bed, namespace).await;
            (count > 1 && is_noted).then_some(())
        })
        .await;
        let new = until(60, "a second pod is ready", async || {
            let pods = bed.pods(namespace, "app=function").await;
            pods.into_iter().find(|one| one.name_any() != pod.name_any() && is_ready(one))
        })
        .await;
        let sized = new.annotations().get(SIZED).cloned();
        record("story_new_pod", sized.as_deref().unwrap_or("at its user's size"));
        assert!(sized.is_some(), "the webhook sized the new pod at its creation");
        let api = Api::namespaced(bed.client.clone(), namespace);
        assert_eq!(container(&api.get(&pod.name_any()).await.unwrap()), before, "never restarted");
    }

    /// Conditions and Events are what `kubectl` shows.
    async fn says_so(&self) {
        let Self { bed, namespace, .. } = self;
        until(30, "conditions say so", async || {
            let policy = seen(bed, namespace).await?;
            (condition(&policy, "Ready") && condition(&policy, "Applied")).then_some(())
        })
        .await;
        let events = bed.api(&resource("events.k8s.io", "v1", "Event", "events"), Some(namespace));
        for reason in ["Resized", "Scaled"] {
            until(30, reason, async || {
                let list = events.list(&ListParams::default()).await.ok()?;
                list.items.iter().any(|one| one.data["reason"] == reason).then_some(())
            })
            .await;
        }
        let Some(kubernetes) = built("bin/kubernetes") else { return };
        let words = ["kubectl", "describe", "resourcepolicy", "function", "-n", namespace];
        let described = run(kubernetes, &words).await;
        for word in ["Ready", "Applied", "Last Decision", "Resized", "Scaled"] {
            assert!(described.contains(word), "{word} is not in {described}");
        }
    }

    /// Without the policy the function has its user's size and number of pods again.
    async fn gives_back(&self) {
        let Self { bed, namespace, group, .. } = self;
        let api = bed.api(&policies(), Some(namespace));
        api.delete("function", &DeleteParams::default()).await.unwrap();
        until(60, "the policy is gone", async || {
            seen(bed, namespace).await.is_none().then_some(())
        })
        .await;
        until(30, "the user's size and number are back", async || {
            let is_back = group.limits() == USERS && replicas(bed, namespace).await == (1, false);
            is_back.then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn a_policy_recommends_acts_and_gives_everything_back() {
    let Some(bed) = Bed::with("story", Needs::Pods).await else { return };
    install(&bed).await;
    let namespace = bed.namespace("windfall-story").await;
    bed.apply(&resource("apps", "v1", "Deployment", "deployments"), &deployment(&namespace)).await;
    let pod = bed.ready_pod(&namespace, "app=function").await;
    let Some(group) = ContainerGroup::find(&container(&pod).0) else {
        record("skipped", "story: the node is another machine, its control groups cannot be read");
        return;
    };
    assert_eq!(group.limits(), USERS);
    let address = pod.status.as_ref().unwrap().pod_ip.clone().unwrap();
    let url = format!("http://{address}:8080/?cpu=200");
    let _controller = Controller::start(&namespace, "one", 0, true);
    let traffic = Traffic::start(&url, 20.0, 300);

    let story = Story { bed, namespace, pod, group };
    story.recommends().await;
    story.acts().await;
    story.says_so().await;
    story.gives_back().await;

    record("story", "complete");
    drop(traffic);
    story.bed.delete_namespace(&story.namespace).await;
}
