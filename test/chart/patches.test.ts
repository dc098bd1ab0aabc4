/** Every object of the chart takes a merge patch and a JSON patch of the values. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { installDefinitions } from '../kube/definitions.ts'
import { type Kube, kubectl, kubeOrSkip, namespace } from '../kube/kube.ts'
import { chart, helm, leastCluster, leastLocal, type Manifest, nameOf, render, type Values } from './helm.ts'
import { ALL_APIS, everything, exposed } from './matrix.ts'

const schema: Manifest = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8'))
const PATHS = pathsOf(schema, [])
const everyWay: Values = { podMonitor: { enabled: true }, ...exposed('ingress', 'admin', 'local') }
interface Shape {
  readonly values: readonly Values[]
  readonly paths: readonly (readonly string[])[]
  /** Its operator watches the namespace of the release alone. */
  readonly watches?: boolean
}

/** Among them each object that the chart can make. */
const SHAPES: Record<string, Shape> = {
  'a cluster whose operator watches some namespaces': {
    values: [everything, everyWay],
    watches: true,
    // What changes the account of one role makes it one of its own.
    paths: PATHS.filter((path) => !/^(ingress|admin|actor)[.]serviceAccount$/.test(path.join('.'))),
  },
  'a cluster whose operator watches all, and whose roles have accounts of their own': {
    values: [
      everything,
      everyWay,
      { operator: { watchNamespaces: [] } },
      accountsOf('ingress', 'admin', 'actor'),
    ],
    paths: PATHS,
  },
  'a local instance': { values: [leastLocal, everyWay, accountsOf('local')], paths: PATHS },
}

