/** `penstock send`: webhooks from a file and from stdin. */
import { closeSync, openSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { NEVER_DUE } from '../../e2e/harness.ts'
import { ONE_EACH, walk } from './walk.ts'

describe('penstock send', function () {
  this.timeout(180_000)
  const walker = walk()
  const { on } = walker
  it('sends one webhook of a file, with its bytes as they are', async () => {
    const channel = await on.channel(ONE_EACH)
    const path = walker.file('order.json', '{ "group": "ada", "amount": 10.50 }\n')
    const sent = await walker.withKey.json([
      'send',
      channel.projectId,
      channel.bufferId,
      path,
      '--message-id',
      'o-1',
    ])
    expect(sent).to.include({ status: 'accepted', messageId: 'o-1' })
    const [request] = await channel.untilRequests(1, 30_000)
    expect(request!.body.toString()).to.include('"amount": 10.50')
  })

  it('sends the lines of stdin in their order, signed, and tells which were refused', async () => {
    const channel = await on.channel({
      batch: { ...NEVER_DUE, maxItems: 3 },
      sourceVerification: { enabled: true, signingSecret: 'sh4red' },
    })
    const lines = [
      '{"group":"ada","n":1}',
      '{"n":2}',
      '',
      '{"group":',
      '{"group":"ada","n":3}',
      '{"group":"ada","n":4}',
    ]
    const { code, stdout, stderr } = await walker.withKey
      .with({ PENSTOCK_SOURCE_SECRET: 'sh4red' })
      .run(['send', channel.projectId, channel.bufferId, '--sign', '--json'], lines.join('\n'))
    const told = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(told.map(({ line, status }) => `${line} ${status}`)).to.deep.equal([
      ...['1 accepted', '2 refused', '4 refused', '5 accepted', '6 accepted'],
    ])
    expect(told[1].error).to.include('400 Could not extract group key from request')
    expect(code).to.equal(6)
    expect(JSON.parse(stderr)).to.deep.equal({ error: '2 refused, 3 sent', exitCode: 6 })
    const [batch] = await channel.untilBatches(1, 30_000)
    expect(batch!.items.map(({ payload }) => payload.n)).to.deep.equal([1, 3, 4])
  })

  it('stops where every other line would fail, too', async () => {
    const channel = await on.channel({ sourceVerification: { enabled: true, signingSecret: 'sh4red' } })
    const args = ['send', channel.projectId, channel.bufferId]
    const { code, stdout, stderr } = await walker.withKey.run(args, '{"group":"a"}\n{"group":"b"}\n')
    expect([code, stdout]).to.deep.equal([3, ''])
    expect(stderr).to.match(
      /^penstock: stopped at line 1: POST \/v1\/ingest\/\S+: 401 Missing signature header\n$/,
    )
  })

  it('stops although more may come from stdin', async () => {
    const sending = walker.withKey.start(['send', 'nothing', 'nothing'])
    sending.child.stdin.write('{"group":"a"}\n')
    const { code, stderr } = await sending.ended
    expect(code).to.equal(4)
    expect(stderr).to.include('stopped at line 1: ').and.include('404 Buffer not found')
  })

  it('sends several at once, each once', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 40 } })
    const lines = Array.from({ length: 40 }, (_, n) => JSON.stringify({ group: 'ada', n }))
    const path = walker.file('many.ndjson', lines.join('\n'))
    const { code } = await walker.withKey.run([
      'send',
      channel.projectId,
      channel.bufferId,
      path,
      '--parallel',
      '8',
    ])
    expect(code).to.equal(0)
    const [batch] = await channel.untilBatches(1, 30_000)
    const numbers = batch!.items.map(({ payload }) => payload.n).sort((a, b) => a - b)
    expect(numbers).to.deep.equal(lines.map((_, n) => n))
  })

  it('adds a header, such as that of the group key', async () => {
    const channel = await on.channel({
      ...ONE_EACH,
      groupKey: { mode: 'header', fallbackHeader: 'X-Customer' },
    })
    const args = ['send', channel.projectId, channel.bufferId, '--header', 'X-Customer: Łódź']
    expect((await walker.withKey.run(args, '{"n":1}')).code).to.equal(0)
    const [batch] = await channel.untilBatches(1, 30_000)
    expect(batch!.svc.groupKey).to.equal('Łódź')
  })

  it('takes files and lines behind a byte order mark', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 4 } })
    const files: [name: string, content: string][] = [
      ['marked.json', '{"group":"ada","n":1}'],
      ['marked.ndjson', '{"group":"ada","n":2}\r\n{"group":"ada","n":3}\r\n'],
    ]
    for (const [name, content] of files) {
      const path = walker.file(name, `\uFEFF${content}`)
      const { code, stderr } = await walker.withKey.run(['send', channel.projectId, channel.bufferId, path])
      expect([code, stderr], name).to.deep.equal([0, ''])
    }
    const args = ['send', channel.projectId, channel.bufferId]
    expect((await walker.withKey.run(args, '\uFEFF{"group":"ada","n":4}\n')).code).to.equal(0)
    const [batch] = await channel.untilBatches(1, 30_000)
    expect(batch!.items.map(({ payload }) => payload.n)).to.deep.equal([1, 2, 3, 4])
  })

  it('sends all lines although nobody reads what it prints', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 200 } })
    const lines = Array.from({ length: 200 }, (_, n) => JSON.stringify({ group: 'ada', n }))
    const path = walker.file('unread.ndjson', lines.join('\n'))
    const sending = walker.withKey.start(['send', channel.projectId, channel.bufferId, path])
    sending.child.stdout.destroy()
    sending.child.stderr.destroy()
    expect((await sending.ended).code).to.equal(0)
    const [batch] = await channel.untilBatches(1, 30_000)
    expect(batch!.items.map(({ payload }) => payload.n)).to.deep.equal(lines.map((_, n) => n))
  })

  it('sends all lines although its output has no room, and says so', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 3 } })
    const lines = [1, 2, 3].map((n) => JSON.stringify({ group: 'ada', n }))
    const path = walker.file('full.ndjson', lines.join('\n'))
    const full = openSync('/dev/full', 'w')
    const { code, stderr } = await walker.withKey
      .to(full)
      .run(['send', channel.projectId, channel.bufferId, path])
    closeSync(full)
    expect([code, stderr]).to.deep.equal([1, 'penstock: cannot write the output: ENOSPC\n'])
    expect((await channel.untilBatches(1, 30_000))[0]!.items).to.have.length(3)
  })
})
