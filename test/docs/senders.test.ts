import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { errors } from '../../internal/domain/errors.ts'
import { answers } from '../../internal/ingest/answer.ts'
import { configOf, creation } from '../domain/sample-buffer.ts'
import { inTurn, type Sink, startSink } from '../support/sink.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { rowsOf } from './pages.ts'
import { pastedPage } from './pasted-page.ts'

const PAGE = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'guide', 'senders.md'), 'utf8')

describe('the commands of the guide for senders', function () {
  this.timeout(120_000)
  const page = pastedPage('docs/guide/senders.md')
  const statusOf = (output: string) =>
    [...output.matchAll(/"status":"accepted"|"error":"[^"]+"/g)].map(String)

  it('send a webhook, which is accepted', async () => {
    const output = await page.paste('Send a webhook')
    expect(output).to.match(/\{"status":"accepted","messageId":"([^"]+)","itemId":"\1"\}/)
  })

  it('take the group key from the header, and are refused without one', async () => {
    expect(statusOf(await page.paste('Choose the group key'))).to.deep.equal([
      '"status":"accepted"',
      '"error":"Could not extract group key from request"',
    ])
  })

  it('repeat an id in the body and in the header: both are duplicates of one item', async () => {
    const output = await page.paste('Give every webhook an id')
    const sent = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(sent.map(({ duplicate }) => duplicate)).to.deep.equal([undefined, true, true])
    expect(new Set(sent.map(({ itemId }) => itemId)).size).to.equal(1)
  })

  it('fill a batch that goes out at once', async () => {
    expect(await page.paste('Know when it goes out')).to.match(/"itemsCount":2$/m)
    const { batch } = configOf(creation())
    const rows = rowsOf(PAGE, 'setting', 'default', 'the group goes out').map(
      ([setting = '', value = '']) => [setting.replace('batch.', ''), Number(value.replaceAll(',', ''))],
    )
    expect(Object.fromEntries(rows)).to.deep.equal(batch)
  })

  it('get the id of their request back', async () => {
    expect((await page.paste('Follow a webhook')).trim()).to.equal('X-Request-Id: signup-17')
  })

  it('send by a program', async () => {
    expect(await page.paste('Repeat safely')).to.include("status: 'accepted'")
  })

  it('sign a webhook, and are refused without a signature', async () => {
    expect(statusOf(await page.paste('Sign your webhooks'))).to.deep.equal([
      '"status":"accepted"',
      '"error":"Missing signature header"',
      '"status":"accepted"',
      '"status":"accepted"',
      '"error":"Invalid signature"',
    ])
  })

  it('send a key with a webhook, and are refused without one', async () => {
    expect(statusOf(await page.paste('Send a key with every webhook'))).to.deep.equal([
      '"error":"This buffer takes only webhooks with an API key in X-API-Key"',
      '"status":"accepted"',
    ])
  })

  const STALE = 'Time stamp of the signature is too far from now'
  for (const [heading, id, refusal] of [
    ['Take webhooks of GitHub', '72d3162e-cc78-11e3', 'Invalid signature'],
    ['Take webhooks of Shopify', 'b54557e4-bdd9', 'Missing signature header'],
    ['Take webhooks of Stripe', 'evt_1', STALE],
    ['Take webhooks of Slack', 'Ev1', STALE],
    ['Take Standard Webhooks', 'msg_1', STALE],
  ] as const) {
    it(`${heading.toLowerCase()}: a resend is a duplicate, and what is not well signed is refused`, async () => {
      const lines = (await page.paste(heading)).trim().split('\n').slice(-3)
      const [first, second, third] = lines.map((line) => JSON.parse(line))
      expect(first).to.include({ messageId: id }).and.not.have.property('duplicate')
      expect(second).to.deep.equal({ ...first, duplicate: true })
      expect(third).to.deep.equal({ error: refusal })
    })
  }

  it('watch the credits', async () => {
    const output = await page.paste('Watch the credits')
    expect(output).to.include('"customerId":"local","credits":').and.include('"type":"grant"')
    expect(output).to.include('"creditsAdded":1000')
  })

  it('are all run here', () => {
    expect(page.pasted).to.deep.equal([...page.sections.keys()])
  })
})

describe('the sender of the guide', function () {
  this.timeout(60_000)
  let sink: Sink
  let program: string

  before(async () => {
    sink = await startSink()
    program = join(tempFolder('sender'), 'send.mjs')
    writeFileSync(program, /^cat > send\.mjs <<'END'\n(.*?)^END$/ms.exec(PAGE)![1]!)
  })
  after(() => sink.close())

  /** Exit code of the program that sends to this path. */
  async function send(path: string): Promise<number> {
    const child = spawn(process.execPath, [program, sink.url(path)], { stdio: 'ignore' })
    const [code] = (await once(child, 'close')) as [number]
    return code
  }

  it('repeats what was not answered, and what may succeed later, with the same id', async () => {
    const taken = { status: 202, body: '{"status":"accepted"}' }
    const full = { status: 503, headers: { 'retry-after': '1' } }
    sink.on('/busy', inTurn({ status: 408 }, { fault: 'reset' }, full, taken))
    expect(await send('/busy')).to.equal(0)
    const requests = sink.requests('/busy')
    expect(requests).to.have.length(4)
    expect(new Set(requests.map(({ headers }) => headers['x-idempotency-key'])).size).to.equal(1)
    expect(new Set(requests.map(({ body }) => String(body))).size).to.equal(1)
  })

  it('gives up at once on what repeating does not help', async () => {
    sink.on('/wrong', { status: 400 })
    expect(await send('/wrong')).to.equal(1)
    expect(sink.requests('/wrong')).to.have.length(1)
  })
})

describe('the answers that the guide for senders lists', () => {
  const rows = PAGE.split('\n').map((line) => line.split(' | '))
  const listed = rows.flatMap(([first = '', error = '']) => {
    const [, status] = /^\| (\d{3})$/.exec(first) ?? []
    return status === undefined ? [] : [`${status} ${error}`]
  })

  it('are all that ingest can give', () => {
    const fixed = Object.values(answers).map(({ status, type, body, retryAfter }) => ({
      status,
      text: type.startsWith('text/html') ? 'Bad Request' : (JSON.parse(body).error as string),
      retryAfter,
    }))
    const others = [
      'groupKeyMissing',
      'groupKeyUnusable',
      'messageIdUnusable',
      'bodyTimeout',
      'insufficientCredits',
      'internal',
      'connectionsBusy',
    ] as const
    const all = [
      ...fixed,
      ...others.map((key) => ({
        status: errors[key].status,
        text: errors[key].error,
        retryAfter: undefined,
      })),
    ]
    for (const { status, text, retryAfter } of all) {
      const row = PAGE.split('\n').find(
        (line) => line.startsWith(`| ${status} |`) && line.includes(`\`${text}\``),
      )
      expect(row, `${status} ${text}`).not.to.equal(undefined)
      if (retryAfter !== undefined) expect(row).to.include(`\`Retry-After: ${retryAfter}\``)
    }
    // 202 is no refusal.
    expect(listed).to.have.length(all.length + 1)
  })
})
