#!/bin/bash
# image.sh NAME PROGRAM [FILE...]: an OCI archive NAME.tar with one static program at /app, run as user 65532.
# IMAGE_ENTRYPOINT replaces /app where the program needs words before it. No registry is involved. The image is called dev.local/NAME:1; Knative resolves no digests for that host.
set -e; . "$(dirname "$0")/environment.sh"
name=$1 program=$2; shift 2
mkdir -p "$BUILD/images"; cd "$BUILD/images"; rm -rf "$name" "$name.root" "$name.tar"
mkdir -p "$name.root/tmp" "$name.root/etc"; chmod 1777 "$name.root/tmp"
install -m 755 "$program" "$name.root/app"
for file in "$@"; do install -m 755 "$file" "$name.root/$(basename "$file")"; done
printf 'nonroot:x:65532:65532::/:/app\n' > "$name.root/etc/passwd"
umoci init --layout "$name"; umoci new --image "$name:1"
umoci insert --image "$name:1" "$name.root" / > /dev/null
entrypoint=(${IMAGE_ENTRYPOINT:-/app})
umoci config --image "$name:1" "${entrypoint[@]/#/--config.entrypoint=}" --config.user 65532:65532 --config.workingdir /
tar -C "$name" -cf "$name.tar" .; rm -rf "$name" "$name.root"
