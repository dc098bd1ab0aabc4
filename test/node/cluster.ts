/** The chart's values for a cluster, in real pods: each role over three NATS servers and a Postgres. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, before, describe, it } from 'mocha'
import type { Values } from '../chart/helm.ts'
import { Place, SERVICE_ADDRESSES } from './place.ts'
import { node, tell } from './real-node.ts'
import { deliveredAll, repeated, twoBodies } from './receiver.ts'
import { Sender } from './sender.ts'

const INGRESS = 'p-penstock-ingress'
const ADMIN = 'p-penstock-admin'
const KEY = `svk_${randomBytes(24).toString('hex')}`
/** The node is as large as this machine, which may be small. */
const resources = { requests: { cpu: '20m', memory: '64Mi' } }
const values: Values = {
  // Not by the chart, for another release of this node may have it installed.
  crds: { install: false },
  nats: {
    url: 'nats://penstock:$(NATS_PASSWORD)@nats:4222',
    passwordSecret: { name: 'stores', key: 'nats-password' },
  },
  database: {
    url: 'postgres://postgres:$(DATABASE_PASSWORD)@postgres/postgres',
    passwordSecret: { name: 'stores', key: 'postgres-password' },
  },
  encryptionKeySecret: { name: 'keys' },
  ownerKeysSecret: { name: 'keys' },
  config: { shards: 4, allowDestinations: [SERVICE_ADDRESSES], initialCredits: 100_000 },
  ingress: { resources },
  admin: { resources },
  actor: { resources },
  operator: { resources },
}

describe('a cluster of pods', () => {
  let place: Place
  before(async function () {
    this.timeout(1_800_000)
    place = await Place.make(await node(), 'cluster')
    const definitions = join(import.meta.dirname, '..', '..', 'crds')
    await place.kubectl('apply', '--server-side', '--force-conflicts', '-f', definitions)
    await startStores()
  })
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
    const after = await all()
    for (const [component, pods] of Object.entries(after))
      expect(pods, component).not.to.include.members(before[component]!)
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

  it('passes helm test', () => place.test())

  it('had no container that ended by itself', async () => {
    expect(await place.restarts()).to.deep.equal([])
  })

  it('takes the buffer away with its resource', async () => {
    expect(await place.deleteBuffer(ADMIN, KEY)).to.equal(404)
  })

  it('goes with an uninstall', async () => {
    expect(await place.uninstall()).to.deep.equal([])
  })

  async function all(): Promise<Record<string, string[]>> {
    const found: Record<string, string[]> = {}
    for (const component of ['ingress', 'admin', 'actor'])
      found[component] = (await place.pods(component)).map(({ metadata }) => metadata.name)
    return found
  }

  async function startStores(): Promise<void> {
    const password = () => randomBytes(12).toString('hex')
    const secret = (name: string, pairs: Record<string, string>) =>
      place.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, stringData: pairs })
    await secret('stores', { 'nats-password': password(), 'postgres-password': password() })
    await secret('keys', { 'secret-key': randomBytes(32).toString('base64'), 'owner-keys': `acme=${KEY}` })
    const file = (name: string) => join(import.meta.dirname, name)
    await place.kubectl('create', 'configmap', 'nats', `--from-file=${file('nats.conf')}`)
    await place.kubectl('apply', '-f', file('stores.yaml'))
    for (const name of ['nats', 'postgres'])
      await place.kubectl('rollout', 'status', `statefulset/${name}`, '--timeout=300s')
  }
})
