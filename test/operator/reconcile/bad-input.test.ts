import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import type { Service } from '../../support/service.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { condition, inTime, OperatorHarness } from './harness.ts'
import { authorityFile, type TlsFront, tlsFront } from './tls-front.ts'

describe('an operator that is sent to the wrong place', function () {
  this.timeout(180_000)
  let harness: OperatorHarness
  let front: TlsFront
  /** Those that no operator could create so far. */
  const names: string[] = []

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    front = await tlsFront(Number(new URL(harness.proxy.url).port))
  })

  after(async () => {
    await harness?.close()
    await front?.close()
  })

  const secure = (host = '127.0.0.1') => `https://${host}:${front.port}`
  const unreachable = 'the admin API cannot be reached: '
  const cases: readonly [title: string, env: () => Record<string, string>, message: string][] = [
    [
      'where nobody listens',
      () => ({ PENSTOCK_ADMIN_URL: 'http://127.0.0.1:9' }),
      `${unreachable}connect ECONNREFUSED 127.0.0.1:9`,
    ],
    [
      'to another path',
      () => ({ PENSTOCK_ADMIN_URL: `${harness.proxy.url}/elsewhere` }),
      'the admin API answered 404: Not found',
    ],
    [
      'to a certificate that nobody vouches for',
      () => ({ PENSTOCK_ADMIN_URL: secure() }),
      `${unreachable}unable to verify the first certificate`,
    ],
    [
      'to a host that the certificate does not name',
      () => ({ PENSTOCK_ADMIN_URL: secure('localhost'), PENSTOCK_ADMIN_CA_FILE: authorityFile }),
      `${unreachable}Hostname/IP does not match certificate's altnames`,
    ],
  ]
  for (const [title, env, message] of cases) {
    it(`${title} says so by a condition and one Event a resource, and repeats it ever later`, async () => {
      const own = [harness.name('led-astray'), harness.name('led-astray')]
      for (const name of own) await harness.create(name)
      const operator = await harness.operate(env())
      for (const name of own) {
        const found = await harness.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
        expect(condition(found, 'Reconciling')?.message).to.include(message)
        expect(condition(found, 'Ready')?.status).to.equal('False')
        await inTime(() => failuresOf(operator, `${harness.namespace}/${name}`) >= 4)
        await harness.untilEvent(name, 'ServiceUnavailable')
        expect(await reasonsOf(name)).to.deep.equal(['ServiceUnavailable'])
      }
      names.push(...own)
      operator.child.kill('SIGTERM')
      expect(await operator.exited()).to.equal(0)
    })
  }

  it('makes all of them ready once it is told where, and by what authority', async () => {
    await harness.operate({ PENSTOCK_ADMIN_URL: secure(), PENSTOCK_ADMIN_CA_FILE: authorityFile })
    expect(names).to.have.length(2 * cases.length)
    for (const name of names) {
      const { status } = await harness.untilReady(name)
      expect(status?.bufferId).to.equal(name)
    }
  })

  it('that finds keys of bytes or nothing tells each by a condition and one Event, beside one that is right', async () => {
    const values = { bytes: new Uint8Array([0xff, 0xfe, 0x00]), nothing: '', blank: ' \n' }
    const reasons = { bytes: 'SecretInvalid', nothing: 'SecretInvalid', blank: 'InvalidCredentials' }
    const secret = harness.name('bad-keys')
    await harness.createSecret(secret, values)
    const [right, ...wrong] = ['right', ...Object.keys(values)].map((each) => harness.name(each)) as [string]
    for (const [index, key] of Object.keys(values).entries()) {
      await harness.create(wrong[index]!, { credentialsRef: { name: secret, key } })
    }
    await harness.create(right)
    await harness.untilReady(right)
    for (const [index, reason] of Object.values(reasons).entries()) {
      const name = wrong[index]!
      await harness.untilCondition(name, 'Stalled', { reason })
      await harness.untilEvent(name, reason)
      expect(await reasonsOf(name)).to.deep.equal([reason])
      expect(harness.proxy.seen(name)).to.deep.equal([])
    }
  })

  async function reasonsOf(name: string): Promise<string[]> {
    const events = (await harness.events()).filter(({ regarding }) => regarding.name === name)
    return events.map(({ reason }) => reason)
  }
})

function failuresOf({ events }: Service, resource: string): number {
  return events.filter((each) => each.msg === 'reconcile failed' && each.resource === resource).length
}
