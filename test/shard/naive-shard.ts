/** The fold, written without any thought for speed or memory: one flat list of items and of batches. */
import { expect } from 'chai'
import type { JournalRecord, Position } from '../../internal/shard/journal/records.ts'
import { type FoldState, isOver } from '../../internal/shard/journal/state.ts'

interface NaiveBatch {
  groupId: string
  version: number
  attempt: number
  items: string[]
}

const nameOf = ({ seq, index }: Position): string => `${seq}/${index}`

export class NaiveShard {
  horizon = 0
  readonly over = new Set<string>()
  readonly kept = new Set<string>()
  batches: NaiveBatch[] = []
  seenUpTo = 0
  readonly seen: [writer: string, number: number][] = []

  #isOver(position: Position): boolean {
    const name = nameOf(position)
    return !this.kept.has(name) && (position.seq < this.horizon || this.over.has(name))
  }

  #isSealed(position: Position): boolean {
    return this.batches.some(({ items }) => items.includes(nameOf(position)))
  }

  #end(name: string): void {
    this.over.add(name)
    this.kept.delete(name)
  }

  #take(groupId: string, version: number): NaiveBatch | undefined {
    const found = this.batches.find((batch) => batch.groupId === groupId && batch.version === version)
    this.batches = this.batches.filter((batch) => batch !== found)
    return found
  }

  /** Whether the record took effect. */
  apply(record: JournalRecord, seq: number): boolean {
    switch (record.type) {
      case 'seal': {
        const isNew = !this.batches.some(
          ({ groupId, version }) => groupId === record.groupId && version === seq,
        )
        const free = record.positions.every(
          (position) => !this.#isOver(position) && !this.#isSealed(position),
        )
        if (isNew && free) {
          this.batches.push({
            groupId: record.groupId,
            version: seq,
            attempt: 1,
            items: record.positions.map(nameOf),
          })
        }
        return isNew && free
      }
      case 'unseal':
        return this.#take(record.groupId, record.version) !== undefined
      case 'done':
      case 'dead':
        return this.#settle(record.groupId, record.version)
      case 'attempt': {
        const batch = this.batches.find(
          ({ groupId, version }) => groupId === record.groupId && version === record.version,
        )
        const grows = batch !== undefined && record.attempt > batch.attempt
        if (grows) batch.attempt = record.attempt
        return grows
      }
      case 'drop':
        return this.#discard([record.position])
      case 'discard':
        return record.batch
          ? this.#settle(record.batch.groupId, record.batch.version)
          : this.#discard(record.positions)
      case 'keep': {
        const live = record.items.filter(({ position }) => !this.#isOver(position))
        for (const { position } of live) this.kept.add(nameOf(position))
        return live.length > 0
      }
      case 'horizon': {
        const grows = record.seq > this.horizon
        if (grows) this.horizon = record.seq
        return grows
      }
      case 'seen': {
        const grows = record.upTo > this.seenUpTo
        if (grows) this.seenUpTo = record.upTo
        for (const { writer, number } of grows ? record.writers : []) this.seen.push([writer, number])
        return grows
      }
      default:
        return true
    }
  }

  #settle(groupId: string, version: number): boolean {
    const batch = this.#take(groupId, version)
    for (const name of batch?.items ?? []) this.#end(name)
    return batch !== undefined
  }

  #discard(positions: readonly Position[]): boolean {
    const ended = positions.filter((position) => !this.#isOver(position) && !this.#isSealed(position))
    for (const position of ended) this.#end(nameOf(position))
    return ended.length > 0
  }

  expectSame(state: FoldState): void {
    const batches = [...state.batches.values()].map(({ groupId, version, attempt, seal }) => {
      return { groupId, version, attempt, items: seal.positions.map(nameOf) }
    })
    expect(batches).to.deep.equal(this.batches)
    expect(state.horizon).to.equal(this.horizon)
    expect([...state.kept.sorted()].map(([position]) => nameOf(position)).sort()).to.deep.equal(
      [...this.kept].sort(),
    )
    const { upTo, writers } = state.seen.record()
    expect(upTo).to.equal(this.seenUpTo)
    for (const [writer] of this.seen) {
      const numbers = this.seen.flatMap(([of, number]) => (of === writer ? [number] : []))
      expect(writers).to.deep.include({ writer, number: Math.max(...numbers) })
    }
    for (const name of this.over) {
      const [seq, index] = name.split('/').map(Number)
      expect(isOver(state, { seq: seq!, index: index! }), `${name} is over`).to.equal(true)
    }
  }
}
