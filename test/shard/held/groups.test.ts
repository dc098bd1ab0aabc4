import { setImmediate } from 'node:timers/promises'
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
    expect(told.length, 'at once').to.be.within(1, 500)
    groups.retire(groups.get('g4999')!)
    while (clock.pending > 0) clock.advance(0)
    expect(told).to.deep.equal(ids.slice(1, -1))
    groups.close()
  })

  it('hold their buffers while one of them is open', () => {
    let holds: (uid: string) => boolean = () => false
    const groups = new Groups({
      policies: {
        peek: () => undefined,
        load: () => new Promise(() => {}),
        onChange(_, holdsBuffer) {
          holds = holdsBuffer
          return () => {}
        },
      },
      clock: new ManualClock(),
      onProblem: () => {},
    })
    const [one, two] = [groups.open('one', 'u', false), groups.open('two', 'u', false)]
    expect([holds('u'), holds('v')]).to.deep.equal([true, false])
    groups.retire(one)
    expect(holds('u')).to.equal(true)
    groups.retire(two)
    expect(holds('u')).to.equal(false)
    groups.close()
  })

  describe('whose buffer changes', () => {
    /** More than are told at once. */
    const GROUPS = 3_500

    /** `many` open groups of a known buffer, and a few of another one. Groups are told the policies of their buffers. */
    function openGroups(many: number) {
      const clock = new ManualClock()
      const told: { id: string; idleTimeoutMs: number }[] = []
      let announce: (record: BufferRecord) => void = () => {}
      const groups = new Groups({
        policies: {
          peek: (uid) => recordOf(uid, 1, {}),
          load: () => new Promise(() => {}),
          onChange(listener) {
            announce = listener
            return () => {}
          },
        },
        clock,
        onProblem: () => {},
      })
      groups.follow(({ id, buffer }) => told.push({ id, idleTimeoutMs: buffer.policy.idleTimeoutMs }))
      for (let n = 0; n < many; n++) groups.open(`g${n}`, 'u', false)
      for (let n = 0; n < 3; n++) groups.open(`other${n}`, 'other', false)
      let version = 1
      const change = (more: Parameters<typeof recordOf>[2], uid = 'u') => {
        version += 1
        announce(recordOf(uid, version, more))
      }
      /** As much time as `ms`, with all that is due in it. */
      const pass = (ms: number) => {
        for (let passed = 0; passed < ms; passed++) clock.advance(1)
      }
      return { clock, groups, told, change, pass }
    }

    function recordOf(
      uid: string,
      version: number,
      { idleTimeoutMs = 5_000, name = 'x', enabled = true, url = 'https://a.example' },
    ): BufferRecord {
      const buffer = storedBuffer()
      Object.assign(buffer, { name, enabled })
      buffer.batch.idleTimeoutMs = idleTimeoutMs
      buffer.delivery.url = url
      return { uid, version, deleted: false, suspended: false, buffer }
    }

    it('tells them nothing of a change that is none of theirs, though the buffer takes it', () => {
      const { groups, told, change, pass } = openGroups(3)
      change({ name: 'another' })
      change({ url: 'https://b.example' })
      pass(2_000)
      expect(told).to.deep.equal([])
      expect(groups.get('g0')!.buffer.record!.buffer.delivery.url).to.equal('https://b.example')
    })

    it('tells its groups alone, and no others of the shard', () => {
      const { told, change } = openGroups(3)
      change({ idleTimeoutMs: 100 })
      expect(told.map(({ id }) => id)).to.deep.equal(['g0', 'g1', 'g2'])
    })

    it('tells each of them the last policy, and none more than a second time, however often it changes', () => {
      const { told, change, pass } = openGroups(GROUPS)
      for (let n = 1; n <= 100; n++) {
        change({ idleTimeoutMs: 100 + n })
        pass(1)
      }
      pass(3_000)
      const last = new Map(told.map(({ id, idleTimeoutMs }) => [id, idleTimeoutMs]))
      expect(last.size).to.equal(GROUPS)
      expect([...new Set(last.values())]).to.deep.equal([200])
      expect(told.length).to.equal(2 * GROUPS)
    })

    it('begins a round a second while changes go on, and each round reaches the last group', () => {
      const { told, change, pass } = openGroups(GROUPS)
      for (let n = 1; n <= 1_000; n++) {
        change({ idleTimeoutMs: 100 + n })
        pass(10)
      }
      const ofLast = told.filter(({ id }) => id === `g${GROUPS - 1}`)
      expect(ofLast.length).to.be.within(9, 10)
      expect(told.length).to.be.at.most(11 * GROUPS)
    })

    it('keeps a buffer with few groups waiting for as many ms at most', () => {
      const { told, change, pass } = openGroups(5)
      change({ idleTimeoutMs: 100 })
      change({ idleTimeoutMs: 200 })
      expect(told).to.have.length(5)
      pass(5)
      expect(told).to.have.length(10)
      expect(told.at(-1)).to.deep.equal({ id: 'g4', idleTimeoutMs: 200 })
    })

    it('lets another buffer pass one with many groups', () => {
      const { told, change, pass } = openGroups(GROUPS)
      change({ idleTimeoutMs: 100 })
      change({ idleTimeoutMs: 100 }, 'other')
      pass(2)
      expect(told.length).to.be.below(GROUPS)
      expect(told.filter(({ id }) => id.startsWith('other'))).to.have.length(3)
    })

    it('tells nobody once the shard is over', () => {
      const { groups, told, change, pass } = openGroups(GROUPS)
      change({ idleTimeoutMs: 100 })
      change({ idleTimeoutMs: 200 })
      const before = told.length
      groups.close()
      pass(3_000)
      expect(told).to.have.length(before)
    })
  })

  it('keep what the cache told while their buffer was read', async () => {
    const recordAt = (version: number): BufferRecord => ({
      uid: 'u',
      version,
      deleted: false,
      suspended: false,
      buffer: storedBuffer(),
    })
    const read = Promise.withResolvers<BufferRecord>()
    let tell = (_: BufferRecord) => {}
    const groups = new Groups({
      policies: {
        peek: () => undefined,
        load: () => read.promise,
        onChange: (listener) => {
          tell = listener
          return () => {}
        },
      },
      clock: new ManualClock(),
      onProblem: () => {},
    })
    const group = groups.open('g', 'u', false)
    tell(recordAt(2))
    read.resolve(recordAt(1))
    await setImmediate()
    expect(group.buffer.record?.version).to.equal(2)
    groups.close()
  })

  describe('that leave while their buffer keeps two flushes apart', () => {
    const DELAY_MS = 10_000

    /** Groups of a buffer that closes each batch at once. `act` returns what its input led to. */
    function delayed() {
      const buffer = storedBuffer()
      buffer.batch = { ...buffer.batch, maxItems: 1 }
      buffer.throughput = { ...buffer.throughput, minDelayBetweenFlushMs: DELAY_MS }
      const record: BufferRecord = { uid: 'u', version: 1, deleted: false, suspended: false, buffer }
      const clock = new ManualClock()
      const groups = new Groups({
        policies: { peek: () => record, load: async () => record, onChange: () => () => {} },
        clock,
        onProblem: () => {},
      })
      const act = (group: OpenGroup, input: Input<LiveItem>) => {
        const { state, effects } = step(group.machine, input)
        group.machine = state
        for (const { kind } of effects) if (kind === 'retire') groups.retire(group)
        return effects
      }
      const take = (id: string) => {
        const item = { bytes: 1, at: clock.now() } as LiveItem
        return act(groups.get(id) ?? groups.open(id, 'u', false), { kind: 'item', at: clock.now(), item })
      }
      const deliver = (id: string) => {
        const group = groups.get(id)!
        const [batch] = group.machine.batches!
        const named = { at: clock.now(), batch: batch! }
        act(group, { kind: 'sealed', version: 7, ...named })
        act(group, { kind: 'result', result: 'delivered', ...named })
        act(group, { kind: 'settled', ...named })
      }
      return { clock, groups, take, deliver }
    }

    it('are not open any more, and wait for the rest of the delay when they come back', () => {
      const { clock, groups, take, deliver } = delayed()
      expect(take('g').map(({ kind }) => kind)).to.include('seal')
      const flushedAt = clock.now()
      deliver('g')
      expect([groups.size, [...groups.buffers()].length]).to.deep.equal([0, 1])
      clock.advance(DELAY_MS / 2)
      groups.look()
      expect(take('g')).to.deep.equal([{ kind: 'wake', at: flushedAt + DELAY_MS }])
      groups.close()
    })

    it('are forgotten with their buffer when the delay is over', () => {
      const { clock, groups, take, deliver } = delayed()
      take('g')
      deliver('g')
      clock.advance(DELAY_MS)
      groups.look()
      expect([...groups.buffers()]).to.deep.equal([])
      expect(take('g').map(({ kind }) => kind)).to.include('seal')
      groups.close()
    })
  })
})
