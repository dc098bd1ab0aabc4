/** A release at a real API server with simulated nodes: pods of it become ready without running anything. */
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { installDefinitions } from '../kube/definitions.ts'
import { type Kube, kubectl, kubectlOk, namespace, run, start, stopKube } from '../kube/kube.ts'
import { eventually } from '../support/eventually.ts'
import { chart, helm, helmOk, type Manifest, nameOf, render, type Values, valuesFile } from './helm.ts'
import { ALL_APIS, matrix } from './matrix.ts'

const COMPONENTS = { ingress: 2, admin: 2, actor: 3, operator: 2 }
const clusterValues: Values = {
  nats: { url: 'nats://nats:4222' },
  database: { urlSecret: { name: 'stores' } },
  encryptionKeySecret: { name: 'stores' },
  ownerKeysSecret: { name: 'stores' },
}
/** All kinds that the chart makes, and what those make. */
const KINDS = [
  'deployments,replicasets,statefulsets,pods,jobs,services,configmaps,secrets,serviceaccounts,roles,rolebindings',
  'poddisruptionbudgets,networkpolicies,horizontalpodautoscalers,persistentvolumeclaims',
].join()

// A cluster of its own: definitions and roles belong to the whole of it.
describe('a release', function () {
  this.timeout(120_000)
  let cluster: Kube
  let ns: string
  before(async () => {
    const started = await start({ parts: 'controller-manager scheduler kwok' })
    if (started === undefined) return
    cluster = started
    ns = await namespace(cluster, 'chart')
    await installDefinitions(cluster, 'gateway', 'monitoring')
  })
  beforeEach(function () {
    if (cluster === undefined) this.skip()
  })
  after(async () => {
    if (cluster) await stopKube(cluster)
  })

  const list = async (kinds: string, within = ns): Promise<Manifest[]> =>
    JSON.parse(await kubectlOk(cluster, ['-n', within, 'get', kinds, '-o', 'json'])).items
  const podsOf = async (component: string) =>
    (await list('pods')).filter(
      ({ metadata }) => metadata.labels['app.kubernetes.io/component'] === component,
    )
  const deployment = async (component: string): Promise<Manifest> =>
    JSON.parse(
      await kubectlOk(cluster, ['-n', ns, 'get', 'deployment', `p-penstock-${component}`, '-o', 'json']),
    )
  const upgrade = (values: Values, args: string[] = []) =>
    helm(
      cluster,
      ['upgrade', 'p', chart, '--reset-then-reuse-values', '--wait', '--timeout', '60s', ...args],
      {
        namespace: ns,
        values: [values],
      },
    )

  const tested = () => helm(cluster, ['test', 'p', '--timeout', '30s'], { namespace: ns })

  for (const { what, values, further } of matrix) {
    it(`is accepted by the API server to the letter, and by pod security without a warning: ${what}`, async () => {
      const manifests = await render(cluster, [...values, { operator: { watchNamespaces: [ns] } }], {
        namespace: ns,
        ...(further && { further }),
      })
      const args = ['apply', '--dry-run=server', '--validate=strict', '-f', '-']
      const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests })
      const { code, stdout, stderr } = await kubectl(cluster, args, input)
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
      expect(stdout.trim().split('\n').length).to.equal(manifests.length)
    })
  }

  it('is warned of by pod security when a pod is not restricted: the check above can fail', async () => {
    const manifests = await render(cluster, [clusterValues], { namespace: ns, further: ALL_APIS })
    const found = manifests.find((each) => nameOf(each) === 'Deployment/p-penstock-actor')
    delete found.spec.template.spec.containers[0].securityContext.capabilities
    const { stderr } = await kubectl(cluster, ['apply', '--dry-run=server', '-f', '-'], JSON.stringify(found))
    expect(stderr).to.include('would violate PodSecurity "restricted')
  })

  it('can be tried without making anything', async () => {
    const args = ['install', 'p', chart, '--dry-run=server']
    await helmOk(cluster, args, { namespace: ns, values: [clusterValues] })
    expect(await list('deployments,jobs')).to.deep.equal([])
  })

  it('is installed where pods must be restricted, and all of its pods become ready', async () => {
    await kubectlOk(cluster, [
      ...[
        '-n',
        ns,
        'create',
        'secret',
        'generic',
        'stores',
        '--from-literal=uri=postgres://postgres/penstock',
      ],
      `--from-literal=secret-key=${randomBytes(32).toString('base64')}`,
      `--from-literal=owner-keys=acme=svk_${randomBytes(24).toString('hex')}`,
    ])
    const args = ['install', 'p', chart, '--wait', '--timeout', '90s']
    const values = [clusterValues, { test: { podLabels: { simulate: 'fail' } } }]
    const notes = await helmOk(cluster, args, { namespace: ns, values })
    expect(notes).to.include(`http://p-penstock-ingress.${ns}.svc`)
    for (const [component, count] of Object.entries(COMPONENTS)) {
      const pods = await podsOf(component)
      expect(pods.map(isReady), component).to.deep.equal(Array(count).fill(true))
      const hasToken = JSON.stringify(pods).includes('serviceAccountToken')
      expect(hasToken, component).to.equal(component === 'operator')
    }
    expect(await podsOf('migrate'), 'the hook is removed').to.deep.equal([])
  })

  it('tells commands that work as pasted: the key is found, and the Buffer accepted', async () => {
    const notes = await helmOk(cluster, ['get', 'notes', 'p'], { namespace: ns })
    // Without what needs running pods.
    const lines = notes.split('\n').slice(notes.split('\n').findIndex((line) => line.startsWith('KEY=')))
    const end = lines.indexOf('END') + 1
    const commands = lines.slice(0, end).filter((line) => !line.startsWith('curl'))
    const env = { KUBECONFIG: cluster.kubeconfig, PATH: `${cluster.bin}:${process.env.PATH}` }
    const ran = await run('bash', ['-ec', `${commands.join('\n')}\necho $KEY`], env)
    expect(ran.code, ran.stderr).to.equal(0)
    expect(ran.stdout).to.match(/^secret.* created\nbuffer.* created\nsvk_[0-9a-f]{48}\n$/)
    await kubectlOk(cluster, ['-n', ns, 'delete', 'buffer', 'shop-orders'])
  })

  it('has no pod that was refused', async () => {
    const events = await list('events')
    const failed = events.filter(({ reason }) => reason === 'FailedCreate').map(({ message }) => message)
    expect(failed).to.deep.equal([])
  })

  it('fails helm test when the pod of the test fails', async () => {
    expect((await tested()).code).to.equal(1)
  })

  it('is upgraded: pods that read other values are replaced, others are not', async () => {
    const uids = async () => {
      const pods = (await list('pods')).filter(
        ({ metadata }) => metadata.annotations['helm.sh/hook'] === undefined,
      )
      return pods.map(({ metadata }) => metadata.uid)
    }
    const before = await uids()
    const values = { actor: { podAnnotations: { note: 'new' } }, test: { podLabels: { simulate: '' } } }
    expect((await upgrade(values)).code).to.equal(0)
    const kept = await eventually(async () => {
      const now = await uids()
      return now.length === before.length && now.filter((uid) => before.includes(uid))
    })
    expect(kept).to.have.lengthOf(before.length - COMPONENTS.actor)
  })

  it('passes helm test when its pod succeeds', async () => {
    const { code, stdout, stderr } = await tested()
    expect(code, stderr).to.equal(0)
    expect(stdout).to.include('Phase:          Succeeded')
  })

  it('keeps serving while the pods of an upgrade do not become ready, and goes back', async () => {
    const values = { ingress: { podLabels: { simulate: 'unready' } } }
    expect((await upgrade(values, ['--timeout', '5s'])).code).to.equal(1)
    expect((await deployment('ingress')).status).to.include({ availableReplicas: COMPONENTS.ingress })
    await helmOk(cluster, ['rollback', 'p', '--wait', '--timeout', '60s'], { namespace: ns })
    const pods = await eventually(async () => {
      const found = await podsOf('ingress')
      return found.length === COMPONENTS.ingress && found
    })
    expect(pods.map(isReady)).to.deep.equal([true, true])
    expect(pods.map(({ metadata }) => metadata.labels.simulate)).to.deep.equal([undefined, undefined])
  })

  it('lets nodes be drained one after the other', async () => {
    for (const node of ['node-1', 'node-2']) {
      await kubectlOk(cluster, [
        'drain',
        node,
        '--ignore-daemonsets',
        '--delete-emptydir-data',
        '--timeout=60s',
      ])
      await kubectlOk(cluster, ['uncordon', node])
    }
    await eventually(async () => {
      for (const component of Object.keys(COMPONENTS)) {
        const { spec, status } = await deployment(component)
        expect(status.availableReplicas, component).to.equal(spec.replicas)
      }
    })
  })

  it('changes nothing when the schema cannot be migrated, and goes on once it can', async () => {
    const before = await deployment('actor')
    const failing = { podLabels: { simulate: 'fail' }, activeDeadlineSeconds: 3 }
    const { code, stderr } = await upgrade({ migrate: failing, actor: { replicas: 5 } })
    expect(code, stderr).to.equal(1)
    expect(stderr).to.include('pre-upgrade hooks failed')
    expect((await deployment('actor')).metadata.generation).to.equal(before.metadata.generation)
    expect(await podsOf('migrate'), 'whose log tells why').not.to.deep.equal([])
    expect(
      (await upgrade({ migrate: { podLabels: { simulate: '' } }, actor: { replicas: 5 } })).code,
    ).to.equal(0)
    expect((await deployment('actor')).spec.replicas).to.equal(5)
  })

  it('keeps the number of pods that run when autoscaling is turned on, and leaves it to whoever scales then', async () => {
    const replicas = async () => (await deployment('actor')).spec.replicas
    const scale = (count: number) =>
      kubectlOk(cluster, ['-n', ns, 'scale', 'deployment', 'p-penstock-actor', `--replicas=${count}`])
    const scaled = { actor: { autoscaling: { enabled: true } } }
    expect(await replicas()).to.equal(5)
    for (const what of ['turned on', 'before anything scaled']) {
      const { code, stderr } = await upgrade(scaled)
      expect(code, stderr).to.equal(0)
      expect(await replicas(), what).to.equal(5)
    }
    await scale(4)
    expect((await upgrade(scaled)).code).to.equal(0)
    expect(await replicas()).to.equal(4)
    await scale(6)
    expect((await upgrade({ actor: { podAnnotations: { note: 'newer' } } })).code).to.equal(0)
    await helmOk(cluster, ['rollback', 'p', '--wait', '--timeout', '60s'], { namespace: ns })
    expect(await replicas()).to.equal(6)
  })

  it('leaves the definition and its Buffers behind when it is uninstalled, and finds them again', async () => {
    const buffer = {
      apiVersion: 'buffering.penstock.dev/v1alpha1',
      kind: 'Buffer',
      metadata: { name: 'orders' },
      spec: {
        projectId: 'shop',
        groupKey: { mode: 'jsonpath', path: '$.customer' },
        delivery: { url: 'https://receiver.example.com/' },
        credentialsRef: { name: 'key' },
      },
    }
    await kubectlOk(cluster, ['-n', ns, 'apply', '-f', '-'], JSON.stringify(buffer))
    await helmOk(cluster, ['uninstall', 'p', '--wait'], { namespace: ns })
    expect(await remains()).to.deep.equal([])
    expect(await clusterWide()).to.deep.equal(['CustomResourceDefinition/buffers.buffering.penstock.dev'])
    expect((await list('buffers')).map(({ metadata }) => metadata.name)).to.deep.equal(['orders'])
    await helmOk(cluster, ['install', 'p', chart, '--wait'], { namespace: ns, values: [clusterValues] })
    expect((await list('buffers')).map(({ metadata }) => metadata.name)).to.deep.equal(['orders'])
    await helmOk(cluster, ['uninstall', 'p', '--wait'], { namespace: ns })
  })

  it('of one pod keeps its key over upgrades, and its volume after an uninstall', async () => {
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'local-data' },
      spec: {
        capacity: { storage: '8Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/simulated' },
      },
    }
    await kubectlOk(cluster, ['apply', '-f', '-'], JSON.stringify(volume))
    const options = { namespace: ns, values: [valuesFile('local'), { crds: { install: false } }] }
    const key = async () =>
      kubectlOk(cluster, [
        '-n',
        ns,
        'get',
        'secret',
        'p-penstock-owner-keys',
        '-o',
        'jsonpath={.data.owner-keys}',
      ])
    await helmOk(cluster, ['install', 'p', chart, '--wait', '--timeout', '90s'], options)
    const first = await key()
    expect(Buffer.from(first, 'base64').toString()).to.match(/^local=svk_[0-9a-f]{48}$/)
    expect((await podsOf('local')).map(isReady)).to.deep.equal([true])
    await helmOk(cluster, ['upgrade', 'p', chart, '--wait', '--timeout', '90s'], options)
    expect(await key()).to.equal(first)
    await helmOk(cluster, ['uninstall', 'p', '--wait'], { namespace: ns })
    expect(await remains()).to.deep.equal(['PersistentVolumeClaim/data-p-penstock-local-0'])
  })

  /** What is left of the release `p`; what its pods held goes a moment later. */
  const remains = () =>
    eventually(async () => {
      const found = (await list(KINDS)).filter(
        ({ metadata }) => metadata.labels?.['app.kubernetes.io/instance'] === 'p',
      )
      return (
        !found.some(({ metadata }) => metadata.deletionTimestamp || metadata.ownerReferences) &&
        found.map(nameOf)
      )
    })
  const clusterWide = async () => {
    const kinds = 'customresourcedefinitions,clusterroles,clusterrolebindings'
    const found: Manifest[] = JSON.parse(await kubectlOk(cluster, ['get', kinds, '-o', 'json'])).items
    return found.map(nameOf).filter((name) => name.includes('penstock'))
  }
})

function isReady({ status }: Manifest): boolean {
  return status.conditions.some(({ type, status }: Manifest) => type === 'Ready' && status === 'True')
}
