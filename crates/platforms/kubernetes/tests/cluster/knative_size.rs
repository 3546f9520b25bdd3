//! Pods of a Knative Service are sized in place: at creation by the webhook, live afterwards, without a new Revision. What
//! a user was promised holds through a replaced pod, a restarted and an absent controller, and a Revision of the user's own.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use windfall_kubernetes::cluster::ORIGINAL_ANNOTATIONS;
use windfall_kubernetes::webhook::SIZED;

use super::bed::{
    Bed, Needs, is_ready, knative_object, knative_services, load, record, resource, until,
};
use super::control_groups::{ContainerGroup, Limits};
use super::controller::{Controller, fixed_policy, install, policies, seen};

const LABEL: &str = "serving.knative.dev/service=hello";
/// What `Bed::knative_service` writes: 20m of at most 500m, 32 MiB of at most 128.
const USERS: Limits = Limits { cpu_quota: 50_000, memory: 128 << 20 };
/// What the policy allows, 40m and 64 MiB, with the user's own ratios of requests to limits.
const SIZE: (&str, &str) = ("40m", "64Mi");
const SIZED_LIMITS: Limits = Limits { cpu_quota: 100_000, memory: 64 << 20 };
/// The same for the user's second Revision, which asks for 30m of at most 300m.
const SECOND_LIMITS: Limits = Limits { cpu_quota: 40_000, memory: 64 << 20 };

/// What the user wrote about scaling.
fn annotations() -> Value {
    json!({"autoscaling.knative.dev/window": "6s", "autoscaling.knative.dev/target": "10",
        "autoscaling.knative.dev/min-scale": "1", "autoscaling.knative.dev/max-scale": "3"})
}

struct Stage {
    bed: Bed,
    namespace: String,
    pods: Api<Pod>,
}

fn users_container(pod: &Pod) -> &Container {
    let containers = &pod.spec.as_ref().unwrap().containers;
    containers.iter().find(|one| one.name == "user-container").unwrap()
}

/// Container id and restarts of the user's container.
fn identity(pod: &Pod) -> (String, i32) {
    let all = pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap();
    let own = all.iter().find(|one| one.name == "user-container").unwrap();
    (own.container_id.clone().unwrap(), own.restart_count)
}

fn is_burstable(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.qos_class.as_deref()) == Some("Burstable")
}

impl Stage {
    fn controller(&self) -> Controller {
        Controller::start(&self.namespace, "one", 8, true)
    }

    /// The ready pod of this Revision that is not `other`.
    async fn ready(&self, revision: &str, other: &str) -> Pod {
        until(60, "a pod is ready", async || {
            let all = self.bed.pods(&self.namespace, LABEL).await;
            let is_meant = |pod: &Pod| {
                let of = pod.labels().get("serving.knative.dev/revision");
                pod.name_any() != other && is_ready(pod) && of.is_some_and(|of| of == revision)
            };
            all.into_iter().find(is_meant)
        })
        .await
    }

    async fn revisions(&self) -> Vec<DynamicObject> {
        let kind = resource("serving.knative.dev", "v1", "Revision", "revisions");
        let api = self.bed.api(&kind, Some(&self.namespace));
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// Deletes a pod and waits for the next one.
    async fn replaced(&self, pod: &Pod, revision: &str) -> (Pod, f64) {
        let began = Instant::now();
        self.pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(1)).await.unwrap();
        let next = self.ready(revision, &pod.name_any()).await;
        (next, began.elapsed().as_secs_f64())
    }

    /// A running pod is resized, the Revision annotated, and neither is replaced.
    async fn live(&self, pod: &Pod) {
        let group = ContainerGroup::find(&identity(pod).0).unwrap();
        assert_eq!(group.limits(), USERS);
        let began = Instant::now();
        until(90, "the running pod has the policy's size", async || {
            (group.limits() == SIZED_LIMITS).then_some(())
        })
        .await;
        record("knative_live_s", &format!("{:.1}", began.elapsed().as_secs_f64()));
        let after = self.pods.get(&pod.name_any()).await.unwrap();
        assert_eq!(identity(&after), identity(pod), "never restarted");
        assert!(is_burstable(&after), "the class of the pod stays");
        assert_eq!(self.revisions().await.len(), 1, "no new Revision");
    }

    /// A target of requests per pod goes to the live Revision and from there to Knative's autoscaler.
    async fn annotates(&self, pod: &Pod) {
        let traffic = load(&self.namespace, "hello", "sleep=400", 10.0, 45);
        let annotated = async {
            let kind = resource(
                "autoscaling.internal.knative.dev",
                "v1alpha1",
                "PodAutoscaler",
                "podautoscalers",
            );
            let api = self.bed.api(&kind, Some(&self.namespace));
            until(60, "Knative's autoscaler has another target", async || {
                let object = api.get("hello-00001").await.ok()?;
                let target = object.annotations().get("autoscaling.knative.dev/target");
                target.filter(|target| *target != "10").cloned()
            })
            .await
        };
        let (measured, target) = tokio::join!(traffic, annotated);
        record("knative_target", &target);
        assert!(measured.samples.iter().all(|one| one.is_success()), "no request was lost");
        let revisions = self.revisions().await;
        assert!(revisions[0].annotations().contains_key(ORIGINAL_ANNOTATIONS));
        assert_eq!(revisions.len(), 1, "no new Revision");
        let after = self.pods.get(&pod.name_any()).await.unwrap();
        assert_eq!(identity(&after), identity(pod), "the pod was neither replaced nor restarted");
    }

