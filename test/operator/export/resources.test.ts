import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseAllDocuments } from 'yaml'
import { copies } from '../../../cmd/crd/copies.ts'
import { parseBufferCreate } from '../../../internal/domain/buffer.ts'
import { bufferConfigSchema } from '../../../internal/domain/buffer-schema.ts'
import { mapSecrets, REDACTED, redactBuffer } from '../../../internal/domain/buffer-secrets.ts'
import type { Buffer as StoredBuffer } from '../../../internal/domain/model.ts'
import { ExportError, type ExportOptions } from '../../../operator/export/buffer.ts'
import { isObjectName, resourceNames } from '../../../operator/export/names.ts'
import { resourcesOf } from '../../../operator/export/resources.ts'
import { yamlOf } from '../../../operator/export/yaml.ts'
import { desiredBufferOf } from '../../../operator/reconcile/desired-buffer.ts'
import { differenceOf } from '../../../operator/reconcile/difference.ts'
import type { BufferResource } from '../../../operator/resource.ts'
import { secret } from '../reconcile/fixtures.ts'

const OPTIONS: ExportOptions = { credentialsSecret: 'penstock-api-key', plainHeaders: [] }

const least = {
  bufferId: 'orders',
  projectId: 'shop',
  name: 'orders',
  groupKey: { mode: 'jsonpath', path: '$.customer' },
  delivery: { url: 'https://shop.example/hook' },
}

/** A value for every field that a buffer can have. */
const everything = {
  bufferId: 'Orders_EU.v1',
  projectId: 'shop',
  name: 'Orders: "EU" # 1\u200e \u{1f4e6}',
  enabled: false,
  groupKey: { mode: 'header', path: '$.customer', fallbackHeader: 'X-Customer' },
  messageId: { path: '$.id', header: 'X-Id' },
  batch: { maxItems: 7, maxBytes: 8, idleTimeoutMs: 101, maxWaitFromFirstMs: 102 },
  overflow: { maxGroupItems: 9, maxGroupBytes: 10, policy: 'flush_early_then_continue' },
  delivery: {
    url: 'https://shop.example/hook?a=b',
    method: 'PUT',
    headers: {
      Authorization: 'Bearer hidden-1',
      'X-Tenant': 'hidden-2',
      'x-a|b': 'hidden-3',
      'x-a!b': 'hidden-4',
      'x-none': '',
    },
    idempotencyHeader: 'X-Once',
    signing: { type: 'hmac-sha256', secret: 'hidden-5', header: 'X-Signed' },
  },
  throughput: {
    maxAttempts: 4,
    backoff: { initialMs: 11, maxMs: 12, multiplier: 1.5 },
    minDelayBetweenFlushMs: 13,
    maxConcurrencyPerGroup: 14,
  },
  dlqPauseThreshold: 5,
  sourceVerification: {
    enabled: true,
    scheme: 'stripe',
    signingSecret: 'hidden-6',
    previousSecret: 'hidden-7',
    signatureHeader: 'stripe-signature',
    toleranceSeconds: 15,
    algorithm: 'hmac-sha1',
  },
  requireApiKey: true,
  analytics: { sampleDeliveryLogs: 0.25 },
}

/** As the service stores it. */
function stored(body: object, more: Partial<StoredBuffer> = {}): StoredBuffer {
  const parsed = parseBufferCreate(body)
  if (!parsed.ok) throw new Error(parsed.error)
  const { bufferId, projectId, config } = parsed.value
  const facts = { customerId: 'acme', consecutiveDlqCount: 0, createdAt: 1, updatedAt: 2 }
  return { bufferId, projectId, ...config, ...facts, ...more }
}

/** What a reader of YAML makes of the text. */
function read(text: string): BufferResource[] {
  return parseAllDocuments(text).map((document) => document.toJS() as BufferResource)
}

function exported(buffer: StoredBuffer, options: Partial<ExportOptions> = {}): BufferResource {
  const [resource] = read(yamlOf(resourcesOf([buffer], { ...OPTIONS, ...options })))
  return resource!
}

/** Secrets as the notes of the export ask for them. */
function secretsOf(buffer: StoredBuffer) {
  const [{ notes, resource } = { notes: [], resource: {} }] = resourcesOf([buffer], OPTIONS)
  const values = new Map<string, string>()
  mapSecrets(buffer, (value, path) => {
    values.set(path.join('.'), value)
    return value
  })
  const keys = notes.flatMap((note) => {
    const [, key, field] = /^ {2}(\S+): (\S+)$/.exec(note) ?? []
    return key === undefined ? [] : [[key, values.get(field!)!]]
  })
  const { name } = (resource as unknown as BufferResource).metadata
  return secret(`${name}-secrets`, Object.fromEntries(keys))
}

