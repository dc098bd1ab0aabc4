import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { BufferRecord } from '../../../internal/domain/model.ts'
import { step } from '../../../internal/group/machine.ts'
import { createGroup } from '../../../internal/group/state.ts'
import { BufferState } from '../../../internal/shard/held/buffer-state.ts'
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
    return { uid: 'u', version: 1, deleted: false, buffer }
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
})
