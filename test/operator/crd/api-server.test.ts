import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { parseAllDocuments } from 'yaml'
import { bufferDefinition } from '../../../operator/crd/definition.ts'
import { GROUP, PLURAL } from '../../../operator/resource.ts'
import { type Kube, kubectlOk, OLDEST, start, stopKube } from '../../kube/kube.ts'
import { eventually } from '../../support/eventually.ts'
import { acceptance } from './acceptance.ts'
import { fieldsOf, fullResource, fullStatus, type Json, valueAt, withValue } from './fields.ts'
import { presentation } from './presentation.ts'
import { definitionOf } from './rule-cost.ts'
import { judgedAsByTheService } from './same-judgement.ts'
import { refusalOf } from './service-side.ts'
import { crdFile, defineBuffers, openSite, type Site, samples } from './site.ts'

const NAME = `crd/${PLURAL}.${GROUP}`

// Clusters of their own: here the definition itself is changed.
for (const emulate of [undefined, OLDEST]) {
  describe(`the Buffer resource at an API server${emulate ? ` that behaves like ${emulate}` : ''}`, function () {
    this.timeout(120_000)
    let cluster: Kube | undefined
    let opened: Site | undefined
    const site = () => opened!

    before(async function () {
      this.timeout(120_000)
      cluster = await start({ parts: '', ...(emulate && { emulate }) })
      if (cluster === undefined) this.skip()
      opened = await openSite(cluster!, 'crd')
      await defineBuffers(cluster!)
    })

    after(async () => {
      await opened?.close()
      if (cluster) await stopKube(cluster)
    })

    installation(site)
    acceptance(site)
    presentation(site)
    sampled(site)
    judgedAsByTheService(site)
  })
}

function installation(site: () => Site): void {
  describe('is installed', () => {
    it('in the place of an earlier definition, under the resources that there are', async () => {
      await kubectlOk(site().cluster, ['apply', '-f', '-'], JSON.stringify(earlierDefinition()))
      await kubectlOk(site().cluster, ['wait', '--for=condition=Established', '--timeout=60s', NAME])
      const made = await eventually(async () => {
        await site().remove('earlier')
        const { status, body } = await site().create(fullResource('earlier'))
        // The older definition is served some time after it is accepted.
        expect(status).to.equal(201)
        expect(body.spec).not.to.have.property('analytics')
        return body
      })
      await defineBuffers(site().cluster)
      await eventually(async () => {
        const { body } = await site().read('earlier')
        expect(valueAt(body, ['spec', 'analytics'])).to.deep.equal({ sampleDeliveryLogs: 0.05 })
        expect(valueAt(body, ['metadata', 'uid'])).to.equal(valueAt(made, ['metadata', 'uid']))
      })
    })

    it('under resources that it would refuse now, which can still be changed otherwise, and go', async () => {
      await kubectlOk(site().cluster, ['apply', '-f', '-'], JSON.stringify(earlierDefinition()))
      const url = 'https://256.1.1.1/'
      const lenient = withValue(fullResource('lenient'), ['spec', 'delivery', 'url'], url)
      await eventually(async () => {
        const { status, body } = await site().create(lenient)
        expect(status, String(body.message)).to.equal(201)
      })
      await defineBuffers(site().cluster)
      await eventually(async () => {
        const { status } = await site().create({ ...lenient, metadata: { name: 'late' } }, { dryRun: 'All' })
        expect(status).to.equal(422)
      })
      const { body: stored } = await site().read('lenient')
      const held = withValue(stored, ['metadata', 'finalizers'], ['tests.penstock.dev/held'])
      const renamed = withValue(held, ['spec', 'displayName'], 'Renamed')
      const changed = await site().replace(renamed)
      expect(changed.status, String(changed.body.message)).to.equal(200)
      const told = await site().replace({ ...changed.body, status: fullStatus() }, {}, '/status')
      expect(told.status, String(told.body.message)).to.equal(200)
      const moved = withValue(told.body, ['spec', 'delivery', 'url'], 'https://257.1.1.1/')
      expect((await site().replace(moved)).status).to.equal(422)
      await site().remove('lenient')
      const { body: leaving } = await site().read('lenient')
      const released = await site().replace(withValue(leaving, ['metadata', 'finalizers'], undefined))
      expect(released.status, String(released.body.message)).to.equal(200)
      expect((await site().read('lenient')).status).to.equal(404)
    })

    it('with rules that cost at most a tenth of what an API server allows', async () => {
      const apply = ['apply', '--dry-run=server', '-f', '-']
      await kubectlOk(site().cluster, apply, JSON.stringify(definitionOf(10)))
      // An API server that refused none would make this a check of nothing.
      const tooMuch = kubectlOk(site().cluster, apply, JSON.stringify(definitionOf(10_000)))
      expect(String(await tooMuch.catch((error) => error))).to.include('exceeds budget')
    })

    it('without a complaint of the API server', async () => {
      const said = await kubectlOk(site().cluster, ['get', NAME, '--output', 'json'])
      const { status } = JSON.parse(said) as { status: { conditions: { type: string; status: string }[] } }
      const told = status.conditions.map(({ type, status }) => `${type}: ${status}`)
      expect(told).to.have.members(['NamesAccepted: True', 'Established: True'])
    })

    it('a second time without any change', async () => {
      expect(await kubectlOk(site().cluster, ['apply', '-f', crdFile])).to.match(/ unchanged$/m)
      const serverSide = ['apply', '--server-side', '--force-conflicts', '-f', crdFile]
      await kubectlOk(site().cluster, serverSide)
      const applied = await resourceVersion(site())
      await kubectlOk(site().cluster, serverSide)
      expect(await resourceVersion(site())).to.equal(applied)
    })
  })
}

