#!/bin/bash
# The first process of the cluster's own pid, network, mount, uts and ipc namespaces; ends as the one that reaps.
# Killing it ends every container, mount and interface of the cluster. The host's network is never touched.
set -e; . "$(dirname "$0")/environment.sh"
hostname node1
mount -t tmpfs tmpfs /run; mkdir -p /run/lock /run/netns
echo "nameserver $NODE" > "$STATE/resolv.conf";               mount --bind "$STATE/resolv.conf" /etc/resolv.conf
printf '127.0.0.1 localhost\n%s node1\n' $NODE > "$STATE/hosts"; mount --bind "$STATE/hosts" /etc/hosts
mkdir -p "$STATE/varlog";                                     mount --bind "$STATE/varlog" /var/log
ip link set lo up
ip link add node0 type veth peer name node0p; ip link set node0p up   # not every kernel has dummy devices
ip addr add $NODE/24 dev node0; ip link set node0 up; ip route add default dev node0
echo 1 > /proc/sys/net/ipv4/ip_forward
touch "$STATE/namespace.ready"
exec "$BUILD/bin/pause"
