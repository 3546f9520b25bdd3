#!/bin/bash
# Builds every program and image of the cluster into $WINDFALL_KUBERNETES_BUILD. What is already there is kept.
set -e; . "$(dirname "$0")/environment.sh"
export GOTOOLCHAIN=local GOFLAGS=-buildvcs=false CGO_ENABLED=0
mkdir -p "$BUILD/bin" "$BUILD/images" "$BUILD/knative"

# go_build MODULE NAME PACKAGE [linker flags]: one program of one module.
go_build() {
  [ -x "$BUILD/bin/$2" ] && return
  ( cd "$HARNESS/modules/$1" && go build -trimpath -ldflags "-s -w $4" -o "$BUILD/bin/$2" "$3" )
  report "$2"
}

V=k8s.io/component-base/version   # without a version Knative's check of the server fails
go_build kubernetes kubernetes . "-X $V.gitVersion=v1.36.3 -X $V.gitMajor=1 -X $V.gitMinor=36 -X $V.gitTreeState=clean"
go_build pause pause .
go_build function function .
if [ "$1" != without-knative ]; then
  for c in controller autoscaler activator queue webhook; do
    go_build knative kn-$c knative.dev/serving/cmd/$c
  done
  go_build knative edge ./edge
  "$HARNESS/knative-manifests.sh"
fi
go_build helm helm helm.sh/helm/v3/cmd/helm   # lints and renders the chart
# Whom guests serve: the updater of the Vertical Pod Autoscaler with its definitions, and KEDA's client of external scalers.
go_build vpa vpa-updater k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater
vpa=$(cd "$HARNESS/modules/vpa" && go list -m -f '{{.Dir}}' k8s.io/autoscaler/vertical-pod-autoscaler)
install -m 644 "$vpa/deploy/vpa-v1-crd-gen.yaml" "$BUILD/vpa-definitions.yaml"
go_build keda keda .
[ -n "$WINDFALL_KUBERNETES_WITHOUT_NODE" ] && exit
for program in "$BUILD"/bin/{pause,function,kn-*}; do
  name=$(basename "$program")
  [ -e "$BUILD/images/$name.tar" ] || "$HARNESS/image.sh" "$name" "$program"
done
report images
