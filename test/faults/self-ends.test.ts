import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Fault } from './history.ts'
import { checkSelfEnds, type SelfEnd } from './self-ends.ts'

const LEDGER = 'the ledger of this node was closed by another node'
const fault = (kind: string): Fault => ({ kind, from: 1_000, to: 20_000 })
const ending = (more: Partial<SelfEnd> = {}): SelfEnd => ({
  name: 'ingress-1',
  at: 21_000,
  starting: false,
  why: LEDGER,
  ...more,
})
const breaches = (end: SelfEnd, ...faults: Fault[]) =>
  checkSelfEnds([end], faults, ['nats']).map(({ rule }) => rule)

describe('a node that ends by itself', () => {
  it('is a breach without a fault, and under a fault with any other last word', () => {
    expect(breaches(ending())).to.deep.equal(['self-end'])
    expect(breaches(ending({ why: 'read ECONNRESET' }), fault('freeze ingress-1'))).to.deep.equal([
      'self-end',
    ])
  })

  it('may lose its ledger when it was silent itself, or the broker was, until soon afterwards', () => {
    for (const kind of ['freeze ingress-1', 'nats-down ingress-1', 'freeze nats'])
      expect(breaches(ending(), fault(kind)), kind).to.deep.equal([])
    for (const kind of ['freeze ingress-2', 'nats-reset ingress-1', 'kill ingress-1'])
      expect(breaches(ending(), fault(kind)), kind).to.deep.equal(['self-end'])
    expect(breaches(ending({ at: 31_000 }), fault('freeze ingress-1'))).to.deep.equal(['self-end'])
  })

  it('may fail to start without broker or database, never by a programming error', () => {
    const start = ending({ starting: true, why: 'no NATS server at 127.0.0.1:1' })
    expect(breaches(start, fault('kill nats'))).to.deep.equal([])
    expect(breaches(start, fault('postgres-away'))).to.deep.equal([])
    expect(breaches(start, fault('destination-reset -'))).to.deep.equal(['self-end'])
    const broken = {
      ...start,
      why: "the start failed: TypeError: Cannot read properties of null (reading 'write')",
    }
    expect(breaches(broken, fault('kill nats'))).to.deep.equal(['self-end'])
  })
})
