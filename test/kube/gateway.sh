#!/usr/bin/env bash
# gateway.sh: prints the folder with the definitions of the Gateway API (the only line on stdout), out of its Go module.
# The first run takes it from the module proxy, some MB; later ones find it in Go's cache.
# exit: 0 found; 3 Go is missing; 4 the module is neither in the cache nor to be had
set -euo pipefail
MODULE=sigs.k8s.io/gateway-api; VERSION=v1.6.3; SUM=h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc=
command -v go > /dev/null || { echo 'gateway.sh: Go is not installed' >&2; exit 3; }
cd /; export GOFLAGS=-mod=mod GOWORK=off GOTOOLCHAIN=local
FOUND=$(go mod download -json "$MODULE@$VERSION") || { echo "gateway.sh: $FOUND" >&2; exit 4; }
field() { sed -n "s/^\t\"$1\": \"\(.*\)\",*$/\1/p" <<< "$FOUND"; }
[ "$(field Sum)" = "$SUM" ] || { echo "gateway.sh: $MODULE $VERSION is not what it was: $(field Sum)" >&2; exit 1; }
echo "$(field Dir)/config/crd/standard"
