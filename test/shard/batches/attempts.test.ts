/** What an owner makes of the result of an attempt, here or at the last owner. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Attempts, type AttemptsOptions } from '../../../internal/shard/batches/attempts.ts'
import { SERIALIZER } from '../../../internal/shard/batches/body.ts'
import type { SealedBatch } from '../../../internal/shard/batches/delivery-scheduler.ts'
import type { AttemptResult } from '../../../internal/shard/ports.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

const DELIVERED: AttemptResult = {
  delivered: true,
  retryable: false,
  statusCode: 200,
  errorClass: null,
  error: null,
  durationMs: 5,
  responseBody: null,
}
const REFUSED: AttemptResult = { ...DELIVERED, delivered: false, statusCode: 400, error: 'refused' }

/** What comes of `result` for a batch that was sealed with `serializer`. */
async function outcomeOf(result: AttemptResult | null, serializer: number): Promise<string[]> {
  const outcomes: string[] = []
  const options = {
    clock: new ManualClock(),
    remoteAttempts: { result: async () => result },
    mayAct: () => true,
  }
  const attempts = new Attempts(options as unknown as AttemptsOptions, {
    ended: (_, { statusCode }) => outcomes.push(`ended ${statusCode}`),
    withdrawn: (_, pauseMs) => outcomes.push(`withdrawn ${pauseMs}`),
    unbuildable: async () => {},
  })
  const group = { id: 'g', machine: { policy: { state: 'active' } } }
  const sealed = { group, batch: { version: 7, attempt: 1 }, seal: { serializer } }
  await attempts.awaitRemote(sealed as unknown as SealedBatch)
  return outcomes
}

describe('the result of an attempt at the last owner', () => {
  it('counts as that of an attempt here', async () => {
    expect(await outcomeOf(DELIVERED, SERIALIZER)).to.deep.equal(['ended 200'])
    expect(await outcomeOf(REFUSED, SERIALIZER)).to.deep.equal(['ended 400'])
  })

  it('leads to an attempt here at once when it did not come, or says that nothing was sent', async () => {
    expect(await outcomeOf(null, SERIALIZER)).to.deep.equal(['withdrawn 0'])
    expect(await outcomeOf({ ...REFUSED, unsent: true }, SERIALIZER)).to.deep.equal(['withdrawn 0'])
  })

  it('counts of a batch that only a newer version can build when it was delivered, and not when it failed', async () => {
    expect(await outcomeOf(DELIVERED, SERIALIZER + 1)).to.deep.equal(['ended 200'])
    expect(await outcomeOf(REFUSED, SERIALIZER + 1)).to.deep.equal(['withdrawn 0'])
  })
})

describe('an attempt of which nothing was sent', () => {
  const UNSENT: AttemptResult = { ...REFUSED, statusCode: 0, unsent: true }
  const MOST_MS = 6_400

  /** What comes of these results, one attempt after the other. null: the batch was not to be sent any more. */
  async function outcomesOf(results: readonly (AttemptResult | null)[]): Promise<string[]> {
    const outcomes: string[] = []
    const left = [...results]
    const options = {
      clock: new ManualClock(),
      scheduler: { attempt: async () => left.shift() ?? null },
      mayAct: () => true,
    }
    const attempts = new Attempts(options as unknown as AttemptsOptions, {
      ended: (_, { statusCode }) => outcomes.push(`ended ${statusCode}`),
      withdrawn: (_, pauseMs) => outcomes.push(`withdrawn ${pauseMs}`),
      unbuildable: async () => {},
    })
    const group = { id: 'g', machine: { policy: { state: 'active' } } }
    const sealed = { group, batch: { version: 7, attempt: 1 }, seal: { serializer: SERIALIZER } }
    for (let n = 0; n < results.length; n++) await attempts.begin(sealed as unknown as SealedBatch)
    return outcomes
  }

  it('is tried again after a pause that doubles up to some seconds', async () => {
    const pauses = (await outcomesOf(new Array(8).fill(UNSENT))).map((outcome) =>
      Number(outcome.split(' ')[1]),
    )
    expect(pauses).to.deep.equal([200, 400, 800, 1_600, 3_200, MOST_MS, MOST_MS, MOST_MS])
  })

  it('comes no later after there is room than it has waited for it, and 200 ms', async () => {
    const pauses = (await outcomesOf(new Array(8).fill(UNSENT))).map((outcome) =>
      Number(outcome.split(' ')[1]),
    )
    let waited = 0
    for (const pause of pauses) {
      expect(pause).to.be.at.most(waited + 200)
      waited += pause
    }
  })

  it('begins with the shortest pause again once something was sent, or was not to be', async () => {
    expect(await outcomesOf([UNSENT, UNSENT, DELIVERED, UNSENT])).to.deep.equal([
      'withdrawn 200',
      'withdrawn 400',
      'ended 200',
      'withdrawn 200',
    ])
    expect(await outcomesOf([UNSENT, UNSENT, null, UNSENT])).to.deep.equal([
      'withdrawn 200',
      'withdrawn 400',
      'withdrawn 200',
      'withdrawn 200',
    ])
  })
})

