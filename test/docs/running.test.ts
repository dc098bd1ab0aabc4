/** What the reference pages say, held against a service that runs: its metrics, its log, its answers to bad requests. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { eventMeanings, problemMeanings } from '../../cmd/docs/log-events.ts'
import { type Family, familiesIn, OWNERSHIP } from '../../cmd/docs/telemetry.ts'
import { type Channel, harness, NEVER_DUE, SOON } from '../e2e/harness.ts'
import { RawClient } from '../http/raw-client.ts'
import { eventually } from '../support/eventually.ts'
import { type NameServer, startNameServer } from '../support/name-server.ts'
import { createInstallation, type LogEvent } from '../support/service.ts'
import { inTurn } from '../support/sink.ts'
import { pageText, rowsOf, section } from './pages.ts'

/** Nothing that this test does moves them: they want an outage, a slow owner, a full buffer, a deleted one. */
const UNMOVED = [
  'penstock_late_verdicts_total',
  'penstock_ingest_unavailable_total',
  'penstock_audit_lost_total',
  'penstock_secret_rows_without_key',
  'penstock_withheld_attempts_total',
]

describe('a running service', function () {
  this.timeout(120_000)
  let names: NameServer
  const on = harness({
    installation: async () => {
      names = await startNameServer()
      names.on('receiver.test', { addresses: ['127.0.0.1'] })
      const installation = await createInstallation({
        shared: true,
        env: { PENSTOCK_DNS_SERVERS: names.address },
      })
      await installation.start()
      return installation
    },
  })

  before(async () => {
    const channel = await on.channel({
      batch: { ...NEVER_DUE, maxItems: 2 },
      throughput: { maxAttempts: 2, backoff: { initialMs: 10 } },
    })
    await channel.patch({ delivery: { url: on.sink.url(channel.path, 'receiver.test') } })
    channel.answer(inTurn({}, { status: 500 }, { status: 500 }, { status: 404 }))
    await sendPairs(channel, 3)
    await channel.untilDead(2)
    await channel.send({ group: 'b', messageId: 'm' })
    await channel.send({ group: 'b', messageId: 'm' })
    await channel.ingest('no JSON')
    const headers = { 'X-API-Key': `svk_${'0'.repeat(48)}` }
    expect((await fetch(`${on.installation.service.url}/v1/admin/credits`, { headers })).status).to.equal(401)
    await channel.patch({ batch: { ...SOON } })
    await channel.untilDead(3)
  })

  after(() => names.close())

  async function sendPairs(channel: Channel, pairs: number): Promise<void> {
    for (let pair = 1; pair <= pairs; pair++) {
      await channel.sendAll([{ group: 'a' }, { group: 'a' }])
      await eventually(() => channel.requests().length >= pair)
    }
  }

  async function scraped(): Promise<Family[]> {
    const answer = await fetch(`${on.installation.service.opsUrl}/metrics`)
    return familiesIn(await answer.text()).filter(({ name }) => name.startsWith('penstock_'))
  }

  it('shows the metrics of the page with their type, labels and meaning, and all but those of outages', async () => {
    const page = pageText('metrics.md')
    const rows = new Map(rowsOf(page, 'metric', 'type', 'labels', 'meaning').map((row) => [row[0]!, row]))
    const expected = [...rows.keys()].filter(
      (name) => !name.startsWith('penstock_operator_') && !UNMOVED.includes(name),
    )
    await eventually(
      async () => expect((await scraped()).map(({ name }) => name)).to.include.members(expected),
      { timeoutMs: 15_000, everyMs: 100 },
    )
    for (const { name, type, unit, help, labels } of await scraped()) {
      const [, kind, labelText = '', meaning] = rows.get(name) ?? []
      expect([kind, meaning], name).to.deep.equal([unit === '' ? type : `${type}, ${unit}`, `${help}.`])
      const told = labelsOf(labelText)
      for (const [label, values] of labels) {
        expect([...told.keys()], name).to.include(label)
        const allowed = told.get(label)!
        if (allowed.length > 0) expect(allowed, name).to.include.members([...values])
      }
    }
  })

  /** Labels of a cell with the values that it lists; none: any. */
  function labelsOf(text: string): Map<string, string[]> {
    const labels = text.split('; ').filter((label) => label !== '')
    return new Map(
      labels.map((label) => {
        const [name = '', values] = label.split(': ')
        return [name, values?.split(', ') ?? []]
      }),
    )
  }

  it('writes events to its log that the page has, with the members that it names', async () => {
    const named = new Set([...Object.keys(eventMeanings), ...Object.keys(problemMeanings.leases)])
    const wide = new Map(
      rowsOf(pageText('metrics.md'), 'event', 'level', 'members', 'meaning').map(
        ([name, levels = '', members = '']) => [
          name,
          { levels: levels.split(', '), members: members.split(', ') },
        ],
      ),
    )
    const events = on.installation.events()
    for (const event of events) {
      expect(named.has(event.msg), JSON.stringify(event)).to.equal(true)
      const row = wide.get(event.msg)
      if (row === undefined) continue
      expect(row.levels, event.msg).to.include(event.level)
      expect(row.members, event.msg).to.include.members(membersOf(event))
    }
    const told = new Set(events.map(({ msg }) => msg))
    for (const msg of ['starting', 'ready', 'ownership', 'pack', 'flush', 'delivery', 'dead', 'dropped'])
      expect(told.has(msg), msg).to.equal(true)
    const states = events.flatMap(({ msg, state }) => (msg === 'ownership' ? [state] : []))
    expect(states).to.include.members(['replaying', 'running'])
    for (const state of states) expect(OWNERSHIP).to.include(state)
  })

  function membersOf(event: LogEvent): string[] {
    return Object.keys(event).filter((name) => !['level', 'time', 'role', 'msg'].includes(name))
  }

  it('answers what is wrong with a request before any endpoint as the page says, and knows nothing else', async () => {
    const rows = rowsOf(
      section(pageText('errors.md'), 'Transport'),
      ...['status', 'error', 'meaning', 'what to do'],
    )
    const told = rows.map(([status, error]) => `${status} ${error}`)
    const key = on.api.key
    const requests = [
      'rubbish\r\n\r\n',
      'GET /health HTTP/1.1\r\n\r\n',
      'GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
      'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n',
      `PUT /v1/admin/projects HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nContent-Length: 0\r\n\r\n`,
      'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
      'POST /v1/ingest/a/b HTTP/1.1\r\nHost: x\r\nExpect: something\r\nContent-Length: 0\r\n\r\n',
      `GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(33_000)}\r\n\r\n`,
    ]
    const answered: string[] = []
    for (const request of requests) {
      const client = await RawClient.open(Number(new URL(on.installation.service.url).port))
      client.send(request)
      const { status, body } = await client.answer()
      answered.push(`${status} ${(JSON.parse(body) as { error: string }).error}`)
      client.close()
    }
    expect(answered).to.deep.equal(told)
  })
})
