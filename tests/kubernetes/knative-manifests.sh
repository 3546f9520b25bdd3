#!/bin/bash
# Knative's own manifests, straight from its Go modules, with the names of the local images.
set -e; . "$(dirname "$0")/environment.sh"
[ -e "$BUILD/knative/deployments.yaml" ] && exit
cd "$HARNESS/modules/knative"
folder() { GOTOOLCHAIN=local GOFLAGS=-mod=mod go list -m -f '{{.Dir}}' "$1"; }
SERVING=$(folder knative.dev/serving) NETWORKING=$(folder knative.dev/networking) CACHING=$(folder knative.dev/caching)
CORE=$SERVING/config/core
join() {
  for file in "$@"; do echo ---; cat "$file"; echo; done |
    sed 's#ko://knative.dev/serving/cmd/\([a-z]*\)#dev.local/kn-\1:1#'
}
join "$CORE"/300-resources/*.yaml "$NETWORKING"/config/{certificate,domain-claim,ingress,serverlessservice}.yaml \
  "$CACHING"/config/image.yaml > "$BUILD/knative/definitions.yaml"
join "$CORE"/100-namespace.yaml "$CORE"/200-serviceaccount.yaml "$CORE"/200-roles/*.yaml "$CORE"/configmaps/*.yaml \
  "$NETWORKING"/config/config-network.yaml "$CORE"/300-knativecertificate.yaml > "$BUILD/knative/core.yaml"
join "$CORE"/deployments/{autoscaler,activator,controller,webhook}.yaml "$CORE"/webhooks/*.yaml \
  "$CORE"/999-cache.yaml > "$BUILD/knative/deployments.yaml"
