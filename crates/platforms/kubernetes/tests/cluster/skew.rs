//! Two controllers, one of which has a clock an hour ahead. Leadership must not depend on it, and at no time may both act.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;

use super::bed::{Bed, Needs, record};
use super::controller::{Controller, install, set_mode};
use super::door::Door;
use super::faults::answers;
use super::faults_of_the_server::{ALLOWED, LIMIT, USERS_CPU, managed_pod, until_requested};

/// Adds an hour to the wall clock of a program, and leaves its clock for intervals alone.
const AHEAD: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += 3600;
    return result;
}
"#;

/// The library, if there is a C compiler.
fn library() -> Option<PathBuf> {
    let (source, built) = (
        std::env::temp_dir().join("windfall-ahead.c"),
        std::env::temp_dir().join("windfall-ahead.so"),
    );
    std::fs::write(&source, AHEAD).unwrap();
    let mut compiler = Command::new("cc");
    let status = compiler.args(["-shared", "-fPIC", "-o"]).arg(&built).arg(&source).status();
    status.is_ok_and(|status| status.success()).then_some(built)
}

fn start(
    namespace: &str,
    identity: &str,
    place: u16,
    door: &Door,
    ahead: Option<&Path>,
) -> Controller {
    let mut variables = vec![("KUBECONFIG", door.kubeconfig())];
    variables.extend(ahead.map(|library| ("LD_PRELOAD", library)));
    Controller::start_with(namespace, identity, place, &variables)
}

/// When a controller last changed an object through its door, and when it first did.
fn acts(door: &Door) -> (Option<Instant>, Option<Instant>) {
    let mut all = door.written("/resourcepolicies/");
    all.extend(door.written("/resize"));
    (all.iter().map(|one| one.at).min(), all.iter().map(|one| one.at).max())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a cluster: cargo xtask kubernetes"]
async fn a_clock_an_hour_ahead_changes_nothing_about_who_acts() {
    let Some(bed) = Bed::with("clock skew", Needs::Pods).await else { return };
    let Some(library) = library() else {
        record("skipped", "clock skew: there is no C compiler for the library that moves a clock");
        return;
    };
    install(&bed).await;
    let namespace = bed.namespace("windfall-skew").await;
    let pod = managed_pod(&bed, &namespace).await;
    let name = pod.name_any();
    let pods = Api::<Pod>::namespaced(bed.client.clone(), &namespace);
    let fast = Door::open(&bed.client, "windfall-skew-fast").await;
    let exact = Door::open(&bed.client, "windfall-skew-exact").await;

    let mut ahead = start(&namespace, "ahead", 4, &fast, Some(&library));
    until_requested(&pods, &name, ALLOWED.0, 90).await;
    let mut other = start(&namespace, "exact", 5, &exact, None);
    // A Lease dated an hour ahead is not taken from a holder that goes on writing it, whatever the reader's clock says.
    tokio::time::sleep(std::time::Duration::from_secs(13)).await;
    assert_eq!(acts(&exact).0, None, "only the first acts");

    set_mode(&bed, &namespace, "Off").await;
    ahead.kill();
    let last_of_ahead = acts(&fast).1.unwrap();
    let took = until_requested(&pods, &name, USERS_CPU, LIMIT).await;
    record("skew_ahead_killed_s", &format!("{took:.1}"));
    assert!(acts(&exact).0.unwrap() > last_of_ahead, "one after the other");

    // And back: a clock that is right holds, one that is an hour ahead waits.
    let back = Door::open(&bed.client, "windfall-skew-back").await;
    let mut ahead = start(&namespace, "ahead-again", 4, &back, Some(&library));
    tokio::time::sleep(std::time::Duration::from_secs(13)).await;
    assert_eq!(acts(&back).0, None, "only the second acts");
    let generation = pods.get(&name).await.unwrap().metadata.generation;
    let killed = Instant::now();
    other.kill();
    let took = answers(&bed, &namespace, "Auto", killed).await;
    record("skew_exact_killed_s", &format!("{took:.1}"));
    assert!(took <= LIMIT as f64, "{took:.1} s without a leader");
    // It has no measurements yet, so the size itself comes later.
    until_requested(&pods, &name, ALLOWED.0, 60).await;
    let after = pods.get(&name).await.unwrap().metadata.generation;
    assert_eq!(after, generation.map(|one| one + 1), "the pod was changed once");
    assert!(ahead.runs(), "{}", ahead.last_lines());
    bed.delete_namespace(&namespace).await;
}
