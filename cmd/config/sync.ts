/** `PENSTOCK_SYNC`: when the broker writes to disk what it has acknowledged. */
import { accept, type Parsed, refuse } from '../../internal/domain/parsed.ts'

export const SYNC = 'always or an interval such as 10s, at most 1h'
/** Of nats-server where its `sync_interval` is not set. */
export const NATS_SYNC = '2m'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }
const LONGEST_MS = 3_600_000
/** For the sync itself, and whatever holds it up, ms. */
const GRACE_MS = 5_000
/**
 * Linux writes to disk what is older than 30 s, every 5 s. NATS leaves some to it unless it syncs each message: the settings
 * of a new stream, and what a server that was killed had not synced. Ms.
 */
const KERNEL_MS = 45_000

/** As nats-server reads it, too. */
export function parseSync(text: string): Parsed<string> {
  const ms = intervalMs(text)
  return ms === undefined || ms > LONGEST_MS ? refuse(`must be ${SYNC}`) : accept(text)
}

/** The broker has on disk what it acknowledged so long ago, ms. `sync` as `parseSync` accepts it. */
export function syncLagMs(sync: string): number {
  const ms = intervalMs(sync)
  if (ms === undefined) throw new Error(`${sync} is not ${SYNC}`)
  return ms === 0 ? 0 : Math.max(ms + GRACE_MS, KERNEL_MS)
}

/** 0: at each message. */
function intervalMs(text: string): number | undefined {
  if (text === 'always') return 0
  const [, count, unit] = /^([1-9]\d{0,6})(ms|s|m|h)$/.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * UNITS[unit]!
}
