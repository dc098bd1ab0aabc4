/**
 * The key of secrets is replaced while the service runs, and lost, and brought back (docs/operations/secret-keys.md): on a
 * service of its own.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { sign } from '../../internal/domain/signature.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase } from '../support/servers.ts'
import { createInstallation } from '../support/service.ts'
import { type Channel, harness } from './harness.ts'

const MAIN = join(import.meta.dirname, '..', '..', 'cmd', 'rekey', 'main.ts')
const pair = (id: string) => `${id}:${randomBytes(32).toString('base64')}`
const OLD = pair('old')
const NEW = pair('new')
const SOON = { idleTimeoutMs: 200, maxWaitFromFirstMs: 600_000 }

describe('the key of secrets', function () {
  this.timeout(240_000)
  let databaseUrl: string
  const on = harness({
    async installation() {
      databaseUrl = await freshDatabase()
      const installation = await createInstallation({
        shared: true,
        env: { PENSTOCK_DATABASE_URL: databaseUrl },
      })
      await installation.start({ PENSTOCK_SECRET_KEY: OLD })
      return installation
    },
  })

  async function restart(keys: string): Promise<void> {
    await on.installation.stop()
    await on.installation.start({ PENSTOCK_SECRET_KEY: keys })
  }

  async function rekey(keys: string, ...args: string[]): Promise<{ code: number; stdout: string }> {
    const env = {
      PATH: process.env.PATH,
      PENSTOCK_DATABASE_URL: databaseUrl,
      PENSTOCK_SECRET_KEY: keys,
    }
    const run = promisify(execFile)(process.execPath, [MAIN, ...args], { env })
    return run.then(
      ({ stdout }) => ({ code: 0, stdout }),
      ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
    )
  }

  const health = async () => {
    const answer = await fetch(`${on.installation.service.url}/health`)
    const { checks } = (await answer.json()) as { checks: Record<string, string> }
    return { status: answer.status, checks }
  }
  const withoutKey = () => on.installation.metric('penstock_secret_rows_without_key', { key: 'old' })

  /** Each with the secret that the channel has. */
  function expectSigned(channel: Channel, secret: string): void {
    for (const { body, headers } of channel.requests())
      expect(headers['x-svc-signature']).to.equal(sign(secret, body))
  }

  it('is lost: what needs it is held or refused, and comes back with it', async () => {
    const signed = await on.channel({ batch: SOON, delivery: { signing: { secret: 'hush' } } as never })
    const verified = await on.channel({
      batch: SOON,
      sourceVerification: { enabled: true, signingSecret: 'hush', signatureHeader: 'x-sig' } as never,
    })
    const plain = await on.channel({ batch: SOON })
    await restart(NEW)
    await eventually(async () => (await health()).checks.secrets === 'degraded')
    expect((await health()).status).to.equal(200)
    expect(await withoutKey()).to.be.at.least(2)
    expect(on.installation.events('keys of secrets are missing')).to.not.be.empty

    await signed.send({ group: 'a', n: 1 })
    const text = '{"group":"a"}'
    const refused = await verified.ingest(text, { 'x-sig': sign('hush', Buffer.from(text)) })
    expect([refused.status, refused.json().code]).to.deep.equal([503, 'secret_unreadable'])
    await plain.send({ group: 'a' })
    await plain.untilBatches(1)
    const listed = await on.api.request('GET', `/v1/admin/buffers?customerId=${on.api.customerId}`)
    expect(listed.status).to.equal(200)
    expect(signed.requests()).to.deep.equal([])
    expect(await on.api.deadLetters(signed.bufferId)).to.deep.equal([])
    expect(on.installation.events('a secret cannot be read', { bufferId: signed.bufferId })).to.not.be.empty

    await restart(`${NEW},${OLD}`)
    await signed.untilItems(1)
    expectSigned(signed, 'hush')
    expect((await health()).checks.secrets).to.equal('ok')
  })

  it('is replaced beside the running service, and the old one is not needed afterwards', async () => {
    await restart(OLD)
    const channel = await on.channel({ batch: SOON, delivery: { signing: { secret: 'kept' } } as never })
    await restart(`${NEW},${OLD}`)
    const check = await rekey(`${NEW},${OLD}`, '--check')
    expect(check.code).to.equal(1)
    expect(check.stdout).to.match(/^\d+ rows? of buffers under the key old\n$/)
    const moved = await rekey(`${NEW},${OLD}`)
    expect(moved.stdout).to.match(/moved to the key new: all secrets are under the key new\n$/)
    expect(moved.code).to.equal(0)
    expect(await rekey(NEW, '--check')).to.deep.equal({
      code: 0,
      stdout: 'all secrets are under the key new\n',
    })
    await channel.send({ group: 'a', n: 1 })
    await channel.untilItems(1)
    await restart(NEW)
    await channel.send({ group: 'a', n: 2 })
    await channel.untilItems(2)
    expectSigned(channel, 'kept')
    expect((await health()).checks.secrets).to.equal('ok')
    expect(await withoutKey()).to.equal(0)
  })

  it('is lost for good: a new secret heals the buffer, and what was held goes out with it', async () => {
    const channel = await on.channel({ batch: SOON, delivery: { signing: { secret: 'lost' } } as never })
    await restart(OLD)
    await channel.send({ group: 'a' })
    await eventually(
      () => on.installation.events('a secret cannot be read', { bufferId: channel.bufferId })[0],
    )
    const left = await rekey(OLD)
    expect(left.code).to.equal(1)
    expect(left.stdout).to.include('of buffers under the key new, which is not configured\n')
    await channel.patch({ delivery: { signing: { secret: 'found' } } })
    await channel.untilItems(1)
    expectSigned(channel, 'found')
  })
})
