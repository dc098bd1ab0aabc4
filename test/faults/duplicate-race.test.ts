/**
 * A message id that comes again while the batch of its first item is acknowledged (fault matrix, row 4): a duplicate or
 * a new item, never lost, and what was told to be a duplicate is never sent.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import type { SentItem } from './history.ts'
import { committing } from './strikes.ts'
import { Trial } from './trial.ts'

const SEED = 29
const ROUNDS = 48
const AT_ONCE = 8
const SENDERS = 2

describe(`a message id that races the record of its delivery (seed ${SEED})`, function () {
  this.timeout(120_000)
  let trial: Trial

  before(async () => {
    trial = await Trial.open({ label: 'duplicate-race', seed: SEED, servers: 'own' })
    await trial.createBuffer('racing', {
      batch: { maxItems: 1, idleTimeoutMs: 100, maxWaitFromFirstMs: 100 },
    })
  })
  after(() => trial?.close())

  /** The same id over and over until one is new again: the record of the first one's delivery lies in between. */
  async function race(round: number): Promise<SentItem[]> {
    const duplicate = { bufferId: 'racing', groupKey: `slow-${round}`, messageId: `id-${round}` }
    const sent = [(await trial.sender.send(duplicate))!]
    let over = false
    const repeat = async () => {
      while (!over) {
        const item = (await trial.sender.send(duplicate))!
        sent.push(item)
        over ||= item.answer?.duplicate === false
      }
    }
    await Promise.all(Array.from({ length: SENDERS }, repeat))
    return sent
  }

  it('is a duplicate or new, each as it was told', async () => {
    const told: SentItem[] = []
    for (let round = 0; round < ROUNDS; round += AT_ONCE) {
      const rounds = Array.from({ length: AT_ONCE }, (_, index) => race(round + index))
      told.push(...(await Promise.all(rounds)).flat())
    }
    const counted = (duplicate: boolean) =>
      told.filter(({ answer }) => answer?.duplicate === duplicate).length
    expect(told.every(({ answer }) => answer?.status === 202)).to.equal(true)
    expect(counted(true), 'duplicates').to.be.above(0)
    expect(counted(false), 'first ones and new ones').to.be.at.least(2 * ROUNDS)
    await trial.drain()
    const arrived = trial.history.deliveries.flatMap(({ items }) => items.map(({ n }) => n))
    expect(new Set(arrived).size, 'each once').to.equal(arrived.length)
    const sentAs = (n: number) => told.find((item) => item.n === n)
    expect(arrived.filter((n) => sentAs(n)?.answer?.duplicate !== false)).to.deep.equal([])
    // Whose verdict is late is told without it: not all that were told new need go out, but one of each id.
    expect(new Set(arrived.map((n) => sentAs(n)?.messageId))).to.deep.equal(
      new Set(told.map(({ messageId }) => messageId)),
    )
  })

  for (const when of ['before', 'after'] as const) {
    it(`and a kill ${when} that record is stored: either, never lost`, async () => {
      const duplicate = { bufferId: 'racing', groupKey: `ok-killed-${when}`, messageId: 'once' }
      const racing: Promise<SentItem | undefined>[] = []
      // The owner waits for its record meanwhile, and reads the duplicates.
      const meanwhile = async () => {
        for (let i = 0; i < 4; i++) racing.push(trial.sender.send(duplicate))
        await trial.sender.send({ bufferId: 'racing', groupKey: `ok-beside-${when}` })
      }
      await trial.killAt(when, committing('done'), () => trial.sender.send(duplicate), meanwhile)
      await Promise.all(racing)
      await trial.start()
      const later = await trial.sender.send(duplicate)
      expect(later?.answer?.status).to.equal(202)
      await trial.drain()
    })
  }

  it('and the whole history holds', () => trial.judge())
})
