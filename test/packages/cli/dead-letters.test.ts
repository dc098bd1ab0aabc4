/** `penstock dlq` and `penstock tail`. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import type { Channel } from '../../e2e/harness.ts'
import { eventually } from '../../support/eventually.ts'
import { ONE_EACH, WAIT, walk } from './walk.ts'

describe('penstock dlq and penstock tail', function () {
  this.timeout(180_000)
  const walker = walk()
  const { on } = walker
  let channel: Channel
  const deadBatch = async (n: number) => {
    const before = (await channel.api.deadLetters(channel.bufferId)).length
    await channel.send({ group: `g${n}`, n, text: '\u001b[2J' })
    await channel.untilDead(before + 1, 30_000)
  }
  before(async () => {
    channel = await on.channel(ONE_EACH)
    channel.answer({ status: 400, body: '\u001b[31mno' })
    for (const n of [1, 2, 3]) await deadBatch(n)
  })

  it('lists dead letters, and shows one with its batch', async () => {
    const dead = await walker.withKey.json(['dlq', 'ls', '--buffer', channel.bufferId])
    expect(dead).to.have.length(3)
    const { stdout } = await walker.withKey.run(['dlq', 'ls', '--buffer', channel.bufferId, '--limit', '1'])
    expect(stdout.trim().split('\n')).to.have.length(2)
    const [{ dlqId }] = dead
    expect(await walker.withKey.json(['dlq', 'show', dlqId])).to.deep.equal(dead[0])
    const batch = await walker.withKey.run(['dlq', 'show', dlqId, '--batch'])
    expect(JSON.parse(batch.stdout).items[0].payload).to.include({ n: 3, text: '\u001b[2J' })
    expect(batch.stdout).not.to.include('\u001b')
  })

  it('retries one, which the destination refuses, and of several tells each', async () => {
    const [first, second] = (await channel.api.deadLetters(channel.bufferId)).map(({ dlqId }) => dlqId)
    const one = await walker.withKey.run(['dlq', 'retry', first!])
    expect(one.code).to.equal(1)
    expect(one.stderr).to.match(/^penstock: dead letter \S+: 502 [^\n]+\n$/)
    const more = await walker.withKey.run(['dlq', 'retry', first!, second!, '--json'])
    expect(more.code).to.equal(6)
    const told = more.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(told.map(({ dlqId, code }) => `${dlqId} ${code}`)).to.deep.equal([
      `${first} delivery_failed`,
      `${second} delivery_failed`,
    ])
  })

  it('follows them: those that are there, and those that come', async () => {
    const tail = walker.withKey.start([
      'tail',
      '--buffer',
      channel.bufferId,
      '--lines',
      '1',
      '--every',
      '1',
      '--json',
    ])
    const told = () =>
      tail.output.stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    await eventually(() => told().length === 1, WAIT)
    await deadBatch(4)
    await eventually(() => told().length === 2, WAIT)
    tail.child.kill('SIGINT')
    expect(await tail.ended).to.include({ code: 0, stderr: '' })
    expect(told().map(({ groupKey }) => groupKey)).to.deep.equal(['g3', 'g4'])
  })

  it('follows audit records', async () => {
    const tail = walker.withKey.start(['tail', 'audit', '--lines', '0', '--every', '1'])
    await eventually(async () => {
      await channel.patch({ name: 'Renamed' })
      return tail.output.stdout.includes('PATCH /v1/admin/buffers/{bufferId} 200')
    }, WAIT)
    tail.child.kill('SIGTERM')
    expect((await tail.ended).code).to.equal(0)
  })

  it('retries all of a buffer, and deletes one', async () => {
    const { dlqId } = (await channel.api.deadLetters(channel.bufferId))[0]!
    expect(await walker.withKey.json(['dlq', 'rm', dlqId])).to.deep.equal({ dlqId, deleted: true })
    channel.answer({ status: 200 })
    const { code, stdout } = await walker.withKey.run(['dlq', 'retry', '--all-of', channel.bufferId])
    expect(code).to.equal(0)
    expect(stdout.match(/^delivered dlq_\S+: 1 items, 200$/gm)).to.have.length(3)
    expect(await channel.api.deadLetters(channel.bufferId)).to.deep.equal([])
    expect((await walker.withKey.run(['dlq', 'rm', dlqId])).code).to.equal(4)
  })
})