/** What the operator would change at the service once the resource is applied beside those Secrets. */
function changeBy(resource: BufferResource, buffer: StoredBuffer) {
  const found = secretsOf(buffer)
  const desired = desiredBufferOf(resource, (name) => (name === found.metadata?.name ? found : undefined))
  if (!desired.ok) throw new Error(desired.error)
  expect([desired.bufferId, desired.projectId]).to.deep.equal([buffer.bufferId, buffer.projectId])
  return differenceOf(desired.config, buffer)
}

describe('an exported Buffer resource', () => {
  const complete = stored(everything)

  it('takes the buffer over, and asks for no change of it', () => {
    for (const buffer of [
      complete,
      stored(least),
      stored({ ...least, delivery: { ...least.delivery, headers: {} } }),
      stored({ ...least, delivery: { ...least.delivery, headers: { 'x-empty': '' } } }),
      stored({ ...least, requireApiKey: false, enabled: false }),
      stored({ ...least, sourceVerification: { signingSecret: 'hidden-8' } }),
    ]) {
      const resource = exported(buffer)
      expect(changeBy(resource, buffer)).to.equal(undefined)
      expect(resource.spec).to.include({ adoptionPolicy: 'Adopt', deletionPolicy: 'Orphan' })
    }
  })

  it('has every field of a buffer, and nothing that the service alone writes', () => {
    const { spec } = exported(complete)
    const { displayName, credentialsRef, adoptionPolicy, deletionPolicy, ...rest } = spec
    const { bufferId, projectId, ...fields } = rest
    const configured = Object.keys(bufferConfigSchema.properties!)
    expect(Object.keys(everything)).to.include.members(configured)
    expect(['name', ...Object.keys(fields)]).to.have.members(configured)
    expect({ bufferId, projectId, displayName }).to.deep.equal({
      bufferId: 'Orders_EU.v1',
      projectId: 'shop',
      displayName: everything.name,
    })
    expect([credentialsRef, adoptionPolicy, deletionPolicy]).to.deep.equal([
      { name: 'penstock-api-key', key: 'apiKey' },
      'Adopt',
      'Orphan',
    ])
  })

  it('names secrets and headers, and holds no value of them, whoever asked', () => {
    for (const buffer of [complete, redactBuffer(complete)]) {
      const text = yamlOf(resourcesOf([buffer], OPTIONS))
      expect(text).to.not.match(/hidden-|redacted/)
      const [{ spec, metadata } = {} as BufferResource] = read(text)
      const from = `${metadata.name}-secrets`
      expect(spec.delivery.headersFrom).to.deep.include({
        name: 'X-Tenant',
        secretKeyRef: { name: from, key: 'header-x-tenant' },
      })
      expect(spec.delivery.signing?.secretKeyRef).to.deep.equal({ name: from, key: 'signing-secret' })
      expect(text).to.include(`# Make the Secret ${from} first`)
      expect(text).to.match(/^# {3}header-authorization: delivery\.headers\.Authorization$/m)
    }
  })

  it('gives headers keys of their own, whose names would have the same', () => {
    const refs = exported(complete).spec.delivery.headersFrom!.map(({ secretKeyRef }) => secretKeyRef.key)
    expect(refs).to.include.members(['header-x-a_b', 'header-x-a_b-2'])
    expect(new Set(refs).size).to.equal(refs.length)
  })

  it('prints a header that is told to be plain, whatever its case, unless its name suggests a credential', () => {
    const { spec } = exported(complete, { plainHeaders: ['x-tenant'] })
    expect(spec.delivery.headers).to.deep.equal({ 'x-none': '', 'X-Tenant': 'hidden-2' })
    expect(spec.delivery.headersFrom!.map(({ name }) => name)).to.not.include('X-Tenant')
    for (const name of ['authorization', 'X-Api-Key', 'Cookie', 'x-access-TOKEN', 'X-Passwd', 'x-signature'])
      expect(() => exported(complete, { plainHeaders: [name] })).to.throw(
        ExportError,
        `--plain-header ${name}: `,
      )
    const unseen = redactBuffer(complete)
    expect(unseen.delivery.headers!['X-Tenant']).to.equal(REDACTED)
    expect(() => exported(unseen, { plainHeaders: ['x-tenant'] })).to.throw(
      ExportError,
      'buffer Orders_EU.v1: the value of the header X-Tenant cannot be read',
    )
  })

  it('says that a buffer is disabled, because a new resource would resume a paused one', () => {
    const paused = stored(least, {
      enabled: false,
      pausedReason: 'consecutive_dead_letters',
      consecutiveDlqCount: 3,
    })
    expect(exported(paused).spec.enabled).to.equal(false)
    expect(yamlOf(resourcesOf([paused], OPTIONS))).to.include(
      '# The service paused the buffer (consecutive_dead',
    )
    expect(exported(stored(least)).spec).to.not.have.property('enabled')
  })

  it('stands where it is told, and names the Secret of the key that it is told', () => {
    const { spec, metadata } = exported(stored(least), {
      namespace: 'shop',
      credentialsSecret: 'key.of-shop',
    })
    expect(metadata).to.deep.equal({ name: 'orders', namespace: 'shop' })
    expect(spec.credentialsRef).to.deep.equal({ name: 'key.of-shop', key: 'apiKey' })
    for (const [option, value] of [
      ['namespace', 'Shop'],
      ['namespace', 'a.b'],
      ['credentialsSecret', 'a_b'],
    ])
      expect(() => exported(stored(least), { [option!]: value })).to.throw(
        ExportError,
        /^--(namespace|credentials-secret) must/,
      )
  })

  it('is in the order of projects and identifiers, whatever the service answers', () => {
    const buffers = [
      ['b', 'x'],
      ['a', 'z'],
      ['a', 'y'],
    ].map(([projectId, bufferId]) => stored({ ...least, projectId, bufferId }))
    const names = resourcesOf(buffers, OPTIONS).map(
      ({ resource }) => (resource.spec as { bufferId: string }).bufferId,
    )
    expect(names).to.deep.equal(['y', 'z', 'x'])
  })

  it('is the same to readers of YAML 1.1 and 1.2', () => {
    const words = [
      'y',
      'No',
      'on',
      'null',
      '~',
      '1e5',
      '0x1f',
      '012',
      '1:30',
      '2026-01-01',
      '=',
      '<<',
      '- a',
      'a: b',
    ]
    for (const name of [...words, 'a #b', "'", '"', '\\', '%', '@a', '\u0085\u2028\ufeff', '\u00a0', ' a ']) {
      const text = yamlOf(resourcesOf([stored({ ...least, name })], OPTIONS))
      for (const version of ['1.1', '1.2'] as const) {
        const [document] = parseAllDocuments(text, { version })
        expect((document!.toJS() as BufferResource).spec.displayName, version).to.equal(name)
      }
    }
  })

  it('is nothing where there is no buffer', () => {
    expect(yamlOf(resourcesOf([], OPTIONS))).to.equal('')
  })
})

describe('names of exported resources', () => {
  it('are the identifiers where these are names, and else made of them, each its own', () => {
    const ids = [
      'orders',
      'a.b-c',
      'Orders',
      'orders_',
      '_orders',
      'ORDERS',
      '...',
      '-',
      'a..b',
      '0',
      'x'.repeat(128),
    ]
    const names = resourceNames(ids)
    for (const id of ids) {
      expect(isObjectName(names.get(id)!), `${id}: ${names.get(id)}`).to.equal(true)
      if (isObjectName(id)) expect(names.get(id)).to.equal(id)
    }
    expect(new Set(names.values()).size).to.equal(ids.length)
    expect(names.get('Orders')).to.match(/^orders-[0-9a-f]{8}$/)
    expect(names.get('...')).to.match(/^buffer-[0-9a-f]{8}$/)
  })

  it('do not depend on the other buffers, but never take the name of one', () => {
    const [name] = resourceNames(['Orders']).values()
    expect(resourceNames(['a', 'Orders', 'b']).get('Orders')).to.equal(name)
    const both = resourceNames(['Orders', name!])
    expect(both.get(name!)).to.equal(name)
    expect(both.get('Orders')).to.match(/^orders-[0-9a-f]{16}$/)
  })
})

describe('the export of the command line', () => {
  it('is a copy of that of the operator; else: npm run crd', () => {
    const made = copies()
    for (const { path, content } of made) expect(readFileSync(path, 'utf8'), path).to.equal(content)
    expect(readdirSync(dirname(made[0]!.path))).to.have.members(made.map(({ path }) => basename(path)))
  })
})