describe('what values change in the objects of the chart', function () {
  this.timeout(180_000)
  let cluster: Kube
  let ns: string
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
    await installDefinitions(cluster, 'gateway', 'monitoring')
    ns = await namespace(cluster, 'patches')
  })

  /** By the API server, to the letter. */
  const accepts = async (manifests: readonly Manifest[]) => {
    const args = ['apply', '--dry-run=server', '--validate=strict', '-f', '-']
    const { code, stderr } = await kubectl(
      cluster,
      args,
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: manifests }),
    )
    expect(code, stderr).to.equal(0)
  }
  const reached = new Set<string>()
  for (const [what, { values, paths, watches }] of Object.entries(SHAPES)) {
    it(`reaches every object, by a merge patch and by a JSON patch: ${what}`, async () => {
      const layers = watches ? [...values, { operator: { watchNamespaces: [ns] } }] : values
      const options = { further: ALL_APIS, namespace: ns }
      const plain = await render(cluster, layers, options)
      const changes = paths.map((path) => within(path, changesOf(path)))
      const changed = await render(cluster, [...layers, ...changes], options)
      await accepts(changed)
      for (const { kind, metadata } of changed) {
        const { merged, patched, ...others } = metadata.annotations ?? {}
        expect(patched, `${kind}/${metadata.name}`).to.be.a('string').and.to.equal(merged)
        reached.add(merged)
        metadata.annotations = others
      }
      expect(sorted(changed)).to.deep.equal(sorted(plain.map(withAnnotations)))
    })
  }

  it('is of some object, for each of the values that can change one', () => {
    expect([...reached].sort()).to.deep.equal(PATHS.map((path) => path.join('.')).sort())
  })

  const changedConfig = async (change: Values): Promise<Manifest> => {
    const manifests = await render(cluster, [leastCluster, { configMap: change }])
    return manifests.find((each) => nameOf(each) === 'ConfigMap/p-penstock-config')
  }
  const data = { a: '1', 'x/y~z': '2', list: ['a', 'b', 'c'] }
  const patched = async (...patch: Values[]) => (await changedConfig({ merge: { data }, patch })).data

  it('merges maps, takes away by null, and puts anything else in its place', async () => {
    const merge = {
      data: { PENSTOCK_SHARDS: null, list: ['z'], new: { inner: { absent: null, there: 'x' } } },
      metadata: { labels: { 'helm.sh/chart': null, mine: 'yes' }, annotations: null },
    }
    const { metadata, data: after } = await changedConfig({ merge })
    expect(after).to.deep.include({ list: ['z'], new: { inner: { there: 'x' } } })
    expect(after).not.to.have.property('PENSTOCK_SHARDS')
    expect(after).to.include({ PENSTOCK_REPLICAS: '3' })
    expect(metadata.labels).to.include({ mine: 'yes' }).and.not.to.have.property('helm.sh/chart')
  })

  for (const [what, patch, wanted] of [
    ['adds a field', [{ op: 'add', path: '/data/b', value: 'x' }], { b: 'x', a: '1' }],
    ['adds within a list', [{ op: 'add', path: '/data/list/1', value: 'x' }], { list: ['a', 'x', 'b', 'c'] }],
    ['adds at the end', [{ op: 'add', path: '/data/list/-', value: [1] }], { list: ['a', 'b', 'c', [1]] }],
    ['adds behind the last', [{ op: 'add', path: '/data/list/3', value: 1 }], { list: ['a', 'b', 'c', 1] }],
    ['adds null', [{ op: 'add', path: '/data/b', value: null }], { b: null }],
    [
      'replaces by a falsy value',
      [{ op: 'replace', path: '/data/list/0', value: 0 }],
      { list: [0, 'b', 'c'] },
    ],
    ['removes from a list', [{ op: 'remove', path: '/data/list/0' }], { list: ['b', 'c'] }],
    ['reads escapes', [{ op: 'replace', path: '/data/x~1y~0z', value: '3' }], { 'x/y~z': '3' }],
    ['moves', [{ op: 'move', from: '/data/list/2', path: '/data/list/0' }], { list: ['c', 'a', 'b'] }],
    ['copies', [{ op: 'copy', from: '/data/list', path: '/data/b' }], { b: ['a', 'b', 'c'] }],
    [
      'tests, and goes on',
      [
        { op: 'test', path: '/data/list', value: ['a', 'b', 'c'] },
        { op: 'replace', path: '/data/a', value: '2' },
      ],
      { a: '2' },
    ],
    ['keeps large numbers', [{ op: 'add', path: '/data/b', value: 12_345_678 }], { b: 12_345_678 }],
  ] as const) {
    it(`${what}, after the merge patch`, async () => {
      expect(await patched(...patch)).to.deep.include(wanted)
    })
  }

  it('removes a field', async () => {
    expect(await patched({ op: 'remove', path: '/data/a' })).not.to.have.property('a')
    const moved = await patched({ op: 'move', from: '/data/a', path: '/data/b' })
    expect(moved).to.include({ b: '1' }).and.not.to.have.property('a')
  })

  for (const [patch, why] of [
    [{ op: 'remove', path: '/data/absent' }, 'configMap.patch[0]: remove /data/absent: there is no "absent"'],
    [{ op: 'replace', path: '/data/b/c', value: 1 }, 'there is no "b"'],
    [{ op: 'add', path: '/data/list/4', value: 1 }, 'the list ends before "4"'],
    [{ op: 'add', path: '/data/list/01', value: 1 }, '"01" is no place in a list'],
    [{ op: 'remove', path: '/data/list/-' }, 'there is no "-"'],
    [{ op: 'add', path: '/data/a/b', value: 1 }, '"b" is in no object'],
    [{ op: 'test', path: '/data/a', value: 'other' }, 'it is "1"'],
    [{ op: 'add', path: '/data/a' }, 'value is required'],
    [{ op: 'copy', path: '/data/a' }, 'from is required'],
    [{ op: 'move', from: '/data', path: '/data/b' }, 'it lies within /data'],
    [{ op: 'add', path: 'data', value: 1 }, "'/configMap/patch/0/path'"],
    [{ op: 'put', path: '/data', value: 1 }, "'/configMap/patch/0/op'"],
  ] as const) {
    it(`is refused by name: ${JSON.stringify(patch)}`, async () => {
      const values = [leastCluster, { configMap: { merge: { data }, patch: [patch] } }]
      const { code, stderr } = await helm(cluster, ['template', 'p', chart], { values })
      expect(code).to.equal(1)
      expect(stderr).to.include(why)
    })
  }
})

/** Of all values that hold a merge patch. */
function pathsOf(node: Manifest, path: readonly string[]): (readonly string[])[] {
  const { properties = {} } = node.$ref ? schema.$defs[node.$ref.split('/').at(-1)] : node
  const inner = Object.entries(properties).flatMap(([key, each]) => pathsOf(each, [...path, key]))
  return 'merge' in properties ? [path, ...inner] : inner
}

function within(path: readonly string[], value: unknown): Values {
  return path.reduceRight((inner: unknown, key) => ({ [key]: inner }), value) as Values
}

function changesOf(path: readonly string[]): Values {
  const name = path.join('.')
  return {
    merge: { metadata: { annotations: { merged: name } } },
    patch: [{ op: 'add', path: '/metadata/annotations/patched', value: name }],
  }
}

/** Accounts that are the role's own, whatever else changes. */
function accountsOf(...roles: string[]): Values {
  return Object.fromEntries(roles.map((role) => [role, { serviceAccount: { name: `${role}-account` } }]))
}

function withAnnotations(each: Manifest): Manifest {
  each.metadata.annotations ??= {}
  return each
}

/** By name; a key is made anew at each rendering. */
function sorted(manifests: readonly Manifest[]): Manifest[] {
  for (const each of manifests) if (each.kind === 'Secret') delete each.data
  return manifests.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
}
