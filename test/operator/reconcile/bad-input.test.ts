import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import type { Service } from '../../support/service.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { condition, inTime, Stand } from './stand.ts'
import { authorityFile, type TlsFront, tlsFront } from './tls-front.ts'

describe('an operator that is sent to the wrong place', function () {
  this.timeout(180_000)
  let stand: Stand
  let front: TlsFront
  /** Those that no operator could create so far. */
  const names: string[] = []

  before(async function () {
    const cluster = await kubeOrSkip(this)
    stand = await Stand.open(cluster, await sharedInstallation())
    front = await tlsFront(Number(new URL(stand.proxy.url).port))
  })

  after(async () => {
    await stand?.close()
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
      () => ({ PENSTOCK_ADMIN_URL: `${stand.proxy.url}/elsewhere` }),
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
      const own = [stand.name('led-astray'), stand.name('led-astray')]
      for (const name of own) await stand.create(name)
      const operator = await stand.operate(env())
      for (const name of own) {
        const found = await stand.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
        expect(condition(found, 'Reconciling')?.message).to.include(message)
        expect(condition(found, 'Ready')?.status).to.equal('False')
        await inTime(() => failuresOf(operator, `${stand.namespace}/${name}`) >= 4)
        await stand.untilEvent(name, 'ServiceUnavailable')
        expect(await reasonsOf(name)).to.deep.equal(['ServiceUnavailable'])
      }
      names.push(...own)
      operator.child.kill('SIGTERM')
      expect(await operator.exited()).to.equal(0)
    })
  }

  it('makes all of them ready once it is told where, and by what authority', async () => {
    await stand.operate({ PENSTOCK_ADMIN_URL: secure(), PENSTOCK_ADMIN_CA_FILE: authorityFile })
    expect(names).to.have.length(2 * cases.length)
    for (const name of names) {
      const { status } = await stand.untilReady(name)
      expect(status?.bufferId).to.equal(name)
    }
  })

  it('that finds keys of bytes or nothing tells each by a condition and one Event, beside one that is right', async () => {
    const values = { bytes: new Uint8Array([0xff, 0xfe, 0x00]), nothing: '', blank: ' \n' }
    const reasons = { bytes: 'SecretInvalid', nothing: 'SecretInvalid', blank: 'InvalidCredentials' }
    const secret = stand.name('bad-keys')
    await stand.createSecret(secret, values)
    const [right, ...wrong] = ['right', ...Object.keys(values)].map((each) => stand.name(each)) as [string]
    for (const [index, key] of Object.keys(values).entries()) {
      await stand.create(wrong[index]!, { credentialsRef: { name: secret, key } })
    }
    await stand.create(right)
    await stand.untilReady(right)
    for (const [index, reason] of Object.values(reasons).entries()) {
      const name = wrong[index]!
      await stand.untilCondition(name, 'Stalled', { reason })
      await stand.untilEvent(name, reason)
      expect(await reasonsOf(name)).to.deep.equal([reason])
      expect(stand.proxy.seen(name)).to.deep.equal([])
    }
  })

  async function reasonsOf(name: string): Promise<string[]> {
    const events = (await stand.events()).filter(({ regarding }) => regarding.name === name)
    return events.map(({ reason }) => reason)
  }
})

function failuresOf({ events }: Service, resource: string): number {
  return events.filter((each) => each.msg === 'reconcile failed' && each.resource === resource).length
}
