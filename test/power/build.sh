#!/usr/bin/env bash
# build.sh [--install]: makes the kernel and the first file system of the guest that loses its power, and prints their
# folder (the only line on stdout). A second run returns at once.
#   --install  missing Debian packages are installed first, which takes root
# env: POWER_CACHE  where both are kept (default ~/.cache/penstock-power; outside any repository)
#      POWER_BUILD=0  only look: do not fetch what is not there
# exit: 0 made or found; 3 a command is missing; 4 not there and POWER_BUILD=0; anything else: it failed
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
# Debian's smallest kernel: no firmware, few drivers, all of virtio.
KERNEL=linux-image-cloud-amd64
# Commands that the suite calls, each with its Debian package. A busybox that is not static does not run in the guest.
COMMANDS='qemu-system-x86_64:qemu-system-x86 mkfs.ext4:e2fsprogs busybox:busybox-static cpio:cpio'
CACHE=${POWER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/penstock-power}
export PATH=$PATH:/usr/sbin:/sbin
say() { echo "build.sh: $*" >&2; }

missing() {
  local pair
  for pair in $COMMANDS; do command -v "${pair%%:*}" > /dev/null || echo "${pair#*:}"; done
}
install_packages() {
  command -v apt-get > /dev/null || { say "no apt-get here; the Debian packages are: $1"; exit 3; }
  say "installing $1"
  apt-get update -qq >&2
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $1 >&2
}
LACKING=$(missing | xargs)
if [ -n "$LACKING" ] && [ "${1:-}" = --install ] && [ "$(id -u)" = 0 ]; then
  install_packages "$LACKING"
  LACKING=$(missing | xargs)
fi
[ -z "$LACKING" ] || { say "missing. apt-get install --no-install-recommends $LACKING"; exit 3; }

DEST=$CACHE/$(cat "$HERE/build.sh" "$HERE/guest/init" | sha256sum | cut -c1-16)
if [ -f "$DEST/initramfs" ]; then echo "$DEST"; exit 0; fi
[ "${POWER_BUILD:-1}" = 0 ] && { say 'the kernel is not fetched yet'; exit 4; }
command -v apt-get > /dev/null || { say "no apt-get here, which fetches $KERNEL"; exit 3; }
mkdir -p "$CACHE"
exec 9> "$CACHE/lock"; flock 9        # two runs at once: the second waits and finds the result
if [ -f "$DEST/initramfs" ]; then echo "$DEST"; exit 0; fi
TMP=$(mktemp -d "$CACHE/tmp.XXXXXX"); trap 'rm -rf "$TMP"' EXIT

say "fetching $KERNEL"
# The package of that name holds nothing: it depends on the kernel of the day.
fetch() {
  PACKAGE=$(apt-cache depends "$KERNEL" 2> /dev/null | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p')
  [ -n "$PACKAGE" ] && (cd "$TMP" && apt-get -qq -o APT::Sandbox::User=root download "$PACKAGE" >&2)
}
# Lists that are old, or not there, name packages that are gone.
fetch || { [ "$(id -u)" = 0 ] && apt-get update -qq >&2 && fetch; } || { say "$KERNEL cannot be fetched"; exit 1; }
dpkg-deb -x "$TMP"/linux-image-*.deb "$TMP/kernel"

ROOT=$TMP/root
mkdir -p "$ROOT"/{bin,dev,disk,modules,proc,sys}
cp "$(command -v busybox)" "$ROOT/bin/busybox"
cp "$HERE/guest/init" "$ROOT/init"
chmod 755 "$ROOT/init"
for MODULE in $(sed -n 's/^MODULES="\(.*\)"$/\1/p' "$HERE/guest/init"); do
  FILE=$(find "$TMP/kernel" -name "$MODULE.ko*" | head -1)
  case $FILE in
    *.ko) cp "$FILE" "$ROOT/modules/" ;;
    *.ko.xz) xz -dc "$FILE" > "$ROOT/modules/$MODULE.ko" ;;
    *) say "$PACKAGE has no $MODULE"; exit 1 ;;
  esac
done
mkdir -p "$DEST"
cp "$TMP"/kernel/boot/vmlinuz-* "$DEST/vmlinuz"
echo "$PACKAGE" > "$DEST/package"
(cd "$ROOT" && find . | cpio --quiet -o -H newc | gzip -1) > "$DEST/initramfs.new"
mv "$DEST/initramfs.new" "$DEST/initramfs"
echo "$DEST"
