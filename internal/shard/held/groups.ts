/** The shard's open groups and the buffers they belong to, with their current configuration. */

import type { BufferRecord } from '../../domain/model.ts'
import { createGroup, delayEndsAt } from '../../group/state.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { ShardEvents, ShardOptions } from '../options.ts'
import { BufferState } from './buffer-state.ts'
import { LastFlushes } from './last-flushes.ts'
import type { OpenGroup } from './live.ts'
import { type OpenBuffer, Telling } from './telling.ts'

const LOAD_RETRY_MS = 500

type GroupsOptions = Pick<ShardOptions, 'policies' | 'clock'> & Pick<ShardEvents, 'onProblem'>

export class Groups {
  readonly #options: GroupsOptions
  readonly #open = new Map<string, OpenGroup>()
  readonly #buffers = new Map<string, OpenBuffer>()
  readonly #flushes: LastFlushes
  readonly #telling: Telling
  readonly #unsubscribe: () => void
  #onPolicy: (group: OpenGroup) => void = () => {}
  #closed = false
  #paused = false

  constructor(options: GroupsOptions) {
    this.#options = options
    this.#flushes = new LastFlushes(options.clock.now())
    this.#telling = new Telling(options.clock, (group) => this.#onPolicy(group))
    this.#unsubscribe = options.policies.onChange(
      (record) => this.#changed(record),
      (uid) => this.#buffers.has(uid),
    )
  }

  /** From now on `onPolicy` is called for each group whose policy is another one now. */
  follow(onPolicy: (group: OpenGroup) => void): void {
    this.#onPolicy = onPolicy
  }

  /** Nothing is sealed or sent: this node may have been replaced. */
  get paused(): boolean {
    return this.#paused
  }

  /** Every group is told; they differ from what they do now only in being held. */
  pause(paused: boolean): void {
    if (this.#paused === paused) return
    this.#paused = paused
    this.tellAll()
  }

  /** Every group follows its buffer anew, at the present time. */
  tellAll(): void {
    this.#telling.each(this, this.#open.values())
  }

  /** The replay is over: whoever was held for it goes on, but for those whose batches are still to be restored. */
  release(): void {
    const ready = this.#open.values().filter((group) => group.restoring === 0)
    this.#telling.each(this, ready)
  }

  get size(): number {
    return this.#open.size
  }

  buffers(): Iterable<BufferState> {
    return this.#buffers.values().map(({ state }) => state)
  }

  get(id: string): OpenGroup | undefined {
    return this.#open.get(id)
  }

  /** The group; a new one is opened as held when `held`, and whoever follows is told of a change of its buffer. */
  open(id: string, bufferUid: string, held: boolean): OpenGroup {
    const known = this.#open.get(id)
    if (known) return known
    const { state: buffer, groups } = this.#buffer(bufferUid)
    const now = this.#options.clock.now()
    const policy = held || this.#paused ? buffer.heldPolicy : buffer.policy
    const flushedAt = this.#flushes.take(buffer, id, now)
    const group: OpenGroup = {
      id,
      buffer,
      machine: createGroup(policy, now, flushedAt),
      wakeAt: Number.POSITIVE_INFINITY,
      wakeIndex: -1,
      restoring: 0,
    }
    this.#open.set(id, group)
    groups.add(group)
    return group
  }

  /** It holds nothing. Of its last flush the time is kept while it holds the next one back. */
  retire(group: OpenGroup): void {
    const { id, buffer, machine } = group
    if (this.#open.get(id) !== group) return
    this.#open.delete(id)
    this.#buffers.get(buffer.uid)?.groups.delete(group)
    const { lastSealAt } = machine
    if (lastSealAt !== undefined && delayEndsAt(machine) > this.#options.clock.now())
      this.#flushes.remember(buffer, id, lastSealAt)
    this.#forgetIfUnused(buffer)
  }

  /** To be called about once a second. */
  look(): void {
    for (const buffer of this.#flushes.forgetOver(this.#options.clock.now())) this.#forgetIfUnused(buffer)
  }

  close(): void {
    this.#closed = true
    this.#telling.close()
    this.#unsubscribe()
  }

  #forgetIfUnused(buffer: BufferState): void {
    const isUsed = this.#flushes.has(buffer) || this.#buffers.get(buffer.uid)?.groups.size !== 0
    if (!isUsed) this.#buffers.delete(buffer.uid)
  }

  #buffer(uid: string): OpenBuffer {
    const known = this.#buffers.get(uid)
    if (known) return known
    const state = new BufferState(uid)
    const buffer: OpenBuffer = { state, groups: new Set(), restsUntil: 0 }
    this.#buffers.set(uid, buffer)
    const record = this.#options.policies.peek(uid)
    if (record) state.update(record)
    else void this.#load(buffer)
    return buffer
  }

  /** Until the record is known the buffer's groups are held. */
  async #load(buffer: OpenBuffer): Promise<void> {
    const { state } = buffer
    while (!this.#closed && !state.record && this.#buffers.get(state.uid) === buffer) {
      try {
        const record = await this.#options.policies.load(state.uid)
        // What the cache told meanwhile is newer than what was read.
        if (state.record) return
        if (record) return this.#changed(record)
        this.#options.onProblem(
          'items of a buffer that does not exist are held',
          new Error(`buffer ${state.uid}`),
        )
      } catch (error) {
        this.#options.onProblem('the configuration of a buffer cannot be read', error)
      }
      await sleep(this.#options.clock, LOAD_RETRY_MS)
    }
  }

  #changed(record: BufferRecord): void {
    const buffer = this.#buffers.get(record.uid)
    if (buffer?.state.update(record)) this.#telling.groupsOf(buffer)
  }
}
