#!/bin/bash
# Certificates, kubeconfigs and the configuration of each component, into the state folder.
set -e; . "$(dirname "$0")/environment.sh"; mkdir -p "$STATE/pki" "$STATE/cni" "$STATE/log"; cd "$STATE/pki"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }
signed() { # NAME SUBJECT [EXTENSIONS]
  key "$1.key"; openssl req -new -key "$1.key" -subj "/CN=$2" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 ${3:+-extfile "$3"} -out "$1.crt" 2> /dev/null
}
key ca.key; openssl req -x509 -new -key ca.key -days 30 -subj /CN=test-authority -out ca.crt
openssl genrsa -out accounts.key 2048 2> /dev/null; openssl rsa -in accounts.key -pubout -out accounts.pub 2> /dev/null
# Pods reach the API server by its service address, so that is among the names.
names=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost
echo "subjectAltName=$names,IP:10.96.0.1,IP:$NODE,IP:127.0.0.1" > api.extensions
signed api kube-apiserver api.extensions
signed aggregation front-proxy

# Everything in this cluster is thrown away with it; these tokens open nothing else. `limited` has the rights that
# a test binds to it and no others.
cat > tokens.csv <<T
admin-token,admin,admin,system:masters
manager-token,system:kube-controller-manager,manager
scheduler-token,system:kube-scheduler,scheduler
limited-token,limited,limited
T
for user in admin manager scheduler limited; do cat > "$STATE/$user.kubeconfig" <<T
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://$NODE:$PORT", certificate-authority: $STATE/pki/ca.crt}}]
users: [{name: $user, user: {token: $user-token}}]
contexts: [{name: test, context: {cluster: test, user: $user}}]
current-context: test
T
done

cat > "$STATE/containerd.toml" <<T
version = 2
root = "$STATE/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs","io.containerd.snapshotter.v1.zfs","io.containerd.snapshotter.v1.aufs","io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "dev.local/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/cni"
T
cat > "$STATE/cni/10-bridge.conflist" <<T
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$STATE/cni-leases", "ranges": [[{"subnet": "10.88.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
T
cat > "$STATE/kubelet.yaml" <<T
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /$GROUP
failCgroupV1: false              # 1.36 refuses version 1 unless this is said
failSwapOn: false
makeIPTablesUtilChains: false
oomScoreAdj: 0                   # lowering it needs CAP_SYS_RESOURCE
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDNS: [$NODE]
clusterDomain: cluster.local
resolvConf: $STATE/resolv.conf
imageGCHighThresholdPercent: 100 # a fairly full disk must not evict pods
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%, imagefs.inodesFree: 1%}
maxPods: 200
serializeImagePulls: false
podLogsDir: $STATE/podlogs
T
cat > "$STATE/proxy.yaml" <<T
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $STATE/admin.kubeconfig}
clusterCIDR: 10.88.0.0/16
hostnameOverride: node1
mode: iptables
conntrack: {maxPerCore: 0, min: 0, tcpCloseWaitTimeout: 0s, tcpEstablishedTimeout: 0s}
iptables: {minSyncPeriod: 0s, syncPeriod: 30s}
oomScoreAdj: 0
T
