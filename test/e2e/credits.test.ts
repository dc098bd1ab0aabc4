/** What ingest costs (docs/reference/api.md, "Limits" and "Ingest"): exact, whatever arrives at once. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { Answer, Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { onceKnown } from '../support/fronts.ts'
import { freshPayer } from '../support/shared-installation.ts'
import { type Channel, countItems, harness, NEVER_DUE } from './harness.ts'

describe('the credits of a customer', function () {
  this.timeout(120_000)
  const on = harness()

  it('pay one for each started KB of the payload as JSON', async () => {
    const { api, channel } = await paying(100)
    const costs: [payload: string, credits: number][] = [
      [ofBytes(20), 1],
      [ofBytes(1024), 1],
      [ofBytes(1025), 2],
      [ofBytes(10_240), 10],
      // Neither blanks nor the escapes of the sender count: the payload as a printer would write it.
      [`${ofBytes(1000)}${' '.repeat(500)}`, 1],
      [`{"group":"\\u0061","fill":"${'\\u0078'.repeat(500)}"}`, 1],
      [JSON.stringify({ group: 'a', fill: 'é'.repeat(600) }), 2],
    ]
    let balance = 100
    for (const [payload, credits] of costs) {
      await channel.send(payload)
      balance -= credits
      expect((await api.credits()).credits, payload.slice(0, 40)).to.equal(balance)
    }
    expect((await api.credits()).creditsUsedThisMonth).to.equal(100 - balance)
  })

  it('pay exactly what is accepted of a burst that they cannot pay in whole', async () => {
    const { api, channel } = await paying(250)
    const sizes = Array.from({ length: 200 }, (_, index) => 1 + (index % 4))
    const answers = await Promise.all(
      sizes.map((kb) => channel.ingest(ofBytes(kb * 1024), {}).then((answer) => ({ kb, answer }))),
    )
    const accepted = answers.filter(({ answer }) => answer.status === 202)
    const refused = answers.filter(({ answer }) => answer.status === 429)
    expect(accepted.length + refused.length).to.equal(200)
    const spent = accepted.reduce((sum, { kb }) => sum + kb, 0)
    const { credits, creditsUsedThisMonth } = await api.credits()
    expect([credits, creditsUsedThisMonth]).to.deep.equal([250 - spent, spent])
    // Nothing that the rest could pay was refused at the end.
    expect(credits).to.be.below(Math.min(...refused.map(({ kb }) => kb)))
    for (const { kb, answer } of refused) expectRefusal(answer, kb)
    await channel.patch({ batch: { maxItems: 10 } })
    await channel.patch({ batch: { idleTimeoutMs: 100 } })
    expect(countItems(await channel.untilItems(accepted.length))).to.equal(accepted.length)
  })

  it('come back for duplicates and for nothing else', async () => {
    const { api, channel } = await paying(500)
    const ids = Array.from({ length: 120 }, (_, index) => `id ${index % 40}`)
    const answers = await Promise.all(
      ids.map((messageId) => channel.send({ group: 'a', messageId, fill: 'x'.repeat(1500) })),
    )
    // Not each of them is told when the owner keeps silent for a second; what is credited back is the same.
    expect(answers.filter(({ duplicate }) => duplicate === true).length).to.be.within(1, 80)
    await eventually(async () => expect((await api.credits()).credits).to.equal(500 - 40 * 2))
    expect((await api.credits()).creditsUsedThisMonth).to.equal(80)
  })

  it('are not touched by requests that are refused', async () => {
    const { api, channel } = await paying(10)
    expect((await channel.ingest('{"group":')).status).to.equal(400)
    expect((await channel.ingest({ no: 'group' })).status).to.equal(400)
    expect((await channel.ingest({ group: 'a' }, { 'x-api-key': 'svk_wrong' })).status).to.equal(401)
    await channel.patch({ enabled: false })
    expect((await channel.ingest({ group: 'a' })).status).to.equal(400)
    expect((await api.credits()).credits).to.equal(10)
  })

  it('that are granted pay the very next request', async () => {
    const { api, channel } = await paying(1)
    await channel.send({ group: 'a' })
    for (let round = 0; round < 5; round++) {
      expectRefusal(await channel.ingest({ group: 'a' }), 1)
      await api.addCredits(1)
      // Another process that refused just now goes on for 20 ms.
      await onceKnown(() => channel.send({ group: 'a' }))
    }
  })

  async function paying(credits: number): Promise<{ api: Api; channel: Channel }> {
    const api = on.installation.api(await freshPayer(credits))
    const projectId = await api.createProject()
    return {
      api,
      channel: await on.channel({ batch: { ...NEVER_DUE, maxItems: 1_000 } }, { api, projectId }),
    }
  }
})

/** The balance in a refusal is below what the request needs. */
function expectRefusal(answer: Answer, required: number): void {
  expect(answer.status).to.equal(429)
  const body = answer.json()
  expect(Object.keys(body).sort()).to.deep.equal(['credits', 'error', 'message', 'required'])
  expect(body.required).to.equal(required)
  expect(body.credits).to.be.within(0, required - 1)
  expect([typeof body.error, typeof body.message]).to.deep.equal(['string', 'string'])
}

/** JSON text of exactly `bytes` bytes, of group `a`. */
function ofBytes(bytes: number): string {
  const empty = JSON.stringify({ group: 'a', fill: '' })
  return JSON.stringify({ group: 'a', fill: 'x'.repeat(Math.max(0, bytes - empty.length)) })
}
