#!/usr/bin/env bash
# stripe-mock.sh: builds Stripe's own mock of its API from its Go module, once for all runs, and prints the folder it is
# in (the only line on stdout): stripe-mock, and spec3.json, the OpenAPI document that it judges requests by.
# env: STRIPE_MOCK_CACHE  where it is kept (default ~/.cache/penstock-stripe-mock; outside any repository)
#      STRIPE_MOCK_BUILD=0  only look: do not build what is not there
# exit: 0 built or found; 3 Go is missing or too old; 4 not there and STRIPE_MOCK_BUILD=0; anything else: the build failed
set -euo pipefail
VERSION=v0.203.0 NEED=1.22.1 MODULE=github.com/stripe/stripe-mock
CACHE=${STRIPE_MOCK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock-stripe-mock}
say() { echo "stripe-mock.sh: $*" >&2; }

DEST=$CACHE/$VERSION
if [ -x "$DEST/stripe-mock" ]; then echo "$DEST"; exit 0; fi
[ "${STRIPE_MOCK_BUILD:-1}" = 0 ] && { say 'not built yet'; exit 4; }
command -v go > /dev/null || { say 'Go is not installed'; exit 3; }
HAVE=$(GOTOOLCHAIN=local go env GOVERSION); HAVE=${HAVE#go}
[ "$(printf '%s\n' "$NEED" "$HAVE" | sort -V | head -1)" = "$NEED" ] || { say "Go $NEED or newer is needed, found $HAVE"; exit 3; }

mkdir -p "$CACHE"
exec 9> "$CACHE/lock"; flock 9
if [ -x "$DEST/stripe-mock" ]; then echo "$DEST"; exit 0; fi
TMP=$(mktemp -d "$CACHE/tmp.XXXXXX"); trap 'rm -rf "$TMP"' EXIT
say "building stripe-mock $VERSION (half a minute on 2 cores)"
export GOFLAGS=-mod=mod GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0
GOBIN=$TMP nice go install -trimpath -ldflags='-s -w' "$MODULE@$VERSION" >&2
SOURCE=$(cd "$TMP" && go mod download -json "$MODULE@$VERSION" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
mkdir -p "$DEST"
install -m 644 "$SOURCE/embedded/openapi/spec3.json" "$DEST/spec3.json"
mv "$TMP/stripe-mock" "$DEST/stripe-mock"
echo "$DEST"
