#!/bin/bash
# Ends the cluster of $WINDFALL_KUBERNETES_STATE and removes all it left: processes, mounts, interfaces, groups, files.
. "$(dirname "$0")/environment.sh"
gone() { ! kill -0 "$(cat "$STATE/$1.pid")" 2> /dev/null; }
if [ -e "$STATE/without-node" ]; then
  for name in controller-manager apiserver etcd; do
    [ -e "$STATE/$name.pid" ] || continue
    kill -9 "$(cat "$STATE/$name.pid")" 2> /dev/null; until_true 10 gone $name
  done
elif [ -e "$STATE/namespace.pid" ]; then
  # The first process of a pid namespace takes all others, their mounts and interfaces with it.
  kill -9 "$(cat "$STATE/namespace.pid")" 2> /dev/null; until_true 20 gone outer
  if is_v2; then groups=$CGROUPS/$GROUP; else groups="$CGROUPS/*/$GROUP"; fi
  no_groups() { find $groups -depth -type d -exec rmdir {} + 2> /dev/null; ! ls -d $groups > /dev/null 2>&1; }
  until_true 5 no_groups
fi
rm -rf "$STATE"