    /// A new pod has the size from its creation.
    async fn at_creation(&self, pod: &Pod) -> Pod {
        let (next, took) = self.replaced(pod, "hello-00001").await;
        record("knative_replaced_s", &format!("{took:.1}"));
        assert!(next.annotations().contains_key(SIZED), "the webhook sized it");
        assert_eq!(next.metadata.generation, Some(1), "and nobody changed it afterwards");
        let group = ContainerGroup::find(&identity(&next).0).unwrap();
        assert_eq!(group.limits(), SIZED_LIMITS);
        next
    }

    /// Through a restart of the controller the size never jumps.
    async fn through_a_restart(&self, pod: &Pod, controller: &mut Controller) -> Controller {
        let group = ContainerGroup::find(&identity(pod).0).unwrap();
        controller.kill();
        let next = self.controller();
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(10) {
            assert_eq!(group.limits(), SIZED_LIMITS, "after {:?}", began.elapsed());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        next
    }

    /// Without a controller pods start at their user's size; the next controller sizes them again.
    async fn through_an_outage(&self, pod: &Pod, controller: &mut Controller) -> (Pod, Controller) {
        controller.kill();
        let (next, took) = self.replaced(pod, "hello-00001").await;
        record("knative_start_without_webhook_s", &format!("{took:.1}"));
        assert!(!next.annotations().contains_key(SIZED));
        let group = ContainerGroup::find(&identity(&next).0).unwrap();
        assert_eq!(group.limits(), USERS, "as its user wrote it");
        let started = Instant::now();
        let controller = self.controller();
        until(15, "the pod is sized again", async || {
            (group.limits() == SIZED_LIMITS).then_some(())
        })
        .await;
        record("knative_back_s", &format!("{:.1}", started.elapsed().as_secs_f64()));
        (next, controller)
    }

    /// The user rolls out a Revision with other requests: the same rules hold for it, and the old one is given back.
    async fn through_a_new_revision(&self) -> Pod {
        let resources = json!({"requests": {"cpu": "30m", "memory": "48Mi"},
            "limits": {"cpu": "300m", "memory": "192Mi"}});
        let object = knative_object(&self.namespace, "hello", &annotations(), &resources);
        self.bed.apply(&knative_services(), &object).await;
        let pod = self.ready("hello-00002", "").await;
        assert!(is_burstable(&pod));
        let group = ContainerGroup::find(&identity(&pod).0).unwrap();
        until(60, "the pod of the new Revision has the policy's size", async || {
            (group.limits() == SECOND_LIMITS).then_some(())
        })
        .await;
        let after = self.pods.get(&pod.name_any()).await.unwrap();
        assert_eq!(identity(&after), identity(&pod), "never restarted");
        let requests =
            users_container(&after).resources.as_ref().unwrap().requests.clone().unwrap();
        assert_eq!((requests["cpu"].0.as_str(), requests["memory"].0.as_str()), ("40m", "16Mi"));
        until(30, "the first Revision is as its user wrote it", async || {
            let all = self.revisions().await;
            let first = all.iter().find(|one| one.name_any() == "hello-00001")?;
            (!first.annotations().contains_key(ORIGINAL_ANNOTATIONS)).then_some(())
        })
        .await;
        after
    }

    /// Without the policy everything is the user's again.
    async fn gives_back(&self, pod: &Pod) {
        let group = ContainerGroup::find(&identity(pod).0).unwrap();
        let api = self.bed.api(&policies(), Some(&self.namespace));
        api.delete("function", &DeleteParams::default()).await.unwrap();
        until(60, "the policy is gone", async || {
            seen(&self.bed, &self.namespace).await.is_none().then_some(())
        })
        .await;
        // The policy goes when the API server has the user's size; the node follows.
        let (began, users) = (Instant::now(), Limits { cpu_quota: 30_000, memory: 192 << 20 });
        while group.limits() != users {
            let now = self.pods.get_opt(&pod.name_any()).await.unwrap();
            let asked = now.as_ref().map(|pod| users_container(pod).resources.clone());
            let status = now.as_ref().and_then(|pod| pod.status.clone());
            assert!(
                began.elapsed() < Duration::from_secs(10),
                "{:?}, asked for {asked:?}, {status:?}",
                group.limits()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for revision in self.revisions().await {
            let annotations = revision.annotations();
            assert!(!annotations.contains_key(ORIGINAL_ANNOTATIONS));
            for (key, value) in [("target", "10"), ("min-scale", "1"), ("max-scale", "3")] {
                let own = format!("autoscaling.knative.dev/{key}");
                assert_eq!(annotations[&own], value, "the user's own {key}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn knative_pods_are_sized_at_creation_and_live_and_stay_so() {
    let Some(bed) = Bed::with("knative sizes", Needs::Knative).await else { return };
    install(&bed).await;
    let namespace = bed.namespace("windfall-sizes").await;
    bed.knative_service(&namespace, "hello", annotations()).await;
    let pods = Api::<Pod>::namespaced(bed.client.clone(), &namespace);
    let stage = Stage { bed, namespace, pods };
    let pod = stage.ready("hello-00001", "").await;
    if ContainerGroup::find(&identity(&pod).0).is_none() {
        record("skipped", "knative sizes: the node is another machine");
        return;
    }
    let target =
        json!({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "hello"});
    fixed_policy(&stage.bed, &stage.namespace, &target, "Auto", SIZE).await;
    let mut controller = stage.controller();

    stage.live(&pod).await;
    stage.annotates(&pod).await;
    let pod = stage.at_creation(&pod).await;
    let mut controller = stage.through_a_restart(&pod, &mut controller).await;
    let (_, _controller) = stage.through_an_outage(&pod, &mut controller).await;
    let pod = stage.through_a_new_revision().await;
    stage.gives_back(&pod).await;
    stage.bed.delete_namespace(&stage.namespace).await;
}
