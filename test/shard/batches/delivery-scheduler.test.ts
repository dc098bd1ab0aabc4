/** What an attempt holds in memory that finds no room at its destination (docs/architecture/protocol.md, "Attempts"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  DeliveryScheduler,
  type DeliverySchedulerOptions,
  type SealedBatch,
  UNSENT,
} from '../../../internal/shard/batches/delivery-scheduler.ts'
import type { AttemptRequest, AttemptResult } from '../../../internal/shard/ports.ts'

const DELIVERED: AttemptResult = { ...UNSENT, delivered: true, retryable: false, unsent: false }

/** A scheduler whose destination has room or not. What it does is noted. */
function newScheduler() {
  const onTurn = ({ proceed }: AttemptRequest): boolean => proceed()
  const destination = { room: true, result: DELIVERED, asked: 0, built: 0, onTurn }
  const options: Partial<DeliverySchedulerOptions> = {
    deliverer: {
      hasRoom: (record, bytes) => {
        expect([record.uid, bytes]).to.deep.equal(['u', 7])
        return destination.room
      },
      attempt: async (request) => {
        destination.asked++
        return destination.onTurn(request) ? destination.result : UNSENT
      },
    },
    payloads: {
      with: async () => {
        destination.built++
        throw new Error('built')
      },
    } as unknown as DeliverySchedulerOptions['payloads'],
    limits: { attemptsPerBuffer: 1, payloadBudget: 4_000 } as DeliverySchedulerOptions['limits'],
  }
  return { destination, scheduler: new DeliveryScheduler(options as DeliverySchedulerOptions) }
}

function newBatch(): SealedBatch {
  const group = { id: 'g', buffer: { uid: 'u', record: { uid: 'u', buffer: {} } } }
  const batch = { version: 1, bytes: 7, items: [], segment: 0 }
  return { group, batch, seal: { serializer: 1 }, body: Buffer.from('{}') } as unknown as SealedBatch
}

describe('an attempt that waits at its destination', () => {
  /** The buffer of the batch is `meanwhile` when its turn comes. */
  async function attempted(meanwhile: object, isWanted = true) {
    const { destination, scheduler } = newScheduler()
    const sealed = newBatch()
    let asked: object | undefined
    destination.onTurn = ({ record, proceed }) => {
      Object.assign(sealed.group.buffer, { record: { uid: 'u', buffer: {}, ...meanwhile } })
      wanted = isWanted
      asked = record()
      return proceed()
    }
    let wanted = true
    let begun = 0
    await scheduler.attempt(
      sealed,
      () => wanted,
      () => begun++,
    )
    return { asked, begun }
  }

  it('reads the buffer when its turn comes, and says that it begins', async () => {
    const { asked, begun } = await attempted({ version: 2 })
    expect([asked, begun]).to.deep.equal([{ uid: 'u', buffer: {}, version: 2 }, 1])
  })

  it('does not begin when it is not wanted any more, or its buffer cannot be delivered', async () => {
    expect((await attempted({}, false)).begun).to.equal(0)
    expect((await attempted({ unreadable: { delivery: true } })).begun).to.equal(0)
    expect((await attempted({ removed: true })).begun).to.equal(0)
  })
})

describe('an attempt that finds no room at its destination', () => {
  it('gives its body back, and one that was sent keeps it for its dead letter', async () => {
    const { destination, scheduler } = newScheduler()
    const sealed = newBatch()
    expect(await scheduler.attempt(sealed, () => true)).to.include({ delivered: true })
    expect(sealed.body).not.to.equal(null)
    destination.result = UNSENT
    expect(await scheduler.attempt(sealed, () => true)).to.include({ unsent: true })
    expect(sealed.body).to.equal(null)
  })

  it('is not built again before there is some', async () => {
    const { destination, scheduler } = newScheduler()
    const sealed = newBatch()
    sealed.body = null
    destination.room = false
    expect(await scheduler.attempt(sealed, () => true)).to.include({ unsent: true })
    expect([destination.asked, destination.built]).to.deep.equal([0, 0])
    destination.room = true
    const error = await scheduler.attempt(sealed, () => true).catch((thrown: Error) => thrown.message)
    expect([error, destination.built]).to.deep.equal(['built', 1])
  })

  it('gives its turn to the next one of its buffer', async () => {
    const { destination, scheduler } = newScheduler()
    destination.room = false
    const waiting = [newBatch(), newBatch(), newBatch()]
    for (const sealed of waiting) sealed.body = null
    const results = await Promise.all(waiting.map((sealed) => scheduler.attempt(sealed, () => true)))
    expect(results.map((result) => result?.unsent)).to.deep.equal([true, true, true])
  })
})
