/**
 * A closed loop of writers. Each owns its groups and sends to them one request after the other, so that the
 * order of a group's requests is known. Explicit ids, duplicates, retries under the same id, all sizes.
 */
import { setTimeout as delay } from 'node:timers/promises'

import type { SentItem } from './history.ts'
import type { Sender } from './webhooks.ts'

export interface LoadOptions {
  readonly sender: Sender
  readonly random: () => number
  readonly writers: number
  /** Mean pause of a writer between two requests, ms. */
  readonly pauseMs: number
  /** Those of its buffers that there are: `good` and `rejecting` at least, see `load-buffers.ts`. */
  readonly buffers: readonly string[]
  /** Whether some destinations take seconds; what is buffered for them takes its time to drain. */
  readonly patient?: boolean
  /** The buffer was disabled by its dead letters: its owner enables it again. */
  readonly onDisabled: (bufferId: string) => Promise<void>
}

interface Group {
  readonly bufferId: string
  readonly groupKey: string
  lastId: string | null
}

/** One writer's groups, each with its buffer; see `Destination` for what their names do. */
const GROUPS: readonly (readonly [kind: string, bufferId: string])[] = [
  ['ok', 'good'],
  ['ok', 'good'],
  ['ok', 'good'],
  ['slow', 'good'],
  ['flaky', 'good'],
  ['reject', 'rejecting'],
  ['ok', 'rejecting'],
  ['ok', 'tight'],
  ['flaky', 'tight'],
  ['ok', 'switched'],
  ['flaky', 'switched'],
]
/** Disabled on purpose now and then: nobody enables it but who disabled it. */
const SWITCHED = 'switched'

export class Load {
  readonly #options: LoadOptions
  readonly #writing: Promise<void>[] = []
  #stopped = false
  #next = 0
  /** Requests answered 202. */
  accepted = 0
  /** Requests answered 503. */
  unavailable = 0

  constructor(options: LoadOptions) {
    this.#options = options
  }

  start(): void {
    for (let writer = 0; writer < this.#options.writers; writer++) this.#writing.push(this.#write(writer))
  }

  /** Resolves when every request has its answer. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#writing)
  }

  async #write(writer: number): Promise<void> {
    const { random, pauseMs, patient, buffers } = this.#options
    const kinds = patient ? [...GROUPS, ['patient', 'good'] as const] : GROUPS
    const groups: Group[] = kinds
      .filter(([, bufferId]) => buffers.includes(bufferId))
      .map(([kind, bufferId], index) => ({
        bufferId,
        groupKey: `${kind}-${writer}-${index}`,
        lastId: null,
      }))
    while (!this.#stopped) {
      const group = groups[Math.floor(random() * groups.length)]!
      await this.#send(group, this.#chooseId(group))
      await delay(random() * 2 * pauseMs)
    }
  }

  /** A third of the requests have an id; some of them that of the group's last one. */
  #chooseId(group: Group): string | null {
    const { random } = this.#options
    if (random() > 0.35) return null
    if (group.lastId === null || random() > 0.4) group.lastId = `m-${this.#next++}`
    return group.lastId
  }

  /** Until there is an answer that settles it, as a sender does that must not lose its webhook. */
  async #send(group: Group, messageId: string | null): Promise<void> {
    const { sender, random, onDisabled } = this.#options
    const bytes = sizeOf(random())
    for (let tries = 0; tries < 8 && !this.#stopped; tries++) {
      const item = await sender.send({ ...group, messageId, bytes })
      if (item) this.#count(item)
      if (item?.answer?.status === 400) {
        if (group.bufferId === SWITCHED) return
        await onDisabled(group.bufferId)
      }
      if (item?.answer?.status === 202) return
      await delay(20 + random() * 80)
    }
  }

  #count({ answer }: SentItem): void {
    if (answer?.status === 202) this.accepted++
    if (answer?.status === 503) this.unavailable++
  }
}

/** Bytes of filling: mostly small, some of a few KB, few of up to 60 KB. */
function sizeOf(fraction: number): number {
  if (fraction < 0.8) return Math.floor(fraction * 250)
  if (fraction < 0.97) return Math.floor((fraction - 0.8) * 40_000)
  return Math.floor((fraction - 0.97) * 2_000_000)
}