/** As one version before might have been: a field, a rule and some columns are younger. */
function earlierDefinition(): Json {
  const definition = structuredClone(bufferDefinition()) as unknown as {
    spec: { versions: [{ additionalPrinterColumns: unknown[]; selectableFields?: unknown }] }
  }
  const [version] = definition.spec.versions
  version.additionalPrinterColumns.splice(3)
  delete version.selectableFields
  const spec = valueAt(version, ['schema', 'openAPIV3Schema', 'properties', 'spec']) as Json
  delete spec['x-kubernetes-validations']
  delete (spec.properties as Json).analytics
  const url = valueAt(spec, ['properties', 'delivery', 'properties', 'url']) as Json
  delete url['x-kubernetes-validations']
  return definition as unknown as Json
}

async function resourceVersion({ cluster }: Site): Promise<string> {
  return kubectlOk(cluster, ['get', NAME, '--output', 'jsonpath={.metadata.resourceVersion}'])
}

function sampled(site: () => Site): void {
  describe('has samples', () => {
    it('that are applied as they stand, twice', async () => {
      const first = await site().kubectl(['apply', '--validate=strict', '-f', samples])
      const second = await site().kubectl(['apply', '--validate=strict', '-f', samples])
      // A Secret written as text always counts as changed.
      const lines = second.split('\n').filter((line) => line.startsWith('buffer.'))
      expect(lines).to.have.lengthOf(buffers().length)
      for (const line of lines) expect(line).to.match(/ unchanged$/)
      expect(first.match(/ created$/gm)).to.have.lengthOf(buffers().length + 2)
    })
  })
}

function buffers(): Json[] {
  return readdirSync(samples)
    .flatMap((file) => parseAllDocuments(readFileSync(join(samples, file), 'utf8')))
    .map((document) => document.toJS() as Json)
    .filter(({ kind }) => kind === 'Buffer')
}

describe('the samples of the Buffer resource', () => {
  it('are what the service accepts', () => {
    for (const buffer of buffers()) expect(refusalOf(buffer)).to.equal(null)
  })

  it('name only Secrets of the samples', () => {
    const documents = parseAllDocuments(readFileSync(join(samples, 'secrets.yaml'), 'utf8'))
    const keys = documents.flatMap((document) => {
      const { metadata, stringData } = document.toJS() as { metadata: { name: string }; stringData: Json }
      return Object.keys(stringData).map((key) => `${metadata.name}/${key}`)
    })
    const named = new Set(buffers().flatMap(({ spec }) => references(spec)))
    expect([...named]).to.have.members(keys)
  })

  it('show every field once, with its default', () => {
    const all = buffers().find(({ metadata }) => (metadata as Json).name === 'orders-signed')
    for (const { path, schema } of fieldsOf('spec')) {
      const value = valueAt(all, path)
      expect(value, path.join('.')).not.to.equal(undefined)
      if (schema.default !== undefined && typeof schema.default !== 'object' && path.at(-1) !== 'enabled') {
        expect(value, path.join('.')).to.equal(schema.default)
      }
    }
  })
})

/** `name/key` of every Secret that is named below `value`. */
function references(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value as Json).flatMap(([member, child]) => {
    if (!['secretKeyRef', 'previousSecretKeyRef', 'credentialsRef'].includes(member)) return references(child)
    const { name, key = 'apiKey' } = child as { name: string; key?: string }
    return [`${name}/${key}`]
  })
}
