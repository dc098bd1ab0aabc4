#!/bin/sh
# What the image runs: the program that its first argument names. In place of this shell, so that signals arrive.
set -eu
role=${1-penstock}
case $role in
ingress | admin | actor | operator | migrate | penstock | account | shards | repair | payments | export) ;;
*)
  echo "$role: is none of ingress, admin, actor, operator, migrate, penstock, account, shards, repair, payments, export" >&2
  exit 1
  ;;
esac
[ $# -eq 0 ] || shift
flags=
# It holds little and lives long: memory that it needed for a moment goes back to the system (bench/operator-secrets.ts).
if [ "$role" = operator ]; then
  export MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072 MALLOC_MMAP_THRESHOLD_=131072
  export NODE_OPTIONS="--max-semi-space-size=2 ${NODE_OPTIONS:-}"
  # This one Node takes only here.
  flags=--optimize-for-size
fi
exec node $flags "$(dirname "$0")/$role/main.ts" "$@"
