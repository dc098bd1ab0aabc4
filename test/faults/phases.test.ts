/**
 * SIGKILL of the service at every phase of a batch's life (fault matrix, rows 7 and 14): each record that the
 * owner commits, once before it reaches the broker and once after it was stored but before the owner knows.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { connect, type Database } from '../../internal/postgres/connection.ts'
import type { BufferFields } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import type { Struck, Which } from '../support/nats-proxy.ts'
import { readDead } from './aftermath.ts'
import { versionOf } from './batch-key.ts'
import type { SentItem } from './history.ts'
import { committing, judging } from './strikes.ts'
import { Trial } from './trial.ts'

const SEED = 7
/** Never due by itself, however long a restart takes; and due at once. */
const NEVER_DUE = { batch: { idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 } }
const DUE = { batch: { idleTimeoutMs: 100, maxWaitFromFirstMs: 100 } }
/** Due with its third item only: a pause between two of them makes no batch of its own. */
const OF_THREE = { batch: { ...NEVER_DUE.batch, maxItems: 3 } }

describe('a service killed at a phase of a batch', function () {
  this.timeout(120_000)
  let trial: Trial
  let db: Database

  before(async () => {
    trial = await Trial.open({ label: 'phases', seed: SEED, servers: 'own' })
    await trial.createBuffer('others')
    db = connect(trial.own!.databaseUrl, { max: 1 })
  })
  after(async () => {
    await db?.end()
    await trial?.close()
  })

  async function flush(bufferId: string): Promise<void> {
    await trial.patchBuffer(bufferId, DUE)
    await trial.drain()
  }

  /** So long, ms, the service waits for its record: time enough to do what must wait for it, were it wrong. */
  const WAITING_MS = 250

  /** The ingress and all other groups of the shards go on meanwhile. */
  async function others(): Promise<void> {
    const until = performance.now() + WAITING_MS
    for (let i = 0; performance.now() < until; i++)
      await trial.sender.send({ bufferId: 'others', groupKey: `ok-${i % 8}` })
  }

  const ofBuffer = (bufferId: string) => trial.history.deliveries.filter((each) => each.bufferId === bufferId)
  const numbers = (items: readonly { n: number }[]) => items.map(({ n }) => n)

  /** Three items one after the other. */
  async function sendThree(bufferId: string, groupKey: string): Promise<SentItem[]> {
    const sent = []
    for (let i = 0; i < 3; i++) sent.push(await trial.sender.send({ bufferId, groupKey }))
    return sent.filter((item) => item !== undefined)
  }

  /** Kills at the message that three items of one group bring about, restarts, and drains. */
  async function killOver(
    bufferId: string,
    when: 'before' | 'after',
    which: Which,
    { groupKey = 'ok', fields = OF_THREE }: { groupKey?: string; fields?: Partial<BufferFields> } = {},
  ): Promise<{ struck: Struck; sent: SentItem[] }> {
    await trial.createBuffer(bufferId, fields)
    let sent: SentItem[] = []
    const provoke = async () => {
      sent = await sendThree(bufferId, groupKey)
    }
    const struck = await trial.killAt(when, which, provoke, others)
    await trial.start()
    await trial.drain()
    return { struck, sent }
  }

  async function deadOf(bufferId: string) {
    return (await readDead(db)).filter((each) => each.bufferId === bufferId)
  }

  it('before the seal is stored: sealed anew and sent once', async () => {
    const { sent } = await killOver('unsealed', 'before', committing('seal'))
    const [batch, ...more] = ofBuffer('unsealed')
    expect(more).to.deep.equal([])
    expect(numbers(batch!.items)).to.deep.equal(numbers(sent))
  })

  it('sealed, not sent: sent once, under the version of that seal', async () => {
    const { struck, sent } = await killOver('sealed', 'after', committing('seal'))
    const [batch, ...more] = ofBuffer('sealed')
    expect(more).to.deep.equal([])
    expect(versionOf(batch!)).to.equal(JSON.parse(struck.answer!.payload.toString()).seq)
    expect(numbers(batch!.items)).to.deep.equal(numbers(sent))
  })

  it('in flight: the same body again under the same key', async () => {
    await trial.createBuffer('flying', OF_THREE)
    const arrived = trial.destination.holdNext('ok-flying')
    await sendThree('flying', 'ok-flying')
    await arrived
    trial.kill()
    await trial.gone()
    await trial.start()
    await trial.drain()
    const [first, second, ...more] = ofBuffer('flying')
    expect(more).to.deep.equal([])
    expect([first!.status, second!.status]).to.deep.equal([0, 200])
    expect([second!.key, second!.bodyHash]).to.deep.equal([first!.key, first!.bodyHash])
  })

  it('acknowledged, before `done` is stored: the same body again, once', async () => {
    await killOver('undone', 'before', committing('done'))
    const [first, second, ...more] = ofBuffer('undone')
    expect(more).to.deep.equal([])
    expect([second!.key, second!.bodyHash]).to.deep.equal([first!.key, first!.bodyHash])
  })

  it('acknowledged, `done` stored: never again', async () => {
    await killOver('done', 'after', committing('done'))
    expect(ofBuffer('done')).to.have.length(1)
  })

  for (const [phase, when, which] of [
    ['before the drop is stored', 'before', committing('drop')],
    ['with the drop stored', 'after', committing('drop')],
    ['with the drop known to the owner and told nobody', 'before', judging],
  ] as const) {
    it(`a duplicate ${phase}: dropped, and its retry is told`, async () => {
      const bufferId = `drop-${phase.replaceAll(' ', '-')}`
      await trial.createBuffer(bufferId, NEVER_DUE)
      const duplicate = { bufferId, groupKey: 'ok', messageId: 'duplicate' }
      const original = await trial.sender.send(duplicate)
      const cutOff: { item?: Promise<SentItem | undefined> } = {}
      const send = () => {
        cutOff.item = trial.sender.send(duplicate)
      }
      await trial.killAt(when, which, send, others)
      // Accepted at most, without a verdict: who asks is not kept waiting for one for long.
      expect((await cutOff.item)?.answer?.duplicate ?? false, 'nobody was told').to.equal(false)
      await trial.start()
      const retry = await eventually(async () => {
        const item = await trial.sender.send(duplicate)
        return item?.answer?.duplicate === true && item
      })
      expect(retry.answer!.itemId).to.equal(original!.answer!.itemId)
      await flush(bufferId)
      expect(ofBuffer(bufferId).map(({ items }) => numbers(items))).to.deep.equal([[original!.n]])
    })
  }

  for (const { when, sends } of [
    { when: 'before', sends: 6 },
    { when: 'after', sends: 5 },
  ] as const) {
    it(`in back-off, ${when} the attempt is stored: the count goes on`, async () => {
      const bufferId = `backoff-${when}`
      await killOver(bufferId, when, committing('attempt'), { groupKey: 'failing' })
      const [row, ...more] = await eventually(async () => {
        const rows = await deadOf(bufferId)
        return rows.length > 0 && rows
      })
      expect(more).to.deep.equal([])
      expect(ofBuffer(bufferId)).to.have.length(sends)
      expect(new Set(ofBuffer(bufferId).map(({ key }) => key))).to.deep.equal(new Set([row!.key]))
      const [item] = await trial.installation.api().deadLetters(bufferId)
      expect(item).to.include({ attempt: 4, reason: 'max_retries_exceeded', lastStatusCode: 500 })
    })
  }

  for (const when of ['before', 'after'] as const) {
    it(`dead, ${when} \`dead\` is stored: one row, counted once, never sent again`, async () => {
      const bufferId = `dead-${when}`
      await killOver(bufferId, when, committing('dead'), { groupKey: 'reject' })
      expect(await deadOf(bufferId)).to.have.length(1)
      expect(ofBuffer(bufferId)).to.have.length(1)
      expect((await trial.installation.api().readBuffer(bufferId)).consecutiveDlqCount).to.equal(1)
    })

    it(`claiming, ${when} the epoch is stored: the next start takes over`, async () => {
      const bufferId = `epoch-${when}`
      await trial.createBuffer(bufferId, NEVER_DUE)
      const sent = await sendThree(bufferId, 'ok')
      trial.kill()
      await trial.gone()
      await trial.killAt(when, committing('epoch'), () => trial.spawn())
      await trial.start()
      await flush(bufferId)
      expect(ofBuffer(bufferId).map(({ items }) => numbers(items))).to.deep.equal([numbers(sent)])
    })

    it(`stopping, ${when} the release is stored: nothing is sent twice`, async () => {
      const bufferId = `release-${when}`
      await trial.createBuffer(bufferId, NEVER_DUE)
      const sent = await sendThree(bufferId, 'ok')
      await trial.killAt(when, committing('release'), () => trial.installation.service.child.kill('SIGTERM'))
      await trial.start()
      await flush(bufferId)
      expect(ofBuffer(bufferId).map(({ items }) => numbers(items))).to.deep.equal([numbers(sent)])
    })
  }

  it('and the whole history holds', () => trial.judge())
})
