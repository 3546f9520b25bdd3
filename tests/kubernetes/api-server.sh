#!/bin/bash
# Starts the API server and waits until it is ready. Also used by tests that restart it.
set -e; . "$(dirname "$0")/environment.sh"; P=$STATE/pki
component apiserver "$BUILD/bin/kubernetes" apiserver --etcd-servers=http://127.0.0.1:$((PORT + 1)) \
  --bind-address=$NODE --advertise-address=${ADVERTISE:-$NODE} --secure-port=$PORT \
  --tls-cert-file=$P/api.crt --tls-private-key-file=$P/api.key --client-ca-file=$P/ca.crt --token-auth-file=$P/tokens.csv \
  --service-account-key-file=$P/accounts.pub --service-account-signing-key-file=$P/accounts.key \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local --service-cluster-ip-range=10.96.0.0/16 \
  --authorization-mode=RBAC --allow-privileged=true --enable-priority-and-fairness=false --endpoint-reconciler-type=${RECONCILER:-master-count} \
  --requestheader-client-ca-file=$P/ca.crt --requestheader-allowed-names=front-proxy --requestheader-username-headers=X-Remote-User \
  --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
  --proxy-client-cert-file=$P/aggregation.crt --proxy-client-key-file=$P/aggregation.key
until_true 90 inside curl -sfk -H 'Authorization: Bearer admin-token' https://$NODE:$PORT/readyz
