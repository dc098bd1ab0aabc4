import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { BadNotificationError } from '../../../internal/billing/readings.ts'
import { sign } from '../../../internal/domain/signature.ts'
import type { LocalProvider } from '../../../internal/payments/local/local-provider.ts'
import type { SignedNotification } from '../../../internal/payments/local/ports.ts'
import { signed } from '../../../internal/payments/local/signature.ts'
import { connect, type Database } from '../../../internal/postgres/connection.ts'
import { arrived, localProviderOver, publishDefaultCatalogue, Told } from '../../support/local-payments.ts'
import { freshDatabase } from '../../support/servers.ts'

describe('the local payment provider refuses a notification', () => {
  let db: Database
  let provider: LocalProvider
  let told: Told
  let now: number
  let genuine: SignedNotification
  let secret: string

  before(async () => {
    db = connect(await freshDatabase(), { max: 6 })
    await publishDefaultCatalogue(db)
  })
  after(() => db.end())
  beforeEach(async () => {
    await db`UPDATE local_payments SET document = NULL`
    told = new Told()
    now = Date.UTC(2026, 4, 20)
    provider = localProviderOver(db, told, { now: () => now })
    const url = await provider.checkoutUrl({
      buys: 'plan',
      planId: 'starter',
      customerId: 'ada',
      offerId: null,
    })
    await provider.choose(url!.split('/').at(-1)!, { outcome: 'pays' })
    genuine = told.notifications[0]!
    const [row] = await db`SELECT document ->> 'secret' AS secret FROM local_payments`
    secret = row!.secret
  })

  async function problemOf(body: Uint8Array | string, headers: Record<string, string>): Promise<string> {
    const notification = arrived({ body: Buffer.from(body), headers })
    const answer = await provider.notification(notification).catch((error: unknown) => error)
    expect(answer).to.be.instanceOf(BadNotificationError)
    return (answer as Error).message
  }

  /** A body that is signed as the provider's own. */
  async function signedProblemOf(text: string): Promise<string> {
    const time = String(Math.floor(now / 1_000))
    const signature = sign(secret, Buffer.from(`${time}.${text}`))
    return problemOf(text, { 'penstock-local-signature': `t=${time},v1=${signature}` })
  }

  it('without a signature, and with one that is none', async () => {
    const none = 'penstock-local-signature is missing or not valid'
    expect(await problemOf(genuine.body, {})).to.equal(none)
    for (const value of ['', 'v1=00', 't=1,v1=zz', `t=x,v1=${'0'.repeat(64)}`, `t=1,v1=${'0'.repeat(65)}`]) {
      expect(await problemOf(genuine.body, { 'penstock-local-signature': value }), value).to.equal(none)
    }
  })

  it('with the signature of another body or another secret', async () => {
    const other = 'penstock-local-signature is not the one of this body'
    expect(await problemOf(`${Buffer.from(genuine.body)} `, genuine.headers)).to.equal(other)
    const event = { ...told.bodies[0], isTold: false, decides: null }
    const forged = signed('another', event, now)
    expect(await problemOf(forged.body, forged.headers)).to.equal(other)
    await db`UPDATE local_payments SET document = NULL`
    expect(await problemOf(genuine.body, genuine.headers)).to.equal(other)
  })

  it('that is old, or ahead of its time', async () => {
    now += 300_000
    expect(await provider.notification(arrived(genuine))).to.have.length(1)
    now += 1_000
    const old = 'penstock-local-signature is not of the last 300 s'
    expect(await problemOf(genuine.body, genuine.headers)).to.equal(old)
    now -= 602_000
    expect(await problemOf(genuine.body, genuine.headers)).to.equal(old)
  })

  it('in which a field is missing, or of another type', async () => {
    const fields = {
      eventId: 'eventId is no identifier',
      objectId: 'objectId is no identifier',
      customerId: 'customerId is no identifier',
      subscriptionId: 'subscriptionId is no identifier',
      at: 'at is no time',
      kind: 'kind is not known',
    }
    const good = told.bodies[0]
    for (const [field, problem] of Object.entries(fields)) {
      const wrong = [null, 1.5, {}, [], '', 'x'.repeat(10_000), 'a b', true]
      const values = field === 'subscriptionId' ? wrong : [undefined, ...wrong]
      for (const value of values) {
        const text = JSON.stringify({ ...good, [field]: value })
        expect(await signedProblemOf(text), `${field}: ${JSON.stringify(value)?.slice(0, 20)}`).to.equal(
          problem,
        )
      }
    }
    expect(await signedProblemOf('{')).to.equal('the body is not JSON')
    expect(await signedProblemOf('')).to.equal('the body is not JSON')
    for (const text of ['null', '7', '"x"'])
      expect(await signedProblemOf(text)).to.equal('the body is no object')
    expect(await signedProblemOf('[]')).to.equal('eventId is no identifier')
  })
})
