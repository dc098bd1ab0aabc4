/**
 * What a fault run observed from outside: every request and its answer, every delivery and what it was
 * answered, what buffers were told to do, the dead letters and the accounts at the end, and when something was
 * broken. Times are Unix ms of this machine.
 */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BufferChange } from './terms.ts'

/** One ingest request. `n` is its own number in the payload, ascending in the order of the sends of a group. */
export interface SentItem {
  readonly n: number
  readonly bufferId: string
  readonly groupKey: string
  /** The explicit message id, null when none was sent. */
  readonly messageId: string | null
  /** Of the exact bytes of the request's body. */
  readonly payloadHash: string
  readonly payloadBytes: number
  readonly credits: number
  readonly sentAt: number
  /** Name of the node that it was sent to; absent: there is only one, or nobody knows. */
  readonly via?: string
  /** null: the connection broke or timed out; stored or not, nobody knows. */
  answer: { at: number; status: number; itemId?: string; duplicate?: boolean } | null
}

/** An item inside a delivered or dead batch. */
export interface BatchItem {
  readonly n: number
  readonly messageId: string
  readonly receivedAt: number
  /** Of the exact bytes between the item's `"payload":` and its end. */
  readonly payloadHash: string
  readonly payloadBytes: number
}

/** `svc` of a body, but for buffer and group key. */
export interface Origin {
  readonly customerId: string
  readonly projectId: string
  readonly groupHash: string
  readonly segment: number
}

/** `window` of a body. */
export interface Window {
  readonly firstItemAt: number
  readonly lastActivityAt: number
  readonly itemsCount: number
}

export interface Batch {
  /** Value of the idempotency header. */
  readonly key: string
  readonly bufferId: string
  readonly groupKey: string
  readonly origin: Origin
  readonly window: Window
  readonly bodyHash: string
  /** Members of the body that it should not have, or has not. */
  readonly strange: readonly string[]
  readonly items: readonly BatchItem[]
}

/** One attempt as the destination saw it, in the order of arrival. */
export interface Delivery extends Batch {
  /** Name of the header that held the key, in lower case; null: none of those that the buffer ever named. */
  readonly keyHeader: string | null
  /** null: no header that the buffer ever named for it was there. */
  readonly signature: Signature | null
  readonly at: number
  /** What the destination answered, and when; it may be that nobody was there to read it. 0: nothing. */
  readonly status: number
  readonly answeredAt: number
  /** When its connection was closed without another request on it; null: not yet, or there was one. */
  readonly closedAt: number | null
}

/** What stood in a signature header, judged over the raw body as it arrived. */
export interface Signature {
  /** In lower case. */
  readonly header: string
  /** The secret of the buffer, of now or of before, with which it is right; null: with none. */
  readonly secret: string | null
}

export interface DeadLetter extends Batch {
  /** When its owner began to store it. */
  readonly createdAt: number
}

/** Something was broken from `from` to `to`. The last word of `kind` is the node, the broker, or `-`. */
export interface Fault {
  readonly kind: string
  readonly from: number
  to: number
  /** It holds deliveries back, in their sender or in the network, and lets go of them at that time. */
  heldUntil?: number
}

/** The machine, or this process, stood still by itself: no fault of the run, but whatever it delays is late. */
export interface Stall {
  readonly from: number
  readonly to: number
}

/** One commit of a journal, as stored. */
export interface StoredCommit {
  readonly shard: number
  readonly seq: number
  /** The broker's time. */
  readonly at: number
  readonly boot: string
  /** 0 in a claim. */
  readonly epoch: number
  readonly records: readonly string[]
  /** Idempotency keys of the batches that it says are over: delivered, or dead. */
  readonly settled: readonly string[]
}

/** This node said that it owns the shard under this epoch: the sequence of its claim in the journal. */
export interface Claim {
  readonly shard: number
  readonly epoch: number
  readonly node: string
}

export interface Accounts {
  /** Credits given to the customer, and what is left at the end. */
  readonly granted: number
  readonly left: number
  /** What was booked for each buffer, less what was credited back to it. */
  readonly booked: Readonly<Record<string, number>>
  /** Credited back to the customer when ledgers of dead nodes were closed; that names no buffer. */
  readonly refunded: number
}

export interface History {
  readonly sent: SentItem[]
  readonly deliveries: Delivery[]
  readonly faults: Fault[]
  readonly stalls: Stall[]
  /** What every buffer of the run was told, in the order of asking. */
  readonly changes: BufferChange[]
  dead: DeadLetter[]
  commits: StoredCommit[]
  /** Empty: nobody knows which node had which shard. */
  claims: Claim[]
  /** null: not looked at. */
  credits: Accounts | null
  /** Items that the service still holds at the end. */
  buffered: number
  /** Of the installation. */
  readonly shards: number
  shape: Shape
}

/** What takes requests and runs shards: one process, several of one `npm start`, or the nodes of a cluster. */
export type Shape = 'one process' | 'several processes' | 'cluster'

export function newHistory({ shards, shape }: Pick<History, 'shards' | 'shape'>): History {
  return {
    sent: [],
    deliveries: [],
    faults: [],
    stalls: [],
    changes: [],
    dead: [],
    commits: [],
    claims: [],
    credits: null,
    buffered: 0,
    shards,
    shape,
  }
}

/** 96 bits are enough to tell bodies apart. */
export function hashOf(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 16)
}

/** Says where the history of a failed run is kept, and how the run is repeated. */
export class KeptFailure extends Error {
  override readonly name = 'KeptFailure'
}

/** Keeps it for whoever looks into a failed run. */
export function keepFailure(
  run: { label: string; seed: number },
  history: History,
  problems: readonly { rule: string; detail: unknown }[],
  output: string,
): KeptFailure {
  const { label, seed } = run
  const file = join(tmpdir(), `penstock-faults-${label}-${seed}.json`)
  writeFileSync(file, JSON.stringify({ seed, problems, output: output.split('\n'), ...history }))
  const shown = problems.slice(0, 5).map((problem) => JSON.stringify(problem).slice(0, 600))
  return new KeptFailure(`seed ${seed}, history in ${file}: ${problems.length} breaches\n${shown.join('\n')}`)
}
