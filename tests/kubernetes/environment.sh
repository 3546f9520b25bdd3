# Settings and functions that every script here shares. Sourced, never run.
#
#   WINDFALL_KUBERNETES_BUILD   programs, images and manifests of Knative; made once by build.sh
#   WINDFALL_KUBERNETES_STATE   certificates, logs and data of one running cluster; made by up.sh, removed by down.sh
#   WINDFALL_KUBERNETES_GROUP   name of the parent control group; two clusters on one machine need two names
HARNESS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TARGET=${CARGO_TARGET_DIR:-$HARNESS/../../target}
BUILD=${WINDFALL_KUBERNETES_BUILD:-$TARGET/kubernetes/build}
STATE=${WINDFALL_KUBERNETES_STATE:-$TARGET/kubernetes/state}
GROUP=${WINDFALL_KUBERNETES_GROUP:-windfall-kubernetes}
mkdir -p "$BUILD" "$STATE"
BUILD=$(cd "$BUILD" && pwd) STATE=$(cd "$STATE" && pwd)
export WINDFALL_KUBERNETES_BUILD=$BUILD WINDFALL_KUBERNETES_STATE=$STATE WINDFALL_KUBERNETES_GROUP=$GROUP
CGROUPS=/sys/fs/cgroup

# The node's address. With namespaces it lies on a veth end inside; without a node everything is on loopback.
if [ -e "$STATE/without-node" ]; then NODE=127.0.0.1; else NODE=10.77.0.1; fi
PORT=${WINDFALL_KUBERNETES_PORT:-6443}

is_v2() { [ -e $CGROUPS/cgroup.controllers ]; }

# Moves this shell into the group of the control plane, whose shares protect it from other programs of the machine.
into_plane() {
  if is_v2; then echo $BASHPID > "$CGROUPS/$GROUP/plane/cgroup.procs"
  else for c in cpu memory; do echo $BASHPID > "$CGROUPS/$c/$GROUP/plane/cgroup.procs"; done; fi
}

# Runs a program inside the cluster's namespaces.
inside() {
  if [ -e "$STATE/without-node" ]; then "$@"; return; fi
  ( into_plane; exec nsenter -t "$(cat "$STATE/namespace.pid")" -n -m -p -u -i "$@" )
}

# Starts `$2...` in the background as component `$1`; its log and its process id are in the state folder.
component() {
  local name=$1; shift
  if [ -e "$STATE/without-node" ]; then ( exec "$@" ) > "$STATE/log/$name.log" 2>&1 < /dev/null &
  else ( into_plane; exec nsenter -t "$(cat "$STATE/namespace.pid")" -n -m -p -u -i "$@" ) > "$STATE/log/$name.log" 2>&1 < /dev/null &
  fi
  echo $! > "$STATE/$name.pid"
}

kubectl() { inside "$BUILD/bin/kubernetes" kubectl --kubeconfig "$STATE/admin.kubeconfig" "$@"; }

# until_true SECONDS COMMAND...: asks ten times a second.
until_true() {
  local limit=$1 tries=0; shift
  until "$@" > /dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -le $((limit * 10)) ] || { echo "not within $limit s: $*" >&2; return 1; }
    sleep 0.1
  done
}

BEGAN=$(date +%s%N)
report() { printf '%-28s %7.2f s\n' "$1" "$(echo "($(date +%s%N) - $BEGAN) / 1000000000" | bc -l)"; }
