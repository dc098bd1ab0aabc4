/** The chart as it is published: what its package says of itself, and its way over a registry. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { parse, parseAllDocuments } from 'yaml'
import { type Kube, kubeOrSkip, run, toolsOrSkip } from '../kube/kube.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { chart, helmOk, leastCluster, leastLocal, podsOf, render } from './helm.ts'
import { type Registry, startRegistry, withHelm3 } from './tools.ts'

const about = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8'))
const ROOT = join(import.meta.dirname, '..', '..')
/** Of the annotations of Artifact Hub, each of which holds YAML. */
const annotation = (name: string) => parse(about.annotations[`artifacthub.io/${name}`])

describe('the package of the chart', function () {
  this.timeout(120_000)
  let helms: Record<string, Kube>
  let registry: Registry
  before(async function () {
    this.timeout(900_000)
    const cluster = await kubeOrSkip(this)
    const tools = await toolsOrSkip(this)
    helms = { 'Helm 4': cluster, 'Helm 3': withHelm3(cluster, tools) }
    registry = await startRegistry(tools)
  })
  after(() => registry?.close())

  for (const [name, plan] of [
    ['Helm 4', 'charts4'],
    ['Helm 3', 'charts3'],
  ] as const)
    it(`is made, pushed to a registry and taken from there: ${name}`, async () => {
      const cluster = helms[name]!
      const folder = tempFolder('package')
      await helmOk(cluster, ['package', chart, '--destination', folder])
      const file = join(folder, `penstock-${about.version}.tgz`)
      const { stdout: files } = await run('tar', ['-tzf', file])
      expect(files.split('\n')).to.include.members([
        ...['Chart.yaml', 'README.md', 'values.schema.json', 'values-local.yaml'].map(
          (each) => `penstock/${each}`,
        ),
        'penstock/files/crds/buffering.penstock.dev_buffers.yaml',
      ])
      const place = `oci://${registry.host}/${plan}`
      const pushed = await run(join(cluster.bin, 'helm'), ['push', file, place, '--plain-http'])
      expect(pushed.code, pushed.stderr).to.equal(0)
      expect(pushed.stdout + pushed.stderr).to.match(/Digest: sha256:[0-9a-f]{64}/)
      const args = [`${place}/penstock`, '--version', about.version, '--plain-http', '--namespace', 'ns']
      const text = await helmOk(cluster, ['template', 'p', ...args], { values: [leastCluster] })
      const made = parseAllDocuments(text).flatMap((document) => document.toJS() ?? [])
      expect(made).to.deep.equal(await render(cluster, [leastCluster]))
      expect(parse(await helmOk(cluster, ['show', 'chart', ...args.slice(0, 4)]))).to.deep.equal(about)
    })

  it('names the images that its pods have', async () => {
    const named = annotation('images').map(({ image }: { image: string }) => image)
    for (const values of [leastCluster, leastLocal]) {
      const pods = [...podsOf(await render(helms['Helm 4']!, [values])).values()]
      const images = pods.flatMap(({ spec }) => [...spec.containers, ...(spec.initContainers ?? [])])
      expect([...new Set(images.map(({ image }) => image))]).to.deep.equal(named)
    }
  })
})

describe('what the chart says of itself', () => {
  it('is the definition that it brings, and a sample of it', () => {
    const [crd] = annotation('crds')
    const definition = parse(readFileSync(join(ROOT, 'crds', 'buffering.penstock.dev_buffers.yaml'), 'utf8'))
    const { names, versions } = definition.spec
    expect(annotation('crds')).to.have.length(1)
    expect(crd).to.include({ kind: names.kind, name: definition.metadata.name, version: versions[0].name })
    expect(annotation('crdsExamples')).to.deep.equal([
      parse(readFileSync(join(ROOT, 'crds', 'samples', 'buffer.yaml'), 'utf8')),
    ])
  })

  it('has an icon that is there without any host', () => {
    const [, kind, data] = /^data:(image\/svg\+xml);base64,(\S+)$/.exec(about.icon) ?? []
    expect(kind).to.equal('image/svg+xml')
    expect(Buffer.from(data!, 'base64').toString()).to.match(
      /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" .*<\/svg>$/,
    )
  })

  it('names no host or person that the repository does not know', () => {
    const { homepage, repository, author } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    expect(about.home).to.equal(homepage)
    expect(about.sources).to.deep.equal(repository && [repository.url ?? repository])
    expect(about.maintainers).to.deep.equal(author && [author])
  })
})
