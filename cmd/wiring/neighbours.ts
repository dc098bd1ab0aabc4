/**
 * Whether a node may run beside those that do. Two that cut groups into shards in different ways would deliver
 * without order; one that cannot build a running node's batches could not take them over under their key.
 *
 * Of serializers (docs/architecture/protocol.md, "Batch bodies"): a version builds again what any version before it
 * built, so a node joins those of lower ones, as in a rolling upgrade, and is refused beside a higher one. Not by the
 * order of program versions, which says nothing about bodies.
 */

import { SERIALIZER } from '../../internal/shard/batches/body.ts'
import type { Lease } from '../../internal/shard/ownership/membership.ts'
import { ConfigError } from '../config/config.ts'

/** A running node seals batches that this version cannot build again; the message is one line. */
export class NewerNeighbourError extends Error {
  override readonly name = 'NewerNeighbourError'
}

/** Throws ConfigError for another number of shards, and NewerNeighbourError; what cannot be read says nothing. */
export function checkNeighbours(leases: readonly Lease[], shards: number): void {
  // 0: a lease that this version cannot read.
  const readable = leases.filter(({ installation }) => installation.shards !== 0)
  const other = readable.find(({ installation }) => installation.shards !== shards)
  if (other !== undefined) {
    throw new ConfigError(
      `PENSTOCK_SHARDS: this node has ${shards}, ${nameOf(other)} has ${other.installation.shards}`,
    )
  }
  const newer = readable.find(({ installation }) => installation.serializer > SERIALIZER)
  if (newer !== undefined) {
    throw new NewerNeighbourError(
      `${nameOf(newer)} runs version ${newer.version}, which builds batches by serializer ${newer.installation.serializer}: this version knows them up to ${SERIALIZER}`,
    )
  }
}

function nameOf({ node, role }: Lease): string {
  return `${node} (${role})`
}
