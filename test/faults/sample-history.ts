/** Small histories for the tests of the checker: one in which everything is right, and what to break it with. */
import { check } from './checker.ts'
import {
  type BatchItem,
  type DeadLetter,
  type Delivery,
  type Fault,
  type History,
  newHistory,
  type SentItem,
  type StoredCommit,
} from './history.ts'
import type { BufferChange, BufferTerms } from './terms.ts'

/** Times in these histories, ms. */
export const SENT = 1_000
export const LONG = 60_000
/** The hash of the one group `g` of the one buffer `b`; it belongs to shard 0 of one. */
export const GROUP = 'AAAAAAAAAAAAAAAAAAAAAA'
const OTHER_GROUP = 'AAAAAAAAAAAAAAAAAAAAAQ'

export const TERMS: BufferTerms = {
  customerId: 'c',
  projectId: 'p',
  enabled: true,
  maxItems: 5,
  maxBytes: 1_000,
  maxAttempts: 3,
  backoff: { initialMs: 0, maxMs: 0, multiplier: 1 },
  idempotencyHeader: 'x-idempotency-key',
  signing: { header: 'x-svc-signature', secret: 's' },
}

export function keyOf(version: number, group = GROUP): string {
  return `grp:${group}:v${version}`
}

export function sentItem(n: number, more: Partial<SentItem> = {}): SentItem {
  const sentAt = SENT + n * 10
  return {
    n,
    bufferId: 'b',
    groupKey: 'g',
    messageId: null,
    payloadHash: `p${n}`,
    payloadBytes: 100,
    credits: 1,
    sentAt,
    answer: { at: sentAt + 5, status: 202, itemId: `id-${n}` },
    ...more,
  }
}

export function batchItem(n: number, more: Partial<BatchItem> = {}): BatchItem {
  return {
    n,
    messageId: `id-${n}`,
    receivedAt: SENT + n * 10 + 1,
    payloadHash: `p${n}`,
    payloadBytes: 100,
    ...more,
  }
}

/** Of items by their numbers, or of these. */
export function delivery(
  version: number,
  given: readonly (number | BatchItem)[],
  more: Partial<Delivery> = {},
): Delivery {
  const at = SENT + 500 + version * 10
  const items = given.map((item) => (typeof item === 'number' ? batchItem(item) : item))
  const received = items.map(({ receivedAt }) => receivedAt)
  return {
    key: keyOf(version),
    bufferId: 'b',
    groupKey: 'g',
    origin: { customerId: 'c', projectId: 'p', groupHash: GROUP, segment: 0 },
    window: {
      firstItemAt: Math.min(...received),
      lastActivityAt: Math.max(...received),
      itemsCount: items.length,
    },
    bodyHash: `body-${version}`,
    strange: [],
    items,
    keyHeader: 'x-idempotency-key',
    signature: { header: 'x-svc-signature', secret: 's' },
    at,
    status: 200,
    answeredAt: (more.at ?? at) + 1,
    closedAt: null,
    ...more,
  }
}

/** A delivery of another group of the same shard. */
export function otherDelivery(version: number, ns: number[], more: Partial<Delivery> = {}): Delivery {
  const base = delivery(version, ns)
  return {
    ...base,
    key: keyOf(version, OTHER_GROUP),
    groupKey: 'h',
    origin: { ...base.origin, groupHash: OTHER_GROUP },
    ...more,
  }
}

export function deadLetter({ at, ...batch }: Delivery, createdAt = at + 100): DeadLetter {
  return { ...batch, createdAt }
}

export function changed(more: Partial<BufferTerms>, change: Partial<BufferChange> = {}): BufferChange {
  return { bufferId: 'b', terms: { ...TERMS, ...more }, askedAt: 0, answeredAt: 1, ...change }
}

export function accounts(spent: number) {
  return { granted: 100, left: 100 - spent, booked: { b: spent }, refunded: 0 }
}

/** Two batches of two items each, everything right. */
export function sound(): History {
  return {
    ...newHistory({ shards: 1, shape: 'one process' }),
    changes: [changed({})],
    sent: [1, 2, 3, 4].map((n) => sentItem(n)),
    deliveries: [delivery(10, [1, 2]), delivery(20, [3, 4])],
    credits: accounts(4),
  }
}

/** An original that is delivered, and its duplicate that was told so. */
export function duplicates(): History {
  return {
    ...sound(),
    sent: [
      sentItem(1, { messageId: 'm' }),
      sentItem(2, {
        messageId: 'm',
        answer: { at: SENT + 25, status: 202, itemId: 'id-1', duplicate: true },
      }),
    ],
    deliveries: [delivery(10, [batchItem(1, { messageId: 'm' })])],
    credits: accounts(1),
  }
}

export function kill(from: number, to = from + 10): Fault {
  return { kind: 'kill', from, to }
}

export function commit(seq: number, more: Partial<StoredCommit> = {}): StoredCommit {
  return { shard: 0, seq, at: SENT, boot: 'a', epoch: 1, records: [], settled: [], ...more }
}

/** A claim of the shard, its first commit being the claim of boot `a`, node `actor-1`. */
export function claim(seq: number, boot: string, at = SENT): StoredCommit {
  return commit(seq, { boot, at, epoch: 0, records: ['epoch'] })
}

/** The rules that a history breaks, each once. */
export function rulesOf(history: History): string[] {
  return [...new Set(check(history).map(({ rule }) => rule))]
}

/** The rules that `base` breaks after the change. */
export function broken(change: (history: History) => void, base = sound()): string[] {
  change(base)
  return rulesOf(base)
}
