/** `npm start` with PENSTOCK_PROCESSES of four and more: several processes take requests, on one port. */
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Agent, request } from 'undici'
import { freePort } from '../../internal/embedded/port.ts'
import { findProcesses } from '../../internal/embedded/process-identity.ts'
import { RawClient } from '../http/raw-client.ts'
import { eventually } from '../support/eventually.ts'
import { readMetrics } from '../support/metrics.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { startSink } from '../support/sink.ts'

const WEBHOOKS = 60
/** Connections that are opened at once: that all of them go to one of two processes would be a chance of one in a million. */
const CONNECTIONS = 20
const PATIENT = { timeoutMs: 30_000 }

interface Said {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the test is about.
  json: any
}

/** But for those about the connection. */
function namesOf(headers: Record<string, string>): string {
  const names = Object.keys(headers).filter((name) => name !== 'connection')
  return names.sort().join()
}

describe('npm start with four processes', function () {
  this.timeout(120_000)
  let installation: Installation
  let projectId: string
  let port: number
  const agents: Agent[] = []

  before(async () => {
    port = await freePort()
    const env = { PENSTOCK_SHARDS: '2', PENSTOCK_PROCESSES: '4', PENSTOCK_PORT: String(port) }
    installation = await createInstallation({ env })
    await installation.start()
    projectId = await installation.api().createProject()
    await installation.api().createBuffer(projectId, 'orders', {
      batch: { maxItems: 5, idleTimeoutMs: 200, maxWaitFromFirstMs: 1_000 },
      delivery: { url: `${installation.service.url}/local/receiver/orders` },
    })
  })
  after(async () => {
    await Promise.all(agents.map((agent) => agent.close()))
    await installation?.stop()
  })

  /** Over a connection of its own. A payload is posted. */
  async function ask(path: string, payload?: object): Promise<Said> {
    const agent = new Agent()
    agents.push(agent)
    const { statusCode, body } = await request(`${installation.service.url}${path}`, {
      dispatcher: agent,
      headers: { 'x-api-key': installation.api().key! },
      ...(payload && { method: 'POST' as const, body: JSON.stringify(payload) }),
    })
    return { status: statusCode, json: await body.json() }
  }

  const askAll = (path: string): Promise<Said[]> =>
    Promise.all(Array.from({ length: CONNECTIONS }, () => ask(path)))

  /** Ops addresses of those that take requests. */
  function fronts(): unknown[] {
    const started = installation.events('process started').map(({ node, opsUrl }) => [node, opsUrl] as const)
    return [
      installation.service.opsUrl,
      ...new Map(started.filter(([node]) => /^front/.test(String(node)))).values(),
    ]
  }

  const front = () => findProcesses(`--env-file=${join(installation.dataDir, 'nodes', 'front-1.env')}`)

  async function acceptedAt(opsUrl: unknown): Promise<number> {
    return readMetrics(await (await fetch(`${opsUrl}/metrics`)).text(), 'penstock_ingest_accepted_total')
  }

  it('has two that take requests, and each gets some', async () => {
    const paths = Array.from({ length: WEBHOOKS }, (_, n) => ({ group: `k${n % 7}`, n }))
    const answers = await Promise.all(paths.map((item) => ask(`/v1/ingest/${projectId}/orders`, item)))
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([202]))
    const each = await Promise.all(fronts().map(acceptedAt))
    expect(each).to.have.length(2)
    expect(Math.min(...each)).to.be.above(0)
    expect(each[0]! + each[1]!).to.equal(WEBHOOKS)
  })

  it('answers from its receiver, the management API and health the same on every connection', async () => {
    await eventually(async () => {
      for (const { status, json } of await askAll('/local/receiver/orders')) {
        expect(status).to.equal(200)
        const received = json as { headers: Record<string, string>; body: { items: object[] } }[]
        expect(received.flatMap(({ body }) => body.items)).to.have.length(WEBHOOKS)
        // Also of those that were passed on.
        expect(new Set(received.map(({ headers }) => headers.host))).to.deep.equal(
          new Set([`127.0.0.1:${port}`]),
        )
        expect(new Set(received.map(({ headers }) => namesOf(headers))).size).to.equal(1)
      }
    }, PATIENT)
    for (const { status, json } of await askAll('/v1/admin/buffers/orders'))
      expect([status, json.bufferId]).to.deep.equal([200, 'orders'])
    await eventually(async () => {
      for (const { status, json } of await askAll('/health')) {
        expect(status).to.equal(200)
        expect(json.checks).to.deep.equal({
          postgres: 'ok',
          nats: 'ok',
          inboxes: 'ok',
          shards: 'ok',
          secrets: 'ok',
        })
      }
    }, PATIENT)
  })

  it('passes on to the receiver by its name alone, and answers nobody else’s requests', async () => {
    const elsewhere = await startSink()
    const lines = [
      `GET http://127.0.0.1:${new URL(elsewhere.url('/')).port}/local/receiver/../../x HTTP/1.1\r\nHost: 127.0.0.1`,
      `GET ${elsewhere.url('/local/receiver/x')} HTTP/1.1\r\nHost: 127.0.0.1`,
      'GET /local/receiver/orders HTTP/1.1\r\nHost: rebound.example',
      'GET /local/receiver/.. HTTP/1.1\r\nHost: 127.0.0.1',
    ]
    const said = lines.map((line) => Promise.all(Array.from({ length: CONNECTIONS }, () => statusOf(line))))
    const statuses = (await Promise.all(said)).map((each) => [...new Set(each)])
    expect(elsewhere.requests('/x').concat(elsewhere.requests('/local/receiver/x'))).to.deep.equal([])
    expect(statuses).to.deep.equal([[400], [400], [400], [404]])
    await elsewhere.close()
  })

  async function statusOf(lines: string): Promise<number> {
    const client = await RawClient.open(port)
    client.send(`${lines}\r\n\r\n`)
    const { status } = await client.answer()
    client.socket.destroy()
    return status
  }

  it('books what each of them has accepted', async () => {
    await eventually(async () => {
      const { json } = await ask('/v1/admin/credits')
      expect(json.creditsUsedThisMonth).to.equal(WEBHOOKS)
    }, PATIENT)
  })

  it('starts one again that is killed, and goes on meanwhile', async () => {
    const [killed] = front()
    process.kill(killed!, 'SIGKILL')
    await eventually(() => expect(front().filter((pid) => pid !== killed)).to.have.length(1), PATIENT)
    await eventually(async () => expect((await fetch(`${fronts()[1]}/ready`)).status).to.equal(200), PATIENT)
    await eventually(async () => {
      for (const { status } of await askAll('/health')) expect(status).to.equal(200)
    }, PATIENT)
  })

  it('keeps its port to itself', async () => {
    const other = await createInstallation({ env: { PENSTOCK_PROCESSES: '4', PENSTOCK_PORT: String(port) } })
    const run = await other.spawn()
    expect(await run.exited()).to.equal(1)
    expect(run.output()).to.include(
      `PENSTOCK_PORT: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
    )
  })

  it('ends all of them on SIGTERM with 0', async () => {
    const children = findProcesses(`--env-file=${join(installation.dataDir, 'nodes', '/')}`)
    expect(children).to.have.length(3)
    expect(await installation.stop()).to.equal(0)
    expect(findProcesses(`--env-file=${join(installation.dataDir, 'nodes', '/')}`)).to.deep.equal([])
  })
})
