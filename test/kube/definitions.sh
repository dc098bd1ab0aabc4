#!/usr/bin/env bash
# definitions.sh gateway|monitoring: prints the folder with the definitions of the Gateway API or of the Prometheus operator
# (the only line on stdout), out of the Go module of their project. The first run takes it from the module proxy, some MB;
# later ones find it in Go's cache.
# exit: 0 found; 3 Go is missing; 4 the module is neither in the cache nor to be had
set -euo pipefail
case ${1:-} in
gateway) MODULE=sigs.k8s.io/gateway-api VERSION=v1.6.3 SUM=h1:lKpJa5bGlraC/QeACvCpsHLdmO6y0iKfzVl6gzaFEYc= IN=config/crd/standard ;;
monitoring)
  MODULE=github.com/prometheus-operator/prometheus-operator VERSION=v0.85.0 SUM=h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=
  IN=example/prometheus-operator-crd ;;
*) echo "definitions.sh: ${1:-}: neither gateway nor monitoring" >&2; exit 1 ;;
esac
command -v go > /dev/null || { echo 'definitions.sh: Go is not installed' >&2; exit 3; }
cd /; export GOFLAGS=-mod=mod GOWORK=off GOTOOLCHAIN=local
FOUND=$(go mod download -json "$MODULE@$VERSION") || { echo "definitions.sh: $FOUND" >&2; exit 4; }
field() { sed -n "s/^\t\"$1\": \"\(.*\)\",*$/\1/p" <<< "$FOUND"; }
[ "$(field Sum)" = "$SUM" ] || { echo "definitions.sh: $MODULE $VERSION is not what it was: $(field Sum)" >&2; exit 1; }
echo "$(field Dir)/$IN"
