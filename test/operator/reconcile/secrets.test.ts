import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { condition, inTime, OperatorHarness } from './harness.ts'

/** Every value that a test puts into a Secret; none may be seen anywhere else than at the service. */
const VALUES = [
  'signing-secret-one',
  'signing-secret-two',
  'source-secret-one',
  'source-secret-two',
  'source-secret-before',
  'header-value-one',
  'header-value-two',
  'not-a-key-at-all',
]

describe('the Secrets of a Buffer resource', function () {
  this.timeout(180_000)
  let harness: OperatorHarness
  /** Of every role that a test asks for. */
  const keys: string[] = []

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    keys.push(harness.api.key!)
    await harness.operate()
  })

  after(() => harness?.close())

  async function newKey(role: string): Promise<{ keyId: string; secret: string }> {
    const key = await harness.api.createKey({ role })
    keys.push(key.secret)
    return key
  }

  const signedBy = (name: string) => ({
    url: 'http://127.0.0.1:9/hook',
    headersFrom: [{ name: 'X-Token', secretKeyRef: { name, key: 'token' } }],
    signing: { secretKeyRef: { name, key: 'signing' } },
  })
  const verifiedBy = (name: string) => ({ enabled: true, secretKeyRef: { name, key: 'source' } })
  const alsoBy = (name: string) => ({ ...verifiedBy(name), previousSecretKeyRef: { name, key: 'before' } })
  const one = { signing: VALUES[0]!, source: VALUES[2]!, token: VALUES[5]! }

  it('may come later than the resource', async () => {
    const name = harness.name('late')
    await harness.create(name, { delivery: signedBy(name), sourceVerification: verifiedBy(name) })
    const waiting = await harness.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    expect(condition(waiting, 'Stalled')?.message).to.equal(`Secret ${name} does not exist`)
    expect(harness.proxy.seen(name)).to.have.length(0)
    await harness.createSecret(name, { signing: one.signing })
    await inTime(
      async () =>
        condition(await harness.read(name), 'Stalled')?.message === `Secret ${name} has no key source`,
    )
    await harness.patchSecret(name, one)
    await harness.untilReady(name)
    const { delivery, sourceVerification } = await harness.api.readBuffer(name)
    expect(delivery.signing?.secret).to.equal(one.signing)
    expect(delivery.headers).to.deep.equal({ 'X-Token': one.token })
    expect(sourceVerification).to.deep.include({ enabled: true, signingSecret: one.source })
  })

  it('reach the service when they are rotated, and stand in the status by their version only', async () => {
    const name = harness.name('rotated')
    await harness.createSecret(name, one)
    await harness.create(name, { delivery: signedBy(name), sourceVerification: verifiedBy(name) })
    const before = await harness.untilReady(name)
    await harness.patchSecret(name, { signing: VALUES[1]! })
    await inTime(async () => (await harness.api.readBuffer(name)).delivery.signing?.secret === VALUES[1])
    await harness.patchSecret(name, { source: VALUES[3]!, token: VALUES[6]! })
    await inTime(async () => (await harness.api.readBuffer(name)).delivery.headers?.['X-Token'] === VALUES[6])
    const buffer = await harness.api.readBuffer(name)
    expect(buffer.sourceVerification?.signingSecret).to.equal(VALUES[3])
    const after = await inTime(async () => {
      const { status } = await harness.read(name)
      const version = status?.secretVersions?.find((each) => each.name === name)?.resourceVersion
      const old = before.status?.secretVersions?.find((each) => each.name === name)?.resourceVersion
      return version !== undefined && version !== old && status!
    })
    expect(after.secretVersions?.map((each) => Object.keys(each).sort())).to.deep.equal([
      ['name', 'resourceVersion'],
      ['name', 'resourceVersion'],
    ])
  })

  it('may be two, while a sender changes its own, and one again', async () => {
    const name = harness.name('two')
    await harness.createSecret(name, { ...one, before: VALUES[4]! })
    await harness.create(name, { sourceVerification: { ...alsoBy(name), scheme: 'stripe' } })
    await harness.untilReady(name)
    const { sourceVerification } = await harness.api.readBuffer(name)
    expect(sourceVerification).to.deep.include({
      scheme: 'stripe',
      signingSecret: one.source,
      previousSecret: VALUES[4],
      signatureHeader: 'stripe-signature',
    })
    await harness.patch(name, { spec: { sourceVerification: { scheme: null, previousSecretKeyRef: null } } })
    await inTime(async () => {
      const { sourceVerification: now } = await harness.api.readBuffer(name)
      return now?.previousSecret === undefined && now?.signatureHeader === 'x-webhook-signature'
    })
  })

  it('that the scheme cannot use are refused, and nothing of them is told', async () => {
    const name = harness.name('unusable')
    await harness.createSecret(name, one)
    await harness.create(name, { sourceVerification: { ...verifiedBy(name), scheme: 'standard-webhooks' } })
    const refused = await harness.untilCondition(name, 'Stalled', { reason: 'InvalidSpec' })
    expect(condition(refused, 'Stalled')?.message).to.equal(
      'sourceVerification.signingSecret must be base64, with or without whsec_ in front, for the scheme standard-webhooks',
    )
  })

  it('heal whoever names them: a vanished one comes back', async () => {
    const name = harness.name('vanished')
    await harness.createSecret(name, one)
    await harness.create(name, { delivery: signedBy(name) })
    await harness.untilReady(name)
    await harness.removeSecret(name)
    await harness.untilCondition(name, 'Stalled', { reason: 'SecretNotFound' })
    await harness.createSecret(name, one)
    const healed = await harness.untilReady(name)
    expect(condition(healed, 'Stalled')).to.equal(undefined)
  })

  it('with empty or binary values are told as such', async () => {
    const name = harness.name('binary')
    await harness.createSecret(name, { ...one, signing: '' })
    await harness.create(name, { delivery: signedBy(name) })
    await harness.untilCondition(name, 'Stalled', { reason: 'SecretInvalid' })
    await harness.patchSecret(name, { signing: new Uint8Array([0xff, 0xfe, 0x00]) })
    await inTime(async () => {
      const message = condition(await harness.read(name), 'Stalled')?.message
      return message === `signing of Secret ${name} is no text in UTF-8`
    })
    await harness.patchSecret(name, one)
    await harness.untilReady(name)
  })

  it('that end in a line feed are told by an Event', async () => {
    const name = harness.name('ended')
    await harness.createSecret(name, { ...one, signing: `${one.signing}\n` })
    await harness.create(name, { delivery: signedBy(name) })
    const { note } = await harness.untilEvent(name, 'SecretLineEnd')
    expect(note).to.equal(`the line end at the end of signing of Secret ${name} was left out`)
  })

  it('with a newline in a header are told as such', async () => {
    const name = harness.name('lined')
    await harness.createSecret(name, { ...one, token: `${one.token}\nmore` })
    await harness.create(name, { delivery: signedBy(name) })
    const refused = await harness.untilCondition(name, 'Stalled', { reason: 'SecretInvalid' })
    expect(condition(refused, 'Stalled')?.message).to.equal(
      `token of Secret ${name} has a newline, which no header can have`,
    )
    await harness.patchSecret(name, one)
    await harness.untilReady(name)
  })

  it('hold the API key, which may be exchanged while the old one is revoked', async () => {
    const name = harness.name('keyed')
    const [first, second] = [await newKey('member'), await newKey('member')]
    await harness.createSecret(name, { apiKey: `${first.secret}\n` })
    await harness.create(name, { credentialsRef: { name } })
    await harness.untilReady(name)
    await harness.api.expect(204, 'DELETE', `/v1/admin/api-keys/${first.keyId}`)
    await harness.patch(name, { spec: { displayName: 'needs the key' } })
    const refused = await harness.untilCondition(name, 'Stalled', { reason: 'InvalidCredentials' })
    expect(condition(refused, 'Ready')?.status).to.equal('False')
    await harness.patchSecret(name, { apiKey: second.secret })
    await harness.untilReady(name)
    expect((await harness.api.readBuffer(name)).name).to.equal('needs the key')
    await harness.api.expect(204, 'DELETE', `/v1/admin/api-keys/${second.keyId}`)
  })

  it('with the key of a viewer, or with none, say so', async () => {
    const name = harness.name('viewed')
    const viewer = await newKey('viewer')
    await harness.createSecret(name, { apiKey: viewer.secret })
    await harness.create(name, { credentialsRef: { name } })
    const refused = await harness.untilCondition(name, 'Stalled', { reason: 'Forbidden' })
    expect(condition(refused, 'Stalled')?.message).to.include('Requires one of the following roles')
    await harness.untilEvent(name, 'Forbidden')
    const asked = harness.proxy.seen(name).length
    await harness.patchSecret(name, { apiKey: VALUES[7]! })
    await harness.untilCondition(name, 'Stalled', { reason: 'InvalidCredentials' })
    expect(harness.proxy.seen(name)).to.have.length(asked)
    await harness.patchSecret(name, { apiKey: harness.api.key! })
    await harness.untilReady(name)
    await harness.api.expect(204, 'DELETE', `/v1/admin/api-keys/${viewer.keyId}`)
  })

  it('stand in no log, no status and no Event', async () => {
    const [statuses, events] = [(await harness.list()).map(({ status }) => status), await harness.events()]
    expect(statuses).to.not.be.empty
    expect(events).to.not.be.empty
    const told = [harness.output(), JSON.stringify(statuses), JSON.stringify(events)]
    expect(harness.output()).to.include('reconciled')
    for (const value of [...VALUES, ...keys]) {
      const encoded = Buffer.from(value).toString('base64')
      for (const text of told) {
        expect(text.includes(value), value).to.equal(false)
        expect(text.includes(encoded), value).to.equal(false)
      }
    }
  })
})
