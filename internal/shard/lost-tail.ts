/** The broker does not have what this shard has already seen: positions would come to mean two things. */
export class LostTailError extends Error {
  override readonly name = 'LostTailError'
}

export const WAY_OUT = 'see "A lost tail" in docs/operations/runbooks.md'

/** `what`: what is missing, and what tells so. */
export function lostMessages(shard: number, what: string): LostTailError {
  return new LostTailError(`shard ${shard}: the broker lost messages (${what}): ${WAY_OUT}`)
}
