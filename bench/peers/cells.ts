/** What is compared: a cell is one load in one setting, and its name says it all. */
import type { Keys } from '../load/keys.ts'
import type { Window } from './analysis.ts'
import type { ContenderName, Sync } from './contenders.ts'

/**
 * `ingest`: as fast as answers come, and nothing is delivered meanwhile. `whole`: the same, and everything is
 * delivered. `rate`: items at a fixed rate, and everything is delivered.
 */
export type Work = 'ingest' | 'whole' | 'rate'

export interface Row {
  name: string
  contender: ContenderName
  /** Message ids by the sender. */
  explicit: boolean
}

export interface Cell {
  name: string
  work: Work
  keys: Keys
  /** Of a body, bytes. */
  size: number
  sync: Sync
  rows: Row[]
  /** Items a second. */
  rate?: number | undefined
  /** Of sending. */
  ms: number
  /** In a closed loop before the first round, ms. */
  unmeasuredMs: number
}

export const WINDOW: Window = { idleTimeoutMs: 1_000, maxWaitFromFirstMs: 2_000, maxItems: 50 }
export const CONNECTIONS = 64
/** Not measured at the beginning of each round, ms. */
export const WARM_MS = 500
export const RATE = 1_000
const SENDING_MS: Record<Work, number> = { ingest: 3_000, whole: 6_000, rate: 8_000 }
const ZIPF = 1.1
const KEYS: Record<string, number> = { '100': 100, '1k': 1_000, '10k': 10_000, '100k': 100_000 }
const SIZES: Record<string, number> = { '1kb': 1_024, '10kb': 10_240 }

/** By the work: who stands in its table. */
const ROWS: Record<Work, ContenderName[]> = {
  ingest: ['penstock', 'hand', 'asynq', 'bullmq'],
  whole: ['penstock', 'hand', 'asynq'],
  rate: ['penstock', 'hand', 'asynq'],
}
/**
 * Services that have run for a while are meant. Large bodies are fewer: what ingest has held for longer than 256 MB last
 * comes back from the broker, which is another figure.
 */
const UNMEASURED_MS: Record<string, number> = { '1kb': 15_000, '10kb': 5_000 }
/** Far behind, slow to drain, and it polls its database all the time, so it shares a cell with nobody else. */
const GRAPHILE = 'graphile'

/** Those of `npm run bench -- peers`. */
export const STANDARD = [
  'ingest-1k-uniform-1kb-default',
  'ingest-1k-uniform-1kb-always',
  'ingest-1k-uniform-10kb-default',
  'ingest-1k-uniform-10kb-always',
  'whole-1k-uniform-1kb-default',
  'whole-1k-uniform-1kb-always',
  'whole-10k-zipf-1kb-always',
  'whole-100k-uniform-1kb-default',
  `whole-100-uniform-1kb-default-${GRAPHILE}`,
  'rate-1k-uniform-1kb-default',
  'rate-10k-zipf-1kb-default',
  'rate-100k-uniform-1kb-default',
]

/**
 * `<work>-<keys>-<distribution>-<size>-<sync>`, in any combination but ingest by Zipf's law, where the hottest group would
 * be full; `-graphile` behind it: beside Graphile Worker and nobody else. undefined: no such cell.
 */
export function cellOf(name: string): Cell | undefined {
  const [work = '', keys = '', distribution = '', size = '', sync = '', beside, ...more] = name.split('-')
  const [count, bytes] = [KEYS[keys], SIZES[size]]
  if (!isWork(work) || count === undefined || bytes === undefined || more.length > 0) return undefined
  if (distribution !== 'uniform' && distribution !== 'zipf') return undefined
  if (distribution === 'zipf' && work === 'ingest') return undefined
  if (beside !== undefined && (beside !== GRAPHILE || work === 'ingest')) return undefined
  if (sync !== 'default' && sync !== 'always') return undefined
  return {
    name,
    work,
    sync,
    size: bytes,
    keys: distribution === 'zipf' ? { count, zipf: ZIPF } : { count },
    rows: rowsOf(work, beside === GRAPHILE ? ['penstock', GRAPHILE] : ROWS[work]),
    ...(work === 'rate' && { rate: RATE }),
    ms: SENDING_MS[work],
    unmeasuredMs: UNMEASURED_MS[size]!,
  }
}

function isWork(text: string): text is Work {
  return text in SENDING_MS
}

function rowsOf(work: Work, contenders: readonly ContenderName[]): Row[] {
  const rows = contenders.map((contender) => ({ name: contender, contender, explicit: true }))
  if (work !== 'ingest') return rows
  return [...rows, { name: 'penstock, random ids', contender: 'penstock', explicit: false }]
}
