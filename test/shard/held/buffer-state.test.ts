import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { BufferRecord } from '../../../internal/domain/model.ts'
import { step } from '../../../internal/group/machine.ts'
import { createGroup } from '../../../internal/group/state.ts'
import { BufferState, groupPolicy } from '../../../internal/shard/held/buffer-state.ts'
import { storedBuffer } from '../../domain/sample-buffer.ts'

describe('a buffer of a shard', () => {
  const NEXT_AT = 50_000

  /** A batch of the last owner whose next attempt is due at NEXT_AT, in a group of `buffer`. */
  function restoredIn(buffer: BufferState) {
    const group = createGroup(buffer.heldPolicy, 0)
    const batch = { version: 7, attempt: 2, nextAttemptAt: NEXT_AT, segment: 0 }
    return step(group, { kind: 'restored', at: 10, items: [{ bytes: 1, at: 0 }], ...batch }).state
  }

  function recordWith(backoff: { initialMs: number; maxMs: number; multiplier: number }): BufferRecord {
    const buffer = storedBuffer()
    buffer.throughput.backoff = backoff
    return { uid: 'u', version: 1, deleted: false, suspended: false, buffer }
  }

  it('keeps the time of a restored batch until its record is known, and then too', () => {
    const buffer = new BufferState('u')
    const group = restoredIn(buffer)
    buffer.update(recordWith({ initialMs: 60_000, maxMs: 60_000, multiplier: 1 }))
    const { effects } = step(group, { kind: 'policy', at: 20, policy: buffer.policy })
    expect(effects).to.deep.equal([{ kind: 'wake', at: NEXT_AT }])
  })

  it('lets the delay of its record bound that time once it is known', () => {
    const buffer = new BufferState('u')
    const group = restoredIn(buffer)
    buffer.update(recordWith({ initialMs: 1_000, maxMs: 1_000, multiplier: 1 }))
    const { effects } = step(group, { kind: 'policy', at: 20, policy: buffer.policy })
    expect(effects).to.deep.equal([{ kind: 'wake', at: 1_020 }])
  })

  it('takes a record of an older version: its cache decides which one holds', () => {
    const buffer = new BufferState('u')
    const record = recordWith({ initialMs: 1, maxMs: 1, multiplier: 1 })
    buffer.update({ ...record, version: 7 })
    const disabled = { ...record.buffer, enabled: false }
    expect(buffer.update({ ...record, version: 3, buffer: disabled })).to.equal(true)
    expect([buffer.record?.version, buffer.policy.state]).to.deep.equal([3, 'held'])
  })

  const states = [
    ['active', { enabled: true }],
    ['held', { enabled: false }],
    ['active', { enabled: true, deleted: true }],
    ['discarding', { enabled: false, deleted: true }],
    ['held', { enabled: true, suspended: true }],
    ['held', { enabled: true, deleted: true, suspended: true }],
    ['held', { enabled: false, deleted: true, suspended: true }],
    ['held', { enabled: true, unreadable: { source: false, delivery: true, why: '' } }],
    ['held', { enabled: true, deleted: true, unreadable: { source: false, delivery: true, why: '' } }],
    ['discarding', { enabled: false, deleted: true, unreadable: { source: false, delivery: true, why: '' } }],
    ['active', { enabled: true, unreadable: { source: true, delivery: false, why: '' } }],
  ] as const
  for (const [state, given] of states) {
    it(`is ${state} when it is ${JSON.stringify(given)}`, () => {
      const { enabled, ...more } = given
      const record = recordWith({ initialMs: 1, maxMs: 1, multiplier: 1 })
      record.buffer.enabled = enabled
      expect(groupPolicy({ ...record, ...more }).state).to.equal(state)
    })
  }
})
