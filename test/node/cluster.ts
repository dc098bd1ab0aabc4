/** The chart's values for a cluster, in real pods: each role over three NATS servers and a Postgres. */
import { randomBytes } from 'node:crypto'
import type { Server } from 'node:https'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import type { Values } from '../chart/helm.ts'
import { eventually } from '../support/eventually.ts'
import { drain, killProgram } from './disruption.ts'
import { serveMetrics } from './metrics-api.ts'
import { Place } from './place.ts'
import { node, tell } from './real-node.ts'
import { deliveredAll, repeated, twoBodies } from './receiver.ts'
import { Sender } from './sender.ts'
import { startStores, storeValues } from './stores.ts'

const INGRESS = 'p-penstock-ingress'
const ADMIN = 'p-penstock-admin'
const ROLES = ['ingress', 'admin', 'actor', 'operator']
/** Pods that the autoscaler may have. */
const MOST = 5
const KEY = `svk_${randomBytes(24).toString('hex')}`
// Not by the chart, for another release of this node may have it installed.
const values: Values = { ...storeValues, crds: { install: false } }

describe('a cluster of pods', () => {
  const killed: string[] = []
  let place: Place
  let metrics: Server | undefined
  before(async function () {
    this.timeout(1_800_000)
    place = await Place.make(await node(), 'cluster')
    metrics = await serveMetrics(place.cluster)
    const definitions = join(import.meta.dirname, '..', '..', 'crds')
    await place.kubectl('apply', '--server-side', '--force-conflicts', '-f', definitions)
    await startStores(place, KEY)
  })
  after(() => metrics?.close())
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') await place.tellAll()
  })

  it('is installed', async () => {
    await place.install(values)
  })

  it('makes a buffer of a resource', async () => {
    await place.makeProject(ADMIN, KEY)
    await place.makeBuffer(KEY, { idleTimeoutMs: 500 })
  })

  it('delivers a webhook that came through the Service to a pod', async () => {
    const sender = new Sender(await place.ingestUrl(INGRESS), 'first')
    await sender.send('ada', 0)
    const [batch] = await deliveredAll(await place.url('receiver'), sender.accepted)
    expect(batch!.key).to.match(/^grp:.+:v\d+$/)
  })

  it('answers everybody and repeats nothing while an actor is ended and an upgrade replaces all pods', async () => {
    const sender = new Sender(await place.ingestUrl(INGRESS), 'replaced')
    sender.start()
    const before = await all()
    await place.kubectl('delete', 'pod', before.actor![0]!, '--wait')
    await place.kubectl('rollout', 'status', 'deployment/p-penstock-actor', '--timeout=180s')
    await place.upgrade({ config: { initialCredits: 200_000 } })
    const replaced = await all()
    // The settings are none of the operator's.
    for (const role of ['ingress', 'admin', 'actor'])
      expect(replaced[role], role).not.to.include.members(before[role]!)
    await sender.stop()
    const delivered = await deliveredAll(await place.url('receiver'), sender.accepted)
    const { accepted, refused } = sender
    tell(`${accepted.length} webhooks in ${delivered.length} batches, ${refused.length} attempts refused`)
    expect(refused.filter(({ problem }) => !problem.startsWith('503'))).to.deep.equal([])
    // What was refused may have been stored after all, when the refusal was a time-out.
    const certain = repeated(delivered).filter((id) => !refused.some(({ messageId }) => messageId === id))
    expect(certain).to.deep.equal([])
  })

  it('loses nothing when an actor and an ingress are ended without grace', async () => {
    const sender = new Sender(await place.ingestUrl(INGRESS), 'ended')
    const { actor, ingress } = await all()
    sender.start()
    await place.kubectl('delete', 'pod', actor![0]!, ingress![0]!, '--force', '--grace-period=0')
    for (const role of ['actor', 'ingress'])
      await place.kubectl('rollout', 'status', `deployment/p-penstock-${role}`, '--timeout=180s')
    await sender.stop()
    const delivered = await deliveredAll(await place.url('receiver'), sender.accepted)
    tell(`${sender.accepted.length} accepted, ${sender.refused.length} attempts refused or unanswered`)
    expect(twoBodies(delivered)).to.deep.equal([])
  })

  it('refuses, loses and repeats nothing while a drain evicts all pods, as the budgets allow it', async () => {
    const sender = new Sender(await place.ingestUrl(INGRESS), 'drained')
    const before = await all()
    await sender.during(async () => {
      const refusals = await Promise.all(ROLES.map(async (role) => [role, await drain(place, role)]))
      // All pods of a role at once are more than its budget lets go.
      for (const [role, count] of refusals) expect(count, `${role}`).to.be.above(0)
    })
    const replaced = await all()
    for (const role of ROLES) expect(replaced[role], role).not.to.include.members(before[role]!)
    await place.judge(sender)
  })

  it('passes helm test', () => place.test())

  it('has no container that ended by itself', async () => {
    expect(await place.restarts()).to.deep.equal([])
  })

  for (const role of ROLES)
    it(`loses nothing when the program of a pod is killed: ${role}`, async () => {
      const sender = new Sender(await place.ingestUrl(INGRESS), `killed-${role}`)
      await sender.during(async () => killed.push(await killProgram(place, role)))
      const delivered = await deliveredAll(await place.url('receiver'), sender.accepted)
      tell(
        `${role}: ${sender.accepted.length} accepted, ${sender.refused.length} attempts refused or unanswered`,
      )
      // The others of its role serve on: only what its own program had in its hands is unanswered.
      if (role === 'admin' || role === 'operator') expect(sender.refused).to.deep.equal([])
      expect(twoBodies(delivered)).to.deep.equal([])
    })

  it('follows its resource after that', async () => {
    await place.kubectl(
      'patch',
      'buffer',
      'orders',
      '--type=merge',
      '-p',
      '{"spec":{"batch":{"idleTimeoutMs":700}}}',
    )
    await place.kubectl(
      'wait',
      'buffer/orders',
      '--for=jsonpath={.status.observedGeneration}=2',
      '--timeout=60s',
    )
    await place.kubectl('wait', 'buffer/orders', '--for=condition=Ready', '--timeout=60s')
  })

  it('has no container that ended but those', async () => {
    expect((await place.restarts()).map((each) => each.split(':')[0]).sort()).to.deep.equal(killed.sort())
  })

  it('gets pods of an autoscaler for its load, and an upgrade and a rollback take none away', async () => {
    // Before autoscaling, so that no revision of the release holds a number: the chart's page, "Autoscaling".
    await place.kubectl('scale', `deployment/${INGRESS}`, '--replicas=3')
    await place.upgrade({
      ingress: { autoscaling: { enabled: true, minReplicas: 2, maxReplicas: MOST, cpuPercent: 50 } },
    })
    const sender = new Sender(await place.ingestUrl(INGRESS), 'scaled')
    await sender.during(async () => {
      await eventually(async () => (await replicas()) === MOST, { timeoutMs: 300_000, everyMs: 1_000 })
      await place.kubectl('rollout', 'status', `deployment/${INGRESS}`, '--timeout=180s')
      const numbers = await place.watched(`deployment/${INGRESS}`, '{.spec.replicas}', async () => {
        await place.upgrade({ config: { initialCredits: 300_000 } })
        await place.rollback()
      })
      // Each of the two changed it, at the least.
      expect(numbers.length).to.be.above(2)
      expect(new Set(numbers)).to.deep.equal(new Set([`${MOST}`]))
    })
    await place.judge(sender)
  })

  it('takes the buffer away with its resource', async () => {
    expect(await place.deleteBuffer(ADMIN, KEY)).to.equal(404)
  })

  it('goes with an uninstall', async () => {
    expect(await place.uninstall()).to.deep.equal([])
  })

  async function replicas(): Promise<number> {
    return Number(await place.kubectl('get', `deployment/${INGRESS}`, '-o', 'jsonpath={.spec.replicas}'))
  }

  async function all(): Promise<Record<string, string[]>> {
    const found: Record<string, string[]> = {}
    for (const component of ROLES)
      found[component] = (await place.pods(component)).map(({ metadata }) => metadata.name)
    return found
  }
})
