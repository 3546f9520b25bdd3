#!/bin/bash
# own-image.sh PROGRAM: the controller as the tests built it, as image dev.local/windfall-kubernetes:1. What users get is a
# static program (deploy/image/build.sh), which takes minutes to build; here its libraries come along instead.
set -e; . "$(dirname "$0")/environment.sh"
program=$(mktemp); trap 'rm -f "$program"' EXIT
strip -o "$program" "$1" 2> /dev/null || cp "$1" "$program"
libraries=$(ldd "$1" | grep -o '/[^ ]*')
loader=$(basename "$(echo "$libraries" | grep -o '[^ ]*/ld-[^ ]*')")
IMAGE_ENTRYPOINT="/$loader --library-path / /app" "$HARNESS/image.sh" windfall-kubernetes "$program" $libraries
