/** Which dead-letter writes run at once, and when one is tried again (docs/architecture/protocol.md, "Dead letters"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Semaphore } from '../../../internal/runtime/semaphore.ts'
import {
  DeadLetterWriter,
  type DeadLetterWriterOptions,
  LARGE_WRITES_AT_ONCE,
} from '../../../internal/shard/batches/dead-letter-write.ts'
import type { SealedBatch } from '../../../internal/shard/batches/delivery-scheduler.ts'
import type { DeadBatch } from '../../../internal/shard/ports.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { eventually } from '../../support/eventually.ts'

const LARGE = 2 * 1024 * 1024
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Uploads wait until the test lets one go on. */
function openPostgres() {
  const uploading: string[] = []
  const stored: string[] = []
  const gates = new Map<string, PromiseWithResolvers<void>>()
  return {
    uploading,
    stored,
    /** Lets the upload of this group go on, or fail. */
    finish: (groupId: string, error?: Error) =>
      error ? gates.get(groupId)!.reject(error) : gates.get(groupId)!.resolve(),
    async upload(_fence: unknown, { groupId }: DeadBatch) {
      const gate = Promise.withResolvers<void>()
      gates.set(groupId, gate)
      uploading.push(groupId)
      await gate.promise.finally(() => uploading.splice(uploading.indexOf(groupId), 1))
    },
    async write(_fence: unknown, { groupId }: DeadBatch) {
      stored.push(groupId)
      return { outcome: 'stored' as const, dlqId: 'd', paused: false }
    },
  }
}

function writer(
  deadLetters: ReturnType<typeof openPostgres>,
  given: {
    largeWrites?: Semaphore
    clock?: ManualClock
    fraction?: () => number
    ended?: () => boolean
  } = {},
) {
  const { largeWrites = new Semaphore(LARGE_WRITES_AT_ONCE), clock = new ManualClock() } = given
  return new DeadLetterWriter({
    fence: { shard: 0, epoch: 1 },
    clock,
    randomness: { bytes: (size: number) => new Uint8Array(size), fraction: given.fraction ?? (() => 0.5) },
    payloads: { with: () => ({}) },
    scheduler: { bodyOf: async (sealed: SealedBatch) => (sealed.body ??= Buffer.alloc(1)) },
    deadLetters,
    projector: { flush: async () => {} },
    largeWrites,
    raised: Promise.resolve(),
    ended: given.ended ?? (() => false),
    onProblem: () => {},
  } as unknown as DeadLetterWriterOptions)
}

/** Without a body: one that was restored, or gave its body back. */
function batch(id: string, bytes: number, body: Buffer | null = Buffer.alloc(bytes)): SealedBatch {
  const group = { id, buffer: { uid: 'uid', record: { buffer: {} } } }
  return {
    group,
    batch: { version: 1, attempt: 1, items: [{ size: bytes }] },
    seal: {},
    body,
  } as unknown as SealedBatch
}

describe('the writing of dead letters', () => {
  it('lets small ones pass any number of large ones, whose turn is the node’s', async () => {
    const postgres = openPostgres()
    const largeWrites = new Semaphore(LARGE_WRITES_AT_ONCE)
    const shards = [writer(postgres, { largeWrites }), writer(postgres, { largeWrites })]
    const large = Array.from({ length: 20 }, (_, n) => batch(`large-${n}`, LARGE, n < 10 ? undefined : null))
    const writes = large.map((each, n) => shards[n % 2]!.write(each, 'max_retries_exceeded'))
    await settled()
    expect(postgres.uploading).to.deep.equal(['large-0', 'large-1'])
    // Whoever waits gives back its body.
    expect(large.filter(({ body }) => body !== null)).to.have.length(LARGE_WRITES_AT_ONCE)

    const small = shards[0]!.write(batch('small', 10), 'max_retries_exceeded')
    await eventually(() => postgres.uploading.includes('small'))
    postgres.finish('small')
    await small
    expect(postgres.stored).to.deep.equal(['small'])

    for (let n = 0; n < large.length; n++) {
      await eventually(() => postgres.uploading.includes(`large-${n}`))
      expect(postgres.uploading.length).to.be.at.most(LARGE_WRITES_AT_ONCE)
      postgres.finish(`large-${n}`)
    }
    await Promise.all(writes)
    expect(postgres.stored).to.have.length(21)
  })

  it('does nothing for one whose owner ended while it waited', async () => {
    const postgres = openPostgres()
    const largeWrites = new Semaphore(1)
    await largeWrites.acquire()
    let ended = false
    const waiting = writer(postgres, { largeWrites, ended: () => ended }).write(
      batch('late', LARGE),
      'max_retries_exceeded',
    )
    ended = true
    largeWrites.release()
    expect(await waiting).to.equal(null)
    expect([postgres.uploading, postgres.stored, largeWrites.held]).to.deep.equal([[], [], 0])
  })

  it('tries again after pauses of different lengths', async () => {
    const postgres = openPostgres()
    const clock = new ManualClock()
    const pauses = [0, 0.99]
    const fraction = () => pauses.shift()!
    const done = writer(postgres, { clock, fraction }).write(batch('a', 10), 'max_retries_exceeded')
    for (const pause of [250, 745]) {
      await eventually(() => postgres.uploading.length === 1)
      postgres.finish('a', new Error('away'))
      await eventually(() => clock.pending === 1)
      clock.advance(pause - 1)
      await settled()
      expect(postgres.uploading).to.deep.equal([])
      clock.advance(1)
    }
    await eventually(() => postgres.uploading.length === 1)
    postgres.finish('a')
    await done
    expect(postgres.stored).to.deep.equal(['a'])
  })
})
