#!/usr/bin/env bash
# generators.sh typescript|python: installs the generators of clients in the versions that the lock file beside it names,
# once for all runs, and prints the folder they are in (the only line on stdout): with node_modules, or with the venv.
# env: CLIENTS_CACHE  where it is kept (default ~/.cache; outside any repository)
# exit: 0 installed or found; 3 what installs them is missing; anything else: the installation failed
set -euo pipefail
say() { echo "generators.sh: $*" >&2; }
HERE=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in
  typescript) LOCK=$HERE/typescript/package-lock.json ;;
  python) LOCK=$HERE/python/requirements.txt ;;
  *) say 'usage: generators.sh typescript|python'; exit 2 ;;
esac
HASH=$(sha256sum "$LOCK" | cut -c 1-16)
CACHE=${CLIENTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}}
DEST=$CACHE/penstock-clients-$1-$HASH
if [ -e "$DEST/installed" ]; then echo "$DEST"; exit 0; fi

mkdir -p "$CACHE"
exec 9> "$DEST.lock"; flock 9
if [ -e "$DEST/installed" ]; then echo "$DEST"; exit 0; fi
# Not elsewhere and moved: a venv knows its place.
rm -rf "$DEST"; mkdir -p "$DEST"
say "installing the $1 generator (some seconds)"
if [ "$1" = typescript ]; then
  command -v npm > /dev/null || { say 'npm is not installed'; exit 3; }
  cp "$HERE"/typescript/package*.json "$HERE/typescript/.npmrc" "$DEST/"
  (cd "$DEST" && npm ci --ignore-scripts --fetch-retries 1 >&2)
else
  command -v python3 > /dev/null || { say 'python3 is not installed'; exit 3; }
  python3 -c 'import ensurepip, venv' 2> /dev/null || { say 'python3 has no venv (package python3-venv)'; exit 3; }
  python3 -m venv "$DEST/venv" >&2
  "$DEST/venv/bin/pip" install --quiet --no-deps --retries 1 --timeout 30 -r "$LOCK" >&2
fi
touch "$DEST/installed"
echo "$DEST"
