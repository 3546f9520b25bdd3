#!/bin/bash
# inside.sh PROGRAM...: runs a program in the cluster's network, with the admin's kubeconfig. Cargo uses it as the
# runner of the tests: the program stays in the host's other namespaces, so it reads control groups by their real path.
. "$(dirname "$0")/environment.sh"
export KUBECONFIG=${KUBECONFIG:-$STATE/admin.kubeconfig}
if [ -e "$STATE/without-node" ]; then exec "$@"; fi
into_plane
exec nsenter -t "$(cat "$STATE/namespace.pid")" -n "$@"
