#!/bin/bash
# Starts the cluster. Without a word: namespaces, containerd, Kubernetes with a kubelet, Knative.
#   up.sh without-knative   stops before Knative
#   up.sh without-node      etcd, API server and controller-manager only, on loopback; needs no root
. "$(dirname "$0")/environment.sh"; set -e
[ -e "$STATE/admin.kubeconfig" ] && { echo "a cluster is up in $STATE; down.sh ends it" >&2; exit 2; }
if [ "$1" = without-node ]; then touch "$STATE/without-node"; . "$HARNESS/environment.sh"; fi
"$HARNESS/configure.sh"; report configured
B=$BUILD/bin/kubernetes SOCKET=/run/containerd/containerd.sock

own_groups() {
  if is_v2; then
    mkdir -p "$CGROUPS/$GROUP/plane"; echo 10000 > "$CGROUPS/$GROUP/cpu.weight"; return
  fi
  for c in cpu cpuacct cpuset memory devices freezer blkio pids systemd unified; do
    [ -d $CGROUPS/$c ] && mkdir -p "$CGROUPS/$c/$GROUP"
  done
  for f in cpus mems; do cat $CGROUPS/cpuset/cpuset.$f > "$CGROUPS/cpuset/$GROUP/cpuset.$f"; done
  echo 262144 > "$CGROUPS/cpu/$GROUP/cpu.shares"
  mkdir -p "$CGROUPS"/{cpu,memory}/"$GROUP/plane"
}

own_namespaces() {
  rm -f "$STATE/namespace.ready"
  ( into_plane
    exec unshare -n -m -p -u -i --fork --kill-child --propagation private --mount-proc "$HARNESS/first-process.sh"
  ) > "$STATE/log/namespace.log" 2>&1 < /dev/null &
  local outer=$!
  echo $outer > "$STATE/outer.pid"; until_true 10 test -e "$STATE/namespace.ready"
  pgrep -P $outer > "$STATE/namespace.pid"
}

import_images() {
  until_true 20 inside ctr -a $SOCKET version
  for archive in "$BUILD"/images/*.tar; do
    inside ctr -a $SOCKET -n k8s.io images import --base-name "dev.local/$(basename "$archive" .tar)" "$archive"
  done
}

if [ "$1" != without-node ]; then
  own_groups; own_namespaces; report namespaces
  component containerd /usr/bin/containerd -c "$STATE/containerd.toml"
  import_images > "$STATE/log/import.log" 2>&1 & IMPORT=$!
fi
component etcd "$B" etcd "$STATE/etcd" http://127.0.0.1:$((PORT + 1)) http://127.0.0.1:$((PORT + 2))
until_true 30 inside curl -sf http://127.0.0.1:$((PORT + 1))/health
# A service of the API server needs an address that is not loopback; without a node nobody uses it.
[ "$1" = without-node ] && export ADVERTISE=192.0.2.1 RECONCILER=none
"$HARNESS/api-server.sh"; report api-server
component controller-manager "$B" controller-manager --kubeconfig="$STATE/manager.kubeconfig" \
  --authentication-kubeconfig="$STATE/manager.kubeconfig" --authorization-kubeconfig="$STATE/manager.kubeconfig" \
  --service-account-private-key-file="$STATE/pki/accounts.key" --root-ca-file="$STATE/pki/ca.crt" \
  --use-service-account-credentials=true --leader-elect=false --bind-address=127.0.0.1 --secure-port=$((PORT + 3)) \
  --allocate-node-cidrs=false --kube-api-qps=200 --kube-api-burst=400
if [ "$1" = without-node ]; then until_true 30 kubectl get serviceaccount default; report up; exit; fi

component scheduler "$B" scheduler --kubeconfig="$STATE/scheduler.kubeconfig" --leader-elect=false --bind-address=127.0.0.1 \
  --authentication-kubeconfig="$STATE/scheduler.kubeconfig" --authorization-kubeconfig="$STATE/scheduler.kubeconfig"
until_true 20 inside ctr -a $SOCKET version
component kubelet "$B" kubelet --config="$STATE/kubelet.yaml" --kubeconfig="$STATE/admin.kubeconfig" \
  --root-dir="$STATE/kubelet" --hostname-override=node1 --node-ip=$NODE --v=2
component proxy "$B" proxy --config="$STATE/proxy.yaml"
[ "$1" = without-knative ] || component edge "$BUILD/bin/edge" -kubeconfig "$STATE/admin.kubeconfig" -http $NODE:80 -dns $NODE:53
node_is_ready() { kubectl get node node1 -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' | grep -q True; }
until_true 60 node_is_ready; report node
wait $IMPORT; report images
if [ "$1" = without-knative ]; then exit; fi

exec 3> "$STATE/log/knative.log"
kubectl apply --server-side -f "$BUILD/knative/definitions.yaml" >&3 2>&1
kubectl wait --for=condition=Established --timeout=60s crd --all >&3; report definitions
kubectl apply --server-side -f "$BUILD/knative/core.yaml" >&3 2>&1
settings() { kubectl -n knative-serving patch configmap "$1" --type merge -p "{\"data\":$2}" >&3; }
settings config-network '{"ingress-class":"mini.ingress.networking.knative.dev"}'
settings config-domain '{"example.com":""}'
settings config-observability '{"metrics-protocol":"prometheus","request-metrics-protocol":"prometheus"}'
settings config-autoscaler '{"scale-to-zero-grace-period":"6s"}'
kubectl apply --server-side -f "$BUILD/knative/deployments.yaml" >&3 2>&1
for d in controller autoscaler activator webhook; do kubectl -n knative-serving rollout status --timeout=180s deployment/$d >&3; done
report knative
