#!/usr/bin/env bash
# nats-cli.sh: builds the command of the NATS project from its Go module, once for all runs, and prints the folder it is
# in (the only line on stdout).
# env: NATS_CLI_CACHE  where it is kept (default ~/.cache/penstock-nats-cli; outside any repository)
#      NATS_CLI_BUILD=0  only look: do not build what is not there
# exit: 0 built or found; 3 Go is missing or too old; 4 not there and NATS_CLI_BUILD=0; anything else: the build failed
set -euo pipefail
VERSION=v0.5.1 NEED=1.26
CACHE=${NATS_CLI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock-nats-cli}
say() { echo "nats-cli.sh: $*" >&2; }

DEST=$CACHE/$VERSION
if [ -x "$DEST/nats" ]; then echo "$DEST"; exit 0; fi
[ "${NATS_CLI_BUILD:-1}" = 0 ] && { say 'not built yet'; exit 4; }
command -v go > /dev/null || { say 'Go is not installed'; exit 3; }
HAVE=$(GOTOOLCHAIN=local go env GOVERSION); HAVE=${HAVE#go}
[ "$(printf '%s\n' "$NEED" "$HAVE" | sort -V | head -1)" = "$NEED" ] || { say "Go $NEED or newer is needed, found $HAVE"; exit 3; }

mkdir -p "$CACHE"
exec 9> "$CACHE/lock"; flock 9
if [ -x "$DEST/nats" ]; then echo "$DEST"; exit 0; fi
TMP=$(mktemp -d "$CACHE/tmp.XXXXXX"); trap 'rm -rf "$TMP"' EXIT
say "building nats $VERSION (about 2 minutes on 2 cores)"
GOBIN=$TMP GOFLAGS=-mod=mod GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0 nice go install -trimpath -ldflags='-s -w' \
  "github.com/nats-io/natscli/nats@$VERSION" >&2
mkdir -p "$DEST"
mv "$TMP/nats" "$DEST/nats"
echo "$DEST"
