#!/bin/sh
# What the image runs: the program that its first argument names. In place of this shell, so that signals arrive.
set -eu
role=${1-penstock}
case $role in
ingress | admin | actor | operator | migrate | penstock | account | shards | repair | payments) ;;
*)
  echo "$role: is none of ingress, admin, actor, operator, migrate, penstock, account, shards, repair, payments" >&2
  exit 1
  ;;
esac
[ $# -eq 0 ] || shift
exec node "$(dirname "$0")/$role/main.ts" "$@"
