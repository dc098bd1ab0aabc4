/** What a power cut may hit: rows of the table in test/faults/README.md. */
import type { Cache } from './disk.ts'

export interface PowerKind {
  /** What it shows. */
  readonly title: string
  readonly server: 'nats' | 'postgres'
  /** Servers that lose their power, together. */
  readonly inside: number
  /** Servers of the same cluster that keep it. */
  readonly beside: number
  /** Of NATS: `always`, or the interval between two syncs. */
  readonly sync: string
  /** The same interval, ms: so old may be what a cut takes. 0: it takes nothing that was acknowledged. */
  readonly losesMs: number
  /** Snapshots come after a few KB of journal, and the power goes at one, or behind a cut of a journal (`moments.ts`). */
  readonly archives: boolean
  readonly cache: Cache
}

const NATS = { server: 'nats', inside: 1, beside: 0, sync: 'always', losesMs: 0, archives: false } as const

const WITHOUT_CACHE = {
  always: { ...NATS, title: 'one NATS, sync `always`: nothing is lost, and nothing goes under two keys' },
  interval: {
    ...NATS,
    sync: '5s',
    losesMs: 5_000,
    title: 'one NATS, sync 5 s: the loss is noticed, a repair brings the shards back, no key has two bodies',
  },
  archive: {
    ...NATS,
    sync: '5s',
    losesMs: 5_000,
    archives: true,
    title:
      'one NATS, sync 5 s, cut at a snapshot or behind a cut of a journal: the loss is noticed, a repair brings the shards back, no key has two bodies',
  },
  'one-of-three': {
    ...NATS,
    beside: 2,
    sync: '2m',
    title: 'three NATS, sync 2 min, one of them cut, also as the leader: nothing is lost',
  },
  three: {
    ...NATS,
    inside: 3,
    title: 'three NATS, sync `always`, all cut at once: nothing is lost',
  },
  postgres: {
    ...NATS,
    server: 'postgres',
    title: 'Postgres with its defaults: credits by the rule, and no dead letter is lost',
  },
} as const satisfies Record<string, Omit<PowerKind, 'cache'>>

/** By name; `-torn`: what the disk had not flushed is torn, too. */
export const POWER_KINDS: Readonly<Record<string, PowerKind>> = Object.fromEntries(
  Object.entries(WITHOUT_CACHE).flatMap(([name, kind]): [string, PowerKind][] => [
    [name, { ...kind, cache: 'whole' }],
    [`${name}-torn`, { ...kind, cache: 'torn', title: `${kind.title}; unflushed writes torn` }],
  ]),
)
