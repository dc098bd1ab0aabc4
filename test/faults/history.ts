/**
 * What a fault run observed from outside: every request and its answer, every delivery and what it was
 * answered, the dead letters and the balance at the end, and when something was broken. Times are Unix ms of
 * this machine.
 */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One ingest request. `n` is its own number in the payload, ascending in the order of the sends of a group. */
export interface SentItem {
  readonly n: number
  readonly bufferId: string
  readonly groupKey: string
  /** The explicit message id, null when none was sent. */
  readonly messageId: string | null
  readonly payloadHash: string
  readonly credits: number
  readonly sentAt: number
  /** null: the connection broke or timed out; stored or not, nobody knows. */
  answer: { at: number; status: number; itemId?: string; duplicate?: boolean } | null
}

/** An item inside a delivered or dead batch. */
export interface BatchItem {
  readonly n: number
  readonly messageId: string
  readonly payloadHash: string
}

export interface Batch {
  /** Value of the idempotency header. */
  readonly key: string
  readonly bufferId: string
  readonly groupKey: string
  readonly bodyHash: string
  readonly items: readonly BatchItem[]
}

/** One attempt as the destination saw it, in the order of arrival. */
export interface Delivery extends Batch {
  readonly at: number
  /** What the destination answered, and when; it may be that nobody was there to read it. */
  readonly status: number
  readonly answeredAt: number
}

export interface DeadLetter extends Batch {
  /** When its owner began to store it. */
  readonly createdAt: number
}

/** Something was broken from `from` to `to`. */
export interface Fault {
  readonly kind: string
  readonly from: number
  to: number
  /** It holds deliveries back, in their sender or in the network, and lets go of them at that time. */
  heldUntil?: number
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

export interface History {
  readonly sent: SentItem[]
  readonly deliveries: Delivery[]
  readonly faults: Fault[]
  dead: DeadLetter[]
  commits: StoredCommit[]
  /** Credits given to the customer, and what is left at the end; null: not looked at. */
  credits: { granted: number; left: number } | null
  /** Items that the service still holds at the end. */
  buffered: number
  /** `throughput.maxAttempts` of every buffer of the run. */
  readonly maxAttempts: number
}

export function newHistory(maxAttempts: number): History {
  return {
    sent: [],
    deliveries: [],
    faults: [],
    dead: [],
    commits: [],
    credits: null,
    buffered: 0,
    maxAttempts,
  }
}

/** 96 bits are enough to tell bodies apart. */
export function hashOf(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64url').slice(0, 16)
}

/** A delivered or stored body with its idempotency key. The run's payloads are the JSON of objects with a number `n`. */
export function readBatch(key: string, body: Uint8Array): Batch {
  const { svc, items } = JSON.parse(Buffer.from(body).toString('utf8')) as {
    svc: { bufferId: string; groupKey: string }
    items: { messageId: string; payload: { n: number } }[]
  }
  return {
    key,
    bufferId: svc.bufferId,
    groupKey: svc.groupKey,
    bodyHash: hashOf(body),
    items: items.map(({ messageId, payload }) => ({
      n: payload.n,
      messageId,
      payloadHash: hashOf(JSON.stringify(payload)),
    })),
  }
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
