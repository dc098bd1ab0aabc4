import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { freePort } from '../../internal/embedded/port.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { shapeSettings } from '../support/shape.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { tempFolder } from '../support/temp-folders.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** `script` of util-linux gives a program a terminal. */
const hasTerminal = spawnSync('script', ['--version']).status === 0

/** What somebody sees who starts the service in a terminal, whether it is one process or several. */
describe('the log on a terminal', function () {
  this.timeout(180_000)
  let service: ChildProcess
  let sink: Sink
  let url: string
  let key: string
  const written: Buffer[] = []
  /** Without colours. */
  const lines = () =>
    Buffer.concat(written)
      .toString('utf8')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the escapes of a terminal begin with one
      .replace(/\u001b\[[0-9;]*m/g, '')
      .split(/\r?\n/)

  before(async function () {
    if (!hasTerminal) this.skip()
    sink = await startSink()
    const dataDir = tempFolder('data')
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    service = spawn('script', ['-qefc', `exec ${process.execPath} cmd/penstock/main.ts`, '/dev/null'], {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        TERM: 'xterm',
        ...shapeSettings,
        PENSTOCK_DATA_DIR: dataDir,
        PENSTOCK_PORT: String(port),
        PENSTOCK_OPS_PORT: '0',
        PENSTOCK_NATS_URL: (await natsAccount()).url,
        PENSTOCK_DATABASE_URL: await freshDatabase(),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    service.stdout?.on('data', (chunk: Buffer) => written.push(chunk))
    service.stderr?.on('data', (chunk: Buffer) => written.push(chunk))
    await eventually(() => lines().some((line) => line.includes('Penstock listens on')), {
      timeoutMs: 120_000,
    })
    key = readFileSync(join(dataDir, 'owner-key'), 'utf8').trim()
    await created('/v1/admin/projects', { projectId: 'p', name: 'P' })
  })

  after(async () => {
    if (service && service.exitCode === null) {
      service.kill('SIGTERM')
      await once(service, 'close')
    }
    await sink?.close()
  })

  async function created(path: string, body: unknown): Promise<void> {
    const answer = await ask(path, body)
    expect(answer.status, await answer.text()).to.equal(201)
  }

  const ask = (path: string, body: unknown) =>
    fetch(url + path, { method: 'POST', headers: { 'X-API-Key': key }, body: JSON.stringify(body) })

  async function addBuffer(bufferId: string, path: string): Promise<void> {
    await created('/v1/admin/buffers', {
      bufferId,
      projectId: 'p',
      name: bufferId,
      groupKey: { mode: 'jsonpath', path: '$.c' },
      batch: { maxItems: 2, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 },
      throughput: { maxAttempts: 1 },
      dlqPauseThreshold: 1,
      delivery: { url: sink.url(path) },
      analytics: { sampleDeliveryLogs: 0 },
    })
  }

  async function send(bufferId: string, items: number): Promise<void> {
    for (let n = 0; n < items; n++)
      expect((await ask(`/v1/ingest/p/${bufferId}`, { c: 'ada', n })).status).to.equal(202)
  }

  const untilLine = (pattern: RegExp) =>
    eventually(() => expect(lines().filter((line) => pattern.test(line))).to.have.length(1), {
      timeoutMs: 60_000,
    })

  it('tells every delivery with its buffer, items, status and time', async () => {
    await addBuffer('orders', '/orders')
    await send('orders', 4)
    const delivered = /INFO: delivered 2 items of orders \(group [\w-]+\): status 200, \d+ ms$/
    await eventually(() => expect(lines().filter((line) => delivered.test(line))).to.have.length(2), {
      timeoutMs: 60_000,
    })
  })

  it('tells each dead letter with its reason, and that the buffer is paused', async () => {
    sink.on('/bad', { status: 422 })
    await addBuffer('bad', '/bad')
    await send('bad', 2)
    await untilLine(/WARN: attempt 1 of 2 items of bad .* failed: .*422.*; it is not tried again$/)
    await untilLine(/WARN: dead letter dlq_\w+: 2 items of bad \(group [\w-]+\), non_retryable_error$/)
    await untilLine(/WARN: buffer paused bufferId=bad /)
  })

  it('tells why a webhook was refused', async () => {
    expect((await ask('/v1/ingest/p/orders', { other: 1 })).status).to.equal(400)
    await untilLine(
      /INFO: webhooks refused bufferId=orders status=400 reason=Could not extract .* path=\$\.c$/,
    )
  })

  it('shows where to paste, and says it in lines of its own', () => {
    expect(lines().filter((line) => line.startsWith('curl -s'))).to.have.length(2)
    // All else of the log is one line an event, each with its time.
    const told = lines().filter((line) => /\b(DEBUG|INFO|WARN|ERROR|FATAL): /.test(line))
    for (const line of told) expect(line).to.match(/^\[\d\d:\d\d:\d\d\.\d{3}\] /)
  })
})
