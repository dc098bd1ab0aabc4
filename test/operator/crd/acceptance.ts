/** What the API server takes, refuses, fills in and drops. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseBufferCreate } from '../../../internal/domain/buffer.ts'
import { bufferConfigSchema } from '../../../internal/domain/buffer-schema.ts'
import type { Schema } from '../../../internal/domain/schema-parts.ts'
import { number } from '../../support/json-number.ts'
import { casesOf } from './cases.ts'
import {
  type Field,
  fieldsOf,
  fullResource,
  fullStatus,
  type Json,
  type Path,
  resourceSchema,
  valueAt,
  withValue,
} from './fields.ts'
import { changed, type RuleCases, ruleCases } from './rule-cases.ts'
import { creationOf } from './service-side.ts'
import type { Answer, Site } from './site.ts'

const judge = { dryRun: 'All', fieldValidation: 'Strict' } as const

export function acceptance(site: () => Site): void {
  describe('takes what its schema allows and refuses the rest', () => {
    for (const field of fieldsOf('spec')) {
      it(field.path.join('.'), () => expectCases(field, fullResource(), (body) => site().create(body, judge)))
    }
  })

  describe('takes a status that its schema allows and refuses others', () => {
    for (const field of fieldsOf('status')) {
      it(field.path.join('.'), async () => {
        const stored = await ensure(site(), fullResource('stored'))
        await expectCases(field, { ...stored, status: fullStatus() }, (body) =>
          site().replace(body, judge, '/status'),
        )
      })
    }
  })

  describe('takes a whole number however JSON writes it', () => {
    for (const { path, schema } of wholeFields()) {
      it(path.join('.'), async () => {
        const whole = Number(schema.default ?? schema.minimum)
        for (const spelled of [`${whole}.0`, `${whole / 10}e1`, `${whole * 10}E-1`]) {
          const { status, body } = await site().create(
            withValue(fullResource(), path, number(spelled)),
            judge,
          )
          expect(status, `${spelled}: ${body.message}`).to.equal(201)
          expect(valueAt(body, path), spelled).to.equal(whole)
        }
        const broken = await site().create(withValue(fullResource(), path, number(`${whole}.5`)), judge)
        expect(told(broken)).to.match(/^422 /).and.to.include(path.join('.'))
      })
    }
  })

  describe('judges by the rule', () => {
    for (const row of ruleCases) {
      it(`${row.field || 'the resource'}: ${row.message}`, () => expectRule(site(), row))
    }

    it('spec: bufferId cannot be set later', async () => {
      const unnamed = { ...changed({ 'spec.bufferId': undefined }), metadata: { name: 'unnamed' } }
      const stored = await ensure(site(), unnamed)
      const answer = await site().replace(withValue(stored, ['spec', 'bufferId'], 'unnamed'), judge)
      expect(told(answer)).to.match(/^422.*bufferId cannot be set or removed later/)
    })
  })

  describe('fills in the defaults of the service', () => {
    const required = { projectId: 'shop', groupKey: { mode: 'header', fallbackHeader: 'X-A' } }
    const delivery = { url: 'https://h/' }
    const specs: Record<string, Json> = {
      'with nothing said': { delivery },
      'with empty objects': {
        delivery: { ...delivery, signing: { secretKeyRef: { name: 'a', key: 'b' } } },
        batch: {},
        overflow: {},
        throughput: {},
        sourceVerification: {},
        analytics: {},
      },
      'within objects that say something': {
        delivery: { ...delivery, method: 'PUT' },
        batch: { maxItems: 7 },
        overflow: { maxGroupItems: 7 },
        throughput: { backoff: { maxMs: 7000 } },
        sourceVerification: { algorithm: 'hmac-sha1' },
      },
    }
    for (const [what, spec] of Object.entries(specs)) {
      it(what, async () => {
        const credentialsRef = { name: 'secrets' }
        const resource = { ...fullResource(), spec: { ...required, credentialsRef, ...spec } }
        const { status, body } = await site().create(resource, judge)
        expect(status).to.equal(201)
        const filled = body.spec as Json
        expect(filled).to.include({ deletionPolicy: 'Delete', adoptionPolicy: 'Never' })
        expect(filled.credentialsRef).to.deep.equal({ name: 'secrets', key: 'apiKey' })
        // Whether it is enabled is managed only where the resource says so.
        expect(filled).not.to.have.property('enabled')
        expect(creationOf({ ...body, spec: { enabled: true, ...filled } })).to.deep.equal(
          serviceDefaults(resource),
        )
      })
    }
  })

  describe('meets an unknown field', () => {
    const objects = [{ path: [], schema: resourceSchema }, ...fieldsOf('spec'), ...fieldsOf('status')]
    for (const { path } of objects.filter(({ schema }) => schema.properties)) {
      const stranger = [...path, 'stranger']
      it(stranger.join('.'), async () => {
        const resource = withValue({ ...fullResource(), status: fullStatus() }, stranger, 'x')
        expect(told(await site().create(resource, judge))).to.match(/^400.*unknown field .*stranger/)
        for (const fieldValidation of ['Warn', 'Ignore'] as const) {
          const answer = await site().create(resource, { dryRun: 'All', fieldValidation })
          expect(answer.status).to.equal(201)
          expect(valueAt(answer.body, stranger)).to.equal(undefined)
          if (fieldValidation === 'Warn') expect(answer.warnings).to.include('stranger')
          else expect(answer.warnings).to.equal('')
        }
      })
    }
  })
}

/** Those that the admin API calls integers. */
function wholeFields(): Field[] {
  return fieldsOf('spec').filter(({ path }) => serviceSchema(path)?.type === 'integer')
}

