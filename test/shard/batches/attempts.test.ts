/** What an owner makes of the result of an attempt that ran at the last one. */
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
  const sealed = { group, batch: { version: 7, attempt: 1 }, serializer }
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
