#!/usr/bin/env bash
# build-tools.sh: builds what people put charts with, beside what build.sh builds, and prints the folder (the only line on
# stdout): helm3, the oldest Helm that the chart is for, and registry, a registry of images and charts in memory. Each has
# its own pins, so a change of these rebuilds nothing of Kubernetes. Environment and exit codes are those of build.sh.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
HELM3=v3.19.5; HELM3_KUBERNETES=34   # the minor version of its client-go, which it takes for a cluster's when it asks none
REGISTRY=v0.22.1
KUBE_CACHE=${KUBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kube-gomod}
say() { echo "build-tools.sh: $*" >&2; }

command -v go > /dev/null || { say 'Go is not installed'; exit 3; }
export GOFLAGS=-mod=mod GOWORK=off GOTOOLCHAIN=${GOTOOLCHAIN:-local} CGO_ENABLED=0
NEED=$(sed -n 's/^go //p' "$HERE/go.mod"); HAVE=$(go env GOVERSION); HAVE=${HAVE#go}
[ "$(printf '%s\n' "$NEED" "$HAVE" | sort -V | head -1)" = "$NEED" ] || { say "Go $NEED or newer is needed, found $HAVE"; exit 3; }

KEY=$({ cat "$HERE/build-tools.sh"; go env GOOS GOARCH GOVERSION; } | sha256sum | cut -c1-16)
DEST=$KUBE_CACHE/tools-$KEY
[ -f "$DEST/.complete" ] && { echo "$DEST"; exit 0; }
[ "${KUBE_BUILD:-1}" = 0 ] && { say 'not built yet'; exit 4; }
mkdir -p "$DEST"
exec 9> "$KUBE_CACHE/lock-tools"; flock 9
[ -f "$DEST/.complete" ] && { echo "$DEST"; exit 0; }
TMP=$(mktemp -d "$KUBE_CACHE/tmp.XXXXXX"); trap 'rm -rf "$TMP"' EXIT
[ -n "${KUBE_CLEAN:-}" ] && export GOCACHE=$TMP/gocache

say "building helm $HELM3 and a registry $REGISTRY with go$HAVE (about 4 minutes on 2 cores)"
start=$SECONDS
cd "$TMP"
# The checksum database of Go, or the mirror that stands for it, vouches for what is downloaded.
install() { GOBIN=$TMP nice go install -trimpath '-gcflags=all=-dwarf=false' -ldflags "-s -w ${2:-}" "$1" >&2; }
LD="-X helm.sh/helm/v3/internal/version.version=$HELM3"
for p in lint/rules chartutil; do
  LD="$LD -X helm.sh/helm/v3/pkg/$p.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$p.k8sVersionMinor=$HELM3_KUBERNETES"
done
install "helm.sh/helm/v3/cmd/helm@$HELM3" "$LD"
install "github.com/google/go-containerregistry/cmd/registry@$REGISTRY"
mv helm "$DEST/helm3"; mv registry "$DEST/registry"
touch "$DEST/.complete"
say "$((SECONDS - start)) s"
[ -d "$TMP/gocache" ] && chmod -R u+w "$TMP/gocache"
echo "$DEST"
