import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { ServiceError } from '../../internal/domain/errors.ts'
import { answers, refusal } from '../../internal/ingest/answer.ts'
import { RefusedWebhooks } from '../../internal/telemetry/refused-webhooks.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { type Recorder, recorder } from './recorder.ts'

const MINUTE = 60_000

describe('refused webhooks in the log', () => {
  let clock: ManualClock
  let told: Recorder
  let refused: RefusedWebhooks

  beforeEach(() => {
    clock = new ManualClock()
    told = recorder('info')
    refused = new RefusedWebhooks(told.log, clock)
  })

  const lines = () => told.lines.map(({ bufferId, reason, count }) => [bufferId, reason, count])

  it('are told at once, and what follows once a minute and buffer and reason, with its count', () => {
    for (let n = 0; n < 500; n++) refused.add('a', answers.bufferDisabled)
    refused.add('a', answers.signatureInvalid)
    refused.add('b', answers.bufferDisabled)
    const first = [
      ['a', 'Buffer is disabled', 1],
      ['a', 'Invalid signature', 1],
      ['b', 'Buffer is disabled', 1],
    ]
    expect(lines()).to.deep.equal(first)
    clock.advance(MINUTE)
    expect(lines()).to.deep.equal([...first, ['a', 'Buffer is disabled', 499]])
    expect(told.lines[3]).to.include({ level: 'info', msg: 'webhooks refused', status: 400 })
    for (let n = 0; n < 7; n++) refused.add('b', answers.bufferDisabled)
    clock.advance(MINUTE)
    // It was quiet for a minute before, so its first was told at once.
    expect(lines().slice(4)).to.deep.equal([
      ['b', 'Buffer is disabled', 1],
      ['b', 'Buffer is disabled', 6],
    ])
  })

  it('say where a group key was looked for', () => {
    const detail = { path: '$.customer', header: 'x-tenant' }
    refused.add('a', refusal(new ServiceError('groupKeyMissing'), detail))
    expect(told.lines[0]).to.include({ ...detail, reason: 'Could not extract group key from request' })
  })

  it('are counted by their reason alone beyond a thousand, so that nobody fills memory or the log', () => {
    for (let n = 0; n < 3_000; n++) refused.add(`buffer-${n}`, answers.bufferDisabled)
    expect(told.lines).to.have.length(1_001)
    expect(lines().at(-1)).to.deep.equal([undefined, 'Buffer is disabled', 1])
    clock.advance(MINUTE)
    expect(lines().slice(1_001)).to.deep.equal([[undefined, 'Buffer is disabled', 1_999]])
    refused.add('late', answers.bufferDisabled)
    expect(lines().at(-1)).to.deep.equal(['late', 'Buffer is disabled', 1])
  })

  it('are told when the process stops, and leave no timer behind', () => {
    for (let n = 0; n < 3; n++) refused.add('a', answers.bufferDisabled)
    refused.stop()
    expect(lines()).to.deep.equal([
      ['a', 'Buffer is disabled', 1],
      ['a', 'Buffer is disabled', 2],
    ])
    clock.advance(10 * MINUTE)
    expect(told.lines).to.have.length(2)
  })
})
