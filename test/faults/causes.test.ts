import { expect } from 'chai'
import { describe, it } from 'mocha'
import { hindersStops } from './causes.ts'

describe('causes', () => {
  it('excuse a stop that is not complete by a broker that does not answer, and by nothing else', () => {
    const excused = (kind: string) => hindersStops({ kind, from: 0, to: 1 })
    expect(['freeze nats', 'kill nats', 'freeze nats-2'].map(excused)).to.deep.equal([true, true, true])
    const others = [
      'freeze actor-1',
      'kill ingress-1',
      'nats-down actor-2',
      'postgres-down actor-1',
      'destination-reset -',
    ]
    expect(others.map(excused)).to.deep.equal([false, false, false, false, false])
  })
})
