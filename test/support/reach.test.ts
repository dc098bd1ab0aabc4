import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { testsWithoutPrograms } from './reach.ts'

describe('the fast tests', () => {
  const fast = new Set(testsWithoutPrograms(join(import.meta.dirname, '..', '..')))

  it('have all of the pure parts', () => {
    const pure = [
      ...['test/group/walks.test.ts', 'test/domain/pack.test.ts', 'test/shard/journal/fold.test.ts'],
      ...['test/shard/simulation.test.ts', 'test/operator/reconcile/decide.test.ts'],
    ]
    for (const path of pure) expect(fast.has(path), path).to.equal(true)
    expect(fast.size).to.be.above(80)
  })

  it('have nothing that starts a server or a program, however far away', () => {
    const slow = [
      ...['test/nats/streams.test.ts', 'test/postgres/ledger.test.ts', 'test/e2e/retries.test.ts'],
      ...[
        'test/faults/crash.test.ts',
        'test/operator/reconcile/lifecycle.test.ts',
        'test/cmd/account.test.ts',
      ],
    ]
    for (const path of slow) expect(fast.has(path), path).to.equal(false)
  })
})
