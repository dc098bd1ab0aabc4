/** The nodes that a cluster on this machine has, and where each listens. Pure. */
import type { Config } from '../config/config.ts'

export interface Place {
  readonly name: string
  readonly role: 'admin' | 'ingress' | 'actor'
  /** 0: any free one; undefined: none. */
  readonly port: number | undefined
  readonly opsPort: number
}

const NODES: readonly Pick<Place, 'name' | 'role'>[] = [
  // First: it makes the streams and the owner key while nobody else does.
  { name: 'admin', role: 'admin' },
  { name: 'ingress-1', role: 'ingress' },
  { name: 'ingress-2', role: 'ingress' },
  { name: 'actor-1', role: 'actor' },
  { name: 'actor-2', role: 'actor' },
  { name: 'actor-3', role: 'actor' },
]

/** At first: two an actor, for one that owns nothing shows nothing. */
export const FIRST_SHARDS = 6

/** In the order of their start. Ports follow each other from the configured ones on, unless those are 0. */
export function placesOf({ port, opsPort }: Pick<Config, 'port' | 'opsPort'>): Place[] {
  const following = (first: number, index: number) => (first === 0 ? 0 : first + index)
  return NODES.map((node, index) => ({
    ...node,
    port: node.role === 'actor' ? undefined : following(port, index),
    opsPort: following(opsPort, index),
  }))
}
