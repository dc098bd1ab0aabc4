/** When ingresses are told that an item is new: never while a drop on its way is what makes it so. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { decodeAnswer, decodeVerdict, encodeAsk } from '../../../internal/domain/verdict.ts'
import { Duplicates, PackVerdict } from '../../../internal/shard/held/duplicates.ts'
import type { LiveItem, LiveItems } from '../../../internal/shard/held/live.ts'
import type { Committed, Journal } from '../../../internal/shard/journal/journal.ts'
import type { Position } from '../../../internal/shard/journal/records.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'

/** Items with one message id, in one group. */
function itemAt(seq: number): LiveItem {
  return { seq, index: 0, itemId: `item ${seq}`, messageId: 'm', group: { id: 'g' } } as unknown as LiveItem
}

/** The duplicates of a shard that has read these items, with what it writes and says. */
function duplicatesWith(...items: LiveItem[]) {
  const said: Uint8Array[] = []
  const written: Committed[] = []
  const say = (_subject: string, bytes: Uint8Array) => said.push(bytes)
  const live = { get: ({ seq }: Position) => items.find((item) => item.seq === seq) }
  const duplicates = new Duplicates({
    broker: { publish: say, tell: say },
    journal: {
      write: (_record: unknown, committed: Committed) => written.push(committed),
    } as unknown as Journal,
    state: emptyState(),
    live: live as unknown as LiveItems,
    onDropped: () => {},
  })
  /** The oldest record that was written is committed. */
  const commit = () => written.shift()!(1, true, Buffer.alloc(0))
  return { duplicates, said, commit }
}

describe('the duplicates of a shard', () => {
  /** The second item was dropped for the first one, which is over now; the third is new if that drop is committed. */
  function thirdOfThree() {
    const [first, third] = [itemAt(1), itemAt(3)]
    const all = duplicatesWith(first, third)
    all.duplicates.add(first)
    all.duplicates.drop({ seq: 2, index: 0, itemId: 'item 2' }, first, null)
    all.duplicates.remove(first)
    all.duplicates.add(third)
    return all
  }

  it('keep the verdict on what is new until older drops are committed', () => {
    const { duplicates, said, commit } = thirdOfThree()
    duplicates.settle(new PackVerdict('pack', 'verdicts'))
    expect(said).to.deep.equal([])
    commit()
    expect(said.map(decodeVerdict)).to.deep.equal([{ packId: 'pack', duplicates: [] }])
  })

  it('answer a question for it only then, too', () => {
    const { duplicates, said, commit } = thirdOfThree()
    const ask = encodeAsk({ kind: 'position', id: 7, seq: 3, items: [{ index: 0, itemId: 'item 3' }] })
    duplicates.answer(ask, 'answers', 4)
    expect(said).to.deep.equal([])
    commit()
    expect(said.map(decodeAnswer)).to.deep.equal([{ kind: 'position', id: 7, fates: [{ kind: 'new' }] }])
  })

  it('keep no verdict for drops that were read after it', () => {
    const { duplicates, said } = duplicatesWith()
    const original = itemAt(1)
    duplicates.add(original)
    duplicates.settle(new PackVerdict('pack', 'verdicts'))
    duplicates.drop({ seq: 2, index: 0, itemId: 'item 2' }, original, null)
    expect(said).to.have.length(1)
  })
})
