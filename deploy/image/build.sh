#!/bin/bash
# build.sh [PROFILE]: an OCI archive of the controller, without a registry or a container engine. Needs cargo and umoci.
# The result, target/kubernetes/image/images/windfall-kubernetes.tar, is loaded with `ctr -n k8s.io images import` or
# `podman load`.
set -e; cd "$(dirname "$0")/../.."
profile=${1:-release} host=$(rustc -vV | sed -n 's/^host: //p') target=${CARGO_TARGET_DIR:-target}
# With --target the flag does not reach build scripts and macros, which cannot be static.
RUSTFLAGS='-C target-feature=+crt-static' cargo build --profile "$profile" --target "$host" -p windfall-kubernetes --bin windfall-kubernetes
folder=$profile; [ "$profile" = dev ] && folder=debug
WINDFALL_KUBERNETES_BUILD=$target/kubernetes/image tests/kubernetes/image.sh windfall-kubernetes "$target/$host/$folder/windfall-kubernetes"
