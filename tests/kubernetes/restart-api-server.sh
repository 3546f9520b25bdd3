#!/bin/bash
# Kills the API server without a warning and starts it again on the same data: what a crash or an upgrade does.
. "$(dirname "$0")/environment.sh"; set -e
# nsenter is the parent of a program that it starts in another pid namespace.
pid=$(pgrep -P "$(cat "$STATE/apiserver.pid")" || cat "$STATE/apiserver.pid")
kill -9 "$pid"; gone() { ! kill -0 "$pid" 2> /dev/null; }; until_true 10 gone
[ -e "$STATE/without-node" ] && export ADVERTISE=192.0.2.1 RECONCILER=none
exec "$HARNESS/api-server.sh"
