/** The ingress cut off around the append of a pack (fault matrix, rows 1 and 2). */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { eventually } from '../support/eventually.ts'
import type { SentItem } from './history.ts'
import { packing } from './strikes.ts'
import { Trial, within } from './trial.ts'

const SEED = 11
/** Kept open by its sender: a retry finds the original buffered. */
const NEVER_DUE = { batch: { idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 } }
const DUE = { batch: { idleTimeoutMs: 100, maxWaitFromFirstMs: 100 } }

describe('an ingress cut off around the append of a pack', function () {
  this.timeout(120_000)
  let trial: Trial

  before(async () => {
    trial = await Trial.open({ label: 'packs', seed: SEED, servers: 'own' })
  })
  after(() => trial?.close())

  const deliveredTo = (bufferId: string) =>
    trial.history.deliveries
      .filter((each) => each.bufferId === bufferId)
      .map(({ items }) => items.map(({ n }) => n))

  async function flush(bufferId: string): Promise<void> {
    await trial.patchBuffer(bufferId, DUE)
    await trial.drain()
  }

  /** Killed at its pack, the sender asks again with the same id. */
  async function cutOff(when: 'before' | 'after'): Promise<{ first: SentItem; retry: SentItem }> {
    const webhook = { bufferId: `pack-${when}`, groupKey: 'ok', messageId: 'once' }
    await trial.createBuffer(webhook.bufferId, NEVER_DUE)
    const sending: { item?: Promise<SentItem | undefined> } = {}
    await trial.killAt(when, packing, () => {
      sending.item = trial.sender.send(webhook)
    })
    const first = (await sending.item)!
    expect(first.answer, 'nobody was told').to.equal(null)
    await trial.start()
    // Told without a verdict at first, it may be: the owner has just started.
    const retry = await eventually(async () => {
      const item = await trial.sender.send(webhook)
      return item?.answer?.duplicate === (when === 'after') && item
    })
    await flush(webhook.bufferId)
    return { first, retry }
  }

  it('killed before the broker has it: nothing is stored, and the retry is new', async () => {
    const { retry } = await cutOff('before')
    expect(retry.answer).to.deep.include({ status: 202, duplicate: false })
    expect(deliveredTo('pack-before')).to.deep.equal([[retry.n]])
  })

  it('killed after the broker stored it: the retry is its duplicate', async () => {
    const { first, retry } = await cutOff('after')
    expect(retry.answer).to.deep.include({ status: 202, duplicate: true })
    expect(deliveredTo('pack-after')).to.deep.equal([[first.n]])
  })

  it('its PubAck lost: the retry of the append is its own success, one item and one charge', async () => {
    await trial.createBuffer('lossy', NEVER_DUE)
    const balance = async () => (await trial.installation.api().credits()).credits
    const full = await balance()
    const lost = trial.own!.proxy.loseAnswerTo(packing)
    const item = (await trial.sender.send({ bufferId: 'lossy', groupKey: 'ok', messageId: 'once' }))!
    await within(lost, 1_000, 'no PubAck was lost')
    expect(item.answer).to.deep.include({ status: 202, duplicate: false })
    await flush('lossy')
    expect(deliveredTo('lossy')).to.deep.equal([[item.n]])
    expect(full - (await balance())).to.equal(item.credits)
  })

  it('and the whole history holds', () => trial.judge())
})
