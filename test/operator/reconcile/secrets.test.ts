import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { condition, inTime, Stand } from './stand.ts'

/** Every value that a test puts into a Secret; none may be seen anywhere else than at the service. */
const VALUES = [
  'signing-secret-one',
  'signing-secret-two',
  'source-secret-one',
  'source-secret-two',
  'header-value-one',
  'header-value-two',
  'not-a-key-at-all',
]

describe('the Secrets of a Buffer resource', function () {
  this.timeout(180_000)
  let stand: Stand
  /** Of every role that a test asks for. */
  const keys: string[] = []

  before(async function () {
    const cluster = await kubeOrSkip(this)
    stand = await Stand.open(cluster, await sharedInstallation())
    keys.push(stand.api.key!)
    await stand.operate()
  })

  after(() => stand?.close())

  async function newKey(role: string): Promise<{ keyId: string; secret: string }> {
    const key = await stand.api.createKey({ role })
    keys.push(key.secret)
    return key
  }

  const signedBy = (name: string) => ({
    url: 'http://127.0.0.1:9/hook',
    headersFrom: [{ name: 'X-Token', secretKeyRef: { name, key: 'token' } }],
    signing: { secretKeyRef: { name, key: 'signing' } },
  })
  const verifiedBy = (name: string) => ({ enabled: true, secretKeyRef: { name, key: 'source' } })
  const one = { signing: VALUES[0]!, source: VALUES[2]!, token: VALUES[4]! }

  it('may come later than the resource', async () => {
    const name = stand.name('late')
    await stand.create(name, { delivery: signedBy(name), sourceVerification: verifiedBy(name) })
    const waiting = await stand.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    expect(condition(waiting, 'Stalled')?.message).to.equal(`Secret ${name} does not exist`)
    expect(stand.proxy.seen(name)).to.have.length(0)
    await stand.createSecret(name, { signing: one.signing })
    await inTime(
      async () =>
        condition(await stand.read(name), 'Stalled')?.message === `Secret ${name} has no key source`,
    )
    await stand.patchSecret(name, one)
    await stand.untilReady(name)
    const { delivery, sourceVerification } = await stand.api.readBuffer(name)
    expect(delivery.signing?.secret).to.equal(one.signing)
    expect(delivery.headers).to.deep.equal({ 'X-Token': one.token })
    expect(sourceVerification).to.deep.include({ enabled: true, signingSecret: one.source })
  })

  it('reach the service when they are rotated, and stand in the status by their version only', async () => {
    const name = stand.name('rotated')
    await stand.createSecret(name, one)
    await stand.create(name, { delivery: signedBy(name), sourceVerification: verifiedBy(name) })
    const before = await stand.untilReady(name)
    await stand.patchSecret(name, { signing: VALUES[1]! })
    await inTime(async () => (await stand.api.readBuffer(name)).delivery.signing?.secret === VALUES[1])
    await stand.patchSecret(name, { source: VALUES[3]!, token: VALUES[5]! })
    await inTime(async () => (await stand.api.readBuffer(name)).delivery.headers?.['X-Token'] === VALUES[5])
    const buffer = await stand.api.readBuffer(name)
    expect(buffer.sourceVerification?.signingSecret).to.equal(VALUES[3])
    const after = await inTime(async () => {
      const { status } = await stand.read(name)
      const version = status?.secretVersions?.find((each) => each.name === name)?.resourceVersion
      const old = before.status?.secretVersions?.find((each) => each.name === name)?.resourceVersion
      return version !== undefined && version !== old && status!
    })
    expect(after.secretVersions?.map((each) => Object.keys(each).sort())).to.deep.equal([
      ['name', 'resourceVersion'],
      ['name', 'resourceVersion'],
    ])
  })

  it('heal whoever names them: a vanished one comes back', async () => {
    const name = stand.name('vanished')
    await stand.createSecret(name, one)
    await stand.create(name, { delivery: signedBy(name) })
    await stand.untilReady(name)
    await stand.removeSecret(name)
    await stand.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    await stand.createSecret(name, one)
    const healed = await stand.untilReady(name)
    expect(condition(healed, 'Stalled')).to.equal(undefined)
  })

  it('with empty or binary values are told as such', async () => {
    const name = stand.name('binary')
    await stand.createSecret(name, { ...one, signing: '' })
    await stand.create(name, { delivery: signedBy(name) })
    await stand.untilCondition(name, 'Stalled', { reason: 'SecretInvalid' })
    await stand.patchSecret(name, { signing: new Uint8Array([0xff, 0xfe, 0x00]) })
    await inTime(async () => {
      const message = condition(await stand.read(name), 'Stalled')?.message
      return message === `signing of Secret ${name} is no text in UTF-8`
    })
    await stand.patchSecret(name, one)
    await stand.untilReady(name)
  })

  it('with a newline in a header are told as such', async () => {
    const name = stand.name('lined')
    await stand.createSecret(name, { ...one, token: `${one.token}\n` })
    await stand.create(name, { delivery: signedBy(name) })
    const refused = await stand.untilCondition(name, 'Stalled', { reason: 'SecretInvalid' })
    expect(condition(refused, 'Stalled')?.message).to.equal(
      `token of Secret ${name} has a newline, which no header can have`,
    )
    await stand.patchSecret(name, one)
    await stand.untilReady(name)
  })

  it('hold the API key, which may be exchanged while the old one is revoked', async () => {
    const name = stand.name('keyed')
    const [first, second] = [await newKey('member'), await newKey('member')]
    await stand.createSecret(name, { apiKey: `${first.secret}\n` })
    await stand.create(name, { credentialsRef: { name } })
    await stand.untilReady(name)
    await stand.api.expect(204, 'DELETE', `/v1/admin/api-keys/${first.keyId}`)
    await stand.patch(name, { spec: { displayName: 'needs the key' } })
    const refused = await stand.untilCondition(name, 'Stalled', { reason: 'InvalidCredentials' })
    expect(condition(refused, 'Ready')?.status).to.equal('False')
    await stand.patchSecret(name, { apiKey: second.secret })
    await stand.untilReady(name)
    expect((await stand.api.readBuffer(name)).name).to.equal('needs the key')
    await stand.api.expect(204, 'DELETE', `/v1/admin/api-keys/${second.keyId}`)
  })

  it('with the key of a viewer, or with none, say so', async () => {
    const name = stand.name('viewed')
    const viewer = await newKey('viewer')
    await stand.createSecret(name, { apiKey: viewer.secret })
    await stand.create(name, { credentialsRef: { name } })
    const refused = await stand.untilCondition(name, 'Stalled', { reason: 'Forbidden' })
    expect(condition(refused, 'Stalled')?.message).to.include('Requires one of the following roles')
    await stand.untilEvent(name, 'Forbidden')
    const asked = stand.proxy.seen(name).length
    await stand.patchSecret(name, { apiKey: VALUES[6]! })
    await stand.untilCondition(name, 'Stalled', { reason: 'InvalidCredentials' })
    expect(stand.proxy.seen(name)).to.have.length(asked)
    await stand.patchSecret(name, { apiKey: stand.api.key! })
    await stand.untilReady(name)
    await stand.api.expect(204, 'DELETE', `/v1/admin/api-keys/${viewer.keyId}`)
  })

  it('stand in no log, no status and no Event', async () => {
    const [statuses, events] = [(await stand.list()).map(({ status }) => status), await stand.events()]
    expect(statuses).to.not.be.empty
    expect(events).to.not.be.empty
    const told = [stand.output(), JSON.stringify(statuses), JSON.stringify(events)]
    expect(stand.output()).to.include('reconciled')
    for (const value of [...VALUES, ...keys]) {
      const encoded = Buffer.from(value).toString('base64')
      for (const text of told) {
        expect(text.includes(value), value).to.equal(false)
        expect(text.includes(encoded), value).to.equal(false)
      }
    }
  })
})