describe('attempts of an owner that lets go', () => {
  const NOW = 1_000

  /** One attempt waits for its turn, another one has begun. */
  function twoAttempts() {
    const { promise: over, resolve: end } = Promise.withResolvers<AttemptResult>()
    let begins: (() => void) | undefined
    const options = {
      clock: new ManualClock(),
      scheduler: {
        attempt: (_: SealedBatch, _wanted: () => boolean, onBegin: () => void) => {
          begins = onBegin
          return over
        },
      },
      mayAct: () => true,
    }
    const nothing = () => {}
    const attempts = new Attempts(options as unknown as AttemptsOptions, {
      ended: nothing,
      withdrawn: nothing,
      unbuildable: async () => {},
    })
    const group = { id: 'g', machine: { policy: { state: 'active' } } }
    const sealed = (version: number) =>
      ({ group, batch: { version, attempt: 1 }, seal: { serializer: SERIALIZER } }) as unknown as SealedBatch
    void attempts.begin(sealed(7))
    const running = attempts.begin(sealed(8))
    begins?.()
    return { attempts, running, end }
  }

  it('are in flight once their request is sent, until their result is there', async () => {
    const { attempts, running, end } = twoAttempts()
    attempts.drain()
    const versions = () => attempts.inFlight(NOW, 'here').map(({ version }) => version)
    expect([versions(), attempts.count]).to.deep.equal([[8], 1])
    end(DELIVERED)
    await running
    expect([versions(), attempts.count]).to.deep.equal([[], 0])
  })
})

describe('an attempt that fails after its request was sent', () => {
  it('is not in flight any more', async () => {
    const options = {
      scheduler: {
        attempt: async (_: SealedBatch, _wanted: () => boolean, onBegin: () => void) => {
          onBegin()
          throw new Error('no answer can be read')
        },
      },
      mayAct: () => true,
    }
    const told: unknown[] = []
    const attempts = new Attempts(options as unknown as AttemptsOptions, {
      ended: () => {},
      withdrawn: () => {},
      unbuildable: async (_, error) => void told.push((error as Error).message),
    })
    const group = { id: 'g', machine: { policy: { state: 'active' } } }
    const sealed = { group, batch: { version: 7, attempt: 1 }, seal: { serializer: SERIALIZER } }
    await attempts.begin(sealed as unknown as SealedBatch)
    expect([told, attempts.count]).to.deep.equal([['no answer can be read'], 0])
  })
})

describe('an attempt here', () => {
  async function outcomeIn(ofGroup: string, ofBuffer: string): Promise<string[]> {
    const outcomes: string[] = []
    const options = {
      clock: new ManualClock(),
      scheduler: {
        attempt: async (_: SealedBatch, mayBegin: () => boolean) => (mayBegin() ? DELIVERED : null),
      },
      mayAct: () => true,
    }
    const attempts = new Attempts(options as unknown as AttemptsOptions, {
      ended: (_, { statusCode }) => outcomes.push(`ended ${statusCode}`),
      withdrawn: (_, pauseMs) => outcomes.push(`withdrawn ${pauseMs}`),
      unbuildable: async () => {},
    })
    const group = {
      id: 'g',
      machine: { policy: { state: ofGroup } },
      buffer: { policy: { state: ofBuffer } },
    }
    await attempts.begin({ group, batch: { version: 7, attempt: 1 } } as unknown as SealedBatch)
    return outcomes
  }

  it('does not begin once its buffer is disabled, though its group was not told yet', async () => {
    expect(await outcomeIn('active', 'active')).to.deep.equal(['ended 200'])
    expect(await outcomeIn('active', 'held')).to.deep.equal(['withdrawn 200'])
    expect(await outcomeIn('held', 'active')).to.deep.equal(['withdrawn 200'])
  })
})
