/** What values change in pods, accounts, Services and the rest, by the names that Kubernetes has for it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { parse } from 'yaml'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import {
  chart,
  leastCluster,
  leastLocal,
  type Manifest,
  nameOf,
  podsOf,
  render,
  type Values,
} from './helm.ts'
import { ALL_APIS, additions, everything, exposed } from './matrix.ts'

const ROLES = ['ingress', 'admin', 'actor', 'operator']

describe('what values say of objects', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  const objects = async (...values: Values[]) =>
    new Map((await render(cluster, values, { further: ALL_APIS })).map((each) => [nameOf(each), each]))
  const found = async (name: string, ...values: Values[]): Promise<Manifest> =>
    (await objects(...values)).get(name)
  const podOf = async (role: string, values: Values): Promise<Manifest> =>
    (await found(`Deployment/p-penstock-${role}`, leastCluster, values)).spec.template.spec

  for (const [what, values] of Object.entries({
    'a cluster': [everything, exposed('ingress', 'admin'), { podMonitor: { enabled: true } }],
    'a local instance': [leastLocal, exposed('local'), { ownerKeysSecret: { name: 'keys' } }],
  })) {
    it(`puts common labels on every object and pod, and in no selector: ${what}`, async () => {
      const commonLabels = { 'cost-center': '4711' }
      const plain = await render(cluster, values, { further: ALL_APIS })
      const labelled = await render(cluster, [...values, { commonLabels }], { further: ALL_APIS })
      for (const each of labelled) {
        for (const { metadata } of each.spec?.template ? [each, each.spec.template] : [each]) {
          expect(metadata.labels, nameOf(each)).to.include(commonLabels)
          delete metadata.labels['cost-center']
          if (Object.keys(metadata.labels).length === 0) delete metadata.labels
        }
      }
      expect(labelled).to.deep.equal(plain)
    })
  }

  it('takes what an object is part of from the common labels', async () => {
    const commonLabels = { 'app.kubernetes.io/part-of': 'shop' }
    const all = await objects(leastCluster, { commonLabels })
    for (const [name, { metadata }] of all) expect(metadata.labels, name).to.include(commonLabels)
  })

  it('names objects and their label by nameOverride, and pulls from a registry', async () => {
    const all = await objects(leastCluster, {
      nameOverride: 'hooks',
      image: { registry: 'r.example.com:5000' },
    })
    const { spec, metadata } = all.get('Deployment/p-hooks-ingress')
    const name = { 'app.kubernetes.io/name': 'hooks' }
    expect(
      [metadata.labels, spec.selector.matchLabels, spec.template.metadata.labels].map(
        (each) => each['app.kubernetes.io/name'],
      ),
    ).to.deep.equal(Array(3).fill('hooks'))
    expect(all.get('Service/p-hooks-ingress').spec.selector).to.include(name)
    expect(spec.template.spec.containers[0].image).to.equal('r.example.com:5000/penstock:0.1.0')
  })

  it('gives a role the account that its values name, made or not, and the others the one they share', async () => {
    const accounts = async (values: Values) => {
      const all = await objects(leastCluster, values)
      const used = ROLES.map(
        (role) => all.get(`Deployment/p-penstock-${role}`).spec.template.spec.serviceAccountName,
      )
      const made = [...all.keys()]
        .filter((name) => name.startsWith('ServiceAccount/'))
        .map((name) => name.split('/')[1])
      const subject = all.get('RoleBinding/p-penstock-operator-leader').subjects[0].name
      return { used: used.join(' '), made: made.sort().join(' '), subject }
    }
    expect(await accounts({})).to.deep.equal({
      used: 'p-penstock p-penstock p-penstock p-penstock-operator',
      made: 'p-penstock p-penstock-operator',
      subject: 'p-penstock-operator',
    })
    const some = {
      ingress: { serviceAccount: { name: 'in', annotations: { role: 'arn' } } },
      admin: { serviceAccount: { create: false, name: 'there' } },
      actor: { serviceAccount: { annotations: { role: 'arn' } } },
      operator: { serviceAccount: { name: 'op' } },
    }
    expect(await accounts(some)).to.deep.equal({
      used: 'in there p-penstock-actor op',
      made: 'in op p-penstock-actor',
      subject: 'op',
    })
    const all = await objects(leastCluster, some, { admin: { serviceAccount: { create: false, name: '' } } })
    expect(all.get('ServiceAccount/in').metadata.annotations).to.deep.equal({ role: 'arn' })
    expect(all.get('Deployment/p-penstock-admin').spec.template.spec.serviceAccountName).to.equal('default')
  })

  it('leaves users out of all pods, as OpenShift wants it, and of one', async () => {
    const none = { runAsUser: null, runAsGroup: null, fsGroup: null }
    const all = await objects(leastCluster, { ownerKeysSecret: { name: 'keys' }, podSecurityContext: none })
    const pods = [...podsOf([...all.values()])]
    expect(pods).to.have.lengthOf(6)
    const kept = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } }
    for (const [name, { spec }] of pods) expect(spec.securityContext, name).to.deep.equal(kept)
    const local = await found('StatefulSet/p-penstock-local', leastLocal, { podSecurityContext: none })
    expect(local.spec.template.spec.securityContext).to.deep.equal({
      ...kept,
      fsGroupChangePolicy: 'OnRootMismatch',
    })
    const one = {
      admin: { podSecurityContext: { ...none, runAsUser: 7 } },
      podSecurityContext: { runAsGroup: 8 },
    }
    expect((await podOf('admin', one)).securityContext).to.deep.equal({ ...kept, runAsUser: 7 })
    expect((await podOf('actor', one)).securityContext).to.include({ runAsUser: 1000, runAsGroup: 8 })
    const container = {
      containerSecurityContext: { readOnlyRootFilesystem: null, capabilities: { add: ['X'] } },
    }
    expect((await podOf('actor', container)).containers[0].securityContext).to.deep.equal({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: ['X'] },
    })
  })

  it('spreads pods as the values say, by their own labels unless those name others', async () => {
    const where = { topologyKey: 'rack', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }
    const other = { ...where, labelSelector: { matchLabels: { app: 'x' } } }
    const values = { actor: { topologySpreadConstraints: [where, other] } }
    const { topologySpreadConstraints } = await podOf('actor', values)
    const { spec } = await found('Deployment/p-penstock-actor', leastCluster)
    expect(topologySpreadConstraints).to.deep.equal([{ ...where, labelSelector: spec.selector }, other])
    expect((await podOf('admin', values)).topologySpreadConstraints).to.have.lengthOf(2)
  })

  it('asks pods by probes of the values, merged over those of the chart', async () => {
    const values = {
      ingress: {
        startupProbe: { failureThreshold: 9 },
        livenessProbe: { exec: { command: ['true'] }, timeoutSeconds: null },
      },
    }
    const { startupProbe, readinessProbe, livenessProbe } = (await podOf('ingress', values)).containers[0]
    expect(startupProbe).to.deep.equal({
      httpGet: { path: '/live', port: 'ops' },
      periodSeconds: 1,
      failureThreshold: 9,
    })
    expect(readinessProbe).to.deep.equal((await podOf('admin', {})).containers[0].readinessProbe)
    expect(livenessProbe).to.deep.equal({
      exec: { command: ['true'] },
      periodSeconds: 10,
      failureThreshold: 6,
    })
  })

  it('replaces pods, disrupts them, and scales them as the values say', async () => {
    const all = await objects(everything, additions)
    const specOf = (name: string) => all.get(name).spec
    expect(specOf('Deployment/hooks-admin').strategy).to.deep.equal({ type: 'Recreate' })
    expect(specOf('Deployment/hooks-actor').strategy).to.deep.equal({
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 2, maxUnavailable: 0 },
    })
    expect(specOf('PodDisruptionBudget/hooks-ingress'))
      .to.include({ minAvailable: '50%' })
      .and.not.to.have.property('maxUnavailable')
    expect(specOf('PodDisruptionBudget/hooks-actor')).to.include({ maxUnavailable: 0 })
    expect(specOf('PodDisruptionBudget/hooks-admin')).to.include({ maxUnavailable: 1 })
    expect(all.has('PodDisruptionBudget/hooks-operator')).to.equal(false)
    const { metrics, behavior } = specOf('HorizontalPodAutoscaler/hooks-ingress')
    expect({ metrics, behavior }).to.deep.equal(
      pick((additions.ingress as Manifest).autoscaling, 'metrics', 'behavior'),
    )
    expect(specOf('HorizontalPodAutoscaler/hooks-actor').behavior).to.have.property('scaleDown')
  })

  it('makes Services as the values say', async () => {
    const fields = (additions.local as Manifest).service
    const { spec } = await found('Service/p-webhooks-local', leastLocal, additions)
    const { nodePort, ...others } = fields
    expect(spec).to.deep.include(others)
    expect(spec.ports[0]).to.include({ nodePort, port: 80 })
    const plain = await found('Service/p-penstock-ingress', leastCluster)
    expect(Object.keys(plain.spec).sort()).to.deep.equal(['ports', 'selector', 'type'])
  })

  it('mounts a claim that is there, instead of one of its own', async () => {
    const values = { local: { persistence: { existingClaim: 'mine' } } }
    const { spec } = await found('StatefulSet/p-penstock-local', leastLocal, values)
    expect(spec).not.to.have.property('volumeClaimTemplates')
    expect(spec.template.spec.volumes).to.deep.equal([
      { name: 'data', persistentVolumeClaim: { claimName: 'mine' } },
    ])
  })

  it('gives each program its variables, once each, before those of config.env', async () => {
    const env = [
      { name: 'A', value: 'own' },
      { name: 'SECRET', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
    ]
    const envFrom = [{ secretRef: { name: 'vault' } }]
    const programs = [...ROLES, 'migrate', 'test']
    const values = Object.fromEntries(programs.map((program) => [program, { env, envFrom }]))
    const all = await objects(
      leastCluster,
      { ownerKeysSecret: { name: 'keys' }, config: { env: { A: 'all', B: 'all' } } },
      values,
    )
    for (const [name, { spec }] of podsOf([...all.values()])) {
      const [container] = spec.containers
      expect(container.env.slice(0, 2), name).to.deep.equal(env)
      expect(
        container.env.filter((each: Manifest) => each.name === 'A'),
        name,
      ).to.have.lengthOf(1)
      const sources = container.envFrom.map((each: Manifest) => Object.values<Manifest>(each)[0].name)
      const own = /ingress|admin|actor/.test(name) ? ['p-penstock-config'] : []
      expect(sources, name).to.deep.equal(['vault', ...own])
    }
  })

  it('compares all Buffers as often as the values say', async () => {
    const variable = async (values: Values) =>
      (await podOf('operator', values)).containers[0].env.find(
        ({ name }: Manifest) => name === 'PENSTOCK_VERIFY_SECONDS',
      )
    expect(await variable({ operator: { verifySeconds: 60 } })).to.deep.equal({
      name: 'PENSTOCK_VERIFY_SECONDS',
      value: '60',
    })
    expect(await variable({})).to.equal(undefined)
    expect(await variable({ config: { env: { PENSTOCK_VERIFY_SECONDS: 90 } } })).to.include({ value: '90' })
  })

  it('reads metrics of pods or through the Service, with relabelings', async () => {
    const relabelings = [{ action: 'replace', targetLabel: 'cluster', replacement: 'eu' }]
    const monitors = {
      serviceMonitor: { relabelings },
      podMonitor: { enabled: true, relabelings, interval: '5s' },
    }
    const all = await objects(leastCluster, monitors)
    const [endpoint] = all.get('ServiceMonitor/p-penstock-ops').spec.endpoints
    expect(endpoint).to.deep.equal({ port: 'ops', path: '/metrics', interval: '30s', relabelings })
    const { podMetricsEndpoints } = all.get('PodMonitor/p-penstock-ops').spec
    expect(podMetricsEndpoints).to.deep.equal([{ ...endpoint, interval: '5s' }])
    const kinds = (await render(cluster, [leastCluster, monitors])).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind.endsWith('Monitor'))).to.deep.equal([])
  })
})

describe('the schema of the values', () => {
  const schema: Manifest = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'))
  const defaults = parse(readFileSync(join(chart, 'values.yaml'), 'utf8'))
  const resolved = (node: Manifest) =>
    node.$ref ? { ...schema.$defs[node.$ref.split('/').at(-1)], ...node } : node

  it('describes every value', () => {
    const missing: string[] = []
    const walk = (node: Manifest, path: string) => {
      const { description, properties = {}, items } = resolved(node)
      if (path !== '' && !description) missing.push(path)
      for (const [key, each] of Object.entries(properties)) walk(each, `${path}.${key}`)
      const item = items && resolved(items)
      if (item?.properties) walk({ description: 'an item', ...item }, `${path}[]`)
    }
    walk(schema, '')
    expect(missing).to.deep.equal([])
  })

  it('knows the values of the chart, and those alone', () => {
    const walk = (node: Manifest, value: Manifest, path: string) => {
      const { properties, additionalProperties } = resolved(node)
      if (!properties || typeof value !== 'object' || path === '.config.limits') return
      expect(additionalProperties, path).to.equal(false)
      const known = Object.keys(properties).filter((key) => !(path === '' && /^(global|enabled)$/.test(key)))
      if (!/[.](strategy|resources)$/.test(path))
        expect(known.sort(), path).to.deep.equal(Object.keys(value).sort())
      for (const key of known) walk(properties[key], value[key] ?? {}, `${path}.${key}`)
    }
    walk(schema, defaults, '')
  })
})

function pick(value: Manifest, ...keys: string[]): Manifest {
  return Object.fromEntries(keys.map((key) => [key, value[key]]))
}
