#!/usr/bin/env bash
# nodes.sh: installs the older versions of Node that the lock file in nodes names, once for all runs, and prints the folder
# they are in (the only line on stdout): node_modules/node-20/bin/node and so on.
# env: NODES_CACHE  where it is kept (default ~/.cache; outside any repository)
# exit: 0 installed or found; 3 npm is missing; anything else: the installation failed
set -euo pipefail
say() { echo "nodes.sh: $*" >&2; }
HERE=$(cd "$(dirname "$0")" && pwd)/nodes
HASH=$(sha256sum "$HERE/package-lock.json" | cut -c 1-16)
CACHE=${NODES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}}
DEST=$CACHE/penstock-nodes-$HASH
if [ -e "$DEST/installed" ]; then echo "$DEST"; exit 0; fi

command -v npm > /dev/null || { say 'npm is not installed'; exit 3; }
mkdir -p "$CACHE"
exec 9> "$DEST.lock"; flock 9
if [ -e "$DEST/installed" ]; then echo "$DEST"; exit 0; fi
rm -rf "$DEST"; mkdir -p "$DEST"
say 'installing Node 20 and 22 (some seconds)'
cp "$HERE"/package*.json "$HERE/.npmrc" "$DEST/"
(cd "$DEST" && npm ci --ignore-scripts --fetch-retries 1 --fetch-retry-mintimeout 500 >&2)
touch "$DEST/installed"
echo "$DEST"
