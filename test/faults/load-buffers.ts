/**
 * The buffers of a load: ordinary ones, one with small limits and names of its own for headers, and one that is
 * disabled and enabled while the load goes on.
 */
import { setTimeout as delay } from 'node:timers/promises'

import type { BufferFields } from '../support/api.ts'
import { type Buffers, signedWith } from './buffers.ts'
import { within } from './trial.ts'

/** So long at a time, ms. */
const ENABLED_MS = 5_000
const DISABLED_MS = 8_000
const BEFORE_REPETITION_MS = 200
const LAST_MS = 10_000

/** `good`: where most groups go. `rejecting`: where groups go whose destination refuses, and good ones beside them. */
const FIELDS: Readonly<Record<string, Omit<Partial<BufferFields>, 'delivery'>>> = {
  good: {},
  rejecting: {},
  // Three items have more bytes than that more often than not, and its back-off is longer than a busy machine is slow.
  tight: {
    batch: { maxItems: 3, maxBytes: 500, idleTimeoutMs: 1_500, maxWaitFromFirstMs: 3_000 },
    overflow: { maxGroupItems: 5, maxGroupBytes: 8_000 },
    throughput: { maxAttempts: 4, backoff: { initialMs: 600, maxMs: 2_000, multiplier: 3 } },
  },
  // What it held when it was disabled would be due well within that time.
  switched: { batch: { maxItems: 20, idleTimeoutMs: 6_000, maxWaitFromFirstMs: 7_000 } },
}

interface Buffered {
  readonly buffers: Buffers
}

export async function createLoadBuffers({ buffers }: Buffered): Promise<void> {
  for (const [bufferId, fields] of Object.entries(FIELDS)) await buffers.create(bufferId, fields)
  const signing = { ...signedWith('secret of tight'), header: 'X-Signed' }
  await buffers.patch('tight', { delivery: { idempotencyHeader: 'X-Batch', signing } })
}

/** Disables and enables `switched`, with other secrets each time, for as long as `work` goes on; enabled at last. */
export async function whileSwitching<T>({ buffers }: Buffered, work: () => Promise<T>): Promise<T> {
  const over = new AbortController()
  const switching = switchUntil(buffers, over.signal)
  try {
    return await work()
  } finally {
    over.abort()
    // A service that is gone answers nothing, and whoever drains enables the buffer again.
    await within(switching, LAST_MS, 'the buffer is not enabled').catch(() => {})
  }
}

async function switchUntil(buffers: Buffers, over: AbortSignal): Promise<void> {
  for (let round = 1; ; round++) {
    await sleep(ENABLED_MS, over)
    if (over.aborted) return
    await insist(() => buffers.patch('switched', { enabled: false }), over)
    // Who signs with this one knows that the other buffer is disabled.
    const sign = { secret: `secret ${round} of tight` }
    await insist(() => buffers.patch('tight', { delivery: { signing: sign } }), over)
    await sleep(DISABLED_MS, over)
    const signing = { secret: `secret ${round} of switched` }
    await insist(() => buffers.patch('switched', { enabled: true, delivery: { signing } }), over)
  }
}

/** The service may be down: until somebody says that it is done, or it is over. */
async function insist(work: () => Promise<void>, over: AbortSignal): Promise<void> {
  for (;;) {
    const done = await work().then(
      () => true,
      () => false,
    )
    if (done || over.aborted) return
    await delay(BEFORE_REPETITION_MS)
  }
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}