/** Of the field that the admin API has at the same place. */
function serviceSchema([, ...path]: Path): Schema | undefined {
  return path.reduce<Schema | undefined>((schema, name) => schema?.properties?.[name], bufferConfigSchema)
}

/** The stored resource, made when it is not there. */
async function ensure(site: Site, resource: Json): Promise<Json> {
  const { name } = resource.metadata as Json
  const made = await site.create(resource)
  if (made.status === 201) return made.body
  expect(made.status, told(made)).to.equal(409)
  return (await site.read(String(name))).body
}

async function expectCases(field: Field, base: Json, send: (body: Json) => Promise<Answer>): Promise<void> {
  for (const { what, accepted, resource } of casesOf(field, base)) {
    const answer = await send(resource)
    const expected = accepted ? [200, 201] : [400, 422]
    expect(expected, `${what.slice(0, 100)}: ${told(answer)}`).to.include(answer.status)
  }
}

async function expectRule(site: Site, { message, accepted, refused, update }: RuleCases): Promise<void> {
  const send = async (resource: Json) => {
    if (!update) return site.create(resource, judge)
    const { metadata } = await ensure(site, fullResource('stored'))
    return site.replace({ ...resource, metadata }, judge)
  }
  for (const change of accepted) {
    const answer = await send(changed(change))
    expect(answer.status, `${JSON.stringify(change)}: ${told(answer)}`).to.be.oneOf([200, 201])
  }
  const answers: string[] = []
  for (const change of refused) answers.push(told(await send(changed(change))))
  for (const [n, answer] of answers.entries()) {
    expect(answer, JSON.stringify(refused[n])).to.match(/^422 /)
    expect(answer, JSON.stringify(refused[n])).to.include(message)
  }
}

function told({ status, body }: Answer): string {
  return `${status} ${body.message ?? ''}`
}

/** What the service makes of it, as the body of a creation. */
function serviceDefaults(resource: Json): Json {
  const parsed = parseBufferCreate(creationOf(resource))
  if (!parsed.ok) throw new Error(parsed.error)
  const { bufferId, projectId, config } = parsed.value
  return { bufferId, projectId, ...config }
}
