import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { BufferRecord } from '../../../internal/domain/model.ts'
import { step } from '../../../internal/group/machine.ts'
import type { Batch, Effect, Input } from '../../../internal/group/model.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { Groups } from '../../../internal/shard/held/groups.ts'
import type { LiveItem, OpenGroup } from '../../../internal/shard/held/live.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { storedBuffer } from '../../domain/sample-buffer.ts'
import { eventually } from '../../support/eventually.ts'

describe('open groups of a shard', () => {
  it('divides what came before its buffer was known into the segments that the buffer asks for', async () => {
    const buffer = { ...storedBuffer(), enabled: true }
    buffer.overflow = { ...buffer.overflow, maxGroupItems: 2 }
    buffer.batch = { ...buffer.batch, maxItems: 50 }
    const record: BufferRecord = { uid: 'u', version: 1, deleted: false, suspended: false, buffer }
    const read = Promise.withResolvers<BufferRecord>()
    const effects: Effect<LiveItem>[] = []
    const take = (group: OpenGroup, input: Input<LiveItem>) => {
      const result = step(group.machine, input)
      group.machine = result.state
      effects.push(...result.effects)
    }
    const clock = systemClock()
    let known = false
    const groups = new Groups({
      policies: { peek: () => undefined, load: () => read.promise, onChange: () => () => {} },
      clock,
      onProblem: () => {},
    })
    groups.follow((told) => {
      known = true
      take(told, { kind: 'policy', at: clock.now(), policy: told.buffer.policy })
    })
    const group = groups.open('g', 'u', false)
    const item = (seq: number) => ({ seq, bytes: 10, at: clock.now() }) as LiveItem
    for (let seq = 1; seq <= 5; seq++) take(group, { kind: 'item', at: clock.now(), item: item(seq) })
    expect(effects).to.deep.equal([])
    read.resolve(record)
    await eventually(() => known)
    const seals = effects.filter(
      (effect): effect is { kind: 'seal'; batch: Batch<LiveItem> } => effect.kind === 'seal',
    )
    expect(
      seals.map(({ batch }) => [batch.segment, batch.reason, batch.items.map(({ seq }) => seq)]),
    ).to.deep.equal([[0, 'segment', [1, 2]]])
    groups.close()
  })

  it('tells them that the replay is over in slices, so that others get their turns in between', () => {
    const clock = new ManualClock()
    const told: string[] = []
    const groups = new Groups({
      policies: { peek: () => undefined, load: () => new Promise(() => {}), onChange: () => () => {} },
      clock,
      onProblem: () => {},
    })
    groups.follow(({ id }) => told.push(id))
    const ids = Array.from({ length: 5_000 }, (_, n) => `g${n}`)
    for (const id of ids) groups.open(id, 'u', true)
    groups.get('g0')!.restoring = 1
    groups.release()
    expect(told.length, 'at once').to.be.within(1, 1_000)
    groups.retire(groups.get('g4999')!)
    while (clock.pending > 0) clock.advance(0)
    expect(told).to.deep.equal(ids.slice(1, -1))
    groups.close()
  })
})
