import { expect } from 'chai'
import { describe, it } from 'mocha'
import { SHUTDOWN_BUDGET_MS } from '../../internal/runtime/lifecycle.ts'
import { hindersStop } from './causes.ts'

describe('causes', () => {
  it('excuse a stop that took all of its time by the only broker standing still, and by nothing else', () => {
    const excused = (kind: string, tookMs = SHUTDOWN_BUDGET_MS) =>
      hindersStop({ kind, from: 0, to: 1 }, tookMs)
    expect([excused('freeze nats'), excused('freeze nats', SHUTDOWN_BUDGET_MS - 1)]).to.deep.equal([
      true,
      false,
    ])
    for (const kind of [
      'kill nats',
      'freeze nats-2',
      'freeze actor-1',
      'nats-down actor-2',
      'postgres-down actor-1',
    ])
      expect(excused(kind), kind).to.equal(false)
  })
})
