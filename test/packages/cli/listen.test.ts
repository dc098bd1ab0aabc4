/** `penstock listen`: a receiver that answers as it is told. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { eventually } from '../../support/eventually.ts'
import { ONE_EACH, WAIT, walk } from './walk.ts'

describe('penstock listen', function () {
  this.timeout(180_000)
  const walker = walk()
  const { on } = walker
  const listening = async (args: string[], env: Record<string, string> = {}) => {
    const running = walker.cli.with(env).start(['listen', '--port', '0', '--json', ...args])
    const lines = () =>
      running.output.stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
    const [{ listening: url }] = await eventually(() => lines().length > 0 && lines(), WAIT)
    const batches = () => lines().slice(1)
    const stop = async () => {
      running.child.kill('SIGINT')
      return (await running.ended).code
    }
    return { url: url as string, batches, stop }
  }

  it('verifies batches, and prints them', async () => {
    const receiver = await listening([], { PENSTOCK_SIGNING_SECRETS: 'n3xt,s3cret' })
    const signing = { secret: 's3cret' }
    const right = await on.channel({ ...ONE_EACH, delivery: { url: receiver.url, signing } })
    const wrong = await on.channel({
      ...ONE_EACH,
      delivery: { url: receiver.url, signing: { secret: 'other' } },
    })
    await wrong.send({ group: 'ada' })
    await wrong.untilDead(1, 30_000)
    await right.send({ group: 'ada', n: 1 })
    await eventually(() => receiver.batches().length === 2, WAIT)
    const [refused, taken] = receiver.batches()
    expect(refused).to.deep.equal({ status: 401, error: 'the signature is missing or wrong' })
    expect(taken.batch.items[0].payload).to.deep.equal({ group: 'ada', n: 1 })
    expect(await receiver.stop()).to.equal(0)
  })

  it('answers the first batches as it is told: the service tries again after 500', async () => {
    const receiver = await listening(['--unsigned', '--answer', '500', '--first', '2'])
    const throughput = { maxAttempts: 3, backoff: { initialMs: 100 } }
    const channel = await on.channel({ ...ONE_EACH, throughput, delivery: { url: receiver.url } })
    await channel.send({ group: 'ada' })
    await eventually(() => receiver.batches().length === 3, WAIT)
    expect(receiver.batches().map(({ status }) => status)).to.deep.equal([500, 500, 200])
    expect(new Set(receiver.batches().map(({ batch }) => batch.idempotencyKey)).size).to.equal(1)
    await receiver.stop()
  })

  it('answers 429 after a pause: the service makes a dead letter of the batch', async () => {
    const receiver = await listening(['--unsigned', '--answer', '429', '--delay', '300'])
    const channel = await on.channel({ ...ONE_EACH, delivery: { url: receiver.url } })
    await channel.send({ group: 'ada' })
    const [dead] = await channel.untilDead(1, 30_000)
    expect(dead).to.include({ reason: 'non_retryable_error', lastStatusCode: 429 })
    await receiver.stop()
  })

  it('needs a secret, or to be told that there is none', async () => {
    const { code, stderr } = await walker.cli.run(['listen'])
    expect([code, stderr]).to.deep.equal([2, 'penstock: PENSTOCK_SIGNING_SECRETS is not set\n'])
  })

  it('ends when nobody reads what it prints', async () => {
    const running = walker.cli.start(['listen', '--port', '0', '--unsigned'])
    running.child.stdout.destroy()
    expect((await running.ended).code).to.equal(0)
  })

  it('says when its port is taken', async () => {
    const port = String(on.sink.port)
    const { code, stderr } = await walker.cli.run(['listen', '--unsigned', '--port', port])
    expect([code, stderr]).to.deep.equal([2, `penstock: cannot listen on 127.0.0.1:${port}: EADDRINUSE\n`])
  })
})
