/**
 * The commands of docs/guide/kubernetes.md, pasted into one shell. Nodes are simulated, so the test itself is what would
 * run in the pods: the service that the local values describe, and the operator as the chart's account.
 */
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { freePort } from '../../internal/embedded/port.ts'
import { type Kube, kubectlOk, start, stopKube } from '../kube/kube.ts'
import { eventually } from '../support/eventually.ts'
import type { Service } from '../support/service.ts'
import { Shell, shellSections } from '../support/shell-commands.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { type Manifest, nameOf } from './helm.ts'
import { forwarding, playOperator, playService } from './pods.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const PATIENCE = { timeoutMs: 120_000, everyMs: 50 }
/** As a cluster of NATS is named. */
const BROKERS = 'nats://nats-0:4222,nats://nats-1:4222'

describe('the commands of the guide to Kubernetes', function () {
  this.timeout(240_000)
  const sections = shellSections('docs/guide/kubernetes.md')
  // A cluster of its own: the definition of Buffers is deleted at the end.
  let cluster: Kube | undefined
  let shell: Shell
  let service: Service
  let operator: Service
  let url: string

  before(async function () {
    cluster = await start({ parts: 'controller-manager scheduler kwok' })
    if (cluster === undefined) return this.skip()
    await kubectlOk(cluster, ['apply', '-f', '-'], JSON.stringify(volume))
    url = `http://127.0.0.1:${await freePort()}`
    shell = shellBeside(cluster, url)
  })

  after(async () => {
    await shell?.close()
    for (const each of [operator, service]) {
      each?.child.kill('SIGKILL')
      await each?.exited()
    }
    if (cluster) await stopKube(cluster)
  })

  const api = async (path: string) => {
    const answer = await fetch(`${url}${path}`, { headers: { 'x-api-key': await ownerKey() } })
    return { status: answer.status, body: answer.status === 204 ? undefined : await answer.json() }
  }
  const ownerKey = async () => {
    const get = [
      '-n',
      'penstock',
      'get',
      'secret',
      'penstock-owner-keys',
      '-o',
      'jsonpath={.data.owner-keys}',
    ]
    return Buffer.from(await kubectlOk(cluster!, get), 'base64')
      .toString()
      .split('=')[1]!
  }
  const names = async (kinds: string): Promise<string[]> =>
    JSON.parse(await kubectlOk(cluster!, ['-n', 'penstock', 'get', kinds, '-o', 'json'])).items.map(nameOf)

  it('are all run here', () => {
    expect([...sections.keys()]).to.deep.equal([
      ...[
        'Install',
        'A first Buffer',
        'Ingest',
        'Rotate a Secret',
        'Pause and resume',
        'Leave a buffer alone',
        'Move buffers to GitOps',
        'Limit the hosts',
        'Upgrade',
        'Uninstall',
      ],
      'On your NATS and Postgres',
    ])
  })

  it('installs the local values, and the pod becomes ready', async () => {
    const output = await shell.paste(sections.get('Install')!)
    expect(output).to.include('STATUS: deployed')
    expect(output).to.match(/Phase: +Succeeded/)
    await playPods()
  })

  it('makes a first Buffer of a sample', async () => {
    const output = await shell.paste(sections.get('A first Buffer')!)
    expect(output).to.include('buffer.buffering.penstock.dev/orders condition met')
    expect(output).to.match(/^orders +True +Synced +true +receiver\.example\.com/m)
    expect((await api('/v1/admin/buffers/orders')).body).to.include({ projectId: 'shop', enabled: true })
  })

  it('ingests through it and shows the batch', async () => {
    const output = await shell.paste(sections.get('Ingest')!)
    expect(output).to.include('"status":"accepted"')
    expect(output).to.include('"payload":{"data":{"customer":"ada"},"order":1}')
  })

  it('rotates a Secret, and the service signs with the new value', async () => {
    await shell.paste(sections.get('Rotate a Secret')!)
    const { body } = await api('/v1/admin/buffers/orders')
    expect((body as Manifest).delivery.signing.secret).to.equal('s3cret-2')
  })

  it('pauses and resumes', async () => {
    const output = await shell.paste(sections.get('Pause and resume')!)
    expect(output.match(/orders condition met/g)).to.have.length(5)
    expect(output).to.include('orders annotated')
    expect((await api('/v1/admin/buffers/orders')).body).to.include({ enabled: true })
  })

  it('leaves a buffer alone while it is told so, and looks at it when it is asked to', async () => {
    const output = await shell.paste(sections.get('Leave a buffer alone')!)
    expect(output.match(/orders condition met/g)).to.have.length(2)
  })

  it('exports a buffer, takes it over without a change, and gives it back', async () => {
    const output = await shell.paste(sections.get('Move buffers to GitOps')!)
    const [made, ...rest] = output.match(/^\{"bufferId":"invoices".*?\}(?=$|\{)/gm) ?? []
    expect(output).to.include('#   header-x-team: delivery.headers.X-Team\n')
    expect(output).to.match(/invoices condition met\n.*"invoices" deleted/)
    const back = (await api('/v1/admin/buffers/invoices')).body as Manifest
    expect(JSON.parse(made!)).to.deep.equal(back)
    expect(JSON.parse(rest.at(-1)!)).to.deep.equal(back)
  })

  it('refuses a host that no rule allows', async () => {
    const output = await shell.paste(sections.get('Limit the hosts')!)
    const why = 'is not allowed in the namespace penstock by the rules that select it: ours'
    expect(output).to.include(`the host evil.example:443 ${why}`)
  })

  it('upgrades, and the Buffers stay ready', async () => {
    const output = await shell.paste(sections.get('Upgrade')!)
    expect(output).to.match(/REVISION: 3/)
    expect(output).to.include('orders condition met')
  })

  it('uninstalls: what it says stays does, and then goes', async () => {
    const output = await shell.paste(sections.get('Uninstall')!)
    expect(output).to.include('buffers.buffering.penstock.dev  ')
    expect(output).to.match(/^persistentvolumeclaim\/data-penstock-local-0 /m)
    expect(output).to.match(/^secret\/penstock-api-key /m)
    expect(output).to.not.include('penstock-owner-keys ')
    expect(output).to.match(/namespace "penstock" deleted/)
    const found = JSON.parse(await kubectlOk(cluster!, ['get', 'crd', '-o', 'json'])).items as Manifest[]
    expect(found.map(nameOf)).to.deep.equal([])
  })

  it('installs the production values over stores that are there', async () => {
    const output = await shell.paste(sections.get('On your NATS and Postgres')!)
    expect(output).to.include('STATUS: deployed')
    const workloads = await names('deployments,statefulsets')
    expect(workloads.sort()).to.deep.equal(
      ['actor', 'admin', 'ingress', 'operator'].map((each) => `Deployment/penstock-${each}`),
    )
    expect(await kubectlOk(cluster!, ['-n', 'penstock', 'get', 'deployments', '-o', 'json'])).to.include(
      BROKERS,
    )
    expect(output).to.match(/^penstock-ingress-\S+ +1\/1 +Running/m)
  })

  /** The programs that the pods would run, as the chart configures them as far as it matters here. */
  async function playPods(): Promise<void> {
    service = await playService(url, await ownerKey())
    operator = await playOperator(cluster!, { namespace: 'penstock', release: 'penstock', url })
    await eventually(() => operator.events.some(({ msg }) => msg === 'leading'), PATIENCE)
  }
})

/** Of a claim, which no storage class of this cluster would fill. */
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

/** In a folder that has what the commands name of the repository. */
function shellBeside(cluster: Kube, url: string): Shell {
  const folder = tempFolder('guide')
  const named = ['charts', 'crds', 'cmd', 'internal', 'operator', 'packages', 'node_modules', 'package.json']
  for (const each of named) symlinkSync(join(ROOT, each), join(folder, each))
  writeFileSync(join(folder, 'nats.creds'), 'not looked at\n')
  return new Shell({
    cwd: folder,
    env: {
      PATH: `${forwarding(cluster)}:${cluster.bin}:${process.env.PATH}`,
      HOME: folder,
      KUBECONFIG: cluster.kubeconfig,
      P: url,
      DATABASE_URL: 'postgres://postgres/penstock',
      NATS_URL: BROKERS,
    },
  })
}
