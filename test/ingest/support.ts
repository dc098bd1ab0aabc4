import { randomBytes, randomUUID } from 'node:crypto'
import type {
  Messages,
  NewItem,
  PackAppendAnswer,
  PackLog,
  PackTelemetry,
} from '../../internal/ingest/ports.ts'
import type { Randomness } from '../../internal/runtime/clock.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

export function newItem(changes: Partial<NewItem> = {}): NewItem {
  const itemId = randomUUID()
  return {
    itemId,
    bufferUid: '0d5f2c9e-6f0a-4a53-9f0e-0d4b7a0f1c11',
    groupKey: 'order-1',
    messageId: itemId,
    explicit: false,
    credits: 1,
    receivedAt: 1_790_000_000_000,
    payload: Buffer.from('{"n":1}'),
    ...changes,
  }
}

export const randomness: Randomness = { bytes: (size) => randomBytes(size), fraction: () => 0.5 }

export const noTelemetry: PackTelemetry = { batch: () => {} }

/** Lets whatever is ready run. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Time in small steps, with everything that becomes ready run in between. */
export class SteppedClock extends ManualClock {
  async pass(ms: number, stepMs = 25): Promise<void> {
    await settled()
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.advance(Math.min(stepMs, ms - passed))
      await settled()
    }
  }
}

/** Core messages within one process, delivered at once. */
export class LocalMessages implements Messages {
  readonly sent: { subject: string; data: Uint8Array; reply: string | undefined }[] = []
  readonly #handlers = new Map<string, (data: Uint8Array) => void>()

  publish(subject: string, data: Uint8Array, reply?: string): void {
    this.sent.push({ subject, data, reply })
    this.#handlers.get(subject)?.(data)
  }

  subscribe(subject: string, handler: (data: Uint8Array) => void): () => void {
    this.#handlers.set(subject, handler)
    return () => this.#handlers.delete(subject)
  }
}

export interface Attempt {
  data: Uint8Array
  subject: string
  msgId: string
  timeoutMs: number
  answer: (answer: PackAppendAnswer) => void
}

/** An inbox whose broker answers when the test says so. */
export class HeldLog implements PackLog {
  readonly attempts: Attempt[] = []
  seq = 100

  append(
    data: Uint8Array,
    options: { subject: string; msgId: string; timeoutMs: number },
  ): Promise<PackAppendAnswer> {
    return new Promise((answer) => this.attempts.push({ data, ...options, answer }))
  }

  get latest(): Attempt {
    const attempt = this.attempts.at(-1)
    if (attempt === undefined) throw new Error('nothing was sent')
    return attempt
  }

  store(attempt: Attempt = this.latest): void {
    attempt.answer({ kind: 'stored', seq: this.seq++, duplicate: false })
  }
}
